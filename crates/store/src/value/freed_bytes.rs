//! The memory that dropping a value or a table frees, about.

use std::sync::Arc;

use ds::table::Table;

use super::stored::Object;

/// The approximate number of bytes that dropping a table frees, from so many of its records.
pub(crate) fn table_bytes(table: &Table<Object>, records_measured: usize) -> usize {
    let sizes = table.iter().take(records_measured);
    let sizes = sizes.map(|record| record.allocated_bytes() + record.object().map_or(0, bytes_of));
    let (records, bytes) = sizes.fold((0, 0), |(n, sum), size| (n + 1, sum + size));
    let slots = table.slots_len() * size_of::<u64>();
    slots + (bytes / records.max(1)).saturating_mul(table.len())
}

/// The approximate number of bytes that dropping a value frees.
pub(crate) fn bytes_of(object: &Object) -> usize {
    match object {
        Object::String(text) if Arc::strong_count(text) > 1 => 0,
        object => object.memory_bytes(),
    }
}
