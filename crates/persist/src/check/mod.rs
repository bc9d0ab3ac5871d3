//! Checks files without a server: the valid part, the first damage, and what a fix would keep.
//!
//! Nothing here changes a file that exists: a fix is a new file.

mod aof;
mod rdb;

use std::io;

pub use aof::{
    AofReport, DirectoryReport, Later, check_aof, check_directory, check_listed, entry_of, files,
    later_than, reopened,
};
pub use rdb::{KeyFound, LibraryFound, ModuleFound, RdbReport, check_rdb, write_loaded};

use crate::aof::AofError;
use crate::disk::DiskError;

/// Why files could not be checked.
#[derive(Debug)]
pub enum CheckError {
    /// The disk failed.
    Disk(DiskError),
    /// A file could not be read.
    Read(io::Error),
    /// The manifest is damaged.
    Manifest(AofError),
}

impl From<DiskError> for CheckError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Manifest(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckError {}
