//! How the owner of a blocked client ends its wait.
//!
//! `serve` or a deadline has settled the wait, and the client proceeds.

use std::sync::Arc;
use std::time::Duration;

use command::Flags;
use engine::{ServerError, WaitError};
use resp::{Args, Out, Reply};
use store::Shard;

use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::state::durability::{AwaitedCopies, Durability, LogWait};
use crate::state::waiter::{WaitEnd, Waiter};

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedWait {
    /// The client that served it has written to the log for it.
    pub has_written: bool,
}

/// Ends a wait that has been settled: takes the client out of all queues and writes the reply.
/// Returns `None` while it is not settled, or the shard of one of its keys is in use. For the
/// client's owner, inside the gate.
pub fn finish<L: ShardLocks>(
    worker: &mut Worker,
    waiter: &Arc<Waiter>,
    locks: &L,
    out: &mut Out,
) -> Option<EndedWait> {
    // A client that goes on may wait again, and must not stand in the queues of this wait.
    if waiter.waits() || !leave(worker, waiter, locks) {
        return None;
    }
    let end = waiter.completion.take()?;
    let flags = worker.table.entries()[usize::from(waiter.command())].spec.flags;
    let has_written = matches!(end, WaitEnd::Served(_)) && flags.has(Flags::WRITE);
    let mark = out.mark();
    let mut reply = Reply::new(out, waiter.resp3);
    match end {
        // It was accounted for where it was served.
        WaitEnd::Served(reply) => out.append(reply),
        WaitEnd::TimedOut | WaitEnd::LogReached => {
            match waiter.log_wait() {
                Some(wait) => reply_durable(&worker.node.durability, wait, &mut reply),
                None => reply.null_array(),
            }
            worker.account_wait(waiter, 0, None);
        }
        WaitEnd::Unblocked => fail(worker, waiter, WaitError::Unblocked, &mut reply),
        WaitEnd::BackupEnded(None) => {
            reply.simple("Backup saved");
            worker.account_wait(waiter, 0, None);
        }
        WaitEnd::BackupEnded(Some(why)) => {
            let text = ServerError::BackupFailed(why).to_string();
            reply.error(text.as_bytes());
            worker.account_wait(waiter, 0, Some(&text));
        }
        WaitEnd::LogEnded => fail(worker, waiter, WaitError::NoAppendOnlyFile, &mut reply),
        WaitEnd::Denied(error) => {
            let text = error.text();
            reply.error(&text);
            worker.stats.commands[usize::from(waiter.command())].rejected.add(1);
            worker.stats.note_error(&text);
        }
        WaitEnd::Gone => {}
    }
    if waiter.silent {
        out.truncate(mark);
    }
    Some(EndedWait { has_written })
}

fn fail(worker: &mut Worker, waiter: &Waiter, error: WaitError, reply: &mut Reply<'_>) {
    let text = error.to_string();
    reply.error(text.as_bytes());
    worker.account_wait(waiter, 0, Some(&text));
}

/// Replies to WAITAOF or WAIT, or blocks its client until the wait is over. As in Redis, the
/// command does not wait in a transaction or script.
pub(crate) fn begin_log_wait(
    cx: &mut NodeCx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    wait: LogWait,
    until_ms: Option<i64>,
) {
    let node = &cx.worker.node;
    if cx.is_nested || wait.is_over(&node.durability) {
        return reply_durable(&node.durability, &wait, reply);
    }
    let tsc = (cx.tsc)().wrapping_sub(cx.worker.last_tsc);
    let (session, command, waits) = (&*cx.session, cx.entry.index, &node.waits);
    let waiter = Waiter::begin_for_log(session, command, waits, wait, until_ms, args, tsc);
    cx.outcome = Outcome::Block(waiter);
}

/// The reply of WAITAOF: the append-only files, of this server and of its replicas, in which the
/// client's writes are durable. The reply of WAIT: the replicas that have them. There are none.
fn reply_durable(durability: &Durability, wait: &LogWait, reply: &mut Reply<'_>) {
    if matches!(wait.copies, AwaitedCopies::Replicas(_)) {
        reply.int(0);
        return;
    }
    reply.array(2);
    reply.int(i64::from(durability.has(wait.written)));
    reply.int(0);
}

/// Gives up a wait because its client is closed. For the client's owner, inside the gate.
pub fn give_up<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) {
    waiter.give_up();
    if !leave(worker, waiter, locks) {
        worker.deferred.waiters.push(Arc::clone(waiter));
    }
}

/// Takes a client whose wait is over out of all queues. Returns false if the shard of one of the
/// keys is in use, by a command that may take long. Until it is out, serving those keys passes over
/// it.
fn leave<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) -> bool {
    for key in waiter.keys() {
        let key = worker.turn.key(key);
        let shard = worker.node.map.shard_of(key.hash);
        let mut leave = |shard: &mut Shard| shard.leave(waiter.db, key, waiter.record.id);
        if !locks.try_visit(shard, Duration::ZERO, &mut leave) {
            return false;
        }
    }
    worker.node.waits.remove(waiter.record.id);
    waiter.record.set_wait_bytes(0);
    true
}
