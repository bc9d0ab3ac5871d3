//! The check of a request against the limit of memory, before it runs.

use engine::Error;

use super::Room;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;
use crate::execution::executor::Executor;
use crate::execution::outcome::Outcome;
use crate::host::ShardLocks;
use crate::state::memory_limit::EvictsOn;

/// Evicts if memory is over its limit. Returns the outcome of a request that may not run now: it is
/// refused, or waits until there is room.
#[inline(never)]
pub(crate) fn keep_to_memory<L: ShardLocks>(
    executor: &mut Executor<'_, L>,
    entry: &'static Entry,
    request: &Request<'_>,
) -> Option<Outcome> {
    let worker = &mut *executor.worker;
    worker.out_of_memory = false;
    if !worker.is_over(executor.locks) {
        return None;
    }
    let room = worker.make_room(executor.locks, executor.host.waker());
    // The time of the evictions is not the command's.
    let now = executor.locks.tsc();
    worker.go_on(now, || executor.locks.time());
    worker.out_of_memory = room == Room::None;
    let waits = match room {
        Room::Enough => return None,
        Room::Soon | Room::NotYet if worker.limit.is_tenacious => true,
        Room::Soon => return None,
        Room::NotYet | Room::None => may_take_memory(executor, entry, request),
    };
    match room {
        _ if !waits => None,
        Room::None => Some(executor.reject(Some(entry), &Error::OutOfMemory)),
        // There is nothing to do in the next turn either.
        _ if executor.worker.evicts_on == EvictsOn::WhenFreed => Some(Outcome::ShardInUse),
        _ => Some(Outcome::Postponed),
    }
}

/// Whether a request may need more memory than there is.
fn may_take_memory<L>(executor: &Executor<'_, L>, entry: &Entry, request: &Request<'_>) -> bool {
    let scripting = &executor.worker.node.scripting;
    match entry.call {
        Call::Exec => executor.session.transaction.as_ref().is_some_and(|queued| {
            queued.may_take_memory(|entry, args| scripting.may_take_memory(entry, args))
        }),
        _ => scripting.may_take_memory(entry, &request.args),
    }
}
