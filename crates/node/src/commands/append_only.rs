//! BGREWRITEAOF (<https://redis.io/docs/latest/commands/bgrewriteaof/>).

use command::{Flags, Group, Row, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::host::RewriteBegin;

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::new(
    Spec::new("bgrewriteaof", 1, Group::Server, "1.0.0")
        .summary("Writes a new base of the append-only file, from what is in memory.")
        .flags(Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::NO_ASYNC_LOADING).with(Flags::MAIN)),
    rewrite,
)];

fn rewrite(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let is_nested = cx.is_nested;
    match cx.outside(|host| host.rewrite_append_only(is_nested)) {
        RewriteBegin::Started => {
            reply.simple("Background append only file rewriting started");
        }
        RewriteBegin::Scheduled => {
            reply.simple("Background append only file rewriting scheduled");
        }
        RewriteBegin::InProgress => return Err(ServerError::Rewriting.into()),
        RewriteBegin::Failed => return Err(ServerError::CannotRewrite.into()),
    }
    Ok(())
}
