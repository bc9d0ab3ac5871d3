//! RDB files of Redis and Valkey are read and written again, and the servers load the result.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod aof;
mod peer;
mod real_disk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base::hash::KeyHasher;
use base::random::Random;
use ds::Record;
use peer::Peer;
use persist::rdb::encode::Options;
use persist::rdb::reader::{Attributes, DatabaseSizes, KeyHead};
use persist::rdb::{RdbItem, RdbReader, RdbWriter, ValueDecoder, ValueType};
use store::{Db, EncodingLimits, HashValue, Lookup, Object, Turn};
use test_support::{PeerServer, Value};

/// How many keys each database gets.
const KEYS: u64 = 400;
const DATABASES: u64 = 2;

/// The programs that exist.
fn programs() -> Vec<PathBuf> {
    PeerServer::ALL.into_iter().filter_map(PeerServer::program).collect()
}

/// A random text. Its kinds have different encodings.
fn text(random: &mut Random) -> Vec<u8> {
    let len = [0, 1, 5, 12, 30, 64, 65, 300][random.below(8) as usize];
    match random.below(4) {
        0 => ((random.next_u64() as i64) >> random.below(64)).to_string().into_bytes(),
        1 => vec![b'x'; len * (1 + 99 * usize::from(random.below(20) == 0))],
        2 => (0..len).map(|_| random.next_u64() as u8).collect(),
        _ => (0..len).map(|_| b'a' + random.below(4) as u8).collect(),
    }
}

/// Fills the selected database with values of all types and forms.
fn fill(peer: &mut Peer, random: &mut Random, fields_expire: bool) {
    for number in 0..KEYS {
        let key = format!("key:{number}").into_bytes();
        let len = [1, 3, 20, 150, 700][random.below(5) as usize];
        for index in 0..1 + random.below(len) {
            let (a, b) = (text(random), text(random));
            let id = format!("{}-{index}", 1000 + index / 3);
            let score = (random.below(1000) as f64 / 8.0).to_string();
            let int = (random.next_u64() as i32 >> random.below(30)).to_string();
            let request: Vec<&[u8]> = match number % 7 {
                0 => vec![b"SET", &key, &a],
                1 => vec![b"RPUSH", &key, &a],
                2 => vec![b"SADD", &key, &a],
                3 => vec![b"SADD", &key, int.as_bytes()],
                4 => vec![b"ZADD", &key, score.as_bytes(), &a],
                5 => vec![b"HSET", &key, &a, &b],
                _ => vec![b"XADD", &key, id.as_bytes(), b"field", &a],
            };
            peer.ask(&request);
            if fields_expire && number % 7 == 5 && random.below(3) == 0 {
                let at = (2_000_000_000_000 + random.below(1 << 30)).to_string();
                peer.ask(&[b"HPEXPIREAT", &key, at.as_bytes(), b"FIELDS", b"1", &a]);
            }
        }
        if number % 7 == 6 {
            peer.ask(&[b"XDEL", &key, b"1000-1"]);
            peer.ask(&[b"XGROUP", b"CREATE", &key, b"group", b"0"]);
            let read = ["XREADGROUP", "GROUP", "group", "a", "COUNT", "3", "STREAMS"];
            let mut read: Vec<&[u8]> = read.iter().map(|word| word.as_bytes()).collect();
            read.extend([&key[..], b">"]);
            peer.ask(&read);
        }
        if random.below(3) == 0 {
            let at = (2_000_000_000_000 + random.below(1 << 30)).to_string();
            peer.ask(&[b"PEXPIREAT", &key, at.as_bytes()]);
        }
    }
}

/// A key of a file, with its decoded value and the value's bytes.
struct Key {
    db: u64,
    name: Vec<u8>,
    attributes: Attributes,
    value_type: ValueType,
    bytes: Vec<u8>,
    record: Record<Object>,
}

fn read(path: &Path) -> Vec<Key> {
    let file = std::fs::read(path).unwrap();
    let limits = EncodingLimits { hash_max_listpack_entries: 128, ..EncodingLimits::default() };
    let mut decoder = ValueDecoder::new(&limits, KeyHasher::new(1));
    // One reader decodes the values, the other copies their bytes.
    let mut twice = [&file[..], &file[..]].map(|file| RdbReader::new(file, true).unwrap());
    let [one, two] = &mut twice;
    let (mut keys, mut db) = (Vec::new(), 0);
    loop {
        let head = match (one.item().unwrap(), two.item().unwrap()) {
            (RdbItem::End, RdbItem::End) => return keys,
            (RdbItem::Database(number), _) => {
                db = number;
                continue;
            }
            (RdbItem::Key(KeyHead { key, value_type, attributes }), _) => {
                (key.to_vec(), value_type, attributes)
            }
            (other, again) => {
                assert_eq!(other, again);
                continue;
            }
        };
        let (name, value_type, attributes) = head;
        let record = one.record(&mut decoder, 0).unwrap_or_else(|e| panic!("{name:?}: {e}"));
        let mut bytes = Vec::new();
        two.copy_value(&mut bytes).unwrap();
        keys.push(Key { db, name, attributes, value_type, bytes, record });
    }
}

/// Writes all keys, or only those that Valkey can read.
fn write(keys: Vec<Key>, for_valkey: bool, path: &Path) -> usize {
    let writer =
        RdbWriter::new(Vec::new(), Options { fields_expire: !for_valkey, ..Options::default() });
    let mut writer = writer.unwrap();
    let mut turn = Turn::alone(KeyHasher::new(1));
    let mut by_db: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
    keys.into_iter().for_each(|key| by_db.entry(key.db).or_default().push(key));
    let mut written = 0;
    for (number, keys) in by_db {
        let sizes = DatabaseSizes { keys: keys.len() as u64, expiring: 0 };
        writer.database(number, sizes).unwrap();
        let mut db = Db::default();
        for key in keys {
            let place = turn.key(&key.name);
            db.insert(&mut turn, place, key.record);
            let stored = db.lookup(&mut turn, place, Lookup::Quiet).unwrap();
            let foreign = persist::rdb::encode::value_type(stored).number() >= 22;
            if !(for_valkey && foreign) {
                writer.key(stored, key.attributes).unwrap();
                written += 1;
            }
        }
    }
    std::fs::write(path, writer.finish().unwrap()).unwrap();
    written
}

/// Checks the expiries of hash fields against the server's.
fn check_fields(peer: &mut Peer, keys: Vec<Key>) {
    let mut turn = Turn::alone(KeyHasher::new(1));
    for key in keys.into_iter().filter(|key| key.value_type.number() >= 22) {
        peer.ask(&[b"SELECT", key.db.to_string().as_bytes()]);
        let (mut db, place) = (Db::default(), turn.key(&key.name));
        db.insert(&mut turn, place, key.record);
        let stored = db.lookup(&mut turn, place, Lookup::Quiet).unwrap();
        for (field, value) in stored.view::<HashValue>().unwrap() {
            let field = field.to_vec();
            let at = peer.ask(&[b"HPEXPIRETIME", &key.name, b"FIELDS", b"1", &field]);
            let wanted = Value::number(value.expires_at.unwrap_or(-1));
            assert_eq!(at, Value::array(vec![wanted]));
            let text = peer.ask(&[b"HGET", &key.name, &field]);
            assert_eq!(text, Value::bulk(value.entry.to_vec()));
        }
    }
}

fn digests(peer: &mut Peer, keys: &[(u64, Vec<u8>)]) -> Vec<Value> {
    let mut all = Vec::new();
    for (db, key) in keys {
        peer.ask(&[b"SELECT", db.to_string().as_bytes()]);
        all.push(peer.ask(&[b"DEBUG", b"DIGEST-VALUE", key]));
        all.push(peer.ask(&[b"TYPE", key]));
        all.push(peer.ask(&[b"PEXPIRETIME", key]));
    }
    all
}

#[test]
fn files_of_peers_are_read_and_they_load_what_is_written_of_them() {
    for (seed, source) in programs().iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let mut peer = Peer::start(source, folder.path());
        let mut random = Random::new(seed as u64);
        for db in 0..DATABASES {
            peer.ask(&[b"SELECT", db.to_string().as_bytes()]);
            fill(&mut peer, &mut random, true);
        }
        assert_eq!(peer.ask(&[b"SAVE"]), Value::simple("OK"));
        let path = folder.path().join("dump.rdb");
        let keys = read(&path);
        assert!(keys.len() as u64 > DATABASES * KEYS * 9 / 10, "{} keys", keys.len());
        for key in &keys {
            peer.ask(&[b"SELECT", key.db.to_string().as_bytes()]);
            let payload = peer.ask(&[b"DUMP", &key.name]).bytes().unwrap().to_vec();
            let content = [&[key.value_type.number()], &key.bytes[..]].concat();
            assert_eq!(payload[..payload.len() - 10], content, "{:?}", key.name);
            let at = peer.ask(&[b"PEXPIRETIME", &key.name]);
            assert_eq!(at, Value::number(key.attributes.expires_at.unwrap_or(-1)));
        }
        let types: BTreeSet<u8> = keys.iter().map(|key| key.value_type.number()).collect();
        let both = [0, 2, 4, 5, 11, 16, 17, 18, 20, 21];
        let expiring: &[u8] = if source.ends_with("valkey-server") { &[22] } else { &[24, 25] };
        assert_eq!(types, both.iter().chain(expiring).copied().collect());
        check_fields(&mut peer, keys);
        for target in programs() {
            let (own, other) = (source == &target, tempfile::tempdir().unwrap());
            let for_valkey = target.ends_with("valkey-server");
            let mut keys = read(&path);
            if !own || for_valkey {
                // The two servers compute different digests of hashes with expiring fields.
                keys.retain(|key| key.value_type.number() < 22);
            }
            let names: Vec<_> = keys.iter().map(|key| (key.db, key.name.clone())).collect();
            let written = write(keys, for_valkey, &other.path().join("dump.rdb"));
            assert_eq!(written, names.len());
            let mut loaded = Peer::start(&target, other.path());
            assert_eq!(digests(&mut loaded, &names), digests(&mut peer, &names));
        }
    }
}
