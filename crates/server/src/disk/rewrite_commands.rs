//! A base of the append-only file as commands: `aof-use-rdb-preamble no`.
//!
//! ```text
//! SELECT 0 │ SET k v │ PEXPIREAT k 1700000000000 │ RPUSH l 64 elements │ RPUSH l ...
//! ```
//!
//! A collection is written as commands of up to [`ITEMS_MAX`] elements each, so that loading it
//! takes no more memory than it has.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;

use base::number;
use ds::stream::{self, ConsumerGroup, GroupHead, Handle, Id, Pending, StreamChunkRef};
use persist::aof::{NewBase, push_command};
use persist::disk::DiskError;
use store::FieldValue;
use store::snapshot::{CollectionHead, CollectionPart, CollectionShape, KeySink};
use store::{
    Entry, HashValue, ListRef, ListValue, SetValue, SortedSetValue, Stored, StreamValue, StringRef,
    StringValue,
};

use super::snapshot_job::{Pacing, SnapshotJob, SnapshotSink, WalkError};
use crate::system::real_disk::RealFile;

/// Elements of a command.
const ITEMS_MAX: usize = 64;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 << 10;
/// Bytes of the buffer that are kept.
const BUFFER_BYTES_MAX: usize = 1 << 20;

impl SnapshotJob {
    /// Writes a base as commands.
    ///
    /// # Errors
    /// When the snapshot is not whole or the disk fails.
    pub fn write_commands(
        self,
        base: &mut NewBase<RealFile>,
        unix_seconds: Option<i64>,
        pacing: Pacing<'_>,
    ) -> Result<(), WalkError<DiskError>> {
        let commands = Commands::default();
        let mut sink = CommandSink { base, unix_seconds, commands, keys: 0 };
        for library in &self.libraries {
            push_command(&mut sink.commands.out, &[b"FUNCTION", b"LOAD", library.source()]);
        }
        self.walk(&mut sink, pacing)?;
        sink.flush().map_err(WalkError::Sink)
    }
}

struct CommandSink<'a> {
    base: &'a mut NewBase<RealFile>,
    /// The time of the cut, if it is written.
    unix_seconds: Option<i64>,
    commands: Commands,
    keys: u64,
}

/// Commands in the making.
#[derive(Default)]
struct Commands {
    out: Vec<u8>,
    /// The database that is selected.
    db: u32,
    /// The command that elements are added to.
    items: Items,
    /// The large stream that is being written.
    stream: Option<OpenStream>,
    /// The key of the large collection that is being written, and its expiry.
    key: Box<[u8]>,
    expires_at: Option<i64>,
}

struct OpenStream {
    key: Box<[u8]>,
    head: stream::Head,
    chunks_left: usize,
    group: Option<GroupNames>,
}

/// The figures with which pending entries are written.
struct GroupNames {
    name: Box<[u8]>,
    consumers: BTreeMap<Handle, Box<[u8]>>,
}

/// A command with a growing number of elements.
#[derive(Default)]
struct Items {
    /// Its name and its key.
    front: Vec<u8>,
    body: Vec<u8>,
    args: usize,
    items: usize,
}

impl Items {
    fn begin(&mut self, name: &[u8], key: &[u8]) {
        self.front.clear();
        push_arg(&mut self.front, name);
        push_arg(&mut self.front, key);
    }

    fn add(&mut self, texts: &[&[u8]], out: &mut Vec<u8>) {
        texts.iter().for_each(|text| push_arg(&mut self.body, text));
        self.args += texts.len();
        self.items += 1;
        if self.items == ITEMS_MAX {
            self.flush(out);
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if self.items > 0 {
            out.push(b'*');
            number::push_u64(out, self.args as u64 + 2);
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(&self.front);
            out.extend_from_slice(&self.body);
            self.body.clear();
            (self.args, self.items) = (0, 0);
        }
    }
}

fn push_arg(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'$');
    number::push_u64(out, text.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn decimal(value: i64) -> Vec<u8> {
    let mut text = Vec::with_capacity(number::INTEGER_BYTES_MAX);
    number::push_i64(&mut text, value);
    text
}

fn double(value: f64) -> Vec<u8> {
    let mut text = Vec::new();
    number::push_f64(&mut text, value);
    text
}

fn id_text(id: Id) -> Vec<u8> {
    format!("{}-{}", id.ms, id.seq).into_bytes()
}

impl Commands {
    fn command(&mut self, args: &[&[u8]]) {
        push_command(&mut self.out, args);
    }

    fn select(&mut self, db: u32) {
        if self.db != db {
            self.db = db;
            self.command(&[b"SELECT", &decimal(i64::from(db))]);
        }
    }

    fn add(&mut self, texts: &[&[u8]]) {
        self.items.add(texts, &mut self.out);
    }

    fn end_items(&mut self) {
        self.items.flush(&mut self.out);
    }

    fn element(&mut self, element: Entry<'_>) {
        self.add(&[&element.to_vec()]);
    }

    fn field(&mut self, field: &[u8], value: FieldValue<'_>, key: &[u8]) {
        self.add(&[field, &value.entry.to_vec()]);
        if let Some(at) = value.expires_at {
            self.end_items();
            self.command(&[b"HPEXPIREAT", key, &decimal(at), b"FIELDS", b"1", field]);
        }
    }

    fn value(&mut self, value: Stored<'_>) {
        let key = value.key();
        if let Some(text) = value.view::<StringValue>() {
            match text {
                StringRef::Bytes(text) => self.command(&[b"SET", key, text]),
                StringRef::Shared(text) => self.command(&[b"SET", key, text]),
                StringRef::Integer(value) => self.command(&[b"SET", key, &decimal(value)]),
            }
        } else if let Some(list) = value.view::<ListValue>() {
            self.items.begin(b"RPUSH", key);
            self.list(list);
        } else if let Some(set) = value.view::<SetValue>() {
            self.items.begin(b"SADD", key);
            set.iter().for_each(|member| self.element(member));
        } else if let Some(set) = value.view::<SortedSetValue>() {
            self.items.begin(b"ZADD", key);
            for pair in set.walk(0..set.len(), false) {
                self.add(&[&double(pair.score()), &pair.member.to_vec()]);
            }
        } else if let Some(hash) = value.view::<HashValue>() {
            self.items.begin(b"HSET", key);
            for (field, value) in hash.iter() {
                self.field(&field.to_vec(), value, key);
            }
        } else if let Some(stream) = value.view::<StreamValue>() {
            self.stream(key, stream);
        }
        self.end_items();
        if let Some(at) = value.expires_at() {
            self.command(&[b"PEXPIREAT", key, &decimal(at)]);
        }
    }

    fn list(&mut self, list: ListRef<'_>) {
        list.iter_from(0).for_each(|element| self.element(element));
    }

    /// A stream that is not walked in steps. An entry that was deleted while it was pending exists
    /// until it is claimed, because other servers claim no entry that does not exist.
    fn stream(&mut self, key: &[u8], stream: &ds::Stream) {
        let ids = stream.groups.iter().flat_map(|(_, group)| all_pending(group).map(|(id, _)| id));
        let deleted: BTreeSet<Id> = ids.filter(|id| stream.log.entry(*id).is_none()).collect();
        let mut missing = deleted.iter().copied().peekable();
        for chunk in stream.log.chunk_refs() {
            self.chunk(key, chunk, &mut missing);
        }
        missing.for_each(|id| self.stand_in(key, id));
        if deleted.is_empty() {
            self.stream_head(key, &stream.head());
        }
        for (name, group) in stream.groups.iter() {
            let names = self.group(key, &GroupHead::of(name, group));
            for (id, entry) in all_pending(group) {
                self.pending(key, &names, id, *entry);
            }
        }
        if !deleted.is_empty() {
            self.items.begin(b"XDEL", key);
            deleted.iter().for_each(|id| self.add(&[&id_text(*id)]));
            self.end_items();
            self.set_id(key, &stream.head());
        }
    }

    /// An entry for one that was deleted.
    fn stand_in(&mut self, key: &[u8], id: Id) {
        self.command(&[b"XADD", key, &id_text(id), b"x", b"y"]);
    }

    /// The entries of a chunk, and those before them that are missing.
    fn chunk(
        &mut self,
        key: &[u8],
        chunk: StreamChunkRef<'_>,
        missing: &mut Peekable<impl Iterator<Item = Id>>,
    ) {
        let (_, names) = chunk.fields();
        for entry in chunk.entries().filter(|entry| !entry.deleted) {
            while let Some(id) = missing.next_if(|id| *id < entry.id) {
                self.stand_in(key, id);
            }
            let texts: Vec<Vec<u8>> = entry
                .texts(names)
                .flat_map(|(field, value)| [field.to_vec(), value.to_vec()])
                .collect();
            let id = id_text(entry.id);
            let front = [&b"XADD"[..], key, &id];
            let args: Vec<&[u8]> =
                front.into_iter().chain(texts.iter().map(Vec::as_slice)).collect();
            self.command(&args);
        }
    }

    /// The parts of a stream besides its entries.
    fn stream_head(&mut self, key: &[u8], head: &stream::Head) {
        if head.len == 0 {
            // It begins to exist, without an entry.
            self.command(&[b"XADD", key, b"MAXLEN", b"0", b"0-1", b"x", b"y"]);
        }
        self.set_id(key, head);
    }

    fn set_id(&mut self, key: &[u8], head: &stream::Head) {
        let (last, deleted) = (id_text(head.last_id), id_text(head.max_deleted_id));
        let added = head.entries_added.to_string().into_bytes();
        self.command(&[b"XSETID", key, &last, b"ENTRIESADDED", &added, b"MAXDELETEDID", &deleted]);
    }

    fn group(&mut self, key: &[u8], head: &GroupHead) -> GroupNames {
        let (last, read) = (id_text(head.last_id), decimal(head.entries_read));
        let name = &head.name[..];
        self.command(&[b"XGROUP", b"CREATE", key, name, &last, b"ENTRIESREAD", &read]);
        for consumer in &head.consumers {
            self.command(&[b"XGROUP", b"CREATECONSUMER", key, name, &consumer.name]);
        }
        let consumers = head.consumers.iter();
        let consumers = consumers.map(|consumer| (consumer.handle, consumer.name.clone()));
        GroupNames { name: name.into(), consumers: consumers.collect() }
    }

    fn pending(&mut self, key: &[u8], group: &GroupNames, id: Id, pending: Pending) {
        let Some(consumer) = group.consumers.get(&pending.consumer) else { return };
        let (id, time) = (id_text(id), decimal(pending.delivered_ms));
        let count = pending.deliveries.to_string().into_bytes();
        self.command(&[
            b"XCLAIM",
            key,
            &group.name,
            consumer,
            b"0",
            &id,
            b"TIME",
            &time,
            b"RETRYCOUNT",
            &count,
            b"JUSTID",
            b"FORCE",
        ]);
    }

    fn begin(&mut self, head: &CollectionHead) {
        let key = &head.key[..];
        (self.key, self.expires_at) = (key.into(), head.expires_at);
        match head.shape {
            CollectionShape::Set(_) => self.items.begin(b"SADD", key),
            CollectionShape::SortedSet(_) => self.items.begin(b"ZADD", key),
            CollectionShape::Hash(..) => self.items.begin(b"HSET", key),
            CollectionShape::List(_) => self.items.begin(b"RPUSH", key),
            CollectionShape::Stream(head) => {
                if head.chunks == 0 {
                    self.stream_head(key, &head);
                }
                let (chunks_left, group) = (head.chunks, None);
                self.stream = Some(OpenStream { key: key.into(), head, chunks_left, group });
            }
        }
    }

    fn part(&mut self, part: CollectionPart<'_>) {
        match part {
            CollectionPart::Member(member) => self.add(&[member]),
            CollectionPart::Scored(member, score) => self.add(&[&double(score), member]),
            CollectionPart::Field(field, value) => {
                let key = std::mem::take(&mut self.key);
                self.field(field, value, &key);
                self.key = key;
            }
            CollectionPart::Chunk(ds::list::ListChunkRef::Large(element)) => self.element(element),
            CollectionPart::Chunk(ds::list::ListChunkRef::Packed(elements)) => {
                elements.iter().for_each(|element| self.element(element));
            }
            CollectionPart::Stream(part) => {
                let Some(mut open) = self.stream.take() else { return };
                self.stream_part(&mut open, part);
                self.stream = Some(open);
            }
        }
    }

    fn stream_part(&mut self, open: &mut OpenStream, part: stream::StreamPart<'_>) {
        match part {
            stream::StreamPart::Chunk(chunk) => {
                self.chunk(&open.key, chunk, &mut std::iter::empty().peekable());
                open.chunks_left = open.chunks_left.saturating_sub(1);
                if open.chunks_left == 0 {
                    self.stream_head(&open.key, &open.head);
                }
            }
            stream::StreamPart::Group(head) => open.group = Some(self.group(&open.key, head)),
            stream::StreamPart::Pending(id, pending) => {
                if let Some(group) = &open.group {
                    self.pending(&open.key, group, id, pending);
                }
            }
        }
    }

    fn end(&mut self) {
        self.end_items();
        self.stream = None;
        if let Some(at) = self.expires_at.take() {
            let key = std::mem::take(&mut self.key);
            self.command(&[b"PEXPIREAT", &key, &decimal(at)]);
        }
    }
}

fn all_pending(group: &ConsumerGroup) -> impl Iterator<Item = (Id, &Pending)> {
    group.pending_range(Id::MIN..=Id::MAX)
}

impl CommandSink<'_> {
    fn flush(&mut self) -> Result<(), DiskError> {
        if !self.commands.out.is_empty() {
            self.base.commands(&self.commands.out, self.unix_seconds)?;
            base::room::clear(&mut self.commands.out, BUFFER_BYTES_MAX);
        }
        Ok(())
    }
}

impl KeySink for CommandSink<'_> {
    fn entry(&mut self, db: u32, value: Stored<'_>) {
        self.keys += 1;
        self.commands.select(db);
        self.commands.value(value);
    }

    fn begin(&mut self, head: &CollectionHead) {
        self.keys += 1;
        self.commands.select(head.db);
        self.commands.begin(head);
    }

    fn part(&mut self, part: CollectionPart<'_>) {
        self.commands.part(part);
    }

    fn end(&mut self) {
        self.commands.end();
    }
}

impl SnapshotSink for CommandSink<'_> {
    type Error = DiskError;

    fn is_locked(&mut self, _: bool) {}

    fn pass_on(&mut self) -> Result<u64, DiskError> {
        if self.commands.out.len() >= WRITE_BYTES {
            self.flush()?;
        }
        Ok(std::mem::take(&mut self.keys))
    }
}
