//! The file that is appended to, and its syncs, which may take long and so run on any thread.

use std::path::PathBuf;

use super::rewrite::Cut;
use super::writer::HeadWriter;
use crate::disk::{DiskError, DiskFile};

/// The file that is appended to.
#[derive(Debug)]
pub(super) struct Segment<F> {
    pub(super) file: F,
    pub(super) path: PathBuf,
    pub(super) heads: HeadWriter,
    /// Bytes of complete batches.
    pub(super) len: u64,
    /// How many of them are durable.
    pub(super) synced_len: u64,
    /// The position in the log at its beginning.
    pub(super) start: u64,
    /// The position in the log after `len` bytes.
    pub(super) end: u64,
    /// The position in the log after `synced_len` bytes.
    pub(super) synced_end: u64,
    /// Whether the manifest names it.
    pub(super) is_listed: bool,
    /// False after a sync of it failed.
    pub(super) is_trusted: bool,
    /// Whether part of a batch may follow the complete ones.
    pub(super) is_torn: bool,
}

impl<F> Segment<F> {
    /// An empty file for the commands after a cut.
    pub(super) fn new(file: F, path: PathBuf, start: Cut, is_listed: bool) -> Self {
        // A loader selects database 0 at the beginning of a file.
        let heads = HeadWriter::of_file(Some(start.database).filter(|database| *database > 0));
        Self {
            file,
            path,
            heads,
            len: 0,
            synced_len: 0,
            start: start.position,
            end: start.position,
            synced_end: start.position,
            is_listed,
            is_trusted: true,
            is_torn: false,
        }
    }
}

/// A sync that was begun; see [`Aof::begin_sync`](super::Aof::begin_sync).
#[derive(Debug)]
pub struct PendingSync<F> {
    pub(super) file: F,
    pub(super) len: u64,
    pub(super) end: u64,
}

/// A sync that succeeded or failed.
#[derive(Debug)]
pub struct TriedSync {
    pub(super) len: u64,
    pub(super) end: u64,
    pub(super) result: Result<(), DiskError>,
}

impl<F: DiskFile> PendingSync<F> {
    /// Makes the bytes durable. May run on any thread, and may take long.
    pub fn sync(self) -> TriedSync {
        TriedSync { len: self.len, end: self.end, result: self.file.sync() }
    }
}
