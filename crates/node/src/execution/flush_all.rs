//! FLUSHALL: a command on data after which, as in Redis, the RDB file has no keys either where
//! `save` asks for saves, and what is being saved in the background is given up.

use std::sync::Arc;

use command::ShardScope;
use engine::Handler;
use resp::Reply;

use super::executor::Executor;
use super::features::Features;
use super::handler::{OnShards, handle_data};
use super::outcome::Outcome;
use super::recheck::Admission;
use super::scope::ExecutionScope;
use super::worker::Worker;
use crate::command_table::entry::Entry;
use crate::command_table::request::Request;
use crate::state::snapshots::Purpose;

impl<L: Features> Executor<'_, L> {
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
        let holds = ShardScope::Keys;
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, holds };
        let outcome = scope.lock_needed(entry, request, &mut |worker, shards, hashes| {
            let on = OnShards { db, shards, hashes };
            let outcome = handle_data(handler, worker, on, &mut args, &mut reply);
            worker.note_emptied(&outcome);
            outcome
        });
        self.end_emptied();
        outcome
    }

    /// Saves if FLUSHALL has run: before it is answered, or what has called it, a transaction or a
    /// script.
    pub(crate) fn end_emptied(&mut self) {
        if let Some(changes) = self.worker.emptied_at.take() {
            self.save_emptied(changes);
        }
    }

    #[cold]
    fn save_emptied(&mut self, changes: u64) {
        // The file is to count what was removed.
        self.worker.publish_counters();
        let is_to_save = !self.worker.config.saving.save.is_empty();
        let node = Arc::clone(&self.worker.node);
        self.host.outside(self.locks, |host| {
            node.snapshots.wait_for_name();
            if is_to_save {
                host.save_emptied(changes);
            }
            node.snapshots.end_emptied();
            if node.is_shutting_down() {
                // The end waits for this.
                host.pause_changed();
            }
        });
    }
}

impl Worker {
    /// FLUSHALL has run, and its shards are held still.
    pub(super) fn note_emptied(&mut self, outcome: &Outcome) {
        if !matches!(outcome, Outcome::Done) || self.loads_files {
            return;
        }
        // A save in the background would have keys that are gone.
        self.node.snapshots.give_up(Purpose::Background);
        self.node.snapshots.give_up_pending();
        self.publish_counters();
        if self.emptied_at.replace(self.node.changes()).is_none() {
            self.node.snapshots.begin_emptied();
        }
    }
}
