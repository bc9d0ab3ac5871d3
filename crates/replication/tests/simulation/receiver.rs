//! Receivers of RDB files: that of the crate, and one that works like the peers', which spool to a
//! file and find the mark only at the end of a read.

use replication::transfer::{BulkReceiver, TransferError};

/// A receiver with the file so far.
pub enum FileReceiver {
    Whole(Box<BulkReceiver>, Vec<u8>),
    Spooling(SpoolingReceiver),
}

/// The receiver of the peers.
#[derive(Default)]
pub struct SpoolingReceiver {
    header: Vec<u8>,
    mark: Option<Vec<u8>>,
    length: Option<usize>,
    file: Vec<u8>,
    /// A planted fault: it looks for the mark only in the last read.
    forgets_reads: bool,
}

impl FileReceiver {
    /// Takes bytes. Returns how many, and the file if it is complete.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
    ) -> Result<(usize, Option<Vec<u8>>), TransferError> {
        match self {
            Self::Whole(receiver, file) => {
                let step = receiver.handle_bytes(bytes, &mut |part| file.extend(part))?;
                Ok((step.consumed, step.is_complete.then(|| std::mem::take(file))))
            }
            Self::Spooling(receiver) => Ok(receiver.handle_bytes(bytes)),
        }
    }
}

impl SpoolingReceiver {
    pub fn new(forgets_reads: bool) -> Self {
        Self { forgets_reads, ..Self::default() }
    }

    fn handle_bytes(&mut self, bytes: &[u8]) -> (usize, Option<Vec<u8>>) {
        let mut at = 0;
        while self.mark.is_none() && self.length.is_none() {
            let Some(byte) = bytes.get(at) else { return (at, None) };
            at += 1;
            match byte {
                b'\n' => self.begin(),
                byte => self.header.push(*byte),
            }
        }
        let rest = &bytes[at..];
        if let Some(length) = self.length {
            let taken = rest.len().min(length - self.file.len());
            self.file.extend(&rest[..taken]);
            let is_complete = self.file.len() == length;
            return (at + taken, is_complete.then(|| std::mem::take(&mut self.file)));
        }
        let mark = self.mark.as_deref().unwrap_or_default();
        self.file.extend(rest);
        let last = if self.forgets_reads { rest } else { &self.file };
        let is_complete = last.ends_with(mark);
        let len = self.file.len() - if is_complete { mark.len() } else { 0 };
        (bytes.len(), is_complete.then(|| self.file[..len].to_vec()))
    }

    fn begin(&mut self) {
        let header = String::from_utf8(std::mem::take(&mut self.header)).unwrap();
        let header = header.trim_end();
        if let Some(mark) = header.strip_prefix("$EOF:") {
            self.mark = Some(mark.as_bytes().to_vec());
        } else if let Some(length) = header.strip_prefix('$') {
            self.length = Some(length.parse().unwrap());
        }
    }
}
