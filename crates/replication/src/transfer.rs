//! The transfer of an RDB file at the beginning of a full synchronization.
//!
//! ```text
//! \n \n ..  $<length>\r\n   <bytes>                 from a file: the stream may follow at once
//! \n \n ..  $EOF:<mark>\r\n <bytes> <mark>          while it is written: 40 random bytes end it
//! ```
//!
//! The receiver finds the mark at any split of reads, and also with bytes of the stream behind it.
//! Peers that spool to disk find it only at the end of a read, so a sender sends nothing behind it
//! before the first REPLCONF ACK. Newlines in front keep the link alive; they belong to nothing.

use std::fmt;

use base::number::parse_i64;
use memchr::{memchr, memmem};

use crate::replid::{REPLICATION_ID_BYTES, hex_digits};
use crate::wire::shown;

/// The length of a mark.
const MARK_BYTES: usize = REPLICATION_ID_BYTES;
/// The longest first line: an error of the primary may be long.
const HEADER_BYTES_MAX: usize = 4096;

/// The mark that ends an RDB file of unknown length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EofMark([u8; MARK_BYTES]);

impl EofMark {
    /// A mark of random bytes, which it prints as hexadecimal digits.
    pub fn from_random(random: [u8; MARK_BYTES / 2]) -> Self {
        Self(hex_digits(random))
    }

    /// The line before the file.
    pub fn header(&self) -> Vec<u8> {
        [b"$EOF:", &self.0[..], b"\r\n"].concat()
    }

    /// The bytes behind the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The line before an RDB file of known length.
pub fn length_header(bytes: u64) -> Vec<u8> {
    format!("${bytes}\r\n").into_bytes()
}

/// Why a transfer failed. It prints as the line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// An error instead of a file.
    Refused(String),
    /// Another first line.
    BadHeader(String),
    /// The file is longer than the receiver's limit.
    TooLong {
        /// The limit.
        bytes_max: u64,
    },
    /// The connection ended within the file, or before it.
    Truncated {
        /// The bytes of the file that arrived.
        received: u64,
        /// Its announced length.
        announced: Option<u64>,
    },
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reply) => {
                write!(f, "MASTER aborted replication with an error: {reply}")
            }
            Self::BadHeader(line) => write!(
                f,
                "Bad protocol from MASTER, the first byte is not '$' (we received '{line}'), are \
                 you sure the host and port are right?"
            ),
            Self::TooLong { bytes_max } => {
                write!(f, "The RDB file of the master is longer than {bytes_max} bytes")
            }
            Self::Truncated { received, announced } => {
                write!(
                    f,
                    "I/O error trying to sync with MASTER: connection lost after {received} bytes"
                )?;
                announced.map_or(Ok(()), |announced| write!(f, " of {announced}"))
            }
        }
    }
}

impl std::error::Error for TransferError {}

/// The result of receiving bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferStep {
    /// How many bytes belong to the transfer; the others, after its end, to the stream.
    pub consumed: usize,
    /// Whether the file is complete.
    pub is_complete: bool,
}

/// Where the receiver is.
#[derive(Debug)]
enum ReceiverStage {
    /// In the first line.
    Header(Vec<u8>),
    /// So many bytes are missing.
    Length {
        missing: u64,
    },
    /// Until the mark. `held` may be its beginning.
    Mark {
        finder: Box<memmem::Finder<'static>>,
        held: Vec<u8>,
    },
    Complete,
}

/// Receives an RDB file.
#[derive(Debug)]
pub struct BulkReceiver {
    stage: ReceiverStage,
    bytes_max: u64,
    received: u64,
    announced: Option<u64>,
}

impl BulkReceiver {
    /// Refuses files of more than `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self { stage: ReceiverStage::Header(Vec::new()), bytes_max, received: 0, announced: None }
    }

    /// The bytes of the file that arrived, `master_sync_read_bytes`.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The length of the file, once it is known: `master_sync_total_bytes`.
    pub fn announced(&self) -> Option<u64> {
        self.announced
    }

    /// Whether the file has a mark instead of a length.
    pub fn has_mark(&self) -> bool {
        matches!(self.stage, ReceiverStage::Mark { .. })
    }

    /// Takes bytes of the primary, and passes those of the file to `sink`.
    ///
    /// # Errors
    /// If there is no file, or if it is too long.
    pub fn handle_bytes(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<TransferStep, TransferError> {
        let mut rest = bytes;
        loop {
            let taken = match &mut self.stage {
                ReceiverStage::Header(_) => self.handle_header(rest)?,
                ReceiverStage::Length { missing } => {
                    let len =
                        usize::try_from(*missing).map_or(rest.len(), |all| all.min(rest.len()));
                    let (file, _) = rest.split_at(len);
                    *missing -= len as u64;
                    if *missing == 0 {
                        self.stage = ReceiverStage::Complete;
                    }
                    self.deliver(&[file], sink)?;
                    len
                }
                ReceiverStage::Mark { .. } => self.handle_marked(rest, sink)?,
                ReceiverStage::Complete => 0,
            };
            rest = &rest[taken..];
            let is_complete = matches!(self.stage, ReceiverStage::Complete);
            if rest.is_empty() || is_complete {
                return Ok(TransferStep { consumed: bytes.len() - rest.len(), is_complete });
            }
        }
    }

    /// The error of a connection that ended.
    pub fn handle_end(&self) -> TransferError {
        TransferError::Truncated { received: self.received, announced: self.announced }
    }

    fn deliver(
        &mut self,
        parts: &[&[u8]],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<(), TransferError> {
        for part in parts.iter().filter(|part| !part.is_empty()) {
            self.received = self.received.saturating_add(part.len() as u64);
            if self.received > self.bytes_max {
                return Err(TransferError::TooLong { bytes_max: self.bytes_max });
            }
            sink(part);
        }
        Ok(())
    }

    /// Takes bytes up to the end of the first line. Returns how many.
    fn handle_header(&mut self, bytes: &[u8]) -> Result<usize, TransferError> {
        let ReceiverStage::Header(line) = &mut self.stage else { return Ok(0) };
        let end = memchr(b'\n', bytes).map(|at| at + 1);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(part);
        if end.is_none() && line.len() <= HEADER_BYTES_MAX {
            return Ok(part.len());
        }
        let line = std::mem::take(line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = || shown(line);
        match line {
            [] => {}
            [b'-', error @ ..] => {
                return Err(TransferError::Refused(shown(error)));
            }
            [b'$', value @ ..] => {
                self.begin(value).ok_or_else(|| TransferError::BadHeader(text()))?;
            }
            _ => return Err(TransferError::BadHeader(text())),
        }
        match self.announced.filter(|announced| *announced > self.bytes_max) {
            Some(_) => Err(TransferError::TooLong { bytes_max: self.bytes_max }),
            None => Ok(part.len()),
        }
    }

    /// Begins the file that the first line announces.
    fn begin(&mut self, value: &[u8]) -> Option<()> {
        if let Some(mark) = value.strip_prefix(b"EOF:") {
            let finder = memmem::Finder::new(mark).into_owned();
            (mark.len() == MARK_BYTES).then_some(())?;
            self.stage = ReceiverStage::Mark { finder: Box::new(finder), held: Vec::new() };
            return Some(());
        }
        let missing = u64::try_from(parse_i64(value)?).ok()?;
        self.announced = Some(missing);
        self.stage = match missing {
            0 => ReceiverStage::Complete,
            _ => ReceiverStage::Length { missing },
        };
        Some(())
    }

    /// Takes bytes up to the end of the mark. Returns how many.
    fn handle_marked(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<usize, TransferError> {
        let ReceiverStage::Mark { finder, held } = &mut self.stage else { return Ok(0) };
        let mut before = std::mem::take(held);
        if !before.is_empty() {
            // A mark that begins in the held bytes ends in these.
            let len = before.len();
            before.extend_from_slice(&bytes[..bytes.len().min(MARK_BYTES)]);
            if let Some(at) = finder.find(&before) {
                self.stage = ReceiverStage::Complete;
                self.deliver(&[&before[..at]], sink)?;
                return Ok(at + MARK_BYTES - len);
            }
            if bytes.len() <= MARK_BYTES {
                let file = before.len() - mark_begins(&before, finder.needle());
                *held = before[file..].to_vec();
                self.deliver(&[&before[..file]], sink)?;
                return Ok(bytes.len());
            }
            before.truncate(len);
        }
        let (file, taken) = match finder.find(bytes) {
            Some(at) => {
                self.stage = ReceiverStage::Complete;
                (at, at + MARK_BYTES)
            }
            None => {
                let file = bytes.len() - mark_begins(bytes, finder.needle());
                *held = bytes[file..].to_vec();
                (file, bytes.len())
            }
        };
        self.deliver(&[&before, &bytes[..file]], sink)?;
        Ok(taken)
    }
}

/// How many bytes at the end may be the beginning of the mark.
fn mark_begins(bytes: &[u8], mark: &[u8]) -> usize {
    (1..mark.len()).rev().find(|len| bytes.ends_with(&mark[..*len])).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "transfer_tests.rs"]
mod tests;
