//! The settings of `cjson` for values that JSON and Lua do not share.

/// The nesting limit, whatever the settings: about the depth that fits on the stack of Redis's Lua.
pub const NESTING_MAX: u32 = 2600;

/// The treatment of numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidNumbers {
    /// They are errors.
    Off,
    /// They are written as C prints them.
    On,
    /// They are written as null.
    Null,
}

/// The settings of `cjson`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonConfig {
    /// Whether a sparse array becomes an object instead of an error.
    pub sparse_convert: bool,
    /// An array is sparse if its length exceeds this many times its elements; 0 for never.
    pub sparse_ratio: u32,
    /// Arrays up to this length are never sparse.
    pub sparse_safe: u32,
    /// Levels that `encode` writes.
    pub encode_max_depth: u32,
    /// Levels that `decode` reads.
    pub decode_max_depth: u32,
    /// Significant digits of numbers.
    pub number_precision: u32,
    /// Has no effect: there is no buffer to keep.
    pub keep_buffer: bool,
    /// Numbers that JSON does not have, in `encode`.
    pub encode_invalid_numbers: InvalidNumbers,
    /// Whether `decode` accepts such numbers.
    pub decode_invalid_numbers: bool,
}

impl Default for JsonConfig {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1000,
            decode_max_depth: 1000,
            number_precision: 14,
            keep_buffer: true,
            encode_invalid_numbers: InvalidNumbers::Off,
            decode_invalid_numbers: true,
        }
    }
}
