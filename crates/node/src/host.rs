//! The interfaces that the layer above implements: shard locks, and services of the process.

use std::time::Duration;

use engine::{HeldShards, ScriptError, ShardAccess};
use script::LogLevel;
use store::lazy_free::BigPiece;
use store::{LazyFree, Shard, Time};

use crate::clients::record::ClientRecord;
use crate::config::{Apply, Config};

/// One thread at the gate, for a command that runs inside.
pub trait GateAccess {
    /// Leaves the gate. Other commands may run from now on, exclusive ones among them.
    fn leave(&self);

    /// Enters the gate again, unless a busy script runs exclusively: then no shard is reached until
    /// the next command.
    fn enter(&self);
}

/// Gives commands the shards that they need.
///
/// No thread waits for a busy script, and none waits long for another command: a command whose
/// shard stays in use fails with an error, and has done nothing.
pub trait ShardLocks: ShardAccess + GateAccess {
    /// Runs `work` with one shard.
    ///
    /// # Errors
    /// A busy script holds it, or another command holds it for longer than the wait budget
    /// ([`ScriptError::ShardInUse`]).
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Result<R, ScriptError>;

    /// Runs `work` with one shard, unless it is in use or cannot be reached: then nothing is done.
    fn try_one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Option<R>;

    /// Runs `work` with several shards held at once, given by ascending number without repetition.
    ///
    /// # Errors
    /// As [`one`](Self::one), for one of them.
    fn many<R>(
        &self,
        shards: &[usize],
        work: impl FnOnce(&mut dyn HeldShards) -> R,
    ) -> Result<R, ScriptError>;

    /// Runs `work` with all shards, while no other command runs.
    ///
    /// # Errors
    /// A script is busy.
    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn HeldShards) -> R) -> Result<R, ScriptError>;

    /// The command had these shards, found that it needs more, and has done nothing. Until it is
    /// over it keeps its turn for them: it takes them if they are free, even if another client has
    /// waited longer. Otherwise several such commands wake one another for the first shard, and
    /// none of them reaches the second.
    fn keep_turn(&self, shards: &[usize]);

    /// Whether a command that needs [all shards](Self::exclusive) may stop the others now: the
    /// commands on other threads will soon be over, or it has waited long for that. Otherwise it
    /// ends with [`ScriptError::ShardInUse`]. No shard is held.
    fn may_stop_others(&self) -> bool;

    /// Whether the new holder may keep the exclusive slot among scripts. False if another client
    /// has waited longer for it.
    fn keeps_exclusive_slot(&self) -> bool;

    /// The holder of the exclusive slot among scripts has left it.
    fn left_exclusive_slot(&self);

    /// The command does not run because its script must be exclusive among scripts, and waits for
    /// the slot.
    fn wait_for_exclusive_slot(&self);

    /// Serves the thread's other clients once, while a busy script of this thread keeps its shards.
    /// Waits for nothing.
    fn serve_others(&self);

    /// Asks the processor for a shard that will be needed in a moment.
    fn prefetch(&self, shard: usize);

    /// Bytes that this thread has allocated, less those that it has freed.
    fn thread_bytes(&self) -> i64;

    /// The processor's tick counter.
    fn tsc(&self) -> u64;

    /// The time on the clock that all threads share.
    fn time(&self) -> Time;

    /// The same, if the thread has waited since the last call: outside the gate or for a shard.
    /// `None` if it has only executed commands.
    fn time_after_wait(&self) -> Option<Time>;
}

/// Whether the keyspace is saved when the server ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveAtEnd {
    /// If the configuration asks for saves: `save`.
    #[default]
    ByConfig,
    /// In any case.
    Yes,
    /// Not at all.
    No,
}

/// Why there is no new RDB file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// It is being written.
    Saving,
    /// Another snapshot is being written.
    SnapshotTaken,
    /// The log says why.
    Failed,
}

/// How DEBUG PANIC and DEBUG SEGFAULT end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// By an error that the program detects.
    Panic,
    /// By an error that the processor detects.
    Fault,
}

/// The options of DEBUG RELOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Saves before it loads.
    pub saves: bool,
    /// Keys in the file replace existing ones; other keys stay.
    pub merges: bool,
}

/// The result of [`Host::load`].
#[derive(Debug, Default)]
pub struct Reloaded {
    /// Keys that were loaded into each database, which the caller counts.
    pub db_keys: Vec<i64>,
    /// The sources of libraries of functions, which the caller loads.
    pub functions: Vec<Vec<u8>>,
}

/// How to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Whether to save.
    pub save: SaveAtEnd,
    /// Waits for nothing.
    pub now: bool,
    /// Ends even if a step fails.
    pub force: bool,
}

/// The answer to a request to rewrite the append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteBegin {
    /// It begins.
    Started,
    /// It begins as soon as possible.
    Scheduled,
    /// One is in progress.
    InProgress,
    /// It cannot begin; the log says why.
    Failed,
}

/// Facts about the process.
#[derive(Clone, Debug, Default)]
pub struct ProcessInfo {
    /// The process's number.
    pub pid: u32,
    /// Seconds since it started.
    pub uptime_seconds: u64,
    /// Name, release and machine of the kernel.
    pub kernel: String,
    /// Path of the running program.
    pub executable: String,
    /// Path of the configuration file, empty when there is none.
    pub config_file: String,
    /// The port in use.
    pub tcp_port: u16,
    /// Threads that run, the main thread included.
    pub threads_active: usize,
    /// The threads below this number take clients; the main thread only if there is no other
    /// thread.
    pub threads_carrying: usize,
    /// User and system seconds of the process.
    pub cpu: (f64, f64),
    /// User and system seconds of its ended children.
    pub cpu_children: (f64, f64),
    /// User and system seconds of the main thread.
    pub cpu_main: (f64, f64),
    /// Bytes in use, as the threads count them.
    pub used_bytes: u64,
    /// The most that this has been.
    pub used_peak_bytes: u64,
    /// Bytes handed out by the allocator, including those that threads keep for their next
    /// allocations.
    pub allocated_bytes: u64,
    /// Bytes in use when the server was ready.
    pub startup_bytes: u64,
    /// Bytes in pages with live blocks.
    pub active_bytes: u64,
    /// Bytes in memory, as the allocator sees it.
    pub resident_bytes: u64,
    /// Bytes that the kernel may take back and has not yet.
    pub muzzy_bytes: u64,
    /// Bytes in memory, as the kernel sees it.
    pub rss_bytes: u64,
    /// Bytes of memory in the machine.
    pub system_memory_bytes: u64,
    /// The allocator's name and version.
    pub allocator: String,
    /// Ticks of the processor in a microsecond.
    pub tsc_per_micro: f64,
}

/// The services of the process that are used inside the gate.
pub trait ClientWaker {
    /// Notifies the owner of a client that its wait is over. Waits for nothing; no shard is held.
    fn wake_client(&self, client: &ClientRecord);

    /// Passes large values of evicted keys to the thread that frees them, because other threads
    /// wait for their memory. Waits for nothing.
    fn free_evicted(&self, pieces: Vec<BigPiece>);
}

/// The process, as a command reaches it: only outside the gate. A thread inside delays every thread
/// that closes the gate, so nothing inside may wait for a disk, a socket or a lock.
///
/// The compiler refuses its use inside:
///
/// ```compile_fail,E0599
/// fn purge(host: node::host::GatedHost<'_>) {
///     host.purge_memory();
/// }
/// ```
///
/// ```
/// fn purge(host: node::host::GatedHost<'_>, gate: &dyn node::host::GateAccess) {
///     host.outside(gate, |host| host.purge_memory());
/// }
/// ```
#[derive(Clone, Copy)]
pub struct GatedHost<'a>(&'a dyn Host);

impl<'a> GatedHost<'a> {
    /// A process whose services are used outside the gate.
    pub fn new(host: &'a dyn Host) -> Self {
        Self(host)
    }

    /// Leaves the gate, does `work` and enters again.
    pub fn outside<R>(&self, gate: &dyn GateAccess, work: impl FnOnce(&dyn Host) -> R) -> R {
        let _outside = Outside::leave(gate);
        work(self.0)
    }

    /// Drops values that commands have removed; inside the gate as well.
    pub(crate) fn free(&self, removed: &mut LazyFree) {
        self.0.free(removed);
    }

    /// The service that may be used inside as well.
    pub(crate) fn waker(&self) -> &'a dyn ClientWaker {
        self.0
    }
}

/// Outside the gate, until dropped.
struct Outside<'a>(&'a dyn GateAccess);

impl<'a> Outside<'a> {
    fn leave(gate: &'a dyn GateAccess) -> Self {
        gate.leave();
        Self(gate)
    }
}

impl Drop for Outside<'_> {
    fn drop(&mut self) {
        self.0.enter();
    }
}

/// Reverts one step of a changed configuration.
pub type Undo<'a> = Box<dyn FnOnce() + 'a>;

/// Services of the process, which commands use through a [`GatedHost`]. Few commands need them. All
/// but `close_client`, `free`, `pause_changed` and `wake_client` run on the main thread.
pub trait Host: ClientWaker {
    /// Makes the process follow a changed configuration in one respect. Returns a function that
    /// reverts it; dropping the function makes the change final.
    ///
    /// # Errors
    /// Why it cannot follow. Nothing has changed then.
    fn apply<'a>(
        &'a self,
        step: Apply,
        old: &'a Config,
        new: &'a Config,
    ) -> Result<Undo<'a>, String>;

    /// Asks the owner of a client to close it.
    fn close_client(&self, client: &ClientRecord);

    /// Wakes clients that wait for the end of CLIENT PAUSE.
    fn pause_changed(&self);

    /// Writes the keyspace to its RDB file, and waits until that is complete.
    ///
    /// # Errors
    /// Why it was not written.
    fn save(&self) -> Result<(), SaveError>;

    /// Begins to write the keyspace to its RDB file, in the background.
    ///
    /// # Errors
    /// Why it has not begun.
    fn begin_save(&self) -> Result<(), SaveError>;

    /// Writes the keyspace, which has just been emptied, to its RDB file, and waits until that is
    /// complete. `changes` is the number of changes at the moment when there were no keys. A
    /// failure is only logged.
    fn save_emptied(&self, changes: u64);

    /// Begins to write the keyspace to another file, in the background, which may replace an RDB
    /// file if `replaces` is set. Returns the number of the snapshot.
    ///
    /// # Errors
    /// Why it has not begun; `None` if another snapshot is being written.
    fn begin_backup(&self, path: &str, replaces: bool) -> Result<u64, Option<String>>;

    /// Pauses commands until [`end_reload`](Self::end_reload), which takes the returned number, and
    /// saves the keyspace if `how` says so.
    ///
    /// # Errors
    /// It could not be saved; no command is paused then.
    fn begin_reload(&self, how: Reload) -> Result<u64, SaveError>;

    /// Loads the RDB file into the keyspace, as [begun](Self::begin_reload).
    ///
    /// # Errors
    /// Why it was not loaded, or not all of it.
    fn load(&self, how: Reload) -> Result<Reloaded, String>;

    /// Writes the whole log to the append-only file, before it is loaded again.
    ///
    /// # Errors
    /// The disk's error, or that the working directory has no append-only file.
    fn flush_append_only(&self) -> Result<(), String>;

    /// Loads the append-only file into the empty keyspace, as [begun](Self::begin_reload).
    ///
    /// # Errors
    /// Why it was not loaded, or not all of it.
    fn load_append_only(&self) -> Result<(), String>;

    /// Ends the pause of a reload.
    fn end_reload(&self, pause: u64);

    /// Begins to end the process.
    ///
    /// # Errors
    /// Why it must not end.
    fn shut_down(&self, how: Shutdown) -> Result<(), String>;

    /// Calls off a [shutdown](Self::shut_down) that waits for running commands. Returns false if
    /// there is none.
    fn call_off_shutdown(&self) -> bool;

    /// Begins a rewrite of the append-only file; `later` for one that a transaction asks for.
    fn rewrite_append_only(&self, later: bool) -> RewriteBegin;

    /// Facts about the process.
    fn process_info(&self) -> ProcessInfo;

    /// The path of the working directory by the name that it has now, if it has one.
    fn working_directory(&self) -> Option<String>;

    /// The configuration file's text.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_config_file(&self) -> Result<Vec<u8>, String>;

    /// Replaces the configuration file, whole or not at all.
    ///
    /// # Errors
    /// Why it cannot be written.
    fn write_config_file(&self, text: &[u8]) -> Result<(), String>;

    /// The text of the file of users.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read_acl_file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// Replaces the file of users, whole or not at all.
    ///
    /// # Errors
    /// Why it cannot be written, which is logged as well.
    fn write_acl_file(&self, path: &str, text: &[u8]) -> Result<(), String>;

    /// Fills a buffer with unpredictable bytes, for passwords.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Blocks the calling thread; for DEBUG SLEEP.
    fn sleep(&self, time: Duration);

    /// Drops values that commands have removed; those that take long on another thread. May be
    /// called inside the gate, and waits for nothing.
    fn free(&self, removed: &mut LazyFree);

    /// Ends the process as an error of this program does, to test the report of it.
    fn crash(&self, how: Crash);

    /// Returns unused memory to the system.
    fn purge_memory(&self);

    /// Writes a line into the log, of a script or by DEBUG LOG.
    fn log(&self, level: LogLevel, line: &[u8]);

    /// The allocator's own report.
    fn allocator_report(&self) -> String;
}
