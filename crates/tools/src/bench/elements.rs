//! The loads whose memory is measured per element, one for each form of a collection.
//!
//! Every load stores the same number of elements, so that figures compare. Sizes belong to the
//! loads: the cost of a hash of ten fields says little without the size of its values.

use crate::load::shape::RequestShape;
#[derive(Debug, PartialEq, Eq)]
pub struct ElementLoad {
    /// The name of one element, for the table.
    pub about: &'static str,
    /// The figure's name in JSON.
    pub key: &'static str,
    /// The command that stores some of them, in the notation of `load::workload::table`.
    pub fill: &'static str,
    pub per_request: u64,
    /// Bytes of each name that the fill makes with `{key}`.
    key_bytes: usize,
    /// Bytes of each value.
    value_bytes: usize,
}

impl ElementLoad {
    const fn new(about: &'static str, key: &'static str, fill: &'static str) -> Self {
        Self { about, key, fill, per_request: 1, key_bytes: 16, value_bytes: 32 }
    }

    const fn per_request(self, per_request: u64) -> Self {
        Self { per_request, ..self }
    }

    const fn key_bytes(self, key_bytes: usize) -> Self {
        Self { key_bytes, ..self }
    }

    /// The shape with which the fill stores this many elements.
    pub fn shape(&self, elements: u64) -> RequestShape {
        let keys = (elements / self.per_request).max(1);
        RequestShape {
            keys,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            ..RequestShape::default()
        }
    }
}
pub const INTEGERS: ElementLoad =
    ElementLoad::new("integer, 16 B key", "bytes_per_integer", "SET {key} {100000000..999999999}");
pub const SMALL_HASHES: ElementLoad = ElementLoad::new(
    "field of hashes of 10, 32 B values",
    "bytes_per_small_hash_field",
    "HSET {key} field0 {value} field1 {value} field2 {value} field3 {value} field4 {value} \
     field5 {value} field6 {value} field7 {value} field8 {value} field9 {value}",
)
.per_request(10);
pub const BIG_HASH: ElementLoad = ElementLoad::new(
    "field of one hash, 12 + 32 B",
    "bytes_per_big_hash_field",
    "HSET hash {key} {value}",
)
.key_bytes(12);
pub const BIG_SORTED_SET: ElementLoad = ElementLoad::new(
    "member of one sorted set, 16 B",
    "bytes_per_big_sorted_set_member",
    "ZADD sorted-set {100000..999999} {key}",
);
pub const LIST: ElementLoad =
    ElementLoad::new("element of one list, 32 B", "bytes_per_list_element", "RPUSH list {value}");
pub const SMALL_SETS: ElementLoad = ElementLoad::new(
    "member of sets of 10, 2 B",
    "bytes_per_small_set_member",
    "SADD {key} m0 m1 m2 m3 m4 m5 m6 m7 m8 m9",
)
.per_request(10);
pub const BIG_SET: ElementLoad =
    ElementLoad::new("member of one set, 16 B", "bytes_per_big_set_member", "SADD set {key}");
pub const STREAM: ElementLoad = ElementLoad::new(
    "entry of one stream, 2 short fields",
    "bytes_per_stream_entry",
    "XADD stream * a {10..99} b {10..99}",
);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::load::template::Template;

    #[test]
    fn every_fill_compiles_and_its_requests_hold_all_elements() {
        for row in [
            &INTEGERS,
            &SMALL_HASHES,
            &BIG_HASH,
            &BIG_SORTED_SET,
            &LIST,
            &SMALL_SETS,
            &BIG_SET,
            &STREAM,
        ] {
            let shape = row.shape(1_000_000);
            assert_eq!(shape.keys * row.per_request, 1_000_000, "{}", row.about);
            Template::compile(row.fill, &shape).unwrap();
        }
    }
}
