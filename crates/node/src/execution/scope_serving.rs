//! Scopes that serve blocked clients: on keys that clients are blocked on, and for commands that
//! stop all others.
//!
//! No thread waits for a shard while it holds one, so the shards that serving may need are all
//! taken before the command runs (`blocking/serve.rs` says which these are). When they are more
//! than those held, all are released and taken again with the rest; when the queues keep changing,
//! the gate is closed.

use base::hash::KeyHasher;
use command::ShardScope;
use engine::LockedShards;

use super::features::Features;
use super::outcome::Outcome;
use super::recheck::{Work, if_admitted, withdrawn};
use super::scope::{ExecutionScope, follow_time, list_shards, lock_all};
use super::worker::Worker;

/// How often a command takes its shards again because more are needed, before it stops all others.
const ROUNDS_MAX: usize = 8;

impl<L: Features> ExecutionScope<'_, L> {
    /// Locks the shards of a command's keys, and serves the clients blocked on them after its work,
    /// which may block its own client. `fed` gives the hashes of those keys that it may add
    /// something to.
    #[inline(never)]
    pub(crate) fn lock_serving(
        &mut self,
        hashes: &[u64],
        fed: &dyn Fn(&KeyHasher) -> Vec<u64>,
        work: Work<'_>,
    ) -> Outcome {
        let (worker, db, locks, admission) =
            (&mut *self.worker, self.db, self.locks, self.admission);
        let (map, holds) = (worker.node.map, self.holds);
        let mut shards = Vec::new();
        list_shards(holds, &mut shards, hashes, map);
        // A client that waits for several keys is answered from all of them whose shards are free.
        let looks_further = worker.node.waits.any_for_several_keys();
        let lock_as = if looks_further { holds.max(ShardScope::KeysAndFree) } else { holds };
        // Fails with shards that have to be locked as well.
        let mut attempt = |mut locked: LockedShards<'_>| {
            // A client that has blocked in one of these shards was counted before.
            let awaited = worker.node.waits.count() != 0;
            if awaited && !matches!(locked, LockedShards::All(_)) {
                let missing = L::shards_to_serve(&mut locked, &fed(&worker.node.hasher), map);
                if !missing.is_empty() {
                    return Err(missing);
                }
            }
            follow_time(locks, &mut worker.turn);
            worker.turn.effects.set_watched(awaited);
            worker.turn.keys.keep();
            let outcome = if_admitted(admission, worker, locked.reborrow(), hashes, work);
            if holds != ShardScope::Keys {
                serve_grown(worker, db, locks, locked);
            } else if awaited {
                L::serve_waiters(worker, db, locks, locked, None);
            }
            worker.turn.effects.set_watched(false);
            worker.turn.keys.publish();
            Ok(outcome)
        };
        for _ in 0..ROUNDS_MAX {
            match lock_all(locks, &shards, lock_as, &mut attempt) {
                Ok(Ok(outcome)) => return outcome,
                Ok(Err(missing)) => {
                    locks.keep_turn(&shards);
                    shards.extend(missing);
                }
                Err(refusal) => return worker.refuse_for(refusal),
            }
            shards.sort_unstable();
            shards.dedup();
        }
        // While a slow command runs it begins again, so that no other client waits for that.
        if !locks.may_stop_others() {
            return Outcome::ShardInUse;
        }
        match locks.exclusive(|all| attempt(LockedShards::All(all))) {
            Ok(outcome) => outcome.unwrap_or(Outcome::Failed),
            Err(refusal) => worker.refuse_for(refusal),
        }
    }

    /// Locks all shards while no other command runs, and serves every client that can be served
    /// then. While a slow command runs it is deferred, so that no other client waits for that.
    pub(crate) fn lock_exclusive(&mut self, hashes: &[u64], work: Work<'_>) -> Outcome {
        if !self.locks.may_stop_others() {
            return Outcome::ShardInUse;
        }
        let (worker, db, locks, admission) =
            (&mut *self.worker, self.db, self.locks, self.admission);
        let outcome = locks.exclusive(|all| {
            follow_time(locks, &mut worker.turn);
            if let Some(outcome) = withdrawn(admission, &worker.node) {
                return outcome;
            }
            let locked = LockedShards::All(all);
            worker.turn.keys.keep();
            let outcome = if_admitted(admission, worker, locked, hashes, work);
            if worker.node.waits.count() != 0 {
                worker.turn.effects.set_watched(true);
                worker.turn.advance_time(locks.time());
                worker.mark_awaited_changed(&mut LockedShards::All(all));
                L::serve_waiters(worker, db, locks, LockedShards::All(all), None);
                worker.turn.effects.set_watched(false);
            }
            worker.turn.keys.publish();
            outcome
        });
        outcome.unwrap_or_else(|refusal| worker.refuse_for(refusal))
    }

    /// Serves the clients blocked on keys that have changed under other locks than those held now:
    /// expired ones, which concern only clients that wait for a key's end.
    pub(super) fn serve_changed(&mut self) {
        for (db, key) in self.worker.turn.effects.take_changed() {
            L::serve_changed_key(self.worker, (db.unwrap_or(0), key), self.locks);
        }
    }
}

/// Serves the clients that wait for keys which a transaction or script has changed, on the shards
/// that it holds in the end. Keys that need others are noted as changed again, for
/// [`serve_changed`](ExecutionScope::serve_changed).
pub(super) fn serve_grown<L: Features>(
    worker: &mut Worker,
    db: usize,
    locks: &L,
    locked: LockedShards<'_>,
) {
    if worker.turn.effects.has_changed() {
        // A key that expires meanwhile is served to no client.
        worker.turn.advance_time(locks.time());
        let mut elsewhere = Vec::new();
        L::serve_waiters(worker, db, locks, locked, Some(&mut elsewhere));
        for (db, key) in elsewhere {
            worker.turn.effects.change(Some(db), &key);
        }
    }
}

impl Worker {
    /// Notes every key that clients are blocked on as changed, because whole databases have: by
    /// FLUSHALL, FLUSHDB or SWAPDB. All shards are held.
    pub(crate) fn mark_awaited_changed(&mut self, locked: &mut LockedShards<'_>) {
        for number in 0..self.node.map.len() {
            let shard = locked.shard(number);
            if shard.has_waiters() {
                for (db, key) in shard.waiters().keys() {
                    self.turn.effects.change(Some(db), key.bytes);
                }
            }
        }
    }
}
