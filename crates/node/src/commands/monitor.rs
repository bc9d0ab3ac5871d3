//! MONITOR (<https://redis.io/docs/latest/commands/monitor/>): shows a client all requests.
//!
//! It subscribes the client to requests as SUBSCRIBE does to a channel; `propagation::requests`
//! makes the lines. RESET ends it.

use command::{Flags, Group, Row, Spec};
use engine::{ConnectionError, Error};
use pubsub::ChannelKind;
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::propagation::subscribe;

/// The command.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("monitor", 1, Group::Server, "1.0.0")
        .summary("Streams all requests that the server executes to the client.")
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
    // As in Redis, a client that is already in MONITOR gets no reply.
    if cx.session.watches_requests() {
        return Ok(());
    }
    subscribe::begin(cx.worker, cx.session, ChannelKind::Requests, b"");
    subscribe::note_change(cx.worker, cx.session);
    cx.worker.node.requests_watched();
    // The following requests of the batch are shown too.
    cx.worker.take_over_config();
    reply.ok();
    Ok(())
}
