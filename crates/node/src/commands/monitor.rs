//! MONITOR (<https://redis.io/docs/latest/commands/monitor/>): shows a client all requests.
//!
//! It subscribes the client to them, as SUBSCRIBE does to a channel; the lines are made in
//! `propagation::requests`. RESET ends it.

use command::{Flags, Group, Row, Spec};
use engine::{ConnectionError, Error};
use pubsub::ChannelKind;
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::propagation::subscribe;

/// The command.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("monitor", 1, Group::Server, "1.0.0")
        .summary("Shows the client all requests that the server executes.")
        .complexity("")
        .flags(
            Flags::ADMIN
                .with(Flags::NOSCRIPT)
                .with(Flags::LOADING)
                .with(Flags::STALE)
                .with(Flags::HOME),
        ),
    monitor,
)];

fn monitor(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if cx.is_nested {
        return Err(ConnectionError::NestedMonitor.into());
    }
    // As in Redis, one that is shown them already gets no answer.
    if cx.session.watches_requests() {
        return Ok(());
    }
    subscribe::begin(cx.worker, cx.session, ChannelKind::Requests, b"");
    subscribe::note_change(cx.worker, cx.session);
    cx.worker.node.requests_watched();
    // What follows in the batch is shown.
    cx.worker.take_over_config();
    reply.ok();
    Ok(())
}
