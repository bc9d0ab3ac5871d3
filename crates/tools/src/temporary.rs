//! Temporary folders that are removed with the value, also when the process ends before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Error;

/// How many times a folder is removed when the process ends, since a server that still runs may
/// write a file meanwhile, and the time between two tries.
const TRIES_MAX: u32 = 50;
const TRY_PERIOD: Duration = Duration::from_millis(10);

/// All folders. It is locked while one is made or removed.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A new, empty folder.
#[derive(Debug)]
pub(crate) struct TemporaryFolder {
    path: PathBuf,
}

impl TemporaryFolder {
    /// Makes a folder that only its owner may use.
    pub(crate) fn create() -> Result<TemporaryFolder, Error> {
        let mut folders = lock();
        let made = tempfile::tempdir().map_err(Error::io("create a temporary folder"))?;
        let path = made.keep();
        folders.push(path.clone());
        Ok(TemporaryFolder { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder.
    pub(crate) fn keep(self) -> PathBuf {
        forget(&mut lock(), &self.path);
        let path = self.path.clone();
        std::mem::forget(self);
        path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let mut folders = lock();
        let _ = fs::remove_dir_all(&self.path);
        forget(&mut folders, &self.path);
    }
}

/// Removes all folders and ends the process with an exit code, and with it the servers that it
/// started.
pub(crate) fn exit(status: i32) -> ! {
    // The lock is kept, so no folder is made from now on.
    for path in &*lock() {
        for _ in 0..TRIES_MAX {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(TRY_PERIOD);
                }
                _ => break,
            }
        }
    }
    signal_hook::low_level::exit(status)
}

fn forget(folders: &mut Vec<PathBuf>, path: &Path) {
    folders.retain(|folder| folder != path);
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    FOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_removed_with_the_value_unless_it_is_kept() {
        let (folder, kept) =
            (TemporaryFolder::create().unwrap(), TemporaryFolder::create().unwrap());
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "text").unwrap();
        drop(folder);
        assert!(!path.exists() && !lock().contains(&path));
        let path = kept.keep();
        assert!(path.exists() && !lock().contains(&path));
        fs::remove_dir(path).unwrap();
    }
}
