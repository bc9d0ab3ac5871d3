//! Random numbers for sampling (RANDOMKEY, SPOP, eviction) and back-off. Not for secrets.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
//! Generators", 2014): one word of state, any seed is good, and the same seed gives the same
//! numbers, which is what tests and the simulator need.

use std::hash::BuildHasher;

/// A small seeded generator.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose numbers depend only on `seed`.
    pub fn new(seed: u64) -> Random {
        Random { state: seed }
    }

    /// The next number; each occurs once in a period of 2^64.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        // The step is the golden ratio in 64 bits, made odd; the rest is the paper's finalizer.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `n`, each equally likely; 0 when `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        // Lemire, "Fast Random Integer Generation in an Interval", 2019: the high half of the
        // product is the number; low halves under 2^64 mod n would favour some numbers.
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let excess = n.wrapping_neg() % n;
            while (product as u64) < excess {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }
}

/// A seed that differs for every call and run, and that clients cannot predict.
///
/// It comes from the keys of the standard library's hash tables, which the library gets from the
/// operating system, so this crate needs no file, no clock and no dependency. Code that must be
/// repeatable takes a seed instead.
pub fn entropy_seed() -> u64 {
    // SipHash of a constant under secret keys, which change with every new state.
    std::collections::hash_map::RandomState::new().hash_one(0u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_the_reference_implementation() {
        // The well-known first outputs of SplitMix64 for the seed 1234567.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        let expected =
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(first, expected);
    }

    #[test]
    fn below_is_fair() {
        let mut random = Random::new(42);
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[random.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn seeds_differ() {
        assert_ne!(entropy_seed(), entropy_seed());
    }

    proptest! {
        #[test]
        fn below_stays_below(seed: u64, n: u64) {
            let number = Random::new(seed).below(n);
            prop_assert!(number < n || (n == 0 && number == 0));
        }
    }
}
