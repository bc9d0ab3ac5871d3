//! The scope in which a data command runs: its thread, its database, and the shards of its keys,
//! locked as its row asks.
//!
//! Nearly every command takes the first way out: nobody is blocked on its keys, so it runs on the
//! shards of its keys alone. A command on a key that a client is blocked on, and one that may block
//! itself, runs [watched](ExecutionScope::run_watched).
//!
//! On the way of a request: the `Executor` comes before, the handler in `engine` behind.

use std::sync::atomic::Ordering;

use base::hash::KeyHasher;
use base::random::Random;
use command::{Access, Flags, KeySpec, ShardScope};
use engine::{Cx, CxParts, LockedShards, ShardMap};
use resp::Args;
use store::Turn;

use crate::clients::record::ClientRecord;
use crate::config::Config;
use crate::execution::outcome::Outcome;
use crate::execution::request::Request;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::node::{Node, PAUSE_NONE};

/// What a command does on its shards. Called at most once.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut Cx<'_>) -> Outcome;

/// What a client's command was admitted under. Whoever kills the client or pauses commands waits
/// until the threads inside the gate have left it. A command that leaves the gate before it begins,
/// to close it, has to look again when it holds its shards.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) record: &'a ClientRecord,
    pub(crate) may_write: bool,
    pub(crate) steady_ms: i64,
}

impl Admission<'_> {
    /// What comes of the command instead when it may not begin any more.
    fn withdrawn(&self, node: &Node) -> Option<Outcome> {
        if self.record.location.is_killed() {
            return Some(Outcome::Close);
        }
        let pauses = node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        (pauses && node.is_paused(self.may_write, self.steady_ms)).then_some(Outcome::Paused)
    }
}

/// Runs `work`, unless the command's admission has been withdrawn.
pub(crate) fn if_admitted(
    admission: Option<Admission<'_>>,
    node: &Node,
    cx: &mut Cx<'_>,
    work: Work<'_>,
) -> Outcome {
    let withdrawn = admission.and_then(|admission| admission.withdrawn(node));
    withdrawn.unwrap_or_else(|| work(cx))
}

/// Where a command runs.
pub(crate) struct ExecutionScope<'a, L> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) db: usize,
    pub(crate) locks: &'a L,
    /// None: this is no command of a client.
    pub(crate) admission: Option<Admission<'a>>,
}

impl<L: ShardLocks> ExecutionScope<'_, L> {
    /// Locks the shards that the command's keys and row ask for, and runs it on them. Clients that
    /// it served are left in `worker.wake_events`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        entry: &'static Entry,
        request: Request<'_>,
        work: Work<'_>,
    ) -> Outcome {
        if let Some(hash) = request.hash {
            return match self.run_on_key(hash, work) {
                Some(outcome) => outcome,
                None => self.run_watched(&[hash], &|_| vec![hash], work),
            };
        }
        match entry.spec.scope.with(&request.args) {
            ShardScope::EachShard => self.run_on_each(work),
            ShardScope::Exclusive => self.run_exclusive(work),
            ShardScope::Keys | ShardScope::KeysOrExclusive(_) => {
                let hashes = hashes_of(self.worker, entry, &request.args);
                let may_block = entry.spec.flags.has(Flags::BLOCKING);
                let ran = if may_block { None } else { self.run_on_keys(&hashes, work) };
                let outcome = ran.unwrap_or_else(|| {
                    let fed = |hasher: &KeyHasher| match may_block {
                        true => fed_by(hasher, entry, &request.args),
                        false => hashes.clone(),
                    };
                    self.run_watched(&hashes, &fed, work)
                });
                self.worker.hashes = hashes;
                outcome
            }
        }
    }

    /// Runs a command on the shard of its only key. None: a client is blocked on the key, and
    /// nothing was done.
    #[inline]
    fn run_on_key(&mut self, hash: u64, work: Work<'_>) -> Option<Outcome> {
        let Worker { turn, random, node, config, .. } = &mut *self.worker;
        let mut parts = cx_parts((turn, random), node, config, self.db);
        self.locks.one(node.map.shard_of(hash), |shard| {
            follow_time(self.locks, parts.turn);
            if shard.is_awaited(hash) {
                return None;
            }
            Some(work(&mut Cx::new(&mut parts, LockedShards::One(shard), &[hash])))
        })
    }

    /// Runs a command on the shards of its keys. None: a client is blocked on one of them, and
    /// nothing was done.
    fn run_on_keys(&mut self, hashes: &[u64], work: Work<'_>) -> Option<Outcome> {
        let (db, locks, admission) = (self.db, self.locks, self.admission);
        let Worker { turn, random, node, config, shards, .. } = &mut *self.worker;
        let map = node.map;
        let mut parts = cx_parts((turn, random), node, config, db);
        shards_of(shards, hashes, map);
        if shards.len() > 1 {
            shards.iter().for_each(|shard| locks.prefetch(*shard));
        }
        lock_all(locks, shards, |mut locked| {
            follow_time(locks, parts.turn);
            if let LockedShards::Many(held) = &mut locked {
                // What all keys need is fetched side by side: slots, then records.
                for hash in hashes {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_slots(*hash);
                }
                for hash in hashes {
                    held.shard(map.shard_of(*hash)).db(db).prefetch_record(*hash);
                }
            }
            // A client that has blocked in one of these shards was counted before.
            let awaited = node.waits.count() != 0
                && hashes.iter().any(|hash| locked.shard(map.shard_of(*hash)).is_awaited(*hash));
            if awaited {
                return None;
            }
            let mut cx = Cx::new(&mut parts, locked.reborrow(), hashes);
            Some(if_admitted(admission, node, &mut cx, work))
        })
    }

    /// Runs a command that visits one shard after another.
    fn run_on_each(&mut self, work: Work<'_>) -> Outcome {
        let Worker { turn, random, node, config, .. } = &mut *self.worker;
        let access = EachShard { locks: self.locks, node, steady_ms: turn.steady_ms };
        let keeps_expired = turn.keep_expired;
        turn.effects.set_watched(node.waits.count() != 0);
        follow_time(self.locks, turn);
        let mut parts = cx_parts((turn, random), node, config, self.db);
        let outcome = work(&mut Cx::new(&mut parts, LockedShards::Each(&access), &[]));
        turn.keep_expired = keeps_expired;
        turn.effects.set_watched(false);
        self.serve_changed();
        outcome
    }
}

/// Lets the time go on if the command had to wait: it begins when it has its shards.
#[inline]
pub(crate) fn follow_time<L: ShardLocks>(locks: &L, turn: &mut Turn) {
    if let Some(time) = locks.time_after_wait() {
        turn.advance_time(time);
    }
}

/// The parts of a context on a database.
#[inline]
pub(crate) fn cx_parts<'a>(
    (turn, random): (&'a mut Turn, &'a mut Random),
    node: &Node,
    config: &'a Config,
    db: usize,
) -> CxParts<'a> {
    CxParts {
        turn,
        random,
        map: node.map,
        db,
        databases: node.databases,
        bulk_bytes_max: config.bulk_bytes_max() as usize,
        limits: &config.limits,
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
    for spec in entry.spec.keys {
        let keys = spec.positions(args);
        hashes.extend(keys.map(|at| worker.node.hasher.hash(args.text(at))));
    }
    hashes
}

/// Puts the numbers of the shards of these keys into `shards`, ascending without repetition.
pub(crate) fn shards_of(shards: &mut Vec<usize>, hashes: &[u64], map: ShardMap) {
    shards.clear();
    shards.extend(hashes.iter().map(|hash| map.shard_of(*hash)));
    shards.sort_unstable();
    shards.dedup();
}

/// Locks shards, given by ascending number without repetition.
pub(crate) fn lock_all<L: ShardLocks, T>(
    locks: &L,
    shards: &[usize],
    work: impl FnOnce(LockedShards<'_>) -> T,
) -> T {
    match shards {
        [shard] => locks.one(*shard, |shard| work(LockedShards::One(shard))),
        shards => locks.many(shards, |held| work(LockedShards::Many(held))),
    }
}

/// The shards for a command that visits one after another.
struct EachShard<'a, L> {
    locks: &'a L,
    node: &'a Node,
    /// When the command began.
    steady_ms: i64,
}

impl<L: ShardLocks> engine::ShardAccess for EachShard<'_, L> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut store::Shard)) {
        self.locks.visit(shard, work);
    }

    fn keeps_expired(&self) -> bool {
        self.node.pause_left_ms(self.steady_ms) > 0
    }
}
