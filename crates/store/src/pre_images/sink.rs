//! What a snapshot gives to whoever writes it.

use ds::{list, stream};

use crate::value::hash::FieldValue;
use crate::value::stored::Stored;

/// Takes the keys of a snapshot, each once, in no order.
///
/// Most calls come while a shard is locked: a sink writes into memory and makes no system call. It
/// cannot refuse; who finds that it cannot go on aborts the snapshot.
pub trait KeySink {
    /// A key whose value is seen whole.
    fn entry(&mut self, db: u32, value: Stored<'_>);

    /// A key with a large collection, of which parts follow, from several steps, and nothing else
    /// until its end.
    fn begin(&mut self, head: &CollectionHead);

    /// A part of the collection that was begun.
    fn part(&mut self, part: CollectionPart<'_>);

    /// The collection that was begun has had all its parts.
    fn end(&mut self);
}

/// A key with a large collection, as they were at the cut.
#[derive(Clone, Debug)]
pub struct CollectionHead {
    /// The number of its database.
    pub db: u32,
    /// The key.
    pub key: Box<[u8]>,
    /// When the key expires, in milliseconds since 1970.
    pub expires_at: Option<i64>,
    /// The 24 bits of its access clock.
    pub access_clock: u32,
    /// What follows.
    pub shape: CollectionShape,
}

/// The type of a large collection, and how many parts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionShape {
    /// So many members.
    Set(usize),
    /// So many members with scores.
    SortedSet(usize),
    /// So many fields, and the earliest expiry of one, in milliseconds since 1970.
    Hash(usize, Option<i64>),
    /// So many chunks.
    List(usize),
    /// Chunks and groups.
    Stream(stream::Head),
}

/// A part of a large collection.
#[derive(Clone, Copy, Debug)]
pub enum CollectionPart<'a> {
    /// A member of a set. Members and fields come in no order.
    Member(&'a [u8]),
    /// A member of a sorted set.
    Scored(&'a [u8], f64),
    /// A field of a hash.
    Field(&'a [u8], FieldValue<'a>),
    /// A chunk of a list; they come in order.
    Chunk(list::ChunkRef<'a>),
    /// A part of a stream; the chunks come in order, before the groups.
    Stream(stream::Part<'a>),
}
