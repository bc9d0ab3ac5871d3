//! Where a command must run.

/// It must.
pub const MAIN: u8 = 1;
/// It is more than a command on one key.
pub const NOT_SIMPLE: u8 = 1 << 1;
/// It is a command.
pub const ANY: u8 = 1 << 2;
