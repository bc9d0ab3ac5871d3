//! The interface through which a snapshot passes keys to its writer.

use ds::{list, stream};

use crate::value::hash::FieldValue;
use crate::value::stored::Stored;

/// Receives the keys of a snapshot, each once, in no order.
///
/// Most calls come while a shard is locked: a sink writes into memory and makes no system call. It
/// cannot refuse a key; a writer that cannot continue aborts the snapshot.
pub trait KeySink {
    /// A key with its whole value.
    fn entry(&mut self, db: u32, value: Stored<'_>);

    /// A key with a large collection. Its parts follow over several steps, and nothing else until
    /// [`end`](Self::end).
    fn begin(&mut self, head: &CollectionHead);

    /// A part of the current collection.
    fn part(&mut self, part: CollectionPart<'_>);

    /// The current collection is complete.
    fn end(&mut self);
}

/// A key with a large collection, at the cut.
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
    /// The type of the collection, and how many parts follow.
    pub shape: CollectionShape,
}

/// The type of a large collection, and how many parts follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionShape {
    /// The number of members.
    Set(usize),
    /// The number of members with scores.
    SortedSet(usize),
    /// The number of fields, and the earliest expiry of one, in milliseconds since 1970.
    Hash(usize, Option<i64>),
    /// The number of chunks.
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
    Chunk(list::ListChunkRef<'a>),
    /// A part of a stream; the chunks come in order, before the groups.
    Stream(stream::StreamPart<'a>),
}
