//! The memory that dropping a value or a table frees, about.

use std::sync::Arc;

use ds::table::Table;

use super::stored::{Object, text_bytes};

/// Records of a shard that are measured to estimate the memory of a database that was emptied: few,
/// because all threads wait meanwhile, and there are many shards.
const EMPTIED_MEASURED: usize = 4;
/// Of a larger value only so many bytes are extrapolated: it says nothing of the others.
const EXTRAPOLATED_BYTES_MAX: usize = 64 << 10;

/// The approximate number of bytes of a table's records that a snapshot keeps after their database
/// was emptied, rather too few. `is_dropped` says whether the snapshot keeps a long string that is
/// shared, and the keyspace does not.
pub(crate) fn emptied_bytes(
    table: &Table<Object>,
    is_dropped: &dyn Fn(&Arc<Vec<u8>>) -> bool,
) -> usize {
    let bytes_of = |object: &Object| match object {
        Object::String(text) if is_dropped(text) => text_bytes(text),
        object => bytes_of(object),
    };
    let (mut measured, mut bytes, mut usual) = (0, 0, 0);
    for record in table.iter().take(EMPTIED_MEASURED) {
        let own = record.allocated_bytes() + record.object().map_or(0, bytes_of);
        measured += 1;
        bytes += own;
        usual += own.min(EXTRAPOLATED_BYTES_MAX);
    }
    let slots = table.slots_len() * size_of::<u64>();
    slots + bytes + usual / measured.max(1) * (table.len() - measured)
}

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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::hash::KeyHasher;
    use ds::record::{Payload, Record};

    use super::*;

    /// A thousand records, one of which may have a large value.
    fn table(large: Option<&[u8]>) -> Table<Object> {
        let hasher = KeyHasher::new(1);
        let mut table = Table::default();
        for number in 0..1000_u32 {
            let key = number.to_string();
            let key = key.as_bytes();
            let text = Object::String(Arc::new(vec![b'x'; 10 << 20]));
            let is_large = large == Some(key);
            let payload = if is_large { Payload::Object(text) } else { Payload::Bytes(b"value") };
            table.insert(hasher.hash(key), Record::new(key, 0, payload, None, 0), &hasher);
        }
        table
    }

    /// One large value says nothing of the other keys.
    #[test]
    fn a_large_value_is_not_extrapolated() {
        let first = table(None).iter().next().unwrap().key().to_vec();
        let bytes = emptied_bytes(&table(Some(&first)), &|_| false);
        let most = (10 << 20) + 1000 * (EXTRAPOLATED_BYTES_MAX / EMPTIED_MEASURED + 100);
        assert!((10 << 20..most).contains(&bytes), "{bytes}");
    }
}
