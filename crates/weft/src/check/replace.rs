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

/// Keeps servers away from an append-only file until it is dropped.
#[derive(Debug)]
pub struct HeldLock(#[allow(dead_code)] Vec<File>);

/// Takes the lock of an append-only file: a file next to it, whose name begins like that of the
/// manifest and of the other files. `None` if a server has it.
///
/// # Errors
/// When the files next to it cannot be read, or there is no lock and none can be created.
pub fn hold(file: &Path) -> Result<Option<HeldLock>, Box<dyn Error>> {
    let path = fs::canonicalize(file)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Some(HeldLock(Vec::new())));
    };
    let mut held = Vec::new();
    let own = stem(name.as_bytes());
    let mut is_own_there = false;
    for entry in fs::read_dir(folder)? {
        let found = entry?.file_name();
        let Some(of) = found.as_bytes().strip_suffix(LOCK) else { continue };
        is_own_there |= own == Some(of);
        if name.as_bytes().starts_with(of) {
            held.push(File::open(folder.join(&found))?);
        }
    }
    if let Some(own) = own.filter(|_| !is_own_there) {
        // No server of Weft has used these files yet, but one may start.
        let place = folder.join(OsStr::from_bytes(&[own, LOCK].concat()));
        let lock = File::options().create_new(true).append(true).open(place)?;
        copy_access(&path, &lock)?;
        held.push(lock);
    }
    let is_in_use = |lock: &File| matches!(lock.try_lock(), Err(TryLockError::WouldBlock));
    Ok((!held.iter().any(is_in_use)).then_some(HeldLock(held)))
}

/// How the name of a lock ends.
const LOCK: &[u8] = b".lock";

/// The name of an append-only file, `appendfilename`, from that of its manifest or of one of its
/// files.
pub fn stem(name: &[u8]) -> Option<&[u8]> {
    if let Some(stem) = name.strip_suffix(b".manifest") {
        return Some(stem);
    }
    let kind = [&b".base.rdb"[..], b".base.aof", b".incr.aof"];
    let rest = kind.iter().find_map(|kind| name.strip_suffix(*kind))?;
    let dot = rest.iter().rposition(|byte| *byte == b'.')?;
    let is_number = dot + 1 < rest.len() && rest[dot + 1..].iter().all(u8::is_ascii_digit);
    is_number.then_some(&rest[..dot])
}
