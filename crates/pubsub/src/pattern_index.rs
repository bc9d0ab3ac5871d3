//! The patterns that may match a channel, found without trying all.
//!
//! Patterns are indexed by the literal bytes before their first special one. A pattern only matches
//! channels that begin with its literal prefix, so a search needs one lookup for each length of
//! prefix, and each lookup finds exactly the candidates:
//!
//! ```text
//!   lengths    0   5   9
//!   by prefix  ""          -> *.log, ?, [ab]*
//!              "mail."     -> mail.*, mail.?.uk
//!              "mail.art." -> mail.art.*
//! ```
//!
//! Publishing to `mail.x` looks up "" and "mail."; the name is too short for 9 bytes. Only the
//! first `PREFIX_BYTES_MAX` bytes of a prefix count, so that lookups are few and quick. Patterns
//! have no order, because clients are promised none.

use base::glob;
use base::hash::KeyHasher;
use hashbrown::HashTable;

use crate::message::SharedName;
use crate::subscribers::{SHRINK_FROM, SHRINK_RATIO};
use crate::threads::Threads;

/// Bytes of a literal prefix that the index distinguishes.
const PREFIX_BYTES_MAX: usize = 64;

/// A pattern and the threads of its subscribers.
#[derive(Debug)]
struct PatternThreads {
    name: SharedName,
    hash: u64,
    /// Its position among the patterns of its prefix.
    place: usize,
    threads: Threads,
}

/// The patterns with the same literal prefix.
#[derive(Debug)]
struct PatternPrefix {
    hash: u64,
    bytes: Box<[u8]>,
    /// Positions in `patterns`.
    patterns: Vec<usize>,
}

/// All patterns.
#[derive(Debug)]
pub struct PatternIndex {
    hasher: KeyHasher,
    patterns: Vec<Option<PatternThreads>>,
    free: Vec<usize>,
    by_name: HashTable<usize>,
    by_prefix: HashTable<PatternPrefix>,
    /// The number of prefixes of each length.
    lengths: [usize; PREFIX_BYTES_MAX + 1],
}

impl PatternIndex {
    /// An empty index. Clients choose the patterns, so the hash must have a secret.
    pub fn new(hasher: KeyHasher) -> Self {
        Self {
            hasher,
            patterns: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            by_prefix: HashTable::new(),
            lengths: [0; PREFIX_BYTES_MAX + 1],
        }
    }

    /// The number of distinct patterns.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Adds a subscriber of a pattern on a thread. Returns the shared name of the pattern.
    pub fn add(&mut self, pattern: &[u8], thread: usize) -> SharedName {
        let hash = self.hasher.hash(pattern);
        let at = match self.find(hash, pattern) {
            Some(at) => at,
            None => self.insert(hash, pattern.into()),
        };
        match &mut self.patterns[at] {
            Some(found) => {
                found.threads.add(thread);
                found.name.clone()
            }
            None => pattern.into(),
        }
    }

    /// Removes a subscriber of a pattern on a thread.
    pub fn remove(&mut self, pattern: &[u8], thread: usize) {
        let hash = self.hasher.hash(pattern);
        let Some(at) = self.find(hash, pattern) else {
            debug_assert!(false, "only a subscribed client unsubscribes");
            return;
        };
        let Some(found) = &mut self.patterns[at] else { return };
        found.threads.remove(thread);
        if found.threads.is_empty() {
            self.take_out(at);
            if self.patterns.len() > SHRINK_FROM && self.patterns.len() / SHRINK_RATIO >= self.len()
            {
                self.shrink();
            }
        }
    }

    /// Rebuilds the index after many patterns were removed.
    fn shrink(&mut self) {
        let before = std::mem::replace(self, Self::new(self.hasher));
        self.patterns.reserve_exact(2 * before.by_name.len());
        for PatternThreads { name, hash, threads, .. } in before.patterns.into_iter().flatten() {
            let at = self.insert(hash, name);
            if let Some(pattern) = &mut self.patterns[at] {
                pattern.threads = threads;
            }
        }
    }

    /// Moves a subscriber of a pattern from one thread to another.
    pub fn transfer(&mut self, pattern: &[u8], from: usize, to: usize) {
        let hash = self.hasher.hash(pattern);
        let found = self.find(hash, pattern).and_then(|at| self.patterns[at].as_mut());
        if let Some(found) = found {
            found.threads.add(to);
            found.threads.remove(from);
        }
    }

    /// Calls `visit` with each pattern that matches a channel, its hash and the threads of its
    /// subscribers.
    pub(crate) fn matching<'a>(
        &'a self,
        channel: &[u8],
        mut visit: impl FnMut(&'a SharedName, u64, &'a Threads),
    ) {
        let lengths = self.lengths.iter().enumerate().take(channel.len() + 1);
        for (len, _) in lengths.filter(|(_, prefixes)| **prefixes > 0) {
            let start = &channel[..len];
            let hash = self.hasher.hash(start);
            let Some(prefix) = self.by_prefix.find(hash, |prefix| *prefix.bytes == *start) else {
                continue;
            };
            let patterns = prefix.patterns.iter().filter_map(|at| self.patterns[*at].as_ref());
            for pattern in patterns {
                if glob::matches(&pattern.name, channel, false) {
                    visit(&pattern.name, pattern.hash, &pattern.threads);
                }
            }
        }
    }

    fn find(&self, hash: u64, pattern: &[u8]) -> Option<usize> {
        let is_it =
            |at: &usize| self.patterns[*at].as_ref().is_some_and(|found| *found.name == *pattern);
        self.by_name.find(hash, is_it).copied()
    }

    fn insert(&mut self, hash: u64, name: SharedName) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.patterns.push(None);
            self.patterns.len() - 1
        });
        let start = prefix_of(&name);
        let prefix_hash = self.hasher.hash(start);
        let entry = self.by_prefix.entry(
            prefix_hash,
            |prefix| *prefix.bytes == *start,
            |prefix| prefix.hash,
        );
        let lengths = &mut self.lengths;
        let mut prefix = entry.or_insert_with(|| {
            lengths[start.len()] += 1;
            PatternPrefix { hash: prefix_hash, bytes: start.into(), patterns: Vec::new() }
        });
        let prefix = prefix.get_mut();
        let place = prefix.patterns.len();
        prefix.patterns.push(at);
        self.patterns[at] = Some(PatternThreads { name, hash, place, threads: Threads::default() });
        let Self { by_name, patterns, .. } = self;
        let hash_of = |at: &usize| patterns[*at].as_ref().map_or(0, |pattern| pattern.hash);
        by_name.insert_unique(hash, at, hash_of);
        at
    }

    fn take_out(&mut self, at: usize) {
        let Some(pattern) = self.patterns[at].take() else { return };
        self.free.push(at);
        if let Ok(found) = self.by_name.find_entry(pattern.hash, |other| *other == at) {
            found.remove();
        }
        let start = prefix_of(&pattern.name);
        let hash = self.hasher.hash(start);
        let Ok(mut found) = self.by_prefix.find_entry(hash, |prefix| *prefix.bytes == *start)
        else {
            return;
        };
        let prefix = found.get_mut();
        prefix.patterns.swap_remove(pattern.place);
        if let Some(moved) = prefix.patterns.get(pattern.place)
            && let Some(moved) = &mut self.patterns[*moved]
        {
            moved.place = pattern.place;
        }
        if prefix.patterns.is_empty() {
            self.lengths[start.len()] -= 1;
            found.remove();
        }
    }
}

/// The literal prefix of a pattern, as far as the index uses it.
pub(crate) fn prefix_of(pattern: &[u8]) -> &[u8] {
    let is_special = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'\\');
    let len = pattern.iter().take(PREFIX_BYTES_MAX).position(is_special);
    &pattern[..len.unwrap_or(pattern.len().min(PREFIX_BYTES_MAX))]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn matching(index: &PatternIndex, channel: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut found = BTreeSet::new();
        index.matching(channel, |name, _, _| assert!(found.insert(name.to_vec()), "once"));
        found
    }

    fn pattern() -> impl Strategy<Value = String> {
        prop_oneof!["[ab*?\\[\\]\\\\]{0,6}", "a{60,70}[ab*?]{0,2}", "[ab]{0,3}\\*"]
    }

    proptest! {
        #[test]
        fn finds_what_trying_all_finds(
            steps in proptest::collection::vec((pattern(), 0usize..3, any::<bool>()), 0..60),
            channels in proptest::collection::vec(prop_oneof!["[ab]{0,5}", "a{60,72}"], 1..10),
        ) {
            let mut index = PatternIndex::new(KeyHasher::new(1));
            let mut all: Vec<(String, usize)> = Vec::new();
            for (pattern, thread, adds) in steps {
                if adds {
                    index.add(pattern.as_bytes(), thread);
                    all.push((pattern, thread));
                } else if let Some((pattern, thread)) = all.pop() {
                    index.remove(pattern.as_bytes(), thread);
                }
                let distinct: BTreeSet<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                prop_assert_eq!(index.len(), distinct.len());
                for channel in &channels {
                    let expected: BTreeSet<Vec<u8>> = distinct
                        .iter()
                        .filter(|name| glob::matches(name.as_bytes(), channel.as_bytes(), false))
                        .map(|name| name.as_bytes().to_vec())
                        .collect();
                    prop_assert_eq!(matching(&index, channel.as_bytes()), expected);
                }
            }
            for (pattern, thread) in all {
                index.remove(pattern.as_bytes(), thread);
            }
            prop_assert!(index.is_empty() && index.by_prefix.is_empty());
            prop_assert_eq!(index.lengths, [0; PREFIX_BYTES_MAX + 1]);
        }
    }

    #[test]
    fn removed_patterns_leave_no_memory() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        let name = |number: usize| format!("{number}.*");
        (0..10_000).for_each(|number| drop(index.add(name(number).as_bytes(), number % 3)));
        for number in (0..10_000).filter(|number| number % 100 != 0) {
            index.remove(name(number).as_bytes(), number % 3);
        }
        assert_eq!(index.len(), 100);
        let room = [index.patterns.capacity(), index.free.capacity(), index.by_name.capacity()];
        assert!(room.iter().all(|places| *places < 2000), "{room:?}");
        assert!(index.by_prefix.capacity() < 2000, "{}", index.by_prefix.capacity());
        for number in (0..10_000).step_by(100) {
            assert_eq!(matching(&index, format!("{number}.x").as_bytes()).len(), 1);
            index.remove(name(number).as_bytes(), number % 3);
        }
        assert!(index.is_empty() && index.patterns.capacity() <= SHRINK_FROM);
    }

    #[test]
    fn patterns_that_cannot_match_are_not_tried() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        for number in 0..100_000 {
            index.add(format!("news.{number}.*").as_bytes(), 0);
        }
        let begin = std::time::Instant::now();
        for _ in 0..1000 {
            assert!(matching(&index, b"weather.5.today").is_empty());
        }
        // Trying all takes a hundred thousand times as long.
        assert!(begin.elapsed().as_secs() < 1, "{:?}", begin.elapsed());
        assert_eq!(matching(&index, b"news.77777.x").len(), 1);
    }
}
