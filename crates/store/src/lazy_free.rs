//! Values that a turn removes from the keyspace, kept until no lock is held.
//!
//! Freeing a large value takes long, so it happens neither under a shard's lock nor on a thread
//! that serves clients: the owner of the turn moves the big pieces to another thread and drops the
//! small ones. A transaction or script keeps its shards locked, so it drops pieces in between
//! whenever [too much](LazyFree::is_much) has accumulated.
//!
//! Eviction relies on the bytes that wait to be freed. They are counted by the values that wait
//! ([`BigPiece`]), so dropping a value takes its bytes back on every path.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ds::table::Table;

use crate::pre_images::pending::unless_pending;
use crate::value::freed_bytes::{bytes_of, table_bytes};
use crate::value::stored::Object;

/// Pieces that cost more than this are big. Handing over smaller ones costs more than dropping
/// them.
const SMALL_COST_MAX: usize = 64;
/// The total cost of the small pieces that a thread drops in one turn; the rest is handed over. At
/// about 100 ns for each allocation this takes 200 us at most.
const KEPT_COST_MAX: usize = 2048;
/// Freeing this many bytes of one allocation costs as much as a small allocation.
const BYTES_PER_COST: usize = 64 * 1024;

/// Records that are measured to estimate the memory of a table.
const RECORDS_MEASURED: usize = 64;
/// Bytes that the commands of a transaction or script may have removed before they are dropped in
/// between. The limit is small, so that new allocations reuse memory in the processor's cache, and
/// the allocator need not return it to the system.
const HELD_BYTES_MAX: usize = 256 * 1024;

/// Memory that the list keeps from turn to turn.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A removed value or table.
#[derive(Debug)]
pub enum FreedPiece {
    /// A value.
    Object(Object),
    /// A whole database's part of a shard.
    Table(Table<Object>),
}

impl FreedPiece {
    /// The number of values in it.
    pub fn values(&self) -> usize {
        match self {
            Self::Object(_) => 1,
            Self::Table(table) => table.len(),
        }
    }

    /// The approximate cost of dropping it, in small allocations to be freed. For a table, counting
    /// stops above [`SMALL_COST_MAX`].
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

/// The approximate cost of dropping a value, in small allocations to be freed.
fn cost_of(object: &Object) -> usize {
    let bytes = match object {
        // The last owner frees a shared text.
        Object::String(text) if Arc::strong_count(text) > 1 => 0,
        Object::String(text) => text.capacity(),
        _ => 0,
    };
    object.allocations() + bytes / BYTES_PER_COST
}

impl FreedPiece {
    /// The approximate number of bytes that dropping it frees. For a table, some records are
    /// measured.
    fn bytes(&self) -> usize {
        match self {
            Self::Object(object) => bytes_of(object),
            Self::Table(table) => table_bytes(table, RECORDS_MEASURED),
        }
    }
}

/// The bytes that wait to be freed, of all threads that share it.
#[derive(Clone, Debug, Default)]
pub struct FreeBacklog(Arc<AtomicI64>);

impl FreeBacklog {
    /// Bytes that wait.
    #[inline]
    pub fn bytes(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: i64) -> BacklogBytes {
        self.0.fetch_add(bytes, Ordering::Relaxed);
        BacklogBytes { backlog: self.clone(), bytes }
    }
}

/// Bytes that count as waiting to be freed while this value exists.
#[derive(Debug)]
pub struct BacklogBytes {
    backlog: FreeBacklog,
    bytes: i64,
}

impl Drop for BacklogBytes {
    fn drop(&mut self) {
        self.backlog.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A piece that takes long to drop.
#[derive(Debug)]
pub struct BigPiece {
    /// The value or table to be dropped.
    pub piece: FreedPiece,
    /// The approximate number of bytes that dropping it frees, which wait until then. Drop it after
    /// the piece and after the freed memory is published, so that no key is evicted for memory that
    /// is free.
    pub waiting: BacklogBytes,
}

impl BigPiece {
    fn new(piece: FreedPiece, backlog: &FreeBacklog) -> Self {
        let bytes = i64::try_from(piece.bytes()).unwrap_or(i64::MAX);
        Self { piece, waiting: backlog.add(bytes) }
    }

    /// The approximate number of bytes that dropping it frees.
    pub fn bytes(&self) -> i64 {
        self.waiting.bytes
    }
}

impl From<Object> for FreedPiece {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}

impl From<Table<Object>> for FreedPiece {
    fn from(table: Table<Object>) -> Self {
        Self::Table(table)
    }
}

/// The values and tables that a turn removed.
#[derive(Debug)]
pub struct LazyFree {
    pieces: Vec<FreedPiece>,
    /// Big values of evicted keys.
    evicted: Vec<BigPiece>,
    /// How many of the first pieces have been measured.
    measured: usize,
    /// The approximate number of bytes that dropping those frees.
    measured_bytes: usize,
    backlog: FreeBacklog,
}

impl LazyFree {
    /// Adds a value or a table.
    pub fn push(&mut self, piece: impl Into<FreedPiece>) {
        match piece.into() {
            FreedPiece::Object(object) => self.extend(Some(object)),
            table => self.pieces.push(table),
        }
    }

    /// Whether there is nothing to drop.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.evicted.is_empty()
    }

    /// An empty list. The bytes of its big pieces are counted in `backlog` until they are dropped.
    pub fn new(backlog: FreeBacklog) -> Self {
        let (pieces, evicted) = (Vec::new(), Vec::new());
        Self { pieces, evicted, measured: 0, measured_bytes: 0, backlog }
    }

    /// Takes everything out of the list.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let empty = Self::new(self.backlog.clone());
        std::mem::replace(self, empty)
    }

    /// Drops the value of an evicted key at once, because its memory is needed. A big value is kept
    /// instead, and its bytes wait in the backlog. A value that a snapshot still needs becomes the
    /// snapshot's, and its memory no longer counts.
    pub fn evict(&mut self, object: Option<Object>) {
        if let Some(object) = object.and_then(unless_pending)
            && cost_of(&object) > SMALL_COST_MAX
        {
            self.evicted.push(BigPiece::new(object.into(), &self.backlog));
        }
    }

    /// Takes the big values of evicted keys.
    #[must_use = "they are taken to be dropped on another thread"]
    pub fn take_evicted(&mut self) -> Vec<BigPiece> {
        std::mem::take(&mut self.evicted)
    }

    /// Whether a transaction or script that keeps shards locked must drop the pieces now. Measures
    /// the pieces added since the last call.
    #[inline]
    pub fn is_much(&mut self) -> bool {
        self.measured < self.pieces.len() && self.measure() > HELD_BYTES_MAX
    }

    fn measure(&mut self) -> usize {
        let new = self.pieces[self.measured..].iter();
        let new = new.map(|piece| piece.bytes().saturating_add(size_of::<FreedPiece>()));
        self.measured_bytes = new.fold(self.measured_bytes, usize::saturating_add);
        self.measured = self.pieces.len();
        self.measured_bytes
    }

    /// Takes the pieces that would delay this thread: big ones, and small ones beyond the cost
    /// limit of one turn. Usually there are none, and nothing is allocated.
    #[must_use = "big pieces are taken to be dropped on another thread"]
    pub fn take_big(&mut self) -> Vec<BigPiece> {
        let mut big = self.take_evicted();
        let mut left = KEPT_COST_MAX;
        let is_taken = |piece: &mut FreedPiece| {
            // Pieces that are taken anyway are not measured.
            let cost = if left == 0 { usize::MAX } else { piece.cost() };
            if cost <= SMALL_COST_MAX {
                left = left.saturating_sub(cost);
            }
            cost > SMALL_COST_MAX
        };
        (self.measured, self.measured_bytes) = (0, 0);
        let taken = self.pieces.extract_if(.., is_taken);
        big.extend(taken.map(|piece| BigPiece::new(piece, &self.backlog)));
        big
    }

    /// Drops the remaining pieces.
    pub fn clear(&mut self) {
        (self.measured, self.measured_bytes) = (0, 0);
        self.evicted.clear();
        base::room::clear(&mut self.pieces, KEPT_BYTES_MAX);
    }
}

impl Extend<Object> for LazyFree {
    fn extend<I: IntoIterator<Item = Object>>(&mut self, objects: I) {
        // All values that leave the keyspace pass here, so a snapshot receives those that it needs.
        let objects = objects.into_iter().filter_map(unless_pending);
        self.pieces.extend(objects.map(FreedPiece::Object));
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
        let taken = lazy_free.take_big();
        assert!(matches!(taken.as_slice(), [BigPiece { piece, .. }] if piece.values() == 65));
        assert_eq!(Arc::strong_count(&text), 3);
        lazy_free.clear();
        assert!(lazy_free.is_empty());
        assert_eq!(Arc::strong_count(&text), 1);
    }

    impl Default for LazyFree {
        fn default() -> Self {
            Self::new(FreeBacklog::default())
        }
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
    fn the_bytes_of_big_pieces_are_known() {
        let near = |bytes: i64, wanted: i64| (wanted * 9 / 10..=wanted * 12 / 10).contains(&bytes);
        let mut lazy_free = LazyFree::default();
        lazy_free.push(Object::String(Arc::new(vec![0; 64 << 20])));
        let backlog = FreeBacklog::default();
        let mut lazy_free = LazyFree { backlog: backlog.clone(), ..lazy_free };
        lazy_free.evict(Some(set_of(10)));
        assert_eq!(backlog.bytes(), 0, "a small one is gone");
        lazy_free.evict(Some(set_of(10_000)));
        // A member of 4 bytes takes 16 and a slot of 8, a seventh of which are free.
        assert!(near(backlog.bytes(), 10_000 * 25), "{backlog:?}");
        let mut pieces = lazy_free.take_big();
        assert!(pieces.len() == 2 && near(pieces[1].bytes(), 64 << 20), "{pieces:?}");
        assert_eq!(backlog.bytes(), pieces.iter().map(BigPiece::bytes).sum::<i64>());
        pieces.pop();
        assert!(near(backlog.bytes(), 10_000 * 25), "{backlog:?}");
        drop(pieces);
        assert_eq!(backlog.bytes(), 0);
        lazy_free.evict(Some(set_of(10_000)));
        lazy_free.clear();
        assert_eq!(backlog.bytes(), 0, "a value that is dropped elsewhere");
        let hasher = KeyHasher::new(1);
        let mut table = Table::default();
        for i in 0..1000u32 {
            let key = i.to_le_bytes();
            let object = Payload::Object(set_of(100));
            table.insert(hasher.hash(&key), Record::new(&key, 0, object, None, 0), &hasher);
        }
        lazy_free.push(table);
        let pieces = lazy_free.take_big();
        let bytes = backlog.bytes();
        assert!(
            pieces.len() == 1 && near(bytes, 1000 * (set_of(100).memory_bytes() as i64 + 32)),
            "{bytes}"
        );
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

    #[test]
    fn bytes_of_all_types_are_added_up() {
        let text = |bytes: usize| Object::String(Arc::new(vec![0; bytes]));
        let table_of = |keys: u32| {
            let (hasher, mut table) = (KeyHasher::new(1), Table::default());
            for i in 0..keys {
                let name = i.to_le_bytes();
                let record = Record::new(&name, 0, Payload::Object(text(1_300)), None, 0);
                table.insert(hasher.hash(&name), record, &hasher);
            }
            table
        };
        let mut list = ds::List::new(ds::list::ChunkLimit::of(-2));
        list.push_back(&*vec![0; 15_625]);
        let pieces_until_much = |make: &dyn Fn() -> FreedPiece| {
            let mut lazy_free = LazyFree::default();
            while !lazy_free.is_much() {
                assert!(lazy_free.pieces.len() < 1000);
                lazy_free.push(make());
            }
            let pieces = lazy_free.pieces.len();
            drop(lazy_free.take_big());
            lazy_free.clear();
            lazy_free.push(make());
            assert!(!lazy_free.is_much(), "it is dropped");
            pieces
        };
        let pieces = [
            pieces_until_much(&|| text(15_625).into()),
            pieces_until_much(&|| table_of(10).into()),
            pieces_until_much(&|| Object::List(Box::new(list.clone())).into()),
        ];
        assert!(pieces.iter().all(|pieces| (15..=17).contains(pieces)), "{pieces:?}");
        let shared = Arc::new(vec![0; 1_000_000]);
        let mut lazy_free = LazyFree::default();
        lazy_free.extend((0..1000).map(|_| Object::String(Arc::clone(&shared))));
        assert!(!lazy_free.is_much(), "that frees nothing");
    }
}
