//! EXEC: all queued commands at once, on the shards of all of them.

use std::sync::Arc;

use acl::log::DenialOrigin;
use command::{Flags, ShardScope};
use engine::{LockedShards, TransactionError};
use resp::{Out, Reply};

use crate::clients::session::{ReplyMode, Session};
use crate::clients::transaction_queue::{QueuedCommand, Transaction};
use crate::clients::watched_keys::WatchedKeys;
use crate::execution::access;
use crate::execution::accounting::{Run, account, note_error};
use crate::execution::after_grace::AfterGrace;
use crate::execution::executor::Executor;
use crate::execution::features::Features;
use crate::execution::held_calls::HeldCalls;
use crate::execution::outcome::Outcome;
use crate::execution::recheck::Admission;
use crate::execution::scope::ExecutionScope;
use crate::execution::worker::Worker;
use crate::host::ClientWaker;
use crate::state::user_changes::UserChanges;

impl<L: Features> Executor<'_, L> {
    /// Runs the queued commands, unless one was rejected or a watched key has changed.
    pub(crate) fn exec(&mut self) -> Outcome {
        let Some(transaction) = self.session.transaction.take() else {
            return self.fail_exec(TransactionError::ExecWithoutMulti);
        };
        if transaction.is_aborted() {
            self.session.transaction = Some(transaction);
            self.worker.discard(self.session, &mut LockedShards::Each(self.locks));
            return self.fail_exec(TransactionError::Aborted);
        }
        let watched = self.session.watched.take();
        let mut begun = false;
        let outcome = self.exec_queued(&transaction, watched.as_deref(), &mut begun);
        self.write_script_log();
        if !begun {
            // Its client was killed, or a pause has begun, at whose end it is executed again.
            self.session.transaction = Some(transaction);
            self.session.watched = watched;
            return outcome;
        }
        self.worker.keep_for_next(transaction);
        self.session.record.set_transaction(None);
        if self.session.reply_mode == ReplyMode::On {
            self.write_own_messages();
        }
        if let Some(watched) = watched {
            self.session.record.set_watch(None);
            self.worker.keep_watched(watched);
        }
        self.end_emptied();
        outcome
    }

    fn fail_exec(&mut self, error: TransactionError) -> Outcome {
        let text = error.to_string();
        Reply::new(self.out, self.session.resp3).error(text.as_bytes());
        Outcome::Failed
    }

    fn exec_queued(
        &mut self,
        transaction: &Transaction,
        watched: Option<&WatchedKeys>,
        begun: &mut bool,
    ) -> Outcome {
        let Some(watched) = watched else {
            return self.exec_on(transaction, None, transaction.hashes(), begun);
        };
        let mut hashes = std::mem::take(&mut self.worker.hashes);
        hashes.clear();
        hashes.extend_from_slice(transaction.hashes());
        hashes.extend(watched.hashes());
        let outcome = self.exec_on(transaction, Some(watched), &hashes, begun);
        self.worker.hashes = hashes;
        outcome
    }

    /// The same on the shards of keys with these hashes.
    #[inline(always)]
    fn exec_on(
        &mut self,
        transaction: &Transaction,
        watched: Option<&WatchedKeys>,
        hashes: &[u64],
        begun: &mut bool,
    ) -> Outcome {
        let node = transaction.is_exclusive().then(|| Arc::clone(&self.worker.node));
        let _slot = match node.as_ref().map(|node| self.take_exclusive_slot(&node.scripting)) {
            Some(Err(outcome)) => return outcome,
            slot => slot,
        };
        let record = Arc::clone(&self.session.record);
        let scripting = &self.worker.node.scripting;
        let may_write = transaction.may_write(|entry, args| scripting.may_write(entry, args));
        let steady_ms = self.worker.turn.steady_ms;
        let users = self.session.users_generation();
        let user = Arc::clone(self.session.user());
        let user = Some(&user);
        let admission = Some(Admission { record: &record, may_write, steady_ms, users, user });
        let (db, locks) = (self.session.db, self.locks);
        let (session, host, out) = (&mut *self.session, self.host, &mut *self.out);
        let mut work = |worker: &mut Worker, mut shards: LockedShards<'_>, _: &[u64]| {
            *begun = true;
            // By its shards' time, which the holder before it may have used.
            worker.go_on(locks.tsc(), || locks.time());
            worker.take_over_config();
            if watched.is_some_and(|watched| {
                watched.leave_locked(&worker.turn, worker.node.map, &mut shards)
            }) {
                Reply::new(out, session.resp3).null_array();
                return Outcome::Done;
            }
            let tsc = &|| locks.tsc();
            let serve_others = &|| {
                locks.serve_others();
                locks.time()
            };
            let features = L::for_held_calls();
            let calls = HeldCalls { worker, session, host, features, tsc, serve_others, shards };
            perform_queued(calls, out, transaction, L::end_user_changes)
        };
        let holds = transaction.holds();
        let mut scope = ExecutionScope { worker: self.worker, db, locks, admission, holds };
        match holds {
            ShardScope::Exclusive => scope.lock_exclusive(hashes, &mut work),
            ShardScope::Keys => {
                let is_fetched = transaction.is_fetched(scope.worker.turns);
                scope.lock_keys(hashes, if is_fetched { &[] } else { hashes }, &mut work)
            }
            _ => scope.lock_growing(hashes, &mut work),
        }
    }
}

/// Performs the queued commands one after another and replies with all their replies. As in Redis,
/// the commands after one that removes the client's own user, or denies a subscribed channel to it,
/// run by the rules of the default user, and their replies are not sent: the client is closed. The
/// work that commands leave for the end of a grace period is left by EXEC.
fn perform_queued(
    mut calls: HeldCalls<'_, '_>,
    out: &mut Out,
    transaction: &Transaction,
    end_user_changes: fn(Box<UserChanges>, &Worker, &dyn ClientWaker) -> Outcome,
) -> Outcome {
    let (mut closes, mut denied) = (false, false);
    let (mut replied, mut left) = (None, Vec::new());
    let (db, unix_ms) = (calls.session.db, calls.worker.turn.unix_ms);
    let begin = out.mark();
    Reply::new(out, calls.session.resp3).array(transaction.len());
    calls.worker.turn.effects.begin_transaction(db, unix_ms);
    let mut start = (calls.tsc)();
    for QueuedCommand { entry, args, hashes } in transaction.commands() {
        let mark = out.mark();
        let HeldCalls { worker, session, .. } = &mut calls;
        if let Err(error) = access::admit_inside(worker, session, entry, &args, DenialOrigin::Multi)
        {
            Reply::new(out, session.resp3).error(&error.text());
            note_error(worker, out, mark);
            denied = true;
            continue;
        }
        let came_of = calls.call(out, entry, args, hashes);
        if calls.worker.turn.effects.is_abandoned() {
            // A script that had written was killed, because the server shuts down.
            calls.worker.turn.effects.end_transaction();
            calls.worker.user_changes = None;
            out.truncate(begin);
            return Outcome::Close;
        }
        let failed = matches!(came_of, Outcome::Failed);
        let worker = &mut *calls.worker;
        if failed && !std::mem::take(&mut worker.error_counted) {
            note_error(worker, out, mark);
        }
        let end = (calls.tsc)();
        let HeldCalls { worker, session, .. } = &mut calls;
        // It may have changed users, which counts for the next commands.
        if entry.spec.flags.has(Flags::MAIN) && has_lost_user(worker, session) {
            replied.get_or_insert(out.mark());
        }
        let (record, reply) = (&*session.record, Some((&*out, mark)));
        let tsc = end.wrapping_sub(start);
        let run = || Run { record, entry, args: &args, reply, end_tsc: Some(end) };
        account(worker, entry, !failed, tsc, run);
        start = end;
        match came_of {
            Outcome::Close => closes = true,
            Outcome::GracePeriod(after) => left.push(*after),
            _ => {}
        }
    }
    calls.worker.turn.effects.end_transaction();
    if let Some(replied) = replied {
        out.truncate(replied);
        closes = true;
    }
    if let Some(changes) = calls.worker.user_changes.take()
        && let Outcome::GracePeriod(after) =
            end_user_changes(changes, calls.worker, calls.host.waker())
    {
        left.push(*after);
    }
    // As in Redis, EXEC has failed when a command did not run.
    let outcome = AfterGrace::outcome_of_all(left, closes, denied);
    calls.worker.error_counted = outcome.has_failed();
    outcome
}

/// Whether a command of the transaction has taken the client's user from it, or a channel that it
/// is subscribed to. It is the default user then.
fn has_lost_user(worker: &mut Worker, session: &mut Session) -> bool {
    let changes = worker.user_changes.as_mut();
    let has_lost = changes.is_some_and(|changes| std::mem::take(&mut changes.has_lost_user));
    if has_lost || session.follow_users(&worker.node.users) {
        return has_lost;
    }
    session.lose_user(&worker.node.users);
    true
}
