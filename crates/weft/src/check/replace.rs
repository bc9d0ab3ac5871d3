//! Replaces a file by a fixed one. The original stays next to it under another name, and no other
//! file is replaced.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use persist::disk::{Disk, DiskFile, FileSink};
use server::{RealDisk, RealFile, keep_beside};

/// Writes a new file in place of one, and returns where the original is.
///
/// # Errors
/// When one of the steps fails. Then the original has its name.
pub fn replace(
    file: &Path,
    write: impl FnOnce(&mut FileSink<RealFile>) -> Result<(), Box<dyn Error>>,
) -> Result<PathBuf, Box<dyn Error>> {
    // A link stays one.
    let file = fs::canonicalize(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    let prefix = file.file_name().unwrap_or(OsStr::new("fixed"));
    let temporary = tempfile::Builder::new().prefix(prefix).tempfile_in(folder)?;
    let mut sink = FileSink::new(RealDisk::new(folder).open_to_append(temporary.path())?);
    write(&mut sink)?;
    copy_access(&file, temporary.as_file())?;
    sink.file().sync()?;
    let kept = keep_beside(&file)?;
    temporary.persist(&file)?;
    File::open(folder)?.sync_all()?;
    Ok(kept)
}

/// Gives a new file the mode and the owner of a damaged one, so that the same server can load it.
pub fn copy_access(damaged: &Path, new: &File) -> io::Result<()> {
    let (from, to) = (fs::metadata(damaged)?, new.metadata()?);
    if (to.uid(), to.gid()) != (from.uid(), from.gid()) {
        fchown(new, Some(from.uid()), Some(from.gid())).map_err(|error| {
            io::Error::new(error.kind(), format!("its owner cannot be kept: {error}"))
        })?;
    }
    new.set_permissions(from.permissions())
}

/// Whether a server uses an append-only file: it has locked a file next to it, whose name begins
/// like that of the manifest and of the other files.
///
/// # Errors
/// When the files next to it cannot be read.
pub fn is_in_use(file: &Path) -> io::Result<bool> {
    let path = fs::canonicalize(file)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(false) };
    for entry in fs::read_dir(folder)? {
        let found = entry?.file_name();
        let stem = found.as_bytes().strip_suffix(b".lock");
        if !stem.is_some_and(|stem| name.as_bytes().starts_with(stem)) {
            continue;
        }
        if let Err(TryLockError::WouldBlock) = File::open(folder.join(&found))?.try_lock() {
            return Ok(true);
        }
    }
    Ok(false)
}
