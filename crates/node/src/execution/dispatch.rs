//! From a request to its reply: the gates in front of a command, then the command.
//!
//! The gates are, in this order: does the command exist, has it the right number of arguments, may
//! this client run it (authentication now, access control later), must it run elsewhere, must it
//! wait. None of them costs more than a branch for an ordinary data command.

use std::sync::atomic::Ordering;

use command::Flags;
use engine::Error;
use resp::{Args, Out, Reply};

use crate::blocking::WakeEvent;
use crate::blocking::serve::deliver;
use crate::clients::record::{ClientRecord, flag};
use crate::clients::session::{ReplyMode, Session};
use crate::commands::{NodeCx, Then};
use crate::execution::scope::{Ran, run_data};
use crate::execution::table::{Call, Entry};
use crate::execution::worker::Worker;
use crate::host::{Host, ShardLocks};
use crate::node::PAUSE_NONE;

/// How to go on after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// With the next request.
    Done,
    /// By closing the client when its replies are sent; later requests are dropped.
    Close,
    /// By handing the client to the main thread, which executes this request again from the start.
    HandOver,
    /// By executing this request again when CLIENT PAUSE ends.
    Postpone,
    /// By waiting for the end of [`Session::waiter`]; the next request comes after it.
    Wait,
}

/// One parsed request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The command it names, if there is one.
    pub entry: Option<&'static Entry>,
    /// Its arguments.
    pub args: Args<'a>,
    /// The hash of its key, when it has one only key.
    pub hash: Option<u64>,
}

/// Executes one request and appends its reply to `out`.
pub fn dispatch<R: ShardLocks>(
    worker: &mut Worker,
    session: &mut Session,
    request: Request<'_>,
    locks: &R,
    host: &dyn Host,
    out: &mut Out,
) -> Step {
    // CLIENT LIST shows it, be it refused or not.
    let last_command = request.entry.map_or(0, |entry| entry.index + 1);
    session.record.last_command.store(last_command, Ordering::Relaxed);
    let Some(entry) = request.entry else {
        if is_http(request.args.name()) {
            session.record.set_flag(flag::CLOSING, true);
            return Step::Close;
        }
        let error = Error::UnknownCommand(unknown_command(&request.args));
        return reject(worker, session, None, &error, out);
    };
    if let Err(error) = admit(entry, &request.args, worker, session) {
        return reject(worker, session, Some(entry), &error, out);
    }
    if entry.place & worker.remote != 0 {
        return Step::HandOver;
    }
    let node = &worker.node;
    let mut keeps_expired = false;
    if node.pause.load(Ordering::Relaxed) != PAUSE_NONE {
        let may_write = entry.spec.flags.has(Flags::WRITE);
        // As in Redis, a pause of everything also holds the command that would end it.
        if node.is_paused(may_write, worker.turn.unix_ms) {
            return Step::Postpone;
        }
        // Nothing changes in a pause, so what expires in it stays until its end.
        keeps_expired = !may_write && node.pause_left_ms(worker.turn.unix_ms) > 0;
        worker.turn.keep_expired = keeps_expired;
    }
    let step = run(worker, session, entry, request, locks, host, out);
    if keeps_expired {
        worker.turn.keep_expired = false;
    }
    step
}

/// The gates that answer with an error.
#[inline]
fn admit(entry: &Entry, args: &Args<'_>, worker: &Worker, session: &Session) -> Result<(), Error> {
    // Had the subcommand been known, this would be its entry.
    if args.len() > 1 && !entry.subcommands.is_empty() {
        let name = String::from_utf8_lossy(args.text(1)).chars().take(128).collect();
        return Err(Error::UnknownSubcommand(name, entry.name.to_uppercase()));
    }
    if !entry.spec.accepts(args.len()) {
        return Err(Error::Arity(entry.name.clone()));
    }
    // The gate of access control: it will ask the session's user instead. Once there is no
    // password, those who never gave one may go on.
    if !session.authenticated
        && !entry.spec.flags.has(Flags::NO_AUTH)
        && !worker.config.requirepass.is_empty()
    {
        return Err(Error::NoAuth);
    }
    Ok(())
}

fn reject(
    worker: &mut Worker,
    session: &mut Session,
    entry: Option<&Entry>,
    error: &Error,
    out: &mut Out,
) -> Step {
    if let Some(entry) = entry {
        worker.stats.commands[usize::from(entry.index)].rejected.add(1);
    }
    let text = error.to_string();
    worker.stats.note_error(&text);
    match session.reply_mode {
        ReplyMode::Off => {}
        ReplyMode::SkipNext | ReplyMode::Skip => session.reply_mode = ReplyMode::On,
        ReplyMode::On => Reply::new(out, session.resp3).error(text.as_bytes()),
    }
    Step::Done
}

fn run<R: ShardLocks>(
    worker: &mut Worker,
    session: &mut Session,
    entry: &'static Entry,
    request: Request<'_>,
    locks: &R,
    host: &dyn Host,
    out: &mut Out,
) -> Step {
    if session.reply_mode == ReplyMode::SkipNext {
        session.reply_mode = ReplyMode::Skip;
    }
    let mark = out.mark();
    let (ran, mut then) = call(worker, session, entry, request, locks, host, out);
    let tsc = locks.tsc();
    let tsc = tsc.wrapping_sub(worker.last_tsc);
    worker.last_tsc = tsc;
    if ran == Ran::Succeeded {
        account(worker, &session.record, entry, &request.args, true, tsc);
    } else {
        let reply = &out.bytes[mark.bytes..];
        end_unusual(worker, session, entry, &request.args, (ran, tsc), reply, host);
        if ran == Ran::Waits {
            then = Then::Wait;
        }
    }
    // The mode as the command left it decides, so that CLIENT REPLY ON itself is answered.
    if session.reply_mode != ReplyMode::On {
        out.truncate(mark);
        if session.reply_mode == ReplyMode::Skip {
            session.reply_mode = ReplyMode::On;
        }
    }
    match then {
        Then::Done => Step::Done,
        Then::Wait => Step::Wait,
        Then::Close => {
            session.record.set_flag(flag::CLOSING, true);
            Step::Close
        }
    }
}

/// Calls the command's handler.
#[inline]
fn call<R: ShardLocks>(
    worker: &mut Worker,
    session: &mut Session,
    entry: &'static Entry,
    request: Request<'_>,
    locks: &R,
    host: &dyn Host,
    out: &mut Out,
) -> (Ran, Then) {
    let mark = out.mark();
    let mut args = request.args;
    let mut then = Then::Done;
    let ran = match entry.call {
        Call::Data(handler) => {
            worker.turn.touch = !session.no_touch;
            let mut reply = Reply::new(out, session.resp3);
            run_data(worker, session, entry, request, locks, &mut |cx| {
                engine::exec::run(handler, cx, &mut args, &mut reply)
            })
        }
        Call::Node(handler) => {
            let mut cx = NodeCx {
                worker: &mut *worker,
                session,
                entry,
                shards: locks,
                host,
                then: &mut then,
            };
            let resp3 = cx.session.resp3;
            let mut reply = Reply::new(out, resp3);
            match handler(&mut cx, &mut args, &mut reply) {
                Ok(()) => Ran::Succeeded,
                Err(error) => {
                    reply.truncate(mark);
                    reply.error(error.to_string().as_bytes());
                    Ran::Failed
                }
            }
        }
        Call::Container => Ran::Failed,
    };
    (ran, then)
}

/// Ends a run that failed, waits, or served others.
#[cold]
fn end_unusual(
    worker: &mut Worker,
    session: &mut Session,
    entry: &Entry,
    args: &Args<'_>,
    (ran, tsc): (Ran, u64),
    reply: &[u8],
    host: &dyn Host,
) {
    if ran.has_failed() {
        // The reply is the error and nothing else.
        let error = reply.strip_prefix(b"-").unwrap_or_default();
        worker.stats.note_error(&String::from_utf8_lossy(error));
    }
    let others: u64 = worker.wake_events.iter().map(WakeEvent::tsc).sum();
    if ran == Ran::Waits {
        // It is counted when its wait ends.
        session.waiter = worker.waiter.take();
    } else {
        let (record, tsc) = (&session.record, tsc.saturating_sub(others));
        account(worker, record, entry, args, !ran.has_failed(), tsc);
    }
    deliver(worker, host);
}

/// Counts a run and notices a slow one.
#[inline]
pub(crate) fn account(
    worker: &mut Worker,
    record: &ClientRecord,
    entry: &Entry,
    args: &Args<'_>,
    succeeded: bool,
    tsc: u64,
) {
    let count = &worker.stats.commands[usize::from(entry.index)];
    count.calls.add(1);
    count.tsc.add(tsc);
    if !succeeded {
        count.failed.add(1);
    }
    if tsc >= worker.slow_tsc && !entry.spec.flags.has(Flags::SKIP_SLOWLOG) {
        crate::stats::slowlog::note(worker, record, entry, args, tsc);
    }
}

/// Whether a name is a line of HTTP: a web page makes its visitor's browser talk to this server.
/// What follows must not be executed, and as in Redis the client gets no answer.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// The error for a name that no command has, with the start of its arguments.
fn unknown_command(args: &Args<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 128;
    let short = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_BYTES_MAX)]).into_owned()
    };
    let mut shown = String::new();
    for arg in args.iter().skip(1) {
        if shown.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let room = SHOWN_BYTES_MAX - shown.len();
        let arg: String = short(arg).chars().take(room).collect();
        shown.push_str(&format!("'{arg}' "));
    }
    format!("unknown command '{}', with args beginning with: {shown}", short(args.name()))
}
