//! The append-only file: several files and a manifest that names them, as Redis 7 and later and
//! Valkey have them.
//!
//! ```text
//!          open            load, repair          resume
//! nothing ------> manifest ------------> loaded ----------> append, sync ---+
//!                    |                                       ^              | fsync fails,
//!                    | no base              finish_rewrite   |              | or no base
//!                    +----> begin_rewrite ------------------>+<-- begin_rewrite
//! ```
//!
//! [`Aof`] is a state machine over a [`Disk`]: it has no threads and reads no clock. Each of its
//! steps leaves files that can be loaded, wherever it is interrupted, and a step that fails leaves
//! the state before it. What it says is durable stays so:
//!
//! - A file is named by the manifest when its name is certain, and the manifest is replaced whole.
//! - An incremental file is synced before another one follows it, so only the last one can have the
//!   tail of a crash.
//! - An incremental file whose sync failed is never written again. What comes later goes to a file
//!   that the manifest does not name, until a new base makes the one that failed superfluous.
//! - When the manifest was replaced and that is not certain, nothing becomes durable until it is.
//!
//! Data as such are none of its business: the base is written by whoever has a snapshot, commands
//! are loaded by whoever can run them.

pub mod annotations;
mod command;
mod damage;
pub mod manifest;
mod manifest_seal;
mod names;
mod reader;
mod rewrite;
mod window;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::disk::{CommitError, Disk, DiskError, DiskFile, Replacement, read_whole};
use crate::sink::Sink;

pub use damage::{Damage, Fault, ReadError, Tail};
pub use manifest::{Entry, FileType, Manifest, ManifestError};
pub use manifest_seal::LogId;
pub use names::{BaseFormat, Names};
pub use reader::{End, Item, Place, Reader, Repair};
use rewrite::Rewrite;
pub use rewrite::{Cut, NewBase, WholeBase};
use writer::BatchHeads;
pub use writer::{Batch, push_command};

/// An append-only file; see the module's description.
#[derive(Debug)]
pub struct Aof<D: Disk> {
    disk: D,
    names: Names,
    manifest: Manifest,
    /// Whether the manifest on the disk is certainly this one.
    is_settled: bool,
    segment: Option<Segment<D::File>>,
    rewrite: Option<Rewrite>,
    /// Whether a sync is on its way.
    is_syncing: bool,
    durable: u64,
    /// The log that is written from now on.
    log: Option<LogId>,
}

/// The file that is appended to.
#[derive(Debug)]
struct Segment<F> {
    file: F,
    path: PathBuf,
    heads: BatchHeads,
    /// Bytes of whole batches.
    len: u64,
    /// Those that are certain.
    synced_len: u64,
    /// The position in the log where it begins.
    start: u64,
    /// The positions behind those bytes.
    end: u64,
    synced_end: u64,
    /// Whether the manifest names it.
    is_listed: bool,
    /// Whether no sync of it has failed.
    is_trusted: bool,
    /// Whether part of a batch may follow its whole ones.
    is_torn: bool,
}

impl<F> Segment<F> {
    /// An empty file for what follows a position.
    fn new(file: F, path: PathBuf, start: Cut, is_listed: bool) -> Self {
        // Commands that are loaded from a file begin in database 0.
        let heads = BatchHeads::of_file(Some(start.database).filter(|database| *database > 0));
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

/// Why a step was not taken.
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
    /// A sync is on its way.
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

/// A file to load.
#[derive(Debug)]
pub struct LoadFile<F> {
    /// Its entry in the manifest.
    pub entry: Entry,
    /// Its path.
    pub path: PathBuf,
    /// The file.
    pub file: F,
    /// Its length.
    pub bytes: u64,
    /// Whether another one follows.
    pub place: Place,
}

impl<F: DiskFile> LoadFile<F> {
    /// Whether it begins with an RDB file, behind which commands may follow.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn begins_with_rdb(&self) -> Result<bool, DiskError> {
        begins_with_rdb(&self.file)
    }
}

pub(crate) fn begins_with_rdb<F: DiskFile>(file: &F) -> Result<bool, DiskError> {
    let mut magic = [0; 6];
    let read = file.read_at(0, &mut magic)?;
    Ok(magic[..read].starts_with(b"REDIS") || magic[..read].starts_with(b"VALKEY"))
}

/// A sync on its way; see [`Aof::begin_sync`].
#[derive(Debug)]
pub struct PendingSync<F> {
    file: F,
    len: u64,
    end: u64,
}

/// A sync that was tried.
#[derive(Debug)]
pub struct TriedSync {
    len: u64,
    end: u64,
    result: Result<(), DiskError>,
}

impl<F: DiskFile> PendingSync<F> {
    /// Makes the bytes certain, on whichever thread, however long that takes.
    pub fn run(self) -> TriedSync {
        TriedSync { len: self.len, end: self.end, result: self.file.sync() }
    }
}

impl<D: Disk> Aof<D> {
    /// Reads the manifest, if there is one, and removes what an interrupted step has left.
    ///
    /// # Errors
    /// When the disk fails or the manifest is damaged.
    pub fn open(disk: D, names: Names) -> Result<Self, AofError> {
        let manifest = read_manifest(&disk, &names)?;
        let leftovers =
            [names.temporary_manifest(), names.temporary_base(), names.temporary_incremental()];
        for name in leftovers {
            // Mostly there is none; where it cannot be removed, it does no harm.
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
    /// data. To be called before anything is loaded. Says whether it did.
    ///
    /// # Errors
    /// When the disk fails. The same can be done again then, and after a crash.
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
            let base = Entry::new(self.names.file.clone(), 1, FileType::Base);
            let manifest = Manifest { base: Some(base), ..self.manifest.clone() };
            self.replace_manifest(manifest)?;
        }
        self.settle()?;
        self.disk.rename(&old, &new)?;
        self.disk.sync_directory(&self.names.directory)?;
        self.disk.sync_directory(Path::new(""))?;
        Ok(true)
    }

    /// What is appended from now on is of this log. Where files are gone on with, the manifest says
    /// so when this returns, and otherwise with the first base.
    ///
    /// # Errors
    /// When the disk fails: what is appended is of the log that the manifest names, if any.
    pub fn set_log(&mut self, log: LogId) -> Result<(), AofError> {
        if self.is_segment_listed() {
            self.log = self.manifest.log;
            self.replace_manifest(Manifest { log: Some(log), ..self.manifest.clone() })?;
        }
        self.log = Some(log);
        Ok(())
    }

    /// The log of which what is appended is, if it was set.
    pub fn log(&self) -> Option<LogId> {
        self.log
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The files to load, in their order.
    ///
    /// # Errors
    /// When one of them cannot be opened, as one that is missing.
    pub fn load_files(&self) -> Result<Vec<LoadFile<D::File>>, DiskError> {
        load_files(&self.disk, &self.names, &self.manifest)
    }

    /// Goes on with the last incremental file, which was loaded and repaired, or begins the first
    /// one behind the base. What was loaded ends at this position of the log, and the log goes on
    /// by selecting a database.
    ///
    /// # Errors
    /// When there is no base, or the disk fails.
    pub fn resume(&mut self, position: u64) -> Result<(), AofError> {
        let last = self.begin_resuming()?;
        let start = Cut { position, database: 0 };
        let segment = match last {
            Some((path, file)) => {
                let len = file.len()?;
                Segment { len, synced_len: len, ..Segment::new(file, path, start, true) }
            }
            None => self.list_new_incremental(start)?,
        };
        self.end_resuming(segment, position)
    }

    /// The same where the last file does not tell that it ends at this position, because another
    /// server has written it: in a file of its own, which begins there.
    ///
    /// # Errors
    /// As above.
    pub fn resume_in_new_file(&mut self, position: u64) -> Result<(), AofError> {
        self.begin_resuming()?;
        let segment = self.list_new_incremental(Cut { position, database: 0 })?;
        self.end_resuming(segment, position)
    }

    /// The last incremental file, which is made certain.
    fn begin_resuming(&mut self) -> Result<Option<(PathBuf, D::File)>, AofError> {
        if self.manifest.has_no_data() {
            return Err(AofError::NeedsBase);
        }
        // Whoever wrote the manifest may not have come to this.
        self.disk.sync_directory(&self.names.directory)?;
        let Some(last) = self.manifest.incremental.last() else { return Ok(None) };
        let path = self.names.path(&last.name);
        let file = self.disk.open_to_append(&path)?;
        file.sync()?;
        Ok(Some((path, file)))
    }

    fn end_resuming(&mut self, segment: Segment<D::File>, position: u64) -> Result<(), AofError> {
        if self.manifest.incremental.iter().any(|entry| entry.end_offset.is_some()) {
            // It is not the end any more.
            let mut manifest = self.manifest.clone();
            manifest.incremental.iter_mut().for_each(|entry| entry.end_offset = None);
            self.replace_manifest(manifest)?;
        }
        self.segment = Some(segment);
        self.durable = position;
        Ok(())
    }

    /// Appends bytes of the log. They are not durable yet.
    ///
    /// # Errors
    /// When the disk fails: nothing was appended then, and the same batch can be tried again.
    /// [`AofError::NeedsBase`] when nothing can be appended until a base is begun.
    pub fn append(&mut self, batch: &Batch<'_>) -> Result<(), AofError> {
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
            segment.len += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            segment.heads.written(batch);
        }
        segment.end = batch.end;
        Ok(())
    }

    /// Makes what was appended durable and says up to which position of the log everything is.
    ///
    /// # Errors
    /// When the disk fails. If that was the sync of the file, a base must be written.
    pub fn sync(&mut self) -> Result<u64, AofError> {
        let tried = self.begin_sync()?.run();
        self.finish_sync(tried)
    }

    /// Begins a sync that another thread may carry out while more is appended.
    ///
    /// # Errors
    /// When there is no file to append to, or one sync is on its way.
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

    /// Takes the result of a sync and says up to which position of the log everything is durable.
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

    /// The position of the log up to which everything is durable.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Whether nothing can be appended until a base is begun.
    pub fn needs_base(&self) -> bool {
        !self.segment.as_ref().is_some_and(|segment| segment.is_trusted)
    }

    /// Whether what is appended is found again when the files are opened anew: not while it goes to
    /// a file that the manifest does not name yet.
    pub fn is_found_again(&self) -> bool {
        self.segment.as_ref().is_some_and(|segment| segment.is_listed)
    }

    /// Whether a sync is on its way.
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

    /// Ends appending: at a shutdown, or when `appendonly` is switched off.
    ///
    /// # Errors
    /// When not everything could be made durable. It has ended all the same.
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

    /// Removes the files that nobody needs. May be done later or again.
    ///
    /// # Errors
    /// When the disk fails; the rest of the files is still named by the manifest.
    pub fn delete_history(&mut self) -> Result<(), AofError> {
        if self.manifest.history.is_empty() {
            return Ok(());
        }
        // As long as the manifest before may come back, they are needed.
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

    /// Creates an incremental file for what follows a position, and names it in the manifest.
    fn list_new_incremental(&mut self, start: Cut) -> Result<Segment<D::File>, AofError> {
        let sequence = self.manifest.free_sequence(FileType::Incremental);
        let name = self.names.incremental(sequence);
        let path = self.names.path(&name);
        let file = self.disk.create(&path)?;
        let mut manifest = self.manifest.clone();
        let entry = Entry::new(name, sequence, FileType::Incremental);
        manifest.incremental.push(Entry { start_offset: Some(start.position), ..entry });
        let listed = self.disk.sync_directory(&self.names.directory).map_err(AofError::from);
        if let Err(error) = listed.and_then(|()| self.replace_manifest(manifest)) {
            // Where it cannot be removed, the next one takes its place.
            let _ = self.disk.remove(&path);
            return Err(error);
        }
        Ok(Segment::new(file, path, start, true))
    }

    /// Replaces the manifest. When that cannot be made certain, the new one counts, but nothing
    /// becomes durable.
    fn replace_manifest(&mut self, manifest: Manifest) -> Result<(), AofError> {
        match self.write_manifest(&manifest) {
            Err(CommitError::Before(error)) => return Err(error.into()),
            Err(CommitError::Uncertain(_)) => self.is_settled = false,
            Ok(()) => self.is_settled = true,
        }
        self.manifest = manifest;
        Ok(())
    }

    /// Makes certain that the manifest on the disk is this one.
    fn settle(&mut self) -> Result<(), AofError> {
        if !self.is_settled {
            self.write_manifest(&self.manifest).map_err(CommitError::disk)?;
            self.is_settled = true;
        }
        Ok(())
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), CommitError> {
        let Names { directory, .. } = &self.names;
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

/// The manifest of an append-only file, empty if there is none.
pub(crate) fn read_manifest<D: Disk>(disk: &D, names: &Names) -> Result<Manifest, AofError> {
    let path = names.path(&names.manifest());
    let file = match disk.open(&path) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(Manifest::default()),
        Err(error) => return Err(error.into()),
    };
    let text = read_whole(&file, &path, manifest::BYTES_MAX)?;
    Manifest::parse(&text).map_err(|error| AofError::Manifest(path, error))
}

pub(crate) fn load_files<D: Disk>(
    disk: &D,
    names: &Names,
    manifest: &Manifest,
) -> Result<Vec<LoadFile<D::File>>, DiskError> {
    let count = manifest.load_order().count();
    let files = manifest.load_order().enumerate().map(|(index, entry)| {
        let path = names.path(&entry.name);
        let file = disk.open(&path)?;
        let bytes = file.len()?;
        let place = if index + 1 == count { Place::Last } else { Place::BeforeOthers };
        Ok(LoadFile { entry: entry.clone(), path, file, bytes, place })
    });
    files.collect()
}
