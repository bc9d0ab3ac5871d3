//! The commands on connections (<https://redis.io/docs/latest/commands/?group=connection>) except
//! CLIENT.

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{ConnectionError, Error};
use resp::{Args, Reply};

use super::handshake;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::propagation::invalidations;

/// The flags of most commands on connections, which do not need the dataset.
const ANYTIME: Flags = Flags::LOADING.with(Flags::STALE).with(Flags::FAST);
/// The flags of commands that a client may send before it authenticates.
const FIRST: Flags =
    ANYTIME.with(Flags::NOSCRIPT).with(Flags::NO_AUTH).with(Flags::ALLOW_BUSY).with(Flags::SESSION);

const USER: Argument = Argument::new("username", Shape::String);
const PASSWORD: Argument = Argument::new("password", Shape::String);

const HELLO: &[Argument] = &[Argument::new(
    "arguments",
    Shape::Block(&[
        Argument::new("protover", Shape::Integer),
        Argument::new("auth", Shape::Block(&[USER, PASSWORD])).after("AUTH").optional(),
        Argument::new("clientname", Shape::String).after("SETNAME").optional(),
    ]),
)
.optional()];

/// The connection commands.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        Spec::new("auth", -2, Group::Connection, "1.0.0")
            .summary("Authenticates the connection with a password.")
            .complexity("O(N) in the passwords of the user")
            .flags(FIRST)
            .history(&[("6.0.0", "Takes a user name before the password.")])
            .arguments(&[USER.optional().since("6.0.0"), PASSWORD]),
        handshake::auth,
    ),
    Row::new(
        Spec::new("echo", 2, Group::Connection, "1.0.0")
            .summary("Returns the given message.")
            .flags(ANYTIME)
            .arguments(&[Argument::new("message", Shape::String)]),
        echo,
    ),
    Row::new(
        Spec::new("hello", -1, Group::Connection, "6.0.0")
            .summary("Switches the protocol, and can authenticate and name the connection.")
            .flags(FIRST)
            .history(&[("6.2.0", "Without arguments, only describes the connection.")])
            .arguments(HELLO),
        handshake::hello,
    ),
    Row::new(
        Spec::new("ping", -1, Group::Connection, "1.0.0")
            .summary("Returns PONG, or the given message.")
            .flags(Flags::FAST.with(Flags::SUBSCRIBED))
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
            .arguments(&[Argument::new("message", Shape::String).optional()]),
        ping,
    ),
    Row::new(
        Spec::new("quit", -1, Group::Connection, "1.0.0")
            .summary("Closes the connection after a last reply.")
            .flags(FIRST.with(Flags::NOT_QUEUED).with(Flags::SUBSCRIBED))
            .deprecated("7.2.0", "closing the connection on the client's side"),
        quit,
    ),
    Row::new(
        Spec::new("reset", 1, Group::Connection, "6.2.0")
            .summary("Resets the connection to its state after connecting.")
            .flags(FIRST.with(Flags::NOT_QUEUED).with(Flags::SUBSCRIBED).with(Flags::HOME)),
        reset,
    ),
    Row::new(
        Spec::new("select", 2, Group::Connection, "1.0.0")
            .summary("Selects the database of the connection.")
            .flags(ANYTIME)
            .arguments(&[Argument::new("index", Shape::Integer)]),
        select,
    ),
];

fn ping(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match args.len() {
        1 | 2 if cx.session.is_in_subscribed_mode() => {
            // The form of a message, which a client in subscribed mode expects.
            reply.array(2);
            reply.bulk(b"pong");
            reply.bulk(args.at(1).unwrap_or_default());
        }
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.text(1)),
        _ => return Err(Error::Arity("ping".to_owned())),
    }
    Ok(())
}

fn echo(_cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.bulk(args.text(1));
    Ok(())
}

fn quit(cx: &mut NodeCx<'_>, _args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.ok();
    cx.outcome = Outcome::Close;
    Ok(())
}

fn reset(cx: &mut NodeCx<'_>, _args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.worker.discard(cx.session, &mut cx.shards);
    super::pubsub::unsubscribe_from_all(cx, reply);
    invalidations::end(cx.worker, cx.session);
    cx.session.reset(&cx.worker.node.users);
    reply.simple("RESET");
    Ok(())
}

fn select(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let number = base::number::parse_i64(args.text(1)).ok_or(Error::NotInteger)?;
    let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    if !(min..=max).contains(&number) {
        return Err(Error::NotBetween(min, max));
    }
    match usize::try_from(number) {
        Ok(db) if db < cx.worker.node.databases => cx.session.select(db),
        _ => return Err(Error::DatabaseOutOfRange),
    }
    reply.ok();
    Ok(())
}

/// Whether a name fits into a line of CLIENT LIST, whose fields are separated by spaces. As in
/// Redis, only the part before a zero byte is checked and listed.
pub(super) fn is_clean(name: &[u8]) -> bool {
    name.iter().take_while(|byte| **byte != 0).all(u8::is_ascii_graphic)
}

/// Sets the client's name; an empty name removes it.
pub(super) fn set_name(cx: &mut NodeCx<'_>, name: &[u8]) -> Result<(), Error> {
    if !is_clean(name) {
        return Err(ConnectionError::Name.into());
    }
    cx.session.record.edit_names(|names| names.name = name.to_vec());
    Ok(())
}
