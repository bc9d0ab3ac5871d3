//! A hash as a table: a dict member for each field, with the value as its bytes, and an order of
//! the fields that expire.
//!
//! Invariant: the order holds exactly the members that expire, each by its expiry and the hash of
//! its field. That hash finds the field again, so names are stored once.

use std::collections::BTreeSet;

use base::hash::KeyHasher;
use ds::Dict;
use ds::btree::btree_bytes;
use ds::dict::{Member, MemberRef, Place, Walker};
use ds::record::Payload;

/// A table of fields; see this module's description.
#[derive(Clone, Debug, Default)]
pub struct FieldTable {
    dict: Dict,
    /// Expiry and hash of every field that expires; most hashes have none and no allocation here.
    order: BTreeSet<(i64, u64)>,
}

impl FieldTable {
    /// An empty table with room for this many fields.
    pub fn with_room(fields: usize, hasher: &KeyHasher) -> Self {
        Self { dict: Dict::with_room(fields, hasher), order: BTreeSet::new() }
    }

    /// Fields, including expired ones.
    pub fn len(&self) -> usize {
        self.dict.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.dict.is_empty()
    }

    /// The members, for walking, scanning and drawing.
    pub fn dict(&self) -> &Dict {
        &self.dict
    }

    /// The walk over the fields.
    pub(crate) fn walker(&mut self) -> Walker<'_> {
        self.dict.walker()
    }

    /// About how many allocations dropping it frees.
    pub fn allocations(&self) -> usize {
        self.dict.allocations() + self.order.len() / 8
    }

    /// Bytes it takes, this struct included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.dict.memory_bytes()
            + btree_bytes(self.order.len(), size_of::<(i64, u64)>())
    }

    /// A field by its hash and name.
    #[inline]
    pub fn get(&self, hash: u64, field: &[u8]) -> Option<MemberRef<'_>> {
        self.dict.find(hash, field)
    }

    /// When the first field expires.
    pub fn earliest(&self) -> Option<i64> {
        self.order.first().map(|(at, _)| *at)
    }

    /// When the last field expires, if all of them do.
    pub fn latest_of_all(&self) -> Option<i64> {
        let all = self.order.len() == self.dict.len();
        self.order.last().filter(|_| all).map(|(at, _)| *at)
    }

    /// Sets a field. Keeps the expiry of an existing field if `keep` is set. Returns whether the
    /// field is new.
    pub(crate) fn set(
        &mut self,
        hasher: &KeyHasher,
        field: &[u8],
        value: &[u8],
        keep: bool,
    ) -> bool {
        let hash = hasher.hash(field);
        let Some(place) = self.dict.place(hash, field) else {
            let member = Member::new(field, 0, Payload::Bytes(value), None, 0);
            self.dict.insert(hash, member, hasher);
            return true;
        };
        if !keep {
            self.expires_at(place, hash, None);
        }
        self.dict.at_mut(place).set_bytes(0, value);
        false
    }

    /// Adds a field. If it exists, leaves it unchanged and returns false.
    pub(crate) fn insert(
        &mut self,
        hasher: &KeyHasher,
        field: &[u8],
        value: &[u8],
        expires_at: Option<i64>,
    ) -> bool {
        let hash = hasher.hash(field);
        if self.dict.place(hash, field).is_some() {
            return false;
        }
        let member = Member::new(field, 0, Payload::Bytes(value), expires_at, 0);
        self.dict.insert(hash, member, hasher);
        if let Some(expires_at) = expires_at {
            self.order.insert((expires_at, hash));
        }
        true
    }

    /// Sets or removes the expiry of an existing field.
    pub(crate) fn set_expiry(&mut self, hasher: &KeyHasher, field: &[u8], at_ms: Option<i64>) {
        let hash = hasher.hash(field);
        if let Some(place) = self.dict.place(hash, field) {
            self.expires_at(place, hash, at_ms);
        }
    }

    fn expires_at(&mut self, place: Place, hash: u64, expires_at: Option<i64>) {
        let mut member = self.dict.at_mut(place);
        let old = member.view().expires_at();
        if old == expires_at {
            return;
        }
        member.set_expires_at(expires_at);
        drop(member);
        if let Some(old) = old {
            self.order.remove(&(old, hash));
        }
        if let Some(expires_at) = expires_at {
            self.order.insert((expires_at, hash));
        }
    }

    /// Removes a field. Returns whether it existed.
    pub(crate) fn remove(&mut self, hasher: &KeyHasher, field: &[u8]) -> bool {
        let hash = hasher.hash(field);
        let Some(member) = self.dict.remove(hash, field, hasher) else { return false };
        if let Some(expires_at) = member.view().expires_at() {
            self.order.remove(&(expires_at, hash));
        }
        true
    }

    /// The names of the fields that expire before `before_ms`, the earliest first.
    pub(crate) fn ending(&self, hasher: &KeyHasher, before_ms: i64) -> impl Iterator<Item = &[u8]> {
        let due = self.order.iter().take_while(move |(at, _)| *at < before_ms);
        due.filter_map(|(at, hash)| {
            let place = self.dict.place_where(*hash, |member| {
                member.expires_at() == Some(*at) && hasher.hash(member.key()) == *hash
            })?;
            Some(self.dict.at(place).key())
        })
    }
}
