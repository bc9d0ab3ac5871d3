//! Layer 3: the formats in which data leaves the process and comes back.
//!
//! Bytes come from a [`Source`] and go to a [`Sink`], or to files of a [`Disk`](disk::Disk): this
//! crate opens no file and no socket itself, reads no clock, and knows no command but those that
//! frame a transaction. Whatever the bytes are, reading them ends in values or in an
//! [`Error`], never in a panic, and takes memory only for bytes that have arrived.
#![forbid(unsafe_code)]

pub mod aof;
pub mod check;
pub mod crc64;
pub mod disk;
mod error;
pub mod lzf;
pub mod payload;
pub mod rdb;
mod sink;
mod source;

pub use error::Error;
pub use sink::{ByteCount, Sink};
pub use source::{Input, Source};
