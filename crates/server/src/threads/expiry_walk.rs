//! The order in which a thread visits its shards to remove expired keys.
//!
//! The walk never waits for a command. A shard that a command holds is postponed: to the end of the
//! tick, and after that to the next ticks. One that is found busy in many ticks gets a visit that
//! waits for its lock, but not for long; the lock is fair, so a shard that is always in use is
//! visited as well. Shards in which nothing expires are not touched.

use std::time::Duration;

/// Ticks in which a shard was busy, before the walk waits for it.
const MISSES_MAX: u32 = 10;
/// How long the walk waits for one shard, in one tick. A lock that is always in use is passed on
/// fairly within a millisecond.
const WAIT: Duration = Duration::from_millis(2);
/// Of the keys looked at, more than one in this many expired: another step is worth its time.
const EXPIRED_ONE_IN: usize = 10;

/// The result of a step in one shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepResult {
    pub looked_at: usize,
    /// Of these, removed.
    pub expired: usize,
    /// Fields of hashes removed. Other fields are not visited.
    pub fields: usize,
}

pub trait WalkedShards {
    /// Whether something in a shard may expire.
    fn may_expire(&self, shard: usize) -> bool;

    /// Does a step in a shard, for whose lock it waits no longer than `wait`. `None` if the shard
    /// is busy.
    fn step(&mut self, shard: usize, wait: Duration) -> Option<StepResult>;

    /// Whether the time for this tick is over.
    fn is_out_of_time(&mut self) -> bool;
}

/// Where a thread's walk is.
#[derive(Debug, Default)]
pub struct ExpiryWalk {
    /// Counts the visits; the next shard follows from it.
    next: usize,
    /// Shards that were busy, and in how many ticks each was; the longest first.
    busy: Vec<(usize, u32)>,
}

impl ExpiryWalk {
    /// Walks once over the shards of thread `index` out of `threads`, longer in those where many
    /// keys have expired. Returns whether its time ran out first.
    pub fn tick(
        &mut self,
        shards: &mut impl WalkedShards,
        count: usize,
        index: usize,
        threads: usize,
    ) -> bool {
        let postponed = self.busy.len();
        let mut out_of_time = false;
        for _ in 0..count.div_ceil(threads) {
            self.next = self.next.wrapping_add(1);
            let shard = (self.next.wrapping_mul(threads) + index) % count;
            if !shards.may_expire(shard) || self.busy.iter().any(|(busy, _)| *busy == shard) {
                continue;
            }
            match visit(shards, shard, Duration::ZERO) {
                Visit::Done => {}
                Visit::Busy => self.busy.push((shard, 0)),
                Visit::OutOfTime => {
                    out_of_time = true;
                    break;
                }
            }
        }
        out_of_time | self.visit_busy(shards, postponed)
    }

    /// Tries the busy shards again. The first `postponed` were busy in earlier ticks. Returns
    /// whether the time for one of them was over.
    fn visit_busy(&mut self, shards: &mut impl WalkedShards, postponed: usize) -> bool {
        let (mut may_wait, mut out_of_time) = (true, false);
        let mut nth = 0;
        self.busy.retain_mut(|(shard, misses)| {
            let waits = may_wait && nth < postponed && *misses >= MISSES_MAX;
            may_wait &= !waits;
            nth += 1;
            *misses += 1;
            let wait = if waits { WAIT } else { Duration::ZERO };
            if !shards.may_expire(*shard) {
                return false;
            }
            let visit = visit(shards, *shard, wait);
            out_of_time |= visit == Visit::OutOfTime;
            visit == Visit::Busy
        });
        out_of_time
    }
}

/// The result of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    Done,
    Busy,
    OutOfTime,
}

/// Does steps in a shard as long as they are worth it.
fn visit(shards: &mut impl WalkedShards, shard: usize, wait: Duration) -> Visit {
    loop {
        let Some(step) = shards.step(shard, wait) else { return Visit::Busy };
        let (removed, looked_at) = (step.expired + step.fields, step.looked_at + step.fields);
        if removed * EXPIRED_ONE_IN <= looked_at {
            return Visit::Done;
        }
        if shards.is_out_of_time() {
            return Visit::OutOfTime;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shards that are in use for a walk that does not wait.
    #[derive(Default)]
    struct Shards {
        expiring: Vec<usize>,
        busy: Vec<usize>,
        /// Shards in which every key has expired.
        stale: Vec<usize>,
        /// Shards as they were visited, and how long each visit would have waited.
        tried: Vec<(usize, Duration)>,
        visited: Vec<usize>,
    }

    impl WalkedShards for Shards {
        fn may_expire(&self, shard: usize) -> bool {
            self.expiring.contains(&shard)
        }

        fn step(&mut self, shard: usize, wait: Duration) -> Option<StepResult> {
            self.tried.push((shard, wait));
            if self.busy.contains(&shard) && wait.is_zero() {
                return None;
            }
            self.visited.push(shard);
            let expired = usize::from(self.stale.contains(&shard));
            Some(StepResult { looked_at: 1, expired, fields: 0 })
        }

        fn is_out_of_time(&mut self) -> bool {
            self.visited.len() >= 3
        }
    }

    #[test]
    fn only_shards_in_which_something_expires_are_visited() {
        let mut shards = Shards { expiring: vec![3, 6, 8], ..Shards::default() };
        ExpiryWalk::default().tick(&mut shards, 16, 0, 1);
        assert_eq!(shards.visited, [3, 6, 8]);
        let visited_by = |thread| {
            let mut shards = Shards { expiring: vec![3, 6, 8], ..Shards::default() };
            ExpiryWalk::default().tick(&mut shards, 16, thread, 2);
            shards.visited
        };
        assert_eq!([visited_by(0), visited_by(1)], [vec![6, 8], vec![3]]);
    }

    #[test]
    fn a_walk_reports_that_its_time_was_over() {
        let mut shards = Shards { expiring: vec![1, 2], ..Shards::default() };
        assert!(!ExpiryWalk::default().tick(&mut shards, 4, 0, 1));
        let mut shards = Shards { expiring: vec![1, 2], stale: vec![1], ..Shards::default() };
        assert!(ExpiryWalk::default().tick(&mut shards, 4, 0, 1));
        assert_eq!(shards.visited, [1, 1, 1]);
        let busy = vec![1];
        let mut shards = Shards { expiring: vec![1], stale: vec![1], busy, ..Shards::default() };
        let mut walk = ExpiryWalk::default();
        let out_of_time: Vec<bool> = (0..20).map(|_| walk.tick(&mut shards, 4, 0, 1)).collect();
        assert!(!out_of_time[0] && out_of_time.contains(&true), "after a wait for the shard");
    }

    #[test]
    fn a_busy_shard_is_tried_again_in_the_same_tick_and_in_the_next() {
        let mut walk = ExpiryWalk::default();
        let mut shards = Shards { expiring: vec![1, 2], busy: vec![1], ..Shards::default() };
        walk.tick(&mut shards, 4, 0, 1);
        let tried: Vec<usize> = shards.tried.iter().map(|(shard, _)| *shard).collect();
        assert_eq!((tried, &shards.visited), (vec![1, 2, 1], &vec![2]));
        shards.busy.clear();
        shards.visited.clear();
        walk.tick(&mut shards, 4, 0, 1);
        assert_eq!(shards.visited, [2, 1]);
        assert!(walk.busy.is_empty());
    }

    #[test]
    fn a_shard_that_is_always_busy_is_waited_for_in_the_end() {
        let mut walk = ExpiryWalk::default();
        let mut shards = Shards { expiring: vec![1, 2], busy: vec![1, 2], ..Shards::default() };
        let mut ticks = 0;
        while shards.visited.len() < 2 {
            ticks += 1;
            shards.tried.clear();
            walk.tick(&mut shards, 4, 0, 1);
            let waits = shards.tried.iter().filter(|(_, wait)| !wait.is_zero()).count();
            assert!(waits <= 1, "one wait in a tick");
            assert!(ticks < 100, "visited: {:?}", shards.visited);
        }
        assert!(ticks > MISSES_MAX, "it waits only for those that were busy for long");
        assert_eq!(shards.visited, [1, 2]);
    }

    #[test]
    fn a_shard_without_expiries_is_not_waited_for() {
        let mut walk = ExpiryWalk::default();
        let mut shards = Shards { expiring: vec![1], busy: vec![1], ..Shards::default() };
        walk.tick(&mut shards, 4, 0, 1);
        shards.expiring.clear();
        walk.tick(&mut shards, 4, 0, 1);
        assert!(walk.busy.is_empty() && shards.visited.is_empty());
    }
}
