//! Values as plain data, from the keyspace and from a sink.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ds::list::ListChunkRef;
use ds::stream::{self, GroupHead, Id};

use super::super::{CollectionHead, CollectionPart, CollectionShape, KeySink};
use crate::shard::Shard;
use crate::value::sorted_set::SortedSetRef;
use crate::value::stored::Stored;
use crate::value::string::StringDigits;
use crate::{HashValue, ListValue, SetValue, SortedSetValue, StreamValue, StringValue};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelValue {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    Scores(BTreeMap<Vec<u8>, u64>),
    Fields(BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>),
    Stream(String),
}

/// All keys with their expiry and value.
pub type Dump = BTreeMap<(u32, Vec<u8>), (Option<i64>, ModelValue)>;

pub fn dump(shards: &mut [Shard]) -> Dump {
    let mut dump = Dump::new();
    for db in shards.iter_mut().flat_map(Shard::all_dbs) {
        for record in db.table.iter() {
            let value = (record.expires_at(), value_of(Stored(record)));
            assert!(dump.insert((db.number, record.key().to_vec()), value).is_none());
        }
    }
    dump
}

fn value_of(stored: Stored<'_>) -> ModelValue {
    if let Some(text) = stored.view::<StringValue>() {
        return ModelValue::Text(text.bytes(&mut StringDigits::default()).to_vec());
    }
    if let Some(list) = stored.view::<ListValue>() {
        return ModelValue::List(list.iter_from(0).map(|element| element.to_vec()).collect());
    }
    if let Some(set) = stored.view::<SetValue>() {
        return ModelValue::Set(set.iter().map(|member| member.to_vec()).collect());
    }
    if let Some(set) = stored.view::<SortedSetValue>() {
        let scores = SortedSetRef::walk(set, 0..set.len(), false);
        let scores = scores.map(|pair| (pair.member.to_vec(), pair.score().to_bits()));
        return ModelValue::Scores(scores.collect());
    }
    if let Some(hash) = stored.view::<HashValue>() {
        let fields = hash.iter();
        let fields =
            fields.map(|(field, value)| (field.to_vec(), (value.entry.to_vec(), value.expires_at)));
        return ModelValue::Fields(fields.collect());
    }
    let mut text = String::new();
    if let Some(stream) = stored.view::<StreamValue>() {
        write_head(&mut text, &stream.head());
        stream
            .log
            .chunk_refs()
            .for_each(|chunk| write_part(&mut text, stream::StreamPart::Chunk(chunk)));
        for (name, group) in stream.groups.iter() {
            write_part(&mut text, stream::StreamPart::Group(&GroupHead::of(name, group)));
            for (id, pending) in group.pending_range(Id::MIN..=Id::MAX) {
                write_part(&mut text, stream::StreamPart::Pending(id, *pending));
            }
        }
    }
    ModelValue::Stream(text)
}

fn write_head(text: &mut String, head: &stream::Head) {
    let _ = write!(text, "{head:?} ");
}

fn write_part(text: &mut String, part: stream::StreamPart<'_>) {
    let _ = match part {
        stream::StreamPart::Chunk(chunk) => {
            let entries: Vec<_> = chunk.entries().collect();
            write!(text, "{:?} {:?} {entries:?} ", chunk.base(), chunk.fields())
        }
        stream::StreamPart::Group(head) => write!(text, "{head:?} "),
        stream::StreamPart::Pending(id, pending) => write!(text, "{id:?} {pending:?} "),
    };
}

/// Collects the keys of a snapshot, and checks that nothing comes twice or is missing.
#[derive(Default)]
pub struct Collector {
    pub dump: Dump,
    open: Option<(CollectionHead, ModelValue, usize)>,
}

impl Collector {
    fn add(&mut self, db: u32, key: &[u8], expires_at: Option<i64>, value: ModelValue) {
        let key = (db, key.to_vec());
        assert!(self.dump.insert(key.clone(), (expires_at, value)).is_none(), "twice: {key:?}");
    }
}

impl KeySink for Collector {
    fn entry(&mut self, db: u32, value: Stored<'_>) {
        assert!(self.open.is_none(), "a collection is not whole");
        self.add(db, value.key(), value.expires_at(), value_of(value));
    }

    fn begin(&mut self, head: &CollectionHead) {
        let value = match &head.shape {
            CollectionShape::Set(_) => ModelValue::Set(BTreeSet::new()),
            CollectionShape::SortedSet(_) => ModelValue::Scores(BTreeMap::new()),
            CollectionShape::Hash(..) => ModelValue::Fields(BTreeMap::new()),
            CollectionShape::List(_) => ModelValue::List(Vec::new()),
            CollectionShape::Stream(head) => {
                let mut text = String::new();
                write_head(&mut text, head);
                ModelValue::Stream(text)
            }
        };
        assert!(self.open.replace((head.clone(), value, 0)).is_none(), "a collection is not whole");
    }

    fn part(&mut self, part: CollectionPart<'_>) {
        let (head, value, parts) = self.open.as_mut().expect("it was begun");
        *parts += 1;
        if let (
            CollectionShape::Stream(head),
            CollectionPart::Stream(stream::StreamPart::Group(group)),
        ) = (&mut head.shape, part)
        {
            // Each has as many more parts.
            head.chunks += group.pending;
        }
        let is_new = match (value, part) {
            (ModelValue::Set(members), CollectionPart::Member(member)) => {
                members.insert(member.to_vec())
            }
            (ModelValue::Scores(scores), CollectionPart::Scored(member, score)) => {
                scores.insert(member.to_vec(), score.to_bits()).is_none()
            }
            (ModelValue::Fields(fields), CollectionPart::Field(field, value)) => {
                let value = (value.entry.to_vec(), value.expires_at);
                fields.insert(field.to_vec(), value).is_none()
            }
            (ModelValue::List(elements), CollectionPart::Chunk(chunk)) => {
                match chunk {
                    ListChunkRef::Packed(list) => elements.extend(list.iter().map(|e| e.to_vec())),
                    ListChunkRef::Large(element) => elements.push(element.to_vec()),
                }
                true
            }
            (ModelValue::Stream(text), CollectionPart::Stream(part)) => {
                write_part(text, part);
                true
            }
            _ => false,
        };
        assert!(is_new, "twice in {head:?}: {part:?}");
    }

    fn end(&mut self) {
        let (head, value, parts) = self.open.take().expect("it was begun");
        let announced = match head.shape {
            CollectionShape::Set(len)
            | CollectionShape::SortedSet(len)
            | CollectionShape::Hash(len, _)
            | CollectionShape::List(len) => len,
            CollectionShape::Stream(head) => head.chunks + head.groups,
        };
        assert_eq!(parts, announced, "{head:?}");
        if let (CollectionShape::Hash(_, earliest), ModelValue::Fields(fields)) =
            (head.shape, &value)
        {
            assert_eq!(earliest, fields.values().filter_map(|(_, at)| *at).min(), "{head:?}");
        }
        self.add(head.db, &head.key, head.expires_at, value);
    }
}
