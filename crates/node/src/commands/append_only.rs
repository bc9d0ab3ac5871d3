//! BGREWRITEAOF (<https://redis.io/docs/latest/commands/bgrewriteaof/>) and WAITAOF
//! (<https://redis.io/docs/latest/commands/waitaof/>).

use base::number::parse_i64;
use command::{Argument, Category, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError, WaitError, timeout_ms};
use resp::{Args, Reply};

use crate::blocking::begin_log_wait;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::host::RewriteBegin;
use crate::state::durability::{AwaitedCopies, LogWait};

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        Spec::new("bgrewriteaof", 1, Group::Server, "1.0.0")
            .summary("Rewrites the append-only file from the data in memory.")
            .flags(
                Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::NO_ASYNC_LOADING).with(Flags::MAIN),
            ),
        rewrite,
    ),
    Row::new(
        Spec::new("waitaof", 4, Group::Generic, "7.2.0")
            .summary("Waits until the connection's writes are on disk, here or on replicas.")
            .complexity("O(1)")
            .flags(Flags::BLOCKING)
            .category(Category::CONNECTION)
            .arguments(&[
                Argument::new("numlocal", Shape::Integer),
                Argument::new("numreplicas", Shape::Integer),
                Argument::new("timeout", Shape::Integer),
            ])
            .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
        wait,
    ),
];

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

/// WAITAOF numlocal numreplicas timeout. As in Redis, it waits for the writes of its own
/// connection.
fn wait(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let local = match parse_i64(args.text(1)).ok_or(Error::NotInteger)? {
        local @ 0..=1 => local == 1,
        _ => return Err(Error::NotBetween(0, 1)),
    };
    let replicas = parse_i64(args.text(2)).filter(|count| *count >= 0).ok_or(Error::NotPositive)?;
    let until_ms = timeout_ms(args.text(3), cx.worker.turn.steady_ms)?;
    if local && !cx.worker.config.append_only.appendonly {
        return Err(WaitError::NoAppendOnlyFile.into());
    }
    cx.session.note_written(cx.worker);
    let copies = AwaitedCopies::Files { local, replicas: replicas > 0 };
    let wait = LogWait { written: cx.session.written, copies };
    begin_log_wait(cx, args, reply, wait, until_ms);
    Ok(())
}
