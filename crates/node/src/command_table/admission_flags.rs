//! Admission flags: reasons for which a command may not run immediately on this thread.
//!
//! Each entry has the flags that follow from its row. A thread has a mask of those that concern it
//! at the moment; a command with none of them is admitted by one test.

/// Only the main thread may execute it.
pub const MAIN: u16 = 1;
/// It is more than a command on one key.
pub const NOT_SIMPLE: u16 = 1 << 1;
/// It is a command.
pub const ANY: u16 = 1 << 2;
/// It runs scripts, for which its thread has to be prepared.
pub const SCRIPT: u16 = 1 << 3;
/// It changes subscriptions: the thread that owns the client executes it.
pub const HOME: u16 = 1 << 4;
/// It changes keys. Clients are notified of that, and it waits while too much is undelivered.
pub const NOTIFIES: u16 = 1 << 5;
/// It changes keys, or asks for the server's health: it is refused while writes cannot be kept on
/// the disk.
pub const KEPT: u16 = 1 << 6;
/// It needs the keyspace, or may: it is refused while keys are being loaded.
pub const NOT_LOADED: u16 = 1 << 7;
/// It may leave an effect, and waits while the log has no room for that.
pub const LOGS: u16 = 1 << 8;

/// The flags of EXEC, given its own and those of the queued commands. A transaction that changes
/// subscriptions runs on the client's own thread, unless a command of it needs the main thread.
pub(crate) fn of_exec(exec: u16, queued: u16) -> u16 {
    match queued & (HOME | MAIN) {
        HOME => queued,
        _ => (exec | queued) & !HOME,
    }
}
