//! The simulated disk itself: synced bytes stay, and all other bytes may be lost in each possible
//! way.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use persist::disk::{Disk, DiskFile};

use crate::simulated_disk::{Failure, Loss, SimulatedDisk};

const LOSSES: [Loss; 3] = [Loss::Cut, Loss::Zeros, Loss::Garbage];

#[test]
fn only_synced_bytes_survive_for_certain() {
    for loss in LOSSES {
        let (mut lens, mut spoilt, mut gone) = (BTreeSet::new(), 0, 0);
        for seed in 0..300 {
            let disk = SimulatedDisk::new(seed);
            let file = disk.create(Path::new("a")).unwrap();
            file.append(&[&[1; 300], &[1; 300]]).unwrap();
            file.sync().unwrap();
            disk.sync_directory(Path::new("")).unwrap();
            file.append(&[&[2; 5000]]).unwrap();
            disk.create(Path::new("b")).unwrap();
            let after = disk.after_power_loss(loss, seed);
            let bytes = after.read("a");
            assert!(bytes.len() >= 600 && bytes.len() <= 5600);
            assert!(bytes[..600].iter().all(|byte| *byte == 1));
            lens.insert(bytes.len());
            spoilt += usize::from(bytes[600..].iter().any(|byte| *byte != 2));
            gone += usize::from(!after.has("b"));
            assert_eq!(disk.after_kill().read("a").len(), 5600);
        }
        assert!(lens.len() > 100 && gone > 50 && gone < 250);
        assert_eq!(spoilt > 100, loss != Loss::Cut, "{loss:?}: {spoilt}");
    }
}

#[test]
fn names_come_and_go_until_the_directory_is_synced() {
    let mut found = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        disk.put("new", b"new");
        disk.put("old", b"old");
        disk.rename(Path::new("new"), Path::new("old")).unwrap();
        let after = disk.after_power_loss(Loss::Zeros, seed);
        found.insert(after.read("old"));
        assert_eq!(after.has("new"), after.read("old") == b"old");
        disk.sync_directory(Path::new("")).unwrap();
        assert_eq!(disk.after_power_loss(Loss::Zeros, seed).read("old"), b"new");
    }
    assert_eq!(found, [b"new".to_vec(), b"old".to_vec()].into());
}

#[test]
fn a_later_sync_does_not_make_up_for_a_failed_one() {
    let mut lost = 0;
    for seed in 0..100 {
        let disk = SimulatedDisk::new(seed);
        let file = disk.create(Path::new("a")).unwrap();
        disk.sync_directory(Path::new("")).unwrap();
        file.append(&[b"one"]).unwrap();
        disk.fail(Failure::Once(disk.operations().len() as u64, ErrorKind::Other));
        file.sync().unwrap_err();
        file.sync().unwrap();
        lost += usize::from(disk.after_power_loss(Loss::Zeros, seed).read("a") != b"one");
    }
    assert!(lost > 20, "{lost}");
}

#[test]
fn truncated_bytes_may_come_back_until_a_sync() {
    let mut found = BTreeSet::new();
    for seed in 0..200 {
        let disk = SimulatedDisk::new(seed);
        disk.put("a", &[1; 2000]);
        let file = disk.open_to_append(Path::new("a")).unwrap();
        file.truncate(1000).unwrap();
        found.insert(disk.after_power_loss(Loss::Zeros, seed).read("a").len());
        file.sync().unwrap();
        assert_eq!(disk.after_power_loss(Loss::Garbage, seed).read("a").len(), 1000);
    }
    assert!(found.len() > 50 && found.iter().all(|len| (1000..=2000).contains(len)));
}

#[test]
fn an_error_names_the_operation() {
    let disk = SimulatedDisk::new(1);
    let file = disk.create(Path::new("a")).unwrap();
    disk.fail(Failure::Between(1, 3, ErrorKind::StorageFull));
    let error = file.append(&[&[7; 100]]).unwrap_err();
    assert_eq!(error.to_string(), "cannot write to a: no storage space");
    assert_eq!(file.sync().unwrap_err().to_string(), "cannot fsync a: no storage space");
    assert!(disk.read("a").len() <= 100);
    file.append(&[b"x"]).unwrap();
    assert!(disk.open(Path::new("b")).unwrap_err().is_not_found());
    disk.open(Path::new("a")).unwrap().append(&[b"x"]).unwrap_err();
}
