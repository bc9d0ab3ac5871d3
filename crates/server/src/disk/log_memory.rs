//! Where the ring of the log lies: in a file beside the append-only file, mapped into memory, so
//! that a process that is killed leaves it.
//!
//! Where that is not possible, as on a full disk, it lies in `/dev/shm`, and if there is no room
//! either in ordinary memory: then nothing is left of what was not written to the append-only file.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use node::config::Config;
use sys::shared_memory::SharedMemory;

use super::left_log::LeftLog;
use super::log_ring::{LogId, LogRing, memory_bytes};
use crate::warning;

/// Files in memory, whichever process made them.
const MEMORY_FILES: &str = "/dev/shm";
/// The number of this start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The places where the ring of a configuration's append-only file may lie, the best one first.
fn places(config: &Config) -> Vec<PathBuf> {
    let append_only = &config.append_only;
    let directory = Path::new(&append_only.appenddirname);
    let name = format!("{}.log", append_only.appendfilename);
    let mut places = vec![directory.join(&name)];
    // Another directory of the same name is another one.
    if let Ok(directory) = fs::metadata(directory) {
        let (device, number) = (directory.dev(), directory.ino());
        places.push(Path::new(MEMORY_FILES).join(format!("weft-{device:x}-{number:x}-{name}")));
    }
    places
}

/// The log that the last process has left, if it has.
pub fn left(config: &Config) -> Option<LeftLog> {
    let boot = boot_id();
    places(config).into_iter().find_map(|path| {
        let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
        let bytes = usize::try_from(file.metadata().ok()?.len()).ok().filter(|bytes| *bytes > 0)?;
        LeftLog::open(SharedMemory::of_file(&file, bytes).ok()?, boot)
    })
}

/// Memory for a new log. What the last process has left is gone.
///
/// # Errors
/// When there is no memory.
fn create(config: &Config) -> io::Result<SharedMemory> {
    remove(config);
    for path in places(config) {
        match new_file(&path).and_then(|file| SharedMemory::of_file(&file, memory_bytes())) {
            Ok(memory) => return Ok(memory),
            Err(error) => {
                let _ = fs::remove_file(&path);
                warning!("The log can't lie in {}: {error}", path.display());
            }
        }
    }
    warning!("The log lies in ordinary memory: what is not written yet is lost by kill -9");
    SharedMemory::anonymous(memory_bytes())
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).read(true).write(true).open(path)
}

/// A new log that begins at a position.
///
/// # Errors
/// When there is no memory.
pub fn create_ring(config: &Config, begin: u64) -> io::Result<Arc<LogRing>> {
    let id = [base::random::entropy_seed(), base::random::entropy_seed()];
    LogRing::new(create(config)?, LogId(id), boot_id(), begin).map(Arc::new)
}

/// Removes the files of a log that nobody needs any more.
pub fn remove(config: &Config) {
    for path in places(config) {
        // Mostly there is one of them at most.
        let _ = fs::remove_file(path);
    }
}

/// What tells this start of the machine from others; zeros if that is not known.
pub fn boot_id() -> [u64; 2] {
    let text = fs::read_to_string(BOOT_ID).unwrap_or_default();
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let number = u128::from_str_radix(&digits, 16).unwrap_or(0);
    [(number >> 64) as u64, number as u64]
}
