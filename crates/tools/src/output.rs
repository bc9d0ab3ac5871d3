//! Printing, and files with results.
//!
//! Before a long measurement [`check`] finds out whether a file can be written. A file is written
//! under another name and renamed, so that a full disk leaves the earlier file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::NamedTempFile;

use crate::Error;

/// The mode of a new file, without the bits of the process's mask.
const NEW_FILE_MODE: u32 = 0o666;

/// The most links that are followed in a row, as by the system.
const LINKS_MAX: u32 = 40;

/// Prints to standard error; there is no place to report a failure.
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($arg)*);
    }};
}

/// Prints to standard output. A closed pipe is no error.
///
/// # Errors
/// The output cannot be written, as to a full disk.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::io("print")(error)),
        _ => Ok(()),
    }
}

/// Whether the output still has a reader: the other end of a pipe is not closed.
pub(crate) fn is_read() -> bool {
    let out = io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let is_known = poll(&mut fds, Some(&now)).is_ok();
    !is_known || !fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Checks that [`write`] can succeed, without changing anything.
///
/// # Errors
/// The path is a folder, or the file or its folder may not be written.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Err(Error::Usage(format!("{} is a folder", path.display())));
    }
    try_to_write(path).map_err(Error::io(format!("write {}", path.display())))
}

/// Refuses two paths of one regular file; another file, such as /dev/null, may be both.
///
/// # Errors
/// Both paths lead to the same file.
pub(crate) fn check_apart(one: &Path, other: &Path) -> Result<(), Error> {
    let is_file = fs::metadata(one).map_or(true, |found| found.is_file());
    if is_file && place(one).is_some_and(|first| place(other) == Some(first)) {
        return Err(Error::Usage(format!("{} would be two files: name another", one.display())));
    }
    Ok(())
}

/// Replaces a regular file by the text, and writes to another file, such as a device.
///
/// # Errors
/// The text cannot be written whole; then a regular file stays as it was.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    replace(path, text.as_bytes()).map_err(Error::io(format!("write {}", path.display())))
}

fn try_to_write(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        // To open a pipe would wait for its reader.
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(_) => drop(File::options().append(true).open(path)?),
        Err(_) => {}
    }
    beside(path).map(drop)
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text);
    }
    let mut file = beside(path)?;
    file.write_all(text)?;
    // A link stays: the file that it names is replaced.
    let place = place(path).unwrap_or_else(|| path.into());
    file.persist(place).map(drop).map_err(|failed| failed.error)
}

/// A temporary file in the folder of another one, with the mode and the owner of that one.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let place = place(path)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such folder"))?;
    let found = fs::metadata(&place).ok();
    let mode = found.as_ref().map_or(NEW_FILE_MODE, |found| found.permissions().mode());
    let mut builder = tempfile::Builder::new();
    builder.permissions(fs::Permissions::from_mode(mode));
    let file = builder.tempfile_in(place.parent().unwrap_or(Path::new("/")))?;
    if let Some(found) = found {
        // Only root may change the owner.
        let _ = fchown(file.as_file(), Some(found.uid()), Some(found.gid()));
        file.as_file().set_permissions(found.permissions())?;
    }
    Ok(file)
}

/// The canonical path of a file, which need not exist; `None` if its folder does not. A link may
/// name a file that does not exist.
pub(crate) fn place(path: &Path) -> Option<PathBuf> {
    if let Ok(place) = fs::canonicalize(path) {
        return Some(place);
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(next);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
    Some(folder.join(path.file_name()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_one_and_modes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }

    #[test]
    fn a_link_to_a_file_that_is_not_there_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        check(&link).unwrap();
        write(&link, "text").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("link", &file).unwrap();
        assert_eq!(place(&link).map(|place| place.is_file()), Some(false));
    }

    #[test]
    fn one_file_is_not_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        assert!(check_apart(&file, &link).is_err());
        assert!(check_apart(&file, &folder.path().join("other")).is_ok());
        assert!(check_apart(Path::new("/dev/null"), Path::new("/dev/null")).is_ok());
    }
}
