//! The hash of keys.
use std::hash::{BuildHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;

/// Hashes keys with a seed chosen at start.
#[derive(Clone, Debug)]
pub struct KeyHasher {
    state: SeedableRandomState,
}

impl KeyHasher {
    /// A hasher for one process.
    pub fn new(seed: u64) -> Self {
        Self { state: SeedableRandomState::with_seed(seed, SharedSeed::global_fixed()) }
    }

    /// All 64 bits are well mixed.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}
