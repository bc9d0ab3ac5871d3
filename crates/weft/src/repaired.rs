//! Puts a repaired file in the place of a damaged one, which stays beside it under another name.
//!
//! The new file is nobody else's while it is written, and vanishes if it does not become whole. It
//! has the mode and the owner of the damaged one. No other file is replaced.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What is appended to the name of a damaged file; a number follows where there is one already.
const DAMAGED: &str = ".damaged";

/// The most damaged files that are kept beside one.
const KEPT_MAX: u32 = 1000;

/// A new file that is to take the place of a damaged one.
pub struct Repaired {
    file: NamedTempFile,
    place: PathBuf,
}

impl Repaired {
    /// A new file beside another, whose path has no links.
    ///
    /// # Errors
    /// When it cannot be made with that one's mode and owner.
    pub fn beside(place: &Path) -> io::Result<Repaired> {
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
        file.as_file().set_permissions(found.permissions())?;
        Ok(Repaired { file, place: place.to_owned() })
    }

    /// Where it is until it is whole.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives it its place; gives where the damaged file is now.
    ///
    /// # Errors
    /// When that cannot be done; the damaged file is where it was.
    pub fn take_place(self) -> io::Result<PathBuf> {
        let Repaired { file, place } = self;
        let kept = unused_name(&place)?;
        if let Err(error) = fs::rename(&place, &kept) {
            let _ = fs::remove_file(&kept);
            return Err(error);
        }
        if let Err(failed) = file.persist(&place) {
            fs::rename(&kept, &place)?;
            return Err(failed.error);
        }
        File::open(place.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(kept)
    }
}

/// A name for a damaged file that no other has: an empty file is there now.
fn unused_name(place: &Path) -> io::Result<PathBuf> {
    for number in 0..KEPT_MAX {
        let mut name = place.as_os_str().to_owned();
        name.push(DAMAGED);
        if number > 0 {
            name.push(format!(".{number}"));
        }
        match File::create_new(&name) {
            Ok(_) => return Ok(name.into()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    let text = format!("there are {KEPT_MAX} damaged files beside it: remove some");
    Err(io::Error::new(ErrorKind::AlreadyExists, text))
}
