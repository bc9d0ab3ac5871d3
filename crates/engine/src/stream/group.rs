//! XGROUP: creating and removing groups and their consumers.

use ds::stream::{ConsumerGroup, UNKNOWN};
use resp::{Args, Reply};
use store::{Edit, KeyspaceEvent, Lookup, StreamValue};

use crate::args::number::integer;
use crate::cx::Cx;
use crate::error::Error;
use crate::error::echo::echo;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Shape, Spec};

use super::id::{parse, parse_end};
use super::{CONSUMER, CONSUMER_MADE, GROUP, spec};
use crate::error::stream::StreamError;

const HELP: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <group> (<id>|$) [MKSTREAM] [ENTRIESREAD <entries-read>]",
    "    Make a group that reads the stream from behind <id>, or from now on with $.",
    "    * MKSTREAM",
    "      Make the stream when it is not there.",
    "    * ENTRIESREAD",
    "      Say how many entries had been added up to <id>, for replicas.",
    "CREATECONSUMER <key> <group> <consumer>",
    "    Make a consumer of a group.",
    "DELCONSUMER <key> <group> <consumer>",
    "    Remove a consumer and what it has pending.",
    "DESTROY <key> <group>",
    "    Remove a group.",
    "SETID <key> <group> (<id>|$) [ENTRIESREAD <entries-read>]",
    "    Set behind which entry a group goes on to read.",
    "HELP",
    "    Print these lines.",
];

const ID: Argument = Argument::new(
    "id-selector",
    Shape::OneOf(&[Argument::new("id", Shape::String), Argument::word("new-id", "$")]),
);
const ENTRIES_READ: Argument = Argument::new("entriesread", Shape::Integer)
    .after("ENTRIESREAD")
    .display("entries-read")
    .optional();
const OF_CONSUMER: &[Argument] = &[Argument::key(), GROUP, CONSUMER];
const ENTRIES_READ_HISTORY: &[(&str, &str)] =
    &[("7.0.0", "`ENTRIESREAD` says how many entries have been read.")];

const WRITE: Flags = Flags::WRITE;
const INSERT: &[KeySpec] = &[KeySpec::one(2, Access::RW.with(Access::INSERT))];
const UPDATE: &[KeySpec] = &[KeySpec::one(2, Access::RW.with(Access::UPDATE))];
const DELETE: &[KeySpec] = &[KeySpec::one(2, Access::RW.with(Access::DELETE))];

pub(super) const XGROUP: Row<Handler> = Row::container(
    Spec::new("xgroup", -2, Group::Stream, "5.0.0")
        .summary("A container for commands on consumer groups.")
        .complexity("Depends on the subcommand."),
    &[
        Row::new(
            spec("create", -5, "5.0.0")
                .summary("Creates a consumer group.")
                .flags(WRITE.with(Flags::DENYOOM))
                .keys(INSERT)
                .arguments(&[
                    Argument::key(),
                    GROUP,
                    ID,
                    Argument::word("mkstream", "MKSTREAM").optional(),
                    ENTRIES_READ,
                ])
                .history(ENTRIES_READ_HISTORY),
            create,
        ),
        Row::new(
            spec("createconsumer", 5, "6.2.0")
                .summary("Creates a consumer in a consumer group.")
                .flags(WRITE.with(Flags::DENYOOM))
                .keys(INSERT)
                .arguments(OF_CONSUMER),
            create_consumer,
        ),
        Row::new(
            spec("delconsumer", 5, "5.0.0")
                .summary("Removes a consumer and its pending entries from a consumer group.")
                .flags(WRITE)
                .keys(DELETE)
                .arguments(OF_CONSUMER),
            delete_consumer,
        ),
        Row::new(
            spec("destroy", 4, "5.0.0")
                .summary("Removes a consumer group.")
                .complexity("O(1); the memory of the pending entries is freed in the background.")
                .flags(WRITE)
                .keys(DELETE)
                .arguments(&[Argument::key(), GROUP]),
            destroy,
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
            spec("setid", -5, "5.0.0")
                .summary("Sets the last delivered ID of a consumer group.")
                .flags(WRITE)
                .keys(UPDATE)
                .arguments(&[Argument::key(), GROUP, ID, ENTRIES_READ])
                .history(ENTRIES_READ_HISTORY),
            set_id,
        ),
    ],
);

pub(super) fn reply_help(reply: &mut Reply<'_>, lines: &[&str]) {
    reply.array(lines.len());
    for line in lines {
        reply.simple(line);
    }
}

/// The options after the ID.
struct Options {
    make_stream: bool,
    entries_read: i64,
}

impl Options {
    fn parse(args: &Args<'_>, create: bool) -> Result<Self, Error> {
        let mut options = Self { make_stream: false, entries_read: UNKNOWN };
        let mut at = 5;
        while at < args.len() {
            let word = args.text(at);
            if create && word.eq_ignore_ascii_case(b"mkstream") {
                options.make_stream = true;
                at += 1;
            } else if word.eq_ignore_ascii_case(b"entriesread") && at + 1 < args.len() {
                let read = integer(args.text(at + 1))?;
                if read < UNKNOWN {
                    return Err(StreamError::EntriesRead.into());
                }
                options.entries_read = read;
                at += 2;
            } else {
                return Err(wrong_form(args));
            }
        }
        Ok(options)
    }
}

fn wrong_form(args: &Args<'_>) -> Error {
    Error::SubcommandForm(echo(args.text(1)), "XGROUP")
}

/// The existing stream under the key, with the group unless `any_group`.
fn open<'c>(
    cx: &'c mut Cx<'_>,
    args: &Args<'_>,
    any_group: bool,
) -> Result<Edit<'c, StreamValue>, Error> {
    let key = cx.first_key(args, 2);
    let (db, turn) = cx.db(key);
    let edit = db.edit::<StreamValue>(turn, key)?.ok_or(StreamError::NoKey)?;
    if !any_group && edit.stream().groups.find(args.text(3)).is_none() {
        return Err(StreamError::NoGroup(echo(args.text(3)), echo(key.bytes)).into());
    }
    Ok(edit)
}

fn create(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args, true)?;
    let key = cx.first_key(args, 2);
    let (db, turn) = cx.db(key);
    match db.lookup(turn, key, Lookup::Quiet) {
        Some(stored) if stored.view::<StreamValue>().is_none() => return Err(Error::WrongType),
        None if !options.make_stream => return Err(StreamError::NoKey.into()),
        _ => {}
    }
    // A repeated option exceeds the number of arguments.
    if args.len() > 8 {
        return Err(wrong_form(args));
    }
    let mut edit = if options.make_stream {
        db.edit_or_create::<StreamValue>(turn, key)?
    } else {
        db.edit::<StreamValue>(turn, key)?.ok_or(StreamError::NoKey)?
    };
    let last_id = match args.text(4) {
        b"$" => edit.stream().log.last_id,
        id => parse(id, 0)?,
    };
    let group = ConsumerGroup::new(last_id, options.entries_read);
    if !edit.stream_unchanged_mut().groups.add(args.text(3), group) {
        return Err(StreamError::Busy.into());
    }
    match edit.is_new() {
        true => edit.set_changed(),
        false => edit.set_groups_changed(),
    }
    drop(edit);
    cx.wrote(KeyspaceEvent::new('t', "xgroup-create"), key.bytes);
    reply.ok();
    Ok(())
}

fn set_id(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let options = Options::parse(args, false)?;
    let mut edit = open(cx, args, false)?;
    // A repeated `ENTRIESREAD` exceeds the number of arguments.
    if args.len() > 7 {
        return Err(wrong_form(args));
    }
    let last_id = match args.text(4) {
        b"$" => edit.stream().log.last_id,
        id => parse_end(id, 0)?,
    };
    edit.set_groups_changed();
    if let Some(group) = edit.stream_unchanged_mut().groups.find_mut(args.text(3)) {
        group.last_id = last_id;
        group.entries_read = options.entries_read;
    }
    drop(edit);
    // As in Redis, waiting readers do not receive entries that are new for the group.
    cx.turn.effects.note_unawaited(KeyspaceEvent::new('t', "xgroup-setid"), args.text(2));
    reply.ok();
    Ok(())
}

fn destroy(cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut edit = open(cx, args, true)?;
    let destroyed = edit.remove_group(args.text(3));
    drop(edit);
    if destroyed {
        cx.wrote(KeyspaceEvent::new('t', "xgroup-destroy"), args.text(2));
    }
    reply.int(i64::from(destroyed));
    Ok(())
}

fn create_consumer(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let now_ms = cx.turn.unix_ms;
    let mut edit = open(cx, args, false)?;
    let group = edit.stream_unchanged_mut().groups.find_mut(args.text(3));
    let made = group.is_some_and(|group| group.find_or_add(args.text(4), now_ms).1);
    if made {
        edit.set_groups_changed();
    }
    drop(edit);
    if made {
        cx.turn.effects.note_unawaited(CONSUMER_MADE, args.text(2));
    }
    reply.int(i64::from(made));
    Ok(())
}

fn delete_consumer(
    cx: &mut Cx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let mut edit = open(cx, args, false)?;
    let group = edit.stream_unchanged_mut().groups.find_mut(args.text(3));
    let pending = group.and_then(|group| group.remove(args.text(4)));
    if pending.is_some() {
        edit.set_groups_changed();
    }
    drop(edit);
    if pending.is_some() {
        cx.wrote(KeyspaceEvent::new('t', "xgroup-delconsumer"), args.text(2));
    }
    reply.len(pending.unwrap_or(0));
    Ok(())
}
