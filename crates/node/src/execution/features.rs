//! The interface of execution to the features above it.
//!
//! Execution knows no feature. Each is called by one function of this trait, which `commands`
//! implements for every kind of shard locks (`commands/wiring.rs`), so that the compiler calls it
//! directly. Features that need no shard locks are called by the pointers of `WorkerHooks` and
//! `HeldFeatures`.

use engine::{LockedShards, ShardMap};

use super::executor::Executor;
use super::held_calls::HeldFeatures;
use super::node_cx::NodeHandler;
use super::outcome::Outcome;
use super::worker::Worker;
use crate::command_table::entry::Entry;
use crate::command_table::request::Request;
use crate::command_table::script_call::ScriptCall;
use crate::host::{ClientWaker, ShardLocks};
use crate::state::user_changes::UserChanges;
use crate::state::waiter::ChangedKey;

/// The features above execution, for one kind of shard locks.
#[allow(private_interfaces)]
pub trait Features: ShardLocks + Sized {
    /// The handler of a command on sessions or the server.
    fn node_handler(entry: &Entry) -> Option<NodeHandler>;

    /// The same, and what runs scripts, for commands on shards that stay locked.
    fn for_held_calls() -> HeldFeatures;

    /// EXEC: performs the queued commands.
    fn perform_transaction(executor: &mut Executor<'_, Self>) -> Outcome;

    /// EVAL, FCALL and their like: performs a script.
    fn perform_script(
        executor: &mut Executor<'_, Self>,
        call: ScriptCall,
        request: &Request<'_>,
    ) -> Outcome;

    /// Performs a command of a client that tracks keys.
    fn perform_tracked(
        executor: &mut Executor<'_, Self>,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Outcome;

    /// Evicts if memory is over its limit. Returns the outcome of a request that may not run now.
    fn keep_to_memory(
        executor: &mut Executor<'_, Self>,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Option<Outcome>;

    /// Serves the clients that wait for keys which have changed. With `elsewhere` only some of the
    /// shards are held that serving may need, and it receives the keys that need others.
    fn serve_waiters(
        worker: &mut Worker,
        db: usize,
        locks: &Self,
        locked: LockedShards<'_>,
        elsewhere: Option<&mut Vec<ChangedKey>>,
    );

    /// The shards that serving may need and that are not among those held, once a command has added
    /// to keys with the hashes `fed`. An answer that is not empty may be incomplete.
    fn shards_to_serve(locked: &mut LockedShards<'_>, fed: &[u64], map: ShardMap) -> Vec<usize>;

    /// Serves the clients that wait for one key, which has changed; later if its shard is in use.
    fn serve_changed_key(worker: &mut Worker, key: ChangedKey, locks: &Self);

    /// Ends the waits that changes of users in a transaction deny. Returns what is left to do when
    /// the transaction has run.
    fn end_user_changes(
        changes: Box<UserChanges>,
        worker: &Worker,
        waker: &dyn ClientWaker,
    ) -> Outcome;
}
