//! Choosing keys and evicting them, one after another, on a thread that holds no shard.
//!
//! ```text
//!   a shard at random that has such keys -> a sample of them -> the pool -> the best one's shard
//! ```
//!
//! The evictor never waits for a shard: it passes over one that is in use. Shards without such keys
//! are known ([`store::shard_sets`]), so one key among a thousand shards is found at once. A random
//! policy evicts where it looks and needs no pool.

use store::eviction::{EvictionChoice, EvictionOrder};
use store::shard_sets::ShardSet;
use store::{Db, Shard, Turn};

use crate::blocking;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::state::eviction_pool::{Candidate, Evictor, Pool, SlotPosition};
use crate::state::memory_limit::Limit;
use crate::state::node::Node;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Evicted,
    /// No key was evicted: the keys are in use, gone, or less suitable than they were.
    Missed,
    /// No key was evicted: commands hold the shards.
    InUse,
    /// No key may be evicted.
    NoneLeft,
}

/// Random numbers of one attempt.
#[derive(Clone, Copy)]
struct AttemptNumbers {
    /// Where a walk over slots begins.
    at: u64,
    /// Which database is looked at first.
    which: u64,
}

impl Evictor {
    /// Tries to evict one key. No shard is held.
    pub(super) fn step<L: ShardLocks>(
        &mut self,
        worker: &mut Worker,
        locks: &L,
        limit: &Limit,
        choice: EvictionChoice,
    ) -> Step {
        if self.choice != Some(choice) {
            self.pool.clear();
            self.resume = None;
            self.choice = Some(choice);
        }
        let node = &worker.node;
        let Some(shard) = self.next_shard(node, choice) else { return Step::NoneLeft };
        // The shards of the best key and of the next step are fetched meanwhile.
        if let Some(best) = self.pool.best() {
            locks.prefetch(node.map.shard_of(best.hash));
        }
        locks.prefetch(self.start);
        let draw = AttemptNumbers { at: self.random.next_u64(), which: self.random.next_u64() };
        if choice.order == EvictionOrder::Random {
            return self.evict_in(worker, locks, shard, choice, draw);
        }
        let found = self.sample(worker, locks, shard, limit.samples, choice, draw);
        if found.is_none() && self.pool.best().is_none() {
            return Step::InUse;
        }
        // Where keys that may be evicted are rare, earlier samples are not compared with later
        // ones.
        if self.resume.is_some() {
            return Step::Missed;
        }
        self.evict_best(worker, locks, choice)
    }

    /// Takes a sample into the pool: from a shard, and from later shards if it has too few keys.
    /// Returns `None` if all of them are in use.
    fn sample<L: ShardLocks>(
        &mut self,
        worker: &Worker,
        locks: &L,
        first: usize,
        samples: usize,
        choice: EvictionChoice,
        draw: AttemptNumbers,
    ) -> Option<()> {
        let (node, turn) = (&worker.node, &worker.turn);
        let set = set_of(node, choice);
        let (mut shard, mut found, mut seen) = (first, 0, None);
        for _ in 0..samples {
            let mut sampler =
                Sampler { pool: &mut self.pool, resume: &mut self.resume, set, shard, choice };
            let wanted = samples - found;
            let sample = |locked: &mut Shard| sampler.sample(locked, turn, wanted, draw);
            if let Some(here) = locks.try_one(shard, sample) {
                seen = Some(());
                found += here;
            }
            if found >= samples || self.resume.is_some() {
                break;
            }
            match set.next_from((shard + 1) % node.map.len()) {
                Some(next) if next != first => shard = next,
                _ => break,
            }
        }
        seen
    }

    /// The shard where the last walk goes on, or a random one with keys that may be evicted.
    fn next_shard(&mut self, node: &Node, choice: EvictionChoice) -> Option<usize> {
        let set = set_of(node, choice);
        match self.resume.filter(|place| set.contains(place.shard)) {
            Some(place) => Some(place.shard),
            None => {
                self.resume = None;
                let next = self.random.below(node.map.len() as u64) as usize;
                set.next_from(std::mem::replace(&mut self.start, next))
            }
        }
    }

    /// Evicts the best key of the pool that is still as good as it was.
    fn evict_best<L: ShardLocks>(
        &mut self,
        worker: &mut Worker,
        locks: &L,
        choice: EvictionChoice,
    ) -> Step {
        let mut came_of = Step::InUse;
        while let Some(Candidate { score, hash, db }) = self.pool.pop() {
            let shard = worker.node.map.shard_of(hash);
            let evicted = locks.try_one(shard, |locked| {
                blocking::expire_and_serve(worker, locks, shard, locked, |locked, turn| {
                    locked.db(db).evict(turn, choice, hash, score)
                })
            });
            match evicted {
                None => {}
                Some(None) => came_of = Step::Missed,
                Some(Some(object)) => {
                    worker.turn.lazy_free.evict(object);
                    return Step::Evicted;
                }
            }
        }
        came_of
    }

    /// Evicts any key of a shard.
    fn evict_in<L: ShardLocks>(
        &mut self,
        worker: &mut Worker,
        locks: &L,
        shard: usize,
        choice: EvictionChoice,
        draw: AttemptNumbers,
    ) -> Step {
        let resume = self.resume.take();
        let evicted = locks.try_one(shard, |locked| {
            let db = match resume {
                Some(place) => place.db,
                None => locked.random_db(draw.which, |db| db.evictable_len(choice))?.number(),
            };
            let slots = locked.db(db).slots_len().max(1) as u64;
            let start = resume.map_or((draw.at % slots) as usize, |place| place.slot);
            let came_of =
                blocking::expire_and_serve(worker, locks, shard, locked, |locked, turn| {
                    locked.db(db).evict_from(turn, choice, start)
                });
            Some(came_of.map_err(|slot| SlotPosition { shard, db, slot }))
        });
        match evicted {
            None => Step::InUse,
            Some(None) => {
                locks.try_one(shard, |locked| {
                    if locked.random_db(0, |db| db.evictable_len(choice)).is_none() {
                        set_of(&worker.node, choice).clear(shard);
                    }
                });
                Step::Missed
            }
            Some(Some(Ok(object))) => {
                worker.turn.lazy_free.evict(object);
                Step::Evicted
            }
            Some(Some(Err(place))) => {
                self.resume = Some(place);
                Step::Missed
            }
        }
    }
}

/// The shards that may have keys which may be evicted.
fn set_of(node: &Node, choice: EvictionChoice) -> &ShardSet {
    if choice.volatile { &node.shard_sets.volatile } else { &node.shard_sets.occupied }
}

/// Looks at keys of a locked shard.
struct Sampler<'a> {
    pool: &'a mut Pool,
    resume: &'a mut Option<SlotPosition>,
    set: &'a ShardSet,
    shard: usize,
    choice: EvictionChoice,
}

impl Sampler<'_> {
    /// Takes a sample into the pool. Returns how many keys it has.
    fn sample(
        &mut self,
        locked: &mut Shard,
        turn: &Turn,
        samples: usize,
        draw: AttemptNumbers,
    ) -> usize {
        let (place, choice) = (self.resume.take(), self.choice);
        let first = match place {
            Some(place) => place.db,
            None => match locked.random_db(draw.which, |db| db.evictable_len(choice)) {
                Some(db) => db.number(),
                None => {
                    self.set.clear(self.shard);
                    return 0;
                }
            },
        };
        let slot = |db: &Db| match place {
            Some(place) if place.db == db.number() => place.slot,
            _ => (draw.at % db.slots_len().max(1) as u64) as usize,
        };
        let mut found = self.sample_db(locked.db(first), turn, samples, &slot);
        for db in locked.dbs().filter(|db| db.number() != first) {
            if found >= samples {
                break;
            }
            found += self.sample_db(db, turn, samples - found, &slot);
        }
        found
    }

    fn sample_db(
        &mut self,
        db: &Db,
        turn: &Turn,
        samples: usize,
        slot: &dyn Fn(&Db) -> usize,
    ) -> usize {
        let (number, choice) = (db.number(), self.choice);
        let (found, end) = db.sample(turn, choice, slot(db), samples, |score, stored| {
            if self.pool.admits(score) {
                let hash = turn.hasher.hash(stored.key());
                self.pool.add(Candidate { score, hash, db: number });
            }
        });
        if found == 0 && db.evictable_len(choice) > 0 {
            *self.resume = Some(SlotPosition { shard: self.shard, db: number, slot: end });
        }
        found
    }
}
