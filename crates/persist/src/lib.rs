//! Layer 3: the formats of RDB files, append-only files and DUMP payloads.
//!
//! Bytes come from a [`ByteSource`] and go to a [`ByteSink`], or to files of a
//! [`Disk`](disk::Disk). This crate opens no file and no socket itself, reads no clock, and knows
//! only the commands that frame a transaction. Reading any bytes ends in values or in an [`Error`],
//! never in a panic, and takes memory only for bytes that have arrived.
#![forbid(unsafe_code)]

pub mod aof;
pub mod check;
pub mod crc64;
pub mod disk;
mod error;
pub mod lzf;
mod module_id;
pub mod payload;
pub mod rdb;
mod rdb_magic;
mod sink;
mod source;

pub use error::Error;
pub use module_id::ModuleId;
pub use rdb_magic::{RDB_MAGIC_BYTES_MAX, has_rdb_magic};
pub use sink::{ByteCount, ByteSink};
pub use source::{ByteInput, ByteSource};
