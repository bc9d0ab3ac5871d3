//! The executor: what the requests of one client are executed with, and how it rejects one.
//!
//! `admission` has the checks before a command, `perform` the accounting around it, and `call` the
//! handler on its shards.

use engine::{ConnectionError, Error, LockedShards, ScriptError, echo_start};
use resp::out::Mark;
use resp::{Args, Out, ProtocolError, Reply};

use super::outcome::Outcome;
use super::worker::Worker;
use crate::clients::record::flag;
use crate::clients::session::{ReplyMode, Session};
use crate::command_table::entry::{Call, Entry};
use crate::host::{GatedHost, ShardLocks};

/// Bytes of a name, and of all arguments together, that an error repeats at most.
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
    pub(crate) fn is_over(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Done => true,
            Outcome::Failed => self.worker.refusal.is_none(),
            _ => false,
        }
    }

    /// Writes the messages that have arrived for the client: they follow its reply at once.
    pub(crate) fn write_own_messages(&mut self) {
        self.worker.write_own_messages(self.session, self.out);
    }

    /// Replies to a request that does not run, as CLIENT REPLY asks.
    pub(super) fn reply_outside_run(&mut self, write: impl FnOnce(&mut Reply<'_>)) {
        match self.session.reply_mode {
            ReplyMode::Off => {}
            ReplyMode::SkipNext | ReplyMode::Skip => self.session.reply_mode = ReplyMode::On,
            ReplyMode::On => write(&mut Reply::new(self.out, self.session.resp3)),
        }
    }

    /// Replies that a script has run for too long.
    pub(super) fn reject_busy(&mut self, entry: &Entry) -> Outcome {
        let error = self.worker.node.scripting.busy.error(Some(self.worker.index));
        self.reject(Some(entry), &error.into())
    }

    /// Rejects a request that names no command.
    #[cold]
    pub(super) fn reject_unknown(&mut self, args: &Args<'_>) -> Outcome {
        if is_http(args.name()) {
            // Replies queued before it are dropped as well: the line before was no request either.
            self.out.truncate(Mark::default());
            return self.close_unanswered();
        }
        if !self.session.follow_users(&self.worker.node.users) {
            return self.close_unanswered();
        }
        self.reject(None, &Error::UnknownCommand(unknown_command(args)))
    }

    /// Rejects a request whose form is wrong or that its client may not send.
    #[cold]
    pub(super) fn reject_denied(&mut self, entry: &Entry, error: &Error) -> Outcome {
        // As in Redis, a client whose user is gone gets no reply to what it has sent since.
        if !self.session.follow_users(&self.worker.node.users) {
            return self.close_unanswered();
        }
        let outcome = self.reject(Some(entry), error);
        match error {
            Error::Connection(ConnectionError::TooManyClients) => Outcome::Close,
            _ => outcome,
        }
    }

    fn close_unanswered(&mut self) -> Outcome {
        self.session.record.set_flag(flag::CLOSING, true);
        Outcome::Close
    }

    /// Replies with an error to a request that does not run.
    pub(crate) fn reject(&mut self, entry: Option<&Entry>, error: &Error) -> Outcome {
        // An unknown subcommand is not a command.
        let is_command = !matches!(error, Error::UnknownSubcommand(..));
        if let Some(entry) = entry.filter(|_| is_command) {
            self.worker.stats.commands[usize::from(entry.index)].rejected.add(1);
        }
        let mut text = error.text();
        if entry.is_some_and(|entry| matches!(entry.call, Call::Exec)) {
            self.worker.discard(self.session, &mut LockedShards::Each(self.locks));
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
}

impl Worker {
    /// Writes the messages that have arrived for a client that subscribes or watches requests: they
    /// follow its reply at once, as in Redis. MONITOR lines are not pushes, so a client that turned
    /// replies off gets none.
    pub(crate) fn write_own_messages(&self, session: &Session, out: &mut Out) {
        let record = &session.record;
        if record.has(flag::PUBSUB)
            || record.has(flag::MONITOR) && session.reply_mode != ReplyMode::Off
        {
            self.deliveries.receive_all();
            self.deliveries.subscribers().write_of(record.id, out, session.resp3);
        }
    }

    /// The outcome of a command that has done nothing, because its shards are in use: by a busy
    /// script, which is noted as the reason; or by a command that will soon be over.
    #[cold]
    pub(crate) fn refuse_for(&mut self, refusal: ScriptError) -> Outcome {
        if refusal == ScriptError::ShardInUse {
            return Outcome::ShardInUse;
        }
        self.refusal = Some(refusal);
        Outcome::Failed
    }

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
/// The rest must not be executed, and as in Redis the client gets no reply.
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
