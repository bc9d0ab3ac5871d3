//! A rewrite: a new base, from a snapshot, replaces all commands before it.
//!
//! ```text
//! begin_rewrite   base 1, incr 1          ->  base 1, incr 1, incr 2       incr 1 is synced
//! finish_rewrite  base 1, incr 1, incr 2  ->  base 2, incr 2               history: base 1, incr 1
//! ```
//!
//! When there is no file that can be trusted, because `appendonly` was off or a sync failed, the
//! new incremental file has a temporary name until the manifest names it together with the base:
//!
//! ```text
//! begin_rewrite   base 1, incr 1          ->  base 1, incr 1               temp-incr
//! finish_rewrite  base 1, incr 1          ->  base 2, incr 2               history: base 1, incr 1
//! ```

use std::path::Path;

use super::Aof;
use super::manifest::{FileType, Manifest, ManifestEntry};
use super::names::BaseFormat;
use super::segment::Segment;
use super::step_error::AofError;
use super::writer::{AofBatch, HeadWriter};
use crate::disk::{Disk, DiskError, DiskFile, FileSink};
use crate::sink::ByteSink;

/// The moment of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position of the log. The base has all commands before it.
    pub position: u64,
    /// The database that is selected in the log there.
    pub database: u64,
}

/// A rewrite that is in progress.
#[derive(Debug)]
pub(super) struct PendingRewrite {
    format: BaseFormat,
    /// How many incremental files the base makes superfluous, counted from the first.
    retired: usize,
}

/// A base that is being written, on any thread.
#[derive(Debug)]
pub struct NewBase<F> {
    sink: FileSink<F>,
    heads: HeadWriter,
    position: u64,
}

/// A base that is complete and durable.
#[derive(Debug)]
pub struct WholeBase {
    /// Its length.
    pub bytes: u64,
}

impl<F: DiskFile> NewBase<F> {
    /// The sink for a base that is an RDB file.
    pub fn sink(&mut self) -> &mut FileSink<F> {
        &mut self.sink
    }

    /// Appends complete commands to a base of commands, with one checksum for all of them.
    ///
    /// # Errors
    /// When the disk fails: the base must be given up.
    pub fn commands(&mut self, bytes: &[u8], unix_seconds: Option<i64>) -> Result<(), DiskError> {
        let batch = AofBatch { parts: [bytes, &[]], end: self.position, unix_seconds };
        let at = self.sink.written();
        let prefix = self.heads.prefix(&batch, at, 0);
        self.sink.put(prefix.head)?;
        self.sink.put(prefix.text)?;
        self.sink.put(bytes)?;
        self.heads.written(&batch, at);
        Ok(())
    }

    /// Makes it durable, which may take long.
    ///
    /// # Errors
    /// When the disk fails: the base must be given up.
    pub fn finish(self) -> Result<WholeBase, DiskError> {
        self.sink.file().sync()?;
        Ok(WholeBase { bytes: self.sink.written() })
    }
}

impl<D: Disk> Aof<D> {
    /// Begins a rewrite and returns the base to write. All commands before the cut must have been
    /// appended, unless nothing can be appended; later commands go to another file. When the file
    /// before the cut cannot be synced now, the rewrite is of the second kind.
    ///
    /// # Errors
    /// When a rewrite is in progress or the disk fails.
    pub fn begin_rewrite(
        &mut self,
        cut: Cut,
        format: BaseFormat,
    ) -> Result<NewBase<D::File>, AofError> {
        if self.rewrite.is_some() {
            return Err(AofError::Rewriting);
        }
        if self.is_syncing {
            return Err(AofError::Syncing);
        }
        self.create_directory()?;
        let base = self.disk.create(&self.names.path(&self.names.temporary_base()))?;
        match self.switch_segment(cut) {
            Ok(retired) => self.rewrite = Some(PendingRewrite { format, retired }),
            Err(error) => {
                // If it cannot be removed, the next base replaces it.
                let _ = self.disk.remove(&self.names.path(&self.names.temporary_base()));
                return Err(error);
            }
        }
        let sink = FileSink::new(base);
        Ok(NewBase { sink, heads: HeadWriter::default(), position: cut.position })
    }

    /// Begins the file for the commands after a cut. Returns how many incremental files precede it.
    fn switch_segment(&mut self, cut: Cut) -> Result<usize, AofError> {
        if !self.needs_base() && self.is_segment_listed() && self.sync_last().is_ok() {
            let retired = self.manifest.incremental.len();
            self.segment = Some(self.list_new_incremental(cut)?);
            return Ok(retired);
        }
        let path = self.names.path(&self.names.temporary_incremental());
        let file = self.disk.create(&path)?;
        self.segment = Some(Segment::new(file, path, cut, false));
        Ok(self.manifest.incremental.len())
    }

    /// Makes the file before the cut durable, without the part of a batch at its end.
    fn sync_last(&mut self) -> Result<(), AofError> {
        if let Some(segment) = self.segment.as_mut().filter(|segment| segment.is_torn) {
            segment.file.truncate(segment.len)?;
            segment.is_torn = false;
        }
        self.sync().map(|_| ())
    }

    pub(super) fn is_segment_listed(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.is_listed)
    }

    /// Ends a rewrite: the base replaces the files before the cut, which become history.
    ///
    /// # Errors
    /// When no rewrite is in progress or the disk fails: the rewrite has failed then, and the files
    /// before the cut stay in use.
    pub fn finish_rewrite(&mut self, base: WholeBase) -> Result<(), AofError> {
        let WholeBase { .. } = base;
        let Some(rewrite) = &self.rewrite else { return Err(AofError::NotRewriting) };
        let is_lost = self.needs_base() && !self.is_segment_listed();
        let result = if is_lost {
            // A sync of the file that the manifest would name failed.
            Err(AofError::NeedsBase)
        } else {
            self.switch_base(rewrite.format, rewrite.retired)
        };
        if result.is_err() {
            self.abort_rewrite();
        }
        self.rewrite = None;
        result
    }

    fn switch_base(&mut self, format: BaseFormat, retired: usize) -> Result<(), AofError> {
        let mut manifest = self.manifest.clone();
        let sequence = manifest.free_sequence(FileType::Base);
        let name = self.names.base(sequence, format);
        let base_path = self.names.path(&name);
        self.disk.rename(&self.names.path(&self.names.temporary_base()), &base_path)?;
        let base = ManifestEntry::new(name, sequence, FileType::Base);
        let sequence = manifest.free_sequence(FileType::Incremental);
        manifest.retire(retired);
        manifest.base = Some(base);
        manifest.log = self.log;
        let mut new_path = None;
        if !self.is_segment_listed() {
            let name = self.names.incremental(sequence);
            new_path = Some(self.names.path(&name));
            let start_offset = self.segment.as_ref().map(|segment| segment.start);
            let entry = ManifestEntry::new(name, sequence, FileType::Incremental);
            manifest.incremental.push(ManifestEntry { start_offset, ..entry });
        }
        if let Err(error) = self.name_new(manifest, new_path.as_deref()) {
            // If they cannot be removed, the next ones replace them.
            let _ = self.disk.remove(&base_path);
            let _ = new_path.map(|path| self.disk.remove(&path));
            return Err(error);
        }
        let Some(segment) = &mut self.segment else { return Ok(()) };
        if let Some(path) = new_path {
            segment.path = path;
            segment.is_listed = true;
        }
        if self.is_settled && segment.is_trusted {
            self.durable = self.durable.max(segment.synced_end);
        }
        Ok(())
    }

    /// Gives the incremental file its final name, and replaces the manifest.
    fn name_new(&mut self, manifest: Manifest, path: Option<&Path>) -> Result<(), AofError> {
        if let (Some(path), Some(segment)) = (path, &self.segment) {
            self.disk.rename(&segment.path, path)?;
        }
        self.disk.sync_directory(&self.names.directory)?;
        self.replace_manifest(manifest)
    }

    /// Aborts a rewrite, if one is in progress.
    pub fn abort_rewrite(&mut self) {
        if self.rewrite.take().is_none() {
            return;
        }
        // If they cannot be removed, the next ones replace them.
        let _ = self.disk.remove(&self.names.path(&self.names.temporary_base()));
        if !self.is_segment_listed() {
            let _ = self.disk.remove(&self.names.path(&self.names.temporary_incremental()));
            self.segment = None;
        }
    }
}
