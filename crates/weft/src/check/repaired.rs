//! Puts a repaired file in the place of a damaged one, which stays beside it under another name.
//!
//! The new file is nobody else's while it is written, and vanishes if it does not become whole,
//! unless a signal ends the program. It has the mode and the owner of the damaged one. No other
//! file is replaced, and there is a file of the name at any moment.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What is appended to the name of a damaged file; a number follows where there is one already.
const DAMAGED: &str = ".damaged";

/// The most damaged files that are kept beside one.
const KEPT_MAX: u32 = 1000;

/// Which file has a path, and what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    device: u64,
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl Version {
    /// Of the file that has this path now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(path: &Path) -> io::Result<Version> {
        let found = fs::metadata(path)?;
        let changed = (found.mtime(), found.mtime_nsec());
        Ok(Self { device: found.dev(), inode: found.ino(), len: found.len(), changed })
    }
}

/// A new file that is to take the place of a damaged one.
pub struct Repaired {
    file: NamedTempFile,
    place: PathBuf,
    /// Of the damaged file.
    version: Version,
    permissions: Permissions,
}

/// What has become of a damaged file.
#[derive(Debug)]
pub struct Placed {
    /// Where it is now.
    pub kept: PathBuf,
    /// Why that is not certain after a power loss.
    pub unsynced: Option<io::Error>,
}

impl Repaired {
    /// A new file beside another, of which this version is damaged and whose path has no links.
    ///
    /// # Errors
    /// When it cannot be made with that one's mode and owner.
    pub fn beside(place: &Path, version: Version) -> io::Result<Repaired> {
        let found = fs::metadata(place)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(place.file_name().unwrap_or_default()).suffix(".fixed");
        let file = builder.tempfile_in(place.parent().unwrap_or(Path::new("/")))?;
        let new = file.as_file().metadata()?;
        if (new.uid(), new.gid()) != (found.uid(), found.gid()) {
            fchown(file.as_file(), Some(found.uid()), Some(found.gid())).map_err(|error| {
                io::Error::new(error.kind(), format!("its owner cannot be kept: {error}"))
            })?;
        }
        let (place, permissions) = (place.to_owned(), found.permissions());
        Ok(Repaired { file, place, version, permissions })
    }

    /// Where it is until it is whole.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives it its place.
    ///
    /// # Errors
    /// When that cannot be done, or there is another file by now; that or the damaged one is where
    /// it was.
    pub fn take_place(self) -> io::Result<Placed> {
        let Repaired { file, place, version, permissions } = self;
        // Its owner need not be allowed to write to it.
        file.as_file().set_permissions(permissions)?;
        check_version(&place, version)?;
        let kept = keep(&place)?;
        let checked = check_version(&place, version);
        let placed = checked.and_then(|()| file.persist(&place).map_err(|failed| failed.error));
        if let Err(error) = placed {
            let _ = fs::remove_file(&kept);
            return Err(error);
        }
        let folder = File::open(place.parent().unwrap_or(Path::new("/")));
        Ok(Placed { kept, unsynced: folder.and_then(|folder| folder.sync_all()).err() })
    }
}

/// Refuses to replace another file than was looked through, such as that of a later save.
fn check_version(place: &Path, version: Version) -> io::Result<()> {
    match Version::of(place)? == version {
        true => Ok(()),
        false => Err(io::Error::other("it has changed meanwhile")),
    }
}

/// Gives a damaged file a second name that no other file has.
fn keep(place: &Path) -> io::Result<PathBuf> {
    for number in 0..KEPT_MAX {
        let mut name = place.as_os_str().to_owned();
        name.push(DAMAGED);
        if number > 0 {
            name.push(format!(".{number}"));
        }
        match fs::hard_link(place, &name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            linked => return linked.or_else(|_| copy(place, &name)).map(|()| name.into()),
        }
    }
    let text = format!("there are {KEPT_MAX} damaged files beside it: remove some");
    Err(io::Error::new(ErrorKind::AlreadyExists, text))
}

/// Copies a file to a new one, for file systems where a file has one name.
fn copy(place: &Path, name: &OsStr) -> io::Result<()> {
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(name)?;
    let copied = File::open(place).and_then(|mut file| io::copy(&mut file, &mut new));
    copied.and_then(|_| new.sync_all()).inspect_err(|_| _ = fs::remove_file(name))
}
