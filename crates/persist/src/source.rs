//! The origin of bytes, and reading them in order.
//!
//! ```text
//! blocks   | consumed | block: ... read ... ^ at ... | not arrived yet
//! ```
//!
//! A source provides one block after another. Bytes within a block are read in place; only bytes
//! that are split between blocks are copied. Memory is taken for bytes that have arrived, whatever
//! length a format announces.

use std::io;

use crate::crc64::Crc64;
use crate::error::Error;

/// Provides bytes block by block.
pub trait ByteSource {
    /// The current block; empty at the end.
    fn block(&self) -> &[u8];

    /// How many bytes follow the block, if that is known, as in a file; 0 otherwise.
    fn announced(&self) -> u64 {
        0
    }

    /// How many of them are stored: a file may have holes, which read as zeros. Large collections
    /// allocate their memory at once for elements whose bytes are.
    fn stored(&self) -> u64 {
        self.announced()
    }

    /// Moves to the next block. Blocks should have about 64 KB; an empty one is the end.
    ///
    /// # Errors
    /// When the next block cannot be read.
    fn advance(&mut self) -> io::Result<()>;
}

/// All bytes at once.
impl ByteSource for &[u8] {
    fn block(&self) -> &[u8] {
        self
    }

    fn advance(&mut self) -> io::Result<()> {
        *self = &[];
        Ok(())
    }
}

/// A buffer grows by at most this much for bytes that have not arrived.
const ROOM_STEP_BYTES: usize = 1 << 20;

/// Reads the bytes of a source in order.
#[derive(Debug)]
pub struct ByteInput<S> {
    source: S,
    /// How much of the block has been read.
    at: usize,
    /// How many bytes the earlier blocks had.
    before: u64,
    /// The checksum of the earlier blocks.
    checksum: Option<Crc64>,
    copy: Option<Copy>,
}

/// The bytes that [`ByteInput::copied`] has read.
#[derive(Debug)]
struct Copy {
    bytes: Vec<u8>,
    /// The first byte of the block that is not copied yet.
    from: usize,
}

impl<S: ByteSource> ByteInput<S> {
    /// Reads from the beginning of the source's block.
    pub fn new(source: S) -> Self {
        Self { source, at: 0, before: 0, checksum: None, copy: None }
    }

    /// Reads from the beginning of the source's block, and computes the checksum of all bytes read.
    pub fn with_checksum(source: S) -> Self {
        Self { checksum: Some(Crc64::new()), ..Self::new(source) }
    }

    /// How many bytes have been read.
    pub fn offset(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The checksum of the bytes read, if it is computed.
    pub fn checksum(&self) -> Option<u64> {
        let mut checksum = self.checksum.clone()?;
        checksum.update(&self.source.block()[..self.at]);
        Some(checksum.value())
    }

    /// The source, and how much of its block has been read.
    pub fn into_source(self) -> (S, usize) {
        (self.source, self.at)
    }

    /// The unread bytes of the block.
    #[inline]
    pub fn rest(&self) -> &[u8] {
        &self.source.block()[self.at..]
    }

    /// How many elements to allocate memory for when `len` are announced, each of at least so many
    /// bytes: those whose bytes have arrived or are stored.
    pub fn room_for(&self, len: u64, element_bytes_min: u64) -> usize {
        let bytes = (self.rest().len() as u64).saturating_add(self.source.stored());
        usize::try_from(len.min(bytes / element_bytes_min)).unwrap_or(0)
    }

    /// Whether there are no more bytes.
    ///
    /// # Errors
    /// When the source fails.
    pub fn is_at_end(&mut self) -> Result<bool, Error> {
        if self.rest().is_empty() {
            self.next_block()?;
        }
        Ok(self.rest().is_empty())
    }

    #[cold]
    fn next_block(&mut self) -> Result<(), Error> {
        let block = self.source.block();
        self.before += block.len() as u64;
        if let Some(checksum) = &mut self.checksum {
            checksum.update(block);
        }
        if let Some(copy) = &mut self.copy {
            copy.bytes.extend_from_slice(&block[copy.from..]);
            copy.from = 0;
        }
        self.at = 0;
        self.source.advance()?;
        Ok(())
    }

    /// Appends to `out` the bytes that `read` reads.
    ///
    /// # Errors
    /// Those of `read`; `out` has the bytes up to the error then.
    pub fn copied(
        &mut self,
        out: &mut Vec<u8>,
        read: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.copy = Some(Copy { bytes: std::mem::take(out), from: self.at });
        let result = read(self);
        if let Some(copy) = self.copy.take() {
            *out = copy.bytes;
            out.extend_from_slice(&self.source.block()[copy.from..self.at]);
        }
        result
    }

    /// The next byte.
    ///
    /// # Errors
    /// At the end, and when the source fails.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Error> {
        if let Some(byte) = self.source.block().get(self.at) {
            self.at += 1;
            return Ok(*byte);
        }
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// The next bytes.
    ///
    /// # Errors
    /// At the end, and when the source fails.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        if let Some(array) = self.rest().first_chunk() {
            let array = *array;
            self.at += N;
            return Ok(array);
        }
        let mut array = [0; N];
        self.fill(&mut array)?;
        Ok(array)
    }

    #[cold]
    fn fill(&mut self, mut room: &mut [u8]) -> Result<(), Error> {
        while !room.is_empty() {
            if self.is_at_end()? {
                return Err(Error::End);
            }
            let rest = self.rest();
            let len = rest.len().min(room.len());
            room[..len].copy_from_slice(&rest[..len]);
            self.at += len;
            room = &mut room[len..];
        }
        Ok(())
    }

    /// The next `len` bytes, in the block or, if they are split between blocks, in `room`.
    ///
    /// # Errors
    /// At the end, and when the source fails.
    #[inline]
    pub fn bytes<'a>(&'a mut self, len: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        if self.rest().len() >= len {
            let start = self.at;
            self.at += len;
            return Ok(&self.source.block()[start..self.at]);
        }
        room.clear();
        self.append(len, room)?;
        Ok(room)
    }

    /// Appends the next `len` bytes to `out`.
    ///
    /// # Errors
    /// At the end, and when the source fails. Some of the bytes may have been appended.
    pub fn append(&mut self, len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let announced = self.source.announced();
        if announced > 0 && len as u64 > announced.saturating_add(self.rest().len() as u64) {
            return Err(Error::End);
        }
        let mut left = len;
        while left > 0 {
            if self.is_at_end()? {
                return Err(Error::End);
            }
            let rest = self.rest();
            let piece = rest.len().min(left);
            if out.capacity() - out.len() < piece {
                // At most double what has arrived.
                let more = left.min((len - left).max(ROOM_STEP_BYTES)).max(piece);
                out.reserve_exact(more);
            }
            out.extend_from_slice(&rest[..piece]);
            self.at += piece;
            left -= piece;
        }
        Ok(())
    }

    /// Skips the next `len` bytes.
    ///
    /// # Errors
    /// At the end, and when the source fails.
    pub fn skip(&mut self, len: u64) -> Result<(), Error> {
        let mut left = len;
        while left > 0 {
            if self.is_at_end()? {
                return Err(Error::End);
            }
            let piece = (self.rest().len() as u64).min(left);
            // The cast is of at most the length of the block.
            self.at += piece as usize;
            left -= piece;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use crate::crc64;

    /// Provides bytes in blocks of one length.
    pub(crate) struct Blocks<'a>(std::slice::Chunks<'a, u8>, &'a [u8]);

    impl<'a> Blocks<'a> {
        pub(crate) fn new(bytes: &'a [u8], block_bytes: usize) -> Self {
            Self(bytes.chunks(block_bytes), &[])
        }
    }

    impl ByteSource for Blocks<'_> {
        fn block(&self) -> &[u8] {
            self.1
        }

        fn advance(&mut self) -> io::Result<()> {
            self.1 = self.0.next().unwrap_or_default();
            Ok(())
        }
    }

    #[test]
    fn reading_does_not_depend_on_the_length_of_blocks() {
        let bytes: Vec<u8> = (0..=255).collect();
        for block_bytes in [1, 2, 3, 7, 64, 255, 256, 1000] {
            let mut input = ByteInput::with_checksum(Blocks::new(&bytes, block_bytes));
            let mut room = Vec::new();
            assert_eq!(input.byte().unwrap(), 0);
            assert_eq!(input.array::<5>().unwrap(), [1, 2, 3, 4, 5]);
            assert_eq!(input.bytes(30, &mut room).unwrap(), &bytes[6..36]);
            let mut copy = b"<".to_vec();
            let read = |input: &mut ByteInput<_>| {
                input.byte()?;
                input.skip(63)
            };
            input.copied(&mut copy, read).unwrap();
            assert_eq!(copy[1..], bytes[36..100]);
            assert_eq!(input.offset(), 100);
            assert_eq!(input.checksum(), Some(crc64::checksum(&bytes[..100])));
            let mut out = vec![7];
            input.append(156, &mut out).unwrap();
            assert_eq!(out[1..], bytes[100..]);
            assert!(input.is_at_end().unwrap());
            assert_eq!(input.checksum(), Some(crc64::checksum(&bytes)));
            assert!(matches!(input.byte(), Err(Error::End)));
            assert!(matches!(input.array::<2>(), Err(Error::End)));
            assert!(matches!(input.bytes(1, &mut room), Err(Error::End)));
            assert!(matches!(input.skip(1), Err(Error::End)));
        }
    }

    #[test]
    fn memory_is_taken_for_bytes_that_have_arrived() {
        let bytes = [1; 3000];
        let mut input = ByteInput::new(Blocks::new(&bytes, 1000));
        let mut room = Vec::new();
        assert!(matches!(input.bytes(3 << 30, &mut room), Err(Error::End)));
        assert!(room.capacity() <= 2 * ROOM_STEP_BYTES, "{} bytes", room.capacity());
        assert_eq!(room.len(), 3000);
    }
}
