//! What a script reaches of the server while it runs.
//!
//! The one who runs a script implements [`VmHost`] for as long as the script runs; `redis.*` calls
//! it. Callbacks of a VM live as long as the VM and cannot hold a borrow, so the host is lent to
//! them in a thread-local variable that is set for one run and unset before the run returns.

use std::time::Duration;

use resp::{Args, Out};

/// The command that runs a script, as seen from inside the script.
pub trait VmHost {
    /// Executes one command: `redis.call` and `redis.pcall`.
    ///
    /// Appends exactly one reply to `out`, in RESP3 if `resp3` and in RESP2 otherwise. What the
    /// script may not call (an unknown command, a wrong number of arguments, no permission, a
    /// write in a read-only script) is an error reply too: `-` and a code, with the text that
    /// clients of Redis know.
    ///
    /// The first argument is the command's name. Arguments lie in a buffer of the VM; those of
    /// [`BIG_BYTES_MIN`](resp::request::BIG_BYTES_MIN) bytes or more have their own, which a
    /// command may keep.
    fn call(&mut self, args: Args<'_>, resp3: bool, out: &mut Out);

    /// `redis.log`: one line, which may hold any bytes, of at most 64 KiB. The host knows which
    /// levels are logged.
    fn log(&mut self, level: LogLevel, line: &[u8]);

    /// `redis.acl_check_cmd`: whether the user may run the command, or `None` if there is no such
    /// command.
    fn acl_check(&mut self, args: Args<'_>) -> Option<bool>;

    /// `redis.set_repl`: where the effects of the calls that follow go.
    fn set_replication(&mut self, targets: ScriptReplication);

    /// `os.clock`: processor time that the server has used, or any clock that only grows.
    fn clock(&mut self) -> Duration;

    /// A seed for `math.random`, different for each run. Asked at most once in a run.
    fn seed(&mut self) -> u64;

    /// Called from time to time while the script runs: first about a millisecond after it began,
    /// then about every millisecond, in any loop and within long calls of the libraries.
    ///
    /// A host that runs others meanwhile does so here. Within it no other method of the VM can be
    /// called. After anything but [`Tick::Continue`] the script ends.
    fn tick(&mut self) -> Tick;
}

/// What becomes of a script that has run for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// It goes on. The time by the host's clock, from which the VM finds how often to ask.
    Continue(Duration),
    /// It ends with the error of SCRIPT KILL, which it cannot catch.
    Kill,
}

/// Levels of `redis.log`, by their numbers in scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `redis.LOG_DEBUG`, 0.
    Debug,
    /// `redis.LOG_VERBOSE`, 1.
    Verbose,
    /// `redis.LOG_NOTICE`, 2.
    Notice,
    /// `redis.LOG_WARNING`, 3.
    Warning,
}

/// Who receives the effects of a script's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptReplication {
    /// The append-only file: `redis.REPL_AOF`, 1.
    pub aof: bool,
    /// The replicas: `redis.REPL_REPLICA`, 2.
    pub replicas: bool,
}

scoped_tls_hkt::scoped_thread_local!(
    /// The host of the script that runs on this thread.
    pub(crate) static mut HOST: for<'a> &'a mut dyn VmHost
);
