//! Which shard a key belongs to.

/// Maps the hashes of keys to shards.
#[derive(Clone, Copy, Debug)]
pub struct ShardMap {
    mask: u64,
}

impl ShardMap {
    /// A map to `shards` shards, a power of two.
    pub fn new(shards: usize) -> Self {
        debug_assert!(shards.is_power_of_two());
        Self { mask: shards as u64 - 1 }
    }

    /// The number of shards.
    pub fn len(self) -> usize {
        self.mask as usize + 1
    }

    /// Always false: there is at least one shard.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The shard of a key with this hash: its lower bits, which the tables do not use.
    #[inline]
    pub fn shard_of(self, hash: u64) -> usize {
        (hash & self.mask) as usize
    }
}
