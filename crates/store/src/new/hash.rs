//! A hash that is not stored yet, built field by field.

use base::hash::KeyHasher;
use base::number::INTEGER_BYTES_MAX;
use ds::packed::{Digits, Encoded, FRAME_BYTES_MAX, Packed, PackedMut};

use super::value::{Duplicate, NewValue};
use crate::limits::EncodingLimits;
use crate::value::field_table::FieldTable;
use crate::value::hash::{HashRef, PAIR};
use crate::value::stored::{Object, ValueKind};

/// An owned hash.
#[derive(Debug)]
pub struct NewHash<'l> {
    form: NewHashForm,
    limits: &'l EncodingLimits,
    hasher: KeyHasher,
}

#[derive(Debug)]
enum NewHashForm {
    /// Fields and values in a packed list, and the expiry of each field, or `None` if no field may
    /// expire.
    Packed(Vec<u8>, Option<Vec<Option<i64>>>),
    Table(Box<FieldTable>),
}

impl<'l> NewHash<'l> {
    /// An empty hash in the small form, whose fields may expire or not.
    pub fn packed(may_expire: bool, limits: &'l EncodingLimits, hasher: &KeyHasher) -> Self {
        let form = NewHashForm::Packed(Vec::new(), may_expire.then(Vec::new));
        Self { form, limits, hasher: *hasher }
    }

    /// An empty hash as a table with room for this many fields.
    pub fn table(room: usize, limits: &'l EncodingLimits, hasher: &KeyHasher) -> Self {
        let table = FieldTable::with_room(room, hasher);
        Self { form: NewHashForm::Table(Box::new(table)), limits, hasher: *hasher }
    }

    /// Adds a field. Only a hash whose fields may expire takes an expiry.
    ///
    /// # Errors
    /// When the field exists already.
    pub fn push(
        &mut self,
        field: &[u8],
        value: &[u8],
        expires_at: Option<i64>,
    ) -> Result<(), Duplicate> {
        if let NewHashForm::Packed(bytes, expiries) = &mut self.form {
            let fields = Packed::new(bytes);
            let added = field.len() + value.len() + 3 * FRAME_BYTES_MAX + INTEGER_BYTES_MAX;
            let longest = field.len().max(value.len());
            if fields.find(field, 0, PAIR).is_some() {
                return Err(Duplicate);
            }
            if longest as u64 <= self.limits.hash_max_listpack_value
                && fields.listpack_bytes() + added <= self.limits.packed_bytes_max / 2
            {
                PackedMut::new(bytes).extend([Encoded::text(field), Encoded::text(value)]);
                expiries.iter_mut().for_each(|expiries| expiries.push(expires_at));
                return Ok(());
            }
            self.become_table();
        }
        let NewHashForm::Table(table) = &mut self.form else { return Ok(()) };
        match table.insert(&self.hasher, field, value, expires_at) {
            true => Ok(()),
            false => Err(Duplicate),
        }
    }

    fn become_table(&mut self) {
        let NewHashForm::Packed(bytes, expiries) = &self.form else { return };
        let mut table = Box::<FieldTable>::default();
        let mut expiries = expiries.iter().flatten();
        let (mut name, mut text) = (Digits::default(), Digits::default());
        for (field, value) in HashRef::Packed(Packed::new(bytes)) {
            let expires_at = expiries.next().copied().flatten();
            let (field, value) = (field.text(&mut name), value.entry.text(&mut text));
            table.insert(&self.hasher, field, value, expires_at);
        }
        self.form = NewHashForm::Table(table);
    }

    /// A table of the packed fields and values, with or without expiries.
    pub(crate) fn of_packed(
        fields: Packed<'_>,
        expiring: bool,
        hasher: &KeyHasher,
    ) -> Result<Box<FieldTable>, Duplicate> {
        let hash = if expiring { HashRef::Expiring(fields) } else { HashRef::Packed(fields) };
        let mut table = Box::new(FieldTable::with_room(hash.len(), hasher));
        let (mut name, mut text) = (Digits::default(), Digits::default());
        for (field, value) in hash {
            let field = field.text(&mut name);
            if !table.insert(hasher, field, value.entry.text(&mut text), value.expires_at) {
                return Err(Duplicate);
            }
        }
        Ok(table)
    }

    /// The hash as a value.
    pub fn finish(self) -> NewValue<'static> {
        let (bytes, mut expiries) = match self.form {
            NewHashForm::Table(table) => return table.into(),
            NewHashForm::Packed(bytes, None) => {
                return NewValue::inline(ValueKind::PackedHash, bytes);
            }
            NewHashForm::Packed(bytes, Some(expiries)) => (bytes, expiries.into_iter()),
        };
        let fields = HashRef::Packed(Packed::new(&bytes));
        let mut triples: Vec<_> = fields
            .iter()
            .map(|(field, value)| (expiries.next().flatten(), field, value.entry))
            .collect();
        // The earliest expiry comes first; fields that never expire come last.
        triples.sort_by_key(|(expires_at, ..)| expires_at.unwrap_or(i64::MAX));
        let mut bytes = Vec::new();
        PackedMut::new(&mut bytes).extend(triples.iter().flat_map(|(expires_at, field, value)| {
            let expiry = Encoded::integer(expires_at.unwrap_or(0));
            [Encoded::from(*field), Encoded::from(*value), expiry]
        }));
        NewValue::inline(ValueKind::PackedExpiringHash, bytes)
    }
}

impl From<Box<FieldTable>> for NewValue<'static> {
    fn from(table: Box<FieldTable>) -> Self {
        Self::object(ValueKind::Hash, Object::Hash(table))
    }
}
