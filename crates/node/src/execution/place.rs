//! Where and how a command must run.

/// It must.
pub const MAIN: u16 = 1;
/// It is more than a command on one key.
pub const NOT_SIMPLE: u16 = 1 << 1;
/// It is a command.
pub const ANY: u16 = 1 << 2;
/// It runs scripts, for which its thread has to be prepared.
pub const SCRIPT: u16 = 1 << 3;
/// It changes subscriptions, which the thread has that owns the client.
pub const HOME: u16 = 1 << 4;
/// It changes keys. Clients are notified of that, and it waits while too much is to be delivered.
pub const NOTIFIES: u16 = 1 << 5;
/// It changes keys, or asks whether all is well: it is refused while nothing can be kept on the
/// disk.
pub const KEPT: u16 = 1 << 6;
/// It needs the keyspace, or may: it is refused while keys are being loaded.
pub const NOT_LOADED: u16 = 1 << 7;
/// It may leave an effect, and waits while the log has no room for that.
pub const LOGS: u16 = 1 << 8;

/// Where EXEC runs, given its own bits and those of what is queued. What changes subscriptions runs
/// on the client's own thread, but what only the main thread may run comes first.
pub(crate) fn of_exec(exec: u16, queued: u16) -> u16 {
    match queued & (HOME | MAIN) {
        HOME => queued,
        _ => (exec | queued) & !HOME,
    }
}
