//! Values in the forms of old servers, written by hand.

use persist::Error;
use persist::rdb::ValueType;

use crate::samples::{Keyspace, Written, contents};

/// The encoding and the content of a value that was read.
fn read(value_type: ValueType, bytes: &[u8]) -> Result<(&'static str, Vec<String>), Error> {
    let mut keyspace = Keyspace::new(1);
    keyspace.limits = store::EncodingLimits::default();
    let name = keyspace.read(&Written { value_type, bytes: bytes.to_vec() })?;
    Ok(keyspace.look(&name, |stored| (stored.encoding(), contents(stored))))
}

fn check(value_type: ValueType, bytes: &[u8], encoding: &str, wanted: &[&str]) {
    let (found, contents) = read(value_type, bytes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((found, contents), (encoding, wanted.iter().map(|s| s.to_string()).collect()));
    for len in 0..bytes.len() {
        assert!(read(value_type, &bytes[..len]).is_err(), "{value_type:?}: {len} bytes");
    }
}

fn check_corrupt(value_type: ValueType, bytes: &[u8]) {
    match read(value_type, bytes) {
        Err(Error::Corrupt(_) | Error::EmptyValue) => {}
        other => panic!("{value_type:?} {bytes:?}: {other:?}"),
    }
}

/// A string of these bytes, which are fewer than 64.
fn string(bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 64);
    [&[bytes.len() as u8], bytes].concat()
}

/// A ziplist of entries, to which it adds the length of the previous one.
pub fn ziplist(entries: &[&[u8]]) -> Vec<u8> {
    let (mut body, mut before, mut last_at) = (Vec::new(), 0, 10);
    for entry in entries {
        last_at = 10 + body.len();
        body.push(before as u8);
        body.extend(*entry);
        before = entry.len() + 1;
    }
    let mut out = Vec::new();
    out.extend((10 + body.len() as u32 + 1).to_le_bytes());
    out.extend((last_at as u32).to_le_bytes());
    out.extend((entries.len() as u16).to_le_bytes());
    out.extend(body);
    out.push(0xff);
    out
}

pub const INTEGERS: [&[u8]; 9] = [
    b"\xf1",
    b"\xfd",
    b"\xfe\x80",
    b"\xc0\x00\x80",
    b"\xf0\x00\x00\x80",
    b"\xd0\x00\x00\x00\x80",
    b"\xe0\x00\x00\x00\x00\x00\x00\x00\x80",
    b"\x03abc",
    b"\x40\x02xy",
];

#[test]
fn values_written_element_by_element_are_read() {
    check(ValueType::List, b"\x03\x01a\xc0\x05\x01b", "listpack", &["a 1", "5 1", "b 1"]);
    check(ValueType::Set, b"\x02\xc0\x05\xc0\x06", "intset", &["5 1", "6 1"]);
    check(ValueType::Set, b"\x02\xc0\x05\x01a", "listpack", &["5 1", "a 1"]);
    check(ValueType::Hash, b"\x01\x01f\x01v", "listpack", &["f 1 v 1 None"]);
    check(
        ValueType::SortedSet,
        b"\x04\x01a\x031.5\x01b\xfe\x01c\xff\x01d\x1422500000000000000000",
        "listpack",
        &["c 1 -inf", "a 1 1.5", "d 1 22500000000000000000", "b 1 inf"],
    );
    for value_type in [ValueType::List, ValueType::Set, ValueType::Hash, ValueType::SortedSet] {
        assert!(matches!(read(value_type, b"\x00"), Err(Error::EmptyValue)));
        check_corrupt(value_type, b"\xc0\x01\x01a\x01b\x011");
    }
    check_corrupt(ValueType::Set, b"\x02\x01a\x01a");
    check_corrupt(ValueType::Hash, b"\x02\x01a\x01x\x01a\x01y");
    check_corrupt(ValueType::SortedSet, b"\x02\x01a\x011\x01a\x012");
    check_corrupt(ValueType::SortedSet, b"\x01\x01a\xfd");
    check_corrupt(ValueType::SortedSet, b"\x01\x01a\x02x1");
    let nan = [b"\x01\x01a", &f64::NAN.to_le_bytes()[..]].concat();
    check_corrupt(ValueType::SortedSet2, &nan);
}

#[test]
fn ziplists_are_read() {
    let list = ziplist(&INTEGERS);
    let wanted = &[
        "0 1",
        "12 2",
        "-128 4",
        "-32768 6",
        "-8388608 8",
        "-2147483648 11",
        "-9223372036854775808 20",
        "abc 3",
        "xy 2",
    ];
    check(ValueType::ListZiplist, &string(&list), "quicklist", wanted);
    check(ValueType::ListQuicklist, &[&[1], &string(&list)[..]].concat(), "listpack", wanted);
    let empty = string(&ziplist(&[]));
    let two = [&[2], &empty[..], &string(&list)[..]].concat();
    check(ValueType::ListQuicklist, &two, "listpack", wanted);
    let pairs = ziplist(&[b"\x01a", b"\xf2", b"\x01b", b"\x032.5"]);
    let wanted = &["a 1 1", "b 1 2.5"];
    check(ValueType::SortedSetZiplist, &string(&pairs), "listpack", wanted);
    let wanted = &["a 1 1 1 None", "b 1 2.5 3 None"];
    check(ValueType::HashZiplist, &string(&pairs), "listpack", wanted);
    // Members out of order are sorted.
    let pairs = ziplist(&[b"\x01a", b"\xf9", b"\x01b", b"\xf2"]);
    check(ValueType::SortedSetZiplist, &string(&pairs), "listpack", &["b 1 1", "a 1 8"]);
    for value_type in [ValueType::ListZiplist, ValueType::HashZiplist, ValueType::SortedSetZiplist]
    {
        assert!(matches!(read(value_type, &empty), Err(Error::EmptyValue)));
    }
    for value_type in [ValueType::HashZiplist, ValueType::SortedSetZiplist] {
        let twice = ziplist(&[b"\x01a", b"\xf2", b"\x01a", b"\xf3"]);
        check_corrupt(value_type, &string(&twice));
        check_corrupt(value_type, &string(&ziplist(&[b"\x01a"])));
    }
    check_corrupt(ValueType::SortedSetZiplist, &string(&ziplist(&[b"\x01a", b"\x03nan"])));
}

#[test]
fn a_wrong_byte_in_the_frame_of_a_ziplist_is_refused() {
    let list = ziplist(&INTEGERS);
    // The lengths, offsets and number of entries, and the lengths of previous entries.
    for at in (0..12).chain([12, 15, list.len() - 1]) {
        let mut changed = list.clone();
        changed[at] ^= 0x10;
        check_corrupt(ValueType::ListZiplist, &string(&changed));
    }
    let mut unknown = list.clone();
    unknown[8..10].copy_from_slice(b"\xff\xff");
    assert!(read(ValueType::ListZiplist, &string(&unknown)).is_ok());
    // A length of the previous entry in 5 bytes, where one byte would suffice.
    let long = b"\x14\0\0\0\x0c\0\0\0\x02\0\0\xf1\xfe\x02\0\0\0\xf1\xff";
    assert_eq!(long.len(), 19);
    let mut long = long.to_vec();
    long[0] = 19;
    check(ValueType::ListZiplist, &string(&long), "quicklist", &["0 1", "0 1"]);
}

#[test]
fn zipmaps_are_read() {
    let map = b"\x02\x01f\x01\x00v\x02gg\x03\x02xyz??\xff";
    let wanted = &["f 1 v 1 None", "gg 2 xyz 3 None"];
    check(ValueType::HashZipmap, &string(map), "listpack", wanted);
    let text = "t".repeat(254);
    let long = [b"\xfe\x01f\xfe\xfe\0\0\0\x00", text.as_bytes(), b"\xff"].concat();
    let wanted = format!("f 1 {text} 254 None");
    // A string of more than 63 bytes has a length of two.
    let long = [&[0x40 | (long.len() >> 8) as u8, long.len() as u8], &*long].concat();
    check(ValueType::HashZipmap, &long, "hashtable", &[&wanted]);
    let faults: &[&[u8]] = &[
        b"\xff",
        b"\x00",
        b"\x01\x01f\x01\x00v",
        b"\x02\x01f\x01\x00v\xff",
        b"\x01\x01f\x01\x03v\xff",
        b"\x01\x01f\xff",
        b"\x02\x01f\x01\x00v\x01f\x01\x00v\xff",
        b"\x01\xfe\xff\xff\xff\xfff\x01\x00v\xff",
        b"\x01\xfe\x01\0\0\0f\x01\x00v\xff",
        b"",
    ];
    for fault in faults {
        check_corrupt(ValueType::HashZipmap, &string(fault));
    }
    assert!(matches!(read(ValueType::HashZipmap, &string(b"\x00\xff")), Err(Error::EmptyValue)));
}

#[test]
fn intsets_are_read() {
    let check_ints = |bytes: &[u8], wanted: &[&str]| {
        check(ValueType::SetIntset, &string(bytes), "intset", wanted);
    };
    check_ints(b"\x02\0\0\0\x02\0\0\0\xff\xff\x05\0", &["-1 2", "5 1"]);
    check_ints(b"\x04\0\0\0\x01\0\0\0\x05\0\0\0", &["5 1"]);
    check_ints(b"\x08\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\x80", &["-9223372036854775808 20"]);
    let faults: &[&[u8]] = &[
        b"",
        b"\x02\0\0\0",
        b"\x02\0\0\0\0\0\0\0",
        b"\x03\0\0\0\x01\0\0\0\0\0\0",
        b"\x02\0\0\0\x02\0\0\0\x05\0",
        b"\x02\0\0\0\x02\0\0\0\x05\0\x04\0",
        b"\x02\0\0\0\x02\0\0\0\x05\0\x05\0",
        b"\x02\0\0\0\xff\xff\xff\xff\x05\0",
    ];
    for fault in faults {
        check_corrupt(ValueType::SetIntset, &string(fault));
    }
}

#[test]
fn hashes_with_expiries_are_read() {
    let at = |ms: u64| ms.to_le_bytes();
    let bytes = [&at(1000)[..], b"\x03\x00\x01a\x01x\x01\x01b\x01y\x05\x01c\x01z"].concat();
    let wanted = &["a 1 x 1 None", "b 1 y 1 Some(1000)", "c 1 z 1 Some(1004)"];
    check(ValueType::HashExpiring, &bytes, "listpackex", wanted);
    let preview = b"\x02\x00\x01a\x01x\x43\xe8\x01b\x01y";
    let wanted = &["a 1 x 1 None", "b 1 y 1 Some(1000)"];
    check(ValueType::HashExpiringPreview, preview, "listpackex", wanted);
    let valkey = [b"\x02\x01a\x01x", &(-1i64).to_le_bytes()[..], b"\x01b\x01y", &at(1000)].concat();
    check(ValueType::HashExpiringValkey, &valkey, "hashtable", wanted);
    let triples = b"\x16\0\0\0\x06\0\x81b\x02\x81y\x02\xc3\xe8\x02\x81a\x02\x81x\x02\x00\x01\xff";
    let mut triples = triples.to_vec();
    triples[0] = triples.len() as u8;
    let own = [&at(1000)[..], &string(&triples)].concat();
    check(ValueType::HashListpackExpiring, &own, "listpackex", wanted);
    check(ValueType::HashListpackExpiringPreview, &string(&triples), "listpackex", wanted);
    // Fields in the order of expiry, those without one last, and no expiry beyond 48 bits.
    let mut swapped = triples.clone();
    swapped.splice(6..23, [&triples[15..23], &triples[6..15]].concat());
    check_corrupt(ValueType::HashListpackExpiringPreview, &string(&swapped));
    let late = [&at(u64::MAX)[..], b"\x01\x01\x01a\x01x"].concat();
    check_corrupt(ValueType::HashExpiring, &late);
    let late = [b"\x01\x01a\x01x", &at(1 << 48)[..]].concat();
    check_corrupt(ValueType::HashExpiringValkey, &late);
    let early = [b"\x01\x01a\x01x", &(-2i64).to_le_bytes()[..]].concat();
    check_corrupt(ValueType::HashExpiringValkey, &early);
}

#[test]
fn streams_of_old_versions_are_read() {
    // One chunk with a deleted entry and a live one, each with the field f.
    let chunk: &[u8] = b"\x01\x01\x01\x01\x01\x01\x81f\x02\x00\x01\
        \x03\x01\x00\x01\x00\x01\x81x\x02\x04\x01\x02\x01\x05\x01\x00\x01\x81y\x02\x04\x01";
    let mut listpack = vec![0; 6];
    listpack.extend(chunk);
    listpack.push(0xff);
    listpack[0] = listpack.len() as u8;
    listpack[4] = 15;
    let base = [&[0u8; 7][..], &[5], &[0; 7], &[1]].concat();
    let front = [&[1], &string(&base)[..], &string(&listpack)].concat();
    let id = [&[0u8; 7][..], &[10], &[0; 7], &[1]].concat();
    let group = [
        b"\x01\x01g\x0a\x01".to_vec(),
        [&[1], &id[..], &7u64.to_le_bytes(), &[3]].concat(),
        [b"\x01\x01c", &9u64.to_le_bytes()[..], &[1], &id].concat(),
    ]
    .concat();
    let first = [&front[..], b"\x01\x0a\x01", &group].concat();
    let wanted = &[
        "1 entries of 1",
        "last Id { ms: 10, seq: 1 } deleted Id { ms: 0, seq: 0 }",
        "Id { ms: 10, seq: 1 } [(Bytes([102]), Bytes([121]))]",
        "chunk Id { ms: 5, seq: 1 } 1 1",
        "group [103] Id { ms: 10, seq: 1 } 1",
        "consumer [99] 9 9 [Id { ms: 10, seq: 1 }]",
        "pending Id { ms: 10, seq: 1 } [99] 7 3",
    ];
    check(ValueType::Stream, &first, "stream", wanted);
    let group = [
        b"\x01\x01g\x0a\x01\x02\x00".to_vec(),
        [b"\x01\x01c", &9u64.to_le_bytes()[..], &[0]].concat(),
    ]
    .concat();
    let second = [&front[..], b"\x01\x0a\x01\x0a\x01\x05\x01\x02", &group].concat();
    let wanted = &[
        "1 entries of 2",
        "last Id { ms: 10, seq: 1 } deleted Id { ms: 5, seq: 1 }",
        "Id { ms: 10, seq: 1 } [(Bytes([102]), Bytes([121]))]",
        "chunk Id { ms: 5, seq: 1 } 1 1",
        "group [103] Id { ms: 10, seq: 1 } 2",
        "consumer [99] 9 9 []",
    ];
    check(ValueType::Stream2, &second, "stream", wanted);
    // The counts of entries, the number of elements, the last identifier.
    for (at, byte) in [(24, 2), (26, 0), (24 + 15, 5), (front.len() + 1, 9)] {
        let mut changed = first.clone();
        assert_ne!(changed[at], byte);
        changed[at] = byte;
        check_corrupt(ValueType::Stream, &changed);
    }
}

#[test]
fn modules_are_named() {
    let id = [&[0x81][..], &0xb5eb_2dcb_5fdc_a41du64.to_be_bytes()].concat();
    match read(ValueType::Module2, &id) {
        Err(Error::Module(module)) => assert_eq!(module.name().len(), 9),
        other => panic!("{other:?}"),
    }
}
