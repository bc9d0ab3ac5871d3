//! Values of modules, which can be skipped but not decoded.
//!
//! ```text
//! id        length: a ModuleId
//! value     part ... │ 0
//! part      1 or 2, number │ 3, float │ 4, double │ 5, string
//! number    in the form of a length
//! ```

use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

const END: u64 = 0;
const SIGNED: u64 = 1;
pub(crate) const UNSIGNED: u64 = 2;
const FLOAT: u64 = 3;
const DOUBLE: u64 = 4;
const STRING: u64 = 5;

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
