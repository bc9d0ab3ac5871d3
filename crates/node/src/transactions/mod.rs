//! Transactions: MULTI queues commands, EXEC runs them as one, WATCH makes EXEC depend on keys.
//!
//! EXEC takes the shards of all queued commands at once, so that other clients see all of a
//! transaction or nothing. A command that visits each shard makes EXEC take all of them, and one
//! that changes the server makes it stop all other commands. A command that needs the main thread
//! makes the whole EXEC run there.

mod exec;

use engine::LockedShards;

use crate::clients::session::Session;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;

/// Forgets the transaction and the watched keys of a client that is closed. For the client's owner,
/// inside the gate.
pub fn forget<L: ShardLocks>(worker: &mut Worker, session: &mut Session, locks: &L) {
    worker.discard(session, &mut LockedShards::Each(locks));
}
