//! Which shards have keys or fields that expire, known without touching the shards.
//!
//! One bit for each shard, all together on a few cache lines that are hardly ever written. The bit
//! of a shard is set by whatever adds an expiry to it, and cleared by the walk for expired keys
//! when it finds none left; both hold the shard's lock. So while a shard is not locked, a clear bit
//! means that nothing in it expires; a set bit may be out of date, which costs the walk a visit.

use std::sync::atomic::{AtomicU64, Ordering};

/// A bit for each shard.
#[derive(Debug)]
pub struct ExpiringShards {
    words: Box<[AtomicU64]>,
    mask: u64,
}

impl ExpiringShards {
    /// The clear bits of `shards` shards, a power of two.
    pub fn new(shards: usize) -> Self {
        debug_assert!(shards.is_power_of_two());
        let words = shards.div_ceil(u64::BITS as usize);
        Self { words: (0..words).map(|_| AtomicU64::new(0)).collect(), mask: shards as u64 - 1 }
    }

    /// Sets the bit of the shard to which keys with this hash belong. That shard is locked.
    #[inline]
    pub(crate) fn mark(&self, hash: u64) {
        let (word, bit) = self.bit(hash & self.mask);
        // Relaxed: the lock of the shard orders this with the clearing of the bit.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Clears the bit of a shard, which is locked and in which nothing expires.
    pub fn clear(&self, shard: usize) {
        let (word, bit) = self.bit(shard as u64);
        word.fetch_and(!bit, Ordering::Relaxed);
    }

    /// Whether something in a shard may expire.
    #[inline]
    pub fn contains(&self, shard: usize) -> bool {
        let (word, bit) = self.bit(shard as u64);
        word.load(Ordering::Relaxed) & bit != 0
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
            let expiring = ExpiringShards::new(shards);
            let marked = |expiring: &ExpiringShards| {
                (0..shards).filter(|shard| expiring.contains(*shard)).collect::<Vec<_>>()
            };
            assert_eq!(marked(&expiring), []);
            expiring.mark((7 * shards + shards - 1) as u64);
            expiring.mark((shards / 2) as u64);
            let mut both = vec![shards / 2, shards - 1];
            both.dedup();
            assert_eq!(marked(&expiring), both);
            expiring.clear(shards / 2);
            both.retain(|shard| *shard != shards / 2);
            assert_eq!(marked(&expiring), both);
        }
    }
}
