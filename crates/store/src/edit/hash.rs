//! Changes of hashes in each form, and the changes from one form to the next.

use std::mem;

use ds::packed::{Encoded, Entry, FRAME_BYTES_MAX, Packed, PackedMut};
use ds::record::Record;

use crate::db::Edit;
use crate::limits::EncodingLimits;
use crate::value::field_table::FieldTable;
use crate::value::hash::{FieldValue, HashRef, HashValue, PAIR, TRIPLE, expiry_of};
use crate::value::stored::{Object, StoredType, ValueKind};

/// The change that setting a field makes to its expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldExpiry {
    /// The field does not expire.
    Clear,
    /// As it was before.
    Keep,
}

/// A hash opened in its form.
enum OpenHash<'a> {
    Pairs(PackedMut<'a, Record<Object>>),
    Triples(PackedMut<'a, Record<Object>>),
    Table(&'a mut FieldTable),
}

fn form(record: &mut Record<Object>) -> Option<OpenHash<'_>> {
    match ValueKind::from_bits(record.view().kind()) {
        ValueKind::PackedHash => Some(OpenHash::Pairs(PackedMut::new(record))),
        ValueKind::PackedExpiringHash => Some(OpenHash::Triples(PackedMut::new(record))),
        _ => match record.object_mut()? {
            Object::Hash(table) => Some(OpenHash::Table(table)),
            _ => None,
        },
    }
}

impl Edit<'_, HashValue> {
    /// The hash for reading.
    #[inline]
    pub fn hash(&self) -> HashRef<'_> {
        HashValue::view(self.record()).unwrap_or(HashRef::Packed(Packed::new(b"")))
    }

    /// The value of a field.
    pub fn get(&self, field: &[u8]) -> Option<FieldValue<'_>> {
        self.hash().get(&self.turn_ref().hasher, field)
    }

    /// Changes a small hash to a table if `fields` fields, or fields and values of these lengths,
    /// would exceed its limits.
    pub fn fit(
        &mut self,
        limits: &EncodingLimits,
        fields: usize,
        lengths: impl Iterator<Item = usize>,
    ) {
        let (HashRef::Packed(packed) | HashRef::Expiring(packed)) = self.hash() else { return };
        let (mut longest, mut sum) = (0, packed.listpack_bytes());
        lengths.for_each(|len| (longest, sum) = (longest.max(len), sum + len + FRAME_BYTES_MAX));
        if fields as u64 > limits.hash_max_listpack_entries
            || longest as u64 > limits.hash_max_listpack_value
            || sum > limits.packed_bytes_max
        {
            self.make_table();
        }
    }

    /// Sets a field to a value that was passed to [`fit`](Self::fit). Returns whether the field is
    /// new.
    #[inline]
    pub fn set(
        &mut self,
        field: &[u8],
        value: &[u8],
        expiry: FieldExpiry,
        limits: &EncodingLimits,
    ) -> bool {
        let hasher = self.turn_ref().hasher;
        let mut record = self.record_mut();
        let Some(form) = form(&mut record) else { return false };
        let new = match form {
            OpenHash::Pairs(mut fields) => match fields.view().find(field, 0, PAIR) {
                Some(at) => {
                    let value_at = fields.view().after(at);
                    fields.replace(value_at, value);
                    false
                }
                None => {
                    fields.extend([Encoded::text(field), Encoded::text(value)]);
                    true
                }
            },
            OpenHash::Triples(mut fields) => match fields.view().find(field, 0, TRIPLE) {
                Some(at) => {
                    let value_at = fields.view().after(at);
                    fields.replace(value_at, value);
                    if expiry == FieldExpiry::Clear {
                        set_packed_expiry(&mut fields, at, None);
                    }
                    false
                }
                None => {
                    let endless = Encoded::integer(0);
                    fields.extend([Encoded::text(field), Encoded::text(value), endless]);
                    true
                }
            },
            OpenHash::Table(table) => {
                return table.set(&hasher, field, value, expiry == FieldExpiry::Keep);
            }
        };
        drop(record);
        if new && self.hash().len() as u64 > limits.hash_max_listpack_entries {
            self.make_table();
        }
        new
    }

    /// Sets the fields of an empty hash in one go, each field followed by its value. Returns how
    /// many fields there are.
    pub fn fill<'e>(
        &mut self,
        pairs: impl Iterator<Item = (&'e [u8], &'e [u8])>,
        limits: &EncodingLimits,
    ) -> usize {
        if !matches!(self.hash(), HashRef::Packed(packed) if packed.is_empty()) {
            let set =
                pairs.map(|(field, value)| self.set(field, value, FieldExpiry::Clear, limits));
            return set.map(usize::from).sum();
        }
        let mut bytes = mem::take(&mut self.turn().scratch);
        bytes.clear();
        let mut fields = PackedMut::new(&mut bytes);
        for (field, value) in pairs {
            match fields.view().find(field, 0, PAIR) {
                Some(at) => {
                    let value_at = fields.view().after(at);
                    fields.replace(value_at, value);
                }
                None => fields.extend([Encoded::text(field), Encoded::text(value)]),
            }
        }
        self.record_mut().set_bytes(ValueKind::PackedHash as u8, &bytes);
        self.turn().scratch = bytes;
        let len = self.hash().len();
        if len as u64 > limits.hash_max_listpack_entries {
            self.make_table();
        }
        len
    }

    /// Removes a field. Returns whether it existed.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        let hasher = self.turn_ref().hasher;
        let removed = remove_from(&mut self.record_unchanged_mut(), &hasher, field);
        if removed {
            self.mark_changed();
        }
        removed
    }

    /// Sets or removes the expiry of an existing field, in milliseconds since 1970.
    pub fn set_expiry(&mut self, field: &[u8], at_ms: Option<i64>) {
        if matches!(self.hash(), HashRef::Packed(_)) {
            if at_ms.is_none() {
                return;
            }
            self.make_expiring();
        }
        let hasher = self.turn_ref().hasher;
        let mut record = self.record_mut();
        match form(&mut record) {
            Some(OpenHash::Triples(mut fields)) => {
                if let Some(at) = fields.view().find(field, 0, TRIPLE) {
                    set_packed_expiry(&mut fields, at, at_ms);
                }
            }
            Some(OpenHash::Table(table)) => table.set_expiry(&hasher, field, at_ms),
            Some(OpenHash::Pairs(_)) | None => {}
        }
    }

    /// Gives the fields of a packed hash room for expiries. Redis does this before it sets the
    /// first expiry, even if that fails.
    ///
    /// A field and its value take at least 4 bytes and an expiry at most 10: the limit of 1 GB for
    /// packed hashes keeps a hash with expiries below 4 GiB, and [`fit`](Self::fit) counts them.
    pub fn make_expiring(&mut self) {
        let HashRef::Packed(packed) = self.hash() else { return };
        let mut bytes = Vec::new();
        let mut fields = PackedMut::new(&mut bytes);
        for (field, value) in HashRef::Packed(packed) {
            let endless = Encoded::integer(0);
            fields.extend([Encoded::from(field), Encoded::from(value.entry), endless]);
        }
        // The fields are the same, only the form differs.
        self.record_unchanged_mut().set_bytes(ValueKind::PackedExpiringHash as u8, &bytes);
    }

    /// Changes a packed hash to a table.
    fn make_table(&mut self) {
        let hasher = self.turn_ref().hasher;
        let mut table = Box::<FieldTable>::default();
        let (mut name_digits, mut value_digits) = Default::default();
        for (field, value) in self.hash() {
            let name = field.text(&mut name_digits);
            table.set(&hasher, name, value.entry.text(&mut value_digits), false);
            if value.expires_at.is_some() {
                table.set_expiry(&hasher, name, value.expires_at);
            }
        }
        // An empty table gets its first field right afterwards.
        self.record_unchanged_mut().set_object(ValueKind::Hash as u8, Object::Hash(table));
    }
}

/// Removes a field from the hash in a record. Returns whether it existed.
pub(super) fn remove_from(
    record: &mut Record<Object>,
    hasher: &base::hash::KeyHasher,
    field: &[u8],
) -> bool {
    let (mut fields, stride) = match form(record) {
        Some(OpenHash::Pairs(fields)) => (fields, PAIR),
        Some(OpenHash::Triples(fields)) => (fields, TRIPLE),
        Some(OpenHash::Table(table)) => return table.remove(hasher, field),
        None => return false,
    };
    let found = fields.view().find(field, 0, stride);
    if let Some(at) = found {
        fields.remove(at, stride);
    }
    found.is_some()
}

/// Gives the field at a position another expiry, and moves it to its new place.
fn set_packed_expiry(
    fields: &mut PackedMut<'_, Record<Object>>,
    at: usize,
    expires_at: Option<i64>,
) {
    let view = fields.view();
    let value_at = view.after(at);
    let expiry_at = view.after(value_at);
    if expiry_of(view.entry(expiry_at)) == expires_at {
        return;
    }
    let (field, value) = (view.entry(at).to_vec(), view.entry(value_at).to_vec());
    let end = view.after(expiry_at);
    fields.remove_span(at..end, TRIPLE);
    let place = place_for(fields.view(), expires_at);
    let expiry = Encoded::integer(expires_at.unwrap_or(0));
    fields.splice(place..place, 0, [Encoded::text(&field), Encoded::text(&value), expiry]);
}

/// The place of a field with this expiry: after all that expire earlier.
fn place_for(fields: Packed<'_>, expires_at: Option<i64>) -> usize {
    let Some(expires_at) = expires_at else { return fields.end() };
    let mut at = 0;
    while at < fields.end() {
        match fields.entry(fields.skip(at, TRIPLE - 1)) {
            Entry::Integer(other) if other != 0 && other < expires_at => {}
            _ => break,
        }
        at = fields.skip(at, TRIPLE);
    }
    at
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
#[path = "hash_tests.rs"]
mod tests;
