//! The RDB format.
//!
//! A value is a type byte and what the type says; a file is a header, values with their keys, and
//! opcodes between them. Numbers are little-endian except in lengths; see [`length`] and
//! [`string`] for what everything is made of.

pub mod decode;
pub mod encode;
pub mod length;
mod opcode;
pub mod reader;
pub mod string;
mod types;
pub mod writer;

pub use decode::Decoder;
pub use encode::Encoder;
pub(crate) use opcode::END;
pub(crate) use reader::CHECKSUM_VERSION_MIN;
pub use reader::{Item, Reader};
pub use types::ValueType;
pub use writer::Writer;

/// The highest version that is written: that of Redis 7.4 to 8.0, which has hashes whose fields
/// expire.
pub const VERSION: u16 = 12;
/// The version of files without such hashes: that of Redis 7.2, the last one that Redis and Valkey
/// share. Valkey refuses those from 12 to 79.
pub const SHARED_VERSION: u16 = 11;
