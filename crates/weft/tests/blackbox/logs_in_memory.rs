//! Logs in shared memory, where they lie when they cannot lie beside their append-only file: they
//! stay there as long as somebody may need them.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::left_logs::{FILES, LOG, USED, check, kill_after, restarted, start};

const MEMORY: &str = "/dev/shm";
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A folder in which a directory is in the place of the log.
fn without_place() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join(LOG)).unwrap();
    folder
}

/// The number of the directory of a folder's append-only file.
fn number(folder: &Path) -> u64 {
    fs::metadata(folder.join(FILES)).unwrap().ino()
}

/// What is in shared memory for the directory of this number.
fn in_memory(number: u64) -> Vec<PathBuf> {
    let part = format!("-{number:x}-appendonly.aof.log");
    let paths = fs::read_dir(MEMORY).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_str().unwrap().contains(&part)).collect()
}

fn is_log(path: &Path) -> bool {
    path.to_str().unwrap().ends_with(".log")
}

/// Notes that the directory has been missing for some time, and has another server look.
fn look_after(number: u64, passed: Duration) {
    // This one sees that it is missing.
    drop(start(tempfile::tempdir().unwrap()));
    let paths = in_memory(number);
    let note = paths.iter().find(|path| path.to_str().unwrap().ends_with(".gone"));
    let note = File::options().append(true).open(note.unwrap()).unwrap();
    note.set_modified(SystemTime::now() - passed).unwrap();
    drop(start(tempfile::tempdir().unwrap()));
}

#[test]
fn a_clean_end_leaves_nothing() {
    let server = start(without_place());
    server.client().ok("SET k v");
    let number = number(server.folder().path());
    assert!(in_memory(number).iter().any(|path| is_log(path)), "{}", server.log());
    let server = check(restarted(server), &[("k", true)], "");
    server.client().ok("CONFIG SET appendonly no");
    assert!(in_memory(number).is_empty(), "{:?}", in_memory(number));
}

#[test]
fn a_log_without_its_directory_is_removed_after_a_day() {
    let folder = kill_after(start(without_place()), &["SET unwritten 1"]);
    let number = number(folder.path());
    let (files, moved) = (folder.path().join(FILES), folder.path().join("moved"));
    fs::rename(&files, &moved).unwrap();
    look_after(number, DAY - Duration::from_secs(600));
    assert!(in_memory(number).iter().any(|path| is_log(path)), "it may come back");
    fs::rename(&moved, &files).unwrap();
    let folder = restarted(check(folder, &[("unwritten", true)], USED));
    assert!(in_memory(number).is_empty(), "{:?}", in_memory(number));
    let folder = kill_after(start(folder), &["SET unwritten 2"]);
    fs::rename(&files, &moved).unwrap();
    // Another one of the same name is another one.
    fs::create_dir(&files).unwrap();
    look_after(number, DAY);
    assert!(in_memory(number).is_empty(), "{:?}", in_memory(number));
    drop(folder);
}

#[test]
fn the_log_of_a_server_whose_directory_has_moved_stays() {
    let server = start(without_place());
    let number = number(server.folder().path());
    let (files, moved) = (server.path(FILES), server.path("moved"));
    fs::rename(&files, &moved).unwrap();
    look_after(number, 2 * DAY);
    assert!(in_memory(number).iter().any(|path| is_log(path)));
    fs::rename(&moved, &files).unwrap();
    restarted(server);
    assert!(in_memory(number).is_empty(), "{:?}", in_memory(number));
}

#[test]
fn a_log_is_found_when_its_device_has_another_number() {
    let folder = kill_after(start(without_place()), &["SET unwritten 1"]);
    let number = number(folder.path());
    let device = fs::metadata(folder.path()).unwrap().dev();
    for path in in_memory(number) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let own = format!("weft-{device:x}-");
        let other = name.replacen(&own, &format!("weft-{:x}-", device + 7), 1);
        assert_ne!(name, other);
        fs::rename(&path, path.with_file_name(other)).unwrap();
    }
    let server = check(folder, &[("unwritten", true)], USED);
    restarted(server);
    assert!(in_memory(number).is_empty(), "{:?}", in_memory(number));
}
