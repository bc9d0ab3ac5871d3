//! Commands on keys that clients wait for: after the command, and under the same locks, the clients
//! are served that can be served now.
//!
//! First come first served for each key, the keys in the order in which they changed. Serving may
//! change keys itself (BLMOVE pushes what it has popped), and so feed others; it goes on until no
//! client can be served.
//!
//! No thread waits for a shard while it holds one, so all shards that serving may need are taken
//! before the command runs: those of its keys; those of the destinations of clients that wait for a
//! key which it may add to; those of the destinations of clients that wait for these; and so on.
//! That set is found by looking at the queues under the locks. When it is more than the shards
//! held, all are released and taken again with the rest; when the queues keep changing, the gate is
//! closed.

use std::collections::{BTreeSet, VecDeque};

use command::{Flags, ShardScope};
use engine::{Cx, LockedShards, ShardMap};
use store::{Lookup, Shard, Turn};

use crate::execution::outcome::Outcome;
use crate::execution::recheck::Admission;
use crate::execution::scope::ExecutionScope;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::state::waiter::{ChangedKey, WakeEvent};
use crate::state::waits::Waits;

/// Serves the clients blocked on one key of a database that has changed; later if its shard is in
/// use.
pub(crate) fn serve_key_changed<L: ShardLocks>(worker: &mut Worker, key: ChangedKey, locks: &L) {
    let (db, name) = &key;
    let outcome = try_key(worker, *db, name, locks, None);
    if worker.refusal.take().is_some() || matches!(outcome, Outcome::ShardInUse) {
        worker.deferred.changed.push(key);
    }
}

/// The shards that serving may need and that are not among those held, once the command has added
/// to keys with the hashes `fed`. An answer that is not empty may be incomplete.
///
/// A key's queue has each target once, and each queue is walked once, so this takes time in
/// proportion to the distinct targets.
pub(crate) fn missing(locked: &mut LockedShards<'_>, fed: &[u64], map: ShardMap) -> Vec<usize> {
    let mut missing = Vec::new();
    if fed.is_empty() {
        return missing;
    }
    let mut states = vec![ShardState::Unknown; map.len()];
    let mut walked = BTreeSet::new();
    let mut reached = fed.to_vec();
    while let Some(hash) = reached.pop() {
        let number = map.shard_of(hash);
        if states[number] == ShardState::Unknown {
            states[number] = if !locked.holds(number) {
                missing.push(number);
                ShardState::Leaf
            } else if locked.shard(number).has_waiters() {
                ShardState::Awaited
            } else {
                ShardState::Leaf
            };
        }
        if states[number] == ShardState::Awaited {
            let shard = locked.shard(number);
            if shard.is_awaited(hash) && walked.insert(hash) {
                reached.extend(shard.waiters().targets(hash));
            }
        }
    }
    missing
}

/// The knowledge of [`missing`] about a shard that it has reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShardState {
    Unknown,
    /// It leads to no further targets: no client is blocked in it, or it is not held.
    Leaf,
    /// Clients are blocked on some of its keys.
    Awaited,
}

/// Serves the clients blocked on one key of a database, as if it had changed. Nothing is done if
/// the outcome says that the admission was withdrawn or a shard is in use, or if the worker has a
/// reason for a refusal.
pub(super) fn try_key<L: ShardLocks>(
    worker: &mut Worker,
    db: usize,
    key: &[u8],
    locks: &L,
    admission: Option<Admission<'_>>,
) -> Outcome {
    let hash = worker.node.hasher.hash(key);
    let mut change = |worker: &mut Worker, _: LockedShards<'_>, _: &[u64]| {
        worker.turn.effects.change(Some(db), key);
        Outcome::Done
    };
    let holds = ShardScope::Keys;
    let mut scope = ExecutionScope { worker, db, locks, admission, holds };
    scope.lock_serving(&[hash], &|_| vec![hash], &mut change)
}

/// Runs a step of the walk over expired keys in a shard, and serves the clients that wait for the
/// end of a key which is gone by then. Both happen under the caller's lock, and wait for nothing;
/// the caller [delivers](Worker::deliver_wakes) the wakes when it holds no lock. Inside the gate.
pub fn expire_and_serve<L: ShardLocks, T>(
    worker: &mut Worker,
    locks: &L,
    number: usize,
    shard: &mut Shard,
    step: impl FnOnce(&mut Shard, &mut Turn) -> T,
) -> T {
    let awaited = worker.node.waits.count() != 0;
    worker.turn.effects.set_watched(awaited);
    let result = step(shard, &mut worker.turn);
    if awaited {
        let locked = LockedShards::One(number, shard);
        serve_ready(worker, 0, locks, locked, None);
        worker.turn.effects.set_watched(false);
    }
    worker.publish_changes();
    result
}

/// Serves the clients that wait for keys which have changed. The shards that [`missing`] asks for
/// are held; with `elsewhere` only some of them, and it receives the keys that need others.
pub(crate) fn serve_ready<L: ShardLocks>(
    worker: &mut Worker,
    db: usize,
    locks: &L,
    mut locked: LockedShards<'_>,
    elsewhere: Option<&mut Vec<ChangedKey>>,
) {
    let (mut parts, node, wake_events) = worker.parts(db);
    let served = wake_events.len();
    let cx = Cx::new(&mut parts, locked.reborrow(), &[]);
    let tsc = &|| locks.tsc();
    let ready = VecDeque::new();
    let mut service = Service { cx, waits: &node.waits, ready, elsewhere, tsc, wake_events };
    service.queue_changed(db);
    while let Some((db, key)) = service.ready.pop_front() {
        service.serve_key(db, &key);
    }
    worker.remember_served(served);
    worker.publish_changes();
}

impl Worker {
    /// Remembers the keys that were read for blocked clients that track keys. `first` is the index
    /// of the first client that was served. The shards are locked.
    fn remember_served(&mut self, first: usize) {
        for event in &self.wake_events[first..] {
            let WakeEvent::Served { waiter, .. } = event else { continue };
            let entry = &self.table.entries()[usize::from(waiter.command())];
            if waiter.tracks() && entry.spec.flags.has(Flags::READONLY) {
                for key in waiter.keys() {
                    let hash = self.turn.hasher.hash(key);
                    self.node.trackers.keys.remember(key, hash, waiter.record.id);
                }
            }
        }
    }
}

/// The service of blocked clients at the end of a command.
struct Service<'a> {
    cx: Cx<'a>,
    waits: &'a Waits,
    /// Keys that may serve a client.
    ready: VecDeque<ChangedKey>,
    /// Keys that are served later, when other shards are held; `None` if there is no later time.
    elsewhere: Option<&'a mut Vec<ChangedKey>>,
    tsc: &'a dyn Fn() -> u64,
    wake_events: &'a mut Vec<WakeEvent>,
}

impl Service<'_> {
    /// Adds the keys that have just changed and that clients may wait for.
    fn queue_changed(&mut self, db: usize) {
        for (other, key) in self.cx.turn.effects.take_changed() {
            let hash = self.cx.turn.key(&key).hash;
            let number = self.cx.map.shard_of(hash);
            let change = (other.unwrap_or(db), key);
            // A key that had expired, and that a command only came across, may be in any shard.
            if !self.cx.shards.holds(number) {
                self.put_off(change);
            } else if self.cx.shards.shard(number).is_awaited(hash) {
                self.ready.push_back(change);
            }
        }
    }

    fn put_off(&mut self, change: ChangedKey) {
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.push(change);
        }
    }

    /// Serves the clients that wait for one key, as long as it has elements for them.
    fn serve_key(&mut self, db: usize, name: &[u8]) {
        let cx = &mut self.cx;
        let key = cx.turn.key(name);
        let map = cx.map;
        let number = map.shard_of(key.hash);
        let mut from = 0;
        while self.cx.shards.shard(number).is_awaited(key.hash) {
            let cx = &mut self.cx;
            let (part, turn) = cx.db_at(db, key);
            let type_name =
                part.lookup(turn, key, Lookup::Quiet).map(|stored| stored.kind().type_name());
            let waiters = cx.shards.shard(number).waiters();
            let Some((at, client)) = waiters.next(db, key, from, type_name) else { return };
            from = at + 1;
            // A client whose wait has ended stays in the queue until its owner takes it out.
            let Some(waiter) = self.waits.find(client.id) else { continue };
            if client.target.is_some_and(|target| !cx.shards.try_hold(map.shard_of(target))) {
                if self.elsewhere.is_some() {
                    self.put_off((db, name.to_vec()));
                    return;
                }
                // The command took from the key, or the key has nothing for any client.
                continue;
            }
            let db = waiter.db;
            match waiter.serve(cx, key, self.tsc) {
                Some(event @ WakeEvent::Served { .. }) => {
                    cx.shards.shard(number).remove_waiter(db, key, at);
                    self.wake_events.push(event);
                    self.queue_changed(db);
                    from = at;
                }
                event => self.wake_events.extend(event),
            }
        }
    }
}
