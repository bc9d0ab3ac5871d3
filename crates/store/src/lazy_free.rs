//! What a turn removes from the keyspace, kept until no lock is held.
//!
//! Freeing a large value takes long, so it happens neither under a shard's lock nor, for what is
//! large, on a thread that serves clients: the owner of the turn moves the big pieces to another
//! thread, and drops the rest.

use ds::table::Table;

use crate::stored::Object;

/// Pieces with more allocations than this are big: below it, handing them over costs more.
const SMALL_ALLOCATIONS_MAX: usize = 64;

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
    fn is_big(&self) -> bool {
        let allocations = match self {
            Self::Object(object) => object.allocations(),
            Self::Table(table) => table.len(),
        };
        allocations > SMALL_ALLOCATIONS_MAX
    }
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

    /// Takes away what would delay the thread that drops it; usually nothing, without allocating.
    #[must_use = "big pieces are taken to be dropped on another thread"]
    pub fn take_big(&mut self) -> Vec<Piece> {
        self.0.extract_if(.., |piece| piece.is_big()).collect()
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
    use ds::record::{Payload, Record};
    use std::sync::Arc;

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
}
