//! XSETID: sets the metadata of a stream, for tools that rebuild one.

use ds::stream::Id;
use resp::{Args, Reply};
use store::{KeyspaceEvent, StreamValue};

use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape};

use super::id::parse;
use super::{UPDATE_KEY, spec};
use crate::error::stream::StreamError;

pub(super) const XSETID: Row<Handler> = Row::new(
    spec("xsetid", -3, "5.0.0")
        .summary(
            "Sets the last ID and the counters of a stream; an internal command for replication.",
        )
        .flags(Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST))
        .keys(UPDATE_KEY)
        .arguments(&[
            Argument::key(),
            Argument::new("last-id", Shape::String),
            Argument::new("entries-added", Shape::Integer)
                .after("ENTRIESADDED")
                .since("7.0.0")
                .optional(),
            Argument::new("max-deleted-id", Shape::String)
                .after("MAXDELETEDID")
                .since("7.0.0")
                .optional(),
        ])
        .history(&[("7.0.0", "`ENTRIESADDED` and `MAXDELETEDID` set the counters of lags.")]),
    xsetid,
);

fn xsetid(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let last_id = parse(args.text(2), 0)?;
    let (mut added, mut max_deleted_id) = (None, Id::MIN);
    args.seek(3);
    while let Some(word) = args.next() {
        let value = args.next().ok_or(Error::Syntax)?;
        if word.eq_ignore_ascii_case(b"ENTRIESADDED") {
            let value = integer(value)?;
            added = Some(u64::try_from(value).map_err(|_| StreamError::EntriesAdded)?);
        } else if word.eq_ignore_ascii_case(b"MAXDELETEDID") {
            max_deleted_id = parse(value, 0)?;
            if last_id < max_deleted_id {
                return Err(StreamError::BelowGivenDeleted.into());
            }
        } else {
            return Err(Error::Syntax);
        }
    }
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let mut edit = db.edit::<StreamValue>(turn, key)?.ok_or(Error::NoSuchKey)?;
    let log = &edit.stream().log;
    if last_id < log.max_deleted_id {
        return Err(StreamError::BelowDeleted.into());
    }
    if log.top_id().is_some_and(|top| last_id < top) {
        return Err(StreamError::BelowTop.into());
    }
    if added.is_some_and(|added| added < log.len()) {
        return Err(StreamError::FewAdded.into());
    }
    edit.set_groups_changed();
    let log = &mut edit.stream_unchanged_mut().log;
    log.last_id = last_id;
    log.entries_added = added.unwrap_or(log.entries_added);
    if max_deleted_id != Id::MIN {
        log.max_deleted_id = max_deleted_id;
    }
    drop(edit);
    // As in Redis, clients that watch or track the stream see no change.
    cx.turn.effects.note_unawaited(KeyspaceEvent::new('t', "xsetid"), key.bytes);
    reply.ok();
    Ok(())
}
