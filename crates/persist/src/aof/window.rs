//! A part of a file in memory, which moves forward as the file is read.
//!
//! It takes memory only for bytes that were requested and that the file has.

use crate::disk::{BLOCK_BYTES, DiskError, DiskFile};

/// How much memory is kept after a longer part.
const ROOM_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub(super) struct Window<F> {
    file: F,
    /// Where the file ends, as far as is known.
    end: u64,
    bytes: Vec<u8>,
    /// The position of the first byte in the file.
    start: u64,
}

impl<F: DiskFile> Window<F> {
    pub(super) fn new(file: F, end: u64) -> Self {
        Self { file, end, bytes: Vec::new(), start: 0 }
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The bytes from a position on: at least `len`, or all up to the end of the file. Earlier
    /// bytes may be dropped.
    pub(super) fn see(&mut self, from: u64, len: usize) -> Result<&[u8], DiskError> {
        if from >= self.end {
            return Ok(&[]);
        }
        let until = from.saturating_add(len as u64).min(self.end);
        let known = self.start..=self.start + self.bytes.len() as u64;
        if !known.contains(&from) || until > *known.end() {
            self.load(from, until)?;
        }
        let at = from.saturating_sub(self.start) as usize;
        Ok(self.bytes.get(at..).unwrap_or_default())
    }

    /// Reads the file up to `until` or further.
    #[cold]
    fn load(&mut self, from: u64, until: u64) -> Result<(), DiskError> {
        if from >= self.start && from - self.start <= self.bytes.len() as u64 {
            self.bytes.drain(..(from - self.start) as usize);
        } else {
            self.bytes.clear();
        }
        self.start = from;
        if self.bytes.capacity() > ROOM_BYTES_MAX && until - from <= BLOCK_BYTES as u64 {
            self.bytes.shrink_to(ROOM_BYTES_MAX);
        }
        let have = self.bytes.len();
        // The file has these bytes, so memory is not taken for an announced length.
        let missing = (until - from) as usize - have.min((until - from) as usize);
        let left = (self.end - from) as usize - have;
        let more = missing.max(BLOCK_BYTES).min(left);
        self.bytes.resize(have + more, 0);
        let read = self.file.read_at(from + have as u64, &mut self.bytes[have..]);
        self.bytes.truncate(have + read.as_ref().map_or(0, |read| *read));
        // The file was truncated meanwhile.
        if read? < more {
            self.end = self.start + self.bytes.len() as u64;
        }
        Ok(())
    }
}
