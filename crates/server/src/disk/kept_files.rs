//! Files of which a load left something out. They are kept as soon as they are loaded, because the
//! keyspace lacks that part, and so will the files that replace them.
//!
//! ```text
//! dump.rdb        dump.rdb.original, dump.rdb.original-2 ...
//! appendonlydir   appendonlydir.original ...: the files that are loaded, a new file for the
//!                 commands of a server that uses this directory, and a manifest of all of them
//! ```
//!
//! A file is kept under a second name, which takes no space, or as a copy where the file system has
//! no second names. A file with a second name is never written again: the log continues in a new
//! file. Copies and directories get their names when they are whole, and replace nothing.
//!
//! The next start finds what is kept: the same file, or a copy of its time and content.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use persist::aof::{Aof, LoadFile};
use persist::disk::{DiskError, DiskOperation};

use crate::system::files::number_of;
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::warning;

/// How the names of kept files end; a number follows when there is one already.
const KEPT: &str = ".original";
/// How a name ends until all of it is there.
const UNFINISHED: &str = ".temp";
/// Files are compared in such parts.
const BLOCK_BYTES: u64 = 1 << 20;
/// As many names are tried.
const NAMES_MAX: u32 = 10_000;

/// The files that a load has read, in order.
#[derive(Clone, Copy)]
pub struct LoadedFiles<'a> {
    pub files: &'a [LoadFile<RealFile>],
    /// A server goes on to write the last one.
    pub is_written: bool,
}

/// Keeps an RDB file of which something was left out, unless it is kept already, or another file
/// has its name by now.
///
/// # Errors
/// When it cannot be kept.
pub fn keep_rdb(disk: &RealDisk, path: &Path, file: &RealFile) -> Result<(), DiskError> {
    let (place, loaded) = (disk.place(path)?, file.number()?);
    let keep = || -> io::Result<Option<PathBuf>> {
        let is_there = metadata(&place)?.is_some_and(|found| number_of(&found) == loaded);
        for name in kept_names(&place).filter(|_| is_there) {
            if is_same(&place, &name)? {
                return Ok(None);
            }
            match second_name(&place, &name) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    sync_directory_of(&place)?;
                    return Ok(Some(name));
                }
            }
        }
        if is_there { Err(ErrorKind::AlreadyExists.into()) } else { Ok(None) }
    };
    if let Some(kept) = keep().map_err(|error| cannot_keep(path, error))? {
        report(disk, &place, &kept);
    }
    Ok(())
}

/// Keeps the files of an append-only file, unless those of which `is_partial` says that something
/// was left out are kept already.
///
/// # Errors
/// When they cannot be kept.
pub fn keep_append_only(
    aof: &Aof<RealDisk>,
    loaded: LoadedFiles<'_>,
    is_partial: impl Fn(&LoadFile<RealFile>) -> bool,
) -> Result<(), DiskError> {
    let (disk, names) = (aof.disk(), aof.names());
    let directory = disk.place(&names.directory)?;
    let keep = || -> io::Result<Option<PathBuf>> {
        for kept in kept_names(&directory) {
            if metadata(&kept)?.is_some() {
                let mut partial = loaded.files.iter().filter(|file| is_partial(file));
                let has = |file: &LoadFile<RealFile>| {
                    let name = OsStr::from_bytes(&file.entry.name);
                    is_same(&directory.join(name), &kept.join(name))
                };
                if partial.try_fold(true, |all, file| Ok::<_, io::Error>(all && has(file)?))? {
                    return Ok(None);
                }
                continue;
            }
            let unfinished = with_end(&directory, &format!("{KEPT}{UNFINISHED}"));
            let made = fill(&unfinished, &directory, aof, loaded)
                .and_then(|()| fs::rename(&unfinished, &kept))
                .and_then(|()| sync_directory_of(&directory));
            if made.is_err() {
                let _ = fs::remove_dir_all(&unfinished);
            }
            return made.map(|()| Some(kept));
        }
        Err(ErrorKind::AlreadyExists.into())
    };
    if let Some(kept) = keep().map_err(|error| cannot_keep(&names.directory, error))? {
        report(disk, &directory, &kept);
    }
    Ok(())
}

/// Makes a directory with second names of files that are loaded.
fn fill(
    new: &Path,
    directory: &Path,
    aof: &Aof<RealDisk>,
    loaded: LoadedFiles<'_>,
) -> io::Result<()> {
    match fs::remove_dir_all(new) {
        // From a process that was killed.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::create_dir(new)?;
    for (number, file) in loaded.files.iter().enumerate() {
        let name = OsStr::from_bytes(&file.entry.name);
        let (place, name) = (directory.join(name), new.join(name));
        match loaded.is_written && number + 1 == loaded.files.len() {
            true => copy(&place, &name)?,
            false => second_name(&place, &name)?,
        }
    }
    let (manifest, added) = aof.manifest().of_second_names(aof.names());
    let name = aof.names().manifest();
    let access = fs::metadata(directory.join(OsStr::from_bytes(&name)))?.permissions();
    for (name, text) in [(added, Vec::new()), (name, manifest.sealed())] {
        let mut file = new_file(&new.join(OsStr::from_bytes(&name)))?;
        file.set_permissions(access.clone())?;
        file.write_all(&text)?;
        file.sync_all()?;
    }
    File::open(new)?.sync_all()
}

/// Keeps a file under another name next to it, and returns that.
///
/// # Errors
/// When it cannot be kept.
pub fn keep_beside(place: &Path) -> io::Result<PathBuf> {
    for name in kept_names(place) {
        match second_name(place, &name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Whether a file, or the directory that it is in, has the name of what is kept.
pub fn is_kept(path: &Path) -> bool {
    let has_end = |part: &OsStr| {
        let part = part.as_bytes();
        let number = part.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        let stem = part[..number].strip_suffix(b"-").filter(|_| number < part.len());
        stem.unwrap_or(part).ends_with(KEPT.as_bytes())
    };
    path.iter().any(has_end)
}

fn cannot_keep(path: &Path, error: io::Error) -> DiskError {
    DiskError { operation: DiskOperation::Keep, path: path.to_owned(), error }
}

fn report(disk: &RealDisk, place: &Path, kept: &Path) {
    let (place, kept) = (disk.shown(place), disk.shown(kept));
    warning!("{} was loaded only in part, and is kept as {}", place.display(), kept.display());
}

/// The names under which a file may be kept, in order.
fn kept_names(place: &Path) -> impl Iterator<Item = PathBuf> {
    (1..NAMES_MAX).map(|number| match number {
        1 => with_end(place, KEPT),
        _ => with_end(place, &format!("{KEPT}-{number}")),
    })
}

fn with_end(place: &Path, end: &str) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Gives a file a second name, or a copy.
fn second_name(place: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(place, name) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => copy(place, name),
        linked => linked,
    }
}

fn copy(place: &Path, name: &Path) -> io::Result<()> {
    let unfinished = with_end(name, UNFINISHED);
    let copied = copy_to(place, &unfinished).and_then(|()| match metadata(name)? {
        Some(_) => Err(ErrorKind::AlreadyExists.into()),
        None => fs::rename(&unfinished, name),
    });
    // A part of a copy is of no use.
    copied.inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

fn copy_to(place: &Path, unfinished: &Path) -> io::Result<()> {
    match fs::remove_file(unfinished) {
        // From a process that was killed.
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let (mut from, mut to) = (File::open(place)?, new_file(unfinished)?);
    let found = from.metadata()?;
    io::copy(&mut from, &mut to)?;
    to.set_permissions(found.permissions())?;
    to.set_times(FileTimes::new().set_modified(found.modified()?))?;
    to.sync_all()
}

fn new_file(place: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)
}

/// Whether a name leads to the same file, or to its copy.
fn is_same(place: &Path, name: &Path) -> io::Result<bool> {
    let (Some(file), Some(kept)) = (metadata(place)?, metadata(name)?) else { return Ok(false) };
    // Few files need to be read. A file system may store no parts of seconds.
    let may_be_copy = kept.is_file() && (file.len(), file.mtime()) == (kept.len(), kept.mtime());
    Ok(number_of(&file) == number_of(&kept) || may_be_copy && has_same_bytes(place, name)?)
}

fn has_same_bytes(place: &Path, name: &Path) -> io::Result<bool> {
    let (file, kept) = (File::open(place)?, File::open(name)?);
    let (mut bytes, mut others) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        others.clear();
        (&file).take(BLOCK_BYTES).read_to_end(&mut bytes)?;
        (&kept).take(BLOCK_BYTES).read_to_end(&mut others)?;
        if bytes != others || bytes.is_empty() {
            return Ok(bytes == others);
        }
    }
}

fn metadata(place: &Path) -> io::Result<Option<fs::Metadata>> {
    match fs::metadata(place) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn sync_directory_of(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_found_again_and_another_file_of_its_length_and_time_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (place, kept) = (folder.path().join("file"), folder.path().join("kept"));
        fs::write(&place, "content").unwrap();
        // From a process that was killed, which is not a second name of anything.
        fs::write(folder.path().join("kept.temp"), "cont").unwrap();
        copy(&place, &kept).unwrap();
        assert!(is_same(&place, &kept).unwrap());
        assert!(!folder.path().join("kept.temp").exists());
        let time = fs::metadata(&place).unwrap().modified().unwrap();
        fs::write(&place, "another").unwrap();
        File::options().write(true).open(&place).unwrap().set_modified(time).unwrap();
        assert!(!is_same(&place, &kept).unwrap());
        let error = copy(&place, &kept).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&kept).unwrap(), b"content");
        assert!(!folder.path().join("kept.temp").exists());
    }
}
