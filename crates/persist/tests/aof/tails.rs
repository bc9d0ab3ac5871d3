//! Ends of files as crashes leave them: every cut, zeros and garbage.

use base::random::Random;
use persist::aof::{
    Aof, AofBatch, AofEnd, AofFault, AofItem, AofReader, BaseFormat, Cut, FileOrder, FileType,
    ManifestEntry, ReadError, push_command,
};

use crate::log::{Command, names, read_file};
use crate::simulated_disk::SimulatedDisk;
use crate::view::{Sample, View, plain, read, sample};

/// The positions after commands outside of transactions, with the number of commands before them.
fn command_ends(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut reader = AofReader::new(View(bytes, 0), 0, FileOrder::Last).unwrap();
    let (mut all, mut count, mut open) = (vec![(0, 0)], 0, false);
    loop {
        match reader.item().unwrap() {
            AofItem::Command { args, .. } => {
                open = if open { args.name() != b"EXEC" } else { args.name() == b"MULTI" };
                count += 1;
            }
            AofItem::Timestamp(_) => continue,
            AofItem::End(_) => return all,
        }
        if !open {
            all.push((reader.offset() as usize, count));
        }
    }
}

/// Cuts a file, adds a tail, and checks that the complete commands are read. Reads only from the
/// batch of the cut on.
fn check_cut(all: &Sample, ends: &[(usize, usize)], cut: usize, tail: &[u8]) {
    let (batch, before) = all.batches[all.batches.partition_point(|(at, _)| *at <= cut) - 1];
    let (_, kept) = ends[ends.partition_point(|(at, _)| *at <= cut) - 1];
    let wanted = &all.commands[before..kept.max(before)];
    let from = batch as u64;
    if !cut.is_multiple_of(16) && tail.is_empty() {
        // Counting suffices most of the time, and is faster.
        let view = View(&all.bytes[batch..cut], from);
        let report = check_from(view, from);
        assert_eq!(report.commands as usize, wanted.len(), "{cut}: {report:?}");
        return;
    }
    let bytes = [&all.bytes[batch..cut], tail].concat();
    let (commands, end) = read(&bytes, from).unwrap_or_else(|error| panic!("{cut}: {error}"));
    assert!(commands == wanted, "{cut}: {} commands, {end:?}", commands.len());
    let repaired = match &end.repair {
        None => bytes,
        Some(repair) => {
            let kept = &bytes[..repair.truncate_to as usize - batch];
            // Here the repaired file is only read again. The tests of crashes append to it.
            [kept, &repair.annotation].concat()
        }
    };
    let (again, end) = read(&repaired, from).unwrap();
    assert!(end.tail.is_none() && end.repair.is_none() && again.len() == commands.len(), "{cut}");
}

fn check_from(view: View<'_>, from: u64) -> AofEnd {
    let mut reader = AofReader::new(view, from, FileOrder::Last).unwrap();
    loop {
        match reader.item() {
            Ok(AofItem::End(end)) => return end,
            Ok(_) => {}
            Err(error) => panic!("{from}: {error}"),
        }
    }
}

#[test]
fn every_cut_of_a_megabyte_loses_only_the_incomplete_command() {
    // Small batches, because each cut reads its batch. The next tests have larger ones.
    let all = sample(2700, 1, |batch| batch % 3 == 0);
    assert!(all.bytes.len() > 1 << 20, "{} bytes", all.bytes.len());
    let ends = command_ends(&all.bytes);
    for cut in 0..=all.bytes.len() {
        check_cut(&all, &ends, cut, b"");
    }
}

#[test]
fn a_tail_of_zeros_is_dropped_with_the_incomplete_command() {
    let all = sample(12, 3, |_| true);
    let ends = command_ends(&all.bytes);
    for cut in (0..=all.bytes.len()).step_by(3) {
        for zeros in [1, 2, 100, 5000] {
            check_cut(&all, &ends, cut, &vec![0; zeros]);
        }
    }
}

#[test]
fn a_value_with_a_sector_that_did_not_reach_the_disk_is_not_loaded() {
    // The seventh write has a value of 2000 bytes.
    let all = sample(1, 8, |_| false);
    let value = all.bytes.windows(20).position(|bytes| bytes == [b'h'; 20]).unwrap();
    let sector = value.next_multiple_of(512);
    let mut bytes = all.bytes.clone();
    bytes[sector..sector + 512].fill(0);
    for cut in [bytes.len(), bytes.len() - 3] {
        let (commands, end) = read(&bytes[..cut], 0).unwrap();
        assert!(commands == all.commands[..commands.len()]);
        assert!(!commands.iter().any(|command| command[1..].contains(&b"key:7".to_vec())));
        // The zeros of a batch of full length may be a value: then nothing says which bytes are
        // wrong.
        let (fault, is_kept) = match cut == bytes.len() {
            true => (AofFault::Checksum, false),
            false => (AofFault::Zeros, true),
        };
        assert_eq!((end.tail.unwrap().fault, commands.len() > 5), (fault, is_kept), "{cut}");
    }
}

/// A batch of two commands: `SET price AAAAAAAA`, and a value that is zeros.
fn price_and_zeros(end: u64) -> Vec<u8> {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    let cut = Cut { position: 0, database: 0 };
    let base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap().finish().unwrap();
    aof.finish_rewrite(base).unwrap();
    let mut bytes = Vec::new();
    push_command(&mut bytes, &[b"SET", b"price", b"AAAAAAAA"]);
    push_command(&mut bytes, &[b"SET", b"zeros", &[0; 2000]]);
    aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds: None }).unwrap();
    disk.read(names().path(b"appendonly.aof.1.incr.aof"))
}

#[test]
fn a_value_of_zeros_does_not_turn_damage_into_a_tail_that_loses_only_it() {
    let whole = price_and_zeros(100);
    let entry = |start, end| ManifestEntry {
        start_offset: Some(start),
        end_offset: end,
        ..ManifestEntry::new(b"incr".to_vec(), 1, FileType::Incremental)
    };
    let read = |bytes: &[u8], entry: &ManifestEntry| {
        let reader = AofReader::new(View(bytes, 0), 0, FileOrder::Last).unwrap();
        read_file(reader.closed(entry))
    };
    assert_eq!(read(&whole, &entry(0, Some(100))).unwrap().0.len(), 2);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        // It was closed, so all of it was durable.
        let closed = read(&bytes, &entry(0, Some(100)));
        assert!(matches!(closed, Err(ReadError::Damage(_))), "{at}: {closed:?}");
        // After a crash, nothing damaged is loaded. The wrong byte may be one of the zeros.
        let (commands, end) = read(&bytes, &entry(0, None)).unwrap();
        let is_right = commands.iter().all(|command| command[1..] == [&b"price"[..], b"AAAAAAAA"]);
        assert!(is_right && end.tail.is_some(), "{at}: {commands:?}");
    }
    // Another server has appended a command, and crashed.
    let (commands, end) = read(&[&whole[..], b"*1\r\n$4\r\nPI"].concat(), &entry(0, Some(100)))
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((commands.len(), end.tail.unwrap().fault), (2, AofFault::Cut));
}

#[test]
fn every_changed_bit_of_a_closed_file_is_damage() {
    let all = sample(3, 3, |_| true);
    let end = AofReader::new(View(&all.bytes, 0), 0, FileOrder::Last).unwrap();
    let end = read_file(end).unwrap().1.log_end;
    let entry = ManifestEntry::new(b"incr".to_vec(), 1, FileType::Incremental);
    let entry = ManifestEntry { start_offset: Some(0), end_offset: end, ..entry };
    for at in 0..all.bytes.len() {
        let mut bytes = all.bytes.clone();
        bytes[at] ^= 1 << (at % 8);
        let reader = AofReader::new(View(&bytes, 0), 0, FileOrder::Last).unwrap();
        let damage = read_file(reader.closed(&entry));
        assert!(matches!(damage, Err(ReadError::Damage(_))), "{at}: {damage:?}");
    }
}

#[test]
fn a_tail_of_garbage_is_dropped_with_its_batch() {
    let all = sample(12, 3, |_| true);
    let mut random = Random::new(1);
    for cut in (0..=all.bytes.len()).step_by(3) {
        let len = 600 + random.below(100);
        let garbage: Vec<u8> = (0..len).map(|_| random.next_u64() as u8).collect();
        let bytes = [&all.bytes[..cut], &garbage].concat();
        let (commands, end) = read(&bytes, 0).unwrap_or_else(|error| panic!("{cut}: {error}"));
        let at = all.batches.partition_point(|(at, _)| *at <= cut) - 1;
        let (batch, before) = all.batches[at];
        // A value that was cut may be completed by garbage, which only the checksum notices.
        let whole = commands.len() >= before && commands[..] == all.commands[..commands.len()];
        assert!(whole && end.valid_to as usize >= batch, "{cut}: {end:?}");
        assert!(end.tail.is_some(), "{cut}");
    }
}

/// Cuts a file without checksums, and adds a tail.
fn check_plain(tail: &[u8], fault: AofFault) {
    let whole = plain(40);
    for cut in (whole.len() - 2500..=whole.len()).step_by(7) {
        let bytes = [&whole[..cut], tail].concat();
        let (commands, end) = read(&bytes, 0).unwrap_or_else(|error| panic!("{cut}: {error}"));
        let wanted: Vec<Command> = (1..=40).flat_map(crate::log::commands).collect();
        assert!(commands[..] == wanted[..commands.len()]);
        assert!(commands.len() + 14 > wanted.len(), "{cut}: {}", commands.len());
        if let Some(tail) = end.tail {
            let cut = matches!(tail.fault, AofFault::Cut | AofFault::Transaction);
            assert!(tail.fault == fault || cut, "{tail:?}");
            assert_eq!(end.valid_to + tail.dropped, bytes.len() as u64);
        }
        assert_eq!((end.unsealed, end.log_end), (end.valid_to, None));
    }
}

#[test]
fn files_of_other_servers_may_end_as_a_crash_leaves_them() {
    check_plain(b"", AofFault::Cut);
    check_plain(&[0; 3000], AofFault::Zeros);
    let mut random = Random::new(5);
    let garbage: Vec<u8> = (0..900).map(|_| random.next_u64() as u8 | 0x80).collect();
    let whole = [&plain(40)[..], &garbage].concat();
    let (commands, end) = read(&whole, 0).unwrap();
    assert_eq!(end.valid_to, plain(40).len() as u64);
    assert!(matches!(end.tail.unwrap().fault, AofFault::Format(_)), "{}", commands.len());
}

#[test]
fn an_earlier_file_must_be_complete() {
    let all = sample(4, 3, |_| true);
    for bytes in [all.bytes, plain(20)] {
        for cut in 1..bytes.len() {
            let mut reader = AofReader::new(View(&bytes[..cut], 0), 0, FileOrder::Earlier).unwrap();
            let result = loop {
                match reader.item() {
                    Ok(AofItem::End(end)) => break Ok(end),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                }
            };
            match result {
                Ok(end) => assert_eq!((end.valid_to, end.tail), (cut as u64, None)),
                Err(ReadError::Damage(damage)) => assert!(damage.valid_to < cut as u64),
                Err(error) => panic!("{error}"),
            }
        }
    }
}
