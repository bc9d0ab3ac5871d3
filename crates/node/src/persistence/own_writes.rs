//! The position of a client's own last write in the log, which WAITAOF waits for.

use crate::clients::session::Session;
use crate::execution::worker::{UNKNOWN_UNITS, Worker};

impl Worker {
    /// Requests of one client follow, up to [`end_requests`](Self::end_requests): units appended to
    /// the log are its writes.
    #[inline]
    pub fn begin_requests(&mut self) {
        self.units_before = self.turn.effects.written_units();
    }

    /// The requests of a client end, or are interrupted by those of another one.
    #[inline]
    pub fn end_requests(&mut self, session: &mut Session) {
        session.note_written(self);
        self.units_before = UNKNOWN_UNITS;
    }
}

impl Session {
    /// Notes that another client has written for this one, which it has served: everything that is
    /// in the log by now precedes or is that write.
    pub fn note_served(&mut self, worker: &Worker) {
        self.written = worker.turn.effects.log_end().or(self.written);
    }

    /// Notes the position after the writes of its requests, if they have written or may have.
    pub(crate) fn note_written(&mut self, worker: &Worker) {
        if worker.units_before != worker.turn.effects.written_units() {
            self.written = worker.turn.effects.log_position().or(self.written);
        }
    }
}
