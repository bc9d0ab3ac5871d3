//! The loads whose memory is measured per element, one for each form of a collection.
//!
//! Every load stores the same number of elements, so that figures compare. Sizes belong to the
//! loads: the cost of a hash of ten fields says little without the size of its values.

use super::memory::MemoryFigure;
use crate::load::shape::RequestShape;

/// A load of elements.
#[derive(Debug, PartialEq, Eq)]
pub struct ElementLoad {
    /// The name of one element, for the table.
    pub about: &'static str,
    /// The figure's name in JSON.
    pub key: &'static str,
    /// The command that stores some of them, in the notation of `load::workload::table`.
    pub fill: &'static str,
    /// How many elements a request stores.
    pub per_request: u64,
    /// Bytes of each name that the fill makes with `{key}`.
    key_bytes: usize,
}

impl ElementLoad {
    /// The shape with which the fill stores this many elements.
    pub fn shape(&self, elements: u64) -> RequestShape {
        let keys = (elements / self.per_request).max(1);
        RequestShape { keys, key_bytes: self.key_bytes, value_bytes: 32, ..RequestShape::default() }
    }
}

const SMALL_HASHES: &str = "HSET {key} field0 {value} field1 {value} field2 {value} \
     field3 {value} field4 {value} field5 {value} field6 {value} field7 {value} field8 {value} \
     field9 {value}";

/// The load of a figure, if it counts elements.
pub fn of(figure: MemoryFigure) -> Option<ElementLoad> {
    use MemoryFigure as Figure;
    let (about, key, fill) = match figure {
        Figure::Integers => {
            ("integer, 16 B key", "bytes_per_integer", "SET {key} {100000000..999999999}")
        }
        Figure::SmallHashes => {
            ("field of hashes of 10, 32 B values", "bytes_per_small_hash_field", SMALL_HASHES)
        }
        Figure::BigHash => {
            ("field of one hash, 12 + 32 B", "bytes_per_big_hash_field", "HSET hash {key} {value}")
        }
        Figure::BigSortedSet => (
            "member of one sorted set, 16 B",
            "bytes_per_big_sorted_set_member",
            "ZADD sorted-set {100000..999999} {key}",
        ),
        Figure::List => {
            ("element of one list, 32 B", "bytes_per_list_element", "RPUSH list {value}")
        }
        Figure::SmallSets => (
            "member of sets of 10, 2 B",
            "bytes_per_small_set_member",
            "SADD {key} m0 m1 m2 m3 m4 m5 m6 m7 m8 m9",
        ),
        Figure::BigSet => ("member of one set, 16 B", "bytes_per_big_set_member", "SADD set {key}"),
        Figure::Stream => (
            "entry of one stream, 2 short fields",
            "bytes_per_stream_entry",
            "XADD stream * a {10..99} b {10..99}",
        ),
        Figure::Keys | Figure::ExpiringKeys => return None,
        Figure::Connections | Figure::Churn | Figure::Idle => return None,
    };
    let is_small = matches!(figure, Figure::SmallHashes | Figure::SmallSets);
    let per_request = if is_small { 10 } else { 1 };
    let key_bytes = if figure == Figure::BigHash { 12 } else { 16 };
    Some(ElementLoad { about, key, fill, per_request, key_bytes })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::load::template::Template;

    #[test]
    fn every_fill_compiles_and_its_requests_hold_all_elements() {
        let rows: Vec<_> =
            MemoryFigure::value_variants().iter().filter_map(|figure| of(*figure)).collect();
        assert_eq!(rows.len(), 8);
        for row in rows {
            let shape = row.shape(1_000_000);
            assert_eq!(shape.keys * row.per_request, 1_000_000, "{}", row.about);
            Template::compile(row.fill, &shape).unwrap();
        }
    }
}
