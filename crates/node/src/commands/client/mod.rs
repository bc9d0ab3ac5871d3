//! CLIENT (<https://redis.io/docs/latest/commands/client/>): its rows, and the subcommands that a
//! client uses on itself. Other clients are accessed only through their records.

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::connection::{is_clean, set_name};
use super::help::{help, help_spec};
use crate::clients::record::flag;
use crate::clients::session::ReplyMode;
use crate::execution::node_cx::{NodeCx, NodeHandler};

mod kill;
mod list;
mod pause;
mod tracking;

const ANYTIME: Flags = Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ADMIN: Flags = ANYTIME.with(Flags::ADMIN);

const ON_OFF: &[Argument] = &[Argument::new(
    "enabled",
    Shape::OneOf(&[Argument::word("on", "ON"), Argument::word("off", "OFF")]),
)];

/// A subcommand that a client may use on itself.
const fn own(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Connection, since).flags(ANYTIME)
}

/// A subcommand that affects other clients.
const fn admin(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Connection, since).flags(ADMIN)
}

/// CLIENT.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("client", -2, Group::Connection, "2.4.0")
        .summary("A container for commands on client connections.")
        .complexity("Depends on the subcommand."),
    &[
        Row::new(tracking::CACHING, tracking::caching),
        Row::new(own("getname", 2, "2.6.9").summary("Returns the name of the connection."), name),
        Row::new(tracking::GETREDIR, tracking::redirection),
        Row::new(own("id", 2, "5.0.0").summary("Returns the ID of the connection."), id),
        Row::new(
            own("info", 2, "6.2.0")
                .summary("Returns the line of CLIENT LIST for the connection.")
                .tips(&["nondeterministic_output"]),
            list::info,
        ),
        Row::new(kill::SPEC, kill::kill),
        Row::new(list::SPEC, list::list),
        Row::new(
            admin("no-evict", 3, "7.0.0")
                .summary("Excludes the connection from the eviction of clients.")
                .flags(Flags::SESSION)
                .arguments(ON_OFF),
            no_evict,
        ),
        Row::new(
            own("no-touch", 3, "7.2.0")
                .summary("Sets whether the connection's commands update the access times of keys.")
                .flags(Flags::SESSION)
                .arguments(ON_OFF),
            no_touch,
        ),
        Row::new(pause::PAUSE, pause::pause),
        Row::new(
            own("reply", 3, "3.2.0")
                .summary("Turns replies to the connection on or off, or skips the next one.")
                .flags(Flags::SESSION)
                .arguments(&[Argument::new(
                    "action",
                    Shape::OneOf(&[
                        Argument::word("on", "ON"),
                        Argument::word("off", "OFF"),
                        Argument::word("skip", "SKIP"),
                    ]),
                )]),
            reply_mode,
        ),
        Row::new(
            own("setinfo", 4, "7.2.0")
                .summary("Sets the name or version of the client's library.")
                .flags(Flags::SESSION)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[Argument::new(
                    "attr",
                    Shape::OneOf(&[
                        Argument::new("libname", Shape::String).after("LIB-NAME"),
                        Argument::new("libver", Shape::String).after("LIB-VER"),
                    ]),
                )]),
            set_info,
        ),
        Row::new(
            own("setname", 3, "2.6.9")
                .summary("Sets the name of the connection; an empty name removes it.")
                .flags(Flags::SESSION)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .arguments(&[Argument::new("connection-name", Shape::String)]),
            rename,
        ),
        Row::new(tracking::TRACKING, tracking::tracking),
        Row::new(tracking::TRACKINGINFO, tracking::info),
        Row::new(
            admin("unblock", -3, "5.0.0")
                .summary("Unblocks a client that waits in a blocking command.")
                .complexity("O(log N) in the connections")
                .arguments(&[
                    Argument::new("client-id", Shape::Integer),
                    Argument::new(
                        "unblock-type",
                        Shape::OneOf(&[
                            Argument::word("timeout", "TIMEOUT"),
                            Argument::word("error", "ERROR"),
                        ]),
                    )
                    .optional(),
                ]),
            unblock,
        ),
        Row::new(pause::UNPAUSE, pause::unpause),
        Row::new(help_spec(Group::Connection, "5.0.0"), help),
    ],
)];

fn id(cx: &mut NodeCx<'_>, _args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.unsigned(cx.session.record.id);
    Ok(())
}

fn name(cx: &mut NodeCx<'_>, _args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match cx.session.record.names().name.as_slice() {
        [] => reply.null(),
        name => reply.bulk(name),
    }
    Ok(())
}

fn rename(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    set_name(cx, args.text(2))?;
    reply.ok();
    Ok(())
}

fn set_info(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (attribute, value) = (args.text(2), args.text(3));
    let is_name = attribute.eq_ignore_ascii_case(b"lib-name");
    if !is_name && !attribute.eq_ignore_ascii_case(b"lib-ver") {
        return Err(ConnectionError::Attribute(echo(attribute)).into());
    }
    if !is_clean(value) {
        return Err(ConnectionError::AttributeValue(echo(attribute)).into());
    }
    cx.session.record.edit_names(|names| {
        let field = if is_name { &mut names.library } else { &mut names.library_version };
        *field = value.to_vec();
    });
    reply.ok();
    Ok(())
}

fn no_evict(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.session.record.set_flag(flag::NO_EVICT, on_or_off(args)?);
    cx.worker.count_client(&cx.session.record);
    reply.ok();
    Ok(())
}

fn no_touch(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.session.set_no_touch(on_or_off(args)?);
    reply.ok();
    Ok(())
}

fn on_or_off(args: &Args<'_>) -> Result<bool, Error> {
    match args.text(2).to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(Error::Syntax),
    }
}

/// Only ON gets a reply.
fn reply_mode(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let session = &mut *cx.session;
    match args.text(2).to_ascii_lowercase().as_slice() {
        b"on" => {
            session.reply_mode = ReplyMode::On;
            reply.ok();
        }
        b"off" => session.reply_mode = ReplyMode::Off,
        b"skip" if session.reply_mode == ReplyMode::Off => {}
        b"skip" => session.reply_mode = ReplyMode::SkipNext,
        _ => return Err(Error::Syntax),
    }
    Ok(())
}

/// The first thread that settles the wait decides how it ends, and the client's owner is notified.
fn unblock(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    form(args, 4)?;
    let with_error = match args.at(3) {
        None => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"timeout") => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"error") => true,
        Some(_) => return Err(ConnectionError::UnblockReason.into()),
    };
    let id = base::number::parse_i64(args.text(2)).ok_or(Error::NotInteger)?;
    let record = u64::try_from(id).ok().and_then(|id| cx.worker.node.clients.find(id));
    let waiter = record.as_ref().and_then(|record| cx.worker.node.waits.find(record.id));
    let ended = waiter.is_some_and(|waiter| match with_error {
        true => waiter.unblock(),
        false => waiter.time_out(),
    });
    if let (true, Some(record)) = (ended, record) {
        cx.waker().wake_client(&record);
    }
    reply.int(i64::from(ended));
    Ok(())
}

/// Refuses more than `len_max` arguments.
fn form(args: &Args<'_>, len_max: usize) -> Result<(), Error> {
    if args.len() <= len_max {
        return Ok(());
    }
    Err(Error::SubcommandForm(echo(args.text(1)), "CLIENT"))
}
