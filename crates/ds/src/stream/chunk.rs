//! A chunk: a hundred bytes or more of consecutive entries, encoded relative to the identifier and
//! fields of the first one.
//!
//! ```text
//! chunk   fields │ entry │ entry │ ...
//! fields  how many │ their names, packed
//! entry   size and flags │ ms │ seq │ values, packed             │ back     fields as the chunk's
//!         size and flags │ ms │ seq │ how many │ fields, values  │ back     own fields
//! ```
//!
//! Numbers are varints. `size` is the number of bytes between itself and `back`, and is stored
//! above two flags. `ms` is the distance to the chunk's base. `seq` is the distance to the base
//! within the base's millisecond, and the sequence itself in later ones, where it starts again.
//! `back` is the length of everything before it, for reading backwards.
//!
//! Redis stores the same in a listpack, with a larger frame for each entry. Its limits apply to the
//! size of that listpack, [`StreamChunk::listpack_bytes`], so chunks end at the same entries as in
//! Redis.
//!
//! Invariants: identifiers ascend; a marked entry counts as deleted and is skipped; `head` is the
//! first entry that is not, or the end; offsets fit in 32 bits, as the callers' limits ensure.

use crate::packed::{Encoded, Entry as Text, after};
use crate::record::class_bytes;
use crate::stream::Id;
use crate::stream::varint;
use crate::table::prefetch;

/// The entry is deleted.
const DELETED: u64 = 1;
/// The entry has the chunk's fields.
const SAME_FIELDS: u64 = 2;
const FLAG_BITS: u32 = 2;
/// A listpack's header and terminator.
const LISTPACK_FRAME_BYTES: usize = 7;
/// The least room a growing chunk gets.
const GROWTH_BYTES_MIN: usize = 64;

/// Consecutive entries.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamChunk {
    pub(super) bytes: Vec<u8>,
    /// In 32 bits, as all numbers here; see [`ENTRY_BYTES_MAX`](crate::stream::ENTRY_BYTES_MAX).
    live: u32,
    marked: u32,
    pub(super) head: u32,
    pub(super) body: u32,
}

/// An entry: its identifier, and fields with their values.
#[derive(Clone, Copy, Debug)]
pub struct StreamEntry<'a> {
    /// Its identifier.
    pub id: Id,
    fields: &'a [u8],
    values: &'a [u8],
    pairs: usize,
}

/// A field or a value.
pub type Element<'a> = Text<'a>;

impl<'a> StreamEntry<'a> {
    /// The number of fields, each with a value. Names may repeat.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// The fields with their values, as they were added.
    pub fn pairs(&self) -> EntryPairs<'a> {
        EntryPairs::new(self.fields, self.values)
    }
}

/// An iterator over an entry's fields and values.
#[derive(Clone, Debug)]
pub struct EntryPairs<'a> {
    /// Empty if each name precedes its value in `values`.
    fields: &'a [u8],
    values: &'a [u8],
    field_at: usize,
    value_at: usize,
}

impl<'a> EntryPairs<'a> {
    pub(super) fn new(fields: &'a [u8], values: &'a [u8]) -> Self {
        Self { fields, values, field_at: 0, value_at: 0 }
    }
}

impl<'a> Iterator for EntryPairs<'a> {
    type Item = (Element<'a>, Element<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.value_at >= self.values.len() {
            return None;
        }
        let field = if self.fields.is_empty() {
            let field = Text::at(self.values, self.value_at);
            self.value_at = after(self.values, self.value_at);
            field
        } else {
            let field = Text::at(self.fields, self.field_at);
            self.field_at = after(self.fields, self.field_at);
            field
        };
        let value = Text::at(self.values, self.value_at);
        self.value_at = after(self.values, self.value_at);
        Some((field, value))
    }
}

/// The parts of an entry in a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) deleted: bool,
    pub(super) same_fields: bool,
    pub(super) id: Id,
    /// The content after the identifier, up to `back`.
    pub(super) content: usize,
    pub(super) content_end: usize,
    /// The next entry.
    pub(super) end: usize,
}

impl StreamChunk {
    /// Prefetches the first and the last cache line.
    #[inline]
    pub(super) fn prefetch_ends(&self) {
        prefetch(self.bytes.as_ptr());
        prefetch(self.bytes.as_ptr_range().end);
    }

    /// A chunk for entries that mostly have these fields. `text` returns names and values in turn.
    pub(super) fn new<'t>(pairs: usize, text: impl Fn(usize) -> &'t [u8]) -> Self {
        let mut chunk = Self::default();
        // The first entry, which has the same fields, follows at once.
        let texts: usize = (0..2 * pairs).map(|index| text(index).len() + 2).sum();
        chunk.bytes.reserve_exact(texts + GROWTH_BYTES_MIN);
        varint::push(&mut chunk.bytes, pairs as u64);
        for pair in 0..pairs {
            Encoded::text(text(2 * pair)).append_to(&mut chunk.bytes);
        }
        chunk.body = chunk.bytes.len() as u32;
        chunk.head = chunk.body;
        chunk
    }

    /// The number of entries that are not deleted.
    pub(super) fn live(&self) -> usize {
        self.live as usize
    }

    /// The number of entries, including deleted ones.
    pub(super) fn entries(&self) -> usize {
        self.live as usize + self.marked as usize
    }

    /// Allocated bytes, without this struct.
    pub(super) fn allocated_bytes(&self) -> usize {
        class_bytes(self.bytes.capacity())
    }

    /// Frees the room for further entries.
    pub(super) fn seal(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// The size of the chunk's listpack in Redis, where the elements after the two counts take
    /// `written` bytes.
    pub(super) fn listpack_bytes(&self, written: usize) -> usize {
        let counts = [self.live, self.marked].map(|n| Encoded::integer(i64::from(n)).len());
        LISTPACK_FRAME_BYTES + counts[0] + counts[1] + written
    }

    /// The size of an empty chunk, for [`StreamChunk::listpack_bytes`].
    pub(super) fn listpack_start(&self) -> usize {
        let (pairs, names) = varint::read(&self.bytes, 0);
        // The names are followed by a zero.
        integer_bytes(pairs as i64) + (self.body as usize - names) + integer_bytes(0)
    }

    /// Adds an entry at the end. Returns the size of its elements in a listpack.
    pub(super) fn append<'t>(
        &mut self,
        base: Id,
        id: Id,
        pairs: usize,
        text: impl Fn(usize) -> &'t [u8],
    ) -> usize {
        let same = self.has_fields(pairs, &text);
        self.make_room(pairs, &text);
        self.append_with(base, id, same, pairs, |bytes| {
            for index in 0..if same { pairs } else { 2 * pairs } {
                let index = if same { 2 * index + 1 } else { index };
                Encoded::text(text(index)).append_to(bytes);
            }
        })
    }

    /// Adds an entry whose elements `write` appends: values, or fields and values in turn.
    #[inline]
    pub(super) fn append_with(
        &mut self,
        base: Id,
        id: Id,
        same: bool,
        pairs: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        let (ms, seq) = distance(base, id);
        let start = self.bytes.len();
        // Most entries are short, and have a size of one byte.
        self.bytes.push(0);
        varint::push(&mut self.bytes, ms);
        varint::push(&mut self.bytes, seq);
        if !same {
            varint::push(&mut self.bytes, pairs as u64);
        }
        let content = self.bytes.len();
        write(&mut self.bytes);
        let content_bytes = self.bytes.len() - content;
        let size = (self.bytes.len() - start - 1) as u64;
        let head = size << FLAG_BITS | if same { SAME_FIELDS } else { 0 };
        self.set_head(start, head);
        let back = (self.bytes.len() - start) as u64;
        varint::push_backward(&mut self.bytes, back);
        self.live += 1;
        let elements = if same { pairs } else { 2 * pairs };
        listpack_entry_bytes(base, id, content_bytes, elements, (!same).then_some(pairs))
    }

    fn set_head(&mut self, start: usize, head: u64) {
        let len = varint::len(head);
        if len > 1 {
            let old_end = self.bytes.len();
            self.bytes.resize(old_end + len - 1, 0);
            self.bytes.copy_within(start + 1..old_end, start + len);
        }
        let mut left = head;
        for byte in &mut self.bytes[start..start + len] {
            *byte = left as u8 | 0x80;
            left >>= 7;
        }
        self.bytes[start + len - 1] &= 0x7f;
    }

    /// Makes room for an entry, and grows by at least a fifth, so that a growing chunk rarely moves
    /// and wastes little.
    fn make_room<'t>(&mut self, pairs: usize, text: &impl Fn(usize) -> &'t [u8]) {
        let texts: usize = (0..2 * pairs).map(|index| text(index).len()).sum();
        let free = self.bytes.capacity() - self.bytes.len();
        // Most elements take two bytes in addition to the text.
        if free < texts + 4 * pairs + GROWTH_BYTES_MIN / 2 {
            let more = (texts + 4 * pairs + GROWTH_BYTES_MIN / 2).max(self.bytes.len() / 5);
            self.bytes.reserve_exact(more);
        }
    }

    /// Whether the chunk's fields are these.
    fn has_fields<'t>(&self, pairs: usize, text: &impl Fn(usize) -> &'t [u8]) -> bool {
        let (own, mut at) = varint::read(&self.bytes, 0);
        if own != pairs as u64 {
            return false;
        }
        for pair in 0..pairs {
            if !Encoded::text(text(2 * pair)).is_at(&self.bytes, at) {
                return false;
            }
            at = after(&self.bytes, at);
        }
        true
    }

    #[inline]
    pub(super) fn frame(&self, base: Id, at: usize) -> Frame {
        let (head, start) = varint::read(&self.bytes, at);
        let content_end = start + (head >> FLAG_BITS) as usize;
        let (ms, next) = varint::read(&self.bytes, start);
        let (seq, content) = varint::read(&self.bytes, next);
        let back = (content_end - at) as u64;
        let id = if ms == 0 {
            Id::new(base.ms, base.seq.wrapping_add(seq))
        } else {
            Id::new(base.ms.wrapping_add(ms), seq)
        };
        let end = content_end + varint::len(back);
        let (deleted, same_fields) = (head & DELETED != 0, head & SAME_FIELDS != 0);
        Frame { deleted, same_fields, id, content, content_end, end }
    }

    /// Where the entry that ends before `end` begins.
    fn before(&self, end: usize) -> usize {
        let (len, at) = varint::read_backward(&self.bytes, end);
        at - len as usize
    }

    #[inline]
    fn entry(&self, frame: &Frame) -> StreamEntry<'_> {
        let id = frame.id;
        if frame.same_fields {
            let (pairs, names) = varint::read(&self.bytes, 0);
            let fields = &self.bytes[names..self.body as usize];
            let values = &self.bytes[frame.content..frame.content_end];
            return StreamEntry { id, fields, values, pairs: pairs as usize };
        }
        let (pairs, at) = varint::read(&self.bytes, frame.content);
        let values = &self.bytes[at..frame.content_end];
        StreamEntry { id, fields: &[], values, pairs: pairs as usize }
    }

    /// The first entry that is not deleted and whose identifier is `from` or higher, at or after
    /// the offset `at`; and the offset after it.
    #[inline]
    pub(super) fn next(&self, base: Id, from: Id, at: usize) -> Option<(StreamEntry<'_>, usize)> {
        let mut at = at.max(self.head as usize);
        while at < self.bytes.len() {
            let frame = self.frame(base, at);
            if !frame.deleted && frame.id >= from {
                return Some((self.entry(&frame), frame.end));
            }
            at = frame.end;
        }
        None
    }

    /// The last entry that is not deleted and whose identifier is `to` or lower, before the offset
    /// `end`; and the offset of its start.
    pub(super) fn next_back(
        &self,
        base: Id,
        to: Id,
        end: usize,
    ) -> Option<(StreamEntry<'_>, usize)> {
        let mut end = end.min(self.bytes.len());
        while end > self.head as usize {
            let at = self.before(end);
            let frame = self.frame(base, at);
            if !frame.deleted && frame.id <= to {
                return Some((self.entry(&frame), at));
            }
            end = at;
        }
        None
    }

    /// The entry with an identifier, unless it is deleted.
    pub(super) fn find(&self, base: Id, id: Id) -> Option<StreamEntry<'_>> {
        let (_, frame) = self.seek(base, id)?;
        Some(self.entry(&frame))
    }

    fn seek(&self, base: Id, id: Id) -> Option<(usize, Frame)> {
        let mut at = self.head as usize;
        while at < self.bytes.len() {
            let frame = self.frame(base, at);
            if frame.id >= id {
                return (frame.id == id && !frame.deleted).then_some((at, frame));
            }
            at = frame.end;
        }
        None
    }

    /// The identifier of the last entry, deleted or not.
    pub(super) fn last_id(&self, base: Id) -> Id {
        if self.bytes.len() == self.body as usize {
            return base;
        }
        self.frame(base, self.before(self.bytes.len())).id
    }

    /// Marks an entry as deleted. Returns whether it was there.
    pub(super) fn delete(&mut self, base: Id, id: Id) -> bool {
        let Some((at, _)) = self.seek(base, id) else { return false };
        self.mark(base, at);
        true
    }

    /// Marks the first entry that is not deleted, if its identifier is below `below`.
    pub(super) fn delete_first(&mut self, base: Id, below: Option<Id>) -> bool {
        let at = self.head as usize;
        if at >= self.bytes.len() || below.is_some_and(|id| self.frame(base, at).id >= id) {
            return false;
        }
        self.mark(base, at);
        true
    }

    /// Marks the entry at an offset, which is not marked yet.
    pub(super) fn mark(&mut self, base: Id, at: usize) {
        self.bytes[at] |= DELETED as u8;
        self.live -= 1;
        self.marked += 1;
        let mut head = self.head as usize;
        while head < self.bytes.len() {
            let frame = self.frame(base, head);
            if !frame.deleted {
                break;
            }
            head = frame.end;
        }
        self.head = head as u32;
    }
}

/// The distance of an identifier to the base, as an entry stores it.
fn distance(base: Id, id: Id) -> (u64, u64) {
    let ms = id.ms.wrapping_sub(base.ms);
    (ms, if ms == 0 { id.seq.wrapping_sub(base.seq) } else { id.seq })
}

fn integer_bytes(value: i64) -> usize {
    Encoded::integer(value).len()
}

/// The bytes of an entry's elements in a listpack: flags, both distances, perhaps the number of
/// fields, the texts, and the number of elements.
fn listpack_entry_bytes(
    base: Id,
    id: Id,
    texts: usize,
    elements: usize,
    own_fields: Option<usize>,
) -> usize {
    let ms = id.ms.wrapping_sub(base.ms) as i64;
    let seq = id.seq.wrapping_sub(base.seq) as i64;
    let count = own_fields.map_or(0, |pairs| integer_bytes(pairs as i64));
    let all = elements + 3 + usize::from(own_fields.is_some());
    let frame = integer_bytes(0) + integer_bytes(ms) + integer_bytes(seq);
    frame + count + texts + integer_bytes(all as i64)
}
