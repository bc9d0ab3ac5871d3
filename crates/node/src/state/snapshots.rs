//! The state of the RDB files: when the server has saved, whether that succeeded, and the progress
//! of saving and loading. The threads that write and read the files keep it up to date.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Why a snapshot is written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// SAVE, or the end of the server, which wait for it.
    Save,
    /// BGSAVE, or `save`.
    Background,
    /// WEFT BACKUP.
    Backup,
}

/// A snapshot that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The purpose.
    pub purpose: Purpose,
    /// When it began, in milliseconds on the steady scale.
    pub began_ms: i64,
    /// The changes of the keyspace at its cut.
    pub changes: u64,
    /// Distinguishes it from other snapshots of the process.
    pub number: u64,
    /// It has its cut. Otherwise it waits for slow commands.
    pub has_cut: bool,
}

/// How a backup ended, for clients that wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedBackup {
    /// The number of the snapshot.
    pub number: u64,
    /// Why there is no file.
    pub failure: Option<String>,
}

/// How the last snapshot in the background ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether the file is whole and has its name.
    pub is_ok: bool,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// When it ended, in milliseconds on the steady scale.
    pub at_ms: i64,
}

/// RDB files as INFO shows them.
#[derive(Clone, Debug, Default)]
pub struct SnapshotFigures {
    /// The snapshot that is being written.
    pub running: Option<Running>,
    /// BGSAVE waits for something else to be over.
    pub is_scheduled: bool,
    /// Seconds since 1970 when the last save succeeded, or when the server started.
    pub last_save_unix: i64,
    /// The changes of the keyspace that were saved then.
    pub saved_changes: u64,
    /// Saves that succeeded.
    pub saved: u64,
    /// The last save in the background.
    pub last_background: Option<Ended>,
    /// Saves in the background that have failed since one has succeeded.
    pub failed_in_row: u32,
    /// The last backup.
    pub last_backup: Option<Ended>,
    /// How that ended.
    pub ended_backup: Option<EndedBackup>,
    /// Snapshots that have begun.
    pub begun: u64,
    /// Saves that SAVE, BGSAVE and `save` have begun.
    pub saves: u64,
    /// The saves before CONFIG RESETSTAT.
    pub saves_before: u64,
    /// Backups that succeeded.
    pub backups: u64,
    /// The most bytes of old state that the last snapshot held.
    pub last_saved_bytes: u64,
    /// Keys that were loaded last, and those that had expired.
    pub loaded: (u64, u64),
}

impl SnapshotFigures {
    /// Whether the last save in the background has failed.
    pub fn has_failed(&self) -> bool {
        self.last_background.is_some_and(|ended| !ended.is_ok)
    }

    /// Notes how a save in the background has ended. As in Redis, one that was given up says
    /// nothing of the disk.
    pub fn end_background(&mut self, ended: Ended, is_given_up: bool) {
        if is_given_up && self.has_failed() {
            return;
        }
        self.failed_in_row += u32::from(!ended.is_ok && !is_given_up);
        self.last_background = Some(Ended { is_ok: ended.is_ok || is_given_up, ..ended });
    }
}

/// The progress of a snapshot.
#[derive(Debug, Default)]
pub struct SaveProgress {
    /// Keys that were visited.
    pub keys: AtomicU64,
    /// Keys at the cut.
    pub keys_total: AtomicU64,
    /// Bytes of keys that were saved before they changed and have not been written yet.
    pub saved_bytes: AtomicU64,
    /// The maximum of these bytes.
    pub saved_bytes_peak: AtomicU64,
}

impl SaveProgress {
    /// A new snapshot begins.
    pub fn begin(&self) {
        for value in [&self.keys, &self.keys_total, &self.saved_bytes, &self.saved_bytes_peak] {
            value.store(0, Ordering::Relaxed);
        }
    }
}

/// The progress of loading.
#[derive(Debug, Default)]
pub struct LoadProgress {
    /// Seconds since 1970 when it began; 0 while nothing is loaded.
    pub began_unix: AtomicI64,
    /// Bytes to read in all.
    pub bytes_total: AtomicU64,
    /// Bytes that have been read.
    pub bytes: AtomicU64,
    /// Keys that have been added.
    pub keys: AtomicU64,
    /// Bytes of memory that were in use in the server that wrote the file; 0 if the file does not
    /// say.
    pub writer_used_bytes: AtomicU64,
    /// Set to end loading at once.
    pub cancel: AtomicBool,
}

impl LoadProgress {
    /// Loading begins: `bytes_total` bytes will be read.
    pub fn begin(&self, unix_seconds: i64, bytes_total: u64) {
        for value in [&self.bytes, &self.keys, &self.writer_used_bytes] {
            value.store(0, Ordering::Relaxed);
        }
        self.bytes_total.store(bytes_total, Ordering::Relaxed);
        self.began_unix.store(unix_seconds, Ordering::Relaxed);
    }

    /// Loading is over.
    pub fn end(&self) {
        self.began_unix.store(0, Ordering::Relaxed);
    }
}

impl Snapshots {
    pub(super) fn is_loading(&self) -> bool {
        self.is_loading.load(Ordering::Acquire)
    }

    pub(super) fn set_loading(&self, loading: bool) {
        self.is_loading.store(loading, Ordering::Release);
    }

    /// Gives up a snapshot with this purpose, and does not wait for its end.
    pub fn give_up(&self, purpose: Purpose) {
        // Under the lock, so that no other snapshot begins meanwhile, which this would end.
        let figures = self.figures.lock();
        if figures.running.is_some_and(|running| running.purpose == purpose) {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// Gives up SAVE if it waits for its cut, so that no other thread waits for slow commands.
    pub fn give_up_pending(&self) {
        let figures = self.figures.lock();
        let is_pending = |running: Running| running.purpose == Purpose::Save && !running.has_cut;
        if figures.running.is_some_and(is_pending) {
            self.cancel.store(true, Ordering::Relaxed);
        }
    }

    /// FLUSHALL has run, and still holds its shards.
    pub(crate) fn begin_emptied(&self) {
        self.emptied.fetch_add(1, Ordering::Relaxed);
    }

    /// The save after FLUSHALL has ended.
    pub(crate) fn end_emptied(&self) {
        self.emptied.fetch_sub(1, Ordering::Release);
    }

    /// Whether a save must end before FLUSHALL, or its transaction or script, is answered.
    pub fn is_emptied(&self) -> bool {
        self.emptied.load(Ordering::Acquire) != 0
    }

    /// When this returns, a file that was given up has its name already, or never gets it.
    pub fn wait_for_name(&self) {
        drop(self.naming.lock());
    }
}

/// Everything about RDB files.
#[derive(Debug, Default)]
pub struct Snapshots {
    /// Figures about saves and loads.
    pub figures: Mutex<SnapshotFigures>,
    /// The snapshot that is being written, or the last one.
    pub progress: SaveProgress,
    /// Set to end the current snapshot at once.
    pub cancel: AtomicBool,
    /// Held while a file is renamed, which may take long, and while that is decided.
    pub naming: Mutex<()>,
    /// Calls of FLUSHALL, in scripts too, that have removed keys and may not be answered yet: their
    /// saves are not given up.
    emptied: AtomicUsize,
    /// The progress of the current or last load.
    pub loading: LoadProgress,
    /// Keys are being loaded: commands that read or change keys are refused.
    is_loading: AtomicBool,
}

/// Why a save is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// There were so many changes in so many seconds.
    Point {
        /// Changes.
        changes: u32,
        /// Seconds.
        seconds: u32,
    },
    /// BGSAVE had to wait.
    Scheduled,
    /// The last one has failed.
    Again,
}
