//! The RDB format.
//!
//! A value is a type byte and the bytes of that type. A file is a header, keys with their values,
//! and opcodes between them. Numbers are little-endian except in lengths. All values are made of
//! the parts in [`length`] and [`string`].

pub mod decode;
pub mod encode;
pub mod length;
mod opcode;
pub mod reader;
pub mod string;
mod types;
pub mod writer;

pub use decode::ValueDecoder;
pub use encode::ValueEncoder;
pub(crate) use opcode::END;
pub(crate) use reader::CHECKSUM_VERSION_MIN;
pub use reader::{RdbItem, RdbReader};
pub use types::ValueType;
pub use writer::RdbWriter;

/// The highest version that is written: that of Redis 7.4 to 8.0, with hashes whose fields expire.
pub const VERSION: u16 = 12;
/// The version of files without such hashes: that of Redis 7.2, the last one that Redis and Valkey
/// share. Valkey refuses versions 12 to 79.
pub const SHARED_VERSION: u16 = 11;
