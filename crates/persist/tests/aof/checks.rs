//! What a check of an RDB file finds, and what a repair makes of one.

use std::collections::BTreeMap;
use std::path::Path;

use persist::check::{RdbReport, check_rdb, repair_rdb};
use persist::disk::{Disk, FileSink};
use persist::rdb::{Item, Reader, Writer};

use crate::simulated_disk::SimulatedDisk;

/// Keys by their databases, with the bytes of their values.
type Keys = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

fn check(bytes: &[u8]) -> RdbReport {
    let disk = SimulatedDisk::new(1);
    disk.put("dump.rdb", bytes);
    check_rdb(&disk.open(Path::new("dump.rdb")).unwrap(), None).unwrap()
}

/// What a repair makes of a file, which is whole then, and how many keys it says to keep.
fn repaired(bytes: &[u8]) -> (Vec<u8>, u64) {
    let disk = SimulatedDisk::new(1);
    disk.put("dump.rdb", bytes);
    let file = disk.open(Path::new("dump.rdb")).unwrap();
    let report = check_rdb(&file, None).unwrap();
    let mut sink = FileSink::new(disk.create(Path::new("fixed.rdb")).unwrap());
    repair_rdb(&file, &report, &mut sink).unwrap();
    let fixed = disk.read("fixed.rdb");
    let again = check(&fixed);
    assert!(again.damage.is_none() && again.keys == report.keys, "{again:?} of {report:?}");
    assert_eq!(again.end, Some(fixed.len() as u64));
    (fixed, report.keys)
}

fn keys(bytes: &[u8]) -> Keys {
    let mut reader = Reader::new(bytes, true).unwrap();
    let (mut keys, mut db) = (Keys::new(), 0);
    loop {
        let key = match reader.item().unwrap() {
            Item::Key(head) => head.key.to_vec(),
            Item::Database(number) => {
                db = number;
                continue;
            }
            Item::End => return keys,
            _ => continue,
        };
        let mut value = Vec::new();
        reader.copy_value(&mut value).unwrap();
        assert!(keys.insert((db, key), value).is_none(), "a key is there twice");
    }
}

/// A file with these items.
fn file(items: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, Default::default()).unwrap();
    items.iter().for_each(|item| writer.keys(item).unwrap());
    writer.finish().unwrap();
    bytes
}

/// Keys of several types; an empty one, and values that end in zeros.
const ITEMS: &[&[u8]] = &[
    b"\xfe\x00",
    b"\x00\x01a\x05value",
    b"\x00\x04zero\xc0\x00",
    b"\x00\x00\x01v",
    b"\x01\x04list\x02\x03one\x03two",
    b"\x02\x03set\x02\x01x\x01y",
    b"\x05\x04zset\x01\x01m\0\0\0\0\0\0\0\0",
    b"\xfc\0\0\0\0\0\x01\0\0\x04\x04hash\x01\x01f\x01v",
    b"\x0b\x04ints\x0a\x02\0\0\0\x01\0\0\0\x07\0",
    b"\xfe\x03",
    b"\x00\x01a\x05other",
    b"\x00\x04tail\x05abcde",
];

#[test]
fn a_check_tells_where_a_file_is_damaged() {
    let bytes = b"\x00\x01a\x01x\x00\x01b\x01y";
    let whole = [b"REDIS0004\xfe\x00", &bytes[..], b"\xff"].concat();
    let report = check(&whole);
    assert!(report.damage.is_none() && (report.version, report.keys) == (4, 2));
    assert_eq!(report.end, Some(whole.len() as u64));
    let cut = check(&whole[..whole.len() - 3]);
    assert_eq!((cut.keys, cut.items_to), (1, 16));
    assert!(cut.damage.is_some());
    let other = check(&[&whole[..whole.len() - 1], b"\xfe\x01\x00\x01b\x01y\xff"].concat());
    assert!(other.damage.is_none() && other.keys == 3, "another database has such a key");
    let none = check(b"REDIT");
    assert_eq!((none.version, none.keys), (0, 0));
    assert!(none.damage.is_some());
}

#[test]
fn a_repair_has_nothing_that_the_file_before_a_crash_had_not() {
    let whole = file(ITEMS);
    let all = keys(&whole);
    assert_eq!(all.len(), 10);
    let begins = check(&file(&[])).items_to as usize;
    let mut most = 0;
    for cut in begins..whole.len() {
        for zeros in [0, 1, 3, 4, 300, 5000, 600_000] {
            let mut damaged = whole[..cut].to_vec();
            // How many keys were whole; those whose zeros may be of the lost part are not.
            let end = damaged.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            let sure = check(&whole[..end]).keys;
            damaged.resize(cut + zeros, 0);
            if check(&damaged).damage.is_none() {
                // A checksum of zeros is none.
                assert_eq!(keys(&damaged), all);
                continue;
            }
            let (fixed, kept) = repaired(&damaged);
            let found = keys(&fixed);
            for (key, value) in &found {
                assert_eq!(all.get(key), Some(value), "{key:?} with {zeros} zeros at {cut}");
            }
            assert_eq!(kept, found.len() as u64);
            assert!(kept >= sure, "{kept} of {sure} keys, {zeros} zeros at {cut}");
            most = most.max(kept);
        }
    }
    assert_eq!(most, 10);
}

#[test]
fn what_cannot_be_loaded_is_left_out_where_the_others_are_whole() {
    let whole = file(ITEMS);
    let damaged: [&[u8]; 4] = [
        // A key that is there before, also where the database is selected again.
        b"\x00\x04zero\x01x",
        b"\xfe\x00\x00\x04zero\x01x",
        // An integer set whose members are not in order, and a field without a value.
        b"\x0b\x04more\x0c\x02\0\0\0\x02\0\0\0\x07\0\x01\0",
        b"\x10\x04less\x0a\x0a\0\0\0\x01\0\x81f\x02\xff",
    ];
    for item in damaged {
        for place in 3..=8 {
            let mut items = ITEMS.to_vec();
            items.insert(place, item);
            let bytes = file(&items);
            assert_eq!(check(&bytes).left_out.len(), 1, "{item:?} at {place}");
            let (fixed, kept) = repaired(&bytes);
            assert_eq!((keys(&fixed), kept), (keys(&whole), 10), "{item:?} at {place}");
            // Where the outline breaks off later, nothing behind it can be trusted.
            let (fixed, _) = repaired(&bytes[..bytes.len() - 12]);
            assert_eq!(keys(&fixed), keys(&file(&ITEMS[..place])), "{item:?} at {place}");
        }
    }
}

#[test]
fn many_damaged_values_are_left_out() {
    let mut items = vec![ITEMS[1]; 3000];
    items.insert(2000, ITEMS[2]);
    let (fixed, kept) = repaired(&file(&items));
    assert_eq!((kept, keys(&fixed).len()), (2, 2));
}

#[test]
fn a_lost_block_makes_no_keys() {
    let of = |number: u32| match number % 3 {
        0 => format!("\0\x06{number:06}\x06{number:06}").into_bytes(),
        1 => format!("\0\x06{number:06}\x05value").into_bytes(),
        _ => [b"\0\x06", format!("{number:06}").as_bytes(), b"\xc0", &[number as u8]].concat(),
    };
    let mut items: Vec<Vec<u8>> = (0..400).map(of).collect();
    items.extend((400..420).map(|number: u32| {
        let field = |n: u32| format!("\x05{n:05}\x30{number:024}{n:024}");
        let fields: String = (0..20).map(field).collect();
        format!("\x04\x06{number:06}\x14{fields}").into_bytes()
    }));
    let whole = file(&items.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let all = keys(&whole);
    let begins = check(&file(&[])).items_to as usize;
    // Binary values, whose bytes may be read as anything.
    items.extend((420..700).map(|number: u32| {
        let value: Vec<u8> = (0..17).map(|n| (number * 31 + n * number) as u8).collect();
        let head = [&[4, 6][..], format!("{number:06}").as_bytes(), b"\x01\x03"].concat();
        [&head[..], &value[..3], &[14], &value[3..]].concat()
    }));
    for lost in [64, 100, 512, 1024] {
        let (short, long) = (begins..begins + 4000, whole.len() - 9 - 4000..whole.len() - 9 - lost);
        for at in short.chain(long).step_by(11) {
            let mut bytes = whole.clone();
            bytes[at..at + lost].fill(0);
            let (fixed, _) = repaired(&bytes);
            for (key, value) in keys(&fixed) {
                assert_eq!(all.get(&key), Some(&value), "{lost} bytes at {at}: {key:?}");
            }
        }
    }
}

#[test]
fn a_key_without_a_name_is_kept_like_others() {
    let damaged = b"\x0b\x04more\x0c\x02\0\0\0\x02\0\0\0\x07\0\x01\0";
    let zeros = b"\x00\x04bits\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    let of = |name: &'static [u8]| {
        let before = [ITEMS[1], ITEMS[2], ITEMS[6], zeros];
        before.map(|item| file(&[item, name, ITEMS[4], damaged, ITEMS[5]]))
    };
    for bytes in of(b"\0\0\0").into_iter().chain(of(b"\0\0\x01v")) {
        assert_eq!(repaired(&bytes).1, 4);
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert_eq!(repaired(&flipped).1, 4);
    }
    // Where the outline breaks off: only with so many zeros before that they may be a lost block.
    for item in [ITEMS[1], ITEMS[2], ITEMS[6]] {
        let bytes = file(&[item, b"\0\0\0", ITEMS[4], ITEMS[1], ITEMS[11]]);
        assert_eq!(repaired(&bytes[..bytes.len() - 10]).1, if item == ITEMS[1] { 3 } else { 4 });
    }
}

#[test]
fn a_cut_loses_one_key_where_values_end_in_zeros() {
    for zeros in [14, 15, 16, 40] {
        let of = |number: u32| {
            [format!("\0\x06{number:06}").as_bytes(), &[zeros as u8 + 1, 1], &vec![0; zeros]]
                .concat()
        };
        let items: Vec<Vec<u8>> = (0..10).map(of).collect();
        let whole = file(&items.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let item = items[0].len();
        let begin = whole.len() - 9 - item;
        for cut in begin + 2..begin + item - zeros {
            assert_eq!(repaired(&whole[..cut]).1, 9, "{zeros} zeros, cut at {cut}");
            // The last of zeros at the end, and of those before it, may be what a crash left.
            let torn = [&whole[..cut], &[0; 16]].concat();
            assert!((7..=9).contains(&repaired(&torn).1), "{zeros} zeros, torn at {cut}");
        }
    }
}

#[test]
fn values_that_end_in_zeros_are_kept_behind_damage() {
    let of = |number: u32| [format!("\0\x06{number:06}\x12\x01").as_bytes(), &[0; 17]].concat();
    let items: Vec<Vec<u8>> = (0..100).map(of).collect();
    let mut all: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    all.insert(1, &items[0]);
    let bytes = file(&all);
    assert_eq!((check(&bytes).left_out.len(), repaired(&bytes).1), (1, 100));
    // An end whose checksum is right is one, whatever follows.
    assert_eq!(repaired(&[&bytes[..], b"\n"].concat()).1, 100);
}

#[test]
fn an_end_in_the_middle_is_none() {
    let whole = file(ITEMS);
    let all = keys(&whole);
    let mut at = check(&file(&[])).items_to as usize;
    for item in ITEMS {
        let mut bytes = whole.clone();
        bytes[at] = 0xff;
        let (fixed, _) = repaired(&bytes);
        assert!(keys(&fixed).iter().all(|(key, value)| all.get(key) == Some(value)));
        assert!(keys(&fixed).len() <= keys(&whole).len());
        let report = check(&bytes);
        assert!(report.end.is_none() && report.items_to == at as u64, "{report:?}");
        at += item.len();
    }
    // The end of a file whose checksum is cut is one.
    let damaged = file(&[ITEMS[1], ITEMS[1], ITEMS[2]]);
    for cut in 1..=8 {
        assert_eq!(repaired(&damaged[..damaged.len() - cut]).1, 2);
    }
}

#[test]
fn an_end_is_one_whatever_follows_where_nothing_else_can_be_meant() {
    let twice = file(&[&[ITEMS[1]], ITEMS].concat());
    let counted = file(&[b"\xfb\x03\x00", ITEMS[1], ITEMS[1], ITEMS[2]]);
    let damaged = [twice.clone(), counted.clone()];
    let [none, wrong] = [[0; 8], *b"checksum"];
    let tails: [&[u8]; 5] = [b"\n", b"\r\n", &[7; 8], &[0; 9], &[0; 10_000]];
    for (bytes, kept) in damaged.iter().zip([10, 2]) {
        for checksum in [none, wrong] {
            let mut bytes = bytes.clone();
            bytes.splice(bytes.len() - 8.., checksum);
            let end = bytes.len() as u64;
            for tail in tails {
                let bytes = [&bytes[..], tail].concat();
                let report = check(&bytes);
                assert_eq!((report.end, report.left_out.len()), (Some(end), 1), "{tail:?}");
                assert_eq!(repaired(&bytes).1, kept, "{tail:?}");
            }
            // More bytes than a few may be what stood there before something was damaged, but
            // where as many keys were met as there are.
            let report = check(&[&bytes[..], b"many bytes"].concat());
            assert_eq!(report.end.is_some(), kept == 2);
            assert_eq!(report.keys, if kept == 2 { 2 } else { 1 });
        }
    }
    // A file without checksums.
    let mut old = b"REDIS0004".to_vec();
    [ITEMS[0], ITEMS[1], ITEMS[1], ITEMS[2], b"\xff"].iter().for_each(|item| old.extend(*item));
    for tail in tails {
        assert_eq!(repaired(&[&old[..], tail].concat()).1, 2, "{tail:?}");
    }
}

#[test]
fn damaged_compressed_names_are_left_out() {
    // Copies from before the beginning.
    let lzf = b"\xc3\x03\x14\xe0\x0b\x05";
    let key = [b"\0", &lzf[..], b"\x01v"].concat();
    let expiring = [b"\xfc\0\0\0\0\0\x01\0\0", &key[..]].concat();
    let aux = [b"\xfa", &lzf[..], b"\x01v"].concat();
    let library = [b"\xf5", &lzf[..]].concat();
    for item in [key, expiring, aux, library] {
        let mut items = ITEMS.to_vec();
        items.insert(1, &item);
        let bytes = file(&items);
        assert_eq!(check(&bytes).left_out.len(), 1, "{item:?}");
        let (fixed, kept) = repaired(&bytes);
        assert_eq!((kept, keys(&fixed).len()), (10, 10), "{item:?}");
    }
}

#[test]
fn keys_that_have_expired_are_passed_over() {
    let expired = b"\xfc\x01\0\0\0\0\0\0\0";
    let damaged = [&expired[..], b"\x0b\x04more\x0c\x02\0\0\0\x02\0\0\0\x07\0\x01\0"].concat();
    let before = [&expired[..], ITEMS[1]].concat();
    let bytes = file(&[&damaged, &before, ITEMS[1]]);
    let disk = SimulatedDisk::new(1);
    disk.put("dump.rdb", &bytes);
    let dump = disk.open(Path::new("dump.rdb")).unwrap();
    assert!(check_rdb(&dump, Some(2)).unwrap().damage.is_none());
    assert_eq!(check_rdb(&dump, Some(1)).unwrap().left_out.len(), 2);
    // In the base of an append-only file they are keys.
    assert_eq!(check_rdb(&dump, None).unwrap().left_out.len(), 2);
}

#[test]
fn a_long_value_is_looked_through_where_it_stands() {
    let members = |twice: bool| {
        let mut set = b"\x02\x03big\x80\0\x01\0\0".to_vec();
        for number in 0..0x10000 {
            let number = if twice && number == 0xffff { 7 } else { number };
            set.extend(format!("\x1cmember of a long set {number:07}").bytes());
        }
        set
    };
    let (good, bad) = (members(false), members(true));
    assert_eq!(repaired(&file(&[ITEMS[1], &good, ITEMS[2]])[..]).1, 3);
    let bytes = file(&[ITEMS[1], &bad, ITEMS[2]]);
    assert_eq!((check(&bytes).left_out.len(), repaired(&bytes).1), (1, 2));
}
