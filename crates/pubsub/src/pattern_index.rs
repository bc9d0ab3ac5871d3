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
//! Both tables, by pattern and by prefix, are divided into parts by hash, each of which grows and
//! shrinks on its own: publishers wait for the lock of the index meanwhile.
//!
//! The index only finds candidates; `pattern_search` tries them, without the lock of the
//! index if that may take long.

use std::sync::Arc;

use base::hash::KeyHasher;
use hashbrown::HashTable;

use crate::message::SharedName;
use crate::subscribers::{SHRINK_FROM, SHRINK_RATIO, shrink};
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

/// The parts of the tables.
const PARTS: usize = 64;

/// The part that has what has this hash.
fn part_of(hash: u64) -> usize {
    // The low bits decide the position in the part's table, the highest ones its tag.
    (hash >> 32) as usize % PARTS
}

/// The patterns with some of the hashes.
#[derive(Debug, Default)]
struct PatternPart {
    patterns: Vec<Option<PatternThreads>>,
    free: Vec<usize>,
    by_name: HashTable<usize>,
}

impl PatternPart {
    fn find(&self, hash: u64, is_it: impl Fn(&PatternThreads) -> bool) -> Option<usize> {
        self.by_name.find(hash, |at| self.patterns[*at].as_ref().is_some_and(&is_it)).copied()
    }

    fn find_name(&self, hash: u64, name: &[u8]) -> Option<usize> {
        self.find(hash, |found| *found.name == *name)
    }

    fn insert(&mut self, pattern: PatternThreads) {
        let hash = pattern.hash;
        let at = self.free.pop().unwrap_or_else(|| {
            self.patterns.push(None);
            self.patterns.len() - 1
        });
        self.patterns[at] = Some(pattern);
        let Self { by_name, patterns, .. } = self;
        let hash_of = |at: &usize| patterns[*at].as_ref().map_or(0, |pattern| pattern.hash);
        by_name.insert_unique(hash, at, hash_of);
    }

    fn take(&mut self, at: usize) -> Option<PatternThreads> {
        let pattern = self.patterns[at].take()?;
        self.free.push(at);
        if let Ok(found) = self.by_name.find_entry(pattern.hash, |other| *other == at) {
            found.remove();
        }
        let (room, used) = (self.patterns.len(), self.by_name.len());
        if room > SHRINK_FROM && room / SHRINK_RATIO >= used {
            let before = std::mem::take(self);
            self.patterns.reserve_exact(2 * used);
            before.patterns.into_iter().flatten().for_each(|pattern| self.insert(pattern));
        }
        Some(pattern)
    }
}

/// All patterns.
#[derive(Debug)]
pub struct PatternIndex {
    hasher: KeyHasher,
    /// Patterns by their hashes.
    parts: [PatternPart; PARTS],
    by_prefix: [HashTable<PatternPrefix>; PARTS],
    len: usize,
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
            parts: std::array::from_fn(|_| PatternPart::default()),
            by_prefix: [const { HashTable::new() }; PARTS],
            len: 0,
            lengths: [0; PREFIX_BYTES_MAX + 1],
            newest: 0,
        }
    }

    /// The number of distinct patterns.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a subscriber of a pattern on a thread. Returns the shared name of the pattern.
    pub fn add(&mut self, pattern: &[u8], thread: usize) -> SharedName {
        let hash = self.hasher.hash(pattern);
        if let Some(threads) = self.threads_mut(pattern) {
            threads.add(thread);
        } else {
            self.newest += 1;
            let mut threads = Threads::default();
            threads.add(thread);
            self.insert(PatternEntry { name: pattern.into(), hash, number: self.newest }, threads);
        }
        let found = self.parts[part_of(hash)].find_name(hash, pattern);
        let found = found.and_then(|at| self.parts[part_of(hash)].patterns[at].as_ref());
        found.map_or_else(|| pattern.into(), |found| found.name.clone())
    }

    /// Removes a subscriber of a pattern on a thread.
    pub fn remove(&mut self, pattern: &[u8], thread: usize) {
        let hash = self.hasher.hash(pattern);
        let part = &mut self.parts[part_of(hash)];
        let Some(at) = part.find_name(hash, pattern) else {
            debug_assert!(false, "only a subscribed client unsubscribes");
            return;
        };
        let Some(found) = &mut part.patterns[at] else { return };
        found.threads.remove(thread);
        if found.threads.is_empty()
            && let Some(pattern) = part.take(at)
        {
            self.len -= 1;
            self.leave_prefix(&pattern);
        }
    }

    /// The threads with subscribers of a pattern.
    pub(crate) fn threads_mut(&mut self, pattern: &[u8]) -> Option<&mut Threads> {
        let hash = self.hasher.hash(pattern);
        let part = &mut self.parts[part_of(hash)];
        let at = part.find_name(hash, pattern)?;
        part.patterns[at].as_mut().map(|found| &mut found.threads)
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
            self.by_prefix[part_of(hash)].find(hash, |prefix| *prefix.bytes == *start)
        });
        prefixes.flat_map(|prefix| &prefix.chunks)
    }

    /// The threads with subscribers of a pattern, unless it has been removed.
    pub(crate) fn threads(&self, pattern: &PatternEntry) -> Option<&Threads> {
        let part = &self.parts[part_of(pattern.hash)];
        let at = part.find(pattern.hash, |found| found.number == pattern.number)?;
        part.patterns[at].as_ref().map(|found| &found.threads)
    }

    fn insert(&mut self, entry: PatternEntry, threads: Threads) {
        let PatternEntry { name, hash, number } = entry.clone();
        let start = prefix_of(&name);
        let prefix_hash = self.hasher.hash(start);
        let prefix = self.by_prefix[part_of(prefix_hash)].entry(
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
        let pattern = PatternThreads { name, hash, number, place, threads };
        self.parts[part_of(hash)].insert(pattern);
        self.len += 1;
    }

    /// Removes a pattern from those of its prefix.
    fn leave_prefix(&mut self, pattern: &PatternThreads) {
        let start = prefix_of(&pattern.name);
        let hash = self.hasher.hash(start);
        let prefixes = &mut self.by_prefix[part_of(hash)];
        let Ok(mut found) = prefixes.find_entry(hash, |prefix| *prefix.bytes == *start) else {
            return;
        };
        let moved = found.get_mut().remove(pattern.place);
        if found.get().chunks.is_empty() {
            self.lengths[start.len()] -= 1;
            found.remove();
            shrink(prefixes, |prefix| prefix.hash);
        }
        let Some(moved) = moved else { return };
        let part = &mut self.parts[part_of(moved.hash)];
        let at = part.find_name(moved.hash, &moved.name);
        if let Some(moved) = at.and_then(|at| part.patterns[at].as_mut()) {
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
            prop_assert!(index.is_empty() && index.by_prefix.iter().all(HashTable::is_empty));
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
        let sum = |room: fn(&PatternPart) -> usize| index.parts.iter().map(room).sum::<usize>();
        let parts = [
            sum(|part| part.patterns.capacity()),
            sum(|part| part.free.capacity()),
            sum(|part| part.by_name.capacity()),
            index.by_prefix.iter().map(HashTable::capacity).sum(),
        ];
        // As many as may stay in each part.
        assert!(parts.iter().all(|places| *places <= PARTS * SHRINK_FROM), "{parts:?}");
        for number in (0..10_000).step_by(100) {
            assert_eq!(matching(&index, format!("{number}.x").as_bytes()).len(), 1);
            index.remove(name(number).as_bytes(), number % 3);
        }
        assert!(index.is_empty());
    }

    /// Publishers wait while a table grows.
    #[test]
    fn a_growing_table_has_a_small_part_of_the_patterns() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        for number in 0..20_000 {
            index.add(format!("{number}.*").as_bytes(), 0);
            index.add(format!("*{number}").as_bytes(), 0);
        }
        let patterns = index.parts.iter().map(|part| part.by_name.len()).max();
        let prefixes = index.by_prefix.iter().map(HashTable::len).max();
        assert!(patterns < Some(40_000 / 40) && prefixes < Some(20_000 / 40));
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
