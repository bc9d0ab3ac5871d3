//! Large collections in a snapshot: their size at the cut, and the walk over their contents at the
//! cut.

use std::any::Any;

use base::hash::KeyHasher;
use ds::dict::{MemberRef, Walker};
use ds::walk::{Budget, Ticket};

use super::sink::{CollectionPart, CollectionShape, KeySink};
use crate::value::hash::value_of;
use crate::value::stored::Object;

/// A larger collection is walked in steps. A smaller one is copied before it changes, which takes
/// about 10 us.
const MEMBERS_MAX: usize = if cfg!(test) { 8 } else { 128 };
const CHUNKS_MAX: usize = if cfg!(test) { 2 } else { 16 };
const BYTES_MAX: usize = 64 * 1024;

/// The remains of a walk, which only need to be dropped.
pub(crate) type EndedWalk = Box<dyn Any + Send + Sync>;

fn boxed(ended: impl Any + Send + Sync) -> EndedWalk {
    Box::new(ended)
}

impl Object {
    /// The parts that a walk would visit, or `None` for small values and for strings, which are
    /// shared.
    pub(crate) fn shape(&self) -> Option<CollectionShape> {
        let (shape, is_large) = match self {
            Self::String(_) => return None,
            Self::Set(members) => {
                (CollectionShape::Set(members.len()), members.len() > MEMBERS_MAX)
            }
            Self::SortedSet(set) => {
                (CollectionShape::SortedSet(set.len()), set.len() > MEMBERS_MAX)
            }
            Self::Hash(fields) => {
                (CollectionShape::Hash(fields.len(), fields.earliest()), fields.len() > MEMBERS_MAX)
            }
            Self::List(list) => {
                let chunks = list.chunks().len();
                (CollectionShape::List(chunks), chunks > CHUNKS_MAX)
            }
            Self::Stream(stream) => {
                (CollectionShape::Stream(stream.head()), stream.log.chunks_len() > CHUNKS_MAX)
            }
        };
        (is_large || self.memory_bytes() > BYTES_MAX).then_some(shape)
    }

    pub(crate) fn ticket(&self) -> Option<&Ticket> {
        match self {
            Self::String(_) => None,
            Self::Set(members) => members.ticket(),
            Self::SortedSet(set) => set.dict().ticket(),
            Self::Hash(fields) => fields.dict().ticket(),
            Self::List(list) => list.ticket(),
            Self::Stream(stream) => stream.ticket(),
        }
    }

    pub(crate) fn begin_walk(&mut self, ticket: Ticket, hasher: &KeyHasher) {
        match self {
            Self::String(_) => {}
            Self::Set(members) => members.walker().begin(ticket, hasher),
            Self::SortedSet(set) => set.walker().begin(ticket, hasher),
            Self::Hash(fields) => fields.walker().begin(ticket, hasher),
            Self::List(list) => list.begin_walk(ticket),
            Self::Stream(stream) => stream.begin_walk(ticket),
        }
    }

    /// Continues the walk until the budget is spent. Returns whether it has reached its end.
    pub(crate) fn step_walk(&mut self, budget: &mut Budget, sink: &mut dyn KeySink) -> bool {
        let mut members =
            |mut walker: Walker<'_>, part: fn(MemberRef<'_>) -> CollectionPart<'_>| {
                walker.step(budget, &mut |member| sink.part(part(member)))
            };
        match self {
            Self::String(_) => true,
            Self::Set(set) => members(set.walker(), |member| CollectionPart::Member(member.key())),
            Self::SortedSet(set) => members(set.walker(), |member| {
                CollectionPart::Scored(member.key(), ds::ranked::score_of(member))
            }),
            Self::Hash(fields) => members(fields.walker(), |member| {
                CollectionPart::Field(member.key(), value_of(member))
            }),
            Self::List(list) => {
                list.step_walk(budget, &mut |chunk| sink.part(CollectionPart::Chunk(chunk)))
            }
            Self::Stream(stream) => {
                stream.step_walk(budget, &mut |part| sink.part(CollectionPart::Stream(part)))
            }
        }
    }

    pub(crate) fn end_walk(&mut self) -> Option<EndedWalk> {
        match self {
            Self::String(_) => None,
            Self::Set(members) => members.walker().end().map(boxed),
            Self::SortedSet(set) => set.walker().end().map(boxed),
            Self::Hash(fields) => fields.walker().end().map(boxed),
            Self::List(list) => list.end_walk().map(boxed),
            Self::Stream(stream) => stream.end_walk().map(boxed),
        }
    }
}
