//! Calling the handler of a client's request on the shards that its row asks for.

use std::sync::Arc;

use command::ShardScope;
use engine::{Cx, Handler, LockedShards, exec};
use resp::{Args, Reply};

use super::executor::Executor;
use super::features::Features;
use super::handler::{OnShards, finish, handle_data};
use super::held_calls::HeldCalls;
use super::node_cx::NodeCx;
use super::outcome::Outcome;
use super::recheck::Admission;
use super::scope::{ExecutionScope, follow_time, lock_key};
use super::worker::Worker;
use crate::clients::session::ReplyMode;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;
use crate::state::waiter::Waiter;

impl<L: Features> Executor<'_, L> {
    #[inline]
    pub(crate) fn handle(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        if let (Call::Data(handler), Some(hash)) = (entry.call, request.hash)
            && let Some(outcome) = self.handle_on_key(handler, request, hash)
        {
            return outcome;
        }
        self.handle_in_scope(entry, request)
    }

    /// Calls the handler of a command on data on its only key, as most requests are. Returns `None`
    /// if a client is blocked on the key; then nothing was done.
    #[inline(always)]
    fn handle_on_key(
        &mut self,
        handler: Handler,
        request: &Request<'_>,
        hash: u64,
    ) -> Option<Outcome> {
        let (worker, session, locks) = (&mut *self.worker, &*self.session, self.locks);
        let mut reply = Reply::new(self.out, session.resp3);
        worker.turn.touch = !session.no_touch;
        lock_key(worker, locks, hash, |worker, shards, hashes| {
            let mut args = request.args;
            let on = OnShards { db: session.db, shards, hashes };
            handle_data(handler, worker, on, &mut args, &mut reply)
        })
    }

    /// Calls the handler of any command, in the scope that its row asks for.
    #[inline(never)]
    fn handle_in_scope(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        let mut args = request.args;
        let session = &*self.session;
        let mut reply = Reply::new(self.out, session.resp3);
        let mark = reply.mark();
        let (db, locks) = (session.db, self.locks);
        let may_write = entry.spec.flags.may_write();
        let admission = Some(Admission::of(session, may_write, self.worker.turn.steady_ms));
        let holds = ShardScope::Keys;
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, holds };
        match entry.call {
            Call::Data(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                scope.lock_needed(entry, request, &mut |worker, shards, hashes| {
                    let on = OnShards { db, shards, hashes };
                    handle_data(handler, worker, on, &mut args, &mut reply)
                })
            }
            Call::FlushAll(handler) => self.flush_all(handler, entry, request),
            Call::Blocking(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                let start = scope.worker.last_tsc;
                scope.lock_needed(entry, request, &mut |worker, mut shards, hashes| {
                    let (mut parts, node, _) = worker.parts(db);
                    let mut cx = Cx::new(&mut parts, shards.reborrow(), hashes);
                    let result = handler(&mut cx, &mut args, &mut reply);
                    exec::seal(&mut cx, &args);
                    let outcome = match result {
                        Ok(Some(block)) => {
                            let tsc = locks.tsc().wrapping_sub(start);
                            let (command, waits) = (entry.index, &node.waits);
                            Outcome::Block(Waiter::begin(
                                session, command, waits, block, &args, &mut cx, tsc,
                            ))
                        }
                        result => finish(result.map(drop), Outcome::Done, mark, &mut reply),
                    };
                    worker.publish_changes();
                    outcome
                })
            }
            Call::Node if entry.changes_scripts() => {
                let node = Arc::clone(&self.worker.node);
                match self.take_exclusive_slot(&node.scripting) {
                    Ok(_slot) => self.handle_node_command(entry, args),
                    Err(outcome) => outcome,
                }
            }
            // The scope first: it is at hand.
            Call::Node
                if entry.spec.scope == ShardScope::EachShard
                    && self.session.record.visits_all() =>
            {
                self.handle_on_all(entry, args)
            }
            Call::Node => self.handle_node_command(entry, args),
            Call::Exec => L::perform_transaction(self),
            Call::Script(call) => {
                let outcome = L::perform_script(self, call, request);
                self.end_emptied();
                if self.is_over(&outcome) && self.session.reply_mode == ReplyMode::On {
                    self.write_own_messages();
                }
                outcome
            }
            Call::Container => Outcome::Failed,
        }
    }

    /// Calls the handler of a command on sessions or the server.
    #[inline]
    fn handle_node_command(&mut self, entry: &'static Entry, mut args: Args<'_>) -> Outcome {
        let Some(handler) = L::node_handler(entry) else { return Outcome::Failed };
        let mut reply = Reply::new(self.out, self.session.resp3);
        let mark = reply.mark();
        let locks = self.locks;
        follow_time(locks, &mut self.worker.turn);
        let mut cx = NodeCx {
            worker: &mut *self.worker,
            session: &mut *self.session,
            entry,
            shards: LockedShards::Each(locks),
            gate: locks,
            tsc: &|| locks.tsc(),
            host: self.host,
            outcome: Outcome::Done,
            is_nested: false,
        };
        let result = handler(&mut cx, &mut args, &mut reply);
        cx.worker.publish_changes();
        finish(result, cx.outcome, mark, &mut reply)
    }

    /// The same on all shards at once, for a command that visits shards and has begun again too
    /// often.
    #[cold]
    fn handle_on_all(&mut self, entry: &'static Entry, args: Args<'_>) -> Outcome {
        let record = Arc::clone(&self.session.record);
        let user = Arc::clone(self.session.user());
        let admission = Some(Admission {
            record: &record,
            may_write: entry.spec.flags.may_write(),
            steady_ms: self.worker.turn.steady_ms,
            users: self.session.users_generation(),
            user: Some(&user),
        });
        let (db, locks, holds) = (self.session.db, self.locks, ShardScope::EachShard);
        let (session, host, out) = (&mut *self.session, self.host, &mut *self.out);
        let mut work = |worker: &mut Worker, shards: LockedShards<'_>, _: &[u64]| {
            let features = L::for_held_calls();
            let tsc = &|| locks.tsc();
            let serve_others = &|| {
                locks.serve_others();
                locks.time()
            };
            let mut calls =
                HeldCalls { worker, session, host, features, tsc, serve_others, shards };
            calls.call(out, entry, args, &[])
        };
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, holds };
        scope.lock_growing(&[], &mut work)
    }
}
