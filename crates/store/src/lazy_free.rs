//! What a turn removes from the keyspace, kept until no lock is held.
//!
//! Freeing a large value takes long, so it happens neither under a shard's lock nor, for what is
//! large, on a thread that serves clients: the owner of the turn moves the big pieces to another
//! thread, and drops the rest.

use std::sync::Arc;

use ds::table::Table;

use crate::stored::Object;

/// Pieces that cost more than this are big: below it, handing them over costs more.
const SMALL_COST_MAX: usize = 64;
/// What the small pieces of a turn may cost together; the rest is handed over. At about 100 ns for
/// each allocation a thread is kept for 200 us at most.
const KEPT_COST_MAX: usize = 2048;
/// Bytes of one allocation whose pages take as long to give back as a small allocation.
const BYTES_PER_COST: usize = 64 * 1024;

/// Memory that the list keeps from turn to turn.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// One thing to be dropped.
#[derive(Debug)]
pub enum Piece {
    /// A value.
    Object(Object),
    /// A whole database's part of a shard.
    Table(Table<Object>),
}

impl Piece {
    /// About what dropping it costs, in small allocations to be freed. The count of a table stops
    /// when it is beyond [`SMALL_COST_MAX`].
    fn cost(&self) -> usize {
        match self {
            Self::Object(object) => cost_of(object),
            Self::Table(table) => {
                let mut cost = table.len();
                let mut records = table.iter();
                while cost <= SMALL_COST_MAX
                    && let Some(record) = records.next()
                {
                    cost += record.object().map_or(0, cost_of);
                }
                cost
            }
        }
    }
}

/// About what dropping a value costs, in small allocations to be freed.
fn cost_of(object: &Object) -> usize {
    let bytes = match object {
        // The last owner frees a shared text.
        Object::String(text) if Arc::strong_count(text) > 1 => 0,
        Object::String(text) => text.capacity(),
        _ => 0,
    };
    object.allocations() + bytes / BYTES_PER_COST
}

impl From<Object> for Piece {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<Table<Object>> for Piece {
    fn from(table: Table<Object>) -> Self {
        Self::Table(table)
    }
}

/// The values and tables that a turn has removed.
#[derive(Debug, Default)]
pub struct LazyFree(Vec<Piece>);

impl LazyFree {
    /// Adds a value or a table.
    pub fn push(&mut self, piece: impl Into<Piece>) {
        self.0.push(piece.into());
    }

    /// Whether there is nothing to drop.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the pieces that would delay the thread that drops them: big ones, and small ones
    /// beyond what a thread may drop in one turn. Usually there are none, and nothing is allocated.
    #[must_use = "big pieces are taken to be dropped on another thread"]
    pub fn take_big(&mut self) -> Vec<Piece> {
        let mut left = KEPT_COST_MAX;
        let is_taken = |piece: &mut Piece| {
            // What is taken anyway is not measured.
            let cost = if left == 0 { usize::MAX } else { piece.cost() };
            if cost <= SMALL_COST_MAX {
                left = left.saturating_sub(cost);
            }
            cost > SMALL_COST_MAX
        };
        self.0.extract_if(.., is_taken).collect()
    }

    /// Drops what is left.
    pub fn clear(&mut self) {
        base::room::clear(&mut self.0, KEPT_BYTES_MAX);
    }
}

impl Extend<Object> for LazyFree {
    fn extend<I: IntoIterator<Item = Object>>(&mut self, objects: I) {
        self.0.extend(objects.into_iter().map(Piece::Object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hash::KeyHasher;
    use ds::dict::{Dict, Member};
    use ds::record::{Payload, Record};

    #[test]
    fn only_big_pieces_are_taken() {
        let hasher = KeyHasher::new(1);
        let table_of = |len: u8| {
            let mut table = Table::default();
            for i in 0..len {
                let record = Record::new(&[i], 0, Payload::Bytes(b""), None, 0);
                table.insert(hasher.hash(&[i]), record, &hasher);
            }
            table
        };
        let mut lazy_free = LazyFree::default();
        let text = Arc::new(vec![0; 1 << 20]);
        lazy_free.push(Object::String(Arc::clone(&text)));
        lazy_free.extend(Some(Object::String(Arc::clone(&text))));
        lazy_free.push(table_of(64));
        assert!(lazy_free.take_big().is_empty());
        lazy_free.push(table_of(65));
        assert!(
            matches!(lazy_free.take_big().as_slice(), [Piece::Table(table)] if table.len() == 65)
        );
        assert_eq!(Arc::strong_count(&text), 3);
        lazy_free.clear();
        assert!(lazy_free.is_empty());
        assert_eq!(Arc::strong_count(&text), 1);
    }

    fn set_of(len: u32) -> Object {
        let (hasher, mut dict) = (KeyHasher::new(1), Dict::new());
        for i in 0..len {
            let name = i.to_le_bytes();
            let member = Member::new(&name, 0, Payload::Bytes(b""), None, 0);
            dict.insert(hasher.hash(&name), member, &hasher);
        }
        Object::Set(Box::new(dict))
    }

    #[test]
    fn a_table_is_as_big_as_its_values() {
        let hasher = KeyHasher::new(1);
        let table_of = |members: u32| {
            let mut table = Table::default();
            let record = Record::new(b"k", 0, Payload::Object(set_of(members)), None, 0);
            table.insert(hasher.hash(b"k"), record, &hasher);
            table
        };
        let mut lazy_free = LazyFree::default();
        lazy_free.push(table_of(10));
        assert!(lazy_free.take_big().is_empty());
        lazy_free.push(table_of(1000));
        assert_eq!(lazy_free.take_big().len(), 1);
    }

    #[test]
    fn a_long_text_is_big_for_its_last_owner() {
        let text = Arc::new(vec![0; 64 << 20]);
        let mut lazy_free = LazyFree::default();
        lazy_free.push(Object::String(Arc::clone(&text)));
        assert!(lazy_free.take_big().is_empty());
        drop(text);
        assert_eq!(lazy_free.take_big().len(), 1);
    }

    #[test]
    fn small_pieces_together_are_bounded() {
        let mut lazy_free = LazyFree::default();
        lazy_free.extend((0..1000).map(|_| set_of(40)));
        let taken = lazy_free.take_big().len();
        assert!(taken > 900, "{taken}");
        lazy_free.clear();
        lazy_free.extend((0..40).map(|_| set_of(40)));
        assert!(lazy_free.take_big().is_empty());
    }
}
