//! The working directory of one moment, as a place for files: it stays the same when `dir` changes,
//! and when somebody gives it another name.
//!
//! Paths in it lead through its descriptor, `/proc/self/fd/N/name`, so that a directory that has
//! taken its name meanwhile is another one, with another server's files. Where there is no `/proc`
//! they lead through its name.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    /// What paths begin with; they are valid while it is open.
    root: PathBuf,
    /// The descriptor in `root`, if that names one, and the name of the directory at first.
    opened: Option<Arc<(File, PathBuf)>>,
}

impl Directory {
    /// The working directory of this moment.
    pub fn current() -> Self {
        // Without it, paths are relative to whatever it is when they are used.
        let path = std::env::current_dir().unwrap_or_default();
        let Ok(opened) = sys::process::open_directory(Path::new(".")) else {
            return Self::named(path);
        };
        let root = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        match fs::metadata(&root) {
            Ok(found) if found.is_dir() => Self { root, opened: Some(Arc::new((opened, path))) },
            _ => Self::named(path),
        }
    }

    /// Whichever directory has a path.
    pub fn named(path: PathBuf) -> Self {
        Self { root: path, opened: None }
    }

    /// Where a file is. Valid while this directory is known.
    pub fn place(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// A place in the words of the operator: by the name that the directory has now.
    pub fn shown(&self, place: &Path) -> PathBuf {
        match (&self.opened, place.strip_prefix(&self.root)) {
            (Some(opened), Ok(path)) => {
                fs::read_link(&self.root).unwrap_or_else(|_| opened.1.clone()).join(path)
            }
            _ => place.to_owned(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_by_a_name() {
        let (directory, path) = (Directory::current(), std::env::current_dir().unwrap());
        let place = directory.place(Path::new("Cargo.toml"));
        assert!(place.is_file() && place.starts_with("/proc/self/fd"), "{}", place.display());
        assert_eq!(directory.shown(&place), path.join("Cargo.toml"));
        let elsewhere = Path::new("/dev/shm/file");
        assert_eq!(directory.place(elsewhere), elsewhere);
        assert_eq!(directory.shown(elsewhere), elsewhere);
    }
}
