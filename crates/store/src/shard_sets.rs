//! Facts about all shards that need no lock: which have keys, which have keys or fields that
//! expire, and whether any client tracks keys.
//!
//! Each set has one bit for each shard, on a few cache lines that are rarely written. A command
//! that adds such a key sets the shard's bit; a walk that finds no such key left clears it. Both
//! hold the shard's lock. So while a shard is unlocked, a clear bit means that it has no such key;
//! a set bit may be out of date, which costs the reader a visit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Sets of shards.
#[derive(Debug)]
pub struct ShardSets {
    /// With keys, in any database.
    pub occupied: ShardSet,
    /// With keys that have an expiry.
    pub volatile: ShardSet,
    /// With keys or fields of hashes that have an expiry.
    pub expiring: ShardSet,
    /// Whether any client tracks keys.
    tracked: AtomicBool,
}

impl ShardSets {
    /// Empty sets of `shards` shards, a power of two.
    pub fn new(shards: usize) -> Self {
        let empty = || ShardSet::new(shards);
        let tracked = AtomicBool::new(false);
        Self { occupied: empty(), volatile: empty(), expiring: empty(), tracked }
    }

    /// Whether changes of keys are [recorded](crate::Effects::take_touched) for tracking clients.
    ///
    /// Relaxed is enough: a client turns tracking on before it reads its first key. A later change
    /// of that key is made under the same lock, after the read, and so sees it.
    #[inline]
    pub fn are_tracked(&self) -> bool {
        self.tracked.load(Ordering::Relaxed)
    }

    /// Sets whether any client tracks keys.
    pub fn set_tracked(&self, tracked: bool) {
        self.tracked.store(tracked, Ordering::Relaxed);
    }
}

/// A bit for each shard.
#[derive(Debug)]
pub struct ShardSet {
    words: Box<[AtomicU64]>,
    mask: u64,
}

impl ShardSet {
    /// The clear bits of `shards` shards, a power of two.
    pub fn new(shards: usize) -> Self {
        debug_assert!(shards.is_power_of_two());
        let words = shards.div_ceil(u64::BITS as usize);
        Self { words: (0..words).map(|_| AtomicU64::new(0)).collect(), mask: shards as u64 - 1 }
    }

    /// Sets the bit of the shard with this hash. That shard is locked.
    #[inline]
    pub fn mark(&self, hash: u64) {
        let (word, bit) = self.bit(hash & self.mask);
        // Relaxed: the lock of the shard orders this with the clearing of the bit.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Clears the bit of a locked shard that has no such key.
    pub fn clear(&self, shard: usize) {
        let (word, bit) = self.bit(shard as u64);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Whether a shard may have such a key.
    #[inline]
    pub fn contains(&self, shard: usize) -> bool {
        let (word, bit) = self.bit(shard as u64);
        word.load(Ordering::Relaxed) & bit != 0
    }

    /// The first shard from `start` on whose bit is set, wrapping around after the last.
    pub fn next_from(&self, start: usize) -> Option<usize> {
        let (first, words) = (start / u64::BITS as usize, self.words.len());
        let below = !0 << (start % u64::BITS as usize);
        (0..=words).find_map(|step| {
            let at = (first + step) % words;
            // The first word is read twice: from the start on, and up to it.
            let wanted = if step == 0 { below } else { !0 };
            let bits = self.words[at].load(Ordering::Relaxed) & wanted;
            (bits != 0).then(|| at * u64::BITS as usize + bits.trailing_zeros() as usize)
        })
    }

    #[inline]
    fn bit(&self, shard: u64) -> (&AtomicU64, u64) {
        (&self.words[(shard / u64::from(u64::BITS)) as usize], 1 << (shard % u64::from(u64::BITS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_a_bit() {
        for shards in [1, 4, 64, 256] {
            let set = ShardSet::new(shards);
            let marked = |set: &ShardSet| {
                (0..shards).filter(|shard| set.contains(*shard)).collect::<Vec<_>>()
            };
            assert_eq!(marked(&set), []);
            assert_eq!(set.next_from(shards - 1), None);
            set.mark((7 * shards + shards - 1) as u64);
            set.mark((shards / 2) as u64);
            let mut both = vec![shards / 2, shards - 1];
            both.dedup();
            assert_eq!(marked(&set), both);
            for start in 0..shards {
                let next = both.iter().find(|shard| **shard >= start);
                assert_eq!(set.next_from(start), next.or(both.first()).copied(), "{start}");
            }
            set.clear(shards / 2);
            both.retain(|shard| *shard != shards / 2);
            assert_eq!(marked(&set), both);
            assert_eq!(set.next_from(0), both.first().copied());
        }
    }
}
