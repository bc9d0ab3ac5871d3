//! Fields that expire: how they are removed, and how their hashes are found.
//!
//! Each database keeps an order of the hashes that have such fields, by the earliest expiry in
//! each. It is always exact: every function that adds or removes a key updates it, and so does an
//! [`Edit`](crate::Edit) of a hash when it is dropped. The background work takes hashes from its
//! front; commands that meet an expired field remove it too. Either way the removal is a separate
//! effect, HDEL with the event `hexpired`.

use super::hash::remove_from;
use crate::db::Db;
use crate::db::marks::key_changes;
use crate::event::KeyspaceEvent;
use crate::key::Key;
use crate::key_index::IndexEntry;
use crate::turn::Turn;
use crate::value::hash::{HashRef, HashValue, TRIPLE, expiry_of};
use crate::value::stored::StoredType;

impl Db {
    /// Hashes that have fields that expire.
    pub fn hashes_with_expiry(&self) -> usize {
        self.key_index.due_len()
    }

    /// Removes the named fields that have expired. Returns how many.
    pub fn expire_fields<'f>(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
        fields: impl Iterator<Item = &'f [u8]>,
    ) -> usize {
        let Some((at, hash)) = self.with_expired(turn, key) else { return 0 };
        let is_expired = |field: &&[u8]| {
            hash.get(&turn.hasher, field)
                .is_some_and(|value| value.is_expired(turn.expired_before_ms))
        };
        let names: Vec<Vec<u8>> = fields.filter(is_expired).map(<[u8]>::to_vec).collect();
        self.drop_fields(turn, at, key.hash, &names)
    }

    /// Removes all expired fields of a hash. Returns how many.
    pub fn expire_all_fields(&mut self, turn: &mut Turn, key: Key<'_>) -> usize {
        let Some((at, hash)) = self.with_expired(turn, key) else { return 0 };
        let names = expired_names(hash, turn, usize::MAX);
        self.drop_fields(turn, at, key.hash, &names)
    }

    /// The hash under a key, if one of its fields has expired.
    #[inline]
    fn with_expired(&self, turn: &Turn, key: Key<'_>) -> Option<(usize, HashRef<'_>)> {
        if turn.keep_expired {
            return None;
        }
        // Most databases have no expired field.
        self.key_index.first_due().filter(|(at, _)| *at < turn.expired_before_ms)?;
        let at = self.table.find(key.hash, key.bytes)?;
        let hash = HashValue::view(self.table.at(at))?;
        hash.has_expired(turn.expired_before_ms).then_some((at, hash))
    }

    /// Removes expired fields of any hash, up to a maximum. Returns how many.
    pub fn expire_due_fields(&mut self, turn: &mut Turn, fields_max: usize) -> usize {
        let mut removed = 0;
        while removed < fields_max {
            let first = self.key_index.first_due().filter(|(at, _)| *at < turn.expired_before_ms);
            let Some((at_ms, hash)) = first else { break };
            let found = self.table.find_where(hash, |record| {
                HashValue::due(record) == Some(at_ms) && turn.hasher.hash(record.key()) == hash
            });
            let names = found
                .and_then(|at| HashValue::view(self.table.at(at)))
                .map(|fields| expired_names(fields, turn, fields_max - removed));
            debug_assert!(names.as_ref().is_some_and(|names| !names.is_empty()), "exact order");
            let (Some(at), Some(names)) = (found, names) else {
                let stray = IndexEntry::due_at(at_ms);
                self.key_index.changed(hash, stray, IndexEntry::ABSENT);
                continue;
            };
            removed += self.drop_fields(turn, at, hash, &names).max(1);
        }
        removed
    }

    /// Removes fields of the hash in a slot, and its key when none is left.
    fn drop_fields(&mut self, turn: &mut Turn, at: usize, hash: u64, names: &[Vec<u8>]) -> usize {
        let before = IndexEntry::of(self.table.at(at));
        let cleared = self.before_change(&turn.hasher, hash);
        let mut record = self.table.at_mut(at, cleared);
        let removed: Vec<&Vec<u8>> =
            names.iter().filter(|name| remove_from(&mut record, &turn.hasher, name)).collect();
        drop(record);
        if removed.is_empty() {
            return 0;
        }
        turn.counters.expired_fields += removed.len() as u64;
        let record = self.table.at(at);
        let emptied = HashValue::is_empty(record);
        let (db, unix_ms) = (self.number as usize, turn.unix_ms);
        let key = record.key();
        let gone = emptied.then_some((KeyspaceEvent::new('g', "del"), key));
        let events = [(KeyspaceEvent::new('h', "hexpired"), key)].into_iter().chain(gone);
        turn.effects.push(db, unix_ms, events, |command| {
            command.arg("HDEL");
            command.arg(key);
            command.args(&removed);
        });
        let after = if emptied { IndexEntry::ABSENT } else { IndexEntry::of(record) };
        let noted = key_changes(turn, record.key());
        turn.effects.touched_without_command();
        self.changed(noted, hash, before, after);
        if emptied {
            let record = self.take_record(turn, at, hash);
            turn.lazy_free.extend(record.into_object());
        }
        removed.len()
    }
}

/// The names of expired fields up to a maximum, the earliest expiry first.
fn expired_names(hash: HashRef<'_>, turn: &Turn, fields_max: usize) -> Vec<Vec<u8>> {
    match hash {
        HashRef::Packed(_) => Vec::new(),
        HashRef::Expiring(fields) => {
            let mut names = Vec::new();
            let mut entries = fields.iter();
            // Fields that expire come first, in the order of their expiry.
            while let (Some(field), Some(_), Some(expiry)) =
                (entries.next(), entries.next(), entries.next())
            {
                let expired = expiry_of(expiry).is_some_and(|at| at < turn.expired_before_ms);
                if !expired || names.len() == fields_max {
                    break;
                }
                names.push(field.to_vec());
            }
            debug_assert!(names.len() <= fields.len() / TRIPLE);
            names
        }
        HashRef::Table(table) => table
            .ending(&turn.hasher, turn.expired_before_ms)
            .take(fields_max)
            .map(<[u8]>::to_vec)
            .collect(),
    }
}
