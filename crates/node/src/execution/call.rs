//! Calling a command's handler on the shards that are locked for it: by a client's request, in a
//! transaction, in a script.

use std::sync::Arc;

use command::ShardScope;
use engine::{BlockingHandler, Cx, Error, Handler, LockedShards, ScriptError, exec};
use resp::out::Mark;
use resp::{Args, Out, Reply};
use store::Time;

use crate::blocking::Waiter;
use crate::clients::session::{ReplyMode, Session};
use crate::execution::executor::Executor;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::scope::{Admission, ExecutionScope, Extent, follow_time, run_on_key};
use crate::execution::table::{Call, Entry};
use crate::execution::worker::Worker;
use crate::host::{GateAccess, GatedHost, ShardLocks};
use crate::propagation::subscribe;
use crate::scripting;
use crate::transactions::changes_scripts;

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
#[inline(always)]
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

impl<L: ShardLocks> Executor<'_, L> {
    /// Calls the command's handler.
    #[inline]
    pub(crate) fn call(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        if let (Call::Data(handler), Some(hash)) = (entry.call, request.hash)
            && let Some(outcome) = self.call_on_key(handler, request, hash)
        {
            return outcome;
        }
        self.call_in_scope(entry, request)
    }

    /// Calls a command on data on its only key, as most requests are. None: a client is blocked on
    /// the key, and nothing was done.
    #[inline(always)]
    fn call_on_key(
        &mut self,
        handler: Handler,
        request: &Request<'_>,
        hash: u64,
    ) -> Option<Outcome> {
        let (worker, session, locks) = (&mut *self.worker, &*self.session, self.locks);
        let mut reply = Reply::new(self.out, session.resp3);
        worker.turn.touch = !session.no_touch;
        run_on_key(worker, locks, hash, |worker, shards, hashes| {
            let (worker, mut args) = ((worker, session.db), request.args);
            call_data(handler, worker, (shards, hashes), &mut args, &mut reply)
        })
    }

    /// Calls the handler of any command, in the scope that its row asks for.
    #[inline(never)]
    fn call_in_scope(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        let mut args = request.args;
        let session = &*self.session;
        let mut reply = Reply::new(self.out, session.resp3);
        let mark = reply.mark();
        let (db, locks) = (session.db, self.locks);
        let may_write = entry.spec.flags.may_write();
        let admission = Some(Admission::of(session, may_write, self.worker.turn.steady_ms));
        let extent = Extent::Keys;
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, extent };
        match entry.call {
            Call::Data(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                scope.run(entry, request, &mut |worker, shards, hashes| {
                    let held = (shards, hashes);
                    call_data(handler, (worker, db), held, &mut args, &mut reply)
                })
            }
            Call::FlushAll(handler) => self.flush_all(handler, entry, request),
            Call::Blocking(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                let start = scope.worker.last_tsc;
                scope.run(entry, request, &mut |worker, mut shards, hashes| {
                    let (mut parts, node, _) = worker.parts(db);
                    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
                    let result = handler(&mut cx, &mut args, &mut reply);
                    exec::seal(&mut cx, &args);
                    let outcome = match result {
                        Ok(Some(block)) => {
                            let tsc = locks.tsc().wrapping_sub(start);
                            let command = (entry.index, &node.waits);
                            Outcome::Block(Waiter::begin(
                                session, command, block, &args, &mut cx, tsc,
                            ))
                        }
                        result => finish(result.map(drop), Outcome::Done, mark, &mut reply),
                    };
                    worker.publish_events();
                    outcome
                })
            }
            Call::Node(handler) if changes_scripts(entry) => {
                let node = Arc::clone(&self.worker.node);
                match self.be_alone(&node.scripting) {
                    Ok(_alone) => self.call_node(handler, entry, args),
                    Err(outcome) => outcome,
                }
            }
            // The scope first: it is at hand.
            Call::Node(_)
                if entry.spec.scope == ShardScope::EachShard
                    && self.session.record.visits_all() =>
            {
                self.call_on_all(entry, args)
            }
            Call::Node(handler) => self.call_node(handler, entry, args),
            Call::Exec => self.exec(),
            Call::Script(call) => {
                let outcome = self.run_script(call, request);
                self.end_emptied();
                if self.has_run(&outcome) && self.session.reply_mode == ReplyMode::On {
                    subscribe::write_own(self.worker, self.session, self.out);
                }
                outcome
            }
            Call::Container => Outcome::Failed,
        }
    }

    /// Calls the handler of a command on sessions or the server.
    #[inline]
    fn call_node(
        &mut self,
        handler: NodeHandler,
        entry: &'static Entry,
        mut args: Args<'_>,
    ) -> Outcome {
        let mut reply = Reply::new(self.out, self.session.resp3);
        let mark = reply.mark();
        let (locks, host) = (self.locks, self.host);
        let (worker, session) = (&mut *self.worker, &mut *self.session);
        follow_time(locks, &mut worker.turn);
        let (shards, gate, outcome) = (LockedShards::Each(locks), locks, Outcome::Done);
        let (tsc, is_nested) = (&|| locks.tsc(), false);
        let mut cx = NodeCx { worker, session, entry, shards, gate, tsc, host, outcome, is_nested };
        let result = handler(&mut cx, &mut args, &mut reply);
        cx.worker.publish_events();
        finish(result, cx.outcome, mark, &mut reply)
    }

    /// The same for a command that visits shards and is to have all of them at once.
    #[cold]
    fn call_on_all(&mut self, entry: &'static Entry, args: Args<'_>) -> Outcome {
        let record = Arc::clone(&self.session.record);
        let user = Arc::clone(self.session.user());
        let admission = Some(Admission {
            record: &record,
            may_write: entry.spec.flags.may_write(),
            steady_ms: self.worker.turn.steady_ms,
            users: self.session.users_generation(),
            user: Some(&user),
        });
        let (db, locks, extent) = (self.session.db, self.locks, Extent::All);
        let (session, host, out) = (&mut *self.session, self.host, &mut *self.out);
        let mut work = |worker: &mut Worker, shards: LockedShards<'_>, _: &[u64]| {
            let tsc = &|| locks.tsc();
            let serve_others = &|| {
                locks.serve_others();
                locks.time()
            };
            let mut calls = HeldCalls { worker, session, host, tsc, serve_others, shards };
            calls.call(out, entry, args, &[])
        };
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, extent };
        scope.run_growing(&[], &mut work)
    }
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
                self.worker.note_emptied(&outcome);
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
