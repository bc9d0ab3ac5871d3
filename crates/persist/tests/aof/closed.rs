//! Files that were closed: all of their bytes were durable, so whatever they lack is damage, and a
//! fix keeps every whole batch.

use std::path::Path;

use persist::aof::{Aof, AofBatch, AofFault, BaseFormat, Cut, LogId, push_command};
use persist::check::{check_directory, reopened};
use persist::disk::{Disk, DiskFile};

use crate::log::names;
use crate::simulated_disk::SimulatedDisk;
use crate::state::replace;

const FILE: &str = "appendonly.aof.1.incr.aof";

/// A closed append-only file with a command in each batch, of which none was synced before. Returns
/// where the batches begin as well.
fn closed(batches: usize) -> (SimulatedDisk, Vec<u64>) {
    let disk = SimulatedDisk::new(1);
    let mut aof = Aof::open(disk.clone(), names()).unwrap();
    let cut = Cut { position: 0, database: 0 };
    let base = aof.begin_rewrite(cut, BaseFormat::Commands).unwrap().finish().unwrap();
    aof.finish_rewrite(base).unwrap();
    aof.set_log(LogId([1, 2])).unwrap();
    let (mut starts, mut end) = (Vec::new(), 0);
    for number in 0..batches {
        let mut bytes = Vec::new();
        let key = format!("key:{number}");
        push_command(&mut bytes, &[b"SET", key.as_bytes(), b"value"]);
        starts.push(aof.segment_bytes());
        end += bytes.len() as u64;
        aof.append(&AofBatch { parts: [&bytes, &[]], end, unix_seconds: None }).unwrap();
    }
    aof.close().unwrap();
    (disk, starts)
}

/// Fixes the files as `weft check aof --fix` does. Returns how many commands are kept.
fn fix(disk: &SimulatedDisk) -> u64 {
    let report = check_directory(disk, &names()).unwrap();
    let fixes = report.fixes().unwrap();
    assert_eq!(fixes.len(), 1);
    replace(disk, fixes[0].0, fixes[0].1);
    let manifest = reopened(disk, &names(), FILE.as_bytes()).unwrap().unwrap();
    disk.put(names().path(&names().manifest()), &manifest);
    assert!(reopened(disk, &names(), FILE.as_bytes()).unwrap().is_none());
    let report = check_directory(disk, &names()).unwrap();
    assert!(report.files.iter().all(|(_, report)| report.is_whole()), "{report:?}");
    report.files.iter().map(|(_, report)| report.commands).sum()
}

#[test]
fn damage_of_a_closed_file_loses_only_its_batch_though_no_later_head_says_it_was_synced() {
    for batch in 0..3 {
        let (disk, starts) = closed(3);
        let path = names().path(FILE.as_bytes());
        let mut bytes = disk.read(&path);
        let end = starts.get(batch + 1).map_or(bytes.len(), |end| *end as usize);
        bytes[end - 3] ^= 1;
        disk.put(&path, &bytes);
        assert_eq!(fix(&disk), 2, "{batch}");
    }
}

#[test]
fn a_closed_file_that_ends_after_fewer_batches_is_damaged() {
    for batches in 0..3 {
        let (disk, starts) = closed(3);
        let path = names().path(FILE.as_bytes());
        disk.open_to_append(&path).unwrap().truncate(starts[batches]).unwrap();
        let report = check_directory(&disk, &names()).unwrap();
        let damage = report.files[1].1.damage.unwrap();
        let found = (damage.offset, damage.fault, damage.valid_to);
        assert_eq!(found, (starts[batches], AofFault::Short, starts[batches]));
        assert_eq!(fix(&disk), batches as u64);
    }
}

#[test]
fn where_another_server_closed_a_file_says_nothing_of_its_bytes() {
    let disk = SimulatedDisk::new(1);
    let line = "file appendonly.aof.1.incr.aof seq 1 type i startoffset 5 endoffset 99\n";
    disk.put(names().path(&names().manifest()), line.as_bytes());
    for bytes in [&b""[..], b"*1\r\n$4\r\nPING\r\n"] {
        disk.put(names().path(FILE.as_bytes()), bytes);
        let report = check_directory(&disk, &names()).unwrap();
        assert!(report.files[0].1.is_whole(), "{report:?}");
    }
    assert!(disk.has(Path::new("appendonlydir").join(FILE)));
}
