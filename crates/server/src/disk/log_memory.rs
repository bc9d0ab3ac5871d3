//! Where the ring of the log lies: in a file beside the append-only file, mapped into memory, so
//! that a process that is killed leaves it.
//!
//! Where that is not possible, as on a full disk, it lies in `/dev/shm`, and if there is no room
//! either in ordinary memory: then nothing is left of what was not written to the append-only file.
//!
//! What a killed process has left is needed until the files have it or a new base has taken their
//! place. Where that is later than the new ring begins, its file gets a second name:
//!
//! ```text
//! appendonly.aof.log            the ring of the running process, or of the one before
//! appendonly.aof.log.previous   that of an earlier one, while the manifest names it
//! ```
//!
//! In `/dev/shm` names begin with the numbers of the device and of the directory. A device may have
//! another number when it is mounted anew: a log there that the manifest names is found all the
//! same. What becomes of those whose directory is gone says `log_orphans`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use node::config::Config;
use persist::aof::LogId;
use sys::shared_memory::SharedMemory;

use super::left_log::LeftLog;
use super::log_orphans;
use super::log_ring::{LogRing, MemoryPlace, memory_bytes};
use crate::warning;

/// Files in memory, whichever process made them.
const MEMORY_FILES: &str = "/dev/shm";
/// The number of this start of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// How the second name ends.
const PREVIOUS: &str = ".previous";

/// The places where the ring of an append-only file may lie, the best one first: by absolute paths,
/// because `dir` may change while one lies there.
#[derive(Clone, Debug, Default)]
pub struct Places {
    paths: Vec<PathBuf>,
    directory: PathBuf,
    /// How names in shared memory end whose directory has the same number.
    end_in_memory: Option<String>,
}

impl Places {
    /// Those of a configuration, as seen from the working directory of this moment.
    pub fn of(config: &Config) -> Self {
        let append_only = &config.append_only;
        let directory = std::env::current_dir().unwrap_or_default();
        let directory = directory.join(&append_only.appenddirname);
        let name = format!("{}.log", append_only.appendfilename);
        let mut paths = vec![directory.join(&name)];
        // Another directory of the same name is another one.
        let end_in_memory = fs::metadata(&directory).ok().map(|facts| {
            let end = format!("-{:x}-{name}", facts.ino());
            paths.push(Path::new(MEMORY_FILES).join(format!("weft-{:x}{end}", facts.dev())));
            end
        });
        Self { paths, directory, end_in_memory }
    }

    /// With the second names.
    fn all(&self) -> impl Iterator<Item = PathBuf> {
        self.paths.iter().cloned().chain(self.paths.iter().map(|path| previous(path)))
    }

    /// The logs that processes have left, mostly none or one. None for one that is not where it
    /// was. `named` is the one that the manifest names.
    ///
    /// # Errors
    /// When one cannot be looked at: what is in it would be lost.
    pub fn left(&self, named: Option<LogId>) -> Result<Vec<Option<LeftLog>>, String> {
        let logs = self.all().map(|path| open_left(&path).map_err(|error| cannot(&path, &error)));
        let mut logs: Vec<_> = logs.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        let is_named = |log: &LeftLog| Some(log.id()) == named;
        if named.is_some() && !logs.iter().flatten().any(is_named) {
            logs.extend(self.left_of_other_device(is_named)?.map(Some));
        }
        Ok(logs)
    }

    /// The wanted log in shared memory whose device had another number, which gets the name that
    /// it would have now.
    fn left_of_other_device(
        &self,
        is_wanted: impl Fn(&LeftLog) -> bool,
    ) -> Result<Option<LeftLog>, String> {
        let Some(end) = &self.end_in_memory else { return Ok(None) };
        let Ok(entries) = fs::read_dir(MEMORY_FILES) else { return Ok(None) };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let (name, own) = match name.strip_suffix(PREVIOUS) {
                Some(name) => (name, self.paths.last().map(|path| previous(path))),
                None => (&*name, self.paths.last().cloned()),
            };
            let is_one = name.starts_with("weft-") && name.ends_with(end);
            // Of others' files nothing is said, because anyone may put many there.
            let is_own = || fs::symlink_metadata(&path).is_ok_and(|facts| is_own(&facts, &facts));
            let Some(own) = own.filter(|_| is_one && is_own()) else { continue };
            let left = open_left(&path).map_err(|error| cannot(&path, &error))?.flatten();
            if let Some(left) = left.filter(|left| is_wanted(left)) {
                fs::rename(&path, &own).map_err(|error| cannot(&path, &error))?;
                log_orphans::follow(&path, &own);
                return Ok(Some(left));
            }
        }
        Ok(None)
    }

    /// Keeps the log that the manifest names, if there is one, under the second name.
    ///
    /// # Errors
    /// When that is not possible: a new ring would take its place.
    pub fn keep_left(&self, named: Option<LogId>) -> Result<(), String> {
        for path in &self.paths {
            let left = open_left(path).map_err(|error| cannot(path, &error))?.flatten();
            if left.is_some_and(|log| Some(log.id()) == named) {
                fs::rename(path, previous(path)).map_err(|error| cannot(path, &error))?;
                log_orphans::follow(path, &previous(path));
            }
        }
        Ok(())
    }

    /// Nobody needs what has the second name any more.
    pub fn remove_previous(&self) {
        self.paths.iter().for_each(|path| remove(&previous(path)));
    }

    /// Removes the files of a log that nobody needs any more.
    pub fn remove(&self) {
        self.paths.iter().for_each(|path| remove(path));
    }

    /// Keeps the files of a damaged log under other names. Returns what to say of that.
    pub fn put_aside(&self) -> String {
        let mut kept = String::new();
        for path in self.all().filter(|path| path.exists()) {
            let name = with(&path, ".damaged");
            if fs::rename(&path, &name).is_ok() {
                log_orphans::follow(&path, &name);
                kept = format!(", but kept as {}", name.display());
            }
        }
        kept
    }
}

/// Removes a log, if it is there.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    log_orphans::forget(path);
}

/// Removes logs in shared memory that nobody needs any more.
pub fn remove_orphans() {
    log_orphans::remove_all(Path::new(MEMORY_FILES));
}

/// A path with something behind its name.
pub(super) fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn previous(path: &Path) -> PathBuf {
    with(path, PREVIOUS)
}

fn cannot(path: &Path, error: &io::Error) -> String {
    format!("Can't open the log that a process has left, {}: {error}", path.display())
}

/// The log in a file, if there is one.
fn open_left(path: &Path) -> io::Result<Option<Option<LeftLog>>> {
    let link = match fs::symlink_metadata(path) {
        Ok(link) => link,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Anyone may put files there, and what is in the log is executed. Whoever can put one beside
    // the append-only file can write that as well.
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

/// Whether a file, and the link to it that was found, are of the user who runs this process.
pub(super) fn is_own(link: &Metadata, file: &Metadata) -> bool {
    link.is_file()
        && file.ino() == link.ino()
        && file.nlink() == 1
        && file.uid() == sys::process::effective_user()
}

/// Memory for a new log, and its file, which is locked. What has the first name is gone.
///
/// # Errors
/// When there is no memory.
fn create(places: &Places) -> io::Result<(SharedMemory, MemoryPlace, Option<File>)> {
    places.remove();
    for path in &places.paths {
        let map = |file: File| {
            let memory = SharedMemory::of_file(&file, memory_bytes())?;
            if path.starts_with(MEMORY_FILES) {
                // Where files cannot be locked, the directory has to stay where it is.
                let _ = file.try_lock();
                log_orphans::note(path, &places.directory)?;
            }
            Ok((memory, place(Some(&file))?, Some(file)))
        };
        match new_file(path).and_then(map) {
            Ok(created) => return Ok(created),
            Err(error) => {
                remove(path);
                warning!("The log can't lie in {}: {error}", path.display());
            }
        }
    }
    warning!("The log lies in ordinary memory: what is not written yet is lost by kill -9");
    Ok((SharedMemory::anonymous(memory_bytes())?, place(None)?, None))
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create_new(true).read(true).write(true).mode(0o600).open(path)
}

/// What tells a new log from all others.
pub fn new_id() -> LogId {
    LogId([base::random::entropy_seed(), base::random::entropy_seed()])
}

/// A new log that begins at a position, in one of the places.
///
/// # Errors
/// When there is no memory.
pub fn create_ring(places: Places, id: LogId, begin: u64) -> io::Result<Arc<LogRing>> {
    let (memory, place, file) = create(&places)?;
    Ok(Arc::new(LogRing::new(memory, id, place, begin)?.in_places(places, file)))
}

/// The start of the machine, and what tells a file from its copies; zeros for what the system does
/// not tell.
fn place(file: Option<&File>) -> io::Result<MemoryPlace> {
    let text = match fs::read_to_string(BOOT_ID) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        text => text.unwrap_or_default(),
    };
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    let boot = u128::from_str_radix(&digits, 16).unwrap_or(0);
    // Not the device: a file system may be mounted anew with another number.
    let metadata = file.map(File::metadata).transpose()?;
    let number = metadata.as_ref().map_or(0, MetadataExt::ino);
    let created = metadata.and_then(|metadata| metadata.created().ok());
    let created = created.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let created = created.map_or(0, |time| time.as_nanos() as u64);
    Ok([(boot >> 64) as u64, boot as u64, number, created])
}
