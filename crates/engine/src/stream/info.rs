//! XINFO: details of a stream, its groups and their consumers.

use ds::stream::{Consumer, ConsumerGroup, Id, StreamLog, UNKNOWN};
use resp::{Args, Reply};
use store::StreamValue;

use crate::args::count;
use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

use super::entry::{reply_entries, reply_entry};
use super::group::reply_help;
use super::id::reply_id;
use super::{GROUP, idle_ms, spec};
use crate::error::stream::StreamError;

/// Entries and pending entries that FULL shows without COUNT.
const COUNT: u64 = 10;

const HELP: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <group>",
    "    Tell about the consumers of a group.",
    "GROUPS <key>",
    "    Tell about the groups of a stream.",
    "STREAM <key> [FULL [COUNT <count>]]",
    "    Tell about a stream.",
    "HELP",
    "    Print these lines.",
];

const KEY: &[KeySpec] = &[KeySpec::one(2, Access::RO.with(Access::ACCESS))];
const FULL: Argument =
    Argument::new("full-block", Shape::Block(&[Argument::word("full", "FULL"), count::COUNT]))
        .optional();

pub(super) const XINFO: Row<Handler> = Row::container(
    Spec::new("xinfo", -2, Group::Stream, "5.0.0")
        .summary("A container for commands that inspect streams.")
        .complexity("Depends on the subcommand."),
    &[
        Row::new(
            spec("consumers", 4, "5.0.0")
                .summary("Returns information about the consumers of a consumer group.")
                .complexity("O(N) for N consumers.")
                .flags(Flags::READONLY)
                .keys(KEY)
                .arguments(&[Argument::key(), GROUP])
                .history(&[(
                    "7.2.0",
                    "`inactive` is the time since an entry was had, `idle` since any request.",
                )])
                .tips(&["nondeterministic_output"]),
            consumers,
        ),
        Row::new(
            spec("groups", 3, "5.0.0")
                .summary("Returns information about the consumer groups of a stream.")
                .complexity("O(N) for N groups.")
                .flags(Flags::READONLY)
                .keys(KEY)
                .arguments(&[Argument::key()])
                .history(&[("7.0.0", "`entries-read` and `lag` show how far a group has read.")]),
            groups,
        ),
        Row::new(
            spec("help", 2, "5.0.0")
                .summary("Returns the syntax and a summary of each subcommand.")
                .flags(Flags::LOADING.with(Flags::STALE)),
            |_, _, reply| {
                reply_help(reply, HELP);
                Ok(())
            },
        ),
        Row::new(
            spec("stream", -3, "5.0.0")
                .summary("Returns information about a stream.")
                .complexity("O(1); with FULL O(N) for the N entries and consumers shown.")
                .flags(Flags::READONLY)
                .keys(KEY)
                .arguments(&[Argument::key(), FULL])
                .history(&[
                    ("6.0.0", "`FULL` shows entries, groups and what they have pending."),
                    ("7.0.0", "Lags are shown, and the counters that they derive from."),
                    ("7.2.0", "`active-time` is the last delivery, `seen-time` the last request."),
                ]),
            stream,
        ),
    ],
);

/// The stream under the key, which must exist.
fn open<'c>(cx: &'c mut Cx<'_>, args: &Args<'_>) -> Result<&'c ds::Stream, Error> {
    let key = cx.first_key(args, 2);
    let (db, turn) = cx.db(key);
    db.read::<StreamValue>(turn, key)?.ok_or(Error::NoSuchKey)
}

fn name(reply: &mut Reply<'_>, name: &str) {
    reply.bulk(name.as_bytes());
}

fn number(reply: &mut Reply<'_>, label: &str, value: i64) {
    name(reply, label);
    reply.int(value);
}

fn identifier(reply: &mut Reply<'_>, label: &str, id: Id) {
    name(reply, label);
    reply_id(reply, id);
}

fn text(reply: &mut Reply<'_>, label: &str, text: &[u8]) {
    name(reply, label);
    reply.bulk(text);
}

/// How far a group has read: three fields of GROUPS and FULL.
fn progress(reply: &mut Reply<'_>, log: &StreamLog, group: &ConsumerGroup) {
    identifier(reply, "last-delivered-id", group.last_id);
    let read = Some(group.entries_read).filter(|read| *read != UNKNOWN);
    for (label, value) in [("entries-read", read), ("lag", group.lag(log))] {
        name(reply, label);
        match value {
            Some(value) => reply.int(value),
            None => reply.null(),
        }
    }
}

fn groups(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let stream = open(cx, args)?;
    reply.array(stream.groups.len());
    for (group_name, group) in stream.groups.iter() {
        reply.map(6);
        text(reply, "name", group_name);
        number(reply, "consumers", group.consumers().len() as i64);
        number(reply, "pending", group.pending_len() as i64);
        progress(reply, &stream.log, group);
    }
    Ok(())
}

fn consumers(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let now_ms = cx.turn.unix_ms;
    let group = open(cx, args)?.groups.find(args.text(3));
    let no_group = || StreamError::NoGroup(echo(args.text(3)), echo(args.text(2)));
    let group = group.ok_or_else(no_group)?;
    reply.array(group.consumers().len());
    for consumer in group.consumers() {
        reply.map(4);
        text(reply, "name", consumer.name());
        number(reply, "pending", consumer.pending_len() as i64);
        number(reply, "idle", idle_ms(now_ms, consumer.seen_ms));
        let inactive = match consumer.active_ms {
            -1 => -1,
            active_ms => now_ms.saturating_sub(active_ms),
        };
        number(reply, "inactive", inactive);
    }
    Ok(())
}

fn stream(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let stream = open(cx, args)?;
    let wrong_form = || Error::SubcommandForm(echo(args.text(1)), "XINFO");
    let count = match args.len() {
        3 => None,
        4 | 6 if !args.text(3).eq_ignore_ascii_case(b"FULL") => return Err(wrong_form()),
        4 => Some(COUNT),
        6 if !args.text(4).eq_ignore_ascii_case(b"COUNT") => return Err(wrong_form()),
        6 => {
            let count = integer(args.text(5))?;
            Some(u64::try_from(count).unwrap_or(COUNT))
        }
        _ => return Err(wrong_form()),
    };
    let log = &stream.log;
    reply.map(if count.is_some() { 9 } else { 10 });
    number(reply, "length", log.len() as i64);
    number(reply, "radix-tree-keys", log.chunks_len() as i64);
    // The least number of nodes in Redis's tree with as many chunks.
    number(reply, "radix-tree-nodes", log.chunks_len() as i64 + 1);
    identifier(reply, "last-generated-id", log.last_id);
    identifier(reply, "max-deleted-entry-id", log.max_deleted_id);
    number(reply, "entries-added", log.entries_added as i64);
    identifier(reply, "recorded-first-entry-id", log.first_id().unwrap_or(Id::MIN));
    match count {
        Some(count) => full(reply, stream, count),
        None => {
            number(reply, "groups", stream.groups.len() as i64);
            let ends = [
                ("first-entry", log.range(Id::MIN, Id::MAX).next()),
                ("last-entry", log.range_back(Id::MIN, Id::MAX).next()),
            ];
            for (label, entry) in ends {
                name(reply, label);
                match entry {
                    Some(entry) => reply_entry(reply, &entry),
                    None => reply.null(),
                }
            }
        }
    }
    Ok(())
}

/// Entries, and groups with all their details; at most `count` entries and pending entries each, or
/// all if it is 0.
fn full(reply: &mut Reply<'_>, stream: &ds::Stream, count: u64) {
    name(reply, "entries");
    reply_entries(reply, stream.log.range(Id::MIN, Id::MAX), count);
    name(reply, "groups");
    reply.array(stream.groups.len());
    let shown_max = if count == 0 { usize::MAX } else { count as usize };
    for (group_name, group) in stream.groups.iter() {
        reply.map(7);
        text(reply, "name", group_name);
        progress(reply, &stream.log, group);
        number(reply, "pel-count", group.pending_len() as i64);
        name(reply, "pending");
        reply.array(group.pending_len().min(shown_max));
        for (id, pending) in group.pending_range(Id::MIN..=Id::MAX).take(shown_max) {
            reply.array(4);
            reply_id(reply, id);
            reply.bulk(group.consumer(pending.consumer).name());
            reply.int(pending.delivered_ms);
            reply.int(pending.deliveries);
        }
        name(reply, "consumers");
        reply.array(group.consumers().len());
        for consumer in group.consumers() {
            full_consumer(reply, group, consumer, shown_max);
        }
    }
}

fn full_consumer(
    reply: &mut Reply<'_>,
    group: &ConsumerGroup,
    consumer: &Consumer,
    shown_max: usize,
) {
    reply.map(5);
    text(reply, "name", consumer.name());
    number(reply, "seen-time", consumer.seen_ms);
    number(reply, "active-time", consumer.active_ms);
    number(reply, "pel-count", consumer.pending_len() as i64);
    name(reply, "pending");
    reply.array(consumer.pending_len().min(shown_max));
    for id in consumer.pending_ids(Id::MIN..=Id::MAX).take(shown_max) {
        let Some(pending) = group.pending(id) else { continue };
        reply.array(3);
        reply_id(reply, id);
        reply.int(pending.delivered_ms);
        reply.int(pending.deliveries);
    }
}
