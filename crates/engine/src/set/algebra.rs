//! The common parts of commands that combine sets: reading all sets, and storing a result.
//!
//! First each key is looked up in order, which removes expired keys, counts hits and fails on a
//! value of another type. Then the sets are borrowed together, so that a result is replied without
//! a copy of any set.

use std::ops::Range;

use resp::{Args, Reply};
use store::{Key, KeyspaceEvent, NewSet, SetRef, SetValue};

use super::READS;
use crate::cx::Cx;
use crate::error::Error;
use crate::event::DEL;
use command::{Access, Argument, KeySpec, Shape};

/// The keys of a command that replies its result.
pub(super) const SOURCES: &[KeySpec] = &[KeySpec::to_end(1, 1, READS)];
/// The keys of a command that stores its result.
pub(super) const TARGET_AND_SOURCES: &[KeySpec] =
    &[KeySpec::one(1, Access::OW.with(Access::UPDATE)), KeySpec::to_end(2, 1, READS)];

pub(super) const KEYS: &[Argument] = &[Argument::key().multiple()];
pub(super) const TARGET_AND_KEYS: &[Argument] =
    &[Argument::new("destination", Shape::Key), Argument::key().multiple()];

/// Sets given by their keys, which were all read and are sets or absent.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    args: Args<'a>,
    /// Indexes of the keys among the arguments.
    keys: (usize, usize),
    /// The number of the request's keys before them.
    before: usize,
}

impl<'a> Sources<'a> {
    /// Reads the sets under `keys`, which follow `before` other keys of the request.
    pub(super) fn read(
        cx: &mut Cx<'_>,
        args: &Args<'a>,
        keys: Range<usize>,
        before: usize,
    ) -> Result<Self, Error> {
        let sources = Self { args: *args, keys: (keys.start, keys.end), before };
        for nth in 0..keys.len() {
            let key = sources.key(cx, nth);
            let (db, turn) = cx.db(key);
            db.read::<SetValue>(turn, key)?;
        }
        Ok(sources)
    }

    fn key(&self, cx: &Cx<'_>, nth: usize) -> Key<'a> {
        cx.nth_key(&self.args, self.before + nth, self.keys.0 + nth)
    }

    /// The sets, with `None` for an absent key.
    pub(super) fn sets<'c>(&self, cx: &'c Cx<'_>) -> Vec<Option<SetRef<'c>>> {
        let keys = 0..self.keys.1 - self.keys.0;
        keys.map(|nth| cx.lookup_shared(self.key(cx, nth))?.view::<SetValue>()).collect()
    }

    /// Whether the first key occurs again.
    pub(super) fn repeat_first(&self) -> bool {
        let first = self.args.text(self.keys.0);
        (self.keys.0 + 1..self.keys.1).any(|at| self.args.text(at) == first)
    }
}

/// An empty buffer to build a result in.
pub(super) fn take_room(cx: &mut Cx<'_>) -> Vec<u8> {
    let mut room = std::mem::take(&mut cx.turn.scratch);
    room.clear();
    room
}

/// Stores a result under the first key and replies its number of members. An empty result removes
/// the key.
pub(super) fn store(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    result: NewSet,
    name: &'static str,
    reply: &mut Reply<'_>,
) {
    let key = cx.first_key(args, 1);
    let len = result.view().len();
    let (db, turn) = cx.db(key);
    if len > 0 {
        db.put_set(turn, key, result);
        cx.wrote(KeyspaceEvent::new('s', name), key.bytes);
    } else if db.remove(turn, key) {
        cx.wrote(DEL, key.bytes);
    }
    reply.len(len);
}
