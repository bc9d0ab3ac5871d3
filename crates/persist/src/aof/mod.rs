//! The append-only file: a manifest and the files that it names, as in Redis 7 and Valkey.
//!
//! ```text
//!          open            load, repair          resume
//! nothing ------> manifest ------------> loaded ----------> append, sync ---+
//!                    |                                       ^              | fsync fails,
//!                    | no base              finish_rewrite   |              | or no base
//!                    +----> begin_rewrite ------------------>+<-- begin_rewrite
//! ```
//!
//! [`Aof`] is a state machine over a [`Disk`], without threads and clocks. Each step leaves files
//! that can be loaded, wherever it is interrupted, and a step that fails changes no state. Bytes
//! that were reported as durable stay durable:
//!
//! - The manifest names a file only when the file's name is durable, and is replaced as a whole.
//! - An incremental file is synced before another one follows, so only the last one can have the
//!   tail of a crash.
//! - An incremental file whose sync failed is never written again. Later commands go to a file that
//!   the manifest does not name, until a new base makes the failed file superfluous.
//! - While it is uncertain whether a new manifest is durable, no commands become durable.
//!
//! The content is not interpreted here: the owner of a snapshot writes the base, and the loader
//! executes the commands.

pub mod annotations;
mod batch;
mod command;
mod damage;
mod end;
mod load_file;
pub mod manifest;
mod manifest_seal;
mod names;
mod reader;
mod rewrite;
pub(crate) mod salvage;
mod segment;
mod step_error;
mod window;
mod writer;

use std::path::{Path, PathBuf};

use crate::disk::{CommitError, Disk, DiskError, DiskFile, Replacement};
use crate::sink::ByteSink;

pub use damage::{AofFault, AofTail, Damage, ReadError};
pub use end::{AofEnd, FileOrder, Repair};
pub use load_file::LoadFile;
pub(crate) use load_file::{begins_with_rdb, load_files, read_manifest};
pub use manifest::{FileType, Manifest, ManifestEntry, ManifestError};
pub use manifest_seal::LogId;
pub use names::{AofNames, BaseFormat};
pub use reader::{AofItem, AofReader};
use rewrite::PendingRewrite;
pub use rewrite::{Cut, NewBase, WholeBase};
pub use salvage::AofFix;
use segment::Segment;
pub use segment::{PendingSync, TriedSync};
pub use step_error::AofError;
use writer::HeadWriter;
pub use writer::{AofBatch, push_command};

/// An append-only file; see the module's description.
#[derive(Debug)]
pub struct Aof<D: Disk> {
    disk: D,
    names: AofNames,
    manifest: Manifest,
    /// Whether this manifest is durable.
    is_settled: bool,
    segment: Option<Segment<D::File>>,
    rewrite: Option<PendingRewrite>,
    /// Whether a sync is in progress.
    is_syncing: bool,
    durable: u64,
    /// The log that new commands belong to.
    log: Option<LogId>,
}

impl<D: Disk> Aof<D> {
    /// Reads the manifest, if there is one, and removes the files that an interrupted step left.
    ///
    /// # Errors
    /// When the disk fails or the manifest is damaged.
    pub fn open(disk: D, names: AofNames) -> Result<Self, AofError> {
        let manifest = read_manifest(&disk, &names)?;
        let leftovers =
            [names.temporary_manifest(), names.temporary_base(), names.temporary_incremental()];
        for name in leftovers {
            // Usually there is none, and one that stays does no harm.
            let _ = disk.remove(&names.path(&name));
        }
        Ok(Self {
            disk,
            names,
            manifest,
            is_settled: true,
            segment: None,
            rewrite: None,
            is_syncing: false,
            durable: 0,
            log: None,
        })
    }

    /// Makes the single file of a Redis before version 7 the base, if there is one and no other
    /// data. Call it before loading. Returns whether there was such a file.
    ///
    /// # Errors
    /// When the disk fails. The call can be repeated then, and after a crash.
    pub fn upgrade_single_file(&mut self) -> Result<bool, AofError> {
        let (old, new) = (self.names.single_file(), self.names.path(&self.names.file));
        if !exists(&self.disk, &old)? {
            return Ok(false);
        }
        let is_begun = self.manifest.incremental.is_empty()
            && self.manifest.base.as_ref().is_some_and(|base| base.name == self.names.file)
            && !exists(&self.disk, &new)?;
        if !is_begun {
            if !self.manifest.has_no_data() {
                return Ok(false);
            }
            self.create_directory()?;
            let base = ManifestEntry::new(self.names.file.clone(), 1, FileType::Base);
            let manifest = Manifest { base: Some(base), ..self.manifest.clone() };
            self.replace_manifest(manifest)?;
        }
        self.settle()?;
        self.disk.rename(&old, &new)?;
        self.disk.sync_directory(&self.names.directory)?;
        self.disk.sync_directory(Path::new(""))?;
        Ok(true)
    }

    /// Sets the log that new commands belong to. If they are appended to files that the manifest
    /// names, the manifest names the log when this returns, and otherwise with the first base.
    ///
    /// # Errors
    /// When the disk fails: new commands belong to the log that the manifest names, if any.
    pub fn set_log(&mut self, log: LogId) -> Result<(), AofError> {
        if self.is_segment_listed() {
            self.log = self.manifest.log;
            self.replace_manifest(Manifest { log: Some(log), ..self.manifest.clone() })?;
        }
        self.log = Some(log);
        Ok(())
    }

    /// The log that new commands belong to, if it was set.
    pub fn log(&self) -> Option<LogId> {
        self.log
    }

    /// The disk of its files.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The names of its files.
    pub fn names(&self) -> &AofNames {
        &self.names
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Opens the files to load, in the order in which they are loaded.
    ///
    /// # Errors
    /// When a file is missing or cannot be opened.
    pub fn load_files(&self) -> Result<Vec<LoadFile<D::File>>, DiskError> {
        load_files(&self.disk, &self.names, &self.manifest)
    }

    /// Continues the last incremental file, which was loaded and repaired, or begins the first one
    /// after the base. The loaded commands end at this position of the log, and the next command
    /// of the log is a SELECT.
    ///
    /// # Errors
    /// When there is no base, or the disk fails.
    pub fn resume(&mut self, position: u64) -> Result<(), AofError> {
        let last = self.begin_resuming()?;
        let start = Cut { position, database: 0 };
        let segment = match last {
            Some((path, file)) => {
                let len = file.len()?;
                let heads = HeadWriter::after(len);
                Segment { len, synced_len: len, heads, ..Segment::new(file, path, start, true) }
            }
            None => self.list_new_incremental(start)?,
        };
        self.end_resuming(segment, position)
    }

    /// The same for a last file that does not say that it ends at this position, because another
    /// server wrote it: begins a new file there.
    ///
    /// # Errors
    /// As for [`resume`](Self::resume).
    pub fn resume_in_new_file(&mut self, position: u64) -> Result<(), AofError> {
        self.begin_resuming()?;
        let segment = self.list_new_incremental(Cut { position, database: 0 })?;
        self.end_resuming(segment, position)
    }

    /// Opens the last incremental file and makes it durable.
    fn begin_resuming(&mut self) -> Result<Option<(PathBuf, D::File)>, AofError> {
        if self.manifest.has_no_data() {
            return Err(AofError::NeedsBase);
        }
        // The writer of the manifest may have crashed before it did this.
        self.disk.sync_directory(&self.names.directory)?;
        let Some(last) = self.manifest.incremental.last() else { return Ok(None) };
        let path = self.names.path(&last.name);
        let file = self.disk.open_to_append(&path)?;
        file.sync()?;
        Ok(Some((path, file)))
    }

    fn end_resuming(&mut self, segment: Segment<D::File>, position: u64) -> Result<(), AofError> {
        if self.manifest.incremental.iter().any(|entry| entry.end_offset.is_some()) {
            // The file will no longer end there.
            let mut manifest = self.manifest.clone();
            manifest.incremental.iter_mut().for_each(|entry| entry.end_offset = None);
            self.replace_manifest(manifest)?;
        }
        self.segment = Some(segment);
        self.durable = position;
        Ok(())
    }

    /// Appends a batch of the log. It is not durable yet.
    ///
    /// # Errors
    /// When the disk fails: nothing was appended, and the same batch can be appended again.
    /// [`AofError::NeedsBase`] when a base must be begun first.
    pub fn append(&mut self, batch: &AofBatch<'_>) -> Result<(), AofError> {
        let segment = self.segment.as_mut().filter(|segment| segment.is_trusted);
        let segment = segment.ok_or(AofError::NeedsBase)?;
        if segment.is_torn {
            segment.file.truncate(segment.len)?;
            segment.is_torn = false;
        }
        if !batch.is_empty() {
            let prefix = segment.heads.prefix(batch, segment.len, segment.synced_len);
            let [first, second] = batch.parts;
            let parts = [prefix.head, prefix.text, first, second];
            segment.is_torn = true;
            segment.file.append(&parts)?;
            segment.is_torn = false;
            let bytes = parts.iter().map(|part| part.len() as u64).sum::<u64>();
            segment.heads.written(batch, segment.len);
            segment.len += bytes;
        }
        segment.end = batch.end;
        Ok(())
    }

    /// Makes all appended batches durable. Returns the position of the log up to which commands are
    /// durable.
    ///
    /// # Errors
    /// When the disk fails. If the sync of the file failed, a base must be written.
    pub fn sync(&mut self) -> Result<u64, AofError> {
        let tried = self.begin_sync()?.sync();
        self.finish_sync(tried)
    }

    /// Begins a sync, which another thread may carry out while more is appended.
    ///
    /// # Errors
    /// When there is no file to append to, or a sync is in progress.
    pub fn begin_sync(&mut self) -> Result<PendingSync<D::File>, AofError> {
        if self.is_syncing {
            return Err(AofError::Syncing);
        }
        self.settle()?;
        let segment = self.segment.as_ref().filter(|segment| segment.is_trusted);
        let Segment { file, len, end, .. } = segment.ok_or(AofError::NeedsBase)?;
        self.is_syncing = true;
        Ok(PendingSync { file: file.clone(), len: *len, end: *end })
    }

    /// Takes the result of a sync. Returns the position of the log up to which commands are
    /// durable.
    ///
    /// # Errors
    /// When the sync failed: a base must be written.
    pub fn finish_sync(&mut self, tried: TriedSync) -> Result<u64, AofError> {
        self.is_syncing = false;
        let segment = self.segment.as_mut().ok_or(AofError::NeedsBase)?;
        if let Err(error) = tried.result {
            segment.is_trusted = false;
            return Err(error.into());
        }
        segment.synced_len = tried.len;
        segment.synced_end = tried.end;
        if segment.is_listed && self.is_settled {
            self.durable = self.durable.max(segment.synced_end);
        }
        Ok(self.durable)
    }

    /// The position of the log up to which commands are durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether a base must be begun before anything can be appended.
    pub fn needs_base(&self) -> bool {
        !self.segment.as_ref().is_some_and(|segment| segment.is_trusted)
    }

    /// Whether appended commands are found when the files are opened again: false while they go to
    /// a file that the manifest does not name yet.
    pub fn is_found_again(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.is_listed)
    }

    /// Whether a sync is in progress.
    pub fn is_syncing(&self) -> bool {
        self.is_syncing
    }

    /// Whether a base is being written.
    pub fn is_rewriting(&self) -> bool {
        self.rewrite.is_some()
    }

    /// Bytes of the file that is appended to.
    pub fn segment_bytes(&self) -> u64 {
        self.segment.as_ref().map_or(0, |segment| segment.len)
    }

    /// Ends appending, at a shutdown or when `appendonly` is switched off.
    ///
    /// # Errors
    /// When not all commands could be made durable. Appending has ended nevertheless.
    pub fn close(&mut self) -> Result<(), AofError> {
        if self.is_syncing {
            return Err(AofError::Syncing);
        }
        self.abort_rewrite();
        if self.needs_base() {
            self.segment = None;
            return Ok(());
        }
        let synced = self.sync();
        let end = self.segment.take().map(|segment| segment.end);
        synced?;
        let mut manifest = self.manifest.clone();
        if let Some(last) = manifest.incremental.last_mut() {
            last.end_offset = end;
        }
        self.replace_manifest(manifest)
    }

    /// Removes the files of the history. May be called at any time, and again.
    ///
    /// # Errors
    /// When the disk fails. The manifest still names the remaining files.
    pub fn delete_history(&mut self) -> Result<(), AofError> {
        if self.manifest.history.is_empty() {
            return Ok(());
        }
        // The previous manifest needs them, as long as it may come back after a power loss.
        self.settle()?;
        for entry in &self.manifest.history {
            match self.disk.remove(&self.names.path(&entry.name)) {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        self.replace_manifest(Manifest { history: Vec::new(), ..self.manifest.clone() })
    }

    fn create_directory(&self) -> Result<(), DiskError> {
        self.disk.create_directory(&self.names.directory)?;
        self.disk.sync_directory(Path::new(""))
    }

    /// Creates an incremental file for the commands after a cut, and names it in the manifest.
    fn list_new_incremental(&mut self, start: Cut) -> Result<Segment<D::File>, AofError> {
        let sequence = self.manifest.free_sequence(FileType::Incremental);
        let name = self.names.incremental(sequence);
        let path = self.names.path(&name);
        let file = self.disk.create(&path)?;
        let mut manifest = self.manifest.clone();
        let entry = ManifestEntry::new(name, sequence, FileType::Incremental);
        manifest.incremental.push(ManifestEntry { start_offset: Some(start.position), ..entry });
        let listed = self.disk.sync_directory(&self.names.directory).map_err(AofError::from);
        if let Err(error) = listed.and_then(|()| self.replace_manifest(manifest)) {
            // If it cannot be removed, the next file replaces it.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok(Segment::new(file, path, start, true))
    }

    /// Replaces the manifest. If the new one cannot be made durable, it is used nevertheless, but
    /// no commands become durable.
    fn replace_manifest(&mut self, manifest: Manifest) -> Result<(), AofError> {
        match self.write_manifest(&manifest) {
            Err(CommitError::Before(error)) => return Err(error.into()),
            Err(CommitError::Uncertain(_)) => self.is_settled = false,
            Ok(()) => self.is_settled = true,
        }
        self.manifest = manifest;
        Ok(())
    }

    /// Makes this manifest durable.
    fn settle(&mut self) -> Result<(), AofError> {
        if !self.is_settled {
            self.write_manifest(&self.manifest).map_err(CommitError::disk)?;
            self.is_settled = true;
        }
        Ok(())
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), CommitError> {
        let AofNames { directory, .. } = &self.names;
        let temporary = self.names.path(&self.names.temporary_manifest());
        let path = self.names.path(&self.names.manifest());
        let replacement = Replacement::begin(&self.disk, directory, temporary, path);
        let mut replacement = replacement.map_err(CommitError::Before)?;
        if let Err(error) = replacement.sink().put(&manifest.sealed()) {
            replacement.abandon(&self.disk);
            return Err(CommitError::Before(error));
        }
        replacement.commit(&self.disk)
    }
}

fn exists<D: Disk>(disk: &D, path: &Path) -> Result<bool, DiskError> {
    match disk.open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}
