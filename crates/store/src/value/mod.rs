//! Values as records hold them, read-only: the kinds of value, and one view for each type.

pub(crate) mod field_table;
pub(crate) mod freed_bytes;
pub(crate) mod hash;
pub(crate) mod list;
pub(crate) mod packed_pairs;
pub(crate) mod ranges;
pub(crate) mod set;
pub(crate) mod sorted_set;
pub(crate) mod stored;
pub(crate) mod stream;
pub(crate) mod string;
