//! From a request to its reply: the checks before a command, the command, and its accounting.
//!
//! The checks are, in this order: is the client killed, does the command exist, has it the right
//! number of arguments, may this client run it (authentication and access control), does it
//! belong to the main thread, is it paused. None of them costs more than a branch for an ordinary
//! data command. All are made inside the gate. A command that leaves it on the way to its shards
//! checks again what may have changed (`Admission`).
//!
//! On the way of a request this is the middle: the event loop (`server::threads::execute`) calls
//! [`Executor::execute`], which locks shards (`scope`) and calls the handler in `engine`; the
//! [`Outcome`] goes back to the event loop, where it decides the client's next state.

use std::sync::atomic::Ordering;

use command::Flags;
use engine::{ConnectionError, Error, LockedShards, ServerError, TransactionError, echo_start};
use resp::out::Mark;
use resp::{Args, Out, ProtocolError, Reply};

use crate::blocking::{self, WakeEvent};
use crate::clients::record::flag;
use crate::clients::session::{ReplyMode, Session};
use crate::execution::access;
use crate::execution::accounting::{Run, account, note_error};
use crate::execution::outcome::Outcome;
use crate::execution::place::{self, KEPT, LOGS, NOT_LOADED, NOTIFIES, SCRIPT};
use crate::execution::request::Request;
use crate::execution::table::{Call, Entry};
use crate::execution::worker::Worker;
use crate::host::{GatedHost, ShardLocks};
use crate::node::PAUSE_NONE;
use crate::propagation::subscribe;

/// What an error repeats of a name, and of all arguments together, in bytes.
pub(crate) const ECHOED_BYTES_MAX: usize = 128;

/// Executes the requests of one client on one thread, inside the gate.
pub struct Executor<'a, L> {
    /// The thread's worker.
    pub worker: &'a mut Worker,
    /// The client.
    pub session: &'a mut Session,
    /// The keyspace.
    pub locks: &'a L,
    /// Services of the process.
    pub host: GatedHost<'a>,
    /// Where replies go.
    pub out: &'a mut Out,
}

impl<L: ShardLocks> Executor<'_, L> {
    /// Executes one request and appends its reply to `out`.
    pub fn execute(&mut self, request: Request<'_>) -> Outcome {
        loop {
            let outcome = self.attempt(&request);
            // What may not run any more because users have changed is admitted anew.
            if !matches!(outcome, Outcome::Paused) || self.session.knows(&self.worker.node.users) {
                return outcome;
            }
        }
    }

    #[inline]
    fn attempt(&mut self, request: &Request<'_>) -> Outcome {
        let record = &self.session.record;
        if record.location.is_killed() {
            return Outcome::Close;
        }
        // CLIENT LIST shows rejected commands, too.
        let last_command = request.entry.map_or(0, |entry| entry.index + 1);
        record.last_command.store(last_command, Ordering::Relaxed);
        let Some(entry) = request.entry else { return self.reject_unknown(&request.args) };
        if let Err(error) = self.admit(entry, &request.args) {
            // As in Redis, what it has sent meanwhile is not answered.
            if !self.session.follow_users(&self.worker.node.users) {
                return self.close_unanswered();
            }
            let outcome = self.reject(Some(entry), &error);
            return match error {
                Error::Connection(ConnectionError::TooManyClients) => Outcome::Close,
                _ => outcome,
            };
        }
        if self.session.transaction.is_some() {
            return self.execute_in_transaction(entry, request);
        }
        self.execute_admitted(entry, request, entry.place, entry.spec.flags.may_write())
    }

    /// Runs a command here and now, if it may. `place` holds bits of [`place`](super::place).
    #[inline]
    fn execute_admitted(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        place: u16,
        may_write: bool,
    ) -> Outcome {
        if place & self.worker.remote != 0
            && let Some(outcome) = self.execute_remote(entry, request, place)
        {
            return outcome;
        }
        if self.worker.node.pause.load(Ordering::Relaxed) != PAUSE_NONE {
            return self.execute_in_pause(entry, request, may_write);
        }
        self.run(entry, request)
    }

    /// A command that the main thread executes, or that runs scripts; or any while the thread has
    /// no access to the keyspace; or one that changes keys, while clients are notified of that or
    /// nothing can be kept on the disk.
    /// None: it runs here and now after all.
    #[inline(never)]
    fn execute_remote(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        place: u16,
    ) -> Option<Outcome> {
        let Some(remote) = self.worker.remote_otherwise else {
            if place & KEPT != 0
                && let Some(error) = self.worker.refusal_of_writes()
            {
                return Some(self.reject(Some(entry), &error));
            }
            if place & self.worker.remote & NOT_LOADED != 0 {
                return Some(self.reject(Some(entry), &ServerError::Loading.into()));
            }
            let asked = place & self.worker.remote;
            return match asked & !(NOTIFIES | LOGS | KEPT) {
                0 if asked & LOGS != 0 && !self.worker.turn.effects.has_log_room() => {
                    Some(Outcome::Congested)
                }
                0 if asked & NOTIFIES == 0 => None,
                0 if self.worker.node.holds_events() => Some(Outcome::Congested),
                0 => self.execute_notified(entry, request),
                SCRIPT => Some(Outcome::Script),
                _ => Some(Outcome::MainThread),
            };
        };
        if !entry.spec.flags.has(Flags::ALLOW_BUSY) {
            return Some(self.reject_busy(entry));
        }
        if place & remote != 0 {
            return Some(Outcome::MainThread);
        }
        Some(self.run(entry, request))
    }

    /// A command that changes keys, of a client that may be notified of that itself: the events
    /// follow its reply at once. None: it is an ordinary command after all.
    fn execute_notified(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Option<Outcome> {
        let is_paused = self.worker.node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        if is_paused || !self.session.is_subscribed() {
            return None;
        }
        let outcome = self.run(entry, request);
        if self.has_run(&outcome) {
            subscribe::write_own(self.worker, self.session, self.out);
        }
        Some(outcome)
    }

    /// Whether nothing of a command is to come any more.
    pub(super) fn has_run(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Done => true,
            Outcome::Failed => self.worker.refusal.is_none(),
            _ => false,
        }
    }

    /// Answers that a script has run for too long.
    fn reject_busy(&mut self, entry: &Entry) -> Outcome {
        let error = self.worker.node.scripting.busy.error(Some(self.worker.index));
        self.reject(Some(entry), &error.into())
    }

    /// Between MULTI and EXEC: queues the command, unless it is one of those that run at once.
    #[inline(never)]
    fn execute_in_transaction(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        let Some(transaction) = &mut self.session.transaction else { return Outcome::Failed };
        let flags = entry.spec.flags;
        if flags.has(Flags::NOT_QUEUED) {
            let is_exec = matches!(entry.call, Call::Exec);
            let place = match is_exec {
                true => place::of_exec(entry.place, transaction.place()),
                false => entry.place,
            };
            let may_write = is_exec && transaction.may_write(&self.worker.node);
            return self.execute_admitted(entry, request, place, may_write);
        }
        if flags.has(Flags::NO_MULTI) {
            return self.reject(Some(entry), &TransactionError::NotAllowed.into());
        }
        if self.worker.remote_otherwise.is_some() {
            return self.reject_busy(entry);
        }
        if self.worker.is_limited()
            && let Some(outcome) = self.keep_to_memory(entry, request)
        {
            return outcome;
        }
        if entry.place & KEPT != 0
            && let Some(error) = self.worker.refusal_of_writes()
        {
            return self.reject(Some(entry), &error);
        }
        if entry.place & self.worker.remote & NOT_LOADED != 0 {
            return self.reject(Some(entry), &ServerError::Loading.into());
        }
        let Some(transaction) = &mut self.session.transaction else { return Outcome::Failed };
        let (node, steady_ms) = (&self.worker.node, self.worker.turn.steady_ms);
        let may_write = entry.may_write(node, &request.args);
        if node.is_paused(may_write, steady_ms) {
            return Outcome::Paused;
        }
        // What EXEC will not run need not be kept.
        let fails = transaction.is_aborted()
            || self.session.watched.as_ref().is_some_and(|watched| watched.watch().is_touched());
        if !fails {
            let has_room =
                transaction.push(entry, request, may_write, &node.hasher, self.worker.turns);
            let bytes = self.session.record.set_transaction(Some(transaction));
            let bytes_max = self.worker.config.client_query_buffer_limit;
            if !has_room || bytes as u64 > bytes_max {
                self.session.record.set_flag(flag::CLOSING, true);
                return Outcome::Close;
            }
        }
        self.reply_outside_run(|reply| reply.queued());
        Outcome::Done
    }

    /// Replies to a request that does not run, as CLIENT REPLY asks.
    fn reply_outside_run(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        match self.session.reply_mode {
            ReplyMode::Off => {}
            ReplyMode::SkipNext | ReplyMode::Skip => self.session.reply_mode = ReplyMode::On,
            ReplyMode::On => write(&mut Reply::new(self.out, self.session.resp3)),
        }
    }

    /// The checks that answer with an error.
    #[inline]
    fn admit(&mut self, entry: &Entry, args: &Args<'_>) -> Result<(), Error> {
        if entry.lacks_subcommand(args) {
            let [command, name] = [0, 1].map(|at| echo_start(args.text(at), ECHOED_BYTES_MAX));
            return Err(Error::UnknownSubcommand(name, command.to_ascii_uppercase()));
        }
        if !entry.spec.accepts(args.len()) {
            return Err(Error::Arity(entry.name.clone()));
        }
        match self.session.is_free(&self.worker.node.users) {
            true => Ok(()),
            false => access::admit(self.worker, self.session, entry, args),
        }
    }

    fn reject_unknown(&mut self, args: &Args<'_>) -> Outcome {
        if is_http(args.name()) {
            // Nor are the replies sent that precede it: the line before was no request either.
            self.out.truncate(Mark::default());
            return self.close_unanswered();
        }
        if !self.session.follow_users(&self.worker.node.users) {
            return self.close_unanswered();
        }
        self.reject(None, &Error::UnknownCommand(unknown_command(args)))
    }

    #[cold]
    fn close_unanswered(&mut self) -> Outcome {
        self.session.record.set_flag(flag::CLOSING, true);
        Outcome::Close
    }

    pub(crate) fn reject(&mut self, entry: Option<&Entry>, error: &Error) -> Outcome {
        // There is no command of that name.
        let is_command = !matches!(error, Error::UnknownSubcommand(..));
        if let Some(entry) = entry.filter(|_| is_command) {
            self.worker.stats.commands[usize::from(entry.index)].rejected.add(1);
        }
        let mut text = error.text();
        if entry.is_some_and(|entry| matches!(entry.call, Call::Exec)) {
            self.session.discard(self.worker, &mut LockedShards::Each(self.locks));
            let cause = text.strip_prefix(b"ERR ").unwrap_or(&text);
            text = [b"EXECABORT Transaction discarded because of: ", cause].concat();
        }
        self.worker.stats.note_error(&text);
        self.session.awaits_shutdown = false;
        self.reply_outside_run(|reply| reply.error(&text));
        match &mut self.session.transaction {
            Some(transaction) => transaction.abort(),
            None => self.session.end_announced(),
        }
        Outcome::Failed
    }

    #[cold]
    fn execute_in_pause(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        may_write: bool,
    ) -> Outcome {
        let (node, steady_ms) = (&self.worker.node, self.worker.turn.steady_ms);
        let may_write = may_write
            && (!matches!(entry.call, Call::Script(_)) || entry.may_write(node, &request.args));
        // As in Redis, a pause of everything also holds back the command that would end it. But
        // while it waits for a script or there is one that does not end, the command that ends the
        // script goes on.
        let may_end_script = node.pause_begins() || node.scripting.busy.any();
        let ends_script = may_end_script && entry.spec.flags.has(Flags::ALLOW_BUSY);
        // SHUTDOWN is told that it was called off.
        let is_called_off = self.session.awaits_shutdown && !node.goes_down();
        if node.is_paused(may_write, steady_ms) && !ends_script && !is_called_off {
            return match node.refuses_all() {
                true => self.reject_busy(entry),
                false => Outcome::Paused,
            };
        }
        // The keyspace does not change during a pause, so expired keys stay until its end.
        let keeps_expired = !may_write && node.pause_left_ms(steady_ms) > 0;
        self.worker.turn.keep_expired = keeps_expired;
        let outcome = self.run(entry, request);
        self.worker.turn.keep_expired = false;
        outcome
    }

    #[inline]
    fn run(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        match &self.session.tracking {
            None if !self.session.watches_requests() => self.run_alone(entry, request),
            None => self.run_watching(entry, request),
            Some(_) => self.run_tracking(entry, request),
        }
    }

    /// Runs a command of a client that watches requests: its line follows the reply at once.
    #[inline(never)]
    fn run_watching(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        let outcome = self.run_alone(entry, request);
        if self.has_run(&outcome) && self.worker.remote_otherwise.is_none() {
            subscribe::write_own(self.worker, self.session, self.out);
        }
        outcome
    }

    pub(crate) fn run_alone(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        if self.worker.is_limited()
            && let Some(outcome) = self.keep_to_memory(entry, request)
        {
            return outcome;
        }
        let reply_mode = self.session.reply_mode;
        if reply_mode == ReplyMode::SkipNext {
            self.session.reply_mode = ReplyMode::Skip;
        }
        let mark = self.out.mark();
        let start = self.worker.last_tsc;
        let mut outcome = self.call(entry, request);
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
            self.end_unusual(entry, &request.args, &mut outcome, mark, (tsc, now));
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
            subscribe::write_own(self.worker, self.session, self.out);
        }
        if matches!(outcome, Outcome::Close) {
            self.session.record.set_flag(flag::CLOSING, true);
        }
        outcome
    }

    /// A command counts as not begun, and begins anew when the pause is over, or later.
    #[cold]
    fn begin_later(&mut self, mark: Mark, reply_mode: ReplyMode) {
        self.out.truncate(mark);
        self.session.reply_mode = reply_mode;
        // What it has waited is not the time of the next one.
        self.worker.go_on(self.locks.tsc(), || self.locks.time());
        // Keys that it found to be expired are gone.
        blocking::deliver(self.worker, self.host.waker());
    }

    /// Ends a run that failed, blocked its client, or served blocked clients.
    #[cold]
    fn end_unusual(
        &mut self,
        entry: &Entry,
        args: &Args<'_>,
        outcome: &mut Outcome,
        mark: Mark,
        (tsc, now): (u64, u64),
    ) {
        let failed = outcome.has_failed();
        if failed && let Some(refusal) = self.worker.refusal.take() {
            self.out.truncate(mark);
            self.reject(Some(entry), &refusal.into());
            return;
        }
        if failed && !std::mem::take(&mut self.worker.error_counted) {
            note_error(self.worker, self.out, mark);
        }
        // One that the client does not want is dropped here, as any other.
        if let Outcome::GracePeriod(after) = outcome
            && self.session.reply_mode == ReplyMode::On
        {
            after.keep_reply(self.out, mark);
        }
        // A blocked command is counted when its wait ends.
        if !matches!(outcome, Outcome::Block(_)) {
            let others: u64 = self.worker.wake_events.iter().map(WakeEvent::tsc).sum();
            let tsc = tsc.saturating_sub(others);
            let (record, reply) = (&*self.session.record, Some((&*self.out, mark)));
            let run = || Run { record, entry, args, reply, end_tsc: Some(now) };
            account(self.worker, entry, !failed, tsc, run);
        } else {
            self.worker.show(&self.session.record, (entry, args), now);
        }
        blocking::deliver(self.worker, self.host.waker());
    }
}

impl Worker {
    /// Answers bytes that break the protocol, which ends the client.
    pub fn refuse(&self, error: &ProtocolError, session: &Session, out: &mut Out) -> Outcome {
        let text = error.text();
        self.stats.note_error(&text);
        if session.reply_mode == ReplyMode::On {
            Reply::new(out, session.resp3).error(&text);
        }
        Outcome::Close
    }
}

/// Whether a name is a line of HTTP: a web page can make its visitor's browser talk to this server.
/// What follows must not be executed, and as in Redis the client gets no answer.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// The error for a name that no command has, with the start of its arguments.
fn unknown_command(args: &Args<'_>) -> String {
    let mut shown = String::new();
    // Characters stand for bytes here.
    let mut room = ECHOED_BYTES_MAX;
    for arg in args.iter().skip(1) {
        let arg = format!("'{}' ", echo_start(arg, room));
        shown.push_str(&arg);
        room = room.saturating_sub(arg.chars().count());
        if room == 0 {
            break;
        }
    }
    let name = echo_start(args.name(), ECHOED_BYTES_MAX);
    format!("unknown command '{name}', with args beginning with: {shown}")
}
