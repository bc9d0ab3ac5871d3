//! Calling a command's handler on the shards that are locked for it: by a client's request, in a
//! transaction, in a script.

use engine::{BlockingHandler, Cx, Error, Handler, LockedShards, ScriptError, exec};
use resp::out::Mark;
use resp::{Args, Out, Reply};
use store::Time;

use crate::clients::session::Session;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::table::{Call, Entry};
use crate::execution::worker::Worker;
use crate::host::{GateAccess, GatedHost};
use crate::scripting;

/// A handler's result as an outcome: `done`, or an error that replaces what has been replied. One
/// that did not get a shard has done nothing that may not be done again.
#[inline]
pub(super) fn finish(
    result: Result<(), Error>,
    done: Outcome,
    mark: Mark,
    reply: &mut Reply<'_>,
) -> Outcome {
    match result {
        Ok(()) => done,
        Err(error) => {
            reply.truncate(mark);
            if matches!(error, Error::Script(ScriptError::ShardInUse)) {
                return Outcome::ShardInUse;
            }
            reply.error(&error.text());
            Outcome::Failed
        }
    }
}

/// Calls a command on data.
#[inline]
pub(super) fn call_data(
    handler: Handler,
    (worker, db): (&mut Worker, usize),
    (mut shards, hashes): (LockedShards<'_>, &[u64]),
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let mark = reply.mark();
    let (mut parts, ..) = worker.parts(db);
    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
    let result = handler(&mut cx, args, reply);
    exec::seal(&mut cx, args);
    worker.publish_events();
    finish(result, Outcome::Done, mark, reply)
}

/// Calls commands one after another on shards that stay locked: those of a transaction or script.
pub(crate) struct HeldCalls<'a, 's> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) session: &'a mut Session,
    pub(crate) host: GatedHost<'a>,
    /// Reads the TSC.
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
        let outcome = self.call_entry(out, entry, args, hashes);
        self.worker.turn.effects.set_remembered(false);
        self.end_command();
        // The turn ends when all of them have run, however many these are.
        if self.worker.turn.lazy_free.is_much() {
            self.host.free(&mut self.worker.turn.lazy_free);
        }
        outcome
    }

    /// Does at once what a command has left for the end of a grace period: for a script, which
    /// holds all shards then.
    pub(crate) fn end_at_once(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::GracePeriod(after) => {
                self.host.outside(&StaysInside, |host| after.end(self.worker, host))
            }
            outcome => outcome,
        }
    }

    /// Nobody begins to wait for a key in a shard that is held.
    fn end_command(&mut self) {
        let (worker, session, shards) = (&mut *self.worker, &*self.session, &self.shards);
        let (map, hasher) = (worker.node.map, worker.turn.hasher);
        worker.turn.effects.end_command(session.db, |key| {
            let hash = hasher.hash(key);
            let number = map.shard_of(hash);
            !shards.holds(number) || shards.shard_ref(number).is_awaited(hash)
        });
    }

    fn call_entry(
        &mut self,
        out: &mut Out,
        entry: &'static Entry,
        mut args: Args<'_>,
        hashes: &[u64],
    ) -> Outcome {
        let shards = self.shards.reborrow();
        let mut reply = Reply::new(out, self.session.resp3);
        let mark = reply.mark();
        match entry.call {
            Call::Data(handler) => {
                self.worker.turn.touch = !self.session.no_touch;
                let worker = (&mut *self.worker, self.session.db);
                call_data(handler, worker, (shards, hashes), &mut args, &mut reply)
            }
            Call::FlushAll(handler) => {
                let held = (shards, hashes);
                let worker = (&mut *self.worker, self.session.db);
                let outcome = call_data(handler, worker, held, &mut args, &mut reply);
                self.worker.save_emptied_later(&outcome);
                outcome
            }
            Call::Blocking(handler) => {
                self.worker.turn.touch = !self.session.no_touch;
                let worker = (&mut *self.worker, self.session.db);
                let held = (shards, hashes);
                call_without_blocking(handler, worker, held, &mut args, &mut reply)
            }
            Call::Node(handler) => {
                let (worker, session) = (&mut *self.worker, &mut *self.session);
                let (gate, host, outcome) = (&StaysInside, self.host, Outcome::Done);
                let tsc = self.tsc;
                let is_nested = true;
                let mut cx =
                    NodeCx { worker, session, entry, shards, gate, tsc, host, outcome, is_nested };
                let result = handler(&mut cx, &mut args, &mut reply);
                let outcome = cx.outcome;
                self.worker.publish_events();
                finish(result, outcome, mark, &mut reply)
            }
            Call::Script(call) => scripting::run_queued(self.reborrow(), call, &args, &mut reply),
            // Neither is queued, and a script is refused both.
            Call::Exec | Call::Container => Outcome::Failed,
        }
    }
}

impl<'s> HeldCalls<'_, 's> {
    /// The same for a shorter time.
    fn reborrow(&mut self) -> HeldCalls<'_, '_> {
        HeldCalls {
            worker: self.worker,
            session: self.session,
            host: self.host,
            tsc: self.tsc,
            serve_others: self.serve_others,
            shards: self.shards.reborrow(),
        }
    }
}

/// Calls a command that would block its client, which behaves as if its time were over.
pub(super) fn call_without_blocking(
    handler: BlockingHandler,
    (worker, db): (&mut Worker, usize),
    (mut shards, hashes): (LockedShards<'_>, &[u64]),
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Outcome {
    let mark = reply.mark();
    let (mut parts, ..) = worker.parts(db);
    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
    let result = handler(&mut cx, args, reply);
    exec::seal(&mut cx, args);
    worker.publish_events();
    if let Ok(Some(block)) = &result {
        // As in Redis, one element that is not there is a null, several are a null array.
        match block.target {
            Some(_) => reply.null(),
            None => reply.null_array(),
        }
    }
    finish(result.map(drop), Outcome::Done, mark, reply)
}

/// The gate for commands that run while shards stay locked. What the process does for one that
/// leaves the gate otherwise holds up those who need these shards; and everyone, as in Redis, if it
/// is behind the closed gate.
pub(crate) struct StaysInside;

impl GateAccess for StaysInside {
    fn leave(&self) {}

    fn enter(&self) {}
}
