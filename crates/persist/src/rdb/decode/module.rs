//! Values of modules, which can be skipped but not decoded.
//!
//! ```text
//! id        length: 9 letters of 6 bits, 10 bits of version
//! value     part ... │ 0
//! part      1 or 2, number │ 3, float │ 4, double │ 5, string
//! number    in the form of a length
//! ```

use crate::error::MODULE_NAME_BYTES;
use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

const END: u64 = 0;
const SIGNED: u64 = 1;
pub(crate) const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LETTER_BITS: u32 = 6;

/// The name in the identifier of a module's type.
pub fn name(id: u64) -> [u8; MODULE_NAME_BYTES] {
    std::array::from_fn(|at| {
        // The first letter is in the upper bits.
        let letter = id >> (64 - LETTER_BITS * (at as u32 + 1)) & 0x3f;
        LETTERS[letter as usize]
    })
}

/// Skips the parts of a value, after the identifier of its module.
///
/// # Errors
/// When the input fails or a part is unknown.
pub fn skip<S: ByteSource>(input: &mut ByteInput<S>) -> Result<(), Error> {
    loop {
        match length::read(input)? {
            END => return Ok(()),
            SIGNED | UNSIGNED => length::read(input).map(|_| ())?,
            FLOAT => input.skip(4)?,
            DOUBLE => input.skip(8)?,
            STRING => string::skip(input)?,
            _ => return Err(Error::Corrupt("a part of a module's value")),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_upper_bits_of_the_identifier() {
        // The example of the documentation: "test-type" and encoding version 3.
        let id = b"test-type".iter().fold(0u64, |id, letter| {
            id << LETTER_BITS | LETTERS.iter().position(|own| own == letter).unwrap() as u64
        });
        assert_eq!(&name(id << 10 | 3), b"test-type");
    }

    #[test]
    fn each_part_is_skipped() {
        let parts = b"\x01\x05\x02\x40\xff\x03abcd\x04abcdefgh\x05\x03abc\x00rest";
        let mut input = ByteInput::new(&parts[..]);
        skip(&mut input).unwrap();
        assert_eq!(input.rest(), b"rest");
        assert!(skip(&mut ByteInput::new(&b"\x06"[..])).is_err());
        for len in 0..parts.len() - 4 {
            assert!(skip(&mut ByteInput::new(&parts[..len])).is_err());
        }
    }
}
