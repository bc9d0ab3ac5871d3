//! An index over the values of a database that needs no visit of them: hashes with fields that
//! expire, and the number of keys of each size. It also keeps the position of the walk for expired
//! keys, and the clients that watch keys.
//!
//! The index is always exact: each addition, change and removal of a key passes the `IndexEntry` of
//! its value before and after. It changes rarely, since most writes leave a value in its size
//! class, and a database without keys allocates nothing.

use std::collections::BTreeSet;

use base::number::decimal_len_i64;
use ds::record::RecordRef;

use crate::large_keys::LargeKeys;
use crate::pre_images::progress::DbProgress;
use crate::size_class::{SizeClass, SizeFamily};
use crate::value::hash::HashValue;
use crate::value::stored::{Object, Stored, ValueKind};
use crate::watchers::Watchers;

/// A slot of the table, which is four fifths full.
const SLOT_BYTES: usize = 10;
/// An entry in the order of hashes whose fields expire, including its part of the tree's nodes.
const DUE_ENTRY_BYTES: usize = 34;

impl Stored<'_> {
    /// Bytes of memory that the key and its value take, including the key's part of the table and
    /// of the index.
    pub fn memory_bytes(self) -> usize {
        let object = self.0.object().map_or(0, Object::memory_bytes);
        let is_due = matches!(self.kind(), ValueKind::PackedExpiringHash | ValueKind::Hash)
            && HashValue::due(self.0).is_some();
        let due = if is_due { DUE_ENTRY_BYTES } else { 0 };
        self.0.allocated_bytes() + SLOT_BYTES + due + object
    }
}

/// The index data of one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    /// When its first field expires.
    pub(crate) due: Option<i64>,
    class: Option<SizeClass>,
}

impl IndexEntry {
    /// The entry of a missing key.
    pub(crate) const ABSENT: Self = Self { due: None, class: None };

    /// The entry of a hash of which only the expiry is known.
    pub(crate) fn due_at(at_ms: i64) -> Self {
        Self { due: Some(at_ms), class: None }
    }

    /// The entry of a string that is an integer.
    #[inline]
    pub(crate) fn of_integer(value: i64) -> Self {
        let class = SizeClass::new(SizeFamily::Strings, decimal_len_i64(value));
        Self { due: None, class: Some(class) }
    }

    /// The entry of the value in a record.
    #[inline]
    pub(crate) fn of(record: RecordRef<'_, Object>) -> Self {
        // Most values are strings in the record.
        match (ValueKind::from_bits(record.kind()), record.bytes()) {
            (ValueKind::Bytes | ValueKind::EditedBytes, Some(bytes)) => {
                Self { due: None, class: Some(SizeClass::new(SizeFamily::Strings, bytes.len())) }
            }
            _ => Self::of_any(record),
        }
    }

    #[inline(never)]
    fn of_any(record: RecordRef<'_, Object>) -> Self {
        let due = match ValueKind::from_bits(record.kind()) {
            ValueKind::PackedExpiringHash | ValueKind::Hash => HashValue::due(record),
            _ => None,
        };
        Self { due, class: SizeClass::of(record) }
    }
}

/// The key index of one database in one shard.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex(Option<Box<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    /// Hashes by their earliest expiry, each by the hash of its key.
    due: BTreeSet<(i64, u64)>,
    /// The number of keys in each size class.
    sizes: Vec<(SizeClass, u32)>,
    large: LargeKeys,
    /// The hash position where the next walk for expired keys begins.
    walk_at: u32,
    /// The mean time to live of keys with an expiry, as far as the walks have seen.
    mean_ttl_ms: f64,
    watchers: Watchers,
    /// The progress of a snapshot in this database.
    part: Option<Box<DbProgress>>,
}

impl KeyIndex {
    /// Updates the index after the value under a key with this hash changed; see
    /// [`IndexEntry::ABSENT`].
    #[inline]
    pub(crate) fn changed(&mut self, hash: u64, before: IndexEntry, after: IndexEntry) {
        if before != after {
            self.update(hash, before, after);
        }
    }

    fn update(&mut self, hash: u64, before: IndexEntry, after: IndexEntry) {
        let contents = self.0.get_or_insert_default();
        if before.class != after.class {
            contents.count(before.class, after.class);
            let is_large = |entry: IndexEntry| entry.class.is_some_and(SizeClass::is_large);
            if is_large(before) || is_large(after) {
                contents.large.changed(hash, before.class, after.class);
            }
        }
        if before.due != after.due {
            if let Some(at) = before.due {
                contents.due.remove(&(at, hash));
            }
            if let Some(at) = after.due {
                contents.due.insert((at, hash));
            }
        }
        self.drop_empty();
    }

    fn drop_empty(&mut self) {
        let is_empty = |contents: &Contents| {
            // Without keys there are no large keys.
            contents.sizes.is_empty()
                && contents.due.is_empty()
                && contents.watchers.is_empty()
                && contents.part.is_none()
        };
        if self.0.as_deref().is_some_and(is_empty) {
            self.0 = None;
        }
    }

    /// Changes the watching clients. Returns whether any are left.
    pub(crate) fn edit_watchers(&mut self, edit: impl FnOnce(&mut Watchers)) -> bool {
        let watchers = &mut self.0.get_or_insert_default().watchers;
        edit(watchers);
        let watched = !watchers.is_empty();
        self.drop_empty();
        watched
    }

    /// The clients that watch keys, if any.
    pub(crate) fn watchers(&self) -> Option<&Watchers> {
        self.0.as_ref().map(|contents| &contents.watchers)
    }

    /// Takes the watching clients out.
    pub(crate) fn take_watchers(&mut self) -> Watchers {
        let taken = self.0.as_mut().map(|contents| std::mem::take(&mut contents.watchers));
        self.drop_empty();
        taken.unwrap_or_default()
    }

    /// The progress of a snapshot in this database.
    #[inline]
    pub(crate) fn part(&mut self) -> Option<&mut DbProgress> {
        self.0.as_mut()?.part.as_deref_mut()
    }

    pub(crate) fn set_part(&mut self, part: Option<Box<DbProgress>>) {
        if part.is_some() || self.0.is_some() {
            self.0.get_or_insert_default().part = part;
            self.drop_empty();
        }
    }

    pub(crate) fn take_part(&mut self) -> Option<Box<DbProgress>> {
        self.0.as_mut()?.part.take()
    }

    /// Hashes with fields that expire.
    pub(crate) fn due_len(&self) -> usize {
        self.0.as_ref().map_or(0, |contents| contents.due.len())
    }

    /// When the next field of a hash expires, and the hash of its key.
    #[inline]
    pub(crate) fn first_due(&self) -> Option<(i64, u64)> {
        self.0.as_ref()?.due.first().copied()
    }

    /// The hash position where the next walk for expired keys begins.
    pub(crate) fn walk_at(&self) -> u32 {
        self.0.as_ref().map_or(0, |contents| contents.walk_at)
    }

    /// Remembers where a walk for expired keys has ended, as long as there are keys.
    pub(crate) fn set_walk_at(&mut self, position: u32) {
        if let Some(contents) = &mut self.0 {
            contents.walk_at = position;
        }
    }

    /// The mean time to live of keys with an expiry, in milliseconds; 0 before a walk.
    pub(crate) fn mean_ttl_ms(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |contents| contents.mean_ttl_ms)
    }

    /// Merges the mean of `seen` out of `all` keys into the overall mean.
    pub(crate) fn note_ttls(&mut self, mean_ms: f64, seen: usize, all: usize) {
        if let Some(contents) = &mut self.0 {
            let weight = if contents.mean_ttl_ms == 0.0 { 1.0 } else { seen as f64 / all as f64 };
            contents.mean_ttl_ms += (mean_ms - contents.mean_ttl_ms) * weight.min(1.0);
        }
    }

    /// The largest keys, or `None` if the index is empty.
    pub(crate) fn large_keys(&self) -> Option<&LargeKeys> {
        self.0.as_ref().map(|contents| &contents.large)
    }

    /// The number of keys in each size class, in no order.
    pub(crate) fn sizes(&self) -> &[(SizeClass, u32)] {
        self.0.as_ref().map_or(&[], |contents| &contents.sizes)
    }
}

impl Contents {
    fn count(&mut self, before: Option<SizeClass>, after: Option<SizeClass>) {
        let place = |sizes: &[(SizeClass, u32)], class| sizes.iter().position(|at| at.0 == class);
        if let Some(class) = after {
            match place(&self.sizes, class) {
                Some(at) => self.sizes[at].1 += 1,
                None => self.sizes.push((class, 1)),
            }
        }
        if let Some(at) = before.and_then(|class| place(&self.sizes, class)) {
            self.sizes[at].1 -= 1;
            if self.sizes[at].1 == 0 {
                self.sizes.swap_remove(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_counted_and_forgotten() {
        let entry =
            |size| IndexEntry { due: None, class: Some(SizeClass::new(SizeFamily::Lists, size)) };
        let mut key_index = KeyIndex::default();
        key_index.changed(1, IndexEntry::ABSENT, entry(4));
        key_index.changed(2, IndexEntry::ABSENT, entry(7));
        key_index.changed(1, entry(4), entry(8));
        let class = |bits| SizeClass { family: SizeFamily::Lists, bits };
        assert_eq!(key_index.sizes(), [(class(3), 1), (class(4), 1)]);
        key_index.changed(1, entry(8), IndexEntry::ABSENT);
        key_index.changed(2, entry(7), IndexEntry::ABSENT);
        assert!(key_index.0.is_none());
    }

    #[test]
    fn the_first_due_hash_is_found() {
        let entry = |due| IndexEntry { due, class: None };
        let mut key_index = KeyIndex::default();
        key_index.changed(1, IndexEntry::ABSENT, entry(Some(20)));
        key_index.changed(2, IndexEntry::ABSENT, entry(Some(10)));
        assert_eq!((key_index.first_due(), key_index.due_len()), (Some((10, 2)), 2));
        key_index.changed(2, entry(Some(10)), entry(Some(30)));
        assert_eq!(key_index.first_due(), Some((20, 1)));
        key_index.changed(1, entry(Some(20)), entry(None));
        key_index.changed(2, entry(Some(30)), IndexEntry::ABSENT);
        assert!(key_index.0.is_none());
    }
}
