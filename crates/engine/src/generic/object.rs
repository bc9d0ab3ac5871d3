//! The internals of a value (<https://redis.io/docs/latest/commands/object/>).

use resp::{Args, Reply};
use store::{Lookup, Stored, StringRef, StringValue, Turn};

use crate::cx::Cx;
use crate::error::Error;
use crate::exec::Handler;
use command::{Access, Argument, Flags, Group, KeySpec, Row, Spec};

use super::spec;

/// Redis keeps one shared object for each integer from 0 up to here, and replies
/// `SHARED_REFERENCES` for it. Here each lies in its record, but clients see the same.
const SHARED_INTEGERS_END: i64 = 10_000;
const SHARED_REFERENCES: i64 = i32::MAX as i64;

const HELP: &[&str] = &[
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Name the form in which the value of <key> is kept in memory.",
    "FREQ <key>",
    "    Tell how often <key> was used lately, on a logarithmic scale. Needs a",
    "    maxmemory-policy that counts uses (LFU).",
    "IDLETIME <key>",
    "    Tell how many seconds ago <key> was last used.",
    "REFCOUNT <key>",
    "    Tell how many references the value of <key> has.",
    "HELP",
    "    Print these lines.",
];

const KEY_ARGUMENT: &[Argument] = &[Argument::key()];
const KEY: &[KeySpec] = &[KeySpec::one(2, Access::RO)];

const fn of_key(name: &'static str, since: &'static str, summary: &'static str) -> Spec {
    spec(name, 3, since)
        .summary(summary)
        .flags(Flags::READONLY)
        .keys(KEY)
        .arguments(KEY_ARGUMENT)
        .tips(&["nondeterministic_output"])
}

/// OBJECT and its subcommands.
pub const ROWS: &[Row<Handler>] = &[Row::container(
    Spec::new("object", -2, Group::Generic, "2.2.3")
        .summary("A container for commands that inspect the values of keys.")
        .complexity("Depends on the subcommand."),
    &[
        Row::new(
            of_key("encoding", "2.2.3", "Returns the internal encoding of the value of a key."),
            |cx, args, reply| {
                of_stored(cx, args, reply, |stored, _, reply| {
                    reply.bulk(stored.encoding().as_bytes());
                    Ok(())
                })
            },
        ),
        Row::new(
            of_key("freq", "4.0.0", "Returns the logarithmic access frequency of a key."),
            |cx, args, reply| {
                of_stored(cx, args, reply, |stored, turn, reply| {
                    let frequency = stored.frequency(turn).ok_or(Error::NoLfuPolicy)?;
                    reply.int(i64::from(frequency));
                    Ok(())
                })
            },
        ),
        Row::new(
            of_key("idletime", "2.2.3", "Returns the seconds since the last access to a key."),
            |cx, args, reply| {
                of_stored(cx, args, reply, |stored, turn, reply| {
                    let seconds = stored.idle_seconds(turn).ok_or(Error::LfuPolicy)?;
                    reply.int(i64::from(seconds));
                    Ok(())
                })
            },
        ),
        Row::new(
            of_key("refcount", "2.2.3", "Returns the number of references to the value of a key."),
            |cx, args, reply| {
                of_stored(cx, args, reply, |stored, turn, reply| {
                    reply.int(references(stored, turn));
                    Ok(())
                })
            },
        ),
        Row::new(
            spec("help", 2, "6.2.0")
                .summary("Returns the syntax and a summary of each subcommand.")
                .flags(Flags::LOADING.with(Flags::STALE)),
            help,
        ),
    ],
)];

/// Calls `show` with the value under the key, or replies null.
fn of_stored(
    cx: &mut Cx<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
    show: fn(Stored<'_>, &Turn, &mut Reply<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let key = cx.first_key(args, 2);
    let (db, turn) = cx.db(key);
    match db.lookup(turn, key, Lookup::Inspect) {
        Some(stored) => show(stored, turn, reply),
        None => {
            reply.null();
            Ok(())
        }
    }
}

/// The number of references to a value that Redis would have.
pub fn references(stored: Stored<'_>, turn: &Turn) -> i64 {
    match stored.view::<StringValue>() {
        Some(StringRef::Integer(0..SHARED_INTEGERS_END)) if turn.access.shares_values => {
            SHARED_REFERENCES
        }
        _ => 1,
    }
}

fn help(_: &mut Cx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(HELP.len());
    for line in HELP {
        reply.simple(line);
    }
    Ok(())
}
