//! Values are read back unchanged, and written again as the same bytes if their form has an order.

use std::collections::BTreeSet;

use persist::rdb::{ValueEncoder, ValueType};
use persist::{ByteCount, ByteInput};

use crate::file::Blocks;
use crate::samples::{Keyspace, contents};

#[test]
fn values_of_every_form_are_read_back() {
    let mut types = BTreeSet::new();
    for seed in 0..60 {
        let mut keyspace = Keyspace::new(seed);
        let mut encoder = ValueEncoder::new(seed % 3 > 0);
        for round in 0..60 {
            let name = keyspace.add(round % 6);
            let written = keyspace.write(&name, &mut encoder);
            let read = keyspace.read(&written);
            let read = read.unwrap_or_else(|e| panic!("seed {seed} round {round}: {e}"));
            let forms = [&name, &read].map(|name| keyspace.look(name, |value| value.encoding()));
            let (old, new) = (keyspace.look(&name, contents), keyspace.look(&read, contents));
            assert_eq!(old, new, "seed {seed} round {round} {:?}", written.value_type);
            // A value that was once large keeps its form until it is read back.
            let is_large = ["hashtable", "skiplist", "quicklist"].contains(&forms[0]);
            assert!(is_large || forms[0] == forms[1], "{forms:?}");
            let again = keyspace.write(&read, &mut encoder);
            let unordered = [ValueType::Set, ValueType::Hash, ValueType::HashExpiring];
            if forms[0] == forms[1] && !unordered.contains(&written.value_type) {
                assert_eq!(again, written);
            }
            types.insert(written.value_type.number());
        }
    }
    assert_eq!(types, BTreeSet::from([0, 2, 4, 5, 11, 16, 17, 18, 20, 21, 24, 25]));
}

#[test]
fn as_many_bytes_are_counted_as_written() {
    let mut keyspace = Keyspace::new(3);
    let mut encoder = ValueEncoder::new(true);
    for round in 0..120 {
        let name = keyspace.add(round % 6);
        let written = keyspace.write(&name, &mut encoder);
        let mut count = ByteCount::default();
        keyspace.look(&name, |stored| encoder.value(stored, &mut count).unwrap());
        assert_eq!(count.0, written.bytes.len() as u64);
    }
}

#[test]
fn reading_does_not_depend_on_the_length_of_blocks() {
    let mut keyspace = Keyspace::new(4);
    let mut encoder = ValueEncoder::new(true);
    for round in 0..120 {
        let name = keyspace.add(round % 6);
        let written = keyspace.write(&name, &mut encoder);
        for block_bytes in [1, 7, 100] {
            let blocks = Blocks(written.bytes.chunks(block_bytes), &[]);
            let mut input = ByteInput::new(blocks);
            let hasher = keyspace.turn.hasher;
            let mut decoder = persist::rdb::ValueDecoder::new(&keyspace.limits, hasher);
            let value = decoder.value(written.value_type, &mut input).unwrap();
            let record = value.record(b"again", None, 0);
            let key = keyspace.turn.key(b"again");
            keyspace.db.put_record(&mut keyspace.turn, key, record);
            assert!(input.is_at_end().unwrap());
            let (old, new) = (keyspace.look(&name, contents), keyspace.look(b"again", contents));
            assert_eq!(old, new);
        }
    }
}

#[test]
fn limits_decide_the_form_of_a_value() {
    let mut wide = Keyspace::new(6);
    let mut narrow = Keyspace::new(6);
    narrow.limits = store::EncodingLimits {
        hash_max_listpack_entries: 2,
        set_max_intset_entries: 2,
        set_max_listpack_entries: 2,
        zset_max_listpack_entries: 2,
        list_max_listpack_size: 2,
        ..store::EncodingLimits::default()
    };
    let mut encoder = ValueEncoder::new(true);
    let mut changed = BTreeSet::new();
    for round in 0..300 {
        let name = wide.add(1 + round % 5);
        let written = wide.write(&name, &mut encoder);
        let read = narrow.read(&written).unwrap();
        assert_eq!(wide.look(&name, contents), narrow.look(&read, contents));
        let forms = (
            wide.look(&name, |stored| stored.encoding()),
            narrow.look(&read, |stored| stored.encoding()),
        );
        // And back: values that were written element by element are packed again.
        let back = narrow.write(&read, &mut encoder);
        let again = wide.read(&back).unwrap();
        assert_eq!(wide.look(&name, contents), wide.look(&again, contents));
        changed.insert(forms);
    }
    for forms in [
        ("listpack", "hashtable"),
        ("intset", "hashtable"),
        ("listpack", "skiplist"),
        ("listpackex", "hashtable"),
        ("listpack", "quicklist"),
    ] {
        assert!(changed.contains(&forms), "{forms:?} of {changed:?}");
    }
}
