//! The identifier of a module's data, in 64 bits.
//!
//! ```text
//! 9 letters of 6 bits, the first one in the upper bits │ 10 bits of encoding version
//! ```

use std::fmt;

const NAME_BYTES: usize = 9;
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const LETTER_BITS: u32 = 6;
const VERSION_MASK: u64 = (1 << 10) - 1;

/// The type of a module's data; see this file's description.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleId(pub u64);

impl ModuleId {
    /// The name of the type, such as `ReJSON-RL`.
    pub fn name(self) -> [u8; NAME_BYTES] {
        std::array::from_fn(|at| {
            let letter = self.0 >> (64 - LETTER_BITS * (at as u32 + 1)) & 0x3f;
            LETTERS[letter as usize]
        })
    }

    /// The version of the encoding.
    pub fn version(self) -> u64 {
        self.0 & VERSION_MASK
    }
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name();
        let name = String::from_utf8_lossy(&name);
        write!(f, "'{name}' (encoding version {})", self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_in_the_upper_bits_and_the_version_in_the_lower_ones() {
        // The example of the documentation: "test-type" and encoding version 3.
        let bits = |letter| LETTERS.iter().position(|own| *own == letter).map_or(0, |at| at as u64);
        let id = b"test-type".iter().fold(0, |id, letter| id << LETTER_BITS | bits(*letter));
        let id = ModuleId(id << 10 | 3);
        assert_eq!((&id.name(), id.version()), (b"test-type", 3));
        assert_eq!(id.to_string(), "'test-type' (encoding version 3)");
    }
}
