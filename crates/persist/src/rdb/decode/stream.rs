//! Streams; see [`encode`](crate::rdb::encode::stream) for their layout.

use ds::packed::{Entry, Packed, PackedIter};
use ds::stream::{ChunkEntry, Consumer, ConsumerGroup, Id, NewChunk, Pending, Unfit};
use store::NewValue;

use super::{Rooms, ValueDecoder, listpack, read_bytes};
use crate::rdb::encode::stream::{DELETED, FRAME_ELEMENTS, SAME_FIELDS};
use crate::rdb::{length, string};
use crate::{ByteInput, ByteSource, Error};

const CORRUPT_CHUNK: Error = Error::Corrupt("a chunk of a stream");

/// The form of a stream, which has grown twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamVersion {
    /// Redis 5.
    One,
    /// With the first identifier, the highest deleted one, the number of entries ever added, and
    /// the number that each group has read.
    Two,
    /// With the times when consumers were last active.
    Three,
}

impl From<Unfit> for Error {
    fn from(_: Unfit) -> Self {
        Self::Corrupt("the identifiers of a stream")
    }
}

/// The elements of a chunk's listpack, in order.
struct ChunkElements<'a> {
    list: Packed<'a>,
    iter: PackedIter<'a>,
}

impl<'a> ChunkElements<'a> {
    fn integer(&mut self) -> Result<i64, Error> {
        match self.iter.next() {
            Some(Entry::Integer(value)) => Ok(value),
            _ => Err(CORRUPT_CHUNK),
        }
    }

    fn count(&mut self) -> Result<usize, Error> {
        usize::try_from(self.integer()?).map_err(|_| CORRUPT_CHUNK)
    }

    /// The bytes of the next elements.
    fn entries(&mut self, elements: usize) -> Result<&'a [u8], Error> {
        let start = self.iter.front();
        for _ in 0..elements {
            self.iter.next().ok_or(CORRUPT_CHUNK)?;
        }
        Ok(&self.list.entries()[start..self.iter.front()])
    }

    fn entry(&mut self, base: Id, fields: usize) -> Result<ChunkEntry<'a>, Error> {
        let flags = self.integer()?;
        // Differences wrap in two's complement, as in Redis.
        let ms = base.ms.wrapping_add(self.integer()? as u64);
        let seq = base.seq.wrapping_add(self.integer()? as u64);
        let same_fields = flags & SAME_FIELDS != 0;
        let pairs = if same_fields { fields } else { self.count()? };
        // Too high a number reaches the end of the list, which is below 4 GiB.
        let elements = if same_fields { pairs } else { pairs.saturating_mul(2) };
        let content = self.entries(elements)?;
        let framed = elements + FRAME_ELEMENTS + usize::from(!same_fields);
        if self.count()? != framed {
            return Err(CORRUPT_CHUNK);
        }
        let (id, deleted) = (Id::new(ms, seq), flags & DELETED != 0);
        Ok(ChunkEntry { id, deleted, same_fields, pairs, content })
    }
}

/// Builds a chunk from a listpack.
fn chunk(base: Id, list: Packed<'_>) -> Result<NewChunk, Error> {
    let mut elements = ChunkElements { list, iter: list.iter() };
    let (live, deleted) = (elements.count()?, elements.count()?);
    let fields = elements.count()?;
    let names = elements.entries(fields)?;
    if elements.integer()? != 0 {
        return Err(CORRUPT_CHUNK);
    }
    let mut chunk = NewChunk::new(base, fields, names);
    let mut found_deleted = 0;
    for _ in 0..live.saturating_add(deleted) {
        let entry = elements.entry(base, fields)?;
        found_deleted += usize::from(entry.deleted);
        chunk.push(&entry)?;
    }
    match elements.iter.next() {
        None if found_deleted == deleted => Ok(chunk),
        _ => Err(CORRUPT_CHUNK),
    }
}

impl ValueDecoder<'_> {
    /// A stream in the form of a version.
    pub(super) fn stream<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        version: StreamVersion,
    ) -> Result<NewValue<'_>, Error> {
        let mut stream = ds::Stream::new();
        self.chunks(input, &mut stream)?;
        let log = &mut stream.log;
        // The number of entries and the first identifier are skipped: the chunks have both.
        length::read(input)?;
        log.last_id = read_id(input)?;
        log.entries_added = log.len();
        if version >= StreamVersion::Two {
            read_id(input)?;
            log.max_deleted_id = read_id(input)?;
            log.entries_added = length::read(input)?;
        }
        if log.top_id().is_some_and(|top| top > log.last_id) {
            return Err(Error::Corrupt("the last identifier of a stream"));
        }
        let mut groups = Vec::new();
        for _ in 0..length::read(input)? {
            let mut name = Vec::new();
            string::append(input, &mut name)?;
            let last_id = read_id(input)?;
            let read = if version >= StreamVersion::Two {
                length::read(input)? as i64
            } else {
                stream.log.entries_until(last_id)
            };
            groups.push((name, group(input, ConsumerGroup::new(last_id, read), version)?));
        }
        // Adding in order costs least.
        groups.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, group) in groups {
            if !stream.groups.add(&name, group) {
                return Err(Error::Corrupt("a group occurs twice"));
            }
        }
        Ok(NewValue::stream(stream))
    }

    fn chunks<S: ByteSource>(
        &mut self,
        input: &mut ByteInput<S>,
        stream: &mut ds::Stream,
    ) -> Result<(), Error> {
        let Rooms { text, entries, .. } = &mut self.rooms;
        for _ in 0..length::read(input)? {
            let base = read_bytes(input, text)?;
            let base = id_of(base.try_into().map_err(|_| CORRUPT_CHUNK)?);
            let list = listpack::open(read_bytes(input, text)?, entries)?;
            stream.log.push_chunk(chunk(base, list)?)?;
        }
        Ok(())
    }
}

/// A pending entry before its consumer is known.
struct Unowned {
    id: Id,
    delivered_ms: i64,
    deliveries: i64,
}

/// A consumer and its pending entries.
struct NewConsumer {
    name: Vec<u8>,
    seen_ms: i64,
    active_ms: i64,
    /// The indexes of its entries among those of the group.
    pending: Vec<usize>,
}

/// Reads the pending entries of a group, and its consumers.
fn group<S: ByteSource>(
    input: &mut ByteInput<S>,
    mut group: ConsumerGroup,
    version: StreamVersion,
) -> Result<ConsumerGroup, Error> {
    let mut pending = Vec::new();
    for _ in 0..length::read(input)? {
        let id = id_of(&input.array()?);
        let delivered_ms = i64::from_le_bytes(input.array()?);
        let deliveries = length::read(input)? as i64;
        pending.push(Unowned { id, delivered_ms, deliveries });
    }
    pending.sort_by_key(|entry| entry.id);
    if pending.windows(2).any(|pair| pair[0].id == pair[1].id) {
        return Err(Error::Corrupt("an entry is pending twice"));
    }
    let mut consumers = Vec::new();
    for _ in 0..length::read(input)? {
        consumers.push(consumer(input, &pending, version)?);
    }
    // Adding in order costs least.
    consumers.sort_by(|a, b| a.name.cmp(&b.name));
    let mut handles = vec![None; pending.len()];
    for new in consumers {
        let (handle, is_new) = group.find_or_add(&new.name, new.seen_ms);
        if !is_new {
            return Err(Error::Corrupt("a consumer occurs twice"));
        }
        let consumer: &mut Consumer = group.consumer_mut(handle);
        consumer.active_ms = new.active_ms;
        for at in new.pending {
            if handles[at].replace(handle).is_some() {
                return Err(Error::Corrupt("an entry is pending for two consumers"));
            }
        }
    }
    for (entry, handle) in pending.into_iter().zip(handles) {
        let consumer = handle.ok_or(Error::Corrupt("an entry is pending for no consumer"))?;
        let Unowned { id, delivered_ms, deliveries } = entry;
        group.deliver(id, Pending { consumer, delivered_ms, deliveries });
    }
    Ok(group)
}

/// Reads a consumer.
fn consumer<S: ByteSource>(
    input: &mut ByteInput<S>,
    pending: &[Unowned],
    version: StreamVersion,
) -> Result<NewConsumer, Error> {
    let mut name = Vec::new();
    string::append(input, &mut name)?;
    let seen_ms = i64::from_le_bytes(input.array()?);
    // The best estimate in older versions.
    let mut active_ms = seen_ms;
    if version >= StreamVersion::Three {
        active_ms = i64::from_le_bytes(input.array()?);
    }
    let mut own = Vec::new();
    for _ in 0..length::read(input)? {
        let id = id_of(&input.array()?);
        let at = pending.binary_search_by_key(&id, |entry| entry.id);
        own.push(at.map_err(|_| Error::Corrupt("an entry is pending for a consumer only"))?);
    }
    Ok(NewConsumer { name, seen_ms, active_ms, pending: own })
}

fn read_id<S: ByteSource>(input: &mut ByteInput<S>) -> Result<Id, Error> {
    Ok(Id::new(length::read(input)?, length::read(input)?))
}

/// The identifier in 16 bytes.
fn id_of(bytes: &[u8; 16]) -> Id {
    let both = u128::from_be_bytes(*bytes);
    // The casts take the halves.
    Id::new((both >> 64) as u64, both as u64)
}
