//! Writes a large collection part by part, as a snapshot provides it. The bytes are those of
//! [`ValueEncoder::value`], except for the order of members.

use std::collections::BTreeMap;

use ds::stream::{self, GroupHead, Handle, Id};
use store::snapshot::{CollectionHead, CollectionPart, CollectionShape};

use super::stream::{raw_id, write_consumer, write_group_head, write_head, write_pending};
use super::{ValueEncoder, distance};
use crate::ByteSink;
use crate::rdb::length;
use crate::rdb::reader::Attributes;
use crate::rdb::types::ValueType;

/// A collection that is being written part by part.
#[derive(Debug)]
pub struct Parts(PartsForm);

#[derive(Debug)]
enum PartsForm {
    Members,
    /// The earliest expiry of a field.
    Fields(Option<i64>),
    Stream(Box<StreamParts>),
}

#[derive(Debug)]
struct StreamParts {
    head: stream::Head,
    chunks_left: usize,
    group: Option<OpenGroup>,
}

/// A group that is being written. Its consumers follow its pending entries.
#[derive(Debug)]
struct OpenGroup {
    head: GroupHead,
    /// The pending entries of each consumer.
    pending: BTreeMap<Handle, Vec<Id>>,
}

fn value_type(shape: &CollectionShape) -> ValueType {
    match shape {
        CollectionShape::Set(_) => ValueType::Set,
        CollectionShape::SortedSet(_) => ValueType::SortedSet2,
        CollectionShape::Hash(_, None) => ValueType::Hash,
        CollectionShape::Hash(_, Some(_)) => ValueType::HashExpiring,
        CollectionShape::List(_) => ValueType::ListQuicklist2,
        CollectionShape::Stream(_) => ValueType::Stream3,
    }
}

impl ValueEncoder {
    /// Begins a key with a large collection.
    ///
    /// # Errors
    /// Those of the sink, as for all methods here.
    pub fn begin<S: ByteSink>(
        &mut self,
        head: &CollectionHead,
        attributes: Attributes,
        out: &mut S,
    ) -> Result<Parts, S::Error> {
        attributes.write(out)?;
        out.put(&[value_type(&head.shape).number()])?;
        self.string(&head.key, out)?;
        let (form, parts) = match head.shape {
            CollectionShape::Set(len) | CollectionShape::SortedSet(len) => {
                (PartsForm::Members, len)
            }
            CollectionShape::List(chunks) => (PartsForm::Members, chunks),
            CollectionShape::Hash(len, earliest) => {
                if let Some(earliest) = earliest {
                    out.put(&earliest.to_le_bytes())?;
                }
                (PartsForm::Fields(earliest), len)
            }
            CollectionShape::Stream(head) => {
                let parts = StreamParts { head, chunks_left: head.chunks, group: None };
                (PartsForm::Stream(Box::new(parts)), head.chunks)
            }
        };
        length::write(out, parts as u64)?;
        match &form {
            PartsForm::Stream(stream) if parts == 0 => write_head(&stream.head, out)?,
            _ => {}
        }
        Ok(Parts(form))
    }

    /// Writes a part of the collection that was begun.
    ///
    /// # Errors
    /// See `begin`.
    pub fn part<S: ByteSink>(
        &mut self,
        parts: &mut Parts,
        part: CollectionPart<'_>,
        out: &mut S,
    ) -> Result<(), S::Error> {
        match (part, &mut parts.0) {
            (CollectionPart::Member(member), _) => self.string(member, out),
            (CollectionPart::Scored(member, score), _) => {
                self.string(member, out)?;
                out.put(&score.to_le_bytes())
            }
            (CollectionPart::Field(field, value), form) => {
                if let PartsForm::Fields(Some(earliest)) = form {
                    length::write(out, distance(*earliest, value.expires_at))?;
                }
                self.string(field, out)?;
                self.entry(value.entry, out)
            }
            (CollectionPart::Chunk(chunk), _) => self.list_node(chunk, out),
            (CollectionPart::Stream(part), PartsForm::Stream(stream)) => {
                self.stream_part(stream, part, out)
            }
            (CollectionPart::Stream(_), _) => Ok(()),
        }
    }

    fn stream_part<S: ByteSink>(
        &mut self,
        stream: &mut StreamParts,
        part: stream::StreamPart<'_>,
        out: &mut S,
    ) -> Result<(), S::Error> {
        match part {
            stream::StreamPart::Chunk(chunk) => {
                self.stream_chunk(chunk, out)?;
                stream.chunks_left = stream.chunks_left.saturating_sub(1);
                if stream.chunks_left == 0 { write_head(&stream.head, out) } else { Ok(()) }
            }
            stream::StreamPart::Group(head) => {
                self.end_group(stream, out)?;
                self.string(&head.name, out)?;
                write_group_head(head.last_id, head.entries_read, head.pending, out)?;
                stream.group = Some(OpenGroup { head: head.clone(), pending: BTreeMap::new() });
                Ok(())
            }
            stream::StreamPart::Pending(id, pending) => {
                if let Some(group) = &mut stream.group {
                    group.pending.entry(pending.consumer).or_default().push(id);
                }
                write_pending(id, pending, out)
            }
        }
    }

    fn end_group<S: ByteSink>(
        &mut self,
        stream: &mut StreamParts,
        out: &mut S,
    ) -> Result<(), S::Error> {
        let Some(OpenGroup { head, mut pending }) = stream.group.take() else { return Ok(()) };
        length::write(out, head.consumers.len() as u64)?;
        for consumer in &head.consumers {
            let ids = pending.remove(&consumer.handle).unwrap_or_default();
            self.string(&consumer.name, out)?;
            write_consumer(consumer.seen_ms, consumer.active_ms, ids.len(), out)?;
            ids.iter().try_for_each(|id| out.put(&raw_id(*id)))?;
        }
        Ok(())
    }

    /// Ends the collection that was begun.
    ///
    /// # Errors
    /// See `begin`.
    pub fn end<S: ByteSink>(&mut self, parts: Parts, out: &mut S) -> Result<(), S::Error> {
        match parts.0 {
            PartsForm::Stream(mut stream) => self.end_group(&mut stream, out),
            _ => Ok(()),
        }
    }
}
