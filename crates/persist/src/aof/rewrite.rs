//! A rewrite: a new base, from a snapshot, takes the place of all that was written before it.
//!
//! ```text
//! begin_rewrite   base 1, incr 1          ->  base 1, incr 1, incr 2       incr 1 is synced
//! finish_rewrite  base 1, incr 1, incr 2  ->  base 2, incr 2               history: base 1, incr 1
//! ```
//!
//! When there is no file that can be trusted, because `appendonly` was off or a sync has failed,
//! the new incremental file has a temporary name, and the manifest names it together with the base:
//!
//! ```text
//! begin_rewrite   base 1, incr 1          ->  base 1, incr 1               temp-incr
//! finish_rewrite  base 1, incr 1          ->  base 2, incr 2               history: base 1, incr 1
//! ```

use std::path::Path;

use super::{Aof, AofError, BaseFormat, Batch, BatchHeads, Entry, FileType, Manifest, Segment};
use crate::disk::{Disk, DiskError, DiskFile, FileSink};
use crate::sink::Sink;

/// The moment of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The position of the log: what is before it is in the base.
    pub position: u64,
    /// The database that the log has selected there.
    pub database: u64,
}

/// A rewrite that was begun.
#[derive(Debug)]
pub(super) struct Rewrite {
    format: BaseFormat,
    /// Incremental files that the base makes superfluous, from the first on.
    retired: usize,
}

/// A base that is being written, on whichever thread.
#[derive(Debug)]
pub struct NewBase<F> {
    sink: FileSink<F>,
    heads: BatchHeads,
    position: u64,
}

/// A base that is whole and certain.
#[derive(Debug)]
pub struct WholeBase {
    /// Its length.
    pub bytes: u64,
}

impl<F: DiskFile> NewBase<F> {
    /// Where an RDB file goes.
    pub fn sink(&mut self) -> &mut FileSink<F> {
        &mut self.sink
    }

    /// Writes whole commands, with a checksum for all of them together.
    ///
    /// # Errors
    /// When the disk fails: the base is lost then.
    pub fn commands(&mut self, bytes: &[u8], unix_seconds: Option<i64>) -> Result<(), DiskError> {
        let batch = Batch { parts: [bytes, &[]], end: self.position, unix_seconds };
        let prefix = self.heads.prefix(&batch, self.sink.written(), 0);
        self.sink.put(prefix.head)?;
        self.sink.put(prefix.text)?;
        self.sink.put(bytes)?;
        self.heads.written(&batch);
        Ok(())
    }

    /// Makes it certain, which may take long.
    ///
    /// # Errors
    /// When the disk fails: the base is lost then.
    pub fn finish(self) -> Result<WholeBase, DiskError> {
        self.sink.file().sync()?;
        Ok(WholeBase { bytes: self.sink.written() })
    }
}

impl<D: Disk> Aof<D> {
    /// Begins a rewrite: everything before the cut was appended, or is not needed because nothing
    /// can be appended; what comes later goes to another file. Returns the base to write. When the
    /// file before cannot be synced now, the rewrite is one of the second kind.
    ///
    /// # Errors
    /// When one is in progress or the disk fails.
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
            Ok(retired) => self.rewrite = Some(Rewrite { format, retired }),
            Err(error) => {
                // Where it cannot be removed, the next one takes its place.
                let _ = self.disk.remove(&self.names.path(&self.names.temporary_base()));
                return Err(error);
            }
        }
        let sink = FileSink::new(base);
        Ok(NewBase { sink, heads: BatchHeads::default(), position: cut.position })
    }

    /// Begins the file for what follows a cut. How many incremental files are before it.
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

    /// Makes the file that is left certain, with nothing behind its whole batches.
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

    /// Ends a rewrite: the base takes the place of what was before the cut, which becomes history.
    ///
    /// # Errors
    /// When none is in progress or the disk fails: the rewrite has failed then, and everything is
    /// as before.
    pub fn finish_rewrite(&mut self, base: WholeBase) -> Result<(), AofError> {
        let WholeBase { .. } = base;
        let Some(rewrite) = &self.rewrite else { return Err(AofError::NotRewriting) };
        let is_lost = self.needs_base() && !self.is_segment_listed();
        let result = if is_lost {
            // A sync of the file that the manifest would name has failed.
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
        let base = Entry::new(name, sequence, FileType::Base);
        let sequence = manifest.free_sequence(FileType::Incremental);
        manifest.retire(retired);
        manifest.base = Some(base);
        manifest.log = self.log;
        let mut new_path = None;
        if !self.is_segment_listed() {
            let name = self.names.incremental(sequence);
            new_path = Some(self.names.path(&name));
            let start_offset = self.segment.as_ref().map(|segment| segment.start);
            let entry = Entry::new(name, sequence, FileType::Incremental);
            manifest.incremental.push(Entry { start_offset, ..entry });
        }
        if let Err(error) = self.name_new(manifest, new_path.as_deref()) {
            // Where they cannot be removed, the next ones take their place.
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

    /// Gives the incremental file its name, and names everything in the manifest.
    fn name_new(&mut self, manifest: Manifest, path: Option<&Path>) -> Result<(), AofError> {
        if let (Some(path), Some(segment)) = (path, &self.segment) {
            self.disk.rename(&segment.path, path)?;
        }
        self.disk.sync_directory(&self.names.directory)?;
        self.replace_manifest(manifest)
    }

    /// Gives up a rewrite, if one is in progress.
    pub fn abort_rewrite(&mut self) {
        if self.rewrite.take().is_none() {
            return;
        }
        // Where they cannot be removed, the next ones take their place.
        let _ = self.disk.remove(&self.names.path(&self.names.temporary_base()));
        if !self.is_segment_listed() {
            let _ = self.disk.remove(&self.names.path(&self.names.temporary_incremental()));
            self.segment = None;
        }
    }
}
