//! What the limit of memory makes of a request before it runs.

use command::Flags;
use engine::Error;

use super::{EvictsOn, Room};
use crate::execution::executor::Executor;
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::table::{Call, Entry};
use crate::host::ShardLocks;

impl<L: ShardLocks> Executor<'_, L> {
    /// Evicts if memory is over its limit. Returns what comes of the request if it may not run now:
    /// it is refused, or waits until there is room.
    #[inline(never)]
    pub(crate) fn keep_to_memory(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Option<Outcome> {
        self.worker.out_of_memory = false;
        if !self.worker.is_over(self.locks) {
            return None;
        }
        let room = self.worker.make_room(self.locks, self.host.waker());
        // The time of the evictions is not the command's.
        let now = self.locks.tsc();
        self.worker.go_on(now, || self.locks.time());
        self.worker.out_of_memory = room == Room::None;
        let waits = match room {
            Room::Enough => return None,
            Room::Soon | Room::NotYet if self.worker.limit.is_tenacious => true,
            Room::Soon => return None,
            Room::NotYet | Room::None => self.may_take_memory(entry, request),
        };
        match room {
            _ if !waits => None,
            Room::None => Some(self.reject(Some(entry), &Error::OutOfMemory)),
            // There is nothing to do in the next turn either.
            _ if self.worker.evicts_on == EvictsOn::WhenFreed => Some(Outcome::ShardInUse),
            _ => Some(Outcome::Postponed),
        }
    }

    /// Whether a request may need more memory than there is.
    fn may_take_memory(&self, entry: &Entry, request: &Request<'_>) -> bool {
        match entry.call {
            Call::Exec => {
                self.session.transaction.as_ref().is_some_and(|queued| queued.may_take_memory())
            }
            Call::Script(call) => call.may_take_memory(&self.worker.node, &request.args),
            _ => entry.spec.flags.has(Flags::DENYOOM),
        }
    }
}
