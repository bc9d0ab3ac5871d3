//! From a request to its reply: the checks before a command, the command, and its accounting.
//!
//! The checks are, in this order: is the client killed, does the command exist, has it the right
//! number of arguments, may this client run it (authentication now, access control later), does it
//! belong to the main thread, is it paused. None of them costs more than a branch for an ordinary
//! data command. All are made inside the gate. A command that leaves it on the way to its shards
//! checks again what may have changed (`Admission`).
//!
//! On the way of a request this is the middle: the event loop (`server::threads::execute`) calls
//! [`Executor::execute`], which locks shards (`scope`) and calls the handler in `engine`; the
//! [`Outcome`] goes back to the event loop, where it decides the client's next state.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use command::Flags;
use engine::{Error, echo_start, exec};
use resp::out::Mark;
use resp::{Args, Out, Reply};

use crate::blocking::{self, Waiter, WakeEvent};
use crate::clients::record::flag;
use crate::clients::session::{ReplyMode, Session};
use crate::execution::accounting::account;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::scope::{Admission, ExecutionScope, follow_time};
use crate::execution::table::{Call, Entry};
use crate::execution::worker::Worker;
use crate::host::{GatedHost, ShardLocks};
use crate::node::PAUSE_NONE;

/// What an error repeats of a name, and of all arguments together, in bytes.
pub(crate) const ECHOED_BYTES_MAX: usize = 128;

/// Executes the requests of one client on one thread, inside the gate.
pub struct Executor<'a, L> {
    /// The thread's means of execution.
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
        let record = &self.session.record;
        if record.location.is_killed() {
            return Outcome::Close;
        }
        // CLIENT LIST shows rejected commands, too.
        let last_command = request.entry.map_or(0, |entry| entry.index + 1);
        record.last_command.store(last_command, Ordering::Relaxed);
        let Some(entry) = request.entry else { return self.reject_unknown(&request.args) };
        if let Err(error) = self.admit(entry, &request.args) {
            return self.reject(Some(entry), &error);
        }
        if entry.place & self.worker.remote != 0 {
            return Outcome::MainThread;
        }
        if self.worker.node.pause.load(Ordering::Relaxed) != PAUSE_NONE {
            return self.execute_in_pause(entry, request);
        }
        self.run(entry, request)
    }

    /// The checks that answer with an error.
    #[inline]
    fn admit(&self, entry: &Entry, args: &Args<'_>) -> Result<(), Error> {
        // A known subcommand has an entry without subcommands.
        if args.len() > 1 && !entry.subcommands.is_empty() {
            let name = echo_start(args.text(1), ECHOED_BYTES_MAX);
            return Err(Error::UnknownSubcommand(name, entry.name.to_uppercase()));
        }
        if !entry.spec.accepts(args.len()) {
            return Err(Error::Arity(entry.name.clone()));
        }
        // Access control will ask the session's user here.
        if !entry.spec.flags.has(Flags::NO_AUTH)
            && self.session.must_authenticate(&self.worker.config)
        {
            return Err(Error::NoAuth);
        }
        Ok(())
    }

    fn reject_unknown(&mut self, args: &Args<'_>) -> Outcome {
        if is_http(args.name()) {
            // Nor are the replies sent that precede it: the line before was no request either.
            self.out.truncate(Mark::default());
            self.session.record.set_flag(flag::CLOSING, true);
            return Outcome::Close;
        }
        self.reject(None, &Error::UnknownCommand(unknown_command(args)))
    }

    fn reject(&mut self, entry: Option<&Entry>, error: &Error) -> Outcome {
        if let Some(entry) = entry {
            self.worker.stats.commands[usize::from(entry.index)].rejected.add(1);
        }
        let text = error.text();
        self.worker.stats.note_error(&String::from_utf8_lossy(&text));
        match self.session.reply_mode {
            ReplyMode::Off => {}
            ReplyMode::SkipNext | ReplyMode::Skip => self.session.reply_mode = ReplyMode::On,
            ReplyMode::On => Reply::new(self.out, self.session.resp3).error(&text),
        }
        Outcome::Failed
    }

    #[cold]
    fn execute_in_pause(&mut self, entry: &'static Entry, request: Request<'_>) -> Outcome {
        let (node, steady_ms) = (&self.worker.node, self.worker.turn.steady_ms);
        let may_write = entry.spec.flags.has(Flags::WRITE);
        // As in Redis, a pause of everything also holds back the command that would end it.
        if node.is_paused(may_write, steady_ms) {
            return Outcome::Paused;
        }
        // The keyspace does not change during a pause, so expired keys stay until its end.
        let keeps_expired = !may_write && node.pause_left_ms(steady_ms) > 0;
        self.worker.turn.keep_expired = keeps_expired;
        let outcome = self.run(entry, request);
        self.worker.turn.keep_expired = false;
        outcome
    }

    fn run(&mut self, entry: &'static Entry, request: Request<'_>) -> Outcome {
        let reply_mode = self.session.reply_mode;
        if reply_mode == ReplyMode::SkipNext {
            self.session.reply_mode = ReplyMode::Skip;
        }
        let mark = self.out.mark();
        let outcome = self.call(entry, request);
        if matches!(outcome, Outcome::Paused) {
            // It has not begun, and begins anew when the pause is over.
            self.session.reply_mode = reply_mode;
            return outcome;
        }
        let now = self.locks.tsc();
        let tsc = now.wrapping_sub(self.worker.last_tsc);
        self.worker.go_on(now, || self.locks.time());
        let is_usual = matches!(outcome, Outcome::Done | Outcome::Close);
        if is_usual && self.worker.wake_events.is_empty() {
            account(self.worker, &self.session.record, entry, &request.args, true, tsc);
        } else {
            self.end_unusual(entry, &request.args, &outcome, mark, tsc);
        }
        // The mode as the command left it decides, so that CLIENT REPLY ON itself is answered.
        if self.session.reply_mode != ReplyMode::On {
            self.out.truncate(mark);
            if self.session.reply_mode == ReplyMode::Skip {
                self.session.reply_mode = ReplyMode::On;
            }
        }
        if matches!(outcome, Outcome::Close) {
            self.session.record.set_flag(flag::CLOSING, true);
        }
        outcome
    }

    /// Calls the command's handler.
    #[inline]
    fn call(&mut self, entry: &'static Entry, request: Request<'_>) -> Outcome {
        let mut args = request.args;
        let session = &*self.session;
        let mut reply = Reply::new(self.out, session.resp3);
        let mark = reply.mark();
        let locks = self.locks;
        let may_write = entry.spec.flags.has(Flags::WRITE);
        let steady_ms = self.worker.turn.steady_ms;
        let admission = Some(Admission { record: &session.record, may_write, steady_ms });
        let mut scope = ExecutionScope { worker: self.worker, db: session.db, locks, admission };
        match entry.call {
            Call::Data(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                scope.run(entry, request, &mut |cx| {
                    let result = handler(cx, &mut args, &mut reply);
                    exec::seal(cx, &args);
                    finish(result, Outcome::Done, mark, &mut reply)
                })
            }
            Call::Blocking(handler) => {
                scope.worker.turn.touch = !session.no_touch;
                let start = scope.worker.last_tsc;
                let node = Arc::clone(&scope.worker.node);
                scope.run(entry, request, &mut |cx| {
                    let result = handler(cx, &mut args, &mut reply);
                    exec::seal(cx, &args);
                    match result {
                        Ok(Some(block)) => {
                            let tsc = locks.tsc().wrapping_sub(start);
                            Outcome::Block(Waiter::begin(
                                session,
                                (entry.index, &node.waits),
                                block,
                                &args,
                                cx,
                                tsc,
                            ))
                        }
                        result => finish(result.map(drop), Outcome::Done, mark, &mut reply),
                    }
                })
            }
            Call::Node(handler) => {
                let (worker, session, host) = (&mut *self.worker, &mut *self.session, self.host);
                follow_time(locks, &mut worker.turn);
                let outcome = Outcome::Done;
                let mut cx = NodeCx { worker, session, entry, shards: locks, host, outcome };
                let result = handler(&mut cx, &mut args, &mut reply);
                finish(result, cx.outcome, mark, &mut reply)
            }
            Call::Container => Outcome::Failed,
        }
    }

    /// Ends a run that failed, blocked its client, or served blocked clients.
    #[cold]
    fn end_unusual(
        &mut self,
        entry: &Entry,
        args: &Args<'_>,
        outcome: &Outcome,
        mark: Mark,
        tsc: u64,
    ) {
        let failed = matches!(outcome, Outcome::Failed);
        if failed {
            // The reply is the error and nothing else.
            let error = self.out.bytes[mark.bytes..].strip_prefix(b"-").unwrap_or_default();
            self.worker.stats.note_error(&String::from_utf8_lossy(error));
        }
        // A blocked command is counted when its wait ends.
        if !matches!(outcome, Outcome::Block(_)) {
            let others: u64 = self.worker.wake_events.iter().map(WakeEvent::tsc).sum();
            let tsc = tsc.saturating_sub(others);
            account(self.worker, &self.session.record, entry, args, !failed, tsc);
        }
        blocking::deliver(self.worker, self.host.waker());
    }
}

/// A handler's result as an outcome: `done`, or an error that replaces what has been replied.
#[inline]
fn finish(result: Result<(), Error>, done: Outcome, mark: Mark, reply: &mut Reply<'_>) -> Outcome {
    match result {
        Ok(()) => done,
        Err(error) => {
            reply.truncate(mark);
            reply.error(&error.text());
            Outcome::Failed
        }
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
