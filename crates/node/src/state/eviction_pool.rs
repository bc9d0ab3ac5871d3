//! The best of the keys that a thread has sampled and not evicted yet.
//!
//! A few samples tell little of a large keyspace; the best of all that were sampled lately come
//! closer to the best there are (antirez, "Random notes on improving the Redis LRU algorithm",
//! 2016). A key is remembered by its hash, so it may be gone by now, or used since.

use base::random::Random;
use store::eviction::EvictionChoice;

/// Keys remembered.
const LEN_MAX: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its score for eviction when it was sampled: higher scores go first.
    pub(crate) score: u64,
    pub(crate) hash: u64,
    pub(crate) db: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Pool {
    candidates: [Candidate; LEN_MAX],
    len: usize,
}

impl Pool {
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether a key with this score would be remembered.
    #[inline]
    pub(crate) fn admits(&self, score: u64) -> bool {
        self.len < LEN_MAX || score > self.candidates[0].score
    }

    /// Remembers a key; if there are too many, the one with the lowest score is forgotten.
    pub(crate) fn add(&mut self, candidate: Candidate) {
        if !self.admits(candidate.score) {
            return;
        }
        let at = self.candidates[..self.len].partition_point(|one| one.score < candidate.score);
        if self.len < LEN_MAX {
            self.candidates.copy_within(at..self.len, at + 1);
            self.candidates[at] = candidate;
            self.len += 1;
        } else {
            self.candidates.copy_within(1..at, 0);
            self.candidates[at - 1] = candidate;
        }
    }

    pub(crate) fn best(&self) -> Option<&Candidate> {
        self.candidates[..self.len].last()
    }

    pub(crate) fn pop(&mut self) -> Option<Candidate> {
        self.len = self.len.checked_sub(1)?;
        Some(self.candidates[self.len])
    }
}

/// The memory of a thread from one eviction to the next.
#[derive(Debug)]
pub(crate) struct Evictor {
    pub(crate) pool: Pool,
    pub(crate) random: Random,
    /// Where a walk goes on that has found no key: keys that may be evicted are rare there.
    pub(crate) resume: Option<SlotPosition>,
    /// Where the next step looks for a shard.
    pub(crate) start: usize,
    /// How the keys of the pool were chosen.
    pub(crate) choice: Option<EvictionChoice>,
}

/// A slot of a database's part of a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotPosition {
    pub(crate) shard: usize,
    pub(crate) db: usize,
    pub(crate) slot: usize,
}

impl Evictor {
    /// One whose samples depend on `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            pool: Pool::default(),
            random: Random::new(seed),
            resume: None,
            start: 0,
            choice: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn the_best_candidates_are_kept() {
        let (mut pool, mut random) = (Pool::default(), Random::new(7));
        for rounds in 0..100 {
            pool.clear();
            let mut scores: Vec<u64> = (0..rounds).map(|_| random.below(50)).collect();
            for score in &scores {
                pool.add(Candidate { score: *score, ..Candidate::default() });
            }
            scores.sort_unstable();
            let kept: Vec<u64> = std::iter::from_fn(|| pool.pop()).map(|one| one.score).collect();
            let best: Vec<u64> = scores.into_iter().rev().take(LEN_MAX).collect();
            assert_eq!(kept, best);
        }
    }
}
