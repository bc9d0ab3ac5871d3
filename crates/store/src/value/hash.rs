//! The hash type: fields with values, and when each field expires.
//!
//! ```text
//! small, no field ever expired     PackedHash            field, value, ... in the record
//! small, a field has had an expiry PackedExpiringHash    field, value, expiry, ... in the record
//! beyond hash-max-listpack-*       Hash                  a table
//! ```
//!
//! The expiry of a field is in milliseconds since 1970. In the packed form it is an integer, 0 for
//! a field that does not expire. Fields that expire come first, the earliest at the front, so the
//! earliest expiry is read in one step. A hash only changes to forms further down this list.
//!
//! An expired field stays stored until it is removed (`edit::hash_expiry`). Reading returns it with
//! its expiry, and callers treat it as absent.

use base::hash::KeyHasher;
use ds::dict::Members;
use ds::packed::{self, Entry, Packed};
use ds::record::RecordRef;

use super::field_table::FieldTable;
use super::stored::{Object, StoredType, ValueKind};

/// Entries that a field takes in a packed hash, and in one with expiries.
pub(crate) const PAIR: usize = 2;
pub(crate) const TRIPLE: usize = 3;

/// The hash type.
pub enum HashValue {}

/// A borrowed hash.
#[derive(Clone, Copy, Debug)]
pub enum HashRef<'a> {
    /// Fields and values in the record.
    Packed(Packed<'a>),
    /// Fields, values and expiries in the record.
    Expiring(Packed<'a>),
    /// A table.
    Table(&'a FieldTable),
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue<'a> {
    /// The value.
    pub entry: Entry<'a>,
    /// When the field expires, in milliseconds since 1970.
    pub expires_at: Option<i64>,
}

impl<'a> FieldValue<'a> {
    /// Whether the field has expired. It has not at the millisecond of its expiry.
    #[inline]
    pub fn is_expired(self, unix_ms: i64) -> bool {
        self.expires_at.is_some_and(|at| at < unix_ms)
    }

    /// The value, unless the field has expired.
    #[inline]
    pub fn live(self, unix_ms: i64) -> Option<Entry<'a>> {
        if self.is_expired(unix_ms) { None } else { Some(self.entry) }
    }
}

impl StoredType for HashValue {
    const EMPTY: ValueKind = ValueKind::PackedHash;
    type View<'a> = HashRef<'a>;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<HashRef<'_>> {
        match ValueKind::from_bits(record.kind()) {
            ValueKind::PackedHash => Some(HashRef::Packed(Packed::new(record.bytes()?))),
            ValueKind::PackedExpiringHash => Some(HashRef::Expiring(Packed::new(record.bytes()?))),
            ValueKind::Hash => match record.object()? {
                Object::Hash(table) => Some(HashRef::Table(table)),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_empty(record: RecordRef<'_, Object>) -> bool {
        Self::view(record).is_none_or(HashRef::is_empty)
    }
}

impl HashValue {
    /// When the first field of the hash in a record expires.
    pub(crate) fn due(record: RecordRef<'_, Object>) -> Option<i64> {
        Self::view(record)?.earliest()
    }

    /// Whether the value in a record is a hash whose fields have all expired, as one in a file may.
    pub fn has_ended(record: RecordRef<'_, Object>, unix_ms: i64) -> bool {
        let latest = match Self::view(record) {
            // Fields that do not expire come last.
            Some(HashRef::Expiring(fields)) => fields.last().and_then(expiry_of),
            Some(HashRef::Table(table)) => table.latest_of_all(),
            _ => None,
        };
        latest.is_some_and(|at| at < unix_ms)
    }
}

/// The expiry in an entry of a packed hash.
pub(crate) fn expiry_of(entry: Entry<'_>) -> Option<i64> {
    match entry {
        Entry::Integer(at) if at != 0 => Some(at),
        _ => None,
    }
}

impl<'a> HashRef<'a> {
    /// Fields, including expired ones that are still stored.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Packed(fields) => fields.len() / PAIR,
            Self::Expiring(fields) => fields.len() / TRIPLE,
            Self::Table(table) => table.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(self) -> bool {
        match self {
            Self::Packed(fields) | Self::Expiring(fields) => fields.is_empty(),
            Self::Table(table) => table.len() == 0,
        }
    }

    /// The value of a field.
    #[inline]
    pub fn get(self, hasher: &KeyHasher, field: &[u8]) -> Option<FieldValue<'a>> {
        match self {
            Self::Packed(fields) => {
                let at = fields.find(field, 0, PAIR)?;
                Some(FieldValue { entry: fields.entry(fields.after(at)), expires_at: None })
            }
            Self::Expiring(fields) => {
                let at = fields.after(fields.find(field, 0, TRIPLE)?);
                let expires_at = expiry_of(fields.entry(fields.after(at)));
                Some(FieldValue { entry: fields.entry(at), expires_at })
            }
            Self::Table(table) => table.get(hasher.hash(field), field).map(value_of),
        }
    }

    /// When the first of the fields expires.
    pub fn earliest(self) -> Option<i64> {
        match self {
            Self::Packed(_) => None,
            Self::Expiring(fields) if fields.is_empty() => None,
            Self::Expiring(fields) => expiry_of(fields.entry(fields.skip(0, TRIPLE - 1))),
            Self::Table(table) => table.earliest(),
        }
    }

    /// Whether a field has expired.
    #[inline]
    pub fn has_expired(self, unix_ms: i64) -> bool {
        self.earliest().is_some_and(|at| at < unix_ms)
    }

    /// All fields with their values.
    #[inline]
    pub fn iter(self) -> FieldIter<'a> {
        match self {
            Self::Packed(fields) => FieldIter::Packed(fields.iter()),
            Self::Expiring(fields) => FieldIter::Expiring(fields.iter()),
            Self::Table(table) => FieldIter::Table(table.dict().iter()),
        }
    }

    /// The field at an index, in the order of `iter`, of a packed hash.
    pub fn nth(self, index: usize) -> Option<(Entry<'a>, FieldValue<'a>)> {
        match self {
            Self::Packed(fields) => {
                let at = fields.position(index * PAIR);
                FieldIter::Packed(fields.between(at, fields.end())).next()
            }
            Self::Expiring(fields) => {
                let at = fields.position(index * TRIPLE);
                FieldIter::Expiring(fields.between(at, fields.end())).next()
            }
            Self::Table(_) => None,
        }
    }
}

impl<'a> IntoIterator for HashRef<'a> {
    type Item = (Entry<'a>, FieldValue<'a>);
    type IntoIter = FieldIter<'a>;

    fn into_iter(self) -> FieldIter<'a> {
        self.iter()
    }
}

/// The field value in a member of a table.
#[inline]
pub fn value_of(member: ds::dict::MemberRef<'_>) -> FieldValue<'_> {
    let entry = Entry::Bytes(member.bytes().unwrap_or_default());
    FieldValue { entry, expires_at: member.expires_at() }
}

/// Walks over the fields of a hash with their values.
pub enum FieldIter<'a> {
    /// Of a packed hash.
    Packed(packed::PackedIter<'a>),
    /// Of a packed hash with expiries.
    Expiring(packed::PackedIter<'a>),
    /// Of a table.
    Table(Members<'a>),
}

impl<'a> Iterator for FieldIter<'a> {
    type Item = (Entry<'a>, FieldValue<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Packed(entries) => {
                let field = entries.next()?;
                Some((field, FieldValue { entry: entries.next()?, expires_at: None }))
            }
            Self::Expiring(entries) => {
                let (field, entry) = (entries.next()?, entries.next()?);
                Some((field, FieldValue { entry, expires_at: expiry_of(entries.next()?) }))
            }
            Self::Table(members) => {
                let member = members.next()?;
                Some((Entry::Bytes(member.key()), value_of(member)))
            }
        }
    }
}
