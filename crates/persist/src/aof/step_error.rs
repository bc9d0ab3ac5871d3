//! The errors of the steps of an append-only file.

use std::fmt;
use std::path::PathBuf;

use super::manifest::ManifestError;
use crate::disk::DiskError;

/// The reason why a step was not taken.
#[derive(Debug)]
pub enum AofError {
    /// The disk failed. The same step may succeed later.
    Disk(DiskError),
    /// The manifest is damaged.
    Manifest(PathBuf, ManifestError),
    /// There is no file to append to, or a sync of it has failed: a base must be written first.
    NeedsBase,
    /// A base is being written.
    Rewriting,
    /// No base is being written.
    NotRewriting,
    /// A sync is in progress.
    Syncing,
}

impl fmt::Display for AofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Manifest(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NeedsBase => f.write_str("the append-only file needs a rewrite"),
            Self::Rewriting => f.write_str("a rewrite of the append-only file is in progress"),
            Self::NotRewriting => f.write_str("no rewrite of the append-only file is in progress"),
            Self::Syncing => f.write_str("an fsync of the append-only file is in progress"),
        }
    }
}

impl std::error::Error for AofError {}

impl From<DiskError> for AofError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}
