//! The patterns that match one channel, found without holding their lock for long.
//!
//! ```text
//!   lock     few and short candidates: try them            -> all are tried
//!            else keep the candidates
//!   unlock   try them
//!   lock     candidates that were added meanwhile: again
//! ```
//!
//! Thousands of patterns may have to be tried, each on a name of megabytes, and while the lock is
//! held, other threads wait: those that publish events of keys with locked shards, and those whose
//! clients subscribe. So under the lock only `LOCKED_BYTES_MAX` bytes are compared.
//!
//! When clients add patterns faster than they are tried, the last of them count as added after the
//! message.

use std::sync::Arc;

use base::glob;

use crate::pattern_index::{PatternChunk, PatternEntry, PatternIndex};

/// Bytes of patterns and channels that are compared under the lock: some microseconds.
pub(crate) const LOCKED_BYTES_MAX: usize = 4096;
/// How often a search tries patterns without the lock.
const ROUNDS_MAX: usize = 8;

/// Candidates to try without the lock.
#[derive(Debug)]
pub(crate) struct UntriedPatterns {
    chunks: Vec<Arc<PatternChunk>>,
    newest: u64,
}

/// A search for the patterns that match a channel.
#[derive(Debug)]
pub(crate) struct PatternSearch<'a> {
    channel: &'a [u8],
    /// The patterns up to this number are tried.
    tried: u64,
    rounds: usize,
    /// Some of them may have been removed since.
    pub(crate) matching: Vec<PatternEntry>,
}

impl<'a> PatternSearch<'a> {
    pub(crate) fn new(channel: &'a [u8]) -> Self {
        Self { channel, tried: 0, rounds: 0, matching: Vec::new() }
    }

    /// Under the lock: tries the candidates that are not tried yet. Returns them instead if that
    /// takes longer than the comparison of `bytes_max` bytes. Then release the lock,
    /// [try](Self::try_unlocked) them, and call this again.
    pub(crate) fn advance(
        &mut self,
        index: &PatternIndex,
        bytes_max: usize,
    ) -> Option<UntriedPatterns> {
        let (newest, matching) = (index.newest(), self.matching.len());
        if newest == self.tried || self.rounds == ROUNDS_MAX {
            return None;
        }
        let mut bytes = 0;
        let after = self.tried;
        for entry in index.candidates(self.channel).flat_map(|chunk| chunk.after(after)) {
            bytes += self.channel.len() + entry.name.len();
            if bytes > bytes_max {
                self.matching.truncate(matching);
                let chunks = index.candidates(self.channel);
                let chunks = chunks.filter(|chunk| chunk.after(after).next().is_some());
                return Some(UntriedPatterns { chunks: chunks.cloned().collect(), newest });
            }
            self.try_entry(entry);
        }
        self.tried = newest;
        None
    }

    /// Tries candidates without the lock.
    pub(crate) fn try_unlocked(&mut self, untried: UntriedPatterns) {
        let after = self.tried;
        for entry in untried.chunks.iter().flat_map(|chunk| chunk.after(after)) {
            self.try_entry(entry);
        }
        self.tried = untried.newest;
        self.rounds += 1;
    }

    fn try_entry(&mut self, entry: &PatternEntry) {
        if glob::matches(&entry.name, self.channel, false) {
            self.matching.push(entry.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use base::hash::KeyHasher;

    use super::*;

    fn names(search: &PatternSearch<'_>) -> Vec<String> {
        let names = search.matching.iter().map(|entry| String::from_utf8_lossy(&entry.name));
        names.map(String::from).collect()
    }

    #[test]
    fn little_is_tried_under_the_lock() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        for pattern in ["news.*", "*", "*x", "other"] {
            index.add(pattern.as_bytes(), 0);
        }
        let mut search = PatternSearch::new(b"news.1");
        assert!(search.advance(&index, LOCKED_BYTES_MAX).is_none());
        assert_eq!(names(&search), ["*", "news.*"]);
        // One long name, and many short ones.
        let long = [b'a'; LOCKED_BYTES_MAX];
        let mut search = PatternSearch::new(&long);
        let untried = search.advance(&index, LOCKED_BYTES_MAX);
        assert!(search.matching.is_empty());
        untried.into_iter().for_each(|untried| search.try_unlocked(untried));
        assert_eq!(names(&search), ["*"]);
        assert!(search.advance(&index, LOCKED_BYTES_MAX).is_none());
        (0..1000).for_each(|number| drop(index.add(format!("*{number}").as_bytes(), 0)));
        assert!(PatternSearch::new(b"news.1").advance(&index, LOCKED_BYTES_MAX).is_some());
    }

    #[test]
    fn patterns_that_are_added_meanwhile_are_tried_too() {
        let mut index = PatternIndex::new(KeyHasher::new(1));
        index.add(b"*1", 0);
        let mut search = PatternSearch::new(b"c1");
        for round in 0..ROUNDS_MAX {
            let untried = search.advance(&index, 0);
            index.add(format!("c{}*", "?".repeat(round % 2)).as_bytes(), 0);
            assert!(untried.is_some() || round > 2, "{round}");
            untried.into_iter().for_each(|untried| search.try_unlocked(untried));
        }
        assert_eq!(names(&search), ["*1", "c*", "c?*"]);
        assert!(search.advance(&index, 0).is_none());
        // At last, those that are still added count as added later.
        let mut search = PatternSearch::new(b"c1");
        for round in 0..ROUNDS_MAX {
            let untried = search.advance(&index, 0);
            assert!(untried.is_some());
            index.add(format!("{}*", "?".repeat(round)).as_bytes(), 0);
            untried.into_iter().for_each(|untried| search.try_unlocked(untried));
        }
        assert!(search.advance(&index, 0).is_none());
    }
}
