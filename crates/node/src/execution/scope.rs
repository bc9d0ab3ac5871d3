//! The scope in which a data command runs: its thread, its database, and the shards of its keys,
//! locked as its row asks.
//!
//! Nearly every command takes the first way out: nobody is blocked on its keys, so it runs on the
//! shards of its keys alone. A command on a key that a client is blocked on, and one that may block
//! itself, runs [watched](ExecutionScope::run_watched).
//!
//! On the way of a request: the `Executor` comes before, the handler in `engine` behind.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acl::User;
use base::hash::KeyHasher;
use command::{Access, Flags, KeySpec, ShardScope};
use engine::{LockedShards, ScriptError, ShardMap, Visited};
use resp::Args;
use store::Turn;

use crate::blocking::serve_grown;
use crate::clients::record::ClientRecord;
use crate::clients::session::Session;
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::node::{Node, PAUSE_NONE};

/// What a command does on its shards, given those and the hashes of its keys. Called at most once.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut Worker, LockedShards<'_>, &[u64]) -> Outcome;

/// What a client's command, or a later attempt to answer it, was admitted under. Whoever kills the
/// client, changes users or pauses commands waits until the threads inside the gate have left it. A
/// command that leaves the gate before it begins, to close it, has to look again when it holds its
/// shards.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) record: &'a ClientRecord,
    pub(crate) may_write: bool,
    pub(crate) steady_ms: i64,
    /// The generation of users.
    pub(crate) users: u64,
    /// Whom the command runs as. None: any change of users counts.
    pub(crate) user: Option<&'a Arc<User>>,
}

impl<'a> Admission<'a> {
    /// That of a command of a client.
    pub(crate) fn of(session: &'a Session, may_write: bool, steady_ms: i64) -> Self {
        let (record, user) = (&*session.record, Some(session.user()));
        Self { record, may_write, steady_ms, users: session.users_generation(), user }
    }

    /// What comes of the command instead when it may not begin any more.
    fn withdrawn(&self, node: &Node) -> Option<Outcome> {
        if self.record.location.is_killed() {
            return Some(Outcome::Close);
        }
        if self.is_outdated(node) {
            return Some(Outcome::Paused);
        }
        let pauses = node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        (pauses && node.is_paused(self.may_write, self.steady_ms)).then_some(Outcome::Paused)
    }

    /// Whether the command must leave expired keys in place: a pause has begun since, and the
    /// keyspace does not change meanwhile.
    fn keeps_expired(&self, node: &Node) -> bool {
        let pauses = node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        pauses && !self.may_write && node.pause_left_ms(self.steady_ms) > 0
    }

    /// Whether the user has changed since. The executor knows that it has to ask for the new rules
    /// when it is told that the command is paused.
    fn is_outdated(&self, node: &Node) -> bool {
        node.users.generation() != self.users && !self.user.is_some_and(|user| is_same(node, user))
    }
}

/// Whether a user is as it was.
#[cold]
fn is_same(node: &Node, user: &Arc<User>) -> bool {
    node.users.find(user.name()).is_some_and(|now| Arc::ptr_eq(&now, user))
}

/// What comes of a command instead when it may not begin any more.
pub(crate) fn withdrawn(admission: Option<Admission<'_>>, node: &Node) -> Option<Outcome> {
    admission.and_then(|admission| admission.withdrawn(node))
}

/// Runs `work`, unless the command's admission has been withdrawn.
pub(crate) fn if_admitted(
    admission: Option<Admission<'_>>,
    worker: &mut Worker,
    locked: LockedShards<'_>,
    hashes: &[u64],
    work: Work<'_>,
) -> Outcome {
    let kept_expired = match begin_admitted(admission, worker) {
        Ok(kept_expired) => kept_expired,
        Err(outcome) => return outcome,
    };
    let outcome = work(worker, locked, hashes);
    worker.turn.keep_expired = kept_expired;
    outcome
}

/// Begins a command that is admitted, and returns how `keep_expired` of the turn is to be after it.
///
/// # Errors
/// Its admission has been withdrawn: what comes of it instead.
#[inline]
pub(crate) fn begin_admitted(
    admission: Option<Admission<'_>>,
    worker: &mut Worker,
) -> Result<bool, Outcome> {
    if let Some(outcome) = withdrawn(admission, &worker.node) {
        return Err(outcome);
    }
    let kept_expired = worker.turn.keep_expired;
    worker.turn.keep_expired |= admission.is_some_and(|it| it.keeps_expired(&worker.node));
    Ok(kept_expired)
}

/// Where a command runs.
pub(crate) struct ExecutionScope<'a, L> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) db: usize,
    pub(crate) locks: &'a L,
    /// None: this is no command of a client.
    pub(crate) admission: Option<Admission<'a>>,
    pub(crate) extent: Extent,
}

/// The shards that are locked for a command, beside those that serving blocked clients needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    /// Those of its keys.
    Keys,
    /// The same, and more while it runs.
    Growing,
    /// All.
    All,
}

impl Extent {
    /// Puts the numbers of the shards for keys with these hashes into `shards`, ascending without
    /// repetition.
    pub(crate) fn shards(self, shards: &mut Vec<usize>, hashes: &[u64], map: ShardMap) {
        shards.clear();
        if self == Self::All {
            shards.extend(0..map.len());
            return;
        }
        shards.extend(hashes.iter().map(|hash| map.shard_of(*hash)));
        shards.sort_unstable();
        shards.dedup();
    }
}

impl<L: ShardLocks> ExecutionScope<'_, L> {
    /// Locks the shards that the command's keys and row ask for, and runs it on them. Clients that
    /// it served are left in `worker.wake_events`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        work: Work<'_>,
    ) -> Outcome {
        if let Some(hash) = request.hash {
            return match run_on_key(self.worker, self.locks, hash, &mut *work) {
                Some(outcome) => outcome,
                None => self.run_watched(&[hash], &|_| vec![hash], work),
            };
        }
        match entry.spec.scope.with(&request.args) {
            ShardScope::EachShard | ShardScope::EachFree => self.run_on_each(work),
            ShardScope::Exclusive => {
                let hashes = hashes_of(self.worker, entry, &request.args);
                let outcome = self.run_exclusive(&hashes, work);
                self.worker.hashes = hashes;
                outcome
            }
            ShardScope::Keys | ShardScope::KeysOrExclusive(_) => {
                let hashes = hashes_of(self.worker, entry, &request.args);
                let outcome = if entry.spec.flags.has(Flags::BLOCKING) {
                    let fed = |hasher: &KeyHasher| fed_by(hasher, entry, &request.args);
                    self.run_watched(&hashes, &fed, work)
                } else {
                    self.run_on(&hashes, work)
                };
                self.worker.hashes = hashes;
                outcome
            }
        }
    }

    /// Runs what does not block and may change keys of other shards than those of keys with these
    /// hashes. Clients blocked on those are served afterwards.
    pub(crate) fn run_growing(&mut self, hashes: &[u64], work: Work<'_>) -> Outcome {
        let outcome = self.run_on(hashes, work);
        self.worker.turn.effects.set_watched(false);
        self.serve_changed();
        outcome
    }

    /// Runs what does not block on the shards of keys with these hashes.
    pub(crate) fn run_on(&mut self, hashes: &[u64], work: Work<'_>) -> Outcome {
        self.run_after_fetching(hashes, hashes, work)
    }

    /// The same on keys that the processor has just been asked for.
    pub(crate) fn run_on_fetched(&mut self, hashes: &[u64], work: Work<'_>) -> Outcome {
        self.run_after_fetching(hashes, &[], work)
    }

    fn run_after_fetching(&mut self, hashes: &[u64], unfetched: &[u64], work: Work<'_>) -> Outcome {
        match self.run_on_keys(hashes, unfetched, work) {
            Some(outcome) => outcome,
            None => self.run_watched(hashes, &|_| hashes.to_vec(), work),
        }
    }

    /// Runs a command on the shards of its keys, of which those with the hashes `unfetched` are
    /// fetched first. None: a client is blocked on one of them, and nothing was done.
    fn run_on_keys(
        &mut self,
        hashes: &[u64],
        unfetched: &[u64],
        work: Work<'_>,
    ) -> Option<Outcome> {
        let (worker, db, locks, admission) =
            (&mut *self.worker, self.db, self.locks, self.admission);
        let (map, extent) = (worker.node.map, self.extent);
        let mut shards = std::mem::take(&mut worker.shards);
        extent.shards(&mut shards, hashes, map);
        if shards.len() > 1 && !unfetched.is_empty() {
            shards.iter().for_each(|shard| locks.prefetch(*shard));
        }
        let outcome = lock_all(locks, &shards, extent, |mut locked| {
            follow_time(locks, &mut worker.turn);
            if hashes.len() > 1
                && let LockedShards::Many(held) = &mut locked
            {
                // What all keys need is fetched side by side: slots, then records.
                for hash in unfetched {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_slots(*hash);
                }
                for hash in unfetched {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_record(*hash);
                }
            }
            // A client that has blocked in one of these shards was counted before.
            let is_awaited = |hash: &u64| locked.shard(map.shard_of(*hash)).is_awaited(*hash);
            let awaited = worker.node.waits.count() != 0
                && (extent == Extent::All || hashes.iter().any(is_awaited));
            if awaited {
                locks.keep_turn(&shards);
                return None;
            }
            worker.turn.keys.keep();
            let outcome = if_admitted(admission, worker, locked.reborrow(), hashes, work);
            if extent != Extent::Keys {
                serve_grown((worker, db, locks), locked);
            }
            worker.turn.keys.publish();
            Some(outcome)
        });
        worker.shards = shards;
        outcome.unwrap_or_else(|refusal| Some(worker.refuse_run(refusal)))
    }

    /// Runs a command that visits one shard after another.
    fn run_on_each(&mut self, work: Work<'_>) -> Outcome {
        if self.admission.is_some_and(|admission| admission.record.visits_all()) {
            self.extent = Extent::All;
            return self.run_growing(&[], work);
        }
        let worker = &mut *self.worker;
        let node = Arc::clone(&worker.node);
        let record = self.admission.map(|admission| admission.record);
        let steady_ms = worker.turn.steady_ms;
        let access = EachShard { locks: self.locks, node: &node, record, steady_ms };
        let keeps_expired = worker.turn.keep_expired;
        worker.turn.effects.set_watched(node.waits.count() != 0);
        follow_time(self.locks, &mut worker.turn);
        let outcome = work(worker, LockedShards::Each(&access), &[]);
        worker.turn.keep_expired = keeps_expired;
        worker.turn.effects.set_watched(false);
        self.serve_changed();
        // It has made way between two shards, and changed nothing: it begins anew.
        let outdated = self.admission.is_some_and(|it| it.is_outdated(&self.worker.node));
        if outdated {
            record.inspect(|record| record.forget_visited());
            return Outcome::Paused;
        }
        outcome
    }
}

impl Worker {
    /// What comes of a command that has done nothing, because someone holds what it needs: a busy
    /// script, and whoever runs the command finds why; or a command that will soon be over.
    #[cold]
    pub(crate) fn refuse_run(&mut self, refusal: ScriptError) -> Outcome {
        if refusal == ScriptError::ShardInUse {
            return Outcome::ShardInUse;
        }
        self.refusal = Some(refusal);
        Outcome::Failed
    }
}

/// Runs a command on the shard of its only key. None: a client is blocked on the key, and nothing
/// was done.
#[inline(always)]
pub(super) fn run_on_key<L: ShardLocks>(
    worker: &mut Worker,
    locks: &L,
    hash: u64,
    work: impl FnOnce(&mut Worker, LockedShards<'_>, &[u64]) -> Outcome,
) -> Option<Outcome> {
    let number = worker.node.map.shard_of(hash);
    let outcome = locks.one(number, |shard| {
        follow_time(locks, &mut worker.turn);
        if shard.is_awaited(hash) {
            locks.keep_turn(&[number]);
            return None;
        }
        Some(work(worker, LockedShards::One(number, shard), &[hash]))
    });
    outcome.unwrap_or_else(|refusal| Some(worker.refuse_run(refusal)))
}

/// Lets the time go on if the command had to wait: it begins when it has its shards.
#[inline]
pub(crate) fn follow_time<L: ShardLocks>(locks: &L, turn: &mut Turn) {
    if let Some(time) = locks.time_after_wait() {
        turn.advance_time(time);
    }
}

/// The hashes of the keys that a command which may block adds to. From its other keys it only
/// takes or reads.
fn fed_by(hasher: &KeyHasher, entry: &Entry, args: &Args<'_>) -> Vec<u64> {
    let adds = |spec: &&KeySpec| spec.access.has(Access::INSERT);
    let keys = entry.spec.keys.iter().filter(adds).flat_map(|spec| spec.positions(args));
    keys.map(|at| hasher.hash(args.text(at))).collect()
}

/// The hashes of a request's keys, in the order of their positions, in the thread's reused list.
fn hashes_of(worker: &mut Worker, entry: &Entry, args: &Args<'_>) -> Vec<u64> {
    let mut hashes = std::mem::take(&mut worker.hashes);
    hashes.clear();
    push_hashes(&mut hashes, &worker.node.hasher, entry, args);
    hashes
}

/// Appends the hashes of a request's keys, in the order of their positions. The request has as many
/// arguments as the command needs.
pub(crate) fn push_hashes(
    hashes: &mut Vec<u64>,
    hasher: &KeyHasher,
    entry: &Entry,
    args: &Args<'_>,
) {
    if let Some(hash) = entry.single_key_hash(args, |key| hasher.hash(key)) {
        hashes.push(hash);
        return;
    }
    for spec in entry.spec.keys {
        hashes.extend(spec.positions(args).map(|at| hasher.hash(args.text(at))));
    }
}

/// Locks shards, given by ascending number without repetition.
///
/// # Errors
/// A busy script holds one of them, or it stays in use. Nothing was done.
pub(crate) fn lock_all<L: ShardLocks, T>(
    locks: &L,
    shards: &[usize],
    extent: Extent,
    work: impl FnOnce(LockedShards<'_>) -> T,
) -> Result<T, ScriptError> {
    match shards {
        [number] if extent == Extent::Keys => {
            locks.one(*number, |shard| work(LockedShards::One(*number, shard)))
        }
        shards => locks.many(shards, |held| work(LockedShards::Many(held))),
    }
}

/// The shards for a command that visits one after another.
struct EachShard<'a, L> {
    locks: &'a L,
    node: &'a Node,
    /// Of the client.
    record: Option<&'a ClientRecord>,
    /// When the command began.
    steady_ms: i64,
}

impl<L: ShardLocks> engine::ShardAccess for EachShard<'_, L> {
    fn visit(
        &self,
        shard: usize,
        work: &mut dyn FnMut(&mut store::Shard),
    ) -> Result<(), ScriptError> {
        self.locks.visit(shard, work)
    }

    fn try_visit(
        &self,
        shard: usize,
        wait: Duration,
        work: &mut dyn FnMut(&mut store::Shard),
    ) -> bool {
        self.locks.try_visit(shard, wait, work)
    }

    fn take_visited(&self) -> Option<Visited> {
        self.record.and_then(ClientRecord::take_visited)
    }

    fn keep_visited(&self, visited: Visited) {
        if let Some(record) = self.record {
            record.keep_visited(visited);
        }
    }

    fn keeps_expired(&self) -> bool {
        self.node.pause_left_ms(self.steady_ms) > 0
    }
}
