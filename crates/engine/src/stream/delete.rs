//! XDEL, XDELEX and XACKDEL: deleting entries at any position.

use std::collections::BTreeMap;

use ds::stream::{Id, References};
use resp::{Args, Reply};
use store::{Effects, KeyspaceEvent, StreamValue};

use crate::args::count::positive;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

use super::id::{ShownId, parse};
use super::trim::{CONDITION, parse_references};
use super::{DELETE_KEY, GROUP, IDS, spec};
use crate::error::stream::StreamError;

const DELETED: KeyspaceEvent = KeyspaceEvent::new('t', "xdel");

/// The replies of XDELEX and XACKDEL for an identifier.
mod outcome {
    /// The entry does not exist.
    pub(super) const ABSENT: i64 = -1;
    /// The entry was deleted.
    pub(super) const DELETED: i64 = 1;
    /// A group still refers to it.
    pub(super) const REFERRED: i64 = 2;
}

const IDS_BLOCK: Argument =
    Argument::new("ids", Shape::Block(&[Argument::new("numids", Shape::Integer), IDS]))
        .after("IDS");

pub(super) const XDEL: Row<Handler> = Row::new(
    spec("xdel", -3, "5.0.0")
        .summary("Removes entries from a stream, and returns the number of those that existed.")
        .complexity("O(log M) for each ID in a stream of M entries.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(DELETE_KEY)
        .arguments(&[Argument::key(), IDS]),
    xdel,
);

pub(super) const XDELEX: Row<Handler> = Row::new(
    spec("xdelex", -5, "8.2.0")
        .summary("Removes entries from a stream, and as asked their references in consumer groups.")
        .complexity("O(log M) for each ID in a stream of M entries, and for each group.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(DELETE_KEY)
        .arguments(&[Argument::key(), CONDITION, IDS_BLOCK]),
    xdelex,
);

pub(super) const XACKDEL: Row<Handler> = Row::new(
    spec("xackdel", -6, "8.2.0")
        .summary("Acknowledges entries of a consumer group, and removes them from the stream.")
        .complexity("O(log M) for each ID in a stream of M entries, and for each group.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE).with(Access::DELETE))])
        .arguments(&[Argument::key(), GROUP, CONDITION, IDS_BLOCK]),
    xackdel,
);

fn xdel(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<StreamValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    // All or nothing: an invalid ID must be found before any entry is deleted.
    for at in 2..args.len() {
        parse(args.text(at), 0)?;
    }
    let mut deleted = 0;
    for at in 2..args.len() {
        deleted += u64::from(edit.stream_unchanged_mut().log.delete(parse(args.text(at), 0)?));
    }
    if deleted > 0 {
        edit.set_changed();
    }
    drop(edit);
    if deleted > 0 {
        cx.turn.counters.changes += deleted - 1;
        cx.wrote(DELETED, key.bytes);
    }
    reply.int(deleted as i64);
    Ok(())
}

/// Parses the action on references, and the positions of the identifiers.
fn parse_ids(args: &Args<'_>, from: usize) -> Result<(References, std::ops::Range<usize>), Error> {
    let (mut references, mut ids) = (None, 0..0);
    let mut at = from;
    while at < args.len() {
        let word = args.text(at);
        if let Some(found) = parse_references(word).filter(|_| references.is_none()) {
            references = Some(found);
            at += 1;
        } else if word.eq_ignore_ascii_case(b"ids") && at + 1 < args.len() {
            let count = positive(args.text(at + 1)).ok_or(StreamError::IdsCount)?;
            if count > args.len() - at - 2 {
                return Err(StreamError::IdsMismatch.into());
            }
            ids = at + 2..at + 2 + count;
            at = ids.end;
        } else {
            return Err(Error::Syntax);
        }
    }
    if ids.is_empty() {
        return Err(Error::Syntax);
    }
    for at in ids.clone() {
        parse(args.text(at), 0)?;
    }
    Ok((references.unwrap_or_default(), ids))
}

fn xdelex(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (references, ids) = parse_ids(args, 2)?;
    each(cx, args, reply, ids, |stream, id, replayed| {
        if stream.log.entry(id).is_none() {
            let dropped = references == References::Drop && forget(stream, id, replayed);
            return Deletion { outcome: outcome::ABSENT, deleted: false, changed: dropped };
        }
        delete(stream, id, references, replayed)
    })
}

fn xackdel(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (references, ids) = parse_ids(args, 3)?;
    let name = args.text(2);
    each(cx, args, reply, ids, |stream, id, replayed| {
        let was_pending = stream.groups.find_mut(name).is_some_and(|group| group.acknowledge(id));
        if !was_pending {
            return Deletion { outcome: outcome::ABSENT, deleted: false, changed: false };
        }
        replayed.acknowledge(name, id);
        Deletion { changed: true, ..delete(stream, id, references, replayed) }
    })
}

/// The result for an identifier.
struct Deletion {
    outcome: i64,
    deleted: bool,
    changed: bool,
}

/// The changes in a form that servers replay which do not know these commands: XACK and XDEL.
#[derive(Default)]
pub(super) struct ReplayedDeletions {
    /// Whether there is a replay.
    is_wanted: bool,
    /// Identifiers by group.
    acknowledged: BTreeMap<Vec<u8>, Vec<Id>>,
    deleted: Vec<Id>,
}

impl ReplayedDeletions {
    pub(super) fn new(is_wanted: bool) -> Self {
        Self { is_wanted, ..Self::default() }
    }

    /// Acknowledges an entry in all groups where it is pending.
    pub(super) fn acknowledge_all(&mut self, stream: &ds::Stream, id: Id) {
        if self.is_wanted {
            let groups = stream.groups.iter().filter(|(_, group)| group.pending(id).is_some());
            groups.for_each(|(name, _)| self.acknowledge(name, id));
        }
    }

    fn acknowledge(&mut self, group: &[u8], id: Id) {
        if self.is_wanted {
            self.acknowledged.entry(group.to_vec()).or_default().push(id);
        }
    }

    pub(super) fn delete(&mut self, id: Id) {
        if self.is_wanted {
            self.deleted.push(id);
        }
    }

    pub(super) fn replay(&self, effects: &mut Effects, key: &[u8]) {
        for (group, ids) in &self.acknowledged {
            effects.also_replay(|replay| {
                replay.args([b"XACK", key, group.as_slice()]);
                ids.iter().for_each(|id| replay.arg(ShownId::new(*id).as_bytes()));
            });
        }
        if !self.deleted.is_empty() {
            effects.also_replay(|replay| {
                replay.args([b"XDEL", key]);
                self.deleted.iter().for_each(|id| replay.arg(ShownId::new(*id).as_bytes()));
            });
        }
    }
}

/// Removes an entry from the pending entries of all groups. Returns whether any had it.
fn forget(stream: &mut ds::Stream, id: Id, replayed: &mut ReplayedDeletions) -> bool {
    replayed.acknowledge_all(stream, id);
    stream.groups.forget(id)
}

fn delete(
    stream: &mut ds::Stream,
    id: Id,
    references: References,
    replayed: &mut ReplayedDeletions,
) -> Deletion {
    if references == References::Acked && stream.groups.refer_to(id) {
        return Deletion { outcome: outcome::REFERRED, deleted: false, changed: false };
    }
    let dropped = references == References::Drop && forget(stream, id, replayed);
    let deleted = stream.log.delete(id);
    if deleted {
        replayed.delete(id);
    }
    Deletion { outcome: outcome::DELETED, deleted, changed: deleted || dropped }
}

/// Calls a function for each identifier and replies the results.
fn each(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    ids: std::ops::Range<usize>,
    mut work: impl FnMut(&mut ds::Stream, Id, &mut ReplayedDeletions) -> Deletion,
) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let is_wanted = cx.turn.effects.is_consumed();
    let mut replayed = ReplayedDeletions::new(is_wanted);
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.edit::<StreamValue>(turn, key)? else {
        reply.array(ids.len());
        ids.for_each(|_| reply.int(outcome::ABSENT));
        return Ok(());
    };
    let (mut changes, mut deleted) = (0, false);
    reply.array(ids.len());
    for at in ids {
        let done = work(edit.stream_unchanged_mut(), parse(args.text(at), 0)?, &mut replayed);
        reply.int(done.outcome);
        changes += u64::from(done.changed);
        deleted |= done.deleted;
    }
    if changes > 0 {
        edit.set_changed();
    }
    drop(edit);
    if changes > 0 {
        cx.turn.counters.changes += changes - 1;
        replayed.replay(&mut cx.turn.effects, key.bytes);
        if deleted {
            cx.wrote(DELETED, key.bytes);
        } else {
            cx.turn.effects.note_eventless();
        }
    }
    Ok(())
}
