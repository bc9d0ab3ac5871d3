//! Clients that wait for keys: BLPOP and its like.
//!
//! ```text
//!                 a writer serves it            (wake)
//!     waiting ---------------------------------------------> served
//!        |  +--- its owner looks again (look) -------------> served
//!        |  +--- its time is over, CLIENT UNBLOCK --------->  timed out, unblocked
//!        +------ it is closed or killed ------------------->  gone
//! ```
//!
//! A [`Waiter`] stands in the queues of its keys (`store::waiters`) and is known by the client's
//! record. Who settles its [`Completion`] first decides how the wait ends, on whatever thread; then
//! the client's owner is told, and [`finish`]es it: the reply is sent, and the client goes on with
//! the requests behind.
//!
//! Invariants:
//! - Looking for something and beginning to wait are one step, under the locks of all keys.
//! - What a writer takes out of the keyspace for a waiter reaches it: the completion is settled in
//!   the same step. Who gives up a wait settles the completion first, so nothing is taken for him
//!   any more.
//! - The owner is told after the completion is settled and with no shard held. It finds the outcome
//!   in the waiter, wherever the client has moved meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{BlockRequest, Cx, ServeOutcome, WaitError};
use resp::{Args, Out, Reply, Span};
use store::Key;
use sync::completion::Completion;

use crate::clients::record::ClientRecord;
use crate::clients::session::{ReplyMode, Session};
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use retry::RetryTimes;

mod retry;
pub(crate) mod serve;

pub use retry::{Due, due, on_deadline};
pub use serve::after_expiry;

/// How a wait ended.
#[derive(Debug)]
enum Outcome {
    /// With this reply, which a writer made; it is accounted for.
    Served(Out),
    /// Its time is over.
    TimedOut,
    /// CLIENT UNBLOCK ended it with an error.
    Unblocked,
    /// The client is closed.
    Gone,
}

/// One client's wait.
pub struct Waiter {
    record: Arc<ClientRecord>,
    entry: &'static Entry,
    db: usize,
    resp3: bool,
    no_touch: bool,
    /// CLIENT REPLY says that it is not answered.
    silent: bool,
    asked: BlockRequest,
    spans: Vec<Span>,
    /// The hash of the key that serving it writes to.
    target: Option<u64>,
    /// What the request took before it began to wait.
    tsc: u64,
    looks: RetryTimes,
    completion: Completion<Outcome>,
}

/// Its client's record knows it in turn, so only the number is shown.
impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter")
            .field("client", &self.record.id)
            .field("command", &self.entry.name)
            .field("completion", &self.completion)
            .finish()
    }
}

impl store::Waiter for Waiter {
    fn waits(&self) -> bool {
        self.completion.is_open()
    }

    fn wants(&self, type_name: Option<&'static str>) -> bool {
        self.asked.wait.blocked_on.wants(type_name)
    }

    fn target(&self) -> Option<u64> {
        self.target
    }
}

/// What the owner of a wait is to be told by a writer, on the writer's thread.
#[derive(Debug)]
pub(crate) enum WakeEvent {
    /// It is over.
    Served(Served),
    /// It is worth a look sooner than the owner knows.
    Sooner(Arc<Waiter>),
}

/// A wait that a writer has ended.
#[derive(Debug)]
pub(crate) struct Served {
    waiter: Arc<Waiter>,
    tsc: u64,
    /// The error that is the reply.
    error: Option<String>,
}

impl Waiter {
    fn new(
        session: &Session,
        entry: &'static Entry,
        asked: BlockRequest,
        cx: &Cx<'_>,
        tsc: u64,
    ) -> Self {
        let looks = RetryTimes::new(&asked.wait.retry_at_ms);
        let target = asked.wait.target.map(|at| cx.key(&asked.args[at]).hash);
        Self {
            record: Arc::clone(&session.record),
            entry,
            db: session.db,
            resp3: session.resp3,
            no_touch: session.no_touch,
            silent: session.reply_mode != ReplyMode::On,
            spans: (0..asked.args.len()).map(Span::own).collect(),
            asked,
            target,
            tsc,
            looks,
            completion: Completion::new(),
        }
    }

    /// When its time is over, in milliseconds since 1970.
    pub fn until_ms(&self) -> Option<i64> {
        self.asked.wait.until_ms
    }

    /// Whether nobody has ended it yet.
    pub fn waits(&self) -> bool {
        self.completion.is_open()
    }

    /// Ends it because its time is over. Returns whether it was this that ended it.
    pub fn time_out(&self) -> bool {
        self.completion.settle(|| Some(Outcome::TimedOut))
    }

    /// Ends it with an error. Returns whether it was this that ended it.
    pub fn unblock(&self) -> bool {
        self.completion.settle(|| Some(Outcome::Unblocked))
    }

    /// Ends it because the client will not hear of it any more.
    pub fn give_up(&self) -> bool {
        self.completion.settle(|| Some(Outcome::Gone))
    }

    fn args(&self) -> Args<'_> {
        Args::new(&[], &self.spans, &self.asked.args)
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.asked.wait.keys.clone().map(|at| self.asked.args[at].as_slice())
    }

    /// Begins the wait: from now on writers find it in the queues of its keys, all of whose shards
    /// are held.
    fn begin(self: &Arc<Self>, cx: &mut Cx<'_>) {
        *self.record.waiter.lock() = Some(Arc::clone(self));
        // Whoever kills the client now finds the waiter; who did before is found here.
        if self.record.location.is_killed() {
            self.give_up();
        }
        for key in self.keys() {
            let key = cx.turn.key(key);
            cx.hold.shard(cx.map.shard_of(key.hash)).add_waiter(self.db, key, self.clone());
        }
    }

    /// Tries to answer it because `key` has changed or is worth a look.
    fn serve(&self, cx: &mut Cx<'_>, key: Key<'_>) -> Tried {
        let mut error = None;
        let mut came_to = ServeOutcome::Replied;
        let touch = std::mem::replace(&mut cx.turn.touch, !self.no_touch);
        let served = self.completion.settle(|| {
            let mut out = Out::default();
            let mut mine = Cx {
                turn: &mut *cx.turn,
                hold: cx.hold.reborrow(),
                map: cx.map,
                db: self.db,
                databases: cx.databases,
                hashes: &self.asked.hashes,
                bulk_bytes_max: cx.bulk_bytes_max,
                limits: cx.limits,
                random: &mut *cx.random,
                asked: None,
            };
            let mut reply = Reply::new(&mut out, self.resp3);
            let serve = self.asked.wait.serve;
            let (attempt, succeeded) =
                engine::exec::serve(serve, &mut mine, key, &self.args(), &mut reply);
            came_to = attempt;
            if attempt != ServeOutcome::Replied {
                return None;
            }
            error = (!succeeded).then(|| error_text(&out.bytes));
            Some(Outcome::Served(out))
        });
        cx.turn.touch = touch;
        if served {
            return Tried::Served { error };
        }
        let tried = self.keys().map(|own| own == key.bytes);
        Tried::Waits { sooner: self.looks.note(came_to, tried, cx.turn.unix_ms) }
    }
}

/// What came of an attempt to answer a wait.
enum Tried {
    /// It is over; with the error that is the reply.
    Served { error: Option<String> },
    /// It goes on, or is over already. Whether it is worth a look sooner than the owner knows.
    Waits { sooner: bool },
}

/// The text of an error reply.
fn error_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_prefix(b"-").unwrap_or_default()).into_owned()
}

impl Served {
    /// Counts the run as one of the waiting command, and notices a slow one.
    pub(crate) fn account(&self, worker: &mut Worker) {
        if let Some(error) = &self.error {
            worker.stats.note_error(error);
        }
        let waiter = &self.waiter;
        let tsc = self.tsc + waiter.tsc;
        let (record, failed) = (&waiter.record, self.error.is_some());
        crate::execution::dispatch::account(
            worker,
            record,
            waiter.entry,
            &waiter.args(),
            !failed,
            tsc,
        );
    }
}

impl WakeEvent {
    /// What serving took.
    pub(crate) fn tsc(&self) -> u64 {
        match self {
            Self::Served(served) => served.tsc,
            Self::Sooner(_) => 0,
        }
    }
}

/// Ends the wait of the session's client when someone has settled how: takes it out of all queues
/// and writes the reply. Returns whether there is no wait any more. For the client's owner, inside
/// the gate.
pub fn finish<R: ShardLocks>(
    worker: &mut Worker,
    session: &mut Session,
    locks: &R,
    out: &mut Out,
) -> bool {
    let Some(waiter) = session.waiter.clone() else { return true };
    let Some(outcome) = waiter.completion.take() else { return false };
    leave(worker, session, locks);
    let mark = out.mark();
    let mut reply = Reply::new(out, waiter.resp3);
    let error = match outcome {
        Outcome::Served(reply) => {
            out.append(reply);
            None
        }
        Outcome::TimedOut => {
            reply.null_array();
            Some(None)
        }
        Outcome::Unblocked => {
            let text = WaitError::Unblocked.to_string();
            reply.error(text.as_bytes());
            Some(Some(text))
        }
        Outcome::Gone => None,
    };
    if waiter.silent {
        out.truncate(mark);
    }
    if let Some(error) = error {
        Served { waiter, tsc: 0, error }.account(worker);
    }
    true
}

/// Gives up the wait of the session's client, if it has one, because it is closed. For its owner,
/// inside the gate.
pub fn give_up<R: ShardLocks>(worker: &mut Worker, session: &mut Session, locks: &R) {
    if let Some(waiter) = &session.waiter {
        waiter.give_up();
        leave(worker, session, locks);
    }
}

/// Takes a wait that is over out of all queues and forgets it.
fn leave<R: ShardLocks>(worker: &mut Worker, session: &mut Session, locks: &R) {
    let Some(waiter) = session.waiter.take() else { return };
    *session.record.waiter.lock() = None;
    let place: Arc<dyn store::Waiter> = waiter.clone();
    for key in waiter.keys() {
        let key = worker.turn.key(key);
        let shard = worker.node.map.shard_of(key.hash);
        locks.one(shard, |shard| shard.leave(waiter.db, key, &place));
    }
    worker.node.waiting.fetch_sub(1, Ordering::Relaxed);
}
