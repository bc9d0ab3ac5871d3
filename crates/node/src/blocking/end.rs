//! How the owner of a blocked client ends its wait.
//!
//! On the way of a blocked request this is the end: `serve` or a deadline has settled the wait, and
//! the client proceeds.

use std::sync::Arc;

use engine::WaitError;
use resp::{Out, Reply};

use super::waiter::{WaitEnd, Waiter};
use crate::execution::accounting;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;

/// Ends a wait that has been settled: takes the client out of all queues and writes the reply.
/// Returns false while it is not settled. For the client's owner, inside the gate.
pub fn finish<L: ShardLocks>(
    worker: &mut Worker,
    waiter: &Arc<Waiter>,
    locks: &L,
    out: &mut Out,
) -> bool {
    let Some(end) = waiter.completion.take() else { return false };
    leave(worker, waiter, locks);
    let mark = out.mark();
    let mut reply = Reply::new(out, waiter.resp3);
    match end {
        // It was accounted for where it was served.
        WaitEnd::Served(reply) => out.append(reply),
        WaitEnd::TimedOut => {
            reply.null_array();
            account(worker, waiter, 0, None);
        }
        WaitEnd::Unblocked => {
            let text = WaitError::Unblocked.to_string();
            reply.error(text.as_bytes());
            account(worker, waiter, 0, Some(&text));
        }
        WaitEnd::Gone => {}
    }
    if waiter.silent {
        out.truncate(mark);
    }
    true
}

/// Gives up a wait because its client is closed. For the client's owner, inside the gate.
pub fn give_up<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) {
    waiter.give_up();
    leave(worker, waiter, locks);
}

/// Counts a run as one of the waiter's command, and notices a slow one. `tsc` is what ending the
/// wait took, in TSC cycles.
pub(super) fn account(worker: &mut Worker, waiter: &Waiter, tsc: u64, error: Option<&str>) {
    if let Some(error) = error {
        worker.stats.note_error(error);
    }
    let entry = &worker.table.entries()[usize::from(waiter.command)];
    let (record, tsc) = (&waiter.record, waiter.tsc + tsc);
    accounting::account(worker, record, entry, &waiter.args(), error.is_none(), tsc);
}

/// Takes a client whose wait is over out of all queues.
fn leave<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) {
    for key in waiter.keys() {
        let key = worker.turn.key(key);
        let shard = worker.node.map.shard_of(key.hash);
        locks.one(shard, |shard| shard.leave(waiter.db, key, waiter.record.id));
    }
    worker.node.waits.remove(waiter.record.id);
}
