//! Files of which a load left something out. They are kept when new files replace them, because the
//! keyspace lacks that part, and so do the new files.
//!
//! ```text
//! dump.rdb        dump.rdb.original, dump.rdb.original-2 ...
//! appendonlydir   appendonlydir.original ...: the manifest and the files that it names
//! ```
//!
//! A file is known by its device and number, whatever name leads to it. It is kept under a second
//! name, which takes no space, or as a copy where the file system has no second names. No file that
//! exists is replaced.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use node::Node;
use persist::aof::Aof;
use persist::disk::{DiskError, DiskOperation};

use crate::system::files::{FileNumber, number_of};
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::warning;

/// How the names of kept files end; a number follows when there is one already.
const KEPT: &str = ".original";
/// As many names are tried.
const NAMES_MAX: u32 = 10_000;

/// Remembers a file of which a load left something out.
///
/// # Errors
/// When the system does not say which file it is.
pub fn note(node: &Node, file: &RealFile) -> Result<(), DiskError> {
    let number = file.number()?;
    node.snapshots.partial.lock().insert(number);
    Ok(())
}

/// Keeps the file at a path, which a new file is about to replace, if something of it was left out.
///
/// # Errors
/// When it cannot be kept: it must not be replaced.
pub fn keep_rdb(node: &Node, disk: &RealDisk, path: &Path) -> Result<(), DiskError> {
    let partial = node.snapshots.partial.lock().clone();
    if partial.is_empty() {
        return Ok(());
    }
    let place = disk.place(path)?;
    let keep = || -> io::Result<Option<(PathBuf, FileNumber)>> {
        let Some(number) = number_at(&place)?.filter(|number| partial.contains(number)) else {
            return Ok(None);
        };
        let kept = first_free(&place, |name| match second_name(&place, name) {
            // From a save that was interrupted.
            Err(_) if number_at(name)? == Some(number) => Ok(()),
            made => made,
        })?;
        sync_directory_of(&place)?;
        Ok(Some((kept, number)))
    };
    if let Some((kept, number)) = keep().map_err(|error| cannot_keep(path, error))? {
        report(disk, &place, &kept);
        node.snapshots.partial.lock().remove(&number);
    }
    Ok(())
}

/// Keeps the files of an append-only file, which a new base is about to replace, if something of
/// them was left out.
///
/// # Errors
/// As for [`keep_rdb`].
pub fn keep_append_only(node: &Node, aof: &Aof<RealDisk>) -> Result<(), DiskError> {
    let partial = node.snapshots.partial.lock().clone();
    if partial.is_empty() {
        return Ok(());
    }
    let (disk, names, manifest) = (aof.disk(), aof.names(), aof.manifest());
    let entries = manifest.base.iter().chain(&manifest.incremental);
    let mut files: Vec<Vec<u8>> = entries.map(|entry| entry.name.clone()).collect();
    files.push(names.manifest());
    let places = files.iter().map(|name| disk.place(&names.path(name)));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let directory = disk.place(&names.directory)?;
    let keep = || -> io::Result<Option<(PathBuf, BTreeSet<FileNumber>)>> {
        let numbers = places.iter().map(|place| number_at(place));
        let numbers = numbers.collect::<io::Result<Vec<_>>>()?;
        let known: BTreeSet<FileNumber> =
            numbers.into_iter().flatten().filter(|number| partial.contains(number)).collect();
        if known.is_empty() {
            return Ok(None);
        }
        let kept = first_free(&directory, |name| fs::create_dir(name))?;
        for place in &places {
            if let Some(name) = place.file_name() {
                second_name(place, &kept.join(name))?;
            }
        }
        File::open(&kept)?.sync_all()?;
        sync_directory_of(&directory)?;
        Ok(Some((kept, known)))
    };
    if let Some((kept, known)) = keep().map_err(|error| cannot_keep(&names.directory, error))? {
        report(disk, &directory, &kept);
        node.snapshots.partial.lock().retain(|number| !known.contains(number));
    }
    Ok(())
}

/// Keeps a file under another name next to it, and returns that.
///
/// # Errors
/// When it cannot be kept.
pub fn keep_beside(place: &Path) -> io::Result<PathBuf> {
    first_free(place, |name| second_name(place, name))
}

fn cannot_keep(path: &Path, error: io::Error) -> DiskError {
    DiskError { operation: DiskOperation::Keep, path: path.to_owned(), error }
}

fn report(disk: &RealDisk, place: &Path, kept: &Path) {
    let (place, kept) = (disk.shown(place), disk.shown(kept));
    warning!("{} was loaded only in part, and is kept as {}", place.display(), kept.display());
}

/// Makes something under the first name after that of a file which does not exist yet.
fn first_free(place: &Path, mut make: impl FnMut(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    for number in 1..NAMES_MAX {
        let mut name = place.as_os_str().to_owned();
        name.push(KEPT);
        if number > 1 {
            name.push(format!("-{number}"));
        }
        let name = PathBuf::from(name);
        match make(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| name),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Gives a file a second name, or a copy.
fn second_name(place: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(place, name) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => copy(place, name),
        linked => linked,
    }
}

fn copy(place: &Path, name: &Path) -> io::Result<()> {
    let mut from = File::open(place)?;
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(name)?;
    let copied = io::copy(&mut from, &mut to)
        .and_then(|_| to.set_permissions(from.metadata()?.permissions()))
        .and_then(|()| to.sync_all());
    // A part of a copy is of no use.
    copied.inspect_err(|_| drop(fs::remove_file(name)))
}

fn number_at(place: &Path) -> io::Result<Option<FileNumber>> {
    match fs::metadata(place) {
        Ok(found) => Ok(Some(number_of(&found))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn sync_directory_of(place: &Path) -> io::Result<()> {
    place.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
