//! The scope in which a data command runs: its thread, its database, and the shards of its keys,
//! locked as its row asks.
//!
//! Nearly every command takes the first way out: no client is blocked on its keys, so it runs with
//! only the shards of its keys locked. A command on a key that a client is blocked on, and one that
//! may block its own client, [serves waiters](ExecutionScope::lock_serving).

use std::sync::Arc;
use std::time::Duration;

use base::hash::KeyHasher;
use command::{Access, Flags, KeySpec, ShardScope};
use engine::{LockedShards, ScriptError, ShardMap, Visited};
use resp::Args;
use store::Turn;

use super::features::Features;
use super::outcome::Outcome;
use super::recheck::{Admission, Work, if_admitted};
use super::scope_serving::serve_grown;
use super::worker::Worker;
use crate::clients::record::ClientRecord;
use crate::command_table::entry::Entry;
use crate::command_table::request::Request;
use crate::host::ShardLocks;
use crate::state::node::Node;

pub(crate) struct ExecutionScope<'a, L> {
    pub(crate) worker: &'a mut Worker,
    pub(crate) db: usize,
    pub(crate) locks: &'a L,
    /// `None`: this is not a command of a client.
    pub(crate) admission: Option<Admission<'a>>,
    /// The shards that are held until its end, besides those that serving blocked clients needs.
    /// Those of the keys, unless it performs several commands.
    pub(crate) holds: ShardScope,
}

/// Puts the numbers of the shards that a scope holds into `shards`, ascending without repetition.
/// `hashes` are those of the keys.
pub(super) fn list_shards(
    holds: ShardScope,
    shards: &mut Vec<usize>,
    hashes: &[u64],
    map: ShardMap,
) {
    shards.clear();
    if holds >= ShardScope::EachShard {
        shards.extend(0..map.len());
        return;
    }
    shards.extend(hashes.iter().map(|hash| map.shard_of(*hash)));
    shards.sort_unstable();
    shards.dedup();
}

impl<L: Features> ExecutionScope<'_, L> {
    /// Locks the shards that the command's keys and row ask for, and does `work` on them. Clients
    /// that it served are left in `worker.wake_events`.
    #[inline]
    pub(crate) fn lock_needed(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        work: Work<'_>,
    ) -> Outcome {
        if let Some(hash) = request.hash {
            return match lock_key(self.worker, self.locks, hash, &mut *work) {
                Some(outcome) => outcome,
                None => self.lock_serving(&[hash], &|_| vec![hash], work),
            };
        }
        match entry.spec.scope.with(&request.args) {
            ShardScope::EachShard | ShardScope::KeysAndFree => self.lock_each(work),
            ShardScope::Exclusive => {
                let hashes = hashes_of(self.worker, entry, &request.args);
                let outcome = self.lock_exclusive(&hashes, work);
                self.worker.hashes = hashes;
                outcome
            }
            ShardScope::Keys | ShardScope::KeysOrExclusive(_) => {
                let hashes = hashes_of(self.worker, entry, &request.args);
                let outcome = if entry.spec.flags.has(Flags::BLOCKING) {
                    let fed = |hasher: &KeyHasher| fed_by(hasher, entry, &request.args);
                    self.lock_serving(&hashes, &fed, work)
                } else {
                    self.lock_keys(&hashes, &hashes, work)
                };
                self.worker.hashes = hashes;
                outcome
            }
        }
    }

    /// Locks the shards of keys with these hashes for work that does not block and may change keys
    /// of other shards. Clients that are blocked on those are served afterwards.
    pub(crate) fn lock_growing(&mut self, hashes: &[u64], work: Work<'_>) -> Outcome {
        let outcome = self.lock_keys(hashes, hashes, work);
        self.worker.turn.effects.set_watched(false);
        self.serve_changed();
        outcome
    }

    /// Locks the shards of keys with these hashes for work that does not block. The data of keys
    /// with the hashes `unfetched` are fetched first.
    pub(crate) fn lock_keys(
        &mut self,
        hashes: &[u64],
        unfetched: &[u64],
        work: Work<'_>,
    ) -> Outcome {
        match self.lock_unawaited(hashes, unfetched, work) {
            Some(outcome) => outcome,
            None => self.lock_serving(hashes, &|_| hashes.to_vec(), work),
        }
    }

    /// Locks the shards of keys, of which those with the hashes `unfetched` are fetched first.
    /// Returns `None` if a client is blocked on one of them; then nothing was done.
    fn lock_unawaited(
        &mut self,
        hashes: &[u64],
        unfetched: &[u64],
        work: Work<'_>,
    ) -> Option<Outcome> {
        let (worker, db, locks, admission) =
            (&mut *self.worker, self.db, self.locks, self.admission);
        let (map, holds) = (worker.node.map, self.holds);
        let mut shards = std::mem::take(&mut worker.shards);
        list_shards(holds, &mut shards, hashes, map);
        if shards.len() > 1 && !unfetched.is_empty() {
            shards.iter().for_each(|shard| locks.prefetch(*shard));
        }
        let outcome = lock_all(locks, &shards, holds, |mut locked| {
            follow_time(locks, &mut worker.turn);
            if hashes.len() > 1
                && let LockedShards::Many(held) = &mut locked
            {
                // The data of all keys are fetched side by side: slots, then records.
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
                && (holds >= ShardScope::EachShard || hashes.iter().any(is_awaited));
            if awaited {
                locks.keep_turn(&shards);
                return None;
            }
            worker.turn.keys.keep();
            let outcome = if_admitted(admission, worker, locked.reborrow(), hashes, work);
            if holds != ShardScope::Keys {
                serve_grown(worker, db, locks, locked);
            }
            worker.turn.keys.publish();
            Some(outcome)
        });
        worker.shards = shards;
        outcome.unwrap_or_else(|refusal| Some(worker.refuse_for(refusal)))
    }

    /// Does the work of a command that locks one shard after another.
    fn lock_each(&mut self, work: Work<'_>) -> Outcome {
        if self.admission.is_some_and(|admission| admission.record.visits_all()) {
            self.holds = ShardScope::EachShard;
            return self.lock_growing(&[], work);
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
        // Users may have changed between two shards. The command changes nothing: it begins again.
        let outdated = self.admission.is_some_and(|it| it.is_outdated(&self.worker.node));
        if outdated {
            record.inspect(|record| record.forget_visited());
            return Outcome::Paused;
        }
        outcome
    }
}

/// Locks the shard of a command's only key. Returns `None` if a client is blocked on the key; then
/// nothing was done.
#[inline(always)]
pub(super) fn lock_key<L: ShardLocks>(
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
    outcome.unwrap_or_else(|refusal| Some(worker.refuse_for(refusal)))
}

/// Advances the time if the command had to wait: it begins when it has its shards.
#[inline]
pub(crate) fn follow_time<L: ShardLocks>(locks: &L, turn: &mut Turn) {
    if let Some(time) = locks.time_after_wait() {
        turn.advance_time(time);
    }
}

/// The hashes of the keys that a command which may block adds to. It only takes from its other
/// keys, or reads them.
fn fed_by(hasher: &KeyHasher, entry: &Entry, args: &Args<'_>) -> Vec<u64> {
    let adds = |spec: &&KeySpec| spec.access.has(Access::INSERT);
    let keys = entry.spec.keys.iter().filter(adds).flat_map(|spec| spec.positions(args));
    keys.map(|at| hasher.hash(args.text(at))).collect()
}

/// The hashes of a request's keys, in the order of their positions, in the thread's reused list.
fn hashes_of(worker: &mut Worker, entry: &Entry, args: &Args<'_>) -> Vec<u64> {
    let mut hashes = std::mem::take(&mut worker.hashes);
    hashes.clear();
    entry.push_hashes(&mut hashes, &worker.node.hasher, args);
    hashes
}

/// Locks shards, given by ascending number without repetition.
///
/// # Errors
/// A busy script holds one of them, or it stays in use. Nothing was done.
pub(super) fn lock_all<L: ShardLocks, T>(
    locks: &L,
    shards: &[usize],
    holds: ShardScope,
    work: impl FnOnce(LockedShards<'_>) -> T,
) -> Result<T, ScriptError> {
    match shards {
        [number] if holds == ShardScope::Keys => {
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
