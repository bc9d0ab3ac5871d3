//! Clients that are blocked on keys: BLPOP and its like.
//!
//! ```text
//!                 a writer serves it             (serve)
//!     blocked --------------------------------------------> served
//!        |  +--- its owner tries again (retry) -----------> served
//!        |  +--- its timeout, CLIENT UNBLOCK -------------> timed out, unblocked
//!        +------ it is closed or killed ------------------> gone
//! ```
//!
//! A [`Waiter`] stands in the queues of its keys (`store::waiters`) and is known by the client's
//! record. Whoever settles its [`Completion`] first decides how the wait ends, on whatever thread;
//! then the client's owner is told, and [`finish`]es it: the reply is sent, and the client goes on
//! with its next requests.
//!
//! Invariants:
//! - Looking for an element and beginning to wait are one step, under the locks of all keys.
//! - What a writer takes out of the keyspace for a waiter reaches it: the completion is settled in
//!   the same step. Whoever gives up a wait settles the completion first, so nothing is taken for
//!   it any more.
//! - The owner is told after the completion is settled and while no shard is locked. It finds the
//!   result in the waiter, wherever the client has moved meanwhile.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{BlockRequest, Cx, Error, ServeOutcome, WaitError, exec};
use resp::out::Mark;
use resp::{Args, Out, Reply, Span};
use store::{BlockedClient, Key};
use sync::completion::Completion;

use crate::clients::record::ClientRecord;
use crate::clients::session::{ReplyMode, Session};
use crate::execution::executor;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use retry::RetryTimes;

mod retry;
pub(crate) mod serve;

pub use retry::{Due, due, on_deadline};
pub use serve::after_expiry;
pub(crate) use serve::deliver;

/// How a wait ended.
#[derive(Debug)]
enum WaitEnd {
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
    /// What it waits for.
    request: BlockRequest,
    /// The request's arguments, for serving it.
    args: Vec<Arc<Vec<u8>>>,
    spans: Vec<Span>,
    /// The hashes of the request's keys, in the order of its row's positions.
    hashes: Vec<u64>,
    /// The hash of the key that serving it writes to.
    target: Option<u64>,
    /// What the request took before it began to wait.
    tsc: u64,
    retries: RetryTimes,
    completion: Completion<WaitEnd>,
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

/// What a writer, on its own thread, has to tell the owner of a blocked client.
#[derive(Debug)]
pub(crate) enum WakeEvent {
    /// The wait is over.
    Served {
        waiter: Arc<Waiter>,
        /// What serving it took, in TSC cycles.
        tsc: u64,
        /// The error that is the reply.
        error: Option<String>,
    },
    /// Its next retry is sooner than the owner knows.
    RetrySooner(Arc<Waiter>),
}

impl Waiter {
    /// Blocks the session's client: from now on writers find it in the queues of its keys, all of
    /// whose shards are locked. `tsc` is what the request has taken so far, in TSC cycles.
    pub(crate) fn begin(
        session: &Session,
        entry: &'static Entry,
        mut request: BlockRequest,
        args: &Args<'_>,
        cx: &mut Cx<'_>,
        tsc: u64,
    ) -> Arc<Self> {
        let args: Vec<_> = match request.args.take() {
            Some(args) => args.into_iter().map(Arc::new).collect(),
            None => args.to_owned_args(),
        };
        let waiter = Arc::new(Self {
            record: Arc::clone(&session.record),
            entry,
            db: session.db,
            resp3: session.resp3,
            no_touch: session.no_touch,
            silent: session.reply_mode != ReplyMode::On,
            spans: (0..args.len()).map(Span::own).collect(),
            hashes: cx.hashes.to_vec(),
            target: request.target.map(|at| cx.key(&args[at]).hash),
            retries: RetryTimes::new(&request.retry_at_ms),
            tsc,
            completion: Completion::new(),
            request,
            args,
        });
        *session.record.waiter.lock() = Some(Arc::clone(&waiter));
        // A killer that comes later finds the waiter; an earlier one is found here.
        if session.record.location.is_killed() {
            waiter.give_up();
        }
        let client = BlockedClient {
            id: waiter.record.id,
            blocked_on: waiter.request.blocked_on,
            target: waiter.target,
        };
        for key in waiter.keys() {
            let key = cx.turn.key(key);
            let shard = cx.shards.shard(cx.map.shard_of(key.hash));
            shard.add_waiter(waiter.db, key, client);
        }
        waiter
    }

    /// When its time is over, in milliseconds since 1970.
    pub fn until_ms(&self) -> Option<i64> {
        self.request.until_ms
    }

    /// Whether nobody has ended it yet.
    pub fn waits(&self) -> bool {
        self.completion.is_open()
    }

    /// Ends it because its time is over. Returns whether it was this that ended it.
    pub fn time_out(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::TimedOut))
    }

    /// Ends it with an error. Returns whether it was this that ended it.
    pub fn unblock(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::Unblocked))
    }

    /// Ends it because the client will not hear of it any more.
    pub fn give_up(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::Gone))
    }

    fn args(&self) -> Args<'_> {
        Args::new(&[], &self.spans, &self.args)
    }

    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.request.keys.clone().map(|at| self.args[at].as_slice())
    }

    /// Tries to answer it because `key` has changed or is due for a retry. `tsc` reads the TSC.
    /// Returns what its owner has to be told, if anything: a wait that goes on usually tells
    /// nothing.
    fn serve(
        self: Arc<Self>,
        cx: &mut Cx<'_>,
        key: Key<'_>,
        tsc: &dyn Fn() -> u64,
    ) -> Option<WakeEvent> {
        let start = tsc();
        let mut error = None;
        let mut outcome = ServeOutcome::Replied;
        let touch = std::mem::replace(&mut cx.turn.touch, !self.no_touch);
        let served = self.completion.settle(|| {
            let mut out = Out::default();
            let result = self.attempt(cx, key, &mut out);
            outcome = match result {
                Ok(outcome) => outcome,
                Err(failed) => {
                    out.truncate(Mark::default());
                    let text = failed.to_string();
                    Reply::new(&mut out, self.resp3).error(text.as_bytes());
                    error = Some(text);
                    ServeOutcome::Replied
                }
            };
            (outcome == ServeOutcome::Replied).then_some(WaitEnd::Served(out))
        });
        cx.turn.touch = touch;
        if served {
            return Some(WakeEvent::Served { tsc: tsc().wrapping_sub(start), error, waiter: self });
        }
        let tried = self.keys().map(|own| own == key.bytes);
        let is_sooner = self.retries.record(outcome, tried, cx.turn.unix_ms);
        is_sooner.then_some(WakeEvent::RetrySooner(self))
    }

    fn attempt(&self, cx: &mut Cx<'_>, key: Key<'_>, out: &mut Out) -> Result<ServeOutcome, Error> {
        let args = self.args();
        let mut cx = cx.for_blocked(self.db, &self.hashes);
        let result = (self.request.serve)(&mut cx, key, &args, &mut Reply::new(out, self.resp3));
        exec::seal(&mut cx, &args);
        result
    }

    /// Counts its run as one of its command, and notices a slow one.
    fn account(&self, worker: &mut Worker, tsc: u64, error: Option<&str>) {
        if let Some(error) = error {
            worker.stats.note_error(error);
        }
        let (record, tsc) = (&self.record, self.tsc + tsc);
        executor::account(worker, record, self.entry, &self.args(), error.is_none(), tsc);
    }
}

impl WakeEvent {
    /// What serving took, in TSC cycles.
    pub(crate) fn tsc(&self) -> u64 {
        match self {
            Self::Served { tsc, .. } => *tsc,
            Self::RetrySooner(_) => 0,
        }
    }
}

/// Ends a wait that has been settled: takes the client out of all queues and writes the reply.
/// Returns false while it is not settled. For the client's owner, inside the gate.
pub fn finish<L: ShardLocks>(
    worker: &mut Worker,
    waiter: &Arc<Waiter>,
    locks: &L,
    out: &mut Out,
) -> bool {
    let Some(end) = waiter.completion.take() else { return false };
    leave(worker, waiter, locks);
    let mark = out.mark();
    let mut reply = Reply::new(out, waiter.resp3);
    match end {
        // It was accounted for where it was served.
        WaitEnd::Served(reply) => out.append(reply),
        WaitEnd::TimedOut => {
            reply.null_array();
            waiter.account(worker, 0, None);
        }
        WaitEnd::Unblocked => {
            let text = WaitError::Unblocked.to_string();
            reply.error(text.as_bytes());
            waiter.account(worker, 0, Some(&text));
        }
        WaitEnd::Gone => {}
    }
    if waiter.silent {
        out.truncate(mark);
    }
    true
}

/// Gives up a wait because its client is closed. For the client's owner, inside the gate.
pub fn give_up<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) {
    waiter.give_up();
    leave(worker, waiter, locks);
}

/// Takes a client whose wait is over out of all queues.
fn leave<L: ShardLocks>(worker: &mut Worker, waiter: &Arc<Waiter>, locks: &L) {
    *waiter.record.waiter.lock() = None;
    for key in waiter.keys() {
        let key = worker.turn.key(key);
        let shard = worker.node.map.shard_of(key.hash);
        locks.one(shard, |shard| shard.leave(waiter.db, key, waiter.record.id));
    }
    worker.node.waiting.fetch_sub(1, Ordering::Relaxed);
}
