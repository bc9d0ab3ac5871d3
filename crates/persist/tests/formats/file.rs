//! Whole files: written and read back, files of every version, and cut and damaged ones.

use std::collections::{BTreeMap, BTreeSet};

use base::random::Random;
use persist::rdb::encode::Options;
use persist::rdb::reader::{Attributes, DatabaseSizes, Skipped};
use persist::rdb::{RdbItem, RdbReader, RdbWriter, ValueDecoder};
use persist::{ByteInput, ByteSource, Error, ModuleId, crc64};

use crate::mutations::damage;
use crate::samples::{Keyspace, contents};

/// The content of a file: items other than keys in order, and keys with their values.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    notes: Vec<String>,
    keys: BTreeMap<Vec<u8>, (Attributes, Vec<String>)>,
}

/// The way in which values are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Read,
    Copy,
    Skip,
}

fn read(source: impl ByteSource, checks: bool, values: Values) -> Result<Found, Error> {
    let mut keyspace = Keyspace::new(1);
    let (limits, hasher) = (keyspace.limits.clone(), keyspace.turn.hasher);
    let mut decoder = ValueDecoder::new(&limits, hasher);
    let mut reader = RdbReader::new(source, checks)?;
    let mut found = Found::default();
    loop {
        let (key, head) = match reader.item()? {
            RdbItem::End => return Ok(found),
            RdbItem::Key(head) => (head.key.to_vec(), (head.attributes, head.value_type)),
            other => {
                found.notes.push(format!("{other:?}"));
                continue;
            }
        };
        let (attributes, value_type) = head;
        let record = match values {
            Values::Skip => {
                found.keys.insert(key, (attributes, Vec::new()));
                continue;
            }
            Values::Read => match reader.record(&mut decoder, 0) {
                Err(Error::EmptyValue | Error::Module(_)) => {
                    found.notes.push("skipped".to_owned());
                    continue;
                }
                record => record?,
            },
            Values::Copy => {
                let mut bytes = Vec::new();
                reader.copy_value(&mut bytes)?;
                let mut input = ByteInput::new(&bytes[..]);
                let record = decoder.value(value_type, &mut input)?;
                let record = record.record(&key, attributes.expires_at, 0);
                assert!(input.is_at_end()?);
                record
            }
        };
        assert_eq!(record.view().key(), key);
        assert_eq!(record.view().expires_at(), attributes.expires_at);
        record_contents(&mut keyspace, &key, record, &mut found, attributes);
    }
}

fn record_contents(
    keyspace: &mut Keyspace,
    key: &[u8],
    record: ds::Record<store::Object>,
    found: &mut Found,
    attributes: Attributes,
) {
    let place = keyspace.turn.key(key);
    keyspace.db.put_record(&mut keyspace.turn, place, record);
    let contents = keyspace.look(key, contents);
    found.keys.insert(key.to_vec(), (attributes, contents));
}

/// A file with values of all forms, and its content.
fn sample(seed: u64, options: Options) -> (Vec<u8>, Found) {
    let mut keyspace = Keyspace::new(seed);
    let mut found = Found::default();
    let mut writer = RdbWriter::new(Vec::new(), options).unwrap();
    writer.aux(b"redis-ver", b"8.0.6").unwrap();
    found.notes.push(format!("{:?}", RdbItem::Aux(b"redis-ver", b"8.0.6")));
    writer.function(b"#!lua name=f\n...").unwrap();
    found.notes.push(format!("{:?}", RdbItem::Function(b"#!lua name=f\n...")));
    for db in 0..2u64 {
        let sizes = DatabaseSizes { keys: 60, expiring: 20 };
        writer.database(db, sizes).unwrap();
        writer.slot(db + 700, sizes).unwrap();
        found.notes.push(format!("{:?}", RdbItem::Database(db)));
        found.notes.push(format!("{:?}", RdbItem::Sizes(sizes)));
        found.notes.push(format!("{:?}", RdbItem::Slot(db + 700, sizes)));
        for round in 0..60u64 {
            let name = keyspace.add(round % 6);
            let attributes = Attributes {
                expires_at: round.is_multiple_of(3).then_some(1_700_000_000_000 + round as i64),
                idle_seconds: round.is_multiple_of(4).then_some(round * 1000),
                frequency: round.is_multiple_of(5).then_some(round as u8),
            };
            keyspace.look(&name, |stored| writer.key(stored, attributes).unwrap());
            let contents = keyspace.look(&name, contents);
            found.keys.insert(name, (attributes, contents));
        }
    }
    let written = writer.written();
    let file = writer.finish().unwrap();
    assert_eq!(file.len() as u64, written + 9);
    (file, found)
}

/// Provides bytes in blocks of one length.
pub struct Blocks<'a>(pub std::slice::Chunks<'a, u8>, pub &'a [u8]);

impl ByteSource for Blocks<'_> {
    fn block(&self) -> &[u8] {
        self.1
    }

    fn advance(&mut self) -> std::io::Result<()> {
        self.1 = self.0.next().unwrap_or_default();
        Ok(())
    }
}

#[test]
fn a_file_is_read_back_in_blocks_of_any_length() {
    for seed in 0..6 {
        let options =
            Options { compress: seed % 2 == 0, checksum: seed % 3 > 0, ..Options::default() };
        let (file, wanted) = sample(seed, options);
        assert!(file.starts_with(b"REDIS0012"));
        for block_bytes in [7, 100, 4096, 1 << 20] {
            let blocks = Blocks(file.chunks(block_bytes), &[]);
            assert_eq!(read(blocks, true, Values::Read).unwrap(), wanted);
            let blocks = Blocks(file.chunks(block_bytes), &[]);
            assert_eq!(read(blocks, true, Values::Copy).unwrap(), wanted);
        }
        let skipped = read(&file[..], true, Values::Skip).unwrap();
        assert!(skipped.keys.keys().eq(wanted.keys.keys()));
        assert_eq!(skipped.notes, wanted.notes);
        let mut reader = RdbReader::new(&file[..], true).unwrap();
        while reader.item().unwrap() != RdbItem::End {}
        assert_eq!(reader.offset(), file.len() as u64);
        let (source, at) = reader.into_source();
        assert_eq!(source[at..], *b"");
    }
}

#[test]
fn a_cut_or_changed_file_is_refused() {
    let (file, _) = sample(1, Options::default());
    for len in (0..file.len()).step_by(41).chain([9, file.len() - 1]) {
        assert!(read(&file[..len], false, Values::Skip).is_err(), "{len} bytes");
    }
    let mut random = Random::new(1);
    for _ in 0..600 {
        let mut changed = file.clone();
        let at = random.below(file.len() as u64) as usize;
        changed[at] ^= 1 << random.below(8);
        let result = read(&changed[..], true, Values::Read);
        assert!(result.is_err(), "byte {at}: {result:?}");
    }
    let mut changed = file.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(matches!(read(&changed[..], true, Values::Skip), Err(Error::Checksum { .. })));
    assert!(read(&changed[..], false, Values::Skip).is_ok());
    // Bytes after the end are not read.
    let longer = [&file[..], b"*1\r\n"].concat();
    let mut reader = RdbReader::new(&longer[..], true).unwrap();
    while reader.item().unwrap() != RdbItem::End {}
    let (source, at) = reader.into_source();
    assert_eq!(source[at..], *b"*1\r\n");
}

#[test]
fn a_file_whose_fields_do_not_expire_is_of_the_version_that_valkey_reads() {
    let mut keyspace = Keyspace::new(3);
    let mut types = [BTreeSet::new(), BTreeSet::new()];
    let mut wanted = BTreeMap::new();
    let mut writers = [false, true].map(|fields_expire| {
        RdbWriter::new(Vec::new(), Options { fields_expire, ..Options::default() }).unwrap()
    });
    for round in 0..300u64 {
        let name = keyspace.add(round % 6);
        // A small hash whose fields had expiries once has another form.
        keyspace.persist_fields(&name);
        for writer in &mut writers {
            keyspace.look(&name, |stored| writer.key(stored, Attributes::default()).unwrap());
        }
        wanted.insert(name.clone(), keyspace.look(&name, contents));
    }
    for (writer, types) in writers.into_iter().zip(&mut types) {
        let file = writer.finish().unwrap();
        let found = read(&file[..], true, Values::Read).unwrap();
        let found: BTreeMap<_, _> = found.keys.into_iter().map(|(key, it)| (key, it.1)).collect();
        assert_eq!(found, wanted);
        let mut reader = RdbReader::new(&file[..], true).unwrap();
        types.insert(u16::from(file.starts_with(b"REDIS0012")));
        assert!(file.starts_with(format!("REDIS{:04}", reader.version()).as_bytes()));
        loop {
            match reader.item().unwrap() {
                RdbItem::Key(head) => types.insert(u16::from(head.value_type.number()) + 100),
                RdbItem::End => break,
                _ => true,
            };
        }
    }
    let [eleven, twelve] = types;
    assert!(eleven.contains(&0) && *eleven.last().unwrap() == 121, "{eleven:?}");
    assert!(twelve.contains(&1) && *twelve.last().unwrap() == 125, "{twelve:?}");
}

#[test]
fn a_file_without_a_checksum_has_zeros_instead() {
    let (file, wanted) = sample(2, Options { checksum: false, ..Options::default() });
    assert!(file.ends_with(&[0xff, 0, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(read(&file[..], true, Values::Read).unwrap(), wanted);
    let (file, _) = sample(2, Options::default());
    let (all, sum) = file.split_at(file.len() - 8);
    assert_eq!(sum, crc64::checksum(all).to_le_bytes());
}

/// A file of these parts; the checksum is 0.
fn file(magic: &str, parts: &[&[u8]]) -> Vec<u8> {
    let mut file = magic.as_bytes().to_vec();
    parts.iter().for_each(|part| file.extend_from_slice(part));
    file
}

const END: &[u8] = b"\xff\0\0\0\0\0\0\0\0";

fn check(magic: &str, parts: &[&[u8]], notes: &[&str], keys: &[(&str, Attributes, &[&str])]) {
    let file = file(magic, parts);
    let found = read(&file[..], true, Values::Read).unwrap_or_else(|e| panic!("{magic}: {e}"));
    assert_eq!(found.notes, notes, "{magic}");
    let wanted = keys.iter().map(|(key, attributes, contents)| {
        let contents = contents.iter().map(|text| text.to_string()).collect();
        (key.as_bytes().to_vec(), (*attributes, contents))
    });
    assert_eq!(found.keys, wanted.collect(), "{magic}");
}

const NONE: Attributes = Attributes { expires_at: None, idle_seconds: None, frequency: None };

#[test]
fn files_of_the_first_versions_are_read() {
    let soon = Attributes { expires_at: Some(1_300_000_000_000), ..NONE };
    let parts: &[&[u8]] = &[
        b"\xfe\x03",
        b"\x00\x01a\x02hi",
        b"\xfd\x00\x6d\x7c\x4d\x00\x01b\xc0\x07",
        b"\x09\x01h\x07\x01\x01f\x01\x00v\xff",
        b"\xff",
    ];
    let keys: &[(&str, Attributes, &[&str])] =
        &[("a", NONE, &["hi 2"]), ("b", soon, &["7 1"]), ("h", NONE, &["f 1 v 1 None"])];
    check("REDIS0001", parts, &["Database(3)"], keys);
    check("REDIS0004", parts, &["Database(3)"], keys);
    // From version 5 on, a checksum is expected.
    assert!(matches!(read(&file("REDIS0005", parts)[..], true, Values::Read), Err(Error::End)));
}

#[test]
fn opcodes_of_later_versions_are_read() {
    let attributes =
        Attributes { expires_at: Some(0x0102_0304), idle_seconds: Some(70), frequency: None };
    let parts: &[&[u8]] = &[
        b"\xfa\x04ctim\xc0\x05",
        b"\xf7\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x02\x01\x05\x03abc\x00",
        b"\xf5\x01x",
        b"\xf6\x01n\x03lua\x01\x04desc\x04code",
        b"\xfe\x00\xfb\x02\x01\xf4\x05\x01\x00",
        b"\xfc\x04\x03\x02\x01\0\0\0\0\xf8\x40\x46\x00\x01a\x02hi",
        // A value of a module, and a list without elements.
        b"\x07\x01m\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x01\x40\x05\x00",
        b"\x01\x01e\x00",
        b"\x16\x01h\x01\x00\x01f\x01v",
        END,
    ];
    let notes = [
        "Aux([99, 116, 105, 109], [53])",
        &format!("{:?}", RdbItem::Skipped(Skipped::ModuleAux(ModuleId(0xb5eb_2dfa_dca9_7803)))),
        "Function([120])",
        &format!("{:?}", RdbItem::Function(b"#!lua name=n\ncode")),
        "Database(0)",
        "Sizes(DatabaseSizes { keys: 2, expiring: 1 })",
        "Slot(5, DatabaseSizes { keys: 1, expiring: 0 })",
        "skipped",
        "skipped",
    ];
    let found = read(&file("REDIS0012", parts)[..], true, Values::Read).unwrap();
    assert_eq!(found.notes, notes);
    assert_eq!(found.keys[&b"a"[..]], (attributes, vec!["hi 2".to_owned()]));
    assert_eq!(found.keys[&b"h"[..]].1, ["f 1 v 1 None"]);
    let skipped = read(&file("REDIS0012", parts)[..], true, Values::Skip).unwrap();
    assert_eq!(skipped.keys.len(), 4);
}

#[test]
fn attributes_are_those_of_the_next_key_whatever_is_between() {
    const EXPIRY: &[u8] = b"\xfc\x04\x03\x02\x01\0\0\0\0";
    let own = Attributes { expires_at: Some(0x0102_0304), ..NONE };
    let attributes: &[(&[u8], Attributes)] = &[
        (EXPIRY, own),
        (b"\xfd\x07\0\0\0", Attributes { expires_at: Some(7000), ..NONE }),
        (b"\xf8\x05", Attributes { idle_seconds: Some(5), ..NONE }),
        (b"\xf9\x06", Attributes { frequency: Some(6), ..NONE }),
    ];
    let opcodes: &[&[u8]] = &[
        // KeyDB writes its version of a key there.
        b"\xfa\x0bmvcc-tstamp\x011",
        b"\xfe\x00",
        b"\xfb\x01\x01",
        b"\xf4\x05\x01\x01",
        b"\xf5\x01x",
        b"\xf6\x01n\x03lua\x00\x04code",
        b"\xf7\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x02\x01\x00",
    ];
    for (bytes, wanted) in attributes {
        for opcode in opcodes {
            let parts: [&[u8]; 5] = [bytes, opcode, b"\x00\x01a\x02hi", b"\x00\x01b\x02ho", END];
            let found = read(&file("REDIS0011", &parts)[..], true, Values::Read).unwrap();
            let keys = found.keys.iter().map(|(key, (found, _))| (&key[..], *found));
            let wanted = [(&b"a"[..], *wanted), (&b"b"[..], NONE)];
            assert!(keys.eq(wanted), "{bytes:?} {opcode:?}: {:?}", found.keys);
        }
    }
    // They end with their key, also when its value is left out.
    let module = b"\x07\x01m\x81\xb5\xeb\x2d\xfa\xdc\xa9\x78\x03\x00";
    for left_out in [&b"\x01\x01e\x00"[..], module] {
        let parts: [&[u8]; 4] = [EXPIRY, left_out, b"\x00\x01a\x02hi", END];
        check("REDIS0011", &parts, &["skipped"], &[("a", NONE, &["hi 2"])]);
    }
}

#[test]
fn files_of_valkey_are_read() {
    let parts: &[&[u8]] = &[
        b"\xf3\x02ab\x02\x00\x05\x07\x09",
        b"\x16\x01h\x01\x01f\x01v\x10\x27\0\0\0\0\0\0",
        b"\xf9\x07\x00\x01a\x00",
        END,
    ];
    let often = Attributes { frequency: Some(7), ..NONE };
    check(
        "VALKEY080",
        parts,
        &["Skipped(SlotImport)"],
        &[("h", NONE, &["f 1 v 1 Some(10000)"]), ("a", often, &[" 0"])],
    );
    // In files of Redis, the numbers have other meanings.
    assert!(read(&file("REDIS0012", parts)[..], true, Values::Read).is_err());
    let reader =
        RdbReader::new(&file("VALKEY080", parts)[..], true).map(|reader| reader.is_valkey());
    assert!(reader.unwrap());
}

#[test]
fn unsupported_versions_and_types_are_refused() {
    for magic in ["REDIS0000", "REDIS0013", "REDIS0080", "VALKEY011", "VALKEY079", "VALKEY081"] {
        let result = RdbReader::new(magic.as_bytes(), true).map(|_| ());
        assert!(matches!(result, Err(Error::Version(Some(_)))), "{magic}");
    }
    for magic in
        ["REDIS00x1", "REDIX0001", "VALKEY08:", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}"]
    {
        let result = RdbReader::new(magic.as_bytes(), true).map(|_| ());
        assert!(matches!(result, Err(Error::Version(None))), "{magic}");
    }
    assert!(matches!(RdbReader::new(&b"REDIS001"[..], true).map(|_| ()), Err(Error::End)));
    let faults: &[&[u8]] = &[b"\x06\x01k", b"\x08\x01k", b"\x1a\x01k", b"\xf3\x01k", b"\xf2"];
    for fault in faults {
        let result = read(&file("REDIS0012", &[fault])[..], true, Values::Read);
        assert!(matches!(result, Err(Error::UnknownType(_))), "{fault:?}: {result:?}");
    }
}

#[test]
fn damaged_files_are_refused_or_read() {
    let (mut refused, mut read_whole) = (0, 0);
    for seed in 0..4 {
        let plain = Options { compress: false, checksum: false, ..Options::default() };
        let (sample, _) = sample(seed, plain);
        // The beginning, which has few long values.
        let file: Vec<u8> = sample.into_iter().take(20_000).collect();
        let mut random = Random::new(seed);
        for _ in 0..1500 {
            let start = random.below(file.len() as u64 / 2) as usize;
            let mut damaged = [b"REDIS0012", &file[9..][..start.min(3000)], END].concat();
            damage(&mut damaged, &file, &mut random);
            for values in [Values::Read, Values::Copy, Values::Skip] {
                match read(&damaged[..], false, values) {
                    Ok(_) => read_whole += 1,
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 1000, "{refused} refused, {read_whole} read");
}
