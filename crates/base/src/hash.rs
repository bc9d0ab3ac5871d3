//! The hash of keys.
//!
//! One hash decides a key's shard, bucket and tag, so it is computed once and passed on. Other
//! crates rely on this:
//! - All 64 bits are well mixed: disjoint groups of bits serve as shard, bucket and tag.
//! - It depends on a random seed ([`crate::random::entropy_seed`]), so clients cannot aim keys at
//!   one bucket. The seed changes every secret of the function, not only its initial state: with
//!   known multipliers, collisions could be found for any state.
//! - It depends only on the key's bytes, so equal keys have equal hashes in every representation.
//!
//! The function is the quality variant of foldhash, which is fast on short keys and not
//! cryptographic. Values differ between runs and versions: they must not be stored, sent, or used
//! where Redis defines the function (cluster slots use CRC-16).

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

/// Hashes keys with a seed. A copy returns the same hashes.
#[derive(Debug, Clone, Copy)]
pub struct KeyHasher {
    state: u64,
    secrets: &'static SharedSeed,
}

impl KeyHasher {
    /// A hasher whose values depend only on `seed`.
    ///
    /// Call it once per keyspace: the secrets (48 bytes) live until the process ends, so that a
    /// copy is two words and hashing needs no reference count.
    pub fn new(seed: u64) -> KeyHasher {
        let secrets = Box::leak(Box::new(SharedSeed::from_u64(seed)));
        // The state gets a separate value, since the secrets are a known function of the seed.
        let state = crate::random::Random::new(seed).next_u64();
        KeyHasher { state, secrets }
    }

    /// The hash of the key's bytes.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.state, self.secrets);
        // Raw bytes: `Hash for [u8]` would mix in the length, which foldhash already does.
        hasher.write(key);
        hasher.finish()
    }
}

/// A map whose keys are hashes of [`KeyHasher`], which it does not hash again.
pub type ByKeyHash<V> = HashMap<u64, V, BuildHasherDefault<Rehash>>;

/// See [`ByKeyHash`]. All keys of a shard share some bits, so this mixes the bits once more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rehash(u64);

impl Hasher for Rehash {
    #[inline]
    fn write_u64(&mut self, hash: u64) {
        let product = u128::from(hash) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    /// A slow hash of bytes, for keys that are not hashes.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte).rotate_left(32) ^ 1);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn seed_and_bytes_decide(seed: u64, key: Vec<u8>) {
            let (hasher, again) = (KeyHasher::new(seed), KeyHasher::new(seed));
            prop_assert_eq!(hasher.hash(&key), again.hash(&key.clone()));
            prop_assert_ne!(hasher.hash(&key), KeyHasher::new(seed ^ 1).hash(&key));
            let mut longer = key.clone();
            longer.push(0);
            prop_assert_ne!(hasher.hash(&key), hasher.hash(&longer));
        }
    }

    #[test]
    fn every_bit_is_mixed() {
        // Keys like those of benchmarks and applications: a prefix and a counter.
        const KEYS: u32 = 20_000;
        let hasher = KeyHasher::new(7);
        let mut ones = [0u32; 64];
        let mut flips = [[0u32; 64]; 8];
        for number in 0..KEYS {
            let key = format!("key:{number:012}");
            let hash = hasher.hash(key.as_bytes());
            for (bit, count) in ones.iter_mut().enumerate() {
                *count += (hash >> bit) as u32 & 1;
            }
            for (flipped, counts) in flips.iter_mut().enumerate() {
                let mut other = key.clone().into_bytes();
                other[15] ^= 1 << flipped;
                let changed = hash ^ hasher.hash(&other);
                for (bit, count) in counts.iter_mut().enumerate() {
                    *count += (changed >> bit) as u32 & 1;
                }
            }
        }
        // The standard deviation is 71, so these bounds are seven of them away.
        let fair = |count: &u32| (KEYS / 2 - 500..KEYS / 2 + 500).contains(count);
        assert!(ones.iter().all(fair), "{ones:?}");
        assert!(flips.iter().flatten().all(fair), "{flips:?}");
    }

    #[test]
    fn hashes_that_share_bits_are_mixed_again() {
        for shift in [0, 10, 32, 54] {
            let rehashed = (0..1024u64).map(|number| {
                let mut hasher = Rehash::default();
                hasher.write_u64(number.rotate_right(10).rotate_left(shift) | 1);
                hasher.finish()
            });
            let mut low = [0u32; 64];
            rehashed.for_each(|hash| low[hash as usize % 64] += 1);
            assert!(low.iter().all(|count| (1..64).contains(count)), "{shift}: {low:?}");
        }
    }

    #[test]
    fn no_collisions_among_many() {
        let hasher = KeyHasher::new(1);
        let mut hashes: Vec<u64> =
            (0..100_000u32).map(|number| hasher.hash(number.to_string().as_bytes())).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 100_000);
    }
}
