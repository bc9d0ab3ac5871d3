//! A thread's part in the log: the log itself, and the clients whose output waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use super::connection::Connection;
use crate::log::ring::LogRing;

#[derive(Debug, Default)]
pub(crate) struct ReplyWaits {
    pub(super) ring: Option<Arc<LogRing>>,
    /// The former log, which has ended, while clients still wait for it.
    pub(super) ended: Option<Arc<LogRing>>,
    /// Clients whose output is waiting, with their slots.
    pub(super) waiting: Vec<(usize, u64)>,
    /// Output has begun to wait in this turn.
    pub(super) is_urgent: bool,
    /// The number of units that the thread had appended when the requests of the next replies
    /// began.
    pub(super) units: Option<u64>,
    /// Clients that wait until their writes are durable, by their numbers, with their slots.
    pub(crate) waits: HashMap<u64, usize>,
    /// There is another log: the thread attaches to it when it has its access again.
    pub(super) follows_later: bool,
}

impl ReplyWaits {
    /// Whether there is a log.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.ring.is_some()
    }

    /// The log that output waits for.
    pub(super) fn awaited(&self) -> Option<&Arc<LogRing>> {
        self.ring.as_ref().or(self.ended.as_ref())
    }

    /// Requests begin, and their replies come next. The thread has appended so many units.
    pub(crate) fn begin_batch(&mut self, units: u64) {
        self.units = Some(units);
    }

    /// Output was added to a client that moves to another thread: it waits for the log as well.
    pub(crate) fn extend_reply_wait(&self, client: &mut Connection) {
        let ring = self.ring.as_ref().filter(|ring| !ring.serves_reads());
        client.awaits_log = ring.and_then(|ring| ring.replies_wait_for()).or(client.awaits_log);
    }

    /// Whether a command that may write finds room.
    pub(crate) fn has_room(&self) -> bool {
        self.ring.as_ref().is_none_or(|ring| ring.has_room())
    }

    /// Whether the log cannot be written, so that only reads are served.
    pub(crate) fn has_failed(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.serves_reads())
    }
}
