//! An RDB file that replaces another one: after a crash, the file is one of the two, and complete.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use persist::check::check_rdb;
use persist::disk::{CommitError, Disk, DiskError, Replacement};
use persist::rdb::RdbWriter;
use persist::rdb::encode::Options;
use persist::rdb::reader::DatabaseSizes;

use crate::simulated_disk::{Failure, Loss, SimulatedDisk};

const NAME: &str = "dump.rdb";

/// Saves a file with some databases, as SAVE does.
fn save(disk: &SimulatedDisk, databases: u64) -> Result<(), DiskError> {
    let temporary = PathBuf::from("temp-1.rdb");
    let replacement = Replacement::begin(disk, Path::new(""), temporary, PathBuf::from(NAME));
    let mut replacement = replacement?;
    let written = (|| {
        let mut writer = RdbWriter::new(replacement.sink(), Options::default())?;
        writer.aux(b"padding", &vec![b'x'; 70_000])?;
        for number in 0..databases {
            writer.database(number, DatabaseSizes { keys: 1, expiring: 0 })?;
            writer.keys(b"\x00\x01a\x01x")?;
        }
        writer.finish().map(drop)
    })();
    if let Err(error) = written {
        replacement.abandon(disk);
        return Err(error);
    }
    replacement.commit(disk).map_err(CommitError::disk)
}

fn keys(disk: &SimulatedDisk) -> Option<u64> {
    let file = disk.open(Path::new(NAME)).ok()?;
    let report = check_rdb(&file).unwrap();
    assert!(report.damage.is_none(), "{report:?}");
    Some(report.keys)
}

#[test]
fn an_interrupted_save_leaves_a_complete_file() {
    let mut found = BTreeSet::new();
    for seed in 0..6 {
        for at in 0..20 {
            let disk = SimulatedDisk::new(seed);
            save(&disk, 3).unwrap();
            disk.fail(Failure::Power(disk.operations().len() as u64 + at));
            let is_saved = save(&disk, 5).is_ok();
            for loss in [Loss::Cut, Loss::Zeros, Loss::Garbage] {
                let keys = keys(&disk.after_power_loss(loss, seed)).unwrap();
                assert!(keys == 5 || keys == 3 && !is_saved, "{keys}, operation {at}");
                found.insert((is_saved, keys));
            }
        }
    }
    assert_eq!(found, [(false, 3), (false, 5), (true, 5)].into());
}

#[test]
fn a_save_that_fails_removes_its_temporary_file() {
    let disk = SimulatedDisk::new(1);
    save(&disk, 3).unwrap();
    for at in 0..20 {
        disk.fail(Failure::Once(disk.operations().len() as u64 + at, std::io::ErrorKind::Other));
        let _ = save(&disk, 3);
        disk.fail(Failure::None);
        assert_eq!(keys(&disk), Some(3));
        assert!(!disk.has("temp-1.rdb"), "operation {at}");
    }
}

#[test]
fn a_save_that_is_no_longer_wanted_leaves_the_previous_file() {
    let disk = SimulatedDisk::new(1);
    save(&disk, 3).unwrap();
    let (temporary, path) = (PathBuf::from("temp-1.rdb"), PathBuf::from(NAME));
    let replacement = Replacement::begin(&disk, Path::new(""), temporary, path).unwrap();
    assert!(!replacement.commit_if(&disk, || None::<()>).unwrap());
    assert_eq!(keys(&disk), Some(3));
    assert!(!disk.has("temp-1.rdb"));
}
