//! The disk: a few calls, which go to the kernel in a server, and in tests to a simulation that
//! loses power.
//!
//! A change is durable only after a sync: the bytes and the length of a file by [`DiskFile::sync`],
//! its name by [`Disk::sync_directory`] of its directory. Before that, a power loss may leave any
//! part of it, in any order. After a sync that failed, even a later one that succeeds does not make
//! the same bytes durable: Linux drops the pages that it could not write. The caller must write all
//! of them again, to another file.
//!
//! Paths are relative to the server's working directory, which is the empty path.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::{ByteSink, ByteSource};

/// Gives access to files by their paths.
pub trait Disk {
    /// An open file. Clones are the same open file.
    type File: DiskFile;

    /// Opens an empty file to append to it. A file that exists is truncated.
    ///
    /// # Errors
    /// Those of the disk, as for all methods here.
    fn create(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Opens a file that exists, to read it.
    ///
    /// # Errors
    /// See `create`. The kind is `NotFound` when there is no such file.
    fn open(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Opens a file that exists, to read it and to append to it.
    ///
    /// # Errors
    /// See `open`.
    fn open_to_append(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Renames a file in one step, and replaces a file that has the new name.
    ///
    /// # Errors
    /// See `open`.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file.
    ///
    /// # Errors
    /// See `open`.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// The names of the files in a directory.
    ///
    /// # Errors
    /// See `open`.
    fn list(&self, directory: &Path) -> Result<Vec<OsString>, DiskError>;

    /// Creates a directory, unless it exists.
    ///
    /// # Errors
    /// See `create`.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// See `create`.
    fn sync_directory(&self, path: &Path) -> Result<(), DiskError>;
}

/// An open file. Several threads may call its methods at once.
pub trait DiskFile: Clone {
    /// Appends the parts one after another. After an error, the file may have some of their bytes.
    ///
    /// # Errors
    /// Those of the disk, as for all methods here.
    fn append(&self, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Reads bytes from a position on, and returns their number. It is less than the length of
    /// `room` only at the end of the file.
    ///
    /// # Errors
    /// See `append`.
    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError>;

    /// Its length in bytes.
    ///
    /// # Errors
    /// See `append`.
    fn len(&self) -> Result<u64, DiskError>;

    /// Whether it has no bytes.
    ///
    /// # Errors
    /// See `append`.
    fn is_empty(&self) -> Result<bool, DiskError> {
        Ok(self.len()? == 0)
    }

    /// How many bytes of it are stored: fewer than its length, if it has holes or is compressed.
    ///
    /// # Errors
    /// See `append`.
    fn stored_bytes(&self) -> Result<u64, DiskError> {
        self.len()
    }

    /// Cuts the file to a length.
    ///
    /// # Errors
    /// See `append`.
    fn truncate(&self, len: u64) -> Result<(), DiskError>;

    /// Makes the bytes and the length durable.
    ///
    /// # Errors
    /// See `append`, and the module's description for the consequences.
    fn sync(&self) -> Result<(), DiskError>;
}

/// A call to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DiskOperation {
    Create,
    Open,
    Rename,
    Keep,
    Remove,
    List,
    CreateDirectory,
    SyncDirectory,
    Append,
    Read,
    Len,
    Truncate,
    Sync,
}

impl DiskOperation {
    /// Whether the call changes a file or directory. If such a call fails, the files may still be
    /// readable.
    pub fn is_of_change(self) -> bool {
        !matches!(self, Self::Open | Self::List | Self::Read | Self::Len)
    }

    /// The call in words, before a path.
    fn words(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::Rename => "rename",
            Self::Keep => "keep",
            Self::Remove => "remove",
            Self::List => "list the directory",
            Self::CreateDirectory => "create the directory",
            Self::SyncDirectory => "fsync the directory",
            Self::Append => "write to",
            Self::Read => "read",
            Self::Len => "get the length of",
            Self::Truncate => "truncate",
            Self::Sync => "fsync",
        }
    }
}

/// A call to the disk that failed.
#[derive(Debug)]
pub struct DiskError {
    /// The call.
    pub operation: DiskOperation,
    /// The file or directory.
    pub path: PathBuf,
    /// The error of the system.
    pub error: io::Error,
}

impl DiskError {
    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        self.error.kind() == io::ErrorKind::NotFound
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.operation.words(), self.path.display(), self.error)
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Files are read in blocks of so many bytes.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Provides a file from a position on, block by block.
#[derive(Debug)]
pub struct FileSource<F> {
    file: F,
    block: Vec<u8>,
    next: u64,
    end: u64,
    stored: u64,
}

impl<F: DiskFile> FileSource<F> {
    /// Provides the bytes of a file from a position on, up to its present end.
    ///
    /// # Errors
    /// When the length of the file cannot be read.
    pub fn new(file: F, position: u64) -> Result<Self, DiskError> {
        let (end, stored) = (file.len()?, file.stored_bytes()?);
        Ok(Self { file, block: Vec::new(), next: position, end, stored })
    }
}

impl<F: DiskFile> ByteSource for FileSource<F> {
    fn block(&self) -> &[u8] {
        &self.block
    }

    fn announced(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }

    fn stored(&self) -> u64 {
        self.announced().min(self.stored)
    }

    fn advance(&mut self) -> io::Result<()> {
        // The cast is of at most the length of a block.
        let len = self.announced().min(BLOCK_BYTES as u64) as usize;
        self.block.resize(len, 0);
        let read = self.file.read_at(self.next, &mut self.block).map_err(|error| {
            let kind = error.error.kind();
            io::Error::new(kind, error)
        });
        self.block.truncate(*read.as_ref().unwrap_or(&0));
        self.next += read? as u64;
        Ok(())
    }
}

/// A sink that appends to a file. Each piece is a system call, so pieces should be large.
#[derive(Debug)]
pub struct FileSink<F> {
    file: F,
    written: u64,
}

impl<F: DiskFile> FileSink<F> {
    /// Appends to a file.
    pub fn new(file: F) -> Self {
        Self { file, written: 0 }
    }

    /// How many bytes have been appended.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The file.
    pub fn file(&self) -> &F {
        &self.file
    }
}

impl<F: DiskFile> ByteSink for FileSink<F> {
    type Error = DiskError;

    fn put(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.append(&[bytes])?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// A file that replaces another one when it is complete. It has a temporary name until then.
#[derive(Debug)]
pub struct Replacement<F> {
    sink: FileSink<F>,
    directory: PathBuf,
    temporary: PathBuf,
    path: PathBuf,
}

/// The state after [`Replacement::commit`] failed.
#[derive(Debug)]
pub enum CommitError {
    /// The old file is still in place.
    Before(DiskError),
    /// The new file is in place, and after a power loss it may be the old one again.
    Uncertain(DiskError),
}

impl CommitError {
    /// The error of the disk.
    pub fn disk(self) -> DiskError {
        match self {
            Self::Before(error) | Self::Uncertain(error) => error,
        }
    }
}

impl<F: DiskFile> Replacement<F> {
    /// Begins a file that is at `temporary` until it replaces `path`, both in `directory`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn begin<D: Disk<File = F>>(
        disk: &D,
        directory: &Path,
        temporary: PathBuf,
        path: PathBuf,
    ) -> Result<Self, DiskError> {
        let sink = FileSink::new(disk.create(&temporary)?);
        Ok(Self { sink, directory: directory.to_owned(), temporary, path })
    }

    /// The sink for the content.
    pub fn sink(&mut self) -> &mut FileSink<F> {
        &mut self.sink
    }

    /// Makes the content durable, then renames the file, and makes the name durable.
    ///
    /// # Errors
    /// When one of these fails. The temporary file is removed if possible.
    pub fn commit<D: Disk<File = F>>(self, disk: &D) -> Result<(), CommitError> {
        self.commit_if(disk, || Some(())).map(drop)
    }

    /// The same, unless `is_wanted` returns `None` when the content is durable, which may take
    /// long. Its result, such as a lock, is kept until the file has its name. Returns whether the
    /// file was renamed.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit).
    pub fn commit_if<D: Disk<File = F>, Wanted>(
        self,
        disk: &D,
        is_wanted: impl FnOnce() -> Option<Wanted>,
    ) -> Result<bool, CommitError> {
        let renamed = self.sink.file.sync().and_then(|()| match is_wanted() {
            Some(_wanted) => disk.rename(&self.temporary, &self.path).map(|()| true),
            None => Ok(false),
        });
        if !matches!(renamed, Ok(true)) {
            // If it cannot be removed, it is never read.
            let _ = disk.remove(&self.temporary);
            return renamed.map_err(CommitError::Before);
        }
        disk.sync_directory(&self.directory).map_err(CommitError::Uncertain)?;
        Ok(true)
    }

    /// Removes the temporary file.
    pub fn abandon<D: Disk<File = F>>(self, disk: &D) {
        // If it cannot be removed, it is never read.
        let _ = disk.remove(&self.temporary);
    }
}

/// Reads a whole file of at most so many bytes.
///
/// # Errors
/// When the disk fails. The kind is `FileTooLarge` when the file is longer.
pub(crate) fn read_whole<F: DiskFile>(
    file: &F,
    path: &Path,
    bytes_max: u64,
) -> Result<Vec<u8>, DiskError> {
    let len = file.len()?;
    if len > bytes_max {
        let error = io::Error::from(io::ErrorKind::FileTooLarge);
        return Err(DiskError { operation: DiskOperation::Read, path: path.to_owned(), error });
    }
    // The cast is of at most `bytes_max`, which is small.
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
