//! Writing the keyspace to its RDB file: SAVE, BGSAVE, `save`, the end of the server, and backups.
//!
//! A thread of its own writes a new file next to the old one and renames it when it is whole and
//! durable, so there is a whole file after any failure. One file is written at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use node::Node;
use node::config::Config;
use node::state::snapshots::{Due, Purpose};
use node::state::snapshots::{Ended, EndedBackup, Running, SnapshotFigures};
use parking_lot::{Condvar, Mutex};
use persist::disk::{DiskError, Replacement};

use super::rdb_sink::{SyncedSink, rdb_options, write_empty};
use super::snapshot_job::{NotCut, Pacing, PendingSnapshot, SnapshotJob, WalkError};
use super::unfinished::Unfinished;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::keyspace::stop_waits::GRACE_LOOK;
use crate::system::counted_thread::CountedThread;
use crate::system::processors::bind_to_processors;
use crate::system::real_disk::RealDisk;
use crate::system::server_log::{notice, warning};

/// The disk is asked to write after so many bytes: `rdb-save-incremental-fsync`.
const FSYNC_BYTES: u64 = 16 << 20;

pub(crate) struct Saves {
    /// The keys that are saved.
    keyspace: Arc<SharedKeyspace>,
    /// Files that are not whole.
    pub(crate) unfinished: Arc<Unfinished>,
    /// The last one. Locked while another begins.
    last: Mutex<Option<Arc<SaveInProgress>>>,
}

/// A save that has begun, on a thread of its own. Any thread may wait for its end.
#[derive(Debug, Default)]
pub struct SaveInProgress {
    /// The number of its snapshot.
    pub(crate) number: u64,
    result: Mutex<Option<SaveResult>>,
    ended: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveResult {
    Saved,
    Failed,
    /// It was no longer wanted.
    GivenUp,
}

impl SaveInProgress {
    /// Waits until the file is there. Returns false if it is not.
    pub fn wait(&self) -> bool {
        self.wait_for_result() == SaveResult::Saved
    }

    fn wait_for_result(&self) -> SaveResult {
        let mut result = self.result.lock();
        self.ended.wait_while(&mut result, |result| result.is_none());
        result.unwrap_or(SaveResult::Failed)
    }

    fn end(&self, result: SaveResult) {
        *self.result.lock() = Some(result);
        self.ended.notify_all();
    }
}

/// Why nothing is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotBegun {
    /// Another snapshot is being taken; whether it is saved to the RDB file.
    Running(bool),
    Failed(String),
}

/// The cut of a save.
enum SaveCut {
    Taken(Box<SnapshotJob>, Running),
    /// Slow commands run.
    Pending(PendingSnapshot),
}

impl SaveCut {
    /// Takes it, on the thread of the save. `None` if it is no longer wanted.
    fn take(self, node: &Node, purpose: Purpose) -> Option<(SnapshotJob, Running)> {
        let pending = match self {
            Self::Taken(job, running) => return Some((*job, running)),
            Self::Pending(pending) => pending,
        };
        let at_cut = || {
            let mut figures = node.snapshots.figures.lock();
            let running = figures.running.as_mut()?;
            running.changes = node.changes();
            running.has_cut = true;
            Some(*running)
        };
        // The thread that waits for SAVE is the one that may end a busy script.
        let is_wanted = || {
            let is_cancelled = node.snapshots.cancel.load(Ordering::Relaxed);
            !(is_cancelled || purpose == Purpose::Save && node.scripting.busy.any())
        };
        let (job, running) = pending.cut_when_possible(&at_cut, &is_wanted)?;
        Some((job, running?))
    }
}

/// Notes that a save begins, with its cut or without.
fn note_begun(node: &Node, purpose: Purpose, has_cut: bool) -> Running {
    let (began_ms, changes) = (steady_ms(), node.changes());
    let mut figures = node.snapshots.figures.lock();
    figures.begun += 1;
    let running = Running { purpose, began_ms, changes, number: figures.begun, has_cut };
    node.snapshots.cancel.store(false, Ordering::Relaxed);
    node.snapshots.progress.begin();
    figures.running = Some(running);
    figures.saves += u64::from(purpose == Purpose::Background);
    figures.is_scheduled &= purpose == Purpose::Backup;
    running
}

/// A file that is written.
struct SaveTarget {
    /// The working directory when it began, which CONFIG SET may change.
    disk: RealDisk,
    directory: PathBuf,
    temporary: PathBuf,
    path: PathBuf,
}

impl SaveTarget {
    fn new(purpose: Purpose, path: &Path) -> Self {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let kind = if purpose == Purpose::Backup { "backup-" } else { "" };
        let name = format!("temp-{kind}{}.rdb", std::process::id());
        Self {
            disk: RealDisk::of_working_directory(),
            temporary: directory.join(name),
            directory,
            path: path.to_owned(),
        }
    }
}

impl Saves {
    /// The saves of a keyspace; none has begun.
    pub(crate) fn new(keyspace: &Arc<SharedKeyspace>) -> Self {
        let keyspace = Arc::clone(keyspace);
        Self { keyspace, unfinished: Arc::default(), last: Mutex::default() }
    }

    /// Takes a snapshot and begins to write it. If slow commands run, its cut follows when they are
    /// over, and no thread waits for that. The caller is outside the gate.
    ///
    /// # Errors
    /// Why it has not begun.
    pub fn begin(&self, purpose: Purpose, path: &Path) -> Result<Arc<SaveInProgress>, NotBegun> {
        self.begin_cut(purpose, path, true)
    }

    /// The same. Unless it `waits`, it does not begin while slow commands run.
    fn begin_cut(
        &self,
        purpose: Purpose,
        path: &Path,
        waits: bool,
    ) -> Result<Arc<SaveInProgress>, NotBegun> {
        let mut last = self.last.lock();
        let keyspace = &self.keyspace;
        let node = &keyspace.node;
        // One that has taken all keys may not have its name yet.
        let figures = node.snapshots.figures.lock();
        if let Some(running) = figures.running {
            return Err(NotBegun::Running(running.purpose != Purpose::Backup));
        }
        // While saves fail, one line about each is enough.
        let is_again = figures.failed_in_row > 0;
        drop(figures);
        let pending = reserve_soon(keyspace).ok_or(NotBegun::Running(false))?;
        // Noted at the cut: a command that removes all keys after it cancels the save.
        let (cut, number) = match pending.try_cut(&|| note_begun(node, purpose, true)) {
            Ok((job, running)) => (SaveCut::Taken(Box::new(job), running), running.number),
            Err(NotCut::Later(pending)) if waits => {
                (SaveCut::Pending(pending), note_begun(node, purpose, false).number)
            }
            Err(NotCut::Later(_)) => return Err(NotBegun::Failed("slow commands run".to_owned())),
            Err(NotCut::BusyScript(_) | NotCut::ScriptEnded) => {
                return Err(NotBegun::Failed("a script has run for too long".to_owned()));
            }
        };
        let saving = Arc::new(SaveInProgress { number, ..SaveInProgress::default() });
        let target = SaveTarget::new(purpose, path);
        if purpose == Purpose::Background && !is_again {
            notice!("Background saving started");
        }
        if let Err(error) = self.start_thread(purpose, cut, target, &saving) {
            let (error, target) = (error.to_string(), SaveTarget::new(purpose, path));
            let running = node.snapshots.figures.lock().running;
            if let Some(running) = running {
                finish(keyspace, running, &target, Err(Some(error.clone())));
            }
            return Err(NotBegun::Failed(error));
        }
        *last = Some(Arc::clone(&saving));
        Ok(saving)
    }

    /// Starts the thread that writes the file.
    fn start_thread(
        &self,
        purpose: Purpose,
        cut: SaveCut,
        target: SaveTarget,
        saving: &Arc<SaveInProgress>,
    ) -> std::io::Result<()> {
        let (keyspace, unfinished) = (Arc::clone(&self.keyspace), Arc::clone(&self.unfinished));
        let (config, saving) = (keyspace.node.config(), Arc::clone(saving));
        let work = move || {
            bind_to_processors("bgsave-cpulist", &config.saving.bgsave_cpulist);
            let node = &keyspace.node;
            let result = CountedThread::run(node, |memory| {
                let Some((job, running)) = cut.take(node, purpose) else {
                    let running = node.snapshots.figures.lock().running?;
                    return Some(finish(&keyspace, running, &target, Err(None)));
                };
                let written = write(&unfinished, job, &target, &config, memory);
                memory.publish();
                Some(finish(&keyspace, running, &target, written))
            });
            saving.end(result.unwrap_or(SaveResult::Failed));
        };
        std::thread::Builder::new().name("weft-save".to_owned()).spawn(work).map(drop)
    }

    /// Saves to the RDB file.
    ///
    /// # Errors
    /// Why it has not begun.
    pub(crate) fn begin_save(&self, purpose: Purpose) -> Result<Arc<SaveInProgress>, NotBegun> {
        let filename = self.keyspace.node.config().saving.dbfilename.clone();
        let begun = self.begin(purpose, Path::new(&filename));
        if let Err(NotBegun::Failed(why)) = &begun {
            warning!("Can't save: {why}");
        }
        begun
    }

    /// Saves to the RDB file, and waits until the file is there. Returns false if it is not. If
    /// FLUSHALL runs before the cut, its save comes first. `is_wanted` says whether the caller
    /// still waits.
    ///
    /// # Errors
    /// Why it has not begun.
    pub fn save(&self, is_wanted: &dyn Fn() -> bool) -> Result<bool, NotBegun> {
        let mut saving = self.begin_save(Purpose::Save)?;
        loop {
            if !is_wanted() {
                // A signal that came before this save began could not end it.
                self.keyspace.node.snapshots.give_up_pending();
            }
            match saving.wait_for_result() {
                SaveResult::Saved => return Ok(true),
                SaveResult::Failed => return Ok(false),
                SaveResult::GivenUp => {}
            }
            while self.keyspace.node.snapshots.is_emptied() && is_wanted() {
                std::thread::sleep(GRACE_LOOK);
            }
            if !is_wanted() {
                return Ok(false);
            }
            saving = self.begin_save(Purpose::Save)?;
        }
    }

    /// Saves to the RDB file after FLUSHALL, and waits for the end of that. `changes` are those of
    /// the keyspace when it had no keys. When the server shuts down, a file without keys replaces
    /// one that may take long to write: Redis saves such a file within FLUSHALL.
    pub fn save_emptied(&self, changes: u64) {
        let node = &self.keyspace.node;
        let filename = node.config().saving.dbfilename.clone();
        let mut saved_before = None;
        loop {
            let saved = match saved_beside_none(node) {
                Ok(saved) => saved,
                Err(Running { .. }) => {
                    // A save in the background was cancelled, and other saves end soon.
                    node.snapshots.give_up_pending();
                    self.wait();
                    continue;
                }
            };
            if *saved_before.get_or_insert(saved) != saved {
                // One that has begun since is the file.
                return;
            }
            // If a script was ended midway, memory has its changes up to that point.
            let begun = match node.is_shutting_down() || node.scripting.must_end() {
                true => Err(NotBegun::Running(false)),
                false => self.begin_cut(Purpose::Save, Path::new(&filename), false),
            };
            match begun {
                Ok(saving) if saving.wait_for_result() == SaveResult::GivenUp => {}
                Ok(_) => return,
                Err(NotBegun::Running(true)) => {}
                Err(NotBegun::Running(false) | NotBegun::Failed(_)) => {
                    match self.save_empty(changes, saved) {
                        Ok(true) => notice!("DB saved on disk"),
                        Ok(false) => continue,
                        Err(why) => warning!("Saving to {filename} failed: {why}"),
                    }
                    return;
                }
            }
        }
    }

    /// Writes the RDB file without keys, while another snapshot is written elsewhere, or none can
    /// be taken. Changes since the keyspace was empty count as not saved. `saved` is how many saves
    /// had succeeded when none was running that has older keys. Returns false if one has begun
    /// since.
    fn save_empty(&self, changes: u64, saved: u64) -> Result<bool, String> {
        // No save begins meanwhile.
        let _last = self.last.lock();
        let (node, config) = (&self.keyspace.node, self.keyspace.node.config());
        match saved_beside_none(node) {
            Ok(now) if now == saved => {}
            _ => return Ok(false),
        }
        let libraries: Vec<_> = node.scripting.libraries.read().iter().cloned().collect();
        let failed = |error: DiskError| error.to_string();
        let target = SaveTarget::new(Purpose::Save, Path::new(&config.saving.dbfilename));
        let SaveTarget { disk, directory, temporary, path } = target;
        let place = disk.place(&temporary).map_err(failed)?;
        let begin = || Replacement::begin(&disk, &directory, temporary, path.clone());
        let (_unfinished, file) = self.unfinished.create(place, begin);
        let mut file = file.map_err(failed)?;
        let written = write_empty(file.sink(), &rdb_options(node, &config, false), &libraries);
        if let Err(error) = written {
            file.abandon(&disk);
            return Err(failed(error));
        }
        file.commit(&disk).map_err(|error| failed(error.disk()))?;
        note_saved(&mut node.snapshots.figures.lock(), changes);
        node.follow_saves(&config);
        Ok(true)
    }

    /// Waits until the file is there that is being written. Returns false if it is not.
    pub fn wait(&self) -> bool {
        let last = self.last.lock().clone();
        last.is_some_and(|saving| saving.wait())
    }

    /// Cancels the save in progress, and waits for its end.
    pub fn cancel(&self) {
        self.keyspace.node.snapshots.cancel.store(true, Ordering::Relaxed);
        self.wait();
    }

    /// Begins a save that is due. For the main thread, now and then.
    pub fn begin_if_due(&self, unix_seconds: i64) {
        let (node, config) = (&self.keyspace.node, self.keyspace.node.config());
        let Some(due) = node.due_save(&config, unix_seconds, steady_ms()) else { return };
        if node.scripting.busy.any() {
            return;
        }
        if let Due::Point { changes, seconds } = due {
            notice!("{changes} changes in {seconds} seconds. Saving...");
        }
        // A save that runs instead ends soon, and then this one is due again.
        let _ = self.begin_save(Purpose::Background);
    }
}

/// Prepares a snapshot; `None` if another one is being taken. A rewrite that waits for slow
/// commands keeps others out for each of its attempts, for 2 ms at most as long as it lets these
/// run.
fn reserve_soon(keyspace: &Arc<SharedKeyspace>) -> Option<PendingSnapshot> {
    const LOOKS: usize = 4;
    for _ in 0..LOOKS {
        let pending = SnapshotJob::reserve(keyspace);
        if pending.is_some() {
            return pending;
        }
        std::thread::sleep(GRACE_LOOK);
    }
    None
}

fn steady_ms() -> i64 {
    sys::clock::steady_micros() / 1000
}

/// Writes the file. Fails with `None` if it is no longer wanted.
fn write(
    unfinished: &Unfinished,
    job: SnapshotJob,
    target: &SaveTarget,
    config: &Config,
    memory: &CountedThread<'_>,
) -> Result<(), Option<String>> {
    let node = memory.node();
    let failed = |error: DiskError| Some(error.to_string());
    let SaveTarget { disk, directory, temporary, path } = target;
    let begin = || Replacement::begin(disk, directory, temporary.clone(), path.clone());
    let place = disk.place(temporary).map_err(failed)?;
    let (_unfinished, file) = unfinished.create(place, begin);
    let mut file = file.map_err(failed)?;
    let pacing = Pacing {
        cancel: &node.snapshots.cancel,
        progress: &node.snapshots.progress,
        key_delay_us: &|| node.config().saving.rdb_key_save_delay,
        publish: &|| memory.publish(),
    };
    let syncs = config.saving.rdb_save_incremental_fsync;
    let sink =
        SyncedSink { sink: file.sink(), every_bytes: syncs.then_some(FSYNC_BYTES), synced: 0 };
    let written = job.write_to(sink, &rdb_options(node, config, false), pacing).map(drop);
    // A command that cancels the save waits while the file is renamed; afterwards the file exists.
    let is_wanted = || {
        let naming = node.snapshots.naming.lock();
        (!node.snapshots.cancel.load(Ordering::Relaxed)).then_some(naming)
    };
    match written {
        Ok(()) => match file.commit_if(disk, is_wanted) {
            Ok(true) => Ok(()),
            Ok(false) => Err(None),
            Err(error) => Err(failed(error.disk())),
        },
        Err(error) => {
            file.abandon(disk);
            Err(match error {
                WalkError::Sink(error) => failed(error),
                WalkError::Cancelled => None,
                WalkError::Lost => Some("a part of the data was lost on the way".to_owned()),
            })
        }
    }
}

/// Notes how it ended.
fn finish(
    keyspace: &SharedKeyspace,
    running: Running,
    target: &SaveTarget,
    written: Result<(), Option<String>>,
) -> SaveResult {
    let (node, path) = (&keyspace.node, target.path.display());
    let at_ms = steady_ms();
    let is_ok = written.is_ok();
    let ended = Ended { is_ok, took_ms: at_ms - running.began_ms, at_ms };
    match &written {
        Ok(()) if running.purpose == Purpose::Backup => notice!("Backup saved to {path}"),
        Ok(()) => notice!("DB saved on disk"),
        Err(None) => notice!("Saving to {path} was ended before it was complete"),
        Err(Some(why)) if running.purpose == Purpose::Background => {
            warning!("Background saving error: saving to {path} failed: {why}");
        }
        Err(Some(why)) => warning!("Saving to {path} failed: {why}"),
    }
    let saved_bytes = node.snapshots.progress.saved_bytes_peak.load(Ordering::Relaxed);
    let mut figures = node.snapshots.figures.lock();
    figures.running = None;
    figures.last_saved_bytes = saved_bytes;
    let ended_backup = EndedBackup { number: running.number, failure: failure_of(&written) };
    match running.purpose {
        Purpose::Backup => {
            figures.last_backup = Some(ended);
            figures.ended_backup = Some(ended_backup.clone());
            figures.backups += u64::from(is_ok);
        }
        Purpose::Save if is_ok => note_saved(&mut figures, running.changes),
        Purpose::Save => {}
        Purpose::Background => {
            if is_ok {
                note_saved(&mut figures, running.changes);
            }
            figures.end_background(ended, matches!(written, Err(None)));
        }
    }
    drop(figures);
    if running.purpose == Purpose::Backup {
        for client in node.waits.end_backup(&ended_backup) {
            let (thread, slot) = client.location.place_after();
            keyspace.threads.wait_ended(thread as usize, slot as usize, client.id);
        }
    }
    if running.purpose == Purpose::Background && is_ok {
        notice!("Background saving terminated with success");
    }
    node.follow_saves(&node.config());
    match written {
        Ok(()) => SaveResult::Saved,
        Err(None) => SaveResult::GivenUp,
        Err(Some(_)) => SaveResult::Failed,
    }
}

fn failure_of(written: &Result<(), Option<String>>) -> Option<String> {
    match written {
        Ok(()) => None,
        Err(None) => Some("it was ended before it was complete".to_owned()),
        Err(Some(why)) => Some(why.clone()),
    }
}

/// How many saves have succeeded, if none is running; otherwise the running one.
fn saved_beside_none(node: &Node) -> Result<u64, Running> {
    let figures = node.snapshots.figures.lock();
    let running = figures.running.filter(|running| running.purpose != Purpose::Backup);
    running.map_or(Ok(figures.saved), Err)
}

/// There is a file with so many changes of the keyspace.
fn note_saved(figures: &mut SnapshotFigures, changes: u64) {
    figures.last_save_unix = sys::clock::unix_micros().div_euclid(1_000_000);
    figures.saved_changes = changes;
    figures.saved += 1;
    figures.failed_in_row = 0;
    if let Some(last) = &mut figures.last_background {
        last.is_ok = true;
    }
}
