//! Long strings of saved keys, which these share with the keyspace and with replies until a command
//! changes them.
//!
//! A string is excluded from the memory limit when only saved keys have it. The number of its
//! references says so: a reference is counted before its saved key is listed here, and dropped
//! after that was removed, and no new one can be made of a string that only saved keys have. So a
//! string that the keyspace or a reply still has is never excluded, whatever other threads do.
//!
//! A key that drops a string is mostly the last one that has it. Otherwise the string is looked at
//! again until the last key and the last reply are gone.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Weak};

use base::uncounted::SnapshotBytes;

use crate::value::stored::{Object, text_bytes};

/// The most strings that one call looks at again.
const LOOKS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct SharedTexts {
    by_address: HashMap<usize, SharedText>,
    /// Addresses of strings that a key dropped while other keys or replies shared them.
    dropped: VecDeque<usize>,
    /// A database was emptied, whose keys may have had any of the strings.
    all_dropped: bool,
}

/// A long string of saved keys.
#[derive(Debug)]
struct SharedText {
    text: Weak<Vec<u8>>,
    bytes: usize,
    /// How many saved keys have it.
    saved: usize,
    /// Its bytes, when only these have it.
    excluded: SnapshotBytes,
    /// Whether its address is in the list of dropped ones.
    is_dropped: bool,
}

impl SharedText {
    /// Excludes the string if only saved keys and `owners` others have it. Returns how many bytes
    /// that excludes, or `None` if more have it.
    fn exclude(&mut self, owners: usize) -> Option<usize> {
        if self.excluded.bytes() > 0 {
            return Some(0);
        }
        if self.text.strong_count() != self.saved + owners {
            return None;
        }
        self.excluded.set(self.bytes);
        Some(self.bytes)
    }
}

/// The value, if it is a long string.
pub(crate) fn long_text(object: Option<&Object>) -> Option<&Arc<Vec<u8>>> {
    match object {
        Some(Object::String(text)) => Some(text),
        _ => None,
    }
}

fn address_of(text: &Arc<Vec<u8>>) -> usize {
    Arc::as_ptr(text).addr()
}

impl SharedTexts {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// Whether some must be looked at again.
    pub(crate) fn has_dropped(&self) -> bool {
        self.all_dropped || !self.dropped.is_empty()
    }

    /// Adds a saved key that has the string.
    pub(crate) fn add(&mut self, text: &Arc<Vec<u8>>) {
        let shared = self.by_address.entry(address_of(text)).or_insert_with(|| SharedText {
            text: Arc::downgrade(text),
            bytes: text_bytes(text),
            saved: 0,
            excluded: SnapshotBytes::default(),
            is_dropped: false,
        });
        shared.saved += 1;
    }

    /// Removes a saved key before its copy is dropped. Returns how many bytes are no longer
    /// excluded.
    pub(crate) fn remove(&mut self, text: &Arc<Vec<u8>>) -> usize {
        let address = address_of(text);
        let Some(shared) = self.by_address.get_mut(&address) else { return 0 };
        shared.saved -= 1;
        if shared.saved > 0 {
            return 0;
        }
        self.by_address.remove(&address).map_or(0, |shared| shared.excluded.bytes())
    }

    /// A key is about to drop the string. Returns how many bytes that excludes.
    pub(crate) fn drop_owner(&mut self, text: &Arc<Vec<u8>>) -> usize {
        let address = address_of(text);
        let Some(shared) = self.by_address.get_mut(&address) else { return 0 };
        shared.exclude(1).unwrap_or_else(|| {
            if !mem::replace(&mut shared.is_dropped, true) {
                self.dropped.push_back(address);
            }
            0
        })
    }

    /// Whether one key and saved ones have the string, and nothing else.
    pub(crate) fn has_one_owner(&self, text: &Arc<Vec<u8>>) -> bool {
        let shared = self.by_address.get(&address_of(text));
        shared.is_some_and(|shared| Arc::strong_count(text) == shared.saved + 1)
    }

    /// Keys that are not known have dropped strings.
    pub(crate) fn drop_all(&mut self) {
        self.all_dropped = !self.is_empty();
    }

    /// Looks again at some strings that were dropped. Returns how many bytes that excludes.
    pub(crate) fn look_again(&mut self) -> usize {
        if mem::take(&mut self.all_dropped) {
            self.dropped.clear();
            self.dropped.extend(self.by_address.iter_mut().map(|(address, shared)| {
                shared.is_dropped = true;
                *address
            }));
        }
        let mut bytes = 0;
        for _ in 0..self.dropped.len().min(LOOKS_MAX) {
            let Some(address) = self.dropped.pop_front() else { break };
            // Another string may have the address of one that was written.
            let Some(shared) = self.by_address.get_mut(&address) else { continue };
            if !shared.is_dropped {
                continue;
            }
            match shared.exclude(0) {
                Some(excluded) => bytes += excluded,
                None => self.dropped.push_back(address),
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use base::uncounted::thread_snapshot_bytes;

    use super::*;

    impl SharedTexts {
        pub(crate) fn check(&self) {
            for shared in self.by_address.values() {
                let is_kept = shared.text.strong_count() == shared.saved;
                assert_eq!(shared.excluded.bytes() > 0, is_kept, "{shared:?}");
            }
        }
    }

    const LEN: usize = 100_000;
    /// The block that the allocator uses for a string, and the two counts before it.
    const BYTES: usize = 114_688 + size_of::<Vec<u8>>() + 16;

    fn text() -> Arc<Vec<u8>> {
        Arc::new(vec![b'x'; LEN])
    }

    #[test]
    fn a_string_is_excluded_when_its_last_key_drops_it() {
        let mut texts = SharedTexts::default();
        let (key, copy) = (text(), text());
        let (first, second) = (Arc::clone(&key), Arc::clone(&key));
        let other_key = Arc::clone(&key);
        texts.add(&first);
        texts.add(&second);
        texts.add(&copy);
        assert_eq!(texts.drop_owner(&key), 0, "another key has it");
        drop(key);
        assert!(texts.has_dropped() && texts.look_again() == 0);
        assert_eq!(texts.drop_owner(&other_key), BYTES);
        drop(other_key);
        assert_eq!((texts.look_again(), thread_snapshot_bytes()), (0, BYTES as i64), "once");
        assert_eq!(texts.remove(&first), 0, "another saved key has it");
        drop(first);
        assert_eq!((texts.remove(&second), thread_snapshot_bytes()), (BYTES, 0));
        assert_eq!(texts.remove(&copy), 0);
        assert!(texts.is_empty() && texts.look_again() == 0 && !texts.has_dropped());
    }

    #[test]
    fn a_string_is_excluded_when_the_last_reply_is_gone() {
        let mut texts = SharedTexts::default();
        let keys: Vec<_> = (0..2 * LOOKS_MAX).map(|_| text()).collect();
        let saved = keys.clone();
        let replies = keys.clone();
        saved.iter().for_each(|text| texts.add(text));
        assert_eq!(keys.iter().map(|text| texts.drop_owner(text)).sum::<usize>(), 0);
        drop(keys);
        assert_eq!(texts.look_again(), 0);
        drop(replies);
        assert_eq!([texts.look_again(), texts.look_again()], [LOOKS_MAX * BYTES; 2]);
        assert!(!texts.has_dropped());
        assert_eq!(
            saved.iter().map(|text| texts.remove(text)).sum::<usize>(),
            2 * LOOKS_MAX * BYTES
        );
        assert_eq!(thread_snapshot_bytes(), 0);
    }

    #[test]
    fn all_strings_are_looked_at_again_after_a_database_was_emptied() {
        let mut texts = SharedTexts::default();
        let emptied = text();
        let saved = Arc::clone(&emptied);
        texts.drop_all();
        assert!(!texts.has_dropped(), "there are none");
        texts.add(&saved);
        texts.drop_all();
        assert!(texts.has_one_owner(&emptied) && texts.look_again() == 0);
        drop(emptied);
        assert_eq!(texts.look_again(), BYTES);
        texts.remove(&saved);
        assert_eq!(thread_snapshot_bytes(), 0);
    }
}
