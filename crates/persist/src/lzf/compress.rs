//! Finds bytes that can be copied from earlier ones.
//!
//! A table has, for a hash of three bytes, the position where they were last seen. Positions
//! continue from one input to the next, so the positions of earlier inputs are too far back to be
//! used, and the table, which is larger than most inputs, is not cleared.

use super::{COPY_BYTES_MAX, COPY_BYTES_MIN, DISTANCE_MAX, LITERALS_MAX, LONG_COPY_BYTES_MIN};
use crate::ByteSink;
use crate::sink::ByteCount;

const HASH_BITS: u32 = 16;
/// The last bytes of an input are literals.
const TAIL_BYTES: usize = 2;
/// Bytes that compression shortens by less are stored uncompressed.
const SAVED_BYTES_MIN: usize = 4;
/// Inputs up to this length are compressed once, in memory. Longer ones are compressed twice, to
/// count and to write, which bounds the memory.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Compresses one input after another, with a table of 256 KB.
pub struct Compressor {
    /// The position where three bytes with this hash were last seen.
    table: Box<[u32]>,
    /// The position of the input's first byte.
    base: u32,
    /// The position of the next input's first byte.
    next_base: u32,
    /// The last compressed bytes.
    out: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Default for Compressor {
    fn default() -> Self {
        Self::new()
    }
}

/// Compressed bytes.
pub(crate) enum Compressed<'a> {
    /// The bytes.
    Bytes(&'a [u8]),
    /// Their number; [`Compressor::write`] compresses again.
    Len(usize),
}

/// Writes the codes of one input.
struct Codes<'a, S: ByteSink> {
    out: &'a mut S,
    input: &'a [u8],
    /// The first literal that is not written yet.
    literals_at: usize,
    /// How many bytes were written.
    written: usize,
    /// How many bytes may be written.
    len_max: usize,
}

impl<S: ByteSink> Codes<'_, S> {
    /// The length after the literals up to `at` and the first byte of the next code.
    fn len_at(&self, at: usize) -> usize {
        self.written + 1 + (at - self.literals_at)
    }

    /// Writes the literals up to `at`.
    fn end_literals(&mut self, at: usize) -> Result<(), S::Error> {
        let literals = &self.input[self.literals_at..at];
        if !literals.is_empty() {
            // At most 32.
            self.out.put(&[literals.len() as u8 - 1])?;
            self.out.put(literals)?;
            self.written += 1 + literals.len();
            self.literals_at = at;
        }
        Ok(())
    }

    /// Takes the byte at `at` as a literal.
    #[inline]
    fn literal(&mut self, at: usize) -> Result<(), S::Error> {
        if at + 1 - self.literals_at == LITERALS_MAX {
            self.end_literals(at + 1)?;
        }
        Ok(())
    }

    /// Writes a copy of the bytes from `at` on.
    fn copy(&mut self, at: usize, bytes: usize, distance: usize) -> Result<(), S::Error> {
        let offset = distance - 1;
        // 5 bits of the offset, which has 13.
        let (high, low) = ((offset >> 8) as u8, offset as u8);
        let code = if bytes < LONG_COPY_BYTES_MIN {
            &[((bytes - 2) as u8) << 5 | high, low][..]
        } else {
            // At most 255.
            &[7 << 5 | high, (bytes - LONG_COPY_BYTES_MIN) as u8, low]
        };
        self.out.put(code)?;
        self.written += code.len();
        self.literals_at = at + bytes;
        Ok(())
    }
}

impl Compressor {
    /// A compressor with an empty table.
    pub fn new() -> Self {
        let table = vec![0; 1 << HASH_BITS].into_boxed_slice();
        Self { table, base: 1, next_base: 1, out: Vec::new() }
    }

    /// Compresses bytes. `None` unless the result is at least 4 bytes shorter.
    pub(crate) fn compress(&mut self, input: &[u8]) -> Option<Compressed<'_>> {
        if input.len() > KEPT_BYTES_MAX {
            return self
                .compress_to(input, &mut ByteCount(0))
                .unwrap_or_default()
                .map(Compressed::Len);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let len = self.compress_to(input, &mut out).unwrap_or_default();
        self.out = out;
        len.map(|_| Compressed::Bytes(&self.out))
    }

    /// Writes the compressed form of bytes for which [`compress`](Self::compress) returned a
    /// length.
    pub(crate) fn write<S: ByteSink>(&mut self, input: &[u8], out: &mut S) -> Result<(), S::Error> {
        self.compress_to(input, out).map(|_| ())
    }

    /// Writes codes up to the end of the input, and returns their length. `None` as soon as the
    /// result is not short enough.
    fn compress_to<S: ByteSink>(
        &mut self,
        input: &[u8],
        out: &mut S,
    ) -> Result<Option<usize>, S::Error> {
        let len_max = input.len().saturating_sub(SAVED_BYTES_MIN);
        if len_max == 0 {
            return Ok(None);
        }
        self.begin(input);
        let mut codes = Codes { out, input, literals_at: 0, written: 0, len_max };
        let mut at = 0;
        while at + TAIL_BYTES < input.len() {
            match self.find(input, at) {
                Some(distance) => {
                    // The literals' code byte is not needed when there are none.
                    let unused = usize::from(codes.literals_at == at);
                    if codes.len_at(at) - unused + 4 >= codes.len_max {
                        return Ok(None);
                    }
                    codes.end_literals(at)?;
                    let bytes = copy_len(input, at, distance);
                    codes.copy(at, bytes, distance)?;
                    at += bytes;
                    if at + TAIL_BYTES < input.len() {
                        self.remember(input, at - 2);
                        self.remember(input, at - 1);
                    }
                }
                None => {
                    if codes.len_at(at) >= codes.len_max {
                        return Ok(None);
                    }
                    codes.literal(at)?;
                    at += 1;
                }
            }
        }
        if codes.len_at(at) + 3 > codes.len_max {
            return Ok(None);
        }
        for at in at..input.len() {
            codes.literal(at)?;
        }
        codes.end_literals(input.len())?;
        Ok(Some(codes.written))
    }

    /// Assigns positions after those of the last input.
    fn begin(&mut self, input: &[u8]) {
        // A string is below 4 GiB. A longer input would only find fewer copies.
        let len = u32::try_from(input.len()).unwrap_or(u32::MAX - 1);
        self.base = self.next_base;
        if self.base.checked_add(len).is_none() {
            self.table.fill(0);
            self.base = 1;
        }
        self.next_base = self.base + len;
    }

    /// How far back the three bytes at `at` were last seen, if that is near enough and not the
    /// first byte of the input. Remembers their position.
    #[inline]
    fn find(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let bytes = *input[at..].first_chunk::<COPY_BYTES_MIN>()?;
        let position = self.base.wrapping_add(at as u32);
        let slot = &mut self.table[index_of(bytes)];
        let distance = position.wrapping_sub(std::mem::replace(slot, position)) as usize;
        if distance > DISTANCE_MAX || distance >= at {
            return None;
        }
        (input[at - distance..].first_chunk() == Some(&bytes)).then_some(distance)
    }

    #[inline]
    fn remember(&mut self, input: &[u8], at: usize) {
        if let Some(bytes) = input[at..].first_chunk() {
            self.table[index_of(*bytes)] = self.base.wrapping_add(at as u32);
        }
    }
}

/// The index of three bytes in the table, by LibLZF's hash.
#[inline]
fn index_of([first, second, third]: [u8; COPY_BYTES_MIN]) -> usize {
    let hash = u32::from_be_bytes([0, first, second, third]);
    ((hash >> (24 - HASH_BITS)).wrapping_sub(hash.wrapping_mul(5)) & ((1 << HASH_BITS) - 1))
        as usize
}

/// How many bytes from `at` on can be copied. As in LibLZF, a copy ends before the last two bytes
/// of the input, except that the first bytes, 3 or 19, are compared without that limit.
#[inline]
fn copy_len(input: &[u8], at: usize, distance: usize) -> usize {
    const UNCHECKED_BYTES: usize = 16;
    let left = (input.len() - at - TAIL_BYTES).min(COPY_BYTES_MAX);
    let least =
        if left > UNCHECKED_BYTES { COPY_BYTES_MIN + UNCHECKED_BYTES } else { COPY_BYTES_MIN };
    let len_max = left.max(least).min(input.len() - at);
    let (old, new) = (&input[at - distance..], &input[at..at + len_max]);
    let same = old.iter().zip(new).skip(COPY_BYTES_MIN).take_while(|(old, new)| old == new);
    COPY_BYTES_MIN + same.count()
}
