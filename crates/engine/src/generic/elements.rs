//! Copies of the elements of a collection of any type, in one buffer.

use store::{Db, Key, ListValue, Lookup, SetValue, SortedSetValue, Turn};

use crate::error::Error;

/// Bytes reserved for each element.
const SHORT_BYTES: usize = 8;

/// Texts one after another.
#[derive(Debug, Default)]
pub(super) struct SortElements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SortElements {
    /// The number of texts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Makes room for this many short elements.
    pub(super) fn reserve(&mut self, elements: usize) {
        self.ends.reserve(elements);
        self.bytes.reserve(elements * SHORT_BYTES);
    }

    /// The text with this index.
    pub(super) fn at(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    /// Adds a text and returns its index.
    pub(super) fn push(&mut self, text: &[u8]) -> usize {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        self.ends.len() - 1
    }
}

/// The order of a collection's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SortOrder {
    /// The order in which they were added.
    Given,
    /// No particular order.
    Any,
    /// The order of their scores.
    Ranked,
}

/// Copies the elements under a key, if it exists.
///
/// # Errors
/// When the value is not a list, a set or a sorted set.
pub(super) fn push_elements(
    db: &mut Db,
    turn: &mut Turn,
    key: Key<'_>,
    elements: &mut SortElements,
) -> Result<SortOrder, Error> {
    let type_name = db.lookup(turn, key, Lookup::Read).map(|stored| stored.kind().type_name());
    let mut digits = Default::default();
    match type_name {
        None => Ok(SortOrder::Given),
        Some("set") => {
            let set =
                db.lookup(turn, key, Lookup::Quiet).and_then(|stored| stored.view::<SetValue>());
            elements.reserve(set.map_or(0, |set| set.len()));
            for member in set.into_iter().flat_map(|set| set.iter()) {
                elements.push(member.text(&mut digits));
            }
            Ok(SortOrder::Any)
        }
        Some("zset") => {
            let set = db
                .lookup(turn, key, Lookup::Quiet)
                .and_then(|stored| stored.view::<SortedSetValue>());
            elements.reserve(set.map_or(0, |set| set.len()));
            for pair in set.into_iter().flat_map(|set| set.walk(0..set.len(), false)) {
                elements.push(pair.member.text(&mut digits));
            }
            Ok(SortOrder::Ranked)
        }
        Some(_) => {
            let list =
                db.lookup(turn, key, Lookup::Quiet).and_then(|stored| stored.view::<ListValue>());
            let list = list.ok_or(Error::WrongType)?;
            elements.reserve(list.len());
            for element in list.iter_from(0) {
                elements.push(element.text(&mut digits));
            }
            Ok(SortOrder::Given)
        }
    }
}
