//! XADD: a new entry at the end of a stream.

use ds::stream::{ChunkLimits, ENTRY_BYTES_MAX, Id, StreamLog};
use resp::{Args, Reply};
use store::{EncodingLimits, KeyspaceEvent, StreamValue};

use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, KeySpec, Row, Shape};

use super::id::{NewId, ShownId};
use super::spec;
use super::trim::{CONDITION, REFERENCES_HISTORY, STRATEGY, TRIMMED, TrimOptions};
use crate::error::stream::StreamError;

const ADDED: KeyspaceEvent = KeyspaceEvent::new('t', "xadd");

pub(super) const XADD: Row<Handler> = Row::new(
    spec("xadd", -5, "5.0.0")
        .summary("Appends an entry to a stream, and creates it when missing.")
        .complexity("O(1), and O(N) for N entries removed by trimming.")
        .flags(Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST))
        .keys(&[KeySpec::one(1, Access::RW.with(Access::UPDATE))
            .notes("It counts as a change and not as an insertion because it may also trim.")])
        .arguments(&[
            Argument::key(),
            Argument::word("nomkstream", "NOMKSTREAM").since("6.2.0").optional(),
            CONDITION.since("8.2.0"),
            Argument::new("trim", Shape::Block(STRATEGY)).optional(),
            Argument::new(
                "id-selector",
                Shape::OneOf(&[Argument::word("auto-id", "*"), Argument::new("id", Shape::String)]),
            ),
            Argument::new(
                "data",
                Shape::Block(&[
                    Argument::new("field", Shape::String),
                    Argument::new("value", Shape::String),
                ]),
            )
            .multiple(),
        ])
        .history(&[
            ("6.2.0", "`NOMKSTREAM` makes no stream, `MINID` trims, `LIMIT` bounds trimming."),
            ("7.0.0", "An identifier may leave its sequence open: `<ms>-*`."),
            REFERENCES_HISTORY,
        ])
        .tips(&["nondeterministic_output"]),
    xadd,
);

pub(super) fn chunk_limits(limits: &EncodingLimits) -> ChunkLimits {
    ChunkLimits {
        bytes_max: limits.stream_node_max_bytes,
        entries_max: limits.stream_node_max_entries,
    }
}

fn xadd(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = TrimOptions::parse(args, true, cx.limits)?;
    let first_at = options.id_at + 1;
    let texts = args.len().saturating_sub(first_at);
    if texts < 2 || !texts.is_multiple_of(2) {
        return Err(Error::Arity("xadd".to_owned()));
    }
    if options.id == NewId::At(Id::MIN) {
        return Err(StreamError::IdZero.into());
    }
    let (key, limits) = (cx.first_key(args, 1), chunk_limits(cx.limits));
    let now_ms = u64::try_from(cx.turn.unix_ms).unwrap_or(0);
    let (db, turn) = cx.db(key);
    let is_replayed = turn.effects.is_consumed();
    let mut edit = if options.no_stream {
        let Some(edit) = db.edit::<StreamValue>(turn, key)? else {
            reply.null();
            return Ok(());
        };
        edit
    } else {
        db.edit_or_create::<StreamValue>(turn, key)?
    };
    let id = next_id(&edit.stream().log, options.id, now_ms)?;
    let bytes: usize = (first_at..args.len()).map(|at| args.text(at).len()).sum();
    if bytes > ENTRY_BYTES_MAX {
        return Err(StreamError::TooLarge.into());
    }
    edit.stream_mut().log.append(id, texts / 2, |index| args.text(first_at + index), limits);
    let done = options.apply(&mut edit, is_replayed);
    drop(edit);
    let shown = ShownId::new(id);
    cx.turn.effects.replay_as(|replay| {
        let id = Some(shown.as_bytes()).filter(|_| !matches!(options.id, NewId::At(_)));
        options.replay(replay, args, &done, id);
    });
    done.removals.replay(&mut cx.turn.effects, key.bytes);
    cx.wrote(ADDED, key.bytes);
    if done.removed > 0 {
        cx.wrote(TRIMMED, key.bytes);
    }
    reply.bulk(shown.as_bytes());
    Ok(())
}

/// The identifier of the next entry.
fn next_id(log: &StreamLog, wanted: NewId, now_ms: u64) -> Result<Id, Error> {
    let last = log.last_id;
    let after_last = last.next().ok_or(StreamError::Exhausted)?;
    let id = match wanted {
        NewId::Now if now_ms > last.ms => Id::new(now_ms, 0),
        NewId::Now => after_last,
        NewId::In(ms) if ms == last.ms => {
            // The next millisecond was not requested.
            Some(after_last).filter(|id| id.ms == ms).ok_or(StreamError::IdSmall)?
        }
        NewId::In(ms) => Id::new(ms, 0),
        NewId::At(id) => id,
    };
    if id > last { Ok(id) } else { Err(StreamError::IdSmall.into()) }
}
