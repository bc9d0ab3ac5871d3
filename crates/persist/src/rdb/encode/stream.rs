//! Streams.
//!
//! ```text
//! stream    chunks │ (base, listpack) ... │ length │ last id │ first id │ highest deleted id │
//!           entries ever added │ groups
//! listpack  entries, deleted, fields, names ..., 0 │ entry ...
//! entry     flags, ms, seq, values ..., elements                     fields as the chunk's
//!           flags, ms, seq, fields, names and values ..., elements   own fields
//! groups    count │ (name, last id, entries read, pending, consumers) ...
//! pending   count │ (id, delivered at, deliveries) ...
//! consumers count │ (name, seen at, active at, ids of pending entries) ...
//! ```
//!
//! The parts of a listpack are its elements. Numbers outside of listpacks are lengths, except that
//! identifiers of pending entries have 16 bytes, big-endian, as has the base, and times 8 bytes,
//! little-endian. The ms and seq of an entry are the differences from those of the base.

use ds::Stream;
use ds::packed::Encoded;
use ds::stream::{ChunkEntry, Consumer, ConsumerGroup, Head, Id, Pending, StreamChunkRef};

use super::ValueEncoder;
use super::packed::{LISTPACK_END, listpack_header};
use crate::ByteSink;
use crate::rdb::length;

/// The flags of an entry.
pub(crate) const DELETED: i64 = 1;
pub(crate) const SAME_FIELDS: i64 = 2;
/// The elements of an entry besides names and values: flags, ms, seq. The number of elements at its
/// end does not count itself.
pub(crate) const FRAME_ELEMENTS: usize = 3;

const HEADER_BYTES: usize = 6;

/// Appends elements to a buffer that begins with the header of a listpack.
struct ListpackBuilder<'a> {
    room: &'a mut Vec<u8>,
    len: usize,
}

impl ListpackBuilder<'_> {
    fn integer(&mut self, value: i64) {
        Encoded::integer(value).append_to(self.room);
        self.len += 1;
    }

    fn entries(&mut self, entries: &[u8], len: usize) {
        self.room.extend_from_slice(entries);
        self.len += len;
    }

    fn entry(&mut self, base: Id, entry: &ChunkEntry<'_>) {
        let ChunkEntry { id, deleted, same_fields, pairs, content } = *entry;
        self.integer(if deleted { DELETED } else { 0 } | if same_fields { SAME_FIELDS } else { 0 });
        // Differences wrap in two's complement, as in Redis.
        self.integer(id.ms.wrapping_sub(base.ms) as i64);
        self.integer(id.seq.wrapping_sub(base.seq) as i64);
        let elements = if same_fields {
            self.entries(content, pairs);
            pairs + FRAME_ELEMENTS
        } else {
            self.integer(pairs as i64);
            self.entries(content, 2 * pairs);
            2 * pairs + 1 + FRAME_ELEMENTS
        };
        self.integer(elements as i64);
    }
}

impl ValueEncoder {
    pub(super) fn stream<S: ByteSink>(
        &mut self,
        stream: &Stream,
        out: &mut S,
    ) -> Result<(), S::Error> {
        let log = &stream.log;
        length::write(out, log.chunks_len() as u64)?;
        for chunk in log.chunk_refs() {
            self.stream_chunk(chunk, out)?;
        }
        write_head(&stream.head(), out)?;
        for (name, group) in stream.groups.iter() {
            self.group(name, group, out)?;
        }
        Ok(())
    }

    /// Writes a chunk of a stream. The number of chunks precedes them.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn stream_chunk<S: ByteSink>(
        &mut self,
        chunk: StreamChunkRef<'_>,
        out: &mut S,
    ) -> Result<(), S::Error> {
        self.string(&raw_id(chunk.base()), out)?;
        self.in_room(out, |room| {
            room.extend_from_slice(&[0; HEADER_BYTES]);
            let mut elements = ListpackBuilder { room, len: 0 };
            elements.integer(chunk.live() as i64);
            elements.integer(chunk.deleted() as i64);
            let (fields, names) = chunk.fields();
            elements.integer(fields as i64);
            elements.entries(names, fields);
            elements.integer(0);
            for entry in chunk.entries() {
                elements.entry(chunk.base(), &entry);
            }
            let len = elements.len;
            room.push(LISTPACK_END);
            let header = listpack_header(room.len(), len);
            room[..HEADER_BYTES].copy_from_slice(&header);
        })
    }

    fn group<S: ByteSink>(
        &mut self,
        name: &[u8],
        group: &ConsumerGroup,
        out: &mut S,
    ) -> Result<(), S::Error> {
        self.string(name, out)?;
        write_group_head(group.last_id, group.entries_read, group.pending_len(), out)?;
        for (id, pending) in group.pending_range(Id::MIN..=Id::MAX) {
            write_pending(id, *pending, out)?;
        }
        length::write(out, group.consumers().len() as u64)?;
        group.consumers().try_for_each(|consumer| self.consumer(consumer, out))
    }

    fn consumer<S: ByteSink>(&mut self, consumer: &Consumer, out: &mut S) -> Result<(), S::Error> {
        self.string(consumer.name(), out)?;
        write_consumer(consumer.seen_ms, consumer.active_ms, consumer.pending_len(), out)?;
        consumer.pending_ids(Id::MIN..=Id::MAX).try_for_each(|id| out.put(&raw_id(id)))
    }
}

/// Writes the part of a stream after its chunks and before its groups.
pub(super) fn write_head<S: ByteSink>(head: &Head, out: &mut S) -> Result<(), S::Error> {
    length::write(out, head.len)?;
    write_id(head.last_id, out)?;
    write_id(head.first_id, out)?;
    write_id(head.max_deleted_id, out)?;
    length::write(out, head.entries_added)?;
    length::write(out, head.groups as u64)
}

/// Writes the part of a group between its name and its pending entries.
pub(super) fn write_group_head<S: ByteSink>(
    last_id: Id,
    entries_read: i64,
    pending: usize,
    out: &mut S,
) -> Result<(), S::Error> {
    write_id(last_id, out)?;
    // Unknown is -1, which becomes the highest length.
    length::write(out, entries_read as u64)?;
    length::write(out, pending as u64)
}

pub(super) fn write_pending<S: ByteSink>(
    id: Id,
    pending: Pending,
    out: &mut S,
) -> Result<(), S::Error> {
    out.put(&raw_id(id))?;
    out.put(&pending.delivered_ms.to_le_bytes())?;
    length::write(out, pending.deliveries as u64)
}

/// Writes the part of a consumer between its name and its pending entries.
pub(super) fn write_consumer<S: ByteSink>(
    seen_ms: i64,
    active_ms: i64,
    pending: usize,
    out: &mut S,
) -> Result<(), S::Error> {
    out.put(&seen_ms.to_le_bytes())?;
    out.put(&active_ms.to_le_bytes())?;
    length::write(out, pending as u64)
}

fn write_id<S: ByteSink>(id: Id, out: &mut S) -> Result<(), S::Error> {
    length::write(out, id.ms)?;
    length::write(out, id.seq)
}

/// An identifier as 16 bytes.
pub(super) fn raw_id(id: Id) -> [u8; 16] {
    (u128::from(id.ms) << 64 | u128::from(id.seq)).to_be_bytes()
}
