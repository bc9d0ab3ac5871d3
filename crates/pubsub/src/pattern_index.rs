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
//!
//! The index only finds candidates; `pattern_search` tries them, without the lock of the
//! index if that may take long.

use std::sync::Arc;

use base::hash::KeyHasher;
use hashbrown::HashTable;

use crate::message::SharedName;
use crate::subscribers::{SHRINK_FROM, SHRINK_RATIO};
use crate::threads::Threads;

/// Bytes of a literal prefix that the index distinguishes.
const PREFIX_BYTES_MAX: usize = 64;
/// Patterns of a chunk, which is copied when one of them changes during a search.
const CHUNK_LEN: usize = 64;

/// A pattern that may match a channel.
#[derive(Clone, Debug)]
pub(crate) struct PatternEntry {
    pub(crate) name: SharedName,
    pub(crate) hash: u64,
    /// Its number in the order in which patterns are added.
    pub(crate) number: u64,
}

/// Some of the patterns with the same literal prefix. It does not change while a search has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PatternChunk {
    entries: Vec<PatternEntry>,
    /// No pattern has a higher number.
    newest: u64,
}

impl PatternChunk {
    /// Its patterns with higher numbers than `after`.
    pub(crate) fn after(&self, after: u64) -> impl Iterator<Item = &PatternEntry> {
        let entries = if self.newest > after { &self.entries[..] } else { &[] };
        entries.iter().filter(move |entry| entry.number > after)
    }
}

/// A pattern and the threads of its subscribers.
#[derive(Debug)]
struct PatternThreads {
    name: SharedName,
    hash: u64,
    number: u64,
    /// Its position among the patterns of its prefix.
    place: usize,
    threads: Threads,
}

/// The patterns with the same literal prefix.
#[derive(Debug)]
struct PatternPrefix {
    hash: u64,
    bytes: Box<[u8]>,
    /// All but the last are full.
    chunks: Vec<Arc<PatternChunk>>,
}

impl PatternPrefix {
    /// Adds a pattern. Returns its place.
    fn push(&mut self, entry: PatternEntry) -> usize {
        let is_full = |chunk: &Arc<PatternChunk>| chunk.entries.len() == CHUNK_LEN;
        if self.chunks.last().is_none_or(is_full) {
            // Nearly always there is one pattern.
            self.chunks.reserve_exact(1);
            self.chunks.push(Arc::default());
        }
        let last = self.chunks.len() - 1;
        let chunk = Arc::make_mut(&mut self.chunks[last]);
        if chunk.entries.is_empty() {
            chunk.entries.reserve_exact(1);
        }
        chunk.newest = chunk.newest.max(entry.number);
        chunk.entries.push(entry);
        last * CHUNK_LEN + chunk.entries.len() - 1
    }

    /// Removes the pattern at a place, which the last one takes. Returns that one, if there is one.
    fn remove(&mut self, place: usize) -> Option<PatternEntry> {
        let at = self.chunks.len().checked_sub(1)?;
        let last = Arc::make_mut(&mut self.chunks[at]);
        let moved = last.entries.pop()?;
        let from = at * CHUNK_LEN + last.entries.len();
        if last.entries.is_empty() {
            self.chunks.pop();
        }
        if from == place {
            return None;
        }
        let chunk = Arc::make_mut(self.chunks.get_mut(place / CHUNK_LEN)?);
        chunk.newest = chunk.newest.max(moved.number);
        *chunk.entries.get_mut(place % CHUNK_LEN)? = moved.clone();
        Some(moved)
    }
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
    /// The number of the last pattern that was added.
    newest: u64,
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
            newest: 0,
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
            None => {
                self.newest += 1;
                self.insert(PatternEntry { name: pattern.into(), hash, number: self.newest })
            }
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
        self.newest = before.newest;
        self.patterns.reserve_exact(2 * before.by_name.len());
        for pattern in before.patterns.into_iter().flatten() {
            let PatternThreads { name, hash, number, threads, .. } = pattern;
            let at = self.insert(PatternEntry { name, hash, number });
            if let Some(pattern) = &mut self.patterns[at] {
                pattern.threads = threads;
            }
        }
    }

    /// The threads with subscribers of a pattern.
    pub(crate) fn threads_mut(&mut self, pattern: &[u8]) -> Option<&mut Threads> {
        let at = self.find(self.hasher.hash(pattern), pattern)?;
        self.patterns[at].as_mut().map(|found| &mut found.threads)
    }

    /// The number of the last pattern that was added.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// The patterns that may match a channel.
    pub(crate) fn candidates(&self, channel: &[u8]) -> impl Iterator<Item = &Arc<PatternChunk>> {
        let lengths = self.lengths.iter().enumerate().take(channel.len() + 1);
        let lengths = lengths.filter(|(_, prefixes)| **prefixes > 0);
        let prefixes = lengths.filter_map(move |(len, _)| {
            let start = &channel[..len];
            let hash = self.hasher.hash(start);
            self.by_prefix.find(hash, |prefix| *prefix.bytes == *start)
        });
        prefixes.flat_map(|prefix| &prefix.chunks)
    }

    /// The threads with subscribers of a pattern, unless it has been removed.
    pub(crate) fn threads(&self, pattern: &PatternEntry) -> Option<&Threads> {
        let at = self.by_name.find(pattern.hash, |at| {
            self.patterns[*at].as_ref().is_some_and(|found| found.number == pattern.number)
        });
        self.patterns[*at?].as_ref().map(|found| &found.threads)
    }

    fn find(&self, hash: u64, pattern: &[u8]) -> Option<usize> {
        let is_it =
            |at: &usize| self.patterns[*at].as_ref().is_some_and(|found| *found.name == *pattern);
        self.by_name.find(hash, is_it).copied()
    }

    fn insert(&mut self, entry: PatternEntry) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.patterns.push(None);
            self.patterns.len() - 1
        });
        let PatternEntry { name, hash, number } = entry.clone();
        let start = prefix_of(&name);
        let prefix_hash = self.hasher.hash(start);
        let prefix = self.by_prefix.entry(
            prefix_hash,
            |prefix| *prefix.bytes == *start,
            |prefix| prefix.hash,
        );
        let lengths = &mut self.lengths;
        let mut prefix = prefix.or_insert_with(|| {
            lengths[start.len()] += 1;
            PatternPrefix { hash: prefix_hash, bytes: start.into(), chunks: Vec::new() }
        });
        let place = prefix.get_mut().push(entry);
        let threads = Threads::default();
        self.patterns[at] = Some(PatternThreads { name, hash, number, place, threads });
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
        let moved = found.get_mut().remove(pattern.place);
        if found.get().chunks.is_empty() {
            self.lengths[start.len()] -= 1;
            found.remove();
        }
        let moved = moved.and_then(|moved| self.find(moved.hash, &moved.name));
        if let Some(moved) = moved.and_then(|at| self.patterns[at].as_mut()) {
            moved.place = pattern.place;
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

    use base::glob;
    use proptest::prelude::*;

    use super::*;

    fn candidates(index: &PatternIndex, channel: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut found = BTreeSet::new();
        for entry in index.candidates(channel).flat_map(|chunk| chunk.after(0)) {
            assert!(index.threads(entry).is_some_and(|threads| !threads.is_empty()));
            assert!(found.insert(entry.name.to_vec()), "once");
        }
        found
    }

    fn matching(index: &PatternIndex, channel: &[u8]) -> BTreeSet<Vec<u8>> {
        let mut found = candidates(index, channel);
        found.retain(|name| glob::matches(name, channel, false));
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
        assert!(candidates(&index, b"weather.5.today").is_empty());
        assert_eq!(candidates(&index, b"news.77777.x").len(), 1);
    }

    #[test]
    fn a_search_keeps_the_patterns_that_it_has() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        let name = |number: usize| format!("*{number}");
        (0..200).for_each(|number| drop(index.add(name(number).as_bytes(), 0)));
        let kept: Vec<_> = index.candidates(b"c").cloned().collect();
        assert_eq!(kept.len(), 4);
        let newest = index.newest();
        (0..200).step_by(3).for_each(|number| index.remove(name(number).as_bytes(), 0));
        index.add(b"*0", 0);
        index.add(b"*1", 0);
        let entries = || kept.iter().flat_map(|chunk| chunk.after(0));
        assert_eq!(entries().count(), 200);
        assert_eq!(entries().filter(|entry| index.threads(entry).is_some()).count(), 133);
        let added: Vec<_> = index.candidates(b"c").flat_map(|chunk| chunk.after(newest)).collect();
        assert_eq!(added.len(), 1, "a pattern that was removed and added again is a new one");
        assert_eq!(*added[0].name, *b"*0");
    }
}
