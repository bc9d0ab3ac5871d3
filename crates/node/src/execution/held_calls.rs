//! Commands that are called one after another on shards that stay locked: those of a transaction
//! or of a script.

use engine::LockedShards;
use resp::{Args, Out, Reply};
use store::Time;

use super::handler::{OnShards, finish, handle_data, handle_without_blocking};
use super::node_cx::{NodeCx, NodeHandler};
use super::outcome::Outcome;
use super::worker::Worker;
use crate::clients::session::Session;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::script_call::ScriptCall;
use crate::host::{GateAccess, GatedHost};

/// The features that commands on held shards need.
#[derive(Clone, Copy)]
pub struct HeldFeatures {
    /// The handler of a command on sessions or the server.
    pub(crate) node_handler: fn(&Entry) -> Option<NodeHandler>,
    /// Performs a queued script.
    pub(crate) perform_script:
        fn(HeldCalls<'_, '_>, ScriptCall, &Args<'_>, &mut Reply<'_>) -> Outcome,
}

/// Calls commands one after another on shards that stay locked: those of a transaction or script.
pub(crate) struct HeldCalls<'a, 's> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) session: &'a mut Session,
    pub(crate) host: GatedHost<'a>,
    pub(crate) features: HeldFeatures,
    pub(crate) tsc: &'a dyn Fn() -> u64,
    /// [`ShardLocks::serve_others`](crate::ShardLocks::serve_others). Returns the time after that.
    pub(crate) serve_others: &'a dyn Fn() -> Time,
    /// The shards of all keys of all commands; all shards, if one of them visits each.
    pub(crate) shards: LockedShards<'s>,
}

impl HeldCalls<'_, '_> {
    /// Calls one command, whose keys have these hashes, and appends its reply. A command that would
    /// block its client behaves as if its time were over.
    pub(crate) fn call(
        &mut self,
        out: &mut Out,
        entry: &'static Entry,
        args: Args<'_>,
        hashes: &[u64],
    ) -> Outcome {
        if self.session.tracking.is_some() {
            self.worker.will_remember(self.session, entry, &args);
        }
        let outcome = self.handle(out, entry, args, hashes);
        self.worker.turn.effects.set_remembered(false);
        self.end_command();
        // The turn ends when all of them have run, however many these are.
        if self.worker.turn.lazy_free.is_much() {
            self.host.free(&mut self.worker.turn.lazy_free);
        }
        outcome
    }

    /// Does at once the work that a command has left for the end of a grace period: for a script,
    /// which holds all shards then.
    pub(crate) fn end_at_once(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::GracePeriod(after) => {
                self.host.outside(&StaysInside, |host| after.end(self.worker, host))
            }
            outcome => outcome,
        }
    }

    /// No client begins to wait for a key in a shard that is held.
    fn end_command(&mut self) {
        let (worker, session, shards) = (&mut *self.worker, &*self.session, &self.shards);
        let (map, hasher) = (worker.node.map, worker.turn.hasher);
        worker.turn.effects.end_command(session.db, |key| {
            let hash = hasher.hash(key);
            let number = map.shard_of(hash);
            !shards.holds(number) || shards.shard_ref(number).is_awaited(hash)
        });
    }

    fn handle(
        &mut self,
        out: &mut Out,
        entry: &'static Entry,
        mut args: Args<'_>,
        hashes: &[u64],
    ) -> Outcome {
        let mut reply = Reply::new(out, self.session.resp3);
        match entry.call {
            Call::Data(handler) => {
                self.worker.turn.touch = !self.session.no_touch;
                let on = OnShards { db: self.session.db, shards: self.shards.reborrow(), hashes };
                handle_data(handler, self.worker, on, &mut args, &mut reply)
            }
            Call::FlushAll(handler) => {
                let on = OnShards { db: self.session.db, shards: self.shards.reborrow(), hashes };
                let outcome = handle_data(handler, self.worker, on, &mut args, &mut reply);
                self.worker.note_emptied(&outcome);
                outcome
            }
            Call::Blocking(handler) => {
                self.worker.turn.touch = !self.session.no_touch;
                let on = OnShards { db: self.session.db, shards: self.shards.reborrow(), hashes };
                handle_without_blocking(handler, self.worker, on, &mut args, &mut reply)
            }
            Call::Node => self.handle_node_command(entry, &mut args, &mut reply),
            Call::Script(call) => {
                (self.features.perform_script)(self.reborrow(), call, &args, &mut reply)
            }
            // EXEC and containers are not queued, and a script is refused both.
            Call::Exec | Call::Container => Outcome::Failed,
        }
    }

    fn handle_node_command(
        &mut self,
        entry: &'static Entry,
        args: &mut Args<'_>,
        reply: &mut Reply<'_>,
    ) -> Outcome {
        let Some(handler) = (self.features.node_handler)(entry) else { return Outcome::Failed };
        let mark = reply.mark();
        let mut cx = NodeCx {
            worker: &mut *self.worker,
            session: &mut *self.session,
            entry,
            shards: self.shards.reborrow(),
            gate: &StaysInside,
            tsc: self.tsc,
            host: self.host,
            outcome: Outcome::Done,
            is_nested: true,
        };
        let result = handler(&mut cx, args, reply);
        let outcome = cx.outcome;
        self.worker.publish_changes();
        finish(result, outcome, mark, reply)
    }
}

impl<'s> HeldCalls<'_, 's> {
    /// The same for a shorter time.
    fn reborrow(&mut self) -> HeldCalls<'_, '_> {
        HeldCalls {
            worker: self.worker,
            session: self.session,
            host: self.host,
            features: self.features,
            tsc: self.tsc,
            serve_others: self.serve_others,
            shards: self.shards.reborrow(),
        }
    }
}

/// The gate for commands that run while shards stay locked. A service of the process that such a
/// command uses, although it would leave the gate otherwise, delays the threads that need these
/// shards; and all threads, as in Redis, if the command runs while the gate is closed.
pub(crate) struct StaysInside;

impl GateAccess for StaysInside {
    fn leave(&self) {}

    fn enter(&self) {}
}
