//! What the node asks of the layer above: shards, and services that only the process can give.

use std::time::Duration;

use engine::{ExclusiveShards, HeldShards, ShardAccess};
use store::Shard;

use crate::clients::record::ClientRecord;
use crate::config::{Change, Config};

/// Gives commands the shards they need. Whether locks or owner threads provide them is its secret.
pub trait ShardLocks: ShardAccess {
    /// Runs `work` with one shard.
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> R;

    /// Runs `work` with several shards held at once, given by ascending number without repetition.
    fn many<R>(&self, shards: &[usize], work: impl FnOnce(&mut dyn HeldShards) -> R) -> R;

    /// Runs `work` while no other command runs. It may visit shards, and after that hold them.
    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn ExclusiveShards) -> R) -> R;

    /// Asks the processor for a shard that will be needed in a moment.
    fn prefetch(&self, shard: usize);

    /// The processor's tick counter.
    fn tsc(&self) -> u64;

    /// The time, read from the system's clock, in microseconds since 1970.
    fn unix_us(&self) -> i64;

    /// The same, if the thread has had to wait since the last call: outside the gate or for a
    /// shard. None: no more time has passed than execution takes.
    fn time_after_wait(&self) -> Option<i64>;
}

/// How to shut down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Do not wait for anything.
    pub now: bool,
    /// Whatever fails, end.
    pub force: bool,
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
    /// Threads that run commands, the main thread included.
    pub threads_active: usize,
    /// User and system seconds of the process.
    pub cpu: (f64, f64),
    /// User and system seconds of its ended children.
    pub cpu_children: (f64, f64),
    /// User and system seconds of the main thread.
    pub cpu_main: (f64, f64),
    /// Bytes handed out by the allocator.
    pub allocated_bytes: u64,
    /// The most that this has been.
    pub allocated_peak_bytes: u64,
    /// Bytes handed out when the server was ready.
    pub startup_bytes: u64,
    /// Bytes in pages with live blocks.
    pub active_bytes: u64,
    /// Bytes in memory, as the allocator sees it.
    pub resident_bytes: u64,
    /// Bytes in memory, as the kernel sees it.
    pub rss_bytes: u64,
    /// Bytes of memory in the machine.
    pub system_memory_bytes: u64,
    /// The allocator's name and version.
    pub allocator: String,
    /// Ticks of the processor in a microsecond.
    pub tsc_per_micro: f64,
}

/// Services of the process. Commands that need them are rare; all but `close_client`
/// and `wake_client` run on the main thread.
pub trait Host {
    /// Makes the process follow a changed configuration.
    ///
    /// # Errors
    /// The parameter that could not be followed, and why. Nothing has changed then.
    fn apply(
        &self,
        changes: &[Change],
        old: &Config,
        new: &Config,
    ) -> Result<(), (&'static str, String)>;

    /// Asks the owner of a client to close it.
    fn close_client(&self, client: &ClientRecord);

    /// Tells the owner of a client that its wait is over. No shard is held.
    fn wake_client(&self, client: &ClientRecord);

    /// Wakes clients that wait for the end of CLIENT PAUSE.
    fn pause_changed(&self);

    /// Begins to end the process.
    ///
    /// # Errors
    /// Why it must not end.
    fn shut_down(&self, how: Shutdown) -> Result<(), String>;

    /// What the process tells about itself.
    fn process_info(&self) -> ProcessInfo;

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

    /// Blocks the calling thread; for DEBUG SLEEP.
    fn sleep(&self, time: Duration);

    /// Returns unused memory to the system.
    fn purge_memory(&self);

    /// The allocator's own report.
    fn allocator_report(&self) -> String;

    /// Drops something large where it delays nobody.
    fn drop_later(&self, garbage: Box<dyn Send>);
}
