//! The prefixes whose changes are broadcast, found without trying all.
//!
//! Prefixes are sorted. The prefixes of a key are searched from the key downwards: the greatest
//! prefix that is not greater than the key either begins the key, or shares with it a beginning
//! shorter than the prefix; all other prefixes of the key also begin that shared part. So each
//! search shortens the relevant part of the key, and there are rarely more than two:
//!
//! ```text
//!   prefixes  news:  news:art:  user:  user:1:  weather:
//!   the key   user:7
//!             -> user:1: shares "user:" with it -> user: is its beginning -> nothing before "user"
//! ```

use std::collections::BTreeMap;
use std::ops::Bound;

/// A prefix of keys.
pub type Prefix = Box<[u8]>;

/// A map from prefixes to values.
#[derive(Debug)]
pub struct Prefixes<T>(BTreeMap<Prefix, T>);

impl<T> Default for Prefixes<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Prefixes<T> {
    /// The value of a prefix.
    pub fn get(&self, prefix: &[u8]) -> Option<&T> {
        self.0.get(prefix)
    }

    /// The value of a prefix, created by `make` if it is missing.
    pub fn or_insert_with(&mut self, prefix: &[u8], make: impl FnOnce() -> T) -> &T {
        self.0.entry(prefix.into()).or_insert_with(make)
    }

    /// Whether any key can begin with both this and one of the prefixes.
    pub fn overlaps(&self, prefix: &[u8]) -> bool {
        let behind = (Bound::Included(prefix), Bound::Unbounded);
        let mut overlaps = self
            .0
            .range::<[u8], _>(behind)
            .next()
            .is_some_and(|(next, _)| next.starts_with(prefix));
        if !overlaps {
            self.matching(prefix, |_| overlaps = true);
        }
        overlaps
    }

    /// Removes a prefix with its value.
    pub fn remove(&mut self, prefix: &[u8]) {
        self.0.remove(prefix);
    }

    /// Prefixes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls `visit` with the value of each prefix of a key, the longest first.
    pub fn matching<'a>(&'a self, key: &[u8], mut visit: impl FnMut(&'a T)) {
        let mut end = Bound::Included(key);
        while let Some((prefix, found)) =
            self.0.range::<[u8], _>((Bound::Unbounded, end)).next_back()
        {
            let shared = prefix.iter().zip(key).take_while(|(one, other)| one == other).count();
            end = if shared == prefix.len() {
                visit(found);
                Bound::Excluded(&key[..shared])
            } else {
                Bound::Included(&key[..shared])
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matching(prefixes: &Prefixes<String>, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        prefixes.matching(key.as_bytes(), |prefix| found.push(prefix.clone()));
        found
    }

    proptest! {
        #[test]
        fn finds_what_trying_all_finds(
            names in proptest::collection::btree_set("[ab]{0,6}", 0..40),
            keys in proptest::collection::vec("[abc]{0,8}", 1..20),
        ) {
            let mut prefixes = Prefixes::default();
            for name in &names {
                prefixes.or_insert_with(name.as_bytes(), || name.clone());
            }
            for key in keys {
                let mut wanted: Vec<String> =
                    names.iter().filter(|name| key.starts_with(name.as_str())).cloned().collect();
                wanted.reverse();
                prop_assert_eq!(matching(&prefixes, &key), wanted);
            }
        }
    }

    #[test]
    fn prefixes_that_cannot_match_are_not_tried() {
        let mut prefixes = Prefixes::default();
        for number in 0..100_000 {
            let name = format!("news:{number}:");
            prefixes.or_insert_with(name.as_bytes(), || name.clone());
        }
        let begin = std::time::Instant::now();
        for number in 0..1000 {
            assert!(matching(&prefixes, "weather:5:today").is_empty());
            assert_eq!(matching(&prefixes, &format!("news:{number}:x")).len(), 1);
        }
        // Trying all takes ten thousand times as long.
        assert!(begin.elapsed().as_secs() < 1, "{:?}", begin.elapsed());
    }
}
