//! Layer 1: containers. Only this crate and `sys` may contain unsafe code.
//!
//! There are no commands, replies, databases or clocks here: a record has a key, an expiry and a
//! payload, and a table finds records by hash.

pub mod bits;
pub mod btree;
pub mod dict;
pub mod hll;
pub mod intset;
pub mod list;
pub mod packed;
pub mod ranked;
pub mod record;
pub mod sorted_set;
pub mod stream;
pub mod table;
pub mod walk;

pub use dict::{Dict, Nothing};
pub use intset::IntSet;
pub use list::List;
pub use packed::{Packed, PackedMut};
pub use record::{Payload, Record, RecordRef};
pub use sorted_set::SortedSet;
pub use stream::Stream;
pub use table::{RecordMut, Table};
