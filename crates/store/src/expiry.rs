//! Active expiry: removes expired keys that no command looks up.
//!
//! Each database keeps a position in its table. A step walks on from there, looks at records that
//! have an expiry, and removes the expired ones. The caller decides how often and how long: if many
//! of the keys had expired, looking at more is worthwhile.
//!
//! The position is a hash position and not a slot, because growing or shrinking the table moves
//! every slot. So a full walk, from the beginning to a wrap, meets each record that had expired
//! when the walk began, whatever happens to the table between the steps.

use crate::db::Db;
use crate::turn::Turn;
use crate::value::stored::Stored;

/// The result of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryStep {
    /// Keys with an expiry that the step looked at.
    pub looked_at: usize,
    /// Keys that the step removed.
    pub expired: usize,
    /// The walk reached the end of the table and starts again.
    pub wrapped: bool,
}

impl Db {
    /// Looks at `keys_max` keys that have an expiry, and at the few more that share the last one's
    /// home slot.
    pub fn expire_step(&mut self, turn: &mut Turn, keys_max: usize) -> ExpiryStep {
        let mut ttls_ms = 0.0;
        let step = self.walk_step(turn, keys_max, &mut ttls_ms);
        let living = step.looked_at - step.expired;
        if living > 0 {
            let all = self.table.expiring_len();
            self.key_index.note_ttls(ttls_ms / living as f64, living, all);
        }
        step
    }

    /// The mean time to live of keys with an expiry, in milliseconds, as far as steps have seen; 0
    /// before the first step.
    pub fn mean_ttl_ms(&self) -> f64 {
        self.key_index.mean_ttl_ms()
    }

    /// Makes a step, and adds the remaining times to live of the keys it leaves to `ttls_ms`.
    fn walk_step(&mut self, turn: &mut Turn, keys_max: usize, ttls_ms: &mut f64) -> ExpiryStep {
        let mut step = ExpiryStep::default();
        // The walk goes home by home, and the first slot of a home has the home's number.
        let mut home = self.table.home_of(self.key_index.walk_at());
        let mut at = home;
        while let Some(next) = self.next_expiring(at) {
            let next_home = self.table.home_at(next);
            if next_home < home {
                // The record stands after its own home, which an earlier step has finished.
                at = next + 1;
                continue;
            }
            if next_home > home && step.looked_at >= keys_max {
                self.key_index.set_walk_at(self.table.position_of(next_home));
                return step;
            }
            home = next_home;
            step.looked_at += 1;
            let stored = Stored(self.table.at(next));
            if !stored.is_expired(turn) {
                let expires_at = stored.expires_at().unwrap_or(turn.unix_ms);
                *ttls_ms += expires_at.saturating_sub(turn.unix_ms) as f64;
                at = next + 1;
                continue;
            }
            step.expired += 1;
            let (position, slots) = (self.table.position_of(home), self.table.slots_len());
            self.expire(turn, next);
            // The next record moved into this slot, unless the whole table was rebuilt.
            at = next;
            if self.table.slots_len() != slots {
                home = self.table.home_of(position);
                at = home;
            }
        }
        self.key_index.set_walk_at(0);
        step.wrapped = true;
        step
    }

    fn next_expiring(&self, at: usize) -> Option<usize> {
        if self.table.expiring_len() == 0 { None } else { self.table.next_expiring(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::ExpiryChange;
    use crate::new::string::NewString;
    use base::hash::KeyHasher;
    use proptest::prelude::*;

    const NOW_MS: i64 = 1_000_000;

    fn put(db: &mut Db, turn: &mut Turn, name: &str, expires_at: ExpiryChange) {
        let key = turn.key(name.as_bytes());
        db.put(turn, key, NewString::Bytes(b"v"), expires_at);
    }

    fn names(db: &Db, turn: &Turn) -> Vec<String> {
        let mut names = Vec::new();
        db.scan(turn, 0, usize::MAX, &mut |stored| {
            names.push(String::from_utf8_lossy(stored.key()).into_owned());
        });
        names.sort();
        names
    }

    proptest! {
        #[test]
        fn one_walk_finds_all_expired_keys(
            seed: u64,
            dead in 0usize..1500,
            alive in 0usize..200,
            plain in 0usize..200,
            keys_max in 1usize..40,
            churn in 0usize..60,
        ) {
            let mut turn = Turn::alone(KeyHasher::new(seed));
            turn.set_time(NOW_MS * 1000);
            let mut db = Db::default();
            for i in 0..dead {
                // A put looks for the key first, so the past must be set afterwards.
                put(&mut db, &mut turn, &format!("dead{i}"), ExpiryChange::At(NOW_MS + 5));
            }
            for i in 0..alive {
                put(&mut db, &mut turn, &format!("alive{i}"), ExpiryChange::At(NOW_MS + 1000));
            }
            for i in 0..plain {
                put(&mut db, &mut turn, &format!("plain{i}"), ExpiryChange::Clear);
            }
            turn.set_time((NOW_MS + 6) * 1000);
            let (mut expired, mut steps) = (0, 0);
            loop {
                let step = db.expire_step(&mut turn, keys_max);
                expired += step.expired;
                steps += 1;
                prop_assert!(step.looked_at >= keys_max || step.wrapped);
                if step.wrapped {
                    break;
                }
                // Other keys grow the table and shrink it again between the steps.
                for i in 0..churn {
                    let name = format!("churn{}", (steps / 8 * 31 + i) % 300);
                    let key = turn.key(name.as_bytes());
                    if !db.remove(&mut turn, key) {
                        put(&mut db, &mut turn, &name, ExpiryChange::At(NOW_MS + 2000));
                    }
                }
                prop_assert!(steps < 20_000, "the walk goes on");
            }
            prop_assert_eq!(expired, dead);
            prop_assert_eq!(turn.counters.expired, dead as u64);
            let left = names(&db, &turn);
            prop_assert!(left.iter().all(|name| !name.starts_with("dead")));
            let kept = left.iter().filter(|name| !name.starts_with("churn")).count();
            prop_assert_eq!(kept, alive + plain);
            prop_assert_eq!(db.len(), left.len());
        }
    }

    #[test]
    fn the_mean_time_to_live_follows_the_keys() {
        let mut turn = Turn::alone(KeyHasher::new(1));
        turn.set_time(NOW_MS * 1000);
        let mut db = Db::default();
        assert_eq!(db.mean_ttl_ms(), 0.0);
        for i in 0..1000 {
            let expires_at = ExpiryChange::At(NOW_MS + 5000 + i % 10 * 1000);
            put(&mut db, &mut turn, &format!("k{i}"), expires_at);
        }
        put(&mut db, &mut turn, "dead", ExpiryChange::At(NOW_MS + 1));
        turn.set_time((NOW_MS + 1000) * 1000);
        for _ in 0..200 {
            db.expire_step(&mut turn, 20);
        }
        assert!((8000.0..9000.0).contains(&db.mean_ttl_ms()), "{}", db.mean_ttl_ms());
        turn.set_time((NOW_MS + 3000) * 1000);
        // To the end of the table, and then through all of it.
        db.expire_step(&mut turn, usize::MAX);
        db.expire_step(&mut turn, usize::MAX);
        assert!((db.mean_ttl_ms() - 6500.0).abs() < 1e-6, "{}", db.mean_ttl_ms());
    }

    #[test]
    fn a_walk_without_expiring_keys_wraps_at_once() {
        let mut turn = Turn::alone(KeyHasher::new(1));
        let mut db = Db::default();
        let wrapped = ExpiryStep { wrapped: true, ..ExpiryStep::default() };
        assert_eq!(db.expire_step(&mut turn, 10), wrapped);
        put(&mut db, &mut turn, "k", ExpiryChange::Clear);
        assert_eq!(db.expire_step(&mut turn, 10), wrapped);
        assert_eq!(db.len(), 1);
    }

    #[test]
    fn expired_and_evicted_keys_are_replayed_as_configured() {
        let mut turn = Turn::alone(KeyHasher::new(1));
        turn.effects.set_consumed(true);
        turn.set_time(NOW_MS * 1000);
        let mut db = Db::default();
        for (unlink, command) in [(false, "DEL"), (true, "UNLINK")] {
            turn.unlink_expired = unlink;
            put(&mut db, &mut turn, "k", ExpiryChange::At(NOW_MS - 1));
            assert_eq!(db.expire_step(&mut turn, 10).expired, 1);
            let effects = turn.effects.take();
            assert_eq!(effects.len(), 1);
            assert_eq!(effects[0].commands[0].args, [command.as_bytes(), b"k"]);
        }
    }
}
