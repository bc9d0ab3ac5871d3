//! The lock of an append-only file, so that one process at a time writes it: another process would
//! take over its log and cut off later appends.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use node::config::Config;
use persist::disk::Disk;

use super::aof_files::names;
use crate::system::real_disk::RealDisk;
use crate::system::server_log::{notice, warning};

/// How long a process that was killed may take to end.
const END_MAX: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The lock, until it is dropped or the process has ended. Its file is `None` where files cannot be
/// locked.
#[derive(Debug)]
pub struct AofLock(#[allow(dead_code)] Option<File>);

impl AofLock {
    /// Locks the append-only file of a configuration.
    ///
    /// # Errors
    /// When another process has it.
    pub fn take(disk: &RealDisk, config: &Config) -> Result<Self, String> {
        let path = path(config);
        Self::of(disk, &path)?.ok_or_else(|| in_use(&path))
    }

    /// The same at start, when the process before may not have ended yet.
    ///
    /// # Errors
    /// When another process has it.
    pub fn wait(disk: &RealDisk, config: &Config) -> Result<Self, String> {
        let (path, began) = (path(config), Instant::now());
        let mut is_said = false;
        loop {
            match Self::of(disk, &path)? {
                Some(lock) => return Ok(lock),
                None if began.elapsed() >= END_MAX => return Err(in_use(&path)),
                None => {}
            }
            if !std::mem::replace(&mut is_said, true) {
                notice!("{}: waiting for its end", in_use(&path));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Returns `None` if another process has it.
    fn of(disk: &RealDisk, path: &Path) -> Result<Option<Self>, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        if let Some(directory) = path.parent() {
            disk.create_directory(directory).map_err(|error| error.to_string())?;
        }
        let mut options = OpenOptions::new();
        let place = disk.place(path).map_err(|error| error.to_string())?;
        let file = options.create(true).append(true).mode(0o600).open(place);
        let file = file.map_err(|error| failed(&error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                warning!("The append-only file can't be locked: {error}");
                Ok(Some(Self(None)))
            }
        }
    }
}

fn path(config: &Config) -> PathBuf {
    names(config).directory.join(format!("{}.lock", config.append_only.appendfilename))
}

fn in_use(path: &Path) -> String {
    format!(
        "The append-only file is in use by another process, which has locked {}",
        path.display()
    )
}
