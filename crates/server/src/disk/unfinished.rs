//! RDB files that are being written under temporary names, so that a process that ends at once can
//! remove them.

use std::fs;
use std::path::PathBuf;

use parking_lot::Mutex;

/// The files of this moment, by absolute paths.
#[derive(Debug, Default)]
pub struct Unfinished {
    files: Mutex<Vec<PathBuf>>,
}

/// A file that is being written, until this is dropped.
#[derive(Debug)]
pub struct Known<'a> {
    all: &'a Unfinished,
    path: PathBuf,
}

impl Unfinished {
    /// Creates a file by a temporary name. `remove` either finds it or comes before.
    pub fn create<R>(&self, path: PathBuf, create: impl FnOnce() -> R) -> (Known<'_>, R) {
        let mut files = self.files.lock();
        files.push(path.clone());
        let created = create();
        (Known { all: self, path }, created)
    }

    /// Removes the files, at the end of the process: no more are created. A file that was renamed
    /// is not among them, because it no longer has the temporary name.
    pub fn remove(&self) {
        let files = self.files.lock();
        for path in files.iter() {
            // A file that cannot be removed is never read.
            let _ = fs::remove_file(path);
        }
        std::mem::forget(files);
    }
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        let mut files = self.all.files.lock();
        if let Some(at) = files.iter().position(|path| *path == self.path) {
            files.swap_remove(at);
        }
    }
}
