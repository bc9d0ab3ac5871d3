//! The stream type: always an object of the record.
//!
//! Unlike other collections, an empty stream is kept, because it remembers its last identifier and
//! its groups. A key has no object only between its creation and the first change.

use ds::Stream as Entries;
use ds::record::RecordRef;

use super::stored::{Object, StoredType, ValueKind};

/// The stream type.
pub enum StreamValue {}

/// The value of a key that was created but not changed yet.
pub(crate) static NOTHING: Entries = Entries::new();

impl StoredType for StreamValue {
    const EMPTY: ValueKind = ValueKind::Stream;
    type View<'a> = &'a Entries;

    #[inline]
    fn view(record: RecordRef<'_, Object>) -> Option<&Entries> {
        match (ValueKind::from_bits(record.kind()), record.object()) {
            (ValueKind::Stream, Some(Object::Stream(stream))) => Some(stream),
            (ValueKind::Stream, None) => Some(&NOTHING),
            _ => None,
        }
    }

    fn is_empty(record: RecordRef<'_, Object>) -> bool {
        record.object().is_none()
    }
}
