//! LZF, the compression of strings in RDB files (Marc Lehmann, LibLZF,
//! <http://oldhome.schmorp.de/marc/liblzf.html>).
//!
//! ```text
//! 000LLLLL  literals            L+1 bytes follow, 1 to 32
//! LLLooooo oooooooo             copy L+2 bytes, 3 to 8, from o+1 bytes back
//! 111ooooo LLLLLLLL oooooooo    copy L+9 bytes, 9 to 264, from o+1 bytes back
//! ```
//!
//! The length of the decompressed bytes is stored outside of the format. Matches are found as in
//! LibLZF, so files are as long as those of Redis.

mod compress;

pub(crate) use compress::Compressed;
pub use compress::Compressor;

use crate::Error;

const LITERALS_MAX: usize = 1 << 5;
const DISTANCE_MAX: usize = 1 << 13;
const COPY_BYTES_MIN: usize = 3;
const COPY_BYTES_MAX: usize = 264;
/// The shortest copy that has a byte for its length.
const LONG_COPY_BYTES_MIN: usize = 9;
/// The bytes of the code for a long copy.
const LONG_COPY_CODE_BYTES: usize = 3;

/// Decompresses `input` to `len` bytes, which it appends to `out`.
///
/// A byte of `input` produces at most 88 bytes. A length beyond that is refused before memory is
/// taken for it.
///
/// # Errors
/// When `input` is not LZF or has another length.
pub fn decompress(input: &[u8], len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    const CORRUPT: Error = Error::Corrupt("LZF");
    if len / COPY_BYTES_MAX > input.len() / LONG_COPY_CODE_BYTES {
        return Err(Error::Corrupt("the length of compressed bytes"));
    }
    let start = out.len();
    out.reserve_exact(len);
    let mut rest = input;
    while let Some((code, after)) = rest.split_first() {
        let code = usize::from(*code);
        rest = after;
        if code < LITERALS_MAX {
            let (literals, after) = rest.split_at_checked(code + 1).ok_or(CORRUPT)?;
            if out.len() - start + literals.len() > len {
                return Err(CORRUPT);
            }
            out.extend_from_slice(literals);
            rest = after;
            continue;
        }
        let mut bytes = (code >> 5) + 2;
        if bytes == LONG_COPY_BYTES_MIN {
            let (more, after) = rest.split_first().ok_or(CORRUPT)?;
            bytes += usize::from(*more);
            rest = after;
        }
        let (low, after) = rest.split_first().ok_or(CORRUPT)?;
        rest = after;
        let distance = ((code & 0x1f) << 8 | usize::from(*low)) + 1;
        let done = out.len() - start;
        if distance > done || done + bytes > len {
            return Err(CORRUPT);
        }
        copy_back(out, distance, bytes);
    }
    if out.len() - start == len { Ok(()) } else { Err(CORRUPT) }
}

/// Appends `bytes` bytes from `distance` back. The two ranges may overlap.
fn copy_back(out: &mut Vec<u8>, distance: usize, bytes: usize) {
    let mut left = bytes;
    let from = out.len() - distance;
    while left > 0 {
        // Each round doubles the bytes that can be copied at once.
        let piece = left.min(out.len() - from);
        out.extend_from_within(from..from + piece);
        left -= piece;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::random::Random;

    use super::*;

    fn restored(input: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        decompress(input, len, &mut out).ok().map(|()| out.split_off(6))
    }

    #[test]
    fn each_code_is_decompressed() {
        assert_eq!(restored(b"", 0).unwrap(), b"");
        assert_eq!(restored(b"\x02abc", 3).unwrap(), b"abc");
        // Copies of 3 and of 8 bytes, and one of 9 whose length has its own byte.
        assert_eq!(restored(b"\x03abcd\x20\x03", 7).unwrap(), b"abcdabc");
        assert_eq!(restored(b"\x00a\xc0\x00", 9).unwrap(), b"aaaaaaaaa");
        assert_eq!(restored(b"\x01ab\xe0\x00\x01", 11).unwrap(), b"abababababa");
        let faults: &[(&[u8], usize)] = &[
            (b"", 1),
            (b"\x02ab", 3),
            (b"\x02abc", 2),
            (b"\x02abc", 4),
            (b"\x00a\x20\x01", 4),
            (b"\x20\x00", 3),
            (b"\x00a\xe0\x00", 10),
            (b"\x00a\xe0", 10),
            (b"\x00a\x20", 4),
            (b"\x00a\xc0\x00", 8),
            (b"\x00a", usize::MAX),
        ];
        for (input, len) in faults {
            assert_eq!(restored(input, *len), None, "{input:?} {len}");
        }
    }

    #[test]
    fn a_length_that_no_code_reaches_takes_no_memory() {
        let mut out = Vec::new();
        assert!(decompress(&[0; 300], 300 * 88 + COPY_BYTES_MAX, &mut out).is_err());
        assert_eq!(out.capacity(), 0);
    }

    #[test]
    fn damaged_codes_are_refused_or_restored_to_their_length() {
        let (mut random, mut compressor) = (Random::new(2), Compressor::new());
        let (mut refused, mut restored_whole) = (0, 0);
        for _ in 0..20_000 {
            let len = 30 + random.below(300) as usize;
            let text: Vec<u8> = (0..len).map(|at| b"abcdefgh"[at * at % 7 % 5]).collect();
            let Some(Compressed::Bytes(codes)) = compressor.compress(&text) else { continue };
            assert_eq!(restored(codes, len).as_ref(), Some(&text));
            let mut damaged = codes.to_vec();
            let at = random.below(damaged.len() as u64) as usize;
            match random.below(4) {
                0 => damaged.truncate(at),
                1 => damaged.insert(at, random.next_u64() as u8),
                _ => damaged[at] = random.next_u64() as u8,
            }
            match restored(&damaged, len) {
                Some(out) => restored_whole += usize::from(out.len() == len),
                None => refused += 1,
            }
        }
        assert!(refused > 2000 && restored_whole > 2000, "{refused} and {restored_whole}");
    }

    #[test]
    fn random_bytes_are_refused_or_restored_to_their_length() {
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let input: Vec<u8> = (0..random.below(40)).map(|_| random.next_u64() as u8).collect();
            let len = random.below(200) as usize;
            if let Some(out) = restored(&input, len) {
                assert_eq!(out.len(), len);
            }
        }
    }
}
