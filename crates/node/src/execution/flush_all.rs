//! FLUSHALL: a command on data after which, as in Redis, the RDB file has no keys either where
//! `save` asks for saves, and what is being saved in the background is given up.

use engine::Handler;
use resp::Reply;

use super::call::call_data;
use super::executor::Executor;
use super::outcome::Outcome;
use super::request::Request;
use super::scope::{Admission, ExecutionScope, Extent};
use super::table::Entry;
use super::worker::Worker;
use crate::host::ShardLocks;

impl<L: ShardLocks> Executor<'_, L> {
    /// Calls FLUSHALL, and saves before it is answered.
    #[cold]
    pub(super) fn flush_all(
        &mut self,
        handler: Handler,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Outcome {
        let (session, locks, mut args) = (&*self.session, self.locks, request.args);
        let (db, mut reply) = (session.db, Reply::new(self.out, session.resp3));
        let admission = Some(Admission::of(session, true, self.worker.turn.steady_ms));
        let extent = Extent::Keys;
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, extent };
        let outcome = scope.run(entry, request, &mut |worker, shards, hashes| {
            call_data(handler, (worker, db), (shards, hashes), &mut args, &mut reply)
        });
        if matches!(outcome, Outcome::Done) {
            self.worker.node.snapshots.give_up_background();
            if self.worker.is_to_save() {
                self.save_emptied();
            }
        }
        outcome
    }

    /// The same at the end of a transaction with FLUSHALL, which runs on the main thread unless a
    /// script has called it.
    pub(crate) fn save_if_emptied(&mut self) {
        if std::mem::take(&mut self.worker.has_emptied) && self.worker.index == 0 {
            self.save_emptied();
        }
    }

    #[cold]
    fn save_emptied(&mut self) {
        // The file is to count what was removed.
        self.worker.publish_counters();
        self.host.outside(self.locks, |host| host.save_emptied());
    }
}

impl Worker {
    /// Whether an RDB file is written by itself: `save`.
    fn is_to_save(&self) -> bool {
        !self.config.saving.save.is_empty()
    }

    /// The same in a transaction or script, whose further changes are to be in the file.
    pub(super) fn save_emptied_later(&mut self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Done) {
            return;
        }
        self.node.snapshots.give_up_background();
        if self.is_to_save() {
            self.node.snapshots.figures.lock().is_scheduled = true;
            self.has_emptied = true;
        }
    }
}
