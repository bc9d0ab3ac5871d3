//! The disk as the formats see it: a few calls, which the server makes to the kernel and tests make
//! to a simulation that loses power.
//!
//! What a call has done is certain after a power loss only when it was synced: the bytes and the
//! length of a file by [`DiskFile::sync`], its name by [`Disk::sync_directory`] of the directory.
//! Before that any part of it may be there, in any order. A sync that failed says nothing about the
//! bytes it was for, and neither does a later one that succeeds: Linux drops the pages that it
//! could not write. Whoever sees it fail writes everything anew, to another file.
//!
//! Paths are relative to the server's working directory, which is the empty path.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Sink, Source};

/// Files by their paths.
pub trait Disk {
    /// An open file. Clones are the same open file.
    type File: DiskFile;

    /// Opens a file to append to it; one that exists becomes empty.
    ///
    /// # Errors
    /// What the disk says, as everywhere here.
    fn create(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Opens a file that exists, to read it.
    ///
    /// # Errors
    /// See `create`; of the kind `NotFound` when there is none.
    fn open(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Opens a file that exists, to read it and to append to it.
    ///
    /// # Errors
    /// See `open`.
    fn open_to_append(&self, path: &Path) -> Result<Self::File, DiskError>;

    /// Gives a file another name, in one step; who had that name is gone.
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

    /// Makes a directory, if there is none of this path.
    ///
    /// # Errors
    /// See `create`.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory certain.
    ///
    /// # Errors
    /// See `create`.
    fn sync_directory(&self, path: &Path) -> Result<(), DiskError>;
}

/// An open file. Its methods may be called by several threads at once.
pub trait DiskFile: Clone {
    /// Appends the parts one behind the other. After an error some of their bytes may be there.
    ///
    /// # Errors
    /// What the disk says, as everywhere here.
    fn append(&self, parts: &[&[u8]]) -> Result<(), DiskError>;

    /// Reads bytes from a position on and says how many: fewer than there is room for at the end
    /// alone.
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

    /// Cuts everything off from a position on.
    ///
    /// # Errors
    /// See `append`.
    fn truncate(&self, len: u64) -> Result<(), DiskError>;

    /// Makes the bytes and the length certain.
    ///
    /// # Errors
    /// See `append`; see the module's description for what follows from one.
    fn sync(&self) -> Result<(), DiskError>;
}

/// What was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Operation {
    Create,
    Open,
    Rename,
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

impl Operation {
    /// Whether it was to change something, so that what can be read may be whole.
    pub fn is_of_change(self) -> bool {
        !matches!(self, Self::Open | Self::List | Self::Read | Self::Len)
    }

    /// The attempt in words, before a path.
    fn words(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Open => "open",
            Self::Rename => "rename",
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

/// What the disk refused, and why.
#[derive(Debug)]
pub struct DiskError {
    /// What was attempted.
    pub operation: Operation,
    /// With which file or directory.
    pub path: PathBuf,
    /// What the system said.
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

/// Bytes of a block that a file is read in.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;

/// Shows a file from a position on, block by block.
#[derive(Debug)]
pub struct FileSource<F> {
    file: F,
    block: Vec<u8>,
    next: u64,
    end: u64,
}

impl<F: DiskFile> FileSource<F> {
    /// Shows what a file has now, from a position on.
    ///
    /// # Errors
    /// When its length cannot be had.
    pub fn new(file: F, position: u64) -> Result<Self, DiskError> {
        let end = file.len()?;
        Ok(Self { file, block: Vec::new(), next: position, end })
    }
}

impl<F: DiskFile> Source for FileSource<F> {
    fn block(&self) -> &[u8] {
        &self.block
    }

    fn announced(&self) -> u64 {
        self.end.saturating_sub(self.next)
    }

    fn advance(&mut self) -> io::Result<()> {
        // At most a block.
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

/// Appends what is put to a file. Pieces should be large.
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

impl<F: DiskFile> Sink for FileSink<F> {
    type Error = DiskError;

    fn put(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.append(&[bytes])?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

/// A file that replaces another one when it is whole: written under another name first.
#[derive(Debug)]
pub struct Replacement<F> {
    sink: FileSink<F>,
    directory: PathBuf,
    temporary: PathBuf,
    path: PathBuf,
}

/// How far [`Replacement::commit`] came.
#[derive(Debug)]
pub enum CommitError {
    /// Nothing was replaced.
    Before(DiskError),
    /// The new file has the name, and after a power loss either of the two may have it.
    Uncertain(DiskError),
}

impl CommitError {
    /// What the disk refused.
    pub fn disk(self) -> DiskError {
        match self {
            Self::Before(error) | Self::Uncertain(error) => error,
        }
    }
}

impl<F: DiskFile> Replacement<F> {
    /// Begins a file that will be at `path`, and is at `temporary` until then; both in one
    /// directory.
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

    /// Where the content goes.
    pub fn sink(&mut self) -> &mut FileSink<F> {
        &mut self.sink
    }

    /// Makes the content certain, then gives the file its name, and makes that certain.
    ///
    /// # Errors
    /// When any of these fails; what is left of it is removed where that is possible.
    pub fn commit<D: Disk<File = F>>(self, disk: &D) -> Result<(), CommitError> {
        self.commit_if(disk, || Some(())).map(drop)
    }

    /// The same, if it is still wanted when the content is certain, which may take long: what
    /// `is_wanted` returns is kept until the file has its name. Returns whether it was wanted.
    ///
    /// # Errors
    /// As `commit`.
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
            // Whether it goes or stays, nobody reads it.
            let _ = disk.remove(&self.temporary);
            return renamed.map_err(CommitError::Before);
        }
        disk.sync_directory(&self.directory).map_err(CommitError::Uncertain)?;
        Ok(true)
    }

    /// Gives up.
    pub fn abandon<D: Disk<File = F>>(self, disk: &D) {
        // Whether it goes or stays, nobody reads it.
        let _ = disk.remove(&self.temporary);
    }
}

/// Reads a file whole, if it has no more than so many bytes.
///
/// # Errors
/// When the disk fails; of the kind `FileTooLarge` when the file is longer.
pub(crate) fn read_whole<F: DiskFile>(
    file: &F,
    path: &Path,
    bytes_max: u64,
) -> Result<Vec<u8>, DiskError> {
    let len = file.len()?;
    if len > bytes_max {
        let error = io::Error::from(io::ErrorKind::FileTooLarge);
        return Err(DiskError { operation: Operation::Read, path: path.to_owned(), error });
    }
    // At most `bytes_max`, which callers choose small.
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(bytes)
}
