//! Commands on keys that someone waits for: after the command, and under the same locks, those are
//! served for whom there is something now.
//!
//! First come first served for each key, the keys in the order in which they changed. Serving may
//! change keys itself (BLMOVE pushes what it has popped), and so feed others; it goes on until
//! nobody is ready.
//!
//! Nobody waits for a shard while holding one, so the shards that serving may need are all taken
//! before the command runs: those of its keys; of the destinations of those who wait for them; of
//! the destinations of those who wait for these; and so on. That set is found by looking at the
//! queues under the locks. When it is more than what is held, everything is let go and taken again
//! with the rest; when the queues keep changing, the world is stopped.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::{Cx, LockedShards, ShardMap};

use super::{Served, Tried, Waiter, WakeEvent};
use crate::clients::session::Session;
use crate::execution::scope::{ExecutionScope, Ran, Work, hold};
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::host::{Host, ShardLocks};
use crate::node::Node;

/// How often a command takes its shards anew because more are needed, before it stops the world.
const ROUNDS_MAX: usize = 8;

/// A key that has changed, and its database.
type Changed = (usize, Vec<u8>);

/// The client that runs a command, which may wait if it is given.
#[derive(Clone, Copy)]
struct Asker<'a> {
    session: &'a Session,
    entry: &'static Entry,
}

/// Puts the numbers of the shards of these keys into `shards`, ascending without repetition.
pub(crate) fn shards_of(shards: &mut Vec<usize>, hashes: &[u64], map: ShardMap) {
    shards.clear();
    shards.extend(hashes.iter().map(|hash| map.shard_of(*hash)));
    shards.sort_unstable();
    shards.dedup();
}

/// Runs a command on its keys' shards and serves those who wait for them. It may wait itself.
#[inline(never)]
pub(crate) fn run_on_keys<R: ShardLocks>(
    worker: &mut Worker,
    session: &Session,
    entry: &'static Entry,
    hashes: &[u64],
    locks: &R,
    work: Work<'_>,
) -> Ran {
    run(worker, session.db, Some(Asker { session, entry }), hashes, locks, work)
}

fn run<R: ShardLocks>(
    worker: &mut Worker,
    db: usize,
    asker: Option<Asker<'_>>,
    hashes: &[u64],
    locks: &R,
    work: Work<'_>,
) -> Ran {
    let map = worker.node.map;
    let start = worker.last_tsc;
    let mut shards = Vec::new();
    shards_of(&mut shards, hashes, map);
    let node = Arc::clone(&worker.node);
    let means = (&mut worker.turn, &mut worker.random);
    let mut scope = ExecutionScope::new(means, &node, &worker.config, db);
    let (wake_events, waiter) = (&mut worker.wake_events, &mut worker.waiter);
    let tsc = || locks.tsc();
    let mut attempt = |mut hold: LockedShards<'_>, held: Option<&[usize]>| {
        if let Some(held) = held {
            let missing = missing(&mut hold, hashes, held, map);
            if !missing.is_empty() {
                return Err(missing);
            }
        }
        scope.turn.effects.set_watched(true);
        let mut asked = None;
        let may_wait = asker.is_some();
        let mut cx = scope.cx(hold.reborrow(), hashes, may_wait.then_some(&mut asked));
        let mut ran = Ran::watched(work(&mut cx));
        let asked = cx.asked.take().and_then(Option::take);
        if let (Some(asked), Some(Asker { session, entry })) = (asked, asker) {
            let spent = tsc().wrapping_sub(start);
            let new = Arc::new(Waiter::new(session, entry, asked, &cx, spent));
            // Counted before its shards are let go: who looks into them later sees the count.
            node.waiting.fetch_add(1, Ordering::Relaxed);
            new.begin(&mut cx);
            *waiter = Some(new);
            ran = Ran::Waits;
        }
        serve_ready(&mut cx, VecDeque::new(), held, &tsc, wake_events);
        cx.turn.effects.set_watched(false);
        Ok(ran)
    };
    for _ in 0..ROUNDS_MAX {
        match hold(locks, &shards, |hold| attempt(hold, Some(&shards))) {
            Ok(ran) => return ran,
            Err(missing) => shards.extend(missing),
        }
        shards.sort_unstable();
        shards.dedup();
    }
    let ran = locks.exclusive(|whole| attempt(LockedShards::Many(whole), None));
    ran.unwrap_or(Ran::FailedWatched)
}

/// The shards that serving may need and that are not among those held. An answer that is not empty
/// may be incomplete.
fn missing(
    hold: &mut LockedShards<'_>,
    hashes: &[u64],
    held: &[usize],
    map: ShardMap,
) -> Vec<usize> {
    let mut missing = Vec::new();
    let mut reached = hashes.to_vec();
    let mut at = 0;
    while let Some(hash) = reached.get(at).copied() {
        at += 1;
        let number = map.shard_of(hash);
        if held.binary_search(&number).is_err() {
            missing.push(number);
            continue;
        }
        let shard = hold.shard(number);
        if shard.is_awaited(hash) {
            for target in shard.waiters().targets(hash) {
                if !reached.contains(&target) {
                    reached.push(target);
                }
            }
        }
    }
    missing
}

/// Runs a command on the whole world, and serves everyone for whom there is something then.
pub(crate) fn run_exclusive<R: ShardLocks>(
    worker: &mut Worker,
    db: usize,
    locks: &R,
    work: Work<'_>,
) -> Ran {
    let node = Arc::clone(&worker.node);
    let means = (&mut worker.turn, &mut worker.random);
    let mut scope = ExecutionScope::new(means, &node, &worker.config, db);
    let wake_events = &mut worker.wake_events;
    locks.exclusive(|whole| {
        let succeeded = work(&mut scope.cx(LockedShards::Each(&*whole), &[], None));
        if node.waiting() != 0 {
            scope.turn.effects.set_watched(true);
            let mut cx = scope.cx(LockedShards::Many(whole), &[], None);
            let mut awaited = VecDeque::new();
            for number in 0..node.map.len() {
                let keys = cx.hold.shard(number).waiters().keys();
                awaited.extend(keys.map(|(db, key)| (db, key.bytes.to_vec())));
            }
            serve_ready(&mut cx, awaited, None, &|| locks.tsc(), wake_events);
            cx.turn.effects.set_watched(false);
        }
        Ran::watched(succeeded)
    })
}

/// Runs something that may change keys anywhere, and remembers those keys if anybody waits; for
/// [`wake_changed`].
pub(crate) fn watching<T>(
    scope: &mut ExecutionScope<'_>,
    node: &Node,
    work: impl FnOnce(&mut ExecutionScope<'_>) -> T,
) -> T {
    scope.turn.effects.set_watched(node.waiting() != 0);
    let result = work(scope);
    scope.turn.effects.set_watched(false);
    result
}

/// Serves those who wait for keys that have changed under other locks than those held now: expired
/// ones, which concern those alone who wait for a key's end.
pub(crate) fn wake_changed<R: ShardLocks>(worker: &mut Worker, locks: &R) {
    for (db, key) in worker.turn.effects.take_changed() {
        try_key(worker, db.unwrap_or(0), &key, locks);
    }
}

/// Serves those who wait for one key, as if it had changed.
pub(super) fn try_key<R: ShardLocks>(worker: &mut Worker, db: usize, key: &[u8], locks: &R) {
    let hash = worker.node.hasher.hash(key);
    let mut again = |cx: &mut Cx<'_>| {
        cx.turn.effects.change(Some(db), key);
        true
    };
    run(worker, db, None, &[hash], locks, &mut again);
}

/// Runs a step of the walk over expired keys, and tells those who wait for the end of a key that it
/// is gone. `step` may lock shards, none of which may be held when it returns. Inside the gate.
pub fn after_expiry<R: ShardLocks, T>(
    worker: &mut Worker,
    locks: &R,
    host: &dyn Host,
    step: impl FnOnce(&mut store::Turn) -> T,
) -> T {
    worker.turn.effects.set_watched(worker.node.waiting() != 0);
    let result = step(&mut worker.turn);
    worker.turn.effects.set_watched(false);
    wake_changed(worker, locks);
    deliver(worker, host);
    result
}

/// Tells owners the news of their waits. No shard is held.
pub(crate) fn deliver(worker: &mut Worker, host: &dyn Host) {
    for wake_events in std::mem::take(&mut worker.wake_events) {
        let waiter = match &wake_events {
            WakeEvent::Served(served) => {
                served.account(worker);
                &served.waiter
            }
            WakeEvent::Sooner(waiter) => waiter,
        };
        host.wake_client(&waiter.record);
    }
}

/// Serves those who wait for keys that have changed. All shards are held, or at least those `held`
/// by number that [`missing`] asks for.
fn serve_ready(
    cx: &mut Cx<'_>,
    mut ready: VecDeque<Changed>,
    held: Option<&[usize]>,
    tsc: &dyn Fn() -> u64,
    wake_events: &mut Vec<WakeEvent>,
) {
    let mine = cx.db;
    queue_changed(cx, mine, held, &mut ready);
    while let Some((db, key)) = ready.pop_front() {
        serve_key(cx, (db, &key), held, &mut ready, tsc, wake_events);
    }
}

/// Adds those of the keys that have changed just now for which someone may wait.
fn queue_changed(
    cx: &mut Cx<'_>,
    db: usize,
    held: Option<&[usize]>,
    ready: &mut VecDeque<Changed>,
) {
    for (other, key) in cx.turn.effects.take_changed() {
        let hash = cx.turn.key(&key).hash;
        let number = cx.map.shard_of(hash);
        // A key that a command only came across, and that had expired, may lie anywhere.
        if held.is_none_or(|held| held.binary_search(&number).is_ok())
            && cx.hold.shard(number).is_awaited(hash)
        {
            ready.push_back((other.unwrap_or(db), key));
        }
    }
}

/// Serves those who wait for one key, as long as it has something for them.
fn serve_key(
    cx: &mut Cx<'_>,
    (db, key): (usize, &[u8]),
    held: Option<&[usize]>,
    ready: &mut VecDeque<Changed>,
    tsc: &dyn Fn() -> u64,
    wake_events: &mut Vec<WakeEvent>,
) {
    let key = cx.turn.key(key);
    let number = cx.map.shard_of(key.hash);
    let mut from = 0;
    while cx.hold.shard(number).is_awaited(key.hash) {
        let (part, turn) = cx.db_at(db, key);
        let type_name = part.stored(turn, key).map(|stored| stored.kind().type_name());
        let waiters = cx.hold.shard(number).waiters();
        let Some((at, waiter)) = waiters.next(db, key, from, type_name) else { return };
        let waiter: Arc<dyn Any + Send + Sync> = waiter;
        let Ok(waiter) = waiter.downcast::<Waiter>() else { return };
        let start = tsc();
        match waiter.serve(cx, key) {
            Tried::Served { error } => {
                cx.hold.shard(number).remove_waiter(db, key, at);
                queue_changed(cx, waiter.db, held, ready);
                let tsc = tsc().wrapping_sub(start);
                wake_events.push(WakeEvent::Served(Served { waiter, tsc, error }));
                from = at;
            }
            Tried::Waits { sooner } => {
                from = at + 1;
                if sooner {
                    wake_events.push(WakeEvent::Sooner(waiter));
                }
            }
        }
    }
}
