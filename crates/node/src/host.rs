//! What the node asks of the layer above: shards, and services that only the process can give.

use std::time::Duration;

use engine::{HeldShards, ScriptError, ShardAccess};
use script::LogLevel;
use store::{LazyFree, Shard, Time};

use crate::clients::record::ClientRecord;
use crate::config::{Apply, Config};

/// One thread at the gate, for a command that runs inside.
pub trait GateAccess {
    /// Goes outside. Other commands may run from now on, even alone.
    fn leave(&self);

    /// Goes inside again, unless a script runs alone that has run for too long: then no shard is
    /// reached until the next command.
    fn enter(&self);
}

/// Gives commands the shards they need. Whether locks or owner threads provide them is its secret.
///
/// Nobody waits for a script that has run for too long, and nobody waits for long at all: what
/// needs a shard that stays in use is an error instead, and nothing was done.
pub trait ShardLocks: ShardAccess + GateAccess {
    /// Runs `work` with one shard.
    ///
    /// # Errors
    /// A script that has run for too long holds it, or another command
    /// ([`ScriptError::ShardInUse`]) for longer than is waited for it.
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> Result<R, ScriptError>;

    /// Runs `work` with one shard, unless it is in use or not to be reached: then nothing is done.
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
    /// A script has run for too long.
    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn HeldShards) -> R) -> Result<R, ScriptError>;

    /// The command has had these shards, has found that it needs more, and has done nothing. Until
    /// it is over it keeps its turn for them: it takes them if they are free, whoever has waited
    /// for longer. Otherwise several such commands call one another for the first shard, and nobody
    /// gets as far as the second.
    fn keep_turn(&self, shards: &[usize]);

    /// Whether a command that needs [all shards](Self::exclusive) may stop the others now: those
    /// that run on other threads are over in a moment, or it has waited for that for long.
    /// Otherwise it ends with [`ScriptError::ShardInUse`]. No shard is held.
    fn may_stop_others(&self) -> bool;

    /// Whether the new holder may keep the exclusive slot among scripts. False: another client has
    /// waited for it for longer.
    fn keeps_exclusive_slot(&self) -> bool;

    /// The holder of the exclusive slot among scripts has left it.
    fn left_exclusive_slot(&self);

    /// The command does not run because its script must be exclusive among scripts, and waits for
    /// the slot.
    fn wait_for_exclusive_slot(&self);

    /// Serves the thread's other clients once, for a script that has run for too long and holds its
    /// shards all the while. Waits for nothing.
    fn serve_others(&self);

    /// Asks the processor for a shard that will be needed in a moment.
    fn prefetch(&self, shard: usize);

    /// What this thread has taken from the allocator less what it has given back, in bytes.
    fn thread_bytes(&self) -> i64;

    /// The processor's tick counter.
    fn tsc(&self) -> u64;

    /// The time on the clock that all threads share.
    fn time(&self) -> Time;

    /// The same, if the thread has had to wait since the last call: outside the gate or for a
    /// shard. None: no more time has passed than execution takes.
    fn time_after_wait(&self) -> Option<Time>;
}

/// Whether the keyspace is saved when the server ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveAtEnd {
    /// If it is saved by itself: `save`.
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
    /// One is being written.
    Saving,
    /// Another snapshot is being written.
    SnapshotTaken,
    /// The log says why.
    Failed,
}

/// How DEBUG PANIC and DEBUG SEGFAULT end the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// By a mistake that the program notices.
    Panic,
    /// By one that the processor does.
    Fault,
}

/// What DEBUG RELOAD does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reload {
    /// Saves before it loads.
    pub saves: bool,
    /// Keys that are there are replaced by those in the file.
    pub merges: bool,
}

/// What [`Host::load`] has loaded.
#[derive(Debug, Default)]
pub struct Reloaded {
    /// Keys that each database has got, to be counted.
    pub db_keys: Vec<i64>,
    /// The sources of libraries of functions, to be loaded.
    pub functions: Vec<Vec<u8>>,
}

/// How to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Whether to save.
    pub save: SaveAtEnd,
    /// Do not wait for anything.
    pub now: bool,
    /// Whatever fails, end.
    pub force: bool,
}

/// What came of the wish for a rewrite of the append-only file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteBegin {
    /// It begins.
    Started,
    /// It begins as soon as it can.
    Scheduled,
    /// One is in progress.
    InProgress,
    /// It cannot begin; the log says why.
    Failed,
}

/// What the process tells about itself.
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
    /// Of these, those below this number take clients; the main thread only when alone.
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
    /// Bytes handed out by the allocator, as it counts them: with what threads keep for their next
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

/// The one service of the process that is used inside the gate.
pub trait ClientWaker {
    /// Tells the owner of a client that its wait is over, and waits for nothing. No shard is held.
    fn wake_client(&self, client: &ClientRecord);
}

/// The process, as a command gets it: only outside the gate. A thread inside delays every thread
/// that closes the gate, so nothing there may wait for a disk, a socket or a lock.
///
/// The compiler refuses what would be done inside:
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
    /// A process whose services are to be used outside the gate.
    pub fn new(host: &'a dyn Host) -> Self {
        Self(host)
    }

    /// Leaves the gate, does `work` and enters again.
    pub fn outside<R>(&self, gate: &dyn GateAccess, work: impl FnOnce(&dyn Host) -> R) -> R {
        let _outside = Outside::leave(gate);
        work(self.0)
    }

    /// Drops what commands have removed, inside the gate as well.
    pub(crate) fn free(&self, removed: &mut LazyFree) {
        self.0.free(removed);
    }

    /// What may be used inside as well.
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

/// Takes back one step of a changed configuration.
pub type Undo<'a> = Box<dyn FnOnce() + 'a>;

/// Services of the process, which commands use through a [`GatedHost`]. Those that need them are
/// rare. All but `close_client`, `free`, `pause_changed` and `wake_client` run on the main thread.
pub trait Host: ClientWaker {
    /// Makes the process follow a changed configuration in one respect. Returns what takes that
    /// back; dropping it makes the change final.
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

    /// Writes the keyspace to its RDB file, and waits until it is there.
    ///
    /// # Errors
    /// Why it is not.
    fn save(&self) -> Result<(), SaveError>;

    /// Begins to write the keyspace to its RDB file, in the background.
    ///
    /// # Errors
    /// Why it has not begun.
    fn begin_save(&self) -> Result<(), SaveError>;

    /// Writes the keyspace, which has just been emptied, to its RDB file, and waits until it is
    /// there. `changes` are those of the keyspace when it had no keys. What fails is told in the
    /// log only.
    fn save_emptied(&self, changes: u64);

    /// Begins to write the keyspace to another file, in the background.
    ///
    /// # Errors
    /// Why it has not begun. None: another snapshot is being written.
    fn begin_backup(&self, path: &str) -> Result<(), Option<String>>;

    /// Saves the keyspace, if that is wanted, while no command changes it any more: they are paused
    /// until [`end_reload`](Self::end_reload), which is to be called with what this returns.
    ///
    /// # Errors
    /// It could not be saved; nothing is paused then.
    fn begin_reload(&self, how: Reload) -> Result<u64, SaveError>;

    /// Loads the RDB file into the keyspace, as [begun](Self::begin_reload).
    ///
    /// # Errors
    /// Why it was not loaded, or not all of it.
    fn load(&self, how: Reload) -> Result<Reloaded, String>;

    /// Writes all that was logged to the append-only file, to be loaded again.
    ///
    /// # Errors
    /// What the disk said, or that the working directory has no append-only file.
    fn flush_append_only(&self) -> Result<(), String>;

    /// Loads the append-only file into the empty keyspace, as [begun](Self::begin_reload).
    ///
    /// # Errors
    /// Why it was not loaded, or not all of it.
    fn load_append_only(&self) -> Result<(), String>;

    /// Lets commands go on.
    fn end_reload(&self, pause: u64);

    /// Begins to end the process.
    ///
    /// # Errors
    /// Why it must not end.
    fn shut_down(&self, how: Shutdown) -> Result<(), String>;

    /// Calls off an end that has [begun](Self::shut_down) and waits for the commands that run.
    /// Returns false when there is none.
    fn call_off_shutdown(&self) -> bool;

    /// Begins a rewrite of the append-only file; `later` for one that a transaction asks for.
    fn rewrite_append_only(&self, later: bool) -> RewriteBegin;

    /// What the process tells about itself.
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
    /// Why it cannot be written. The log tells it, too.
    fn write_acl_file(&self, path: &str, text: &[u8]) -> Result<(), String>;

    /// Fills a buffer with bytes that nobody can foresee, for passwords.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Blocks the calling thread; for DEBUG SLEEP.
    fn sleep(&self, time: Duration);

    /// Drops what commands have removed: what takes long, elsewhere. May be called inside the gate,
    /// and waits for nothing.
    fn free(&self, removed: &mut LazyFree);

    /// Ends the process as a mistake of this program does, to test what is reported of it.
    fn crash(&self, how: Crash);

    /// Returns unused memory to the system.
    fn purge_memory(&self);

    /// Writes a line into the log, of a script or by DEBUG LOG.
    fn log(&self, level: LogLevel, line: &[u8]);

    /// The allocator's own report.
    fn allocator_report(&self) -> String;
}
