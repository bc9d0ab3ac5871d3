//! Where the ring of the log lies: in a file next to the append-only file, mapped into memory, so
//! that it survives the process when it is killed.
//!
//! Where that is not possible, as on a full disk, it lies in `/dev/shm`, and if there is no room
//! either, in ordinary memory: then a kill loses everything that was not written to the append-only
//! file.
//!
//! The log of a killed process is needed until the files have its commands or a new base has
//! replaced them. If a new ring begins before that, the file gets a second name:
//!
//! ```text
//! appendonly.aof.log            the ring of the running process, or of the one before
//! appendonly.aof.log.previous   that of an earlier one, while the manifest names it
//! ```

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use node::config::Config;
use persist::aof::LogId;
use sys::shared_memory::SharedMemory;

use super::left_log::LeftLog;
use super::ring_layout::{MemoryPlace, memory_bytes, names_boot};
use crate::system::files::{FileNumber, number_of};
use crate::system::real_disk::RealDisk;
use crate::system::server_log::warning;

/// Files in memory, whichever process made them.
const MEMORY_FILES: &str = "/dev/shm";
/// The number of this start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

const PREVIOUS: &str = ".previous";

/// The places where the ring of an append-only file may lie, the best one first.
#[derive(Clone, Debug, Default)]
pub struct Places {
    paths: Vec<PathBuf>,
    /// The disk with these paths, which are valid while it is known.
    disk: Option<RealDisk>,
    /// The file of the ring that lies there, once it does.
    own: Option<FileNumber>,
}

impl Places {
    /// The places of a configuration on a disk. There are none if the directory could not be
    /// opened, which opening its files reports.
    pub fn of(disk: &RealDisk, config: &Config) -> Self {
        let append_only = &config.append_only;
        let Ok(directory) = disk.place(Path::new(&append_only.appenddirname)) else {
            return Self::default();
        };
        let name = format!("{}.log", append_only.appendfilename);
        let mut paths = vec![directory.join(&name)];
        // Another directory of the same name is another one.
        if let Ok(directory) = fs::metadata(directory) {
            let (device, number) = number_of(&directory);
            let name = format!("weft-{device:x}-{number:x}-{name}");
            paths.push(Path::new(MEMORY_FILES).join(name));
        }
        Self { paths, disk: Some(disk.clone()), own: None }
    }

    /// A path in the words of the operator.
    fn shown(&self, path: &Path) -> PathBuf {
        self.disk.as_ref().map_or_else(|| path.to_owned(), |disk| disk.shown(path))
    }

    fn cannot(&self, path: &Path, error: &io::Error) -> String {
        let path = self.shown(path);
        format!("Can't open the log that a process has left, {}: {error}", path.display())
    }

    /// The paths of these places, with the second names.
    fn all(&self) -> impl Iterator<Item = PathBuf> {
        self.paths.iter().cloned().chain(self.paths.iter().map(|path| previous(path)))
    }

    /// The logs that processes have left, mostly none or one. `None` stands for a log that has been
    /// moved.
    ///
    /// # Errors
    /// When one cannot be read: its commands would be lost.
    pub fn left(&self) -> Result<Vec<Option<LeftLog>>, String> {
        let logs =
            self.all().map(|path| open_left(&path).map_err(|error| self.cannot(&path, &error)));
        logs.filter_map(Result::transpose).collect()
    }

    /// Keeps the log that the manifest names, if there is one, under the second name.
    ///
    /// # Errors
    /// When that is not possible: a new ring would take its place.
    pub fn keep_left(&self, named: Option<LogId>) -> Result<(), String> {
        for path in &self.paths {
            let left = open_left(path).map_err(|error| self.cannot(path, &error))?.flatten();
            if left.is_some_and(|log| Some(log.id()) == named) {
                fs::rename(path, previous(path)).map_err(|error| self.cannot(path, &error))?;
            }
        }
        Ok(())
    }

    /// Removes the logs with the second name, which are no longer needed.
    pub fn remove_previous(&self) {
        for path in &self.paths {
            // Mostly there is none.
            let _ = fs::remove_file(previous(path));
        }
    }

    /// Removes the file of the ring that lies here and is no longer needed. A file that another
    /// process has put in its place stays.
    pub fn remove_own(&self) {
        for path in &self.paths {
            let found = fs::symlink_metadata(path).ok().map(|found| number_of(&found));
            if found.is_some() && found == self.own {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes the files of logs that are no longer needed. The caller has the lock of the
    /// append-only file, and no ring here.
    pub fn remove(&self) {
        for path in &self.paths {
            // Mostly there is one of them at most.
            let _ = fs::remove_file(path);
        }
    }

    /// Keeps the files of a damaged log under other names. Returns the words for the server's log.
    pub fn keep_damaged(&self) -> String {
        let mut kept = String::new();
        for path in self.all().filter(|path| path.exists()) {
            let name = with(&path, ".damaged");
            if fs::rename(&path, &name).is_ok() {
                kept = format!(", but kept as {}", self.shown(&name).display());
            }
        }
        kept
    }

    /// Memory for a new log, which these places then own. The file with the first name is removed.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn create_memory(&mut self) -> io::Result<(SharedMemory, MemoryPlace)> {
        self.remove();
        for path in &self.paths {
            let map = |file: File| {
                let memory = SharedMemory::of_file(&file, memory_bytes())?;
                Ok(((memory, place(Some(&file))?), number_of(&file.metadata()?)))
            };
            match new_file(path).and_then(map) {
                Ok((created, number)) => {
                    self.own = Some(number);
                    if !names_boot(&created.1) {
                        warning!(
                            "{BOOT_ID} can't be read: what is not written yet is lost by kill -9"
                        );
                    }
                    return Ok(created);
                }
                Err(error) => {
                    let _ = fs::remove_file(path);
                    warning!("The log can't lie in {}: {error}", self.shown(path).display());
                }
            }
        }
        warning!("The log lies in ordinary memory: what is not written yet is lost by kill -9");
        Ok((SharedMemory::anonymous(memory_bytes())?, place(None)?))
    }
}

fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn previous(path: &Path) -> PathBuf {
    with(path, PREVIOUS)
}

/// The log in a file, if there is one.
fn open_left(path: &Path) -> io::Result<Option<Option<LeftLog>>> {
    let link = match fs::symlink_metadata(path) {
        Ok(link) => link,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Any user may put files there, and the commands of the log are executed. A user who can put a
    // file next to the append-only file can write that as well.
    if path.starts_with(MEMORY_FILES) && !is_own(&link, &fs::metadata(path)?) {
        warning!("{} is not used: it is another user's", path.display());
        return Ok(None);
    }
    if !fs::metadata(path)?.is_file() {
        return Ok(None);
    }
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    if bytes == 0 {
        return Ok(None);
    }
    let memory = SharedMemory::of_whole_file(&file, bytes)?;
    let is_one = LeftLog::is_one(&memory);
    let place = place(Some(&file))?;
    Ok(is_one.then(|| LeftLog::open(memory, place)))
}

/// Whether a file, and the link to it that was found, belong to the user of this process.
fn is_own(link: &Metadata, file: &Metadata) -> bool {
    link.is_file()
        && file.ino() == link.ino()
        && file.nlink() == 1
        && file.uid() == sys::process::effective_user()
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(path)
}

pub fn new_id() -> LogId {
    LogId([base::random::entropy_seed(), base::random::entropy_seed()])
}

/// The boot of the machine, and the identity of a file; zeros for what the system does not report.
fn place(file: Option<&File>) -> io::Result<MemoryPlace> {
    let text = match fs::read_to_string(BOOT_ID) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        text => text.unwrap_or_default(),
    };
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).unwrap_or(0);
    // Not the device: a file system may be mounted again with another number.
    let metadata = file.map(File::metadata).transpose()?;
    let number = metadata.as_ref().map_or(0, MetadataExt::ino);
    let created = metadata.and_then(|metadata| metadata.created().ok());
    let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let created = created.map_or(0, |time| time.as_nanos() as u64);
    Ok([(boot >> 64) as u64, boot as u64, number, created])
}
