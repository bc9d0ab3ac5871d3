//! Append-only files of Redis and Valkey are read, and they load and continue those that are
//! written here. Their checkers find no fault.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use base::hash::KeyHasher;
use base::random::Random;
use persist::ByteSink;
use persist::aof::{
    Aof, AofBatch, AofItem, AofNames, AofReader, BaseFormat, Cut, FileOrder, push_command,
};
use persist::check::check_directory;
use persist::disk::{Disk, DiskFile, FileSource};
use persist::rdb::{self, ValueDecoder};
use store::{Db, EncodingLimits, Lookup, StringValue, Turn};
use test_support::Value;

use crate::peer::Peer;
use crate::programs;
use crate::real_disk::{RealDisk, RealFile};

/// Strings by database and key.
type Data = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

fn names() -> AofNames {
    AofNames { directory: PathBuf::from("appendonlydir"), file: b"appendonly.aof".to_vec() }
}

/// Loads the files of a folder, which must be complete, and repairs the last one.
fn load(disk: &RealDisk, aof: &Aof<RealDisk>) -> Data {
    let mut data = Data::new();
    for file in aof.load_files().unwrap() {
        let mut from = 0;
        if file.begins_with_rdb().unwrap() {
            from = load_rdb(file.file.clone(), &mut data);
        }
        let mut reader = AofReader::new(file.file, from, file.order).unwrap();
        let (mut db, mut queued) = (0, None);
        let end = loop {
            match reader.item().unwrap() {
                AofItem::End(end) => break end,
                AofItem::Timestamp(_) => {}
                AofItem::Command { args, .. } => {
                    match args.name().to_ascii_uppercase().as_slice() {
                        b"SELECT" => db = String::from_utf8_lossy(args.text(1)).parse().unwrap(),
                        b"MULTI" => queued = Some(Vec::new()),
                        b"EXEC" => data.extend(queued.take().unwrap()),
                        b"SET" => {
                            let set = ((db, args.text(1).to_vec()), args.text(2).to_vec());
                            match &mut queued {
                                Some(queued) => queued.push(set),
                                None => drop(data.insert(set.0, set.1)),
                            }
                        }
                        other => panic!("{}", String::from_utf8_lossy(other)),
                    }
                }
            }
        };
        if let Some(repair) = end.repair {
            assert_eq!(file.order, FileOrder::Last);
            repair.apply(&disk.open_to_append(&file.path).unwrap()).unwrap();
        }
    }
    data
}

fn load_rdb(file: RealFile, data: &mut Data) -> u64 {
    let limits = EncodingLimits::default();
    let mut decoder = ValueDecoder::new(&limits, KeyHasher::new(1));
    let mut reader = rdb::RdbReader::new(FileSource::new(file, 0).unwrap(), true).unwrap();
    let mut db = 0;
    loop {
        match reader.item().unwrap() {
            rdb::RdbItem::Database(number) => db = number,
            rdb::RdbItem::Key(head) => {
                let key = head.key.to_vec();
                let record = reader.record(&mut decoder, 0).unwrap();
                let (mut turn, mut keys) = (Turn::alone(KeyHasher::new(1)), Db::default());
                let place = turn.key(&key);
                keys.insert(&mut turn, place, record);
                let stored = keys.lookup(&mut turn, place, Lookup::Quiet).unwrap();
                let value = stored.view::<StringValue>().unwrap();
                let text = value.bytes(&mut Default::default()).to_vec();
                data.insert((db, key), text);
            }
            rdb::RdbItem::End => return reader.offset(),
            _ => {}
        }
    }
}

/// Sets keys, some in transactions.
fn fill(peer: &mut Peer, data: &mut Data, random: &mut Random, writes: u64) {
    for _ in 0..writes {
        let (db, key) = (random.below(3), format!("key:{}", random.below(300)).into_bytes());
        let len = [0, 3, 100, 3000][random.below(4) as usize];
        let value: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        peer.ask(&[b"SELECT", db.to_string().as_bytes()]);
        let is_exec = random.below(5) == 0;
        if is_exec {
            peer.ask(&[b"MULTI"]);
        }
        peer.ask(&[b"SET", &key, &value]);
        if is_exec {
            peer.ask(&[b"SET", b"last", &key]);
            peer.ask(&[b"EXEC"]);
            data.insert((db, b"last".to_vec()), key.clone());
        }
        data.insert((db, key), value);
    }
}

fn check_data(peer: &mut Peer, data: &Data) {
    for db in 0..3 {
        peer.ask(&[b"SELECT", db.to_string().as_bytes()]);
        let keys = data.keys().filter(|(of, _)| *of == db).count();
        assert_eq!(peer.ask(&[b"DBSIZE"]), Value::number(keys as i64));
    }
    for ((db, key), value) in data {
        peer.ask(&[b"SELECT", db.to_string().as_bytes()]);
        assert!(peer.ask(&[b"GET", key]) == Value::bulk(value), "{db} {key:?}");
    }
}

fn wait_for_rewrite(peer: &mut Peer) {
    loop {
        let info = peer.ask(&[b"INFO", b"persistence"]).text();
        if info.contains("aof_rewrite_in_progress:0") && info.contains("rewrite_scheduled:0") {
            assert!(info.contains("aof_last_bgrewrite_status:ok"));
            return;
        }
    }
}

/// Runs the checker of a peer, if it is next to the server.
fn check_with(program: &Path, folder: &Path) {
    let name = program.file_name().unwrap().to_str().unwrap().replace("server", "check-aof");
    let checker = program.with_file_name(name);
    if checker.exists() {
        let manifest = folder.join("appendonlydir/appendonly.aof.manifest");
        let output = Command::new(checker).arg(manifest).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("are valid"), "{said}");
    }
}

const ARGS: [&str; 8] = [
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--aof-use-rdb-preamble",
    "yes",
    "--aof-timestamp-enabled",
    "no",
];

fn args(preamble: bool, timestamps: bool) -> [&'static str; 8] {
    let word = |on: bool| if on { "yes" } else { "no" };
    let mut args = ARGS;
    args[5] = word(preamble);
    args[7] = word(timestamps);
    args
}

#[test]
fn append_only_files_of_peers_are_read_and_continued() {
    for (seed, program) in programs().iter().enumerate() {
        for (preamble, timestamps) in [(true, false), (false, true), (true, true)] {
            let folder = tempfile::tempdir().unwrap();
            let mut random = Random::new(seed as u64);
            let args = args(preamble, timestamps);
            let mut peer = Peer::start_with(program, folder.path(), &args);
            let mut data = Data::new();
            fill(&mut peer, &mut data, &mut random, 200);
            peer.ask(&[b"BGREWRITEAOF"]);
            fill(&mut peer, &mut data, &mut random, 200);
            wait_for_rewrite(&mut peer);
            fill(&mut peer, &mut data, &mut random, 100);
            peer.kill();

            let disk = RealDisk(folder.path().to_owned());
            let report = check_directory(&disk, &names()).unwrap();
            assert_eq!(report.files.len(), 2);
            assert!(report.files.iter().all(|(_, report)| report.is_whole()));
            let mut aof = Aof::open(disk.clone(), names()).unwrap();
            assert!(load(&disk, &aof) == data);
            // The file is continued here with checksums, and then by the peer.
            aof.resume(1000).unwrap();
            append(&mut aof, &mut data, 1000);
            aof.close().unwrap();
            check_with(program, folder.path());
            let mut peer = Peer::start_with(program, folder.path(), &args);
            check_data(&mut peer, &data);
            fill(&mut peer, &mut data, &mut random, 50);
            peer.kill();
            let aof = Aof::open(disk.clone(), names()).unwrap();
            assert!(load(&disk, &aof) == data);
        }
    }
}

/// Appends some batches after a position.
fn append(aof: &mut Aof<RealDisk>, data: &mut Data, position: u64) {
    let mut end = position;
    for batch in 0..20u64 {
        let mut bytes = Vec::new();
        push_command(&mut bytes, &[b"SELECT", b"1"]);
        for key in 0..=batch % 3 {
            let key = format!("own:{}", batch * 7 + key).into_bytes();
            let value = vec![b'#'; (batch * 100) as usize];
            if batch % 4 == 0 {
                push_command(&mut bytes, &[b"MULTI"]);
            }
            push_command(&mut bytes, &[b"SET", &key, &value]);
            if batch % 4 == 0 {
                push_command(&mut bytes, &[b"EXEC"]);
            }
            data.insert((1, key), value);
        }
        end += bytes.len() as u64;
        let unix_seconds = Some(1_700_000_000 + batch as i64 / 2);
        aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds }).unwrap();
    }
    aof.sync().unwrap();
}

#[test]
fn append_only_files_from_here_are_loaded_by_peers() {
    for program in programs() {
        for format in [BaseFormat::Rdb, BaseFormat::Commands] {
            let folder = tempfile::tempdir().unwrap();
            let disk = RealDisk(folder.path().to_owned());
            let mut aof = Aof::open(disk.clone(), names()).unwrap();
            let mut data = Data::new();
            let cut = Cut { position: 0, database: 1 };
            let mut base = aof.begin_rewrite(cut, format).unwrap();
            match format {
                BaseFormat::Rdb => {
                    base.sink().put(b"REDIS0011\xfe\x00\xfb\x01\x00\x00\x01a\x02hi\xff").unwrap();
                    base.sink().put(&[0; 8]).unwrap();
                }
                BaseFormat::Commands => {
                    let mut bytes = Vec::new();
                    push_command(&mut bytes, &[b"SET", b"a", b"hi"]);
                    base.commands(&bytes, Some(1_700_000_000)).unwrap();
                }
            }
            data.insert((0, b"a".to_vec()), b"hi".to_vec());
            append(&mut aof, &mut data, 0);
            aof.finish_rewrite(base.finish().unwrap()).unwrap();
            append(&mut aof, &mut data, 50_000);

            // A batch that is cut, and has an early end after its repair.
            let mut bytes = Vec::new();
            push_command(&mut bytes, &[b"SET", b"kept", b"1"]);
            push_command(&mut bytes, &[b"SET", b"lost", b"1"]);
            let batch = AofBatch { parts: [&bytes, &[]], end: 100_000, unix_seconds: None };
            aof.append(&batch).unwrap();
            drop(aof);
            let path = names().path(b"appendonly.aof.1.incr.aof");
            let file = disk.open_to_append(&path).unwrap();
            file.truncate(file.len().unwrap() - 3).unwrap();
            data.insert((1, b"kept".to_vec()), b"1".to_vec());
            let mut aof = Aof::open(disk.clone(), names()).unwrap();
            assert!(load(&disk, &aof) == data);
            aof.resume(99_999).unwrap();
            append(&mut aof, &mut data, 99_999);
            aof.close().unwrap();
            let report = check_directory(&disk, &names()).unwrap();
            assert!(report.files.iter().all(|(_, report)| report.is_whole()));
            assert_eq!(report.files[1].1.unsealed, 0);

            check_with(&program, folder.path());
            let mut peer = Peer::start_with(&program, folder.path(), &ARGS);
            check_data(&mut peer, &data);
        }
    }
}

#[test]
fn a_single_file_of_a_peer_with_an_rdb_file_in_it_becomes_the_base() {
    for program in programs() {
        let folder = tempfile::tempdir().unwrap();
        let mut peer = Peer::start(&program, folder.path());
        let mut data = Data::new();
        fill(&mut peer, &mut data, &mut Random::new(3), 200);
        assert_eq!(peer.ask(&[b"SAVE"]), Value::simple("OK"));
        peer.kill();
        let mut old = std::fs::read(folder.path().join("dump.rdb")).unwrap();
        push_command(&mut old, &[b"SELECT", b"2"]);
        push_command(&mut old, &[b"SET", b"tail", b"1"]);
        let whole = old.len();
        push_command(&mut old, &[b"SET", b"cut", b"1"]);
        data.insert((2, b"tail".to_vec()), b"1".to_vec());
        let disk = RealDisk(folder.path().to_owned());
        std::fs::write(folder.path().join("appendonly.aof"), &old[..whole + 9]).unwrap();
        let mut aof = Aof::open(disk.clone(), names()).unwrap();
        assert!(aof.upgrade_single_file().unwrap());
        assert!(load(&disk, &aof) == data);
        aof.resume(0).unwrap();
        append(&mut aof, &mut data, 0);
        aof.close().unwrap();
        let mut peer = Peer::start_with(&program, folder.path(), &ARGS);
        check_data(&mut peer, &data);
    }
}
