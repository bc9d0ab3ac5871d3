//! XACK and XPENDING: entries that a group has delivered and that are not acknowledged.

use ds::stream::{ConsumerGroup, Id};
use resp::{Args, Reply};
use store::StreamValue;

use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Argument, Flags, Row, Shape};

use super::id::{parse, parse_from, parse_to, reply_id};
use super::{CONSUMER, GROUP, IDS, READ_KEY, UPDATE_KEY, idle_ms, needed, spec};

pub(super) const XACK: Row<Handler> = Row::new(
    spec("xack", -4, "5.0.0")
        .summary("Acknowledges entries of a consumer group, and counts those that were pending.")
        .complexity("O(log M) for each ID with M entries pending.")
        .flags(Flags::WRITE.with(Flags::FAST))
        .keys(UPDATE_KEY)
        .arguments(&[Argument::key(), GROUP, IDS]),
    xack,
);

const FILTERS: &[Argument] = &[
    Argument::new("min-idle-time", Shape::Integer).after("IDLE").since("6.2.0").optional(),
    Argument::new("start", Shape::String),
    Argument::new("end", Shape::String),
    Argument::new("count", Shape::Integer),
    CONSUMER.optional(),
];

pub(super) const XPENDING: Row<Handler> = Row::new(
    spec("xpending", -3, "5.0.0")
        .summary("Returns the pending entries of a consumer group, in summary or one by one.")
        .complexity("O(C) for a summary of C consumers; O(N) for N entries examined one by one.")
        .flags(Flags::READONLY)
        .keys(READ_KEY)
        .arguments(&[
            Argument::key(),
            GROUP,
            Argument::new("filters", Shape::Block(FILTERS)).optional(),
        ])
        .history(&[("6.2.0", "`IDLE` selects entries by age; an end after a bracket is excluded.")])
        .tips(&["nondeterministic_output"]),
    xpending,
);

fn xack(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let key = cx.first_key(args, 1);
    let (db, turn) = cx.db(key);
    let Some(mut edit) = db.read_and_edit::<StreamValue>(turn, key)? else {
        reply.int(0);
        return Ok(());
    };
    let Some(group) = edit.stream_unchanged_mut().groups.find_mut(args.text(2)) else {
        reply.int(0);
        return Ok(());
    };
    // All or nothing: an invalid ID must be found before any entry is acknowledged.
    for at in 3..args.len() {
        parse(args.text(at), 0)?;
    }
    let mut acknowledged = 0;
    for at in 3..args.len() {
        acknowledged += u64::from(group.acknowledge(parse(args.text(at), 0)?));
    }
    if acknowledged > 0 {
        edit.set_groups_changed();
    }
    drop(edit);
    if acknowledged > 0 {
        cx.turn.counters.changes += acknowledged - 1;
        cx.turn.effects.note_eventless();
    }
    reply.int(acknowledged as i64);
    Ok(())
}

/// The entries that XPENDING shows.
struct PendingFilter<'a> {
    idle_ms: i64,
    from: Id,
    to: Id,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> PendingFilter<'a> {
    fn parse(args: &Args<'a>) -> Result<Self, Error> {
        let (mut idle_ms, mut at) = (0, 3);
        if args.text(3).eq_ignore_ascii_case(b"IDLE") {
            idle_ms = integer(args.text(4))?;
            if args.len() < 8 {
                return Err(Error::Syntax);
            }
            at = 5;
        }
        let count = integer(args.text(at + 2))?;
        Ok(Self {
            idle_ms,
            from: parse_from(args.text(at))?,
            to: parse_to(args.text(at + 1))?,
            count: usize::try_from(count).unwrap_or(0),
            consumer: args.at(at + 3),
        })
    }
}

fn xpending(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let filter = match args.len() {
        3 => None,
        6..=9 => Some(PendingFilter::parse(args)?),
        _ => return Err(Error::Syntax),
    };
    let key = cx.first_key(args, 1);
    let now_ms = cx.turn.unix_ms;
    let (db, turn) = cx.db(key);
    let stream = db.read::<StreamValue>(turn, key)?;
    let group = stream.and_then(|stream| stream.groups.find(args.text(2)));
    let group = needed(group, key.bytes, args.text(2))?;
    match filter {
        None => reply_summary(reply, group),
        Some(filter) => reply_pending(reply, group, &filter, now_ms),
    }
    Ok(())
}

fn reply_summary(reply: &mut Reply<'_>, group: &ConsumerGroup) {
    reply.array(4);
    reply.len(group.pending_len());
    let mut all = group.pending_range(Id::MIN..=Id::MAX);
    let Some((first, _)) = all.next() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(reply, first);
    reply_id(reply, all.next_back().map_or(first, |(last, _)| last));
    let having = || group.consumers().filter(|consumer| consumer.pending_len() > 0);
    reply.array(having().count());
    for consumer in having() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_int(consumer.pending_len() as i64);
    }
}

fn reply_pending(
    reply: &mut Reply<'_>,
    group: &ConsumerGroup,
    filter: &PendingFilter<'_>,
    now_ms: i64,
) {
    let range = filter.from..=filter.to;
    let deferred = reply.array_deferred();
    let mut left = filter.count;
    // Returns whether to continue.
    let mut show = |id: Id| {
        let Some(pending) = group.pending(id).filter(|_| left > 0) else { return false };
        let is_young = now_ms.saturating_sub(pending.delivered_ms) < filter.idle_ms;
        if filter.idle_ms == 0 || !is_young {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.consumer(pending.consumer).name());
            reply.int(idle_ms(now_ms, pending.delivered_ms));
            reply.int(pending.deliveries);
            left -= 1;
        }
        left > 0
    };
    match filter.consumer {
        None => {
            group.pending_range(range).all(|(id, _)| show(id));
        }
        Some(name) => {
            if let Some(handle) = group.find(name) {
                group.consumer(handle).pending_ids(range).all(show);
            }
        }
    }
    reply.finish(deferred, filter.count - left);
}
