//! Logs in `/dev/shm` that nobody needs any more: a process was killed, and then the directory of
//! its append-only file was removed. Until the machine starts again they would keep their memory.
//!
//! Beside each log there lies a note with the path of its directory. A directory that is not there
//! may have been removed, or renamed, and then its log is needed as before. So what is missing has
//! a day to come back:
//!
//! ```text
//! LOG.dir   ---directory is missing--->  LOG.gone  ---a day later, still missing--->  removed
//!           <--directory is there------
//! ```
//!
//! A server looks when it begins with an append-only file, and touches only files of its own user
//! that no process has locked.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::log_memory::{is_own, with};
use crate::notice;

/// How the names of notes end.
const THERE: &str = ".dir";
const GONE: &str = ".gone";

/// How long a directory may be missing.
const MISSING_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// No path is longer.
const PATH_BYTES_MAX: u64 = 4096;

/// Notes which directory a log is of.
///
/// # Errors
/// When the note cannot be written.
pub fn note(log: &Path, directory: &Path) -> io::Result<()> {
    forget(log);
    let mut options = OpenOptions::new();
    let mut note = options.create_new(true).write(true).mode(0o600).open(with(log, THERE))?;
    note.write_all(directory.as_os_str().as_bytes())
}

/// There is no such log any more.
pub fn forget(log: &Path) {
    // Mostly there is one of them at most.
    let _ = [THERE, GONE].map(|end| fs::remove_file(with(log, end)));
}

/// The log has another name from now on.
pub fn follow(log: &Path, renamed: &Path) {
    for end in [THERE, GONE] {
        // The same.
        let _ = fs::rename(with(log, end), with(renamed, end));
    }
}

/// Removes the logs in a directory of shared memory whose own directories are missing for long.
pub fn remove_all(memory: &Path) {
    let Ok(entries) = fs::read_dir(memory) else { return };
    for note in entries.flatten().map(|entry| entry.path()) {
        let name = note.file_name().unwrap_or_default().as_bytes();
        let gone = name.strip_suffix(GONE.as_bytes());
        let Some(stem) = gone.or_else(|| name.strip_suffix(THERE.as_bytes())) else { continue };
        if stem.starts_with(b"weft-") {
            // What cannot be looked at stays.
            let _ = look(&memory.join(OsStr::from_bytes(stem)), &note, gone.is_some());
        }
    }
}

/// Looks at one log with its note.
fn look(log: &Path, note: &Path, was_gone: bool) -> io::Result<()> {
    let facts = fs::symlink_metadata(note)?;
    if !is_own(&facts, &facts) || facts.len() > PATH_BYTES_MAX {
        return Ok(());
    }
    let directory = PathBuf::from(OsString::from_vec(fs::read(note)?));
    if !is_missing(&directory, log)? {
        return if was_gone { fs::rename(note, with(log, THERE)) } else { Ok(()) };
    }
    if !was_gone {
        let gone = with(log, GONE);
        fs::rename(note, &gone)?;
        return File::options().append(true).open(gone)?.set_modified(SystemTime::now());
    }
    let since = facts.modified()?;
    if SystemTime::now().duration_since(since).is_ok_and(|passed| passed >= MISSING_MAX) {
        remove(log, note)?;
        let directory = directory.display();
        notice!("{} is removed: {directory} is missing for a day", log.display());
    }
    Ok(())
}

/// Whether the directory of a log is not where it was. Another one may be there now.
fn is_missing(directory: &Path, log: &Path) -> io::Result<bool> {
    let facts = match fs::metadata(directory) {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    // The number of its device may have changed.
    Ok(name.split('-').nth(2) != Some(&format!("{:x}", facts.ino())))
}

fn remove(log: &Path, note: &Path) -> io::Result<()> {
    match fs::symlink_metadata(log) {
        Ok(facts) if is_own(&facts, &facts) => {
            let file = File::options().read(true).open(log)?;
            // A process that still runs may write its files where they are now.
            file.try_lock()?;
            fs::remove_file(log)?;
        }
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::remove_file(note)
}
