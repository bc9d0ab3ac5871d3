//! Damage of safe bytes is found and located, and damaged commands are never returned. The same
//! holds for every changed bit of a batch.

use std::path::{Path, PathBuf};

use persist::aof::{
    Aof, AofBatch, AofError, AofFault, AofFix, AofReader, BaseFormat, Cut, FileOrder, LogId,
    ReadError, push_command,
};
use persist::check::{CheckError, Later, check_aof, check_directory, later_than};
use persist::disk::{Disk, DiskFile, FileSink};
use persist::rdb;
use persist::rdb::encode::Options;

use crate::log::{names, position, read_file};
use crate::simulated_disk::SimulatedDisk;
use crate::state::{append_bytes, new_file, replace};
use crate::view::{View, plain, read, sample};

#[test]
fn every_changed_bit_is_detected_and_nothing_damaged_is_loaded() {
    let all = sample(5, 1, |_| true);
    let last = all.batches[4].0;
    let (mut errors, mut tails) = (0, 0);
    for at in 0..all.bytes.len() {
        for bit in 0..8 {
            let mut bytes = all.bytes.clone();
            bytes[at] ^= 1 << bit;
            match read(&bytes, 0) {
                Ok((commands, end)) => {
                    // The loaded commands are right, and the tail is reported.
                    assert!(commands[..] == all.commands[..commands.len()], "{at}.{bit}");
                    assert!(end.tail.is_some_and(|tail| tail.offset as usize >= last));
                    assert!(at >= last, "{at}.{bit}: {end:?}");
                    tails += 1;
                }
                Err(ReadError::Damage(damage)) => {
                    errors += 1;
                    let batch = all.batches.partition_point(|(start, _)| *start <= at) - 1;
                    let (start, _) = all.batches[batch];
                    let end = all.batches.get(batch + 1).map_or(all.bytes.len(), |next| next.0);
                    assert!((start..=end).contains(&(damage.offset as usize)), "{at}: {damage}");
                    assert!(damage.valid_to as usize <= at, "{at}.{bit}: {damage:?}");
                }
                Err(error) => panic!("{at}.{bit}: {error}"),
            }
        }
    }
    assert_eq!(errors, 8 * last);
    assert_eq!(tails, 8 * (all.bytes.len() - last));
}

#[test]
fn damage_after_the_last_sync_is_a_tail_whatever_follows() {
    // The first four batches were durable when the fifth was written.
    let all = sample(10, 3, |batch| batch == 3);
    for (index, (start, before)) in all.batches.iter().enumerate() {
        let mut bytes = all.bytes.clone();
        let end = all.batches.get(index + 1).map_or(bytes.len(), |next| next.0);
        bytes[(start + end) / 2] ^= 1;
        match read(&bytes, 0) {
            Ok((commands, end)) => {
                assert!(index > 3, "{index}: {end:?}");
                assert!(commands[..] == all.commands[..*before]);
                let tail = end.tail.unwrap();
                assert_eq!((tail.offset, tail.fault), (*start as u64, AofFault::Checksum));
                assert_eq!(tail.dropped as usize, bytes.len() - start);
            }
            Err(error) => assert!(index <= 3, "{index}: {error}"),
        }
    }
}

#[test]
fn a_value_that_contains_a_batch_does_not_turn_a_tail_into_damage() {
    let all = sample(3, 3, |_| true);
    // Batches within a value, which was cut.
    let inner = &all.bytes[all.batches[1].0..];
    let mut value = format!("*2\r\n$4\r\nECHO\r\n${}\r\n", inner.len() + 100).into_bytes();
    value.extend_from_slice(inner);
    let bytes = [&all.bytes[..], &value].concat();
    let (commands, end) = read(&bytes, 0).unwrap();
    assert!(commands == all.commands);
    assert_eq!(end.valid_to as usize, all.bytes.len());
}

#[test]
fn files_without_checksums_are_refused_where_commands_follow() {
    let bytes = plain(30);
    let places: Vec<usize> = (1..30).map(|writes| plain(writes).len()).collect();
    let mut refused = 0;
    for at in &places {
        for (offset, byte) in [(0, b'x'), (1, b'9'), (4, b'x')] {
            let mut changed = bytes.clone();
            changed[at + offset] = byte;
            match read(&changed, 0) {
                Err(ReadError::Damage(damage)) => {
                    assert!(damage.valid_to as usize <= at + offset, "{at}: {damage}");
                    refused += 1;
                }
                // Too few commands follow near the end.
                result => assert!(bytes.len() - at < 3000, "{at}: {result:?}"),
            }
        }
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn a_check_reports_the_commands_that_loading_keeps() {
    let all = sample(6, 3, |_| true);
    let report = check_aof(&View(&all.bytes, 0), FileOrder::Last).unwrap();
    assert!(report.is_whole() && report.unsealed == 0 && report.fix.is_none());
    assert_eq!(report.commands as usize, all.commands.len());
    let (start, before) = all.batches[2];
    let mut bytes = all.bytes.clone();
    bytes[start + 200] ^= 4;
    let report = check_aof(&View(&bytes, 0), FileOrder::Last).unwrap();
    let damage = report.damage.unwrap();
    assert_eq!((damage.offset, damage.fault), (start as u64, AofFault::Checksum));
    assert_eq!(report.valid_to as usize, start);
    assert_eq!((report.commands as usize, report.unsealed), (before, 0));
    assert_eq!(damage.to_string(), format!("damage at offset {start}: {}", AofFault::Checksum));
    // A fix keeps the batches after it.
    let fix = report.fix.unwrap();
    let lost = all.batches[2].0 as u64..all.batches[3].0 as u64;
    assert_eq!(fix.lost, std::slice::from_ref(&lost));
    assert_eq!(fix.lost_bytes(bytes.len() as u64), lost.end - lost.start);
    let (commands, end) = read(&fixed(&bytes, &fix), 0).unwrap();
    let wanted = [&all.commands[..before], &all.commands[all.batches[3].1..]].concat();
    assert_eq!((commands.len(), fix.commands as usize), (wanted.len(), wanted.len()));
    assert!(commands == wanted && end.tail.is_none());
}

/// The file that a fix writes.
pub fn fixed(bytes: &[u8], fix: &AofFix) -> Vec<u8> {
    let disk = SimulatedDisk::new(1);
    disk.put("damaged", bytes);
    let file = disk.open(Path::new("damaged")).unwrap();
    let mut sink = FileSink::new(disk.create(Path::new("fixed")).unwrap());
    fix.write(&file, &mut sink).unwrap();
    disk.read("fixed")
}

#[test]
fn a_batch_that_would_do_something_else_is_not_kept() {
    let (disk, mut aof, path) = new_file();
    let mut starts = Vec::new();
    let batches: [&[&[&str]]; 9] = [
        &[&["SET", "a", "1"]],
        &[&["SET", "b", "1"]],
        // After a lost SELECT, later commands are of an unknown database.
        &[&["SELECT", "5"], &["SET", "c", "1"]],
        &[&["SET", "c", "2"]],
        &[&["SELECT", "0"], &["SET", "d", "1"]],
        // After a lost MULTI, a part of a transaction is not kept.
        &[&["MULTI"], &["SET", "e", "1"]],
        &[&["SET", "e", "2"], &["EXEC"]],
        &[&["SET", "f", "1"]],
        &[&["SET", "g", "1"]],
    ];
    for batch in batches {
        let mut bytes = Vec::new();
        for words in batch {
            let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            push_command(&mut bytes, &args);
        }
        starts.push(aof.segment_bytes() as usize);
        append_bytes(&mut aof, &bytes, 1);
    }
    let bytes = disk.read(path);
    // The batch that is damaged, and what is kept after it.
    let cases: [(usize, &[&str]); 5] = [
        (0, &["b", "c", "c", "d", "e", "e", "f", "g"]),
        (1, &["a", "c", "c", "d", "e", "e", "f", "g"]),
        (2, &["a", "b", "d", "e", "e", "f", "g"]),
        (5, &["a", "b", "c", "c", "d", "f", "g"]),
        (6, &["a", "b", "c", "c", "d", "f", "g"]),
    ];
    for (batch, kept) in cases {
        let whole = starts[batch]..starts[batch + 1];
        let name =
            bytes[whole.clone()].windows(3).position(|word| word == b"SEL" || word == b"SET");
        let name = whole.start + name.unwrap_or(0);
        // Neither the lost bytes nor a part of them is needed to know what they selected.
        for damaged in [whole.end - 3..whole.end - 2, name..name + 1, whole] {
            let mut bytes = bytes.clone();
            bytes[damaged.clone()].iter_mut().for_each(|byte| *byte &= 0xf0);
            let report = check_aof(&View(&bytes, 0), FileOrder::Last).unwrap();
            let (found, end) = read(&fixed(&bytes, &report.fix.unwrap()), 0).unwrap();
            let sets = found.iter().filter(|args| args[0] == b"SET");
            let keys: Vec<&[u8]> = sets.map(|args| &args[1][..]).collect();
            let kept: Vec<&[u8]> = kept.iter().map(|key| key.as_bytes()).collect();
            assert_eq!(keys, kept, "{batch} {damaged:?}");
            assert!(end.tail.is_none() && end.log_end.is_some(), "{end:?}");
        }
    }
}

#[test]
fn damage_where_only_the_first_database_is_used_loses_only_its_batches() {
    let (disk, mut aof, path) = new_file();
    let mut starts = Vec::new();
    for number in 0..4 {
        let mut bytes = Vec::new();
        if number == 0 {
            // As after a cut.
            push_command(&mut bytes, &[b"SELECT", b"0"]);
        }
        push_command(&mut bytes, &[b"SET", format!("key:{number}").as_bytes(), b"v"]);
        starts.push(aof.segment_bytes() as usize);
        append_bytes(&mut aof, &bytes, 1);
    }
    let bytes = disk.read(path);
    for batch in 0..3 {
        let mut bytes = bytes.clone();
        bytes[starts[batch]..starts[batch + 1]].fill(0);
        let report = check_aof(&View(&bytes, 0), FileOrder::Last).unwrap();
        assert_eq!(report.fix.unwrap().commands, 3 + u64::from(batch > 0), "{batch}");
    }
}

#[test]
fn commands_after_a_time_can_be_cut_off() {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    let cut = Cut { position: 0, database: 0 };
    let mut base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap();
    base.commands(&crate::log::bytes(1), Some(10)).unwrap();
    aof.finish_rewrite(base.finish().unwrap()).unwrap();
    let path = names().path(b"appendonly.aof.1.incr.aof");
    let (mut ends, mut counts) = (vec![0], vec![0]);
    for number in 2..6 {
        let bytes = crate::log::bytes(number);
        let (end, unix_seconds) = (position(number), Some(10 * number as i64));
        aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds }).unwrap();
        aof.sync().unwrap();
        let whole = disk.read(&path);
        ends.push(whole.len() as u64);
        counts.push(read(&whole, 0).unwrap().0.len());
    }
    let whole = disk.read(&path);
    // A file of another server has timestamps within and between transactions.
    let plain =
        b"#TS:10\r\n*1\r\n$4\r\nPING\r\n*1\r\n$5\r\nMULTI\r\n#TS:20\r\n*1\r\n$4\r\nECHO\r\n";
    let rest = [&plain[..], b"*1\r\n$4\r\nEXEC\r\n"].concat();
    let later = |bytes: &[u8], place, seconds| later_than(&View(bytes, 0), place, seconds).unwrap();
    for (seconds, batches) in [(20, 1), (29, 1), (30, 2), (49, 3)] {
        let Later::From(kept, fix) = later(&whole, FileOrder::Last, seconds) else {
            panic!("{seconds}")
        };
        let cut = fix.cut.unwrap().truncate_to;
        assert_eq!((kept, cut), (ends[batches], ends[batches]), "{seconds}");
        let (commands, end) = read(&whole[..kept as usize], 0).unwrap();
        assert_eq!((commands.len(), end.tail), (counts[batches], None), "{seconds}");
    }
    assert!(matches!(later(&whole, FileOrder::Last, 19), Later::All));
    assert!(matches!(later(&whole, FileOrder::Last, 50), Later::Nothing));
    assert!(matches!(later(&whole, FileOrder::Earlier, 30), Later::From(at, _) if at == ends[2]));
    assert!(matches!(later(&rest, FileOrder::Last, 10), Later::From(22, _)));
    assert!(matches!(later(&rest, FileOrder::Last, 20), Later::Nothing));
    assert!(matches!(later(plain, FileOrder::Last, 30), Later::Damaged));
    let mut changed = whole.clone();
    changed[ends[1] as usize + 100] ^= 1;
    assert!(matches!(later(&changed, FileOrder::Last, 40), Later::Damaged));
    assert!(matches!(later(&changed, FileOrder::Last, 19), Later::All));
}

#[test]
fn the_position_in_the_log_is_that_of_the_loaded_commands() {
    let all = sample(6, 3, |_| true);
    let (_, end) = read(&all.bytes, 0).unwrap();
    assert_eq!(end.log_end, Some(plain(18).len() as u64));
    // Commands that another server appended count as in its own log.
    let more = b"#TS:5\r\n*1\r\n$4\r\nPING\r\n";
    let (_, end) = read(&[&all.bytes[..], more].concat(), 0).unwrap();
    assert_eq!(end.log_end, Some(plain(18).len() as u64 + 14));
    assert_eq!(end.unsealed, more.len() as u64);
    let reader =
        AofReader::new(View(&all.bytes, 0), all.batches[3].0 as u64, FileOrder::Last).unwrap();
    assert_eq!(read_file(reader).unwrap().1.log_end, Some(plain(18).len() as u64));
}

/// A complete append-only file with a base of this format, and the paths of its files.
fn folder(format: BaseFormat) -> (SimulatedDisk, Vec<PathBuf>) {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    let mut base = aof.begin_rewrite(Cut { position: 0, database: 3 }, format).unwrap();
    match format {
        BaseFormat::Commands => {
            for number in 1..4 {
                base.commands(&crate::log::bytes(number), Some(5)).unwrap();
            }
        }
        BaseFormat::Rdb => {
            let mut writer = rdb::RdbWriter::new(base.sink(), Options::default()).unwrap();
            writer.aux(b"redis-ver", b"8.0.6").unwrap();
            writer.function(b"#!lua name=lib").unwrap();
            writer.finish().unwrap();
        }
    }
    let base = base.finish().unwrap();
    aof.finish_rewrite(base).unwrap();
    aof.set_log(LogId([u64::MAX / 7, 5])).unwrap();
    for number in 4..7 {
        let bytes = crate::log::bytes(number);
        let (end, unix_seconds) = (position(number), Some(number as i64));
        aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds }).unwrap();
        aof.sync().unwrap();
    }
    // A batch is cut and gets an early end, and more batches follow.
    let incremental = names().path(b"appendonly.aof.1.incr.aof");
    let torn = [crate::log::bytes(7), crate::log::bytes(8)].concat();
    aof.append(&AofBatch { parts: [&torn, &[]], end: position(8), unix_seconds: None }).unwrap();
    drop(aof);
    let file = disk.open_to_append(&incremental).unwrap();
    file.truncate(file.len().unwrap() - 3).unwrap();
    let fixed = check_directory(&disk, &names()).unwrap();
    let (damaged, fix) = fixed.fixes().unwrap()[0];
    replace(&disk, damaged, fix);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    aof.resume(position(7)).unwrap();
    for number in 8..10 {
        let bytes = crate::log::bytes(number);
        aof.append(&AofBatch { parts: [&bytes, &[]], end: position(number), unix_seconds: None })
            .unwrap();
        aof.sync().unwrap();
    }
    let report = check_directory(&disk, &names()).unwrap();
    assert!(report.files.iter().all(|(_, report)| report.is_whole() && report.unsealed == 0));
    let base = report.files[0].0.path.clone();
    (disk, vec![names().path(b"appendonly.aof.manifest"), base, incremental])
}

#[test]
fn every_changed_bit_of_every_file_is_detected_and_located() {
    for format in [BaseFormat::Commands, BaseFormat::Rdb] {
        let (disk, paths) = folder(format);
        for (which, path) in paths.iter().enumerate() {
            let whole = disk.read(path);
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut changed = whole.clone();
                    changed[at] ^= 1 << bit;
                    disk.put(path, &changed);
                    let context = format!("{} {at}.{bit}", path.display());
                    let report = match check_directory(&disk, &names()) {
                        Err(CheckError::Manifest(AofError::Manifest(place, error))) => {
                            assert_eq!((which, &place), (0, path), "{context}: {error}");
                            continue;
                        }
                        Err(error) => panic!("{context}: {error}"),
                        Ok(report) => report,
                    };
                    assert!(which > 0, "{context} is not detected");
                    let bad: Vec<_> =
                        report.files.iter().filter(|(_, report)| !report.is_whole()).collect();
                    let [(file, report)] = bad[..] else { panic!("{context}: {bad:?}") };
                    assert_eq!(&file.path, path, "{context}");
                    // The one checksum of an RDB file does not say where the damage is.
                    let is_located = report.valid_to as usize <= at || report.rdb.is_some();
                    assert!(is_located, "{context}: {report:?}");
                }
            }
            disk.put(path, &whole);
        }
    }
}
