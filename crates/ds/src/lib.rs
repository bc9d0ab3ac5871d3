//! Floor 1: containers. With `sys`, the only crate that may hold unsafe code.
//!
//! It knows nothing of commands, replies, databases or what an expiry is: a record has a key, a
//! stamp and a payload, a table finds records by hash.

pub mod bits;
pub mod hll;
pub mod packed;
pub mod record;
pub mod table;

pub use packed::{Packed, PackedMut};
pub use record::{Payload, Record, RecordRef};
pub use table::{RecordMut, Table};
