//! The working directory of one moment, as a place for files: it stays the same when `dir` changes,
//! and when the directory is renamed.
//!
//! Paths in it lead through its descriptor, `/proc/self/fd/N/name`, so that a directory that has
//! taken its name since is another one, with another server's files. Where there is no `/proc` they
//! lead through its name. A directory that cannot be opened has no paths: otherwise an append-only
//! file could follow the name for as long as it is written.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where descriptors of the process have paths.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A directory. Clones are the same.
#[derive(Clone, Debug)]
pub struct Directory {
    /// The start of all paths; they are valid while it is open.
    root: PathBuf,
    /// The descriptor in `root`, if that names one, and the name of the directory at first.
    opened: Option<Arc<(File, PathBuf)>>,
    failure: Option<Arc<io::Error>>,
}

impl Directory {
    /// The working directory of this moment.
    pub fn current() -> Self {
        // Without it, paths are relative to whatever it is when they are used.
        let path = std::env::current_dir().unwrap_or_default();
        let opened = sys::process::open_directory(Path::new("."));
        opened
            .and_then(|opened| Self::open_among(Path::new(DESCRIPTORS), opened, path.clone()))
            .unwrap_or_else(|error| Self::failed(path, error))
    }

    /// An open directory whose descriptor has a path among others, or by its name where there are
    /// no such paths.
    fn open_among(descriptors: &Path, opened: File, path: PathBuf) -> io::Result<Self> {
        let root = descriptors.join(opened.as_raw_fd().to_string());
        match fs::metadata(&root) {
            Ok(found) if found.is_dir() => {
                Ok(Self { root, opened: Some(Arc::new((opened, path))), failure: None })
            }
            Ok(_) => Ok(Self::named(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::named(path)),
            Err(error) => Err(error),
        }
    }

    /// The directory that has this path when it is used.
    pub fn named(path: PathBuf) -> Self {
        Self { root: path, opened: None, failure: None }
    }

    /// One that could not be opened.
    pub fn failed(path: PathBuf, error: io::Error) -> Self {
        Self { root: path, opened: None, failure: Some(Arc::new(error)) }
    }

    /// Whether it is found by its name each time.
    pub fn is_by_name(&self) -> bool {
        self.opened.is_none() && self.failure.is_none()
    }

    /// Where a file is. Valid while this directory is known.
    ///
    /// # Errors
    /// Why the directory could not be opened; never of the kind `NotFound`, since that says nothing
    /// of the file.
    pub fn place(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.failure {
            Some(error) => Err(io::Error::other(error.to_string())),
            None => Ok(self.root.join(path)),
        }
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
        let place = directory.place(Path::new("Cargo.toml")).unwrap();
        assert!(place.is_file() && place.starts_with("/proc/self/fd"), "{}", place.display());
        assert_eq!(directory.shown(&place), path.join("Cargo.toml"));
        let elsewhere = Path::new("/dev/shm/file");
        assert_eq!(directory.place(elsewhere).unwrap(), elsewhere);
        assert_eq!(directory.shown(elsewhere), elsewhere);
        assert!(!directory.is_by_name());
    }

    #[test]
    fn only_without_proc_is_a_directory_found_by_its_name() {
        let (folder, file) =
            (tempfile::tempdir().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let open = |descriptors: &Path| {
            let opened = File::open(folder.path()).unwrap();
            Directory::open_among(descriptors, opened, folder.path().to_owned())
        };
        let found = open(&folder.path().join("nosuch")).unwrap();
        assert!(found.is_by_name());
        assert_eq!(found.place(Path::new("file")).unwrap(), folder.path().join("file"));
        // It is not known whether there are such paths.
        assert_eq!(open(file.path()).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert!(!open(Path::new(DESCRIPTORS)).unwrap().is_by_name());
    }
}
