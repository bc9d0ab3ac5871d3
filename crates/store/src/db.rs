//! One shard's part of one database: finds, reads, edits, puts and removes keys.
//!
//! No access returns an expired key. The kind of lookup decides the rest:
//!
//! | lookup | hit or miss | access clock | expired key | for |
//! |---|---|---|---|---|---|
//! | [`Lookup::Read`], [`Db::read`] | counted | set | removed | reads of values, TOUCH |
//! | [`Lookup::NoTouch`] | counted | kept | removed | EXISTS, TTL, TYPE |
//! | [`Lookup::Inspect`] | counted, no event | kept | removed | OBJECT |
//! | [`Lookup::Quiet`], [`Db::contains`] | not counted | kept | removed | conditions of writes |
//! | [`Db::lookup_shared`] | not counted | kept | left in place | KEYS, several values at once |
//!
//! The access clock also stays where [`Turn::touch`] is off, and an expired key where
//! [`Turn::keep_expired`] is on.
//!
//! Commands write to a value through [`Edit`]. When dropped, it counts the change and removes a key
//! whose value became empty, so that no command can forget to.

mod edit;
pub(crate) mod keys;
mod large_keys;
pub(crate) mod marks;
mod pick;
mod prefetch;
#[cfg(test)]
mod tests;
mod watch;

use base::hash::KeyHasher;
use ds::record::{Payload, Record};
use ds::table::Table;

pub use edit::Edit;
use keys::{Cleared, GuardedKeys};

use crate::event::KeyspaceEvent;
use crate::key::Key;
use crate::key_index::{IndexEntry, KeyIndex};
use crate::size_class::SizeClass;
use crate::turn::Turn;
use crate::value::stored::{Object, Stored, StoredType, ValueKind};
use crate::watchers::Presence;

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

/// The side effects of a lookup. The table at the top of this module compares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Counts a hit or a miss and sets the access clock.
    Read,
    /// Counts a hit or a miss.
    NoTouch,
    /// Counts a hit or a miss, but a miss is no event.
    Inspect,
    /// Has no side effects.
    Quiet,
}

/// The change that a put makes to the key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryChange {
    /// The key does not expire.
    Clear,
    /// As it was before.
    Keep,
    /// At this time, in milliseconds since 1970.
    At(i64),
}

/// One shard's part of one database.
#[derive(Debug, Default)]
pub struct Db {
    pub(crate) table: GuardedKeys,
    /// The database's number, for effects.
    pub(crate) number: u32,
    /// In database 0: whether a client is in the queues of the shard's [`Waiters`](crate::Waiters).
    /// It is here because this cache line has room.
    pub(crate) awaited: bool,
    /// Whether a client watches a key.
    pub(crate) watched: bool,
    /// Whether a snapshot must see keys before they change.
    pub(crate) in_snapshot: bool,
    /// Hashes with fields that expire, and sizes of values.
    pub(crate) key_index: KeyIndex,
}

impl Db {
    /// The number that clients select it by.
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// Keys, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Keys that have an expiry.
    pub fn expiring_len(&self) -> usize {
        self.table.expiring_len()
    }

    /// Reserves room for this many keys in all, so that adding them moves few.
    pub fn reserve(&mut self, turn: &Turn, keys: usize) {
        self.table.reserve(keys, &turn.hasher);
    }

    /// Slots of the table, occupied or not.
    pub fn slots_len(&self) -> usize {
        self.table.slots_len()
    }

    /// Bytes of the table's slots.
    pub fn slot_bytes(&self) -> usize {
        self.table.slots_len() * size_of::<u64>()
    }

    /// The number of keys in each size class, in no order.
    pub fn sizes(&self) -> &[(SizeClass, u32)] {
        self.key_index.sizes()
    }

    /// Must be called before a record of a key with this hash changes, is added or is removed.
    #[inline]
    pub(crate) fn before_change(&mut self, hasher: &KeyHasher, hash: u64) -> Cleared {
        if self.in_snapshot {
            self.save_for_snapshot(hasher, hash, false);
        }
        Cleared::by_db()
    }

    /// The same before a change of the expiry, the name or the database, which keeps the value.
    #[inline]
    fn before_move(&mut self, hasher: &KeyHasher, hash: u64) -> Cleared {
        if self.in_snapshot {
            self.save_for_snapshot(hasher, hash, true);
        }
        Cleared::by_db()
    }

    /// The slot of a key that exists and has not expired.
    #[inline]
    fn find(&mut self, turn: &mut Turn, key: Key<'_>) -> Option<usize> {
        let at = self.table.find(key.hash, key.bytes)?;
        if Stored(self.table.at(at)).is_expired(turn) {
            if !turn.keep_expired {
                self.expire(turn, at);
            }
            return None;
        }
        Some(at)
    }

    /// Removes the expired record at a slot. This is always a separate effect.
    pub(crate) fn expire(&mut self, turn: &mut Turn, at: usize) {
        let hash = turn.hasher.hash(self.table.at(at).key());
        turn.counters.expired += 1;
        let (event, unlink) = (KeyspaceEvent::new('x', "expired"), turn.unlink_expired);
        let record = self.detach_without_command(turn, at, hash, event, unlink);
        turn.lazy_free.extend(record.into_object());
    }

    /// Takes a record out of its slot that no command removes, as a separate effect.
    pub(crate) fn detach_without_command(
        &mut self,
        turn: &mut Turn,
        at: usize,
        hash: u64,
        event: KeyspaceEvent,
        unlink: bool,
    ) -> Record<Object> {
        let record = self.detach(turn, at, hash);
        turn.effects.touched_without_command();
        let (db, unix_ms) = (self.number as usize, turn.unix_ms);
        let key = record.view().key();
        turn.effects.change(Some(db), key);
        turn.effects.push(db, unix_ms, [(event, key)], |command| {
            command.arg(if unlink { "UNLINK" } else { "DEL" });
            command.arg(key);
        });
        record
    }

    fn add_record(
        &mut self,
        turn: &Turn,
        hash: u64,
        record: Record<Object>,
        cleared: Cleared,
    ) -> usize {
        turn.keys.add(self.number, 1);
        marks::key_comes(turn, hash, self.table.is_empty());
        marks::key_expires(turn, hash, record.view().has_expiry());
        self.table.insert(hash, record, &turn.hasher, cleared)
    }

    pub(crate) fn take_record(&mut self, turn: &Turn, at: usize, hash: u64) -> Record<Object> {
        turn.keys.add(self.number, -1);
        let cleared = self.before_change(&turn.hasher, hash);
        self.table.remove(at, &turn.hasher, cleared)
    }

    /// Takes the record of a key with this hash out of its slot.
    pub(crate) fn detach(&mut self, turn: &mut Turn, at: usize, hash: u64) -> Record<Object> {
        let record = self.take_record(turn, at, hash);
        self.note_detached(turn, hash, record)
    }

    fn note_detached(
        &mut self,
        turn: &mut Turn,
        hash: u64,
        record: Record<Object>,
    ) -> Record<Object> {
        let noted = marks::key_changes(turn, record.view().key());
        self.changed(noted, hash, IndexEntry::of(record.view()), IndexEntry::ABSENT);
        record
    }

    #[inline]
    fn lookup_at(&mut self, turn: &mut Turn, key: Key<'_>, mode: Lookup) -> Option<usize> {
        let found = self.find(turn, key);
        if mode != Lookup::Quiet {
            let counters = &mut turn.counters;
            *(if found.is_some() { &mut counters.hits } else { &mut counters.misses }) += 1;
            if found.is_none() && mode != Lookup::Inspect {
                turn.effects.note_miss(self.number, key.bytes);
            }
        }
        if mode == Lookup::Read
            && let Some(at) = found
        {
            self.touch(turn, at);
        }
        found
    }

    #[inline]
    fn touch(&mut self, turn: &mut Turn, at: usize) {
        if !turn.touch {
            return;
        }
        let before = self.table.at(at).access_clock();
        let clock = turn.used_clock(before);
        if before != clock {
            self.table.set_access_clock(at, clock);
        }
    }

    /// A key's value, whatever its type.
    #[inline]
    pub fn lookup(&mut self, turn: &mut Turn, key: Key<'_>, mode: Lookup) -> Option<Stored<'_>> {
        self.lookup_at(turn, key, mode).map(|at| Stored(self.table.at(at)))
    }

    /// A key's value of type `T`, looked up with [`Lookup::Read`].
    ///
    /// # Errors
    /// When the value is of another type.
    #[inline]
    pub fn read<T: StoredType>(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
    ) -> Result<Option<T::View<'_>>, WrongType> {
        let Some(at) = self.lookup_at(turn, key, Lookup::Read) else { return Ok(None) };
        T::view(self.table.at(at)).map(Some).ok_or(WrongType)
    }

    /// Whether the key exists, looked up with [`Lookup::Quiet`].
    #[inline]
    pub fn contains(&mut self, turn: &mut Turn, key: Key<'_>) -> bool {
        self.find(turn, key).is_some()
    }

    /// A key's value, whatever its type. Changes nothing, so a command can hold the values of
    /// several keys at once; the command counts and touches them with [`Db::lookup`] before that.
    #[inline]
    pub fn lookup_shared(&self, turn: &Turn, key: Key<'_>) -> Option<Stored<'_>> {
        let at = self.table.find(key.hash, key.bytes)?;
        Some(Stored(self.table.at(at))).filter(|stored| !stored.is_expired(turn))
    }

    /// A key's value, even if the key has expired and is not removed yet.
    pub fn lookup_even_expired(&self, key: Key<'_>) -> Option<Stored<'_>> {
        let at = self.table.find(key.hash, key.bytes)?;
        Some(Stored(self.table.at(at)))
    }

    /// Opens a key's value of type `T` for writing.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn edit<'a, T: StoredType>(
        &'a mut self,
        turn: &'a mut Turn,
        key: Key<'_>,
    ) -> Result<Option<Edit<'a, T>>, WrongType> {
        match self.find(turn, key) {
            Some(at) => self.edit_at(turn, at, key).map(Some),
            None => Ok(None),
        }
    }

    /// Opens a value for writing, looked up with [`Lookup::NoTouch`]: for commands that also read,
    /// such as XREADGROUP.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn read_and_edit<'a, T: StoredType>(
        &'a mut self,
        turn: &'a mut Turn,
        key: Key<'_>,
    ) -> Result<Option<Edit<'a, T>>, WrongType> {
        match self.lookup_at(turn, key, Lookup::NoTouch) {
            Some(at) => self.edit_at(turn, at, key).map(Some),
            None => Ok(None),
        }
    }

    fn edit_at<'a, T: StoredType>(
        &'a mut self,
        turn: &'a mut Turn,
        at: usize,
        key: Key<'_>,
    ) -> Result<Edit<'a, T>, WrongType> {
        if T::view(self.table.at(at)).is_none() {
            return Err(WrongType);
        }
        self.touch(turn, at);
        Ok(Edit::new(self, turn, at, key.hash, false))
    }

    /// Opens a value for writing. A missing key gets an empty value first; if that stays empty, the
    /// key is removed again and nothing has happened.
    ///
    /// # Errors
    /// When the value is of another type.
    pub fn edit_or_create<'a, T: StoredType>(
        &'a mut self,
        turn: &'a mut Turn,
        key: Key<'_>,
    ) -> Result<Edit<'a, T>, WrongType> {
        let (at, created) = match self.find(turn, key) {
            Some(at) if T::view(self.table.at(at)).is_none() => return Err(WrongType),
            Some(at) => {
                self.touch(turn, at);
                (at, false)
            }
            None => {
                let empty = Payload::Bytes(b"");
                let clock = turn.new_clock();
                let record = Record::new(key.bytes, T::EMPTY as u8, empty, None, clock);
                let cleared = self.before_change(&turn.hasher, key.hash);
                (self.add_record(turn, key.hash, record, cleared), true)
            }
        };
        Ok(Edit::new(self, turn, at, key.hash, created))
    }

    /// Adds to the integer under a key in place, the usual case of INCR. Returns `None` if the key
    /// is missing or its value is not stored as an integer, and `Some(None)` if the sum is out of
    /// range.
    #[inline]
    pub fn add_to_integer(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
        increment: i64,
    ) -> Option<Option<i64>> {
        let at = self.find(turn, key)?;
        let record = self.table.at(at);
        if ValueKind::from_bits(record.kind()) != ValueKind::Integer {
            return None;
        }
        let old = i64::from_le_bytes(record.bytes()?.try_into().ok()?);
        let Some(sum) = old.checked_add(increment) else { return Some(None) };
        let cleared = self.before_change(&turn.hasher, key.hash);
        let mut record = self.table.at_mut(at, cleared);
        record.bytes_mut()?.copy_from_slice(&sum.to_le_bytes());
        if turn.touch {
            let clock = turn.used_clock(record.view().access_clock());
            record.set_access_clock(clock);
        }
        drop(record);
        turn.counters.changes += 1;
        let noted = marks::key_changes(turn, key.bytes);
        self.changed(noted, key.hash, IndexEntry::of_integer(old), IndexEntry::of_integer(sum));
        Some(Some(sum))
    }

    /// Sets a key to a value of any type, whatever its type was. Returns whether the key is new.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
        kind: ValueKind,
        payload: Payload<'_, Object>,
        expires_at: ExpiryChange,
    ) -> bool {
        turn.counters.changes += 1;
        let found = self.find(turn, key);
        let expires_at = match (expires_at, found) {
            (ExpiryChange::Clear, _) | (ExpiryChange::Keep, None) => None,
            (ExpiryChange::At(at), _) => Some(at),
            (ExpiryChange::Keep, Some(at)) => self.table.at(at).expires_at(),
        };
        let cleared = self.before_change(&turn.hasher, key.hash);
        let Some(at) = found else {
            let clock = turn.new_clock();
            let record = Record::new(key.bytes, kind as u8, payload, expires_at, clock);
            let noted = marks::key_changes(turn, key.bytes);
            self.changed(noted, key.hash, IndexEntry::ABSENT, IndexEntry::of(record.view()));
            self.add_record(turn, key.hash, record, cleared);
            turn.effects.note_new(self.number, key.bytes);
            return true;
        };
        marks::key_expires(turn, key.hash, expires_at.is_some());
        let before = IndexEntry::of(self.table.at(at));
        let mut record = self.table.at_mut(at, cleared);
        let old = record.view();
        let clock = turn.used_clock(old.access_clock());
        match payload {
            // The usual overwrite: the record stays in place if its size class stays the same.
            Payload::Bytes(bytes)
                if old.has_expiry() == expires_at.is_some() && old.object().is_none() =>
            {
                record.set_bytes(kind as u8, bytes);
                record.set_expires_at(expires_at);
                record.set_access_clock(clock);
            }
            payload => {
                let new = Record::new(key.bytes, kind as u8, payload, expires_at, clock);
                turn.lazy_free.extend(std::mem::replace(&mut *record, new).into_object());
            }
        }
        let after = IndexEntry::of(record.view());
        drop(record);
        let noted = marks::key_changes(turn, key.bytes);
        self.changed(noted, key.hash, before, after);
        false
    }

    /// Removes a key. Returns whether it was there; its value is dropped after the turn.
    pub fn remove(&mut self, turn: &mut Turn, key: Key<'_>) -> bool {
        let Some(at) = self.find(turn, key) else { return false };
        turn.counters.changes += 1;
        self.touch(turn, at);
        let record = self.detach(turn, at, key.hash);
        turn.lazy_free.extend(record.into_object());
        true
    }

    /// Removes a key and returns its record, for use elsewhere.
    pub fn take(&mut self, turn: &mut Turn, key: Key<'_>) -> Option<Record<Object>> {
        let at = self.find(turn, key)?;
        turn.counters.changes += 1;
        self.touch(turn, at);
        turn.keys.add(self.number, -1);
        let cleared = self.before_move(&turn.hasher, key.hash);
        self.note_departure(turn, at);
        let record = self.table.remove(at, &turn.hasher, cleared);
        Some(self.note_detached(turn, key.hash, record))
    }

    /// Adds a record from elsewhere under a missing key.
    pub fn insert(&mut self, turn: &mut Turn, key: Key<'_>, record: Record<Object>) {
        turn.counters.changes += 1;
        let record =
            if record.view().key() == key.bytes { record } else { record.rekeyed(key.bytes) };
        let after = IndexEntry::of(record.view());
        marks::field_expires(turn, key.hash, after.due.is_some());
        let noted = marks::key_changes(turn, key.bytes);
        self.changed(noted, key.hash, IndexEntry::ABSENT, after);
        let cleared = self.before_change(&turn.hasher, key.hash);
        self.note_arrival(turn, key, record.view().object());
        self.add_record(turn, key.hash, record, cleared);
        turn.effects.note_new(self.number, key.bytes);
    }

    /// Puts a record made for this key in the place of the old one. As in Redis, which removes that
    /// first, notified clients see a new key.
    pub fn put_record(&mut self, turn: &mut Turn, key: Key<'_>, record: Record<Object>) {
        let Some(at) = self.find(turn, key) else { return self.insert(turn, key, record) };
        turn.counters.changes += 1;
        let (before, after) = (IndexEntry::of(self.table.at(at)), IndexEntry::of(record.view()));
        marks::key_expires(turn, key.hash, record.view().has_expiry());
        marks::field_expires(turn, key.hash, after.due.is_some());
        let cleared = self.before_change(&turn.hasher, key.hash);
        self.note_arrival(turn, key, record.view().object());
        let old = std::mem::replace(&mut *self.table.at_mut(at, cleared), record);
        let noted = marks::key_changes(turn, key.bytes);
        self.changed(noted, key.hash, before, after);
        turn.lazy_free.extend(old.into_object());
        turn.effects.note_new(self.number, key.bytes);
    }

    /// A copy of a key's value and expiry under another key.
    pub fn duplicate(
        &mut self,
        turn: &mut Turn,
        key: Key<'_>,
        new_key: &[u8],
    ) -> Option<Record<Object>> {
        let at = self.find(turn, key)?;
        self.note_departure(turn, at);
        Some(self.table.at(at).duplicate(new_key))
    }

    /// Sets or removes a key's expiry, in milliseconds since 1970. Returns whether the key is
    /// there.
    pub fn set_expiry(&mut self, turn: &mut Turn, key: Key<'_>, at_ms: Option<i64>) -> bool {
        let Some(at) = self.find(turn, key) else { return false };
        turn.counters.changes += 1;
        self.touch(turn, at);
        let cleared = self.before_move(&turn.hasher, key.hash);
        self.table.at_mut(at, cleared).set_expires_at(at_ms);
        marks::key_expires(turn, key.hash, at_ms.is_some());
        let noted = marks::key_changes(turn, key.bytes);
        self.rewritten(noted, key.hash);
        true
    }

    /// Visits values in hash order from a position, as [`Table::scan`] does, expired ones included.
    pub fn scan(
        &self,
        turn: &Turn,
        from: u32,
        count: usize,
        visit: &mut dyn FnMut(Stored<'_>),
    ) -> Option<u32> {
        self.table.scan(from, count, &turn.hasher, &mut |record| visit(Stored(record)))
    }

    /// Empties the database and returns its records, to be dropped without a lock. A running
    /// snapshot receives the records that it still needs.
    pub fn clear(&mut self, turn: &Turn) -> Table<Object> {
        turn.keys.add(self.number, -(self.len() as i64));
        let mut watchers = self.key_index.take_watchers();
        watchers.touch_all(|hash, name| (self.presence(turn, hash, name), Presence::Absent));
        let part = self.key_index.take_part();
        self.key_index = KeyIndex::default();
        self.key_index.set_part(part);
        self.put_watchers(watchers);
        let table = self.table.take();
        self.hand_emptied(table)
    }
}
