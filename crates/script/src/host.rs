//! The interface of a running script to the server.
//!
//! The command that runs a script implements [`VmHost`]; `redis.*` calls it. Callbacks of a VM live
//! as long as the VM and cannot hold a borrow, so the host is in a thread-local variable that is
//! set for one run only.

use std::time::Duration;

use resp::{Args, Out};

/// The command that runs a script, as the script sees it.
pub trait VmHost {
    /// Executes one command: `redis.call` and `redis.pcall`.
    ///
    /// Appends exactly one reply to `out`, in RESP3 if `resp3` and in RESP2 otherwise. A call that
    /// is not allowed (an unknown command, a wrong number of arguments, no permission, a write in a
    /// read-only script) gets an error reply with Redis's code and text.
    ///
    /// The first argument is the command's name. Arguments lie in a buffer of the VM; those of
    /// [`BIG_BYTES_MIN`](resp::request::BIG_BYTES_MIN) bytes or more have their own buffer, which a
    /// command may keep.
    fn call(&mut self, args: Args<'_>, resp3: bool, out: &mut Out);

    /// `redis.log`: one line of at most 64 KiB, which may hold any bytes. The host filters levels.
    fn log(&mut self, level: LogLevel, line: &[u8]);

    /// `redis.acl_check_cmd`: whether the user may run the command, or `None` if there is no such
    /// command.
    fn acl_check(&mut self, args: Args<'_>) -> Option<bool>;

    /// `redis.set_repl`: the destinations of the effects of the following calls.
    fn set_replication(&mut self, targets: ScriptReplication);

    /// `os.clock`: processor time used by the server, or another clock that only increases.
    fn clock(&mut self) -> Duration;

    /// A seed for `math.random`, different for each run. Requested at most once in a run.
    fn seed(&mut self) -> u64;

    /// Called while the script runs: first about a millisecond after it began, then about every
    /// millisecond, in any loop and within long calls of the libraries.
    ///
    /// A host serves other clients here. It must not call another method of the VM. The script ends
    /// unless the host returns [`Tick::Continue`].
    fn tick(&mut self) -> Tick;
}

/// The host's decision on a script that has run for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Continue. Holds the time by the host's clock, from which the VM adapts its tick rate.
    Continue(Duration),
    /// End with the error of SCRIPT KILL, which the script cannot catch.
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

/// The destinations of the effects of a script's writes.
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
