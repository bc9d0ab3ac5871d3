//! Connections (<https://redis.io/docs/latest/commands/?group=connection>).

use engine::{Argument, Error, Flags, Group, Row, Shape, Spec};
use resp::{Args, Reply};

use super::{NodeCx, NodeHandler};

/// The connection commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("ping", -1, Group::Connection, "1.0.0")
        .summary("Replies PONG, or the message it was given.")
        .flags(Flags::FAST)
        .arguments(&[Argument::new("message", Shape::Text).optional()]),
    ping,
)];

fn ping(_cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    match args.len() {
        1 => reply.simple("PONG"),
        2 => reply.bulk(args.text(1)),
        _ => return Err(Error::Arity("ping".to_owned())),
    }
    Ok(())
}
