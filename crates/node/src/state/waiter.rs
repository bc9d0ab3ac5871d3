//! One client's wait: what it waits for, how it is served, and how it ends.

use std::sync::Arc;

use engine::{BlockRequest, Cx, Error, ServeOutcome, exec};
use resp::out::Mark;
use resp::{Args, CopiedArgs, Out, Reply};
use store::{BlockedClient, BlockedOn, Key, Lookup};
use sync::completion::Completion;

use super::durability::LogWait;
use super::retry_times::RetryTimes;
use super::snapshots::{EndedBackup, Snapshots};
use super::waits::Waits;
use crate::clients::record::ClientRecord;
use crate::clients::session::{ReplyMode, Session};

/// A key that has changed, and its database.
pub(crate) type ChangedKey = (usize, Vec<u8>);

#[derive(Debug)]
pub(crate) enum WaitEnd {
    /// A writer made this reply, which is accounted for.
    Served(Out),
    /// Its timeout is over.
    TimedOut,
    /// CLIENT UNBLOCK ended it with an error.
    Unblocked,
    /// The log is durable up to the position that it waits for.
    LogReached,
    /// The log that it waits for has ended.
    LogEnded,
    /// The backup that it waits for has ended; with the reason if there is no file.
    BackupEnded(Option<String>),
    /// The rules of the client's user have changed, and deny the command with this reply.
    Denied(Error),
    /// The client is closed.
    Gone,
}

/// One client's wait.
pub struct Waiter {
    pub(crate) record: Arc<ClientRecord>,
    command: u16,
    pub(crate) db: usize,
    pub(crate) resp3: bool,
    no_touch: bool,
    /// The keys that it reads are remembered, because its client tracks keys.
    tracks: bool,
    /// It is not answered, because of CLIENT REPLY.
    pub(crate) silent: bool,
    /// The object of the wait.
    awaited: Awaited,
    args: CopiedArgs,
    /// The hashes of the request's keys, in the order of its row's positions.
    hashes: Vec<u64>,
    /// The hash of the key that serving it writes to.
    target: Option<u64>,
    /// TSC cycles of the request before it began to wait.
    pub(crate) tsc: u64,
    pub(crate) retries: RetryTimes,
    until_ms: Option<i64>,
    pub(crate) completion: Completion<WaitEnd>,
}

enum Awaited {
    /// A write to one of some keys.
    Keys(BlockRequest),
    /// Its own writes are durable.
    Log(LogWait),
    /// A snapshot with this number, which is a backup, has ended.
    Backup(u64),
}

/// The client's record is not shown, only its number.
impl std::fmt::Debug for Waiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiter")
            .field("client", &self.record.id)
            .field("keys", &self.keys().count())
            .field("completion", &self.completion)
            .finish()
    }
}

/// An event that a writer, on its own thread, sends to the owner of a blocked client.
#[derive(Debug)]
pub(crate) enum WakeEvent {
    /// The wait is over.
    Served {
        waiter: Arc<Waiter>,
        /// TSC cycles that serving it took.
        tsc: u64,
        /// The error that is the reply.
        error: Option<String>,
    },
    /// Its next retry is sooner than the owner knows.
    RetrySooner(Arc<Waiter>),
}

impl Waiter {
    /// Blocks the session's client: from now on writers find it in the queues of its keys, whose
    /// shards are all locked. `command` is its command's index in the table, `tsc` the TSC cycles
    /// of the request so far.
    pub(crate) fn begin(
        session: &Session,
        command: u16,
        waits: &Waits,
        mut request: BlockRequest,
        args: &Args<'_>,
        cx: &mut Cx<'_>,
        tsc: u64,
    ) -> Arc<Self> {
        // The duration of the wait does not depend on the system's clock.
        let until_ms = request.until_ms.map(|at_ms| at_ms.saturating_sub(cx.turn.unix_ms));
        let until_ms = until_ms.map(|wait_ms| cx.turn.steady_ms.saturating_add(wait_ms));
        let args = match request.args.take() {
            Some(args) => CopiedArgs::of(args.iter().map(Vec::as_slice)),
            None => args.copied(),
        };
        let blocked_on = request.blocked_on;
        let waiter = Arc::new(Self {
            hashes: cx.hashes.to_vec(),
            target: request.target.map(|at| cx.key(args.args().text(at)).hash),
            retries: RetryTimes::new(&request.retry_at_ms),
            ..Self::new(session, command, Awaited::Keys(request), args, until_ms, tsc)
        });
        waiter.register(session, waits);
        let client = BlockedClient { id: waiter.record.id, blocked_on, target: waiter.target };
        let mut place_bytes = 0;
        for key in waiter.keys() {
            let key = cx.turn.key(key);
            let shard = cx.shards.shard(cx.map.shard_of(key.hash));
            place_bytes += shard.add_waiter(waiter.db, key, client);
        }
        session.record.set_wait_bytes(waiter.memory_bytes() + place_bytes);
        waiter
    }

    /// Blocks the session's client until its writes are durable, at most until `until_ms` on the
    /// steady scale. `command` and `tsc` as for [`begin`](Self::begin).
    pub(crate) fn begin_for_log(
        session: &Session,
        command: u16,
        waits: &Waits,
        wait: LogWait,
        until_ms: Option<i64>,
        args: &Args<'_>,
        tsc: u64,
    ) -> Arc<Self> {
        let args = args.copied();
        let waiter = Arc::new(Self::new(session, command, Awaited::Log(wait), args, until_ms, tsc));
        waiter.register(session, waits);
        waiter
    }

    /// Blocks the session's client until a backup has ended, which it may have by now. `command`
    /// and `tsc` as for [`begin`](Self::begin).
    pub(crate) fn begin_for_backup(
        session: &Session,
        command: u16,
        waits: &Waits,
        snapshots: &Snapshots,
        number: u64,
        args: &Args<'_>,
        tsc: u64,
    ) -> Arc<Self> {
        let (awaited, args) = (Awaited::Backup(number), args.copied());
        let waiter = Arc::new(Self::new(session, command, awaited, args, None, tsc));
        waiter.register(session, waits);
        // A thread that ends the backup later finds the waiter.
        let ended = snapshots.figures.lock().ended_backup.clone();
        if let Some(ended) = ended.filter(|ended| ended.number >= number) {
            waiter.backup_ended(&ended);
        }
        waiter
    }

    fn new(
        session: &Session,
        command: u16,
        awaited: Awaited,
        args: CopiedArgs,
        until_ms: Option<i64>,
        tsc: u64,
    ) -> Self {
        Self {
            record: Arc::clone(&session.record),
            command,
            db: session.db,
            resp3: session.resp3,
            no_touch: session.no_touch,
            tracks: session.tracking.as_ref().is_some_and(|state| state.remembers()),
            silent: session.reply_mode != ReplyMode::On,
            awaited,
            args,
            hashes: Vec::new(),
            target: None,
            tsc,
            retries: RetryTimes::new(&[]),
            // A wait is no shorter than asked: the millisecond in which it began had begun before.
            until_ms: until_ms.map(|until_ms| until_ms.saturating_add(1)),
            completion: Completion::new(),
        }
    }

    fn register(self: &Arc<Self>, session: &Session, waits: &Waits) {
        waits.add(self);
        session.record.set_wait_bytes(self.memory_bytes());
        // A killer that comes later finds the waiter; an earlier one is found here.
        if session.record.location.is_killed() {
            self.give_up();
        }
    }

    /// When its timeout is over, in milliseconds on the steady scale.
    pub fn until_ms(&self) -> Option<i64> {
        self.until_ms
    }

    /// Whether it has not been ended yet.
    pub fn waits(&self) -> bool {
        self.completion.is_open()
    }

    /// Ends it because its timeout is over. Returns whether this call ended it.
    pub fn time_out(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::TimedOut))
    }

    /// Ends it with an error. Returns whether this call ended it.
    pub fn unblock(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::Unblocked))
    }

    /// The position that it waits for, if it waits for the log.
    pub fn log_wait(&self) -> Option<&LogWait> {
        match &self.awaited {
            Awaited::Keys(_) | Awaited::Backup(_) => None,
            Awaited::Log(wait) => Some(wait),
        }
    }

    /// Ends it because the log is durable up to its position. Returns whether this call ended it.
    pub fn log_reached(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::LogReached))
    }

    /// Ends it with an error because the log has ended. Returns whether this call ended it.
    pub fn log_ended(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::LogEnded))
    }

    /// Ends it if it waits for a backup that has ended. Returns whether this call ended it.
    pub(crate) fn backup_ended(&self, ended: &EndedBackup) -> bool {
        match self.awaited {
            Awaited::Backup(number) if number == ended.number => {
                self.completion.settle(|| Some(WaitEnd::BackupEnded(ended.failure.clone())))
            }
            // Another one has ended since, so its own result is unknown.
            Awaited::Backup(number) if number < ended.number => {
                let unknown = Some("see the server's log".to_owned());
                self.completion.settle(|| Some(WaitEnd::BackupEnded(unknown)))
            }
            _ => false,
        }
    }

    /// Ends it because the client is gone.
    pub fn give_up(&self) -> bool {
        self.completion.settle(|| Some(WaitEnd::Gone))
    }

    /// Ends it with an error because the rules of the client's user have changed. Returns whether
    /// this call ended it.
    pub(crate) fn deny(&self, error: Error) -> bool {
        self.completion.settle(|| Some(WaitEnd::Denied(error)))
    }

    /// Whether the keys that it reads are remembered, because its client tracks keys.
    pub(crate) fn tracks(&self) -> bool {
        self.tracks
    }

    pub(crate) fn command(&self) -> u16 {
        self.command
    }

    pub(crate) fn args(&self) -> Args<'_> {
        self.args.args()
    }

    pub(crate) fn has_several_keys(&self) -> bool {
        self.request().is_some_and(|request| request.keys.len() > 1)
    }

    fn request(&self) -> Option<&BlockRequest> {
        match &self.awaited {
            Awaited::Keys(request) => Some(request),
            Awaited::Log(_) | Awaited::Backup(_) => None,
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        let args = self.args();
        let keys = self.request().map_or(0..0, |request| request.keys.clone());
        keys.map(move |at| args.text(at))
    }

    /// The key that answers it when `key` can: `key`, or a key before it in the request whose shard
    /// is free, and which has an element for it too without a client that has waited longer, or has
    /// another type, which is an error. Redis runs the command again, and so takes the first
    /// element, even before clients that have waited longer.
    fn first_ready<'k>(&'k self, cx: &mut Cx<'_>, key: Key<'k>) -> Key<'k> {
        let Some(BlockRequest { blocked_on, .. }) = self.request() else { return key };
        let takes = matches!(blocked_on, BlockedOn::List | BlockedOn::SortedSet);
        for own in self.keys().take_while(|own| takes && *own != key.bytes) {
            let own = cx.turn.key(own);
            let number = cx.map.shard_of(own.hash);
            if !cx.shards.try_hold(number) {
                continue;
            }
            let (part, turn) = cx.db_at(self.db, own);
            let stored = part.lookup(turn, own, Lookup::Quiet);
            let Some(type_name) = stored.map(|stored| stored.kind().type_name()) else { continue };
            if !blocked_on.wants(Some(type_name)) {
                return own;
            }
            let waiters = cx.shards.shard(number).waiters();
            let first = waiters.next(self.db, own, 0, Some(type_name));
            if first.is_some_and(|(_, client)| client.id == self.record.id) {
                return own;
            }
        }
        key
    }

    /// Tries to answer it because `key` has changed or is due for a retry. `tsc` reads the TSC.
    /// Returns an event for its owner, if there is one: a wait that goes on usually has none.
    pub(crate) fn serve(
        self: Arc<Self>,
        cx: &mut Cx<'_>,
        key: Key<'_>,
        tsc: &dyn Fn() -> u64,
    ) -> Option<WakeEvent> {
        let start = tsc();
        let key = self.first_ready(cx, key);
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
                    Reply::new(&mut out, self.resp3).error(&failed.text());
                    error = Some(failed.to_string());
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

    /// Approximate bytes of memory of the wait, without its places in the queues of its keys. A
    /// queue that several clients share counts for the client that came first.
    fn memory_bytes(&self) -> usize {
        let hashes = self.hashes.capacity() * size_of::<u64>();
        size_of::<Self>() + self.args.memory_bytes() + hashes
    }

    fn attempt(&self, cx: &mut Cx<'_>, key: Key<'_>, out: &mut Out) -> Result<ServeOutcome, Error> {
        let args = self.args();
        let mut cx = cx.for_blocked(self.db, &self.hashes);
        // Other waits are in no queue of a key.
        let Some(request) = self.request() else { return Ok(ServeOutcome::Nothing) };
        let result = (request.serve)(&mut cx, key, &args, &mut Reply::new(out, self.resp3));
        exec::seal(&mut cx, &args);
        result
    }
}

impl WakeEvent {
    pub(crate) fn tsc(&self) -> u64 {
        match self {
            Self::Served { tsc, .. } => *tsc,
            Self::RetrySooner(_) => 0,
        }
    }
}
