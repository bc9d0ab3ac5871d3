//! TIME and SHUTDOWN (<https://redis.io/docs/latest/commands/?group=server>).

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError};
use resp::{Args, Reply};

use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::outcome::Outcome;
use crate::host::{SaveAtEnd, Shutdown};

const SAVE_SELECTOR: &[Argument] =
    &[Argument::word("nosave", "NOSAVE"), Argument::word("save", "SAVE")];

pub const ROWS: &[Row<NodeHandler>] = &[
    Row::new(
        Spec::new("time", 1, Group::Server, "2.6.0")
            .summary("Returns the server's time.")
            .flags(Flags::LOADING.with(Flags::STALE).with(Flags::FAST))
            .tips(&["nondeterministic_output"]),
        time,
    ),
    Row::new(
        Spec::new("shutdown", -1, Group::Server, "1.0.0")
            .summary("Stops the server.")
            .complexity("O(N) when N keys are saved, otherwise O(1).")
            .flags(
                Flags::ADMIN
                    .with(Flags::NOSCRIPT)
                    .with(Flags::LOADING)
                    .with(Flags::STALE)
                    .with(Flags::NO_MULTI)
                    .with(Flags::ALLOW_BUSY)
                    .with(Flags::MAIN),
            )
            .arguments(&[
                Argument::new("save-selector", Shape::OneOf(SAVE_SELECTOR)).optional(),
                Argument::word("now", "NOW").optional().since("7.0.0"),
                Argument::word("force", "FORCE").optional().since("7.0.0"),
                Argument::word("abort", "ABORT").optional().since("7.0.0"),
            ])
            .history(&[("7.0.0", "Takes NOW, FORCE and ABORT.")]),
        shutdown,
    ),
];

fn time(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let unix_us = cx.worker.turn.shown_us;
    reply.array(2);
    reply.bulk_int(unix_us.div_euclid(1_000_000));
    reply.bulk_int(unix_us.rem_euclid(1_000_000));
    Ok(())
}

fn shutdown(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut how = Shutdown::default();
    let (mut save, mut nosave, mut abort) = (false, false, false);
    while args.remaining() > 0 {
        if args.take_word("nosave") {
            nosave = true;
        } else if args.take_word("save") {
            save = true;
        } else if args.take_word("now") {
            how.now = true;
        } else if args.take_word("force") {
            how.force = true;
        } else if args.take_word("abort") {
            abort = true;
        } else {
            return Err(Error::Syntax);
        }
    }
    if save && nosave || abort && (save || nosave || how != Shutdown::default()) {
        return Err(Error::Syntax);
    }
    how.save = match (save, nosave) {
        (true, _) => SaveAtEnd::Yes,
        (_, true) => SaveAtEnd::No,
        _ => SaveAtEnd::ByConfig,
    };
    if cx.worker.node.scripting.must_end() {
        return await_shutdown(cx);
    }
    if abort {
        if !cx.outside(|host| host.call_off_shutdown()) {
            return Err(ServerError::NoShutdown.into());
        }
        reply.ok();
        return Ok(());
    }
    let awaits = std::mem::take(&mut cx.session.awaits_shutdown);
    if awaits && cx.worker.node.is_shutting_down() {
        return await_shutdown(cx);
    }
    // If a waiting client repeats the command and the server does not shut down, the shutdown was
    // called off: because a script became busy, or by SHUTDOWN ABORT.
    let scripting = &cx.worker.node.scripting;
    if scripting.busy.any() && !nosave {
        return Err(scripting.busy.error(None).into());
    }
    if awaits {
        return Err(ServerError::Shutdown.into());
    }
    cx.outside(|host| host.shut_down(how)).map_err(|_| ServerError::Shutdown)?;
    // The pause lasts until the process ends, so no client sees writes of scripts that are killed.
    cx.worker.node.pause_for_ever();
    if nosave {
        cx.worker.node.scripting.end_all();
    }
    await_shutdown(cx)
}

/// Blocks the client until the shutdown. As in Redis, its connection then ends without a reply; it
/// gets an error if SHUTDOWN ABORT comes first.
///
/// # Errors
/// The server is not shutting down.
fn await_shutdown(cx: &mut NodeCx<'_>) -> Result<(), Error> {
    if !cx.worker.node.is_shutting_down() {
        return Err(ServerError::Shutdown.into());
    }
    // The client is paused as by CLIENT PAUSE, and repeats the command afterwards.
    cx.session.awaits_shutdown = true;
    cx.outcome = Outcome::Paused;
    Ok(())
}
