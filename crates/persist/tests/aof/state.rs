//! The states of an append-only file: the names in the manifest, upgrades, closing, and refused
//! calls.

use std::io::ErrorKind;
use std::path::Path;

use base::random::Random;
use persist::ByteSink;
use persist::aof::{Aof, AofBatch, AofError, AofFix, BaseFormat, Cut, FileOrder, LoadFile};
use persist::check::check_directory;
use persist::disk::{Disk, DiskFile, DiskOperation, FileSink};

use crate::log::{Driver, bytes, check_prefix, names, position};
use crate::simulated_disk::{Failure, SimulatedDisk, SimulatedFile};
use crate::view::plain;

const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

fn manifest(disk: &SimulatedDisk) -> String {
    let text = String::from_utf8(disk.read(MANIFEST)).unwrap();
    let seal = text.find(" checksum ").unwrap();
    text[..seal].to_owned() + &text[seal + " checksum ".len() + 16..]
}

fn append(aof: &mut Aof<SimulatedDisk>, writes: std::ops::RangeInclusive<u64>) {
    let end = position(*writes.end());
    let all: Vec<u8> = writes.flat_map(bytes).collect();
    aof.append(&AofBatch { parts: [&all, &[]], end, unix_seconds: None }).unwrap();
}

/// An append-only file whose base has the first writes.
fn with_base(writes: u64) -> (SimulatedDisk, Aof<SimulatedDisk>) {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    rewrite(&mut aof, writes);
    (disk, aof)
}

/// An append-only file with an empty base, and the path of its incremental file.
pub fn new_file() -> (SimulatedDisk, Aof<SimulatedDisk>, &'static str) {
    let (disk, aof) = with_base(0);
    (disk, aof, "appendonlydir/appendonly.aof.1.incr.aof")
}

/// Appends commands as a batch, and syncs them.
pub fn append_bytes(aof: &mut Aof<SimulatedDisk>, bytes: &[u8], unix_seconds: i64) {
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let end = aof.durable() + bytes.len() as u64;
    let batch = AofBatch { parts: [first, second], end, unix_seconds: Some(unix_seconds) };
    aof.append(&batch).unwrap();
    assert_eq!(aof.sync().unwrap(), end);
}

fn rewrite(aof: &mut Aof<SimulatedDisk>, writes: u64) {
    let cut = Cut { position: position(writes), database: 0 };
    let mut base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap();
    base.commands(&plain(writes), Some(5)).unwrap();
    let base = base.finish().unwrap();
    aof.finish_rewrite(base).unwrap();
}

#[test]
fn a_rewrite_replaces_the_files_before_it() {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    assert!(aof.needs_base() && !disk.has(MANIFEST));
    assert!(matches!(aof.resume(0), Err(AofError::NeedsBase)));
    let cut = Cut { position: 0, database: 0 };
    let mut base = aof.begin_rewrite(cut, BaseFormat::Rdb).unwrap();
    assert!(!disk.has(MANIFEST));
    base.sink().put(b"REDIS0012\xff\0\0\0\0\0\0\0\0").unwrap();
    append(&mut aof, 1..=2);
    assert_eq!(aof.sync().unwrap(), 0, "nothing is durable without a base");
    aof.finish_rewrite(base.finish().unwrap()).unwrap();
    assert_eq!(aof.durable(), position(2));
    let first = "file appendonly.aof.1.base.rdb seq 1 type b\n\
                 file appendonly.aof.1.incr.aof seq 1 type i startoffset 0\n";
    assert_eq!(manifest(&disk), first);

    append(&mut aof, 3..=3);
    let at = position(3);
    let base = aof.begin_rewrite(Cut { position: at, database: 3 }, BaseFormat::Commands).unwrap();
    assert_eq!(aof.durable(), at);
    let second = format!("file appendonly.aof.2.incr.aof seq 2 type i startoffset {at}\n");
    assert_eq!(manifest(&disk), format!("{first}{second}"));
    let again = aof.begin_rewrite(cut, BaseFormat::Commands);
    assert!(matches!(again, Err(AofError::Rewriting)));
    append(&mut aof, 4..=4);
    let written = disk.read("appendonlydir/appendonly.aof.2.incr.aof");
    let text = String::from_utf8_lossy(&written);
    assert!(text.contains("\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*3\r\n"), "{text}");
    aof.finish_rewrite(base.finish().unwrap()).unwrap();
    assert_eq!(
        manifest(&disk),
        format!(
            "file appendonly.aof.2.base.aof seq 2 type b\n\
             file appendonly.aof.1.base.rdb seq 1 type h\n\
             file appendonly.aof.1.incr.aof seq 1 type h startoffset 0\n{second}"
        )
    );
    aof.delete_history().unwrap();
    let files = disk.list(Path::new("appendonlydir")).unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    aof.close().unwrap();
    let end = position(4);
    assert!(manifest(&disk).ends_with(&format!("startoffset {at} endoffset {end}\n")));
    aof = Aof::open(disk.clone(), names()).unwrap();
    aof.resume(end).unwrap();
    assert!(manifest(&disk).ends_with(&format!("startoffset {at}\n")));
}

#[test]
fn an_aborted_rewrite_loses_no_commands() {
    let (disk, mut aof) = with_base(3);
    append(&mut aof, 4..=5);
    aof.begin_rewrite(Cut { position: position(5), database: 0 }, BaseFormat::Rdb).unwrap();
    append(&mut aof, 6..=7);
    aof.abort_rewrite();
    append(&mut aof, 8..=8);
    aof.sync().unwrap();
    let (_, loaded) = Driver::start(disk.after_kill()).unwrap();
    assert_eq!(check_prefix(&loaded, ""), 8);
    // The next rewrite retires the files that it leaves.
    rewrite(&mut aof, 8);
    aof.delete_history().unwrap();
    assert_eq!(disk.list(Path::new("appendonlydir")).unwrap().len(), 3);
}

#[test]
fn a_file_whose_sync_failed_is_not_written_again() {
    let (disk, mut aof) = with_base(2);
    append(&mut aof, 3..=3);
    let durable = aof.sync().unwrap();
    append(&mut aof, 4..=4);
    disk.fail(Failure::Once(disk.operations().len() as u64, ErrorKind::Other));
    assert!(matches!(aof.sync(), Err(AofError::Disk(_))) && aof.needs_base());
    let before = (manifest(&disk), disk.read("appendonlydir/appendonly.aof.1.incr.aof"));
    assert!(matches!(aof.sync(), Err(AofError::NeedsBase)));
    let batch = AofBatch { parts: [b"x", b""], end: position(5), unix_seconds: None };
    assert!(matches!(aof.append(&batch), Err(AofError::NeedsBase)));
    let cut = Cut { position: position(4), database: 0 };
    let mut base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap();
    append(&mut aof, 5..=5);
    assert_eq!(aof.sync().unwrap(), durable);
    let after = (manifest(&disk), disk.read("appendonlydir/appendonly.aof.1.incr.aof"));
    assert_eq!(before, after);
    base.commands(&plain(4), None).unwrap();
    aof.finish_rewrite(base.finish().unwrap()).unwrap();
    assert_eq!(aof.durable(), position(5));
    // The manifest names the next file instead.
    assert!(manifest(&disk).contains("file appendonly.aof.2.incr.aof seq 2 type i"));
}

#[test]
fn one_sync_at_a_time_while_more_is_appended() {
    let (_, mut aof) = with_base(1);
    append(&mut aof, 2..=2);
    let sync = aof.begin_sync().unwrap();
    append(&mut aof, 3..=3);
    assert!(matches!(aof.begin_sync(), Err(AofError::Syncing)));
    let cut = Cut { position: position(3), database: 0 };
    assert!(matches!(aof.begin_rewrite(cut, BaseFormat::Rdb), Err(AofError::Syncing)));
    let tried = sync.sync();
    assert_eq!(aof.finish_sync(tried).unwrap(), position(2));
    assert_eq!(aof.sync().unwrap(), position(3));
}

#[test]
fn nothing_is_durable_while_the_manifest_may_be_the_old_one() {
    let (disk, mut aof) = with_base(2);
    let cut = Cut { position: position(2), database: 0 };
    let mut base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap();
    base.commands(&plain(2), None).unwrap();
    let base = base.finish().unwrap();
    // The last operation of the switch: the directory cannot be synced.
    let probe = disk.after_kill();
    let at = disk.operations().len() as u64 + 6;
    disk.fail(Failure::Between(at, at + 1, ErrorKind::Other));
    aof.finish_rewrite(base).unwrap();
    assert_eq!(disk.operations().last(), Some(&DiskOperation::SyncDirectory), "{probe:?}");
    append(&mut aof, 3..=3);
    let at = disk.operations().len() as u64;
    disk.fail(Failure::Between(at, at + 1, ErrorKind::Other));
    assert!(aof.sync().is_err());
    // The files of the old manifest stay until the directory can be synced.
    let at = disk.operations().len() as u64 + 4;
    disk.fail(Failure::Between(at, at + 1, ErrorKind::Other));
    assert!(aof.delete_history().is_err());
    assert!(disk.has("appendonlydir/appendonly.aof.1.base.aof"));
    aof.delete_history().unwrap();
    assert!(!disk.has("appendonlydir/appendonly.aof.1.base.aof"));
    assert_eq!(aof.sync().unwrap(), position(3));
}

#[test]
fn a_single_file_of_an_old_server_becomes_the_base() {
    for power in 0..20 {
        let disk = SimulatedDisk::new(power);
        disk.put("appendonly.aof", &plain(5));
        disk.fail(Failure::Power(power));
        let _ = Driver::start(disk.clone());
        let disk = disk.after_power_loss(crate::simulated_disk::Loss::Zeros, power);
        let (mut driver, loaded) = Driver::start(disk.clone()).unwrap();
        assert_eq!(check_prefix(&loaded, "upgrade"), 5);
        assert!(!disk.has("appendonly.aof") && disk.has("appendonlydir/appendonly.aof"));
        let first = "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i";
        assert!(manifest(&disk).starts_with(first), "{}", manifest(&disk));
        driver.made = 5;
        driver.appended = 5;
        driver.made += 1;
        driver.append(&mut Random::new(1)).unwrap();
        let (_, loaded) = Driver::start(disk.after_kill()).unwrap();
        assert_eq!(check_prefix(&loaded, "upgraded"), 6);
    }
    // A directory with data is not changed.
    let (disk, mut aof) = with_base(1);
    disk.put("appendonly.aof", &plain(5));
    assert!(!aof.upgrade_single_file().unwrap() && disk.has("appendonly.aof"));
}

#[test]
fn a_missing_file_is_named_in_the_error() {
    let (disk, aof) = with_base(1);
    disk.remove(Path::new("appendonlydir/appendonly.aof.1.base.aof")).unwrap();
    let error = aof.load_files().unwrap_err();
    assert!(error.is_not_found());
    assert!(error.to_string().starts_with("cannot open appendonlydir/appendonly.aof.1.base.aof"));
    disk.put(MANIFEST, b"file a seq 1 type b\nfile b seq 1 type b\n");
    let error = Aof::open(disk, names()).unwrap_err();
    let wanted = "appendonlydir/appendonly.aof.manifest: Found duplicate base file information, \
                  at line 2: \
                  \"file b seq 1 type b\"";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn a_check_of_a_directory_proposes_its_repair() {
    let (disk, mut aof) = with_base(5);
    append(&mut aof, 6..=7);
    append(&mut aof, 8..=9);
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.files.iter().all(|(_, report)| report.is_whole()));
    assert!(report.fixes().unwrap().is_empty());
    assert_eq!(report.files[0].0.order, FileOrder::Earlier);

    let path = Path::new("appendonlydir/appendonly.aof.1.incr.aof");
    let file = disk.open_to_append(path).unwrap();
    let len = file.len().unwrap();
    file.truncate(len - 1).unwrap();
    let report = check_directory(&disk, &names()).unwrap();
    let fixes = report.fixes().unwrap();
    let (file, fix) = fixes[0];
    assert!(fixes.len() == 1 && fix.lost_bytes(len - 1) > 0);
    replace(&disk, file, fix);
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.files.iter().all(|(_, report)| report.is_whole()));
    let (_, loaded) = Driver::start(disk.clone()).unwrap();
    assert_eq!(check_prefix(&loaded, "fixed"), 8);

    // An earlier file is cut too.
    let path = Path::new("appendonlydir/appendonly.aof.1.base.aof");
    let file = disk.open_to_append(path).unwrap();
    file.truncate(file.len().unwrap() - 1).unwrap();
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.files[0].1.damage.is_some());
    for (file, fix) in report.fixes().unwrap() {
        replace(&disk, file, fix);
    }
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.files.iter().all(|(_, report)| report.is_whole()));

    // An RDB file is not: a fix would lose keys that later commands need.
    disk.put("appendonlydir/appendonly.aof.1.base.aof", b"REDIS0011\xfe");
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.fixes().is_none());
}

/// Replaces a file by its fixed one.
pub fn replace(disk: &SimulatedDisk, file: &LoadFile<SimulatedFile>, fix: &AofFix) {
    let new = Path::new("new");
    let mut sink = FileSink::new(disk.create(new).unwrap());
    fix.write(&file.file, &mut sink).unwrap();
    sink.file().sync().unwrap();
    disk.rename(new, &file.path).unwrap();
    disk.sync_directory(Path::new("appendonlydir")).unwrap();
}
