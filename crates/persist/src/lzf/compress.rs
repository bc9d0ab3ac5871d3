//! Finding what can be copied.
//!
//! A table remembers, by a hash of three bytes, where they were last seen. Positions are counted on
//! from one input to the next, so that what the table has of earlier inputs lies too far back to
//! be taken and the table, which is larger than most inputs, is not cleared.

use super::{COPY_BYTES_MAX, COPY_BYTES_MIN, DISTANCE_MAX, LITERALS_MAX, LONG_COPY_BYTES_MIN};
use crate::Sink;
use crate::sink::ByteCount;

const HASH_BITS: u32 = 16;
/// Whatever has no copies keeps this many of its last bytes as literals.
const TAIL_BYTES: usize = 2;
/// What is saved at least; otherwise the bytes are stored as they are.
const SAVED_BYTES_MIN: usize = 4;
/// Compressed bytes up to this length are kept while they are counted; longer ones are found a
/// second time, so that memory stays bounded.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Compresses one input after another. It has a table of 256 KB.
pub struct Compressor {
    /// The counted position where three bytes with this hash were last seen.
    table: Box<[u32]>,
    /// The counted position of the input's first byte.
    base: u32,
    /// That of the next input's.
    next_base: u32,
    /// What was compressed last.
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
    /// How many they are; [`Compressor::write`] finds them again.
    Len(usize),
}

/// The codes of one input on their way out.
struct Codes<'a, S: Sink> {
    out: &'a mut S,
    input: &'a [u8],
    /// Where the literals begin that are not written yet.
    literals_at: usize,
    /// Bytes written.
    written: usize,
    /// How long they may become.
    len_max: usize,
}

impl<S: Sink> Codes<'_, S> {
    /// What is written when the literals up to `at` are, and one byte that begins the next code.
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
    /// A compressor that has seen nothing.
    pub fn new() -> Self {
        let table = vec![0; 1 << HASH_BITS].into_boxed_slice();
        Self { table, base: 1, next_base: 1, out: Vec::new() }
    }

    /// The compressed form of some bytes, when it is at least 4 bytes shorter.
    pub(crate) fn compress(&mut self, input: &[u8]) -> Option<Compressed<'_>> {
        if input.len() > KEPT_BYTES_MAX {
            return self.run(input, &mut ByteCount(0)).unwrap_or_default().map(Compressed::Len);
        }
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let len = self.run(input, &mut out).unwrap_or_default();
        self.out = out;
        len.map(|_| Compressed::Bytes(&self.out))
    }

    /// Writes the compressed form of bytes that have one.
    pub(crate) fn write<S: Sink>(&mut self, input: &[u8], out: &mut S) -> Result<(), S::Error> {
        self.run(input, out).map(|_| ())
    }

    /// Writes codes until the input ends or does not become short enough. Returns the length that
    /// was written if it does.
    fn run<S: Sink>(&mut self, input: &[u8], out: &mut S) -> Result<Option<usize>, S::Error> {
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

    /// Counts positions on behind those of the last input.
    fn begin(&mut self, input: &[u8]) {
        // A string is below 4 GiB; behind that fewer copies would be found.
        let len = u32::try_from(input.len()).unwrap_or(u32::MAX - 1);
        self.base = self.next_base;
        if self.base.checked_add(len).is_none() {
            self.table.fill(0);
            self.base = 1;
        }
        self.next_base = self.base + len;
    }

    /// How far back the three bytes at `at` were last seen, if that is near enough and not at the
    /// very beginning; they are remembered.
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

/// The place of three bytes in the table, by LibLZF's hash.
#[inline]
fn index_of([first, second, third]: [u8; COPY_BYTES_MIN]) -> usize {
    let hash = u32::from_be_bytes([0, first, second, third]);
    ((hash >> (24 - HASH_BITS)).wrapping_sub(hash.wrapping_mul(5)) & ((1 << HASH_BITS) - 1))
        as usize
}

/// How many bytes from `at` on can be copied. As in LibLZF a copy leaves the last two bytes of the
/// input, unless it would be very short, or ends within them after having been compared blindly
/// for 16 bytes.
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
