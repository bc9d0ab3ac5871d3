//! Samples and evicts keys, in one shard's part of one database at a time.
//!
//! A sample is a run of keys from a random slot on. Slots are sorted by hash, so such a run is as
//! good as keys drawn one by one, and lies on one or two cache lines; the records are fetched in
//! parallel. If only keys with an expiry may be evicted, the walk reads the slot's bit for those
//! and touches no other record, at most [`SLOTS_MAX`] slots at a time. If such keys are rare, the
//! caller continues where the walk ended, and has seen the whole table after `slots / SLOTS_MAX`
//! steps of about 2 us each.
//!
//! The caller (`node::eviction`) decides which shard, when, and how many keys.

use crate::db::Db;
use crate::event::KeyspaceEvent;
use crate::turn::Turn;
use crate::value::stored::{Object, Stored};

/// The most keys of one sample, as `maxmemory-samples` allows.
pub const SAMPLES_MAX: usize = 64;
/// Slots that a walk looks at.
pub const SLOTS_MAX: usize = 4096;

/// The order in which keys are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionOrder {
    /// The least recently used first.
    LeastRecent,
    /// The least frequently used first.
    LeastFrequent,
    /// The first to expire first.
    SoonestExpiry,
    /// In random order.
    Random,
}

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvictionChoice {
    /// Only keys that have an expiry may be evicted.
    pub volatile: bool,
    /// Which of them to evict first.
    pub order: EvictionOrder,
}

impl EvictionChoice {
    /// How soon to evict a key: higher scores first.
    fn score(self, stored: Stored<'_>, turn: &Turn) -> u64 {
        match self.order {
            EvictionOrder::LeastRecent => stored.staleness(turn),
            EvictionOrder::LeastFrequent => stored.rarity(turn),
            EvictionOrder::SoonestExpiry => {
                let at = stored.expires_at().unwrap_or(i64::MAX);
                // Times before 1970 are the greatest.
                u64::MAX - at.wrapping_sub(i64::MIN).cast_unsigned()
            }
            EvictionOrder::Random => 0,
        }
    }
}

/// Records that are fetched in parallel.
const FETCHED_MAX: usize = 8;

/// Slots that a walk has found.
struct FoundSlots {
    slots: [usize; FETCHED_MAX],
    len: usize,
    /// Where it ended.
    end: usize,
}

impl Db {
    /// Keys that may be evicted.
    pub fn evictable_len(&self, choice: EvictionChoice) -> usize {
        if choice.volatile { self.expiring_len() } else { self.len() }
    }

    /// Visits `samples` keys from the slot `start` on, wrapping around, with their scores; fewer if
    /// there are not as many, or if they are rare. Returns the number of keys and the slot to
    /// continue at.
    pub fn sample<'a>(
        &'a self,
        turn: &Turn,
        choice: EvictionChoice,
        start: usize,
        samples: usize,
        mut visit: impl FnMut(u64, Stored<'a>),
    ) -> (usize, usize) {
        let samples = samples.min(self.evictable_len(choice)).min(SAMPLES_MAX);
        let mut left = self.table.slots_len().min(SLOTS_MAX);
        let (mut len, mut end) = (0, start % self.table.slots_len().max(1));
        while len < samples && left > 0 {
            let found = self.walk_slots(choice, end, samples - len, &mut left);
            for at in &found.slots[..found.len] {
                let stored = Stored(self.table.at(*at));
                visit(choice.score(stored, turn), stored);
            }
            len += found.len;
            end = found.end;
        }
        (len, end)
    }

    /// Finds the slots of up to `wanted` keys and prefetches their records. Subtracts the slots it
    /// reads from `left`.
    fn walk_slots(
        &self,
        choice: EvictionChoice,
        start: usize,
        wanted: usize,
        left: &mut usize,
    ) -> FoundSlots {
        let len = self.table.slots_len();
        let wanted = wanted.min(FETCHED_MAX);
        let mut found = FoundSlots { slots: [0; FETCHED_MAX], len: 0, end: start % len.max(1) };
        while found.len < wanted && *left > 0 {
            let walked = found.end..(found.end + *left).min(len);
            match self.table.first_in(walked.clone(), choice.volatile) {
                Some(at) => {
                    self.table.prefetch_at(at);
                    found.slots[found.len] = at;
                    found.len += 1;
                    *left -= at + 1 - walked.start;
                    found.end = at + 1;
                }
                None => {
                    *left -= walked.len();
                    found.end = walked.end;
                }
            }
            if found.end == len {
                found.end = 0;
            }
        }
        found
    }

    /// Evicts the key with this hash if its score is still at least `score`. Returns `Some` if it
    /// did, with the object to be dropped without a lock.
    pub fn evict(
        &mut self,
        turn: &mut Turn,
        choice: EvictionChoice,
        hash: u64,
        score: u64,
    ) -> Option<Option<Object>> {
        let hasher = turn.hasher;
        let at = self.table.find_where(hash, |record| hasher.hash(record.key()) == hash)?;
        let stored = Stored(self.table.at(at));
        let may_go = !choice.volatile || stored.expires_at().is_some();
        (may_go && choice.score(stored, turn) >= score).then(|| self.evict_at(turn, at, hash))
    }

    /// Evicts the first key from the slot `start` on. Returns its object, as [`Db::evict`] does, or
    /// the slot to continue at if it found no key.
    pub fn evict_from(
        &mut self,
        turn: &mut Turn,
        choice: EvictionChoice,
        start: usize,
    ) -> Result<Option<Object>, usize> {
        let mut left = self.table.slots_len().min(SLOTS_MAX);
        let found = self.walk_slots(choice, start, 1, &mut left);
        let Some(at) = found.slots[..found.len].first() else { return Err(found.end) };
        let hash = turn.hasher.hash(self.table.at(*at).key());
        Ok(self.evict_at(turn, *at, hash))
    }

    fn evict_at(&mut self, turn: &mut Turn, at: usize, hash: u64) -> Option<Object> {
        turn.counters.evicted += 1;
        let (event, unlink) = (KeyspaceEvent::new('e', "evicted"), turn.unlink_evicted);
        self.detach_without_command(turn, at, hash, event, unlink).into_object()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::LfuTuning;
    use crate::db::{ExpiryChange, Lookup};
    use crate::new::string::NewString;
    use base::hash::KeyHasher;

    const ALL: EvictionChoice =
        EvictionChoice { volatile: false, order: EvictionOrder::LeastRecent };
    const VOLATILE: EvictionChoice =
        EvictionChoice { volatile: true, order: EvictionOrder::SoonestExpiry };
    const START_MS: i64 = 1_700_000_000_000;

    fn turn() -> Turn {
        let mut turn = Turn::alone(KeyHasher::new(1));
        turn.set_time(START_MS * 1000);
        turn
    }

    fn put(db: &mut Db, turn: &mut Turn, name: &str, expires_at: ExpiryChange) {
        let key = turn.key(name.as_bytes());
        db.put(turn, key, NewString::Bytes(b"v"), expires_at);
    }

    /// The best of a sample, with its score.
    fn best(db: &Db, turn: &Turn, choice: EvictionChoice, start: usize) -> (u64, Vec<u8>) {
        let mut best = (0, Vec::new());
        db.sample(turn, choice, start, SAMPLES_MAX, |score, stored| {
            best = best.clone().max((score, stored.key().to_vec()));
        });
        best
    }

    #[test]
    fn samples_hold_no_key_twice_and_begin_anywhere() {
        let (mut turn, mut db) = (turn(), Db::default());
        assert_eq!(db.sample(&turn, ALL, 7, 5, |_, _| ()), (0, 0));
        for i in 0..50 {
            put(&mut db, &mut turn, &format!("k{i}"), ExpiryChange::Clear);
        }
        for start in 0..3 * db.table.slots_len() {
            let mut names = Vec::new();
            let (len, _) =
                db.sample(&turn, ALL, start, 64, |_, stored| names.push(stored.key().to_vec()));
            names.sort();
            names.dedup();
            assert_eq!((len, names.len()), (50, 50), "from {start}");
            assert_eq!(db.sample(&turn, ALL, start, 5, |_, _| ()).0, 5);
            assert_eq!(db.sample(&turn, VOLATILE, start, 5, |_, _| ()).0, 0);
        }
    }

    #[test]
    fn the_longest_unused_and_the_least_used_have_the_highest_scores() {
        let (mut turn, mut db) = (turn(), Db::default());
        for i in 0..20 {
            put(&mut db, &mut turn, &format!("k{i}"), ExpiryChange::Clear);
            turn.set_time((turn.unix_ms + 1000) * 1000);
        }
        assert_eq!(best(&db, &turn, ALL, 3), (20, b"k0".to_vec()));
        let key = turn.key(b"k0");
        db.lookup(&mut turn, key, Lookup::Read);
        let (score, name) = best(&db, &turn, ALL, 3);
        assert_eq!((score, &*name), (19, &b"k1"[..]));
        let hash = turn.key(b"k1").hash;
        // The key was used after it was sampled.
        let key = turn.key(b"k1");
        db.lookup(&mut turn, key, Lookup::Read);
        assert!(db.evict(&mut turn, ALL, hash, score).is_none());
        assert!(db.evict(&mut turn, ALL, hash, 0).is_some());
        assert!(db.evict(&mut turn, ALL, hash, 0).is_none(), "it is gone");

        turn.access.lfu = Some(LfuTuning { log_factor: 0, decay_minutes: 1 });
        let seldom = EvictionChoice { volatile: false, order: EvictionOrder::LeastFrequent };
        let mut db = Db::default();
        for i in 0..20 {
            put(&mut db, &mut turn, &format!("k{i}"), ExpiryChange::Clear);
            for _ in 0..if i == 7 { 1 } else { 5 + i } {
                let name = format!("k{i}");
                let key = turn.key(name.as_bytes());
                db.lookup(&mut turn, key, Lookup::Read);
            }
        }
        assert_eq!(best(&db, &turn, seldom, 0).1, b"k7");
    }

    #[test]
    fn a_rare_volatile_key_is_found_in_bounded_steps() {
        let (mut turn, mut db) = (turn(), Db::default());
        for i in 0..30_000 {
            put(&mut db, &mut turn, &format!("k{i}"), ExpiryChange::Clear);
        }
        put(&mut db, &mut turn, "only", ExpiryChange::At(START_MS + 5000));
        let steps_max = db.table.slots_len().div_ceil(SLOTS_MAX) + 1;
        for start in [0, 1, 17_000, 30_000] {
            let (mut at, mut steps, mut seen) = (start, 0, Vec::new());
            while seen.is_empty() {
                let (_, end) =
                    db.sample(&turn, VOLATILE, at, 5, |_, stored| seen = stored.key().to_vec());
                at = end;
                steps += 1;
                assert!(steps <= steps_max, "from {start}");
            }
            assert_eq!(seen, b"only");
        }
        let (mut at, mut steps) = (9000, 0);
        while let Err(end) = db.evict_from(&mut turn, VOLATILE, at) {
            (at, steps) = (end, steps + 1);
            assert!(steps < steps_max);
        }
        assert_eq!((db.len(), db.expiring_len()), (30_000, 0));
    }

    #[test]
    fn an_eviction_is_replayed_as_a_deletion_with_its_own_event() {
        let (mut turn, mut db) = (turn(), Db::default());
        turn.effects.set_consumed(true);
        for (unlink, command) in [(false, "DEL"), (true, "UNLINK")] {
            turn.unlink_evicted = unlink;
            put(&mut db, &mut turn, "k", ExpiryChange::Clear);
            assert!(db.evict_from(&mut turn, ALL, 5).is_ok());
            let effects = turn.effects.take();
            assert_eq!(effects[0].commands[0].args, [command.as_bytes(), b"k"]);
            assert_eq!(effects[0].events, [(KeyspaceEvent::new('e', "evicted"), b"k".to_vec())]);
            assert_eq!(effects.len(), 1);
        }
        assert_eq!((turn.counters.evicted, db.len()), (2, 0));
        // Changes by commands are counted separately.
        assert_eq!(turn.counters.changes, 2);
    }

    #[test]
    fn keys_that_expire_sooner_go_first() {
        let (mut turn, mut db) = (turn(), Db::default());
        for (name, at) in [("a", 5), ("b", -3), ("c", i64::MAX), ("d", START_MS)] {
            put(&mut db, &mut turn, name, ExpiryChange::At(at));
        }
        let mut order = Vec::new();
        while !db.is_empty() {
            let (score, name) = best(&db, &turn, VOLATILE, 0);
            let hash = turn.key(&name).hash;
            assert!(db.evict(&mut turn, VOLATILE, hash, score).is_some());
            order.extend(name);
        }
        assert_eq!(order, b"badc");
    }
}
