//! Changes of a stored set.

use std::mem;

use base::number::parse_i64;
use base::random::Random;
use ds::dict::Dict;
use ds::intset;
use ds::packed::{Encoded, Entry, Packed, PackedMut};
use ds::record::Payload;

use crate::db::{Db, Edit, ExpiryChange};
use crate::key::Key;
use crate::limits::EncodingLimits;
use crate::new::set::{NewSet, add_new, ints_max, packed_takes};
use crate::turn::Turn;
use crate::value::set::{SampleDraw, SetRef, SetValue};
use crate::value::stored::{Object, StoredType, ValueKind};

/// A pop rebuilds the set, possibly in a smaller form, if this many times the remaining members are
/// at most the popped ones.
const POP_SHARE: usize = 5;

impl Db {
    /// Sets a key to a set that is not empty, whatever its type was, without an expiry. The turn
    /// keeps the buffer in which the set was built.
    pub fn put_set(&mut self, turn: &mut Turn, key: Key<'_>, set: NewSet) {
        let (kind, room) = match set {
            NewSet::Ints(ints) => (ValueKind::IntSet, ints),
            NewSet::Packed(packed) => (ValueKind::PackedSet, packed),
            NewSet::Table(table) => {
                let payload = Payload::Object(Object::Set(table));
                self.replace(turn, key, ValueKind::Set, payload, ExpiryChange::Clear);
                return;
            }
        };
        self.replace(turn, key, kind, Payload::Bytes(&room), ExpiryChange::Clear);
        turn.scratch = room;
    }
}

impl Edit<'_, SetValue> {
    /// The set for reading.
    #[inline]
    pub fn set(&self) -> SetRef<'_> {
        SetValue::view(self.record()).unwrap_or(SetRef::Packed(Packed::new(b"")))
    }

    /// Adds members, and returns how many of them are new.
    pub fn add<'m>(
        &mut self,
        members: impl ExactSizeIterator<Item = &'m [u8]> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        if let SetRef::Table(_) = self.set() {
            return members.filter(|member| self.add_to_table(member)).count();
        }
        if members.len() == 1
            && let Some(member) = members.clone().next()
            && let Some(added) = self.add_in_place(member, limits)
        {
            return usize::from(added);
        }
        self.add_to_copy(members, limits)
    }

    fn add_to_table(&mut self, member: &[u8]) -> bool {
        let hasher = self.turn().hasher;
        let SetRef::Table(table) = self.set() else { return false };
        if table.find(hasher.hash(member), member).is_some() {
            return false;
        }
        self.with_table(|table| add_new(table, member, &hasher));
        true
    }

    /// Adds one member in the record's bytes. Returns `None` if the set must change its form.
    #[inline]
    fn add_in_place(&mut self, member: &[u8], limits: &EncodingLimits) -> Option<bool> {
        match self.set() {
            SetRef::Ints(ints) => {
                let value = parse_i64(member)?;
                if ints.contains(value) {
                    return Some(false);
                }
                if ints.len() as u64 >= ints_max(limits) {
                    return None;
                }
                intset::insert(&mut *self.record_mut(), value);
                Some(true)
            }
            SetRef::Packed(packed) => {
                let encoded = Encoded::text(member);
                if packed.find(encoded, 0, 1).is_some() {
                    return Some(false);
                }
                if !packed_takes(packed, member.len(), limits) {
                    return None;
                }
                PackedMut::new(&mut *self.record_mut()).push_back(encoded);
                Some(true)
            }
            SetRef::Table(_) => None,
        }
    }

    /// Adds members to a copy and stores that in one go, which moves the record only once.
    fn add_to_copy<'m>(
        &mut self,
        members: impl ExactSizeIterator<Item = &'m [u8]> + Clone,
        limits: &EncodingLimits,
    ) -> usize {
        let hasher = self.turn().hasher;
        let mut room = mem::take(&mut self.turn().scratch);
        room.clear();
        let known = members.clone().next().unwrap_or_default();
        let mut new = if self.set().is_empty() {
            NewSet::for_members(known, members.len(), limits, room)
        } else {
            let bytes = self.record().bytes().unwrap_or_default();
            NewSet::for_more(self.set(), bytes, members.len(), limits, &hasher, room)
        };
        let added = members.filter(|m| new.add(Entry::Bytes(m), limits, &hasher)).count();
        match new {
            // A set without new members may still have left a form that was too small.
            NewSet::Table(table) if added == 0 && !self.is_new() => {
                let object = Object::Set(table);
                self.record_unchanged_mut().set_object(ValueKind::Set as u8, object);
            }
            NewSet::Ints(room) | NewSet::Packed(room) if added == 0 => self.turn().scratch = room,
            new => self.store(new),
        }
        added
    }

    /// Removes a member. Returns whether it existed.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self.set() {
            SetRef::Ints(ints) => match parse_i64(member).map(|value| ints.search(value)) {
                Some(Ok(at)) => {
                    intset::remove_range(&mut *self.record_mut(), at..at + 1);
                    true
                }
                _ => false,
            },
            SetRef::Packed(packed) => match packed.find(Encoded::text(member), 0, 1) {
                Some(at) => PackedMut::new(&mut *self.record_mut()).remove(at, 1) == 1,
                None => false,
            },
            SetRef::Table(table) => {
                let hasher = self.turn_ref().hasher;
                let Some(place) = table.place(hasher.hash(member), member) else { return false };
                self.with_table(|table| drop(table.remove_at(place, &hasher)));
                true
            }
        }
    }

    /// Visits a random member and removes it.
    pub fn pop(&mut self, random: &mut Random, visit: &mut dyn FnMut(Entry<'_>)) {
        match self.set() {
            SetRef::Ints(ints) => {
                let at = random.below(ints.len() as u64) as usize;
                if let Some(value) = ints.at(at) {
                    visit(Entry::Integer(value));
                    intset::remove_range(&mut *self.record_mut(), at..at + 1);
                }
            }
            SetRef::Packed(packed) => {
                let at = packed.position(random.below(packed.len() as u64) as usize);
                if at < packed.end() {
                    visit(packed.entry(at));
                    PackedMut::new(&mut *self.record_mut()).remove(at, 1);
                }
            }
            SetRef::Table(table) => {
                if let Some(place) = table.random(random) {
                    visit(Entry::Bytes(table.at(place).key()));
                    let hasher = self.turn_ref().hasher;
                    self.with_table(|table| drop(table.remove_at(place, &hasher)));
                }
            }
        }
    }

    /// Visits `count` random members and removes them; `count` is less than the set has.
    pub fn pop_many(
        &mut self,
        count: usize,
        random: &mut Random,
        limits: &EncodingLimits,
        visit: &mut dyn FnMut(Entry<'_>),
    ) {
        let set = self.set();
        let stay = set.len().saturating_sub(count);
        let is_table = matches!(set, SetRef::Table(_));
        // A saturated product exceeds any count, as the exact one would.
        if is_table && stay.saturating_mul(POP_SHARE) > count {
            (0..count).for_each(|_| self.pop(random, visit));
            return;
        }
        let mut room = mem::take(&mut self.turn().scratch);
        room.clear();
        let new = if is_table {
            let hasher = self.turn().hasher;
            let mut new = NewSet::Packed(room);
            // The remaining members are drawn, then all others are popped.
            for _ in 0..stay {
                let keep = &mut |member: Entry<'_>| new.add_absent(member, limits, &hasher);
                self.pop(random, keep);
            }
            self.set().iter().for_each(visit);
            new
        } else {
            self.pop_small(count, random, room, visit)
        };
        self.store(new);
    }

    /// Visits `count` random members of a small set, and returns the others.
    fn pop_small(
        &self,
        count: usize,
        random: &mut Random,
        mut room: Vec<u8>,
        visit: &mut dyn FnMut(Entry<'_>),
    ) -> NewSet {
        let mut choice = SampleDraw::new(count, self.set().len());
        let mut stays = |member: &Entry<'_>| {
            let pops = choice.takes(random);
            if pops {
                visit(*member);
            }
            !pops
        };
        match self.set() {
            SetRef::Ints(ints) => {
                for value in ints.iter().filter(|value| stays(&Entry::Integer(*value))) {
                    intset::insert(&mut room, value);
                }
                NewSet::Ints(room)
            }
            set => {
                let left: Vec<Entry<'_>> = set.iter().filter(stays).collect();
                PackedMut::new(&mut room).extend(left.iter().copied());
                NewSet::Packed(room)
            }
        }
    }

    fn with_table(&mut self, work: impl FnOnce(&mut Dict)) {
        if let Some(Object::Set(table)) = self.record_mut().object_mut() {
            work(table);
        }
    }

    /// Replaces the whole set.
    fn store(&mut self, new: NewSet) {
        self.discard_object();
        let (kind, room) = match new {
            NewSet::Ints(room) => (ValueKind::IntSet, room),
            NewSet::Packed(room) => (ValueKind::PackedSet, room),
            NewSet::Table(table) => {
                self.record_mut().set_object(ValueKind::Set as u8, Object::Set(table));
                return;
            }
        };
        self.record_mut().set_bytes(kind as u8, &room);
        self.turn().scratch = room;
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
#[path = "set_tests.rs"]
mod tests;
