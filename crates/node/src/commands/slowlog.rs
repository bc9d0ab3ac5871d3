//! SLOWLOG (<https://redis.io/docs/latest/commands/slowlog/>). The log is in
//! [`crate::stats::slowlog`].

use base::number::parse_i64;
use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError, echo};
use resp::{Args, Reply};

use super::help::{help, help_spec};
use crate::execution::node_cx::{NodeCx, NodeHandler};

/// Entries that GET returns by default.
const DEFAULT_COUNT: usize = 10;

const ADMIN: Flags = Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE);
const ALL_NODES: &str = "request_policy:all_nodes";

const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since)
}

/// The slow log's commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    part("slowlog", -2, "2.2.12")
        .summary("A container for commands on the slow log.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("get", -2, "2.2.12")
                .summary("Returns the newest entries of the slow log.")
                .complexity("O(N) with N returned entries.")
                .flags(ADMIN)
                .arguments(&[Argument::new("count", Shape::Integer).optional()])
                .history(&[("4.0.0", "Entries have the client's address and name.")])
                .tips(&[ALL_NODES, "nondeterministic_output"]),
            slow_entries,
        ),
        Row::new(help_spec(Group::Server, "6.2.0"), help),
        Row::new(
            part("len", 2, "2.2.12")
                .summary("Returns the number of entries in the slow log.")
                .flags(ADMIN)
                .tips(&[ALL_NODES, "response_policy:agg_sum", "nondeterministic_output"]),
            len,
        ),
        Row::new(
            part("reset", 2, "2.2.12")
                .summary("Empties the slow log.")
                .complexity("O(N) with N entries in the log.")
                .flags(ADMIN)
                .tips(&[ALL_NODES, "response_policy:all_succeeded"]),
            reset,
        ),
    ],
)];

fn slow_entries(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let log = cx.worker.node.slowlog.lock();
    let count = match args.len() {
        2 => DEFAULT_COUNT,
        3 => match parse_i64(args.text(2)) {
            Some(-1) => log.len(),
            count => count.and_then(|n| usize::try_from(n).ok()).ok_or(ServerError::Count)?,
        },
        _ => {
            return Err(Error::SubcommandForm(echo(args.text(1)), "SLOWLOG"));
        }
    };
    let count = count.min(log.len());
    reply.array(count);
    for entry in log.iter().take(count) {
        reply.array(6);
        reply.unsigned(entry.id);
        reply.int(entry.unix_seconds);
        reply.unsigned(entry.micros);
        reply.array(entry.arguments.len());
        for argument in &entry.arguments {
            reply.bulk(argument);
        }
        reply.bulk(entry.address.as_bytes());
        reply.bulk(&entry.name);
    }
    Ok(())
}

fn len(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let len = cx.worker.node.slowlog.lock().len();
    reply.len(len);
    Ok(())
}

fn reset(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    cx.worker.node.slowlog.lock().clear();
    reply.ok();
    Ok(())
}
