//! Performing a command that was admitted: its handler, the accounting, and what its client gets
//! besides the reply.

use std::mem::take;

use resp::Args;
use resp::out::Mark;

use super::accounting::{Run, account, note_error};
use super::executor::Executor;
use super::features::Features;
use super::outcome::Outcome;
use crate::clients::record::flag;
use crate::clients::session::ReplyMode;
use crate::command_table::entry::Entry;
use crate::command_table::request::Request;
use crate::state::waiter::WakeEvent;
use command::Flags;

/// How an admitted command is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Without anything special.
    Usual,
    /// The client may be notified of the keys that it changes: the events follow its reply at once.
    Notified,
    /// Expired keys stay in place, because of a pause.
    KeepsExpired,
    /// While the thread has no access to the keyspace.
    WithoutAccess,
}

/// When a command has ended.
#[derive(Clone, Copy)]
struct RunEnd {
    at_tsc: u64,
    /// TSC cycles of the command.
    took_tsc: u64,
}

impl<L: Features> Executor<'_, L> {
    #[inline]
    pub(super) fn perform(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        manner: Manner,
    ) -> Outcome {
        let is_usual = manner == Manner::Usual
            && self.session.tracking.is_none()
            && !self.session.watches_requests();
        match is_usual {
            true => self.perform_counted(entry, request),
            false => self.perform_observed(entry, request, manner),
        }
    }

    /// The same in another manner, or for a client that tracks keys or watches requests.
    #[inline(never)]
    fn perform_observed(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        manner: Manner,
    ) -> Outcome {
        let is_tracked = self.session.tracking.is_some();
        let watches = !is_tracked
            && self.session.watches_requests()
            && self.worker.mask_with_access.is_none();
        if manner == Manner::KeepsExpired {
            self.worker.turn.keep_expired = true;
        }
        let outcome = match is_tracked {
            true => L::perform_tracked(self, entry, request),
            false => self.perform_counted(entry, request),
        };
        if manner == Manner::KeepsExpired {
            self.worker.turn.keep_expired = false;
        }
        if (watches || manner == Manner::Notified) && self.is_over(&outcome) {
            self.write_own_messages();
        }
        outcome
    }

    /// Calls a command's handler and counts the run.
    pub(crate) fn perform_counted(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Outcome {
        let reply_mode = self.session.reply_mode;
        if reply_mode == ReplyMode::SkipNext {
            self.session.reply_mode = ReplyMode::Skip;
        }
        let mark = self.out.mark();
        let start = self.worker.last_tsc;
        let mut outcome = self.handle(entry, request);
        if outcome.is_later() {
            self.begin_later(mark, reply_mode);
            return outcome;
        }
        let now = self.locks.tsc();
        let tsc = now.wrapping_sub(start);
        self.worker.go_on(now, || self.locks.time());
        let is_usual = matches!(outcome, Outcome::Done | Outcome::Close);
        if is_usual && self.worker.wake_events.is_empty() {
            let (record, args, out) = (&*self.session.record, &request.args, &*self.out);
            let reply = Some((out, mark));
            let run = || Run { record, entry, args, reply, end_tsc: Some(now) };
            account(self.worker, entry, true, tsc, run);
        } else {
            let ended = RunEnd { at_tsc: now, took_tsc: tsc };
            self.end_unusual(entry, &request.args, &mut outcome, mark, ended);
        }
        // The mode as the command left it decides, so that CLIENT REPLY ON itself is answered.
        if self.session.reply_mode != ReplyMode::On {
            if !entry.spec.flags.has(Flags::PUSHES) {
                self.out.truncate(mark);
            }
            if self.session.reply_mode == ReplyMode::Skip {
                self.session.reply_mode = ReplyMode::On;
            }
            // Messages are no replies.
            self.write_own_messages();
        }
        if matches!(outcome, Outcome::Close) {
            self.session.record.set_flag(flag::CLOSING, true);
        }
        outcome
    }

    /// A command that has done nothing counts as not begun. It begins again later.
    #[cold]
    fn begin_later(&mut self, mark: Mark, reply_mode: ReplyMode) {
        self.out.truncate(mark);
        self.session.reply_mode = reply_mode;
        // The time that it has waited does not count for the next command.
        self.worker.go_on(self.locks.tsc(), || self.locks.time());
        // Keys that it found to be expired are gone.
        self.worker.deliver_wakes(self.host.waker());
    }

    /// Ends a run that failed, blocked its client, or served blocked clients.
    #[cold]
    fn end_unusual(
        &mut self,
        entry: &Entry,
        args: &Args<'_>,
        outcome: &mut Outcome,
        mark: Mark,
        ended: RunEnd,
    ) {
        let failed = outcome.has_failed();
        if failed && let Some(refusal) = self.worker.refusal.take() {
            self.out.truncate(mark);
            self.reject(Some(entry), &refusal.into());
            return;
        }
        if failed && !take(&mut self.worker.error_counted) {
            note_error(self.worker, self.out, mark);
        }
        // A reply that the client does not want is dropped by the caller.
        if let Outcome::GracePeriod(after) = outcome
            && self.session.reply_mode == ReplyMode::On
        {
            after.keep_reply(self.out, mark);
        }
        // A blocked command is counted when its wait ends.
        if matches!(outcome, Outcome::Block(_)) {
            self.worker.show(&self.session.record, entry, args, ended.at_tsc);
        } else {
            let others: u64 = self.worker.wake_events.iter().map(WakeEvent::tsc).sum();
            let tsc = ended.took_tsc.saturating_sub(others);
            let (record, reply) = (&*self.session.record, Some((&*self.out, mark)));
            let run = || Run { record, entry, args, reply, end_tsc: Some(ended.at_tsc) };
            account(self.worker, entry, !failed, tsc, run);
        }
        self.worker.deliver_wakes(self.host.waker());
    }
}
