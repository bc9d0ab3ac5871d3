//! ROLE, WAIT and REPLICAOF (<https://redis.io/docs/latest/commands/role/>) of a server without
//! replicas and without a primary: replication does not exist yet.

use base::number::parse_i64;
use command::{Argument, Category, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError, timeout_ms};
use resp::{Args, Reply};

use crate::blocking::begin_log_wait;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::state::durability::{AwaitedCopies, LogWait};

const HOST_PORT: &[Argument] =
    &[Argument::new("host", Shape::String), Argument::new("port", Shape::Integer)];
const NO_ONE: &[Argument] = &[Argument::word("no", "NO"), Argument::word("one", "ONE")];
const PRIMARY: &[Argument] = &[Argument::new(
    "args",
    Shape::OneOf(&[
        Argument::new("host-port", Shape::Block(HOST_PORT)),
        Argument::new("no-one", Shape::Block(NO_ONE)),
    ]),
)];
const REPLICA_OF: Flags =
    Flags::NO_ASYNC_LOADING.with(Flags::ADMIN).with(Flags::NOSCRIPT).with(Flags::STALE);

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        Spec::new("replicaof", 3, Group::Server, "5.0.0")
            .summary("Makes the server a primary; it cannot become a replica yet.")
            .complexity("O(1)")
            .flags(REPLICA_OF)
            .arguments(PRIMARY),
        replica_of,
    ),
    Row::new(
        Spec::new("slaveof", 3, Group::Server, "1.0.0")
            .summary("Makes the server a primary; it cannot become a replica yet.")
            .complexity("O(1)")
            .flags(REPLICA_OF)
            .deprecated("5.0.0", "`REPLICAOF`")
            .arguments(PRIMARY),
        replica_of,
    ),
    Row::new(
        Spec::new("role", 1, Group::Server, "2.8.12")
            .summary("Returns the role of the server in replication.")
            .complexity("O(1)")
            .flags(Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE).with(Flags::FAST))
            .category(Category::ADMIN.with(Category::DANGEROUS)),
        role,
    ),
    Row::new(
        Spec::new("wait", 3, Group::Generic, "3.0.0")
            .summary("Waits until replicas have the connection's writes.")
            .complexity("O(1)")
            .flags(Flags::BLOCKING)
            .category(Category::CONNECTION)
            .arguments(&[
                Argument::new("numreplicas", Shape::Integer),
                Argument::new("timeout", Shape::Integer),
            ])
            .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
        wait,
    ),
];

fn replica_of(_: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let (host, port) = (args.text(1), args.text(2));
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        reply.ok();
        return Ok(());
    }
    let is_port = parse_i64(port).is_some_and(|port| u16::try_from(port).is_ok());
    Err(if is_port { ServerError::NoReplication } else { ServerError::PrimaryPort }.into())
}

/// A primary without replicas. As in Redis, the offset stays 0 until a replica connects.
fn role(_: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.array(3);
    reply.bulk(b"master");
    reply.int(0);
    reply.array(0);
    Ok(())
}

/// WAIT numreplicas timeout: there are no replicas, so it waits for its timeout unless it asks for
/// none.
fn wait(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let replicas = parse_i64(args.text(1)).ok_or(Error::NotInteger)?;
    let until_ms = timeout_ms(args.text(2), cx.worker.turn.steady_ms)?;
    let wait = LogWait { written: None, copies: AwaitedCopies::Replicas(replicas) };
    begin_log_wait(cx, args, reply, wait, until_ms);
    Ok(())
}
