//! The result of checking an RDB file, and the file that a fix writes.

use std::ops::Range;
use std::path::Path;

use persist::Error;
use persist::check::{KeyFound, RdbReport, check_rdb, write_loaded};
use persist::disk::{Disk, DiskError, DiskFile, FileSink};
use persist::rdb::RdbWriter;

use crate::simulated_disk::SimulatedDisk;

fn check(bytes: &[u8]) -> RdbReport {
    let disk = SimulatedDisk::new(1);
    disk.put("dump.rdb", bytes);
    check_rdb(&disk.open(Path::new("dump.rdb")).unwrap()).unwrap()
}

/// Writes what was loaded of a file, without these ranges. Returns the new file and the report.
fn written(bytes: &[u8], left_out: &[Range<u64>]) -> (Vec<u8>, RdbReport) {
    let disk = SimulatedDisk::new(1);
    disk.put("dump.rdb", bytes);
    let file = disk.open(Path::new("dump.rdb")).unwrap();
    let report = check_rdb(&file).unwrap();
    let mut sink = FileSink::new(disk.create(Path::new("fixed.rdb")).unwrap());
    write_loaded(&file, &report, left_out, &mut sink).unwrap();
    assert_eq!(disk.read("dump.rdb"), bytes, "the damaged file has changed");
    (disk.read("fixed.rdb"), report)
}

/// Writes what was loaded of a file, and checks that the new file has no damage and the same keys.
fn fixed(bytes: &[u8]) -> (Vec<u8>, RdbReport) {
    let (fixed, report) = written(bytes, &[]);
    let again = check(&fixed);
    assert!(again.damage.is_none(), "{again:?} of {report:?}");
    assert_eq!(again.end, Some(fixed.len() as u64));
    assert_eq!((again.keys, &again.last_key), (report.keys, &report.last_key));
    (fixed, report)
}

/// A file with these items.
fn file(items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = RdbWriter::new(&mut bytes, Default::default()).unwrap();
    items.iter().for_each(|item| writer.keys(item).unwrap());
    writer.finish().unwrap();
    bytes
}

const HEADER_BYTES: usize = 9;
const CHECKSUM_BYTES: usize = 8;

/// Items of each kind; those with a name are keys.
const ITEMS: &[(&str, &[u8])] = &[
    ("", b"\xfa\x09redis-ver\x058.0.0"),
    ("", b"\xf5\x0f#!lua name=lib\n"),
    ("", b"\xfe\x00"),
    ("", b"\xfb\x06\x02"),
    ("a", b"\x00\x01a\x05value"),
    ("zero", b"\x00\x04zero\xc0\x00"),
    ("list", b"\x01\x04list\x02\x03one\x03two"),
    ("zset", b"\x05\x04zset\x01\x01m\0\0\0\0\0\0\0\0"),
    ("hash", b"\xfc\0\0\0\0\0\x01\0\0\x04\x04hash\x01\x01f\x01v"),
    ("ints", b"\xf8\x05\x0b\x04ints\x0a\x02\0\0\0\x01\0\0\0\x07\0"),
    ("", b"\xfe\x03"),
    ("a", b"\xfc\x01\0\0\0\0\0\0\0\x00\x01a\x05other"),
    ("tail", b"\xf9\x07\x00\x04tail\x05abcde"),
];

fn items() -> Vec<&'static [u8]> {
    ITEMS.iter().map(|(_, item)| *item).collect()
}

/// Where each item begins, and where the last one ends.
fn offsets() -> Vec<usize> {
    let mut at = HEADER_BYTES;
    let mut offsets = vec![at];
    offsets.extend(items().iter().map(|item| {
        at += item.len();
        at
    }));
    offsets
}

/// The last key among the first items.
fn last_key(count: usize) -> Option<KeyFound> {
    let at = ITEMS[..count].iter().rposition(|(name, _)| !name.is_empty())?;
    let database = if at > 10 { 3 } else { 0 };
    let offset = offsets()[at] as u64;
    Some(KeyFound { name: ITEMS[at].0.into(), database, offset })
}

/// Checks that a damaged file is loaded up to this number of items, and no further.
#[track_caller]
fn keeps(bytes: &[u8], count: usize, what: &str) -> RdbReport {
    let (fixed, report) = fixed(bytes);
    assert_eq!(fixed, file(&items()[..count]), "{what}");
    assert_eq!(report.items_to, offsets()[count] as u64, "{what}");
    assert_eq!(report.last_key, last_key(count), "{what}");
    let keys = ITEMS[..count].iter().filter(|(name, _)| !name.is_empty()).count();
    assert_eq!((report.keys, report.end), (keys as u64, None), "{what}");
    report
}

#[test]
fn a_whole_file_has_no_damage() {
    let whole = file(&items());
    for bytes in [whole.clone(), [&whole[..], b"other data"].concat()] {
        let report = check(&bytes);
        assert!(report.damage.is_none());
        assert_eq!((report.version, report.keys, report.database_max), (12, 8, 3));
        assert_eq!(report.end, Some(whole.len() as u64));
        assert_eq!(report.last_key, last_key(ITEMS.len()));
        assert_eq!(report.libraries[0].source, b"#!lua name=lib\n");
    }
}

#[test]
fn a_cut_at_any_byte_keeps_every_item_before_it() {
    let whole = file(&items());
    let offsets = offsets();
    for cut in HEADER_BYTES..whole.len() {
        let count = offsets.iter().rposition(|offset| *offset <= cut).unwrap();
        let report = keeps(&whole[..cut], count, &format!("cut at {cut}"));
        assert!(matches!(report.damage, Some((at, Error::End)) if at <= cut as u64), "{report:?}");
    }
    for cut in 0..HEADER_BYTES {
        let report = check(&whole[..cut]);
        assert!(report.damage.is_some() && report.version == 0, "cut at {cut}");
    }
    let mut old = b"REDIS0004".to_vec();
    items().into_iter().skip(4).take(5).for_each(|item| old.extend(item));
    let (fixed, report) = fixed(&old);
    assert_eq!((fixed, report.keys), ([&old[..], b"\xff"].concat(), 5));
}

#[test]
fn a_flipped_bit_keeps_every_item_before_it() {
    let whole = file(&items());
    let offsets = offsets();
    for at in HEADER_BYTES..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let (fixed, report) = fixed(&bytes);
            let count = offsets.iter().rposition(|offset| *offset <= at).unwrap();
            assert!(report.damage.is_some(), "bit {bit} of byte {at}");
            assert!(fixed.starts_with(&whole[..offsets[count]]), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn a_wrong_checksum_keeps_all_keys() {
    // A flipped bit that decodes is found by the checksum only, which does not say where it is.
    let whole = file(&items());
    let value = whole.windows(5).position(|bytes| bytes == b"value").unwrap();
    for at in [value, whole.len() - CHECKSUM_BYTES] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let (fixed, report) = fixed(&bytes);
        assert!(matches!(report.damage, Some((_, Error::Checksum { .. }))), "{report:?}");
        assert_eq!((report.keys, report.last_key), (8, last_key(ITEMS.len())));
        assert_eq!(fixed[..offsets()[ITEMS.len()]], bytes[..offsets()[ITEMS.len()]]);
    }
}

#[test]
fn damage_that_the_decoder_finds_ends_the_load() {
    let damaged: [&[u8]; 8] = [
        // A key that is there twice.
        b"\x00\x04zero\x01x",
        // An integer set whose members are not in order, and a field without a value.
        b"\x0b\x04more\x0c\x02\0\0\0\x02\0\0\0\x07\0\x01\0",
        b"\x10\x04less\x0a\x0a\0\0\0\x01\0\x81f\x02\xff",
        // Lists that announce 2^32 - 1 and 2^63 elements.
        b"\x01\x04long\x80\xff\xff\xff\xff\x01x",
        b"\x01\x04long\x81\x80\0\0\0\0\0\0\0\x01x",
        // A type that no version has, and an end in the middle.
        b"\x1f\x04type\x01x",
        b"\xff",
        // A compressed name that copies from before its beginning.
        b"\x00\xc3\x03\x14\xe0\x0b\x05\x01v",
    ];
    for item in damaged {
        for count in 6..=10 {
            let mut items = items();
            items.insert(count, item);
            let bytes = file(&items);
            keeps(&bytes, count, &format!("{item:?} at {count}"));
            keeps(&bytes[..bytes.len() - 12], count, &format!("{item:?} at {count}, cut"));
        }
    }
}

#[test]
fn a_list_with_a_damaged_length_keeps_every_item_before_it() {
    let at = ITEMS.iter().position(|(name, _)| *name == "list").unwrap();
    let (list, end) = (offsets()[at], offsets()[ITEMS.len()]);
    for len in 0..=255 {
        let mut bytes = file(&items());
        bytes[list + 6] = len;
        let (fixed, report) = fixed(&bytes);
        assert!(fixed.starts_with(&bytes[..list]) && fixed.len() <= bytes.len(), "{len}");
        assert_eq!(report.damage.is_some(), len != 2, "{len}");
        assert!(report.items_to <= end as u64);
    }
}

/// A file of a terabyte that ends in zeros.
#[derive(Clone)]
struct Terabyte(Vec<u8>);

impl DiskFile for Terabyte {
    fn append(&self, _: &[&[u8]]) -> Result<(), DiskError> {
        unreachable!("a check writes nothing")
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        let rest = self.0.get(position as usize..).unwrap_or_default();
        let len = rest.len().min(room.len());
        room[..len].copy_from_slice(&rest[..len]);
        room[len..].fill(0);
        Ok(room.len())
    }

    fn len(&self) -> Result<u64, DiskError> {
        Ok(1 << 40)
    }

    fn truncate(&self, _: u64) -> Result<(), DiskError> {
        unreachable!("a check writes nothing")
    }

    fn sync(&self) -> Result<(), DiskError> {
        unreachable!("a check writes nothing")
    }
}

#[test]
fn a_damaged_length_takes_no_memory_even_in_a_long_file() {
    // A set, a sorted set and a hash that announce 2^40 elements.
    for value_type in [2, 5, 4] {
        let item = [&[value_type, 4], &b"many\x81\0\0\x01\0\0\0\0\0"[..]].concat();
        let bytes = [&b"REDIS0012"[..], ITEMS[4].1, &item].concat();
        let report = check_rdb(&Terabyte(bytes)).unwrap();
        assert!(report.damage.is_some());
        assert_eq!(report.keys, 1);
    }
}

#[test]
fn a_library_can_be_left_out() {
    let bytes = file(&items());
    let range = check(&bytes[..bytes.len() - 1]).libraries[0].range.clone();
    assert_eq!(range, offsets()[1] as u64..offsets()[2] as u64);
    let mut without = items();
    without.remove(1);
    for end in [bytes.len(), bytes.len() - 1] {
        assert_eq!(written(&bytes[..end], std::slice::from_ref(&range)).0, file(&without));
    }
}

#[test]
fn keys_that_a_server_skips_are_no_damage() {
    let empty = b"\x01\x05empty\x00";
    let module = b"\x07\x06module\x81\0\0\0\0\0\0\0\0\x00";
    let bytes = file(&[ITEMS[4].1, empty, module, ITEMS[5].1]);
    let report = check(&bytes);
    assert!(report.damage.is_none(), "{report:?}");
    assert_eq!(report.keys, 2);
}

#[test]
fn a_value_longer_than_a_block_is_kept() {
    let mut set = b"\x02\x03big\x80\0\x01\0\0".to_vec();
    for number in 0..0x10000 {
        set.extend(format!("\x1cmember of a long set {number:07}").bytes());
    }
    let bytes = file(&[ITEMS[4].1, &set, ITEMS[5].1]);
    let (fixed, report) = fixed(&bytes[..bytes.len() - 10]);
    assert_eq!((fixed, report.keys), (file(&[ITEMS[4].1, &set]), 2));
}

/// Names of up to 16 bytes in several databases.
#[test]
fn the_same_short_names_in_several_databases_are_no_damage() {
    let mut bytes = b"REDIS0011".to_vec();
    for database in 0..5 {
        bytes.extend([0xfe, database]);
        for key in 0..1400 {
            let name = format!("k{key}");
            bytes.extend([0, name.len() as u8]);
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend([1, b'v']);
        }
    }
    bytes.extend([0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    for _ in 0..3 {
        let report = check(&bytes);
        assert!(report.keys == 7000 && report.damage.is_none(), "{report:?}");
    }
    let twice = [&bytes[..bytes.len() - 9], &[0, 2, b'k', b'0', 1, b'v'], &[0xff; 9]].concat();
    assert!(check(&twice).damage.is_some());
}
