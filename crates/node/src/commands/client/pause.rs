//! CLIENT PAUSE (<https://redis.io/docs/latest/commands/client-pause/>) and CLIENT UNPAUSE.
//!
//! Both run on the main thread, so that two clients do not change the pause at once.
//!
//! A pause is a barrier: what was admitted before it has taken effect when PAUSE is answered, and
//! nothing takes effect after that until its end. The time given begins when it is answered; the
//! pause itself begins before, so that there is an end to what it waits for.

use command::{Argument, Flags, Shape, Spec};
use engine::{ConnectionError, Error};
use resp::{Args, Reply};

use super::{admin, form};
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;

pub(super) const PAUSE: Spec = admin("pause", -3, "3.0.0")
    .summary("Suspends all commands, or only writes, for some milliseconds.")
    .flags(Flags::MAIN)
    .history(&[("6.2.0", "A mode can be given, and `WRITE` lets reads go on.")])
    .arguments(&[
        Argument::new("timeout", Shape::Integer),
        Argument::new(
            "mode",
            Shape::OneOf(&[Argument::word("write", "WRITE"), Argument::word("all", "ALL")]),
        )
        .optional()
        .since("6.2.0"),
    ]);

pub(super) const UNPAUSE: Spec = admin("unpause", 2, "6.2.0")
    .summary("Ends a CLIENT PAUSE.")
    .complexity("O(N) in the clients that wait")
    .flags(Flags::MAIN);

pub(super) fn pause(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    form(args, 4)?;
    let writes_only = match args.at(3).map(<[u8]>::to_ascii_lowercase).as_deref() {
        None | Some(b"all") => false,
        Some(b"write") => true,
        Some(_) => return Err(ConnectionError::PauseMode.into()),
    };
    let steady_ms = cx.worker.turn.steady_ms;
    let timeout_ms = timeout(args.text(2), steady_ms)?;
    if timeout_ms == 0 && cx.worker.node.pause_left_ms(steady_ms) == 0 {
        // It is over at once, and no client has to wait for the commands that run.
        reply.ok();
        return Ok(());
    }
    let beginning = cx.worker.node.begin_pause(writes_only, steady_ms);
    cx.after_grace(move |worker, host| {
        let steady_ms = worker.turn.steady_ms;
        let until_ms = steady_ms.saturating_add(timeout_ms);
        worker.node.limit_pause(beginning, until_ms, steady_ms);
        host.pause_changed();
        Outcome::Done
    });
    reply.ok();
    Ok(())
}

pub(super) fn unpause(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    cx.worker.node.unpause_clients();
    cx.outside(|host| host.pause_changed());
    reply.ok();
    Ok(())
}

/// The milliseconds of a pause.
fn timeout(timeout_ms: &[u8], steady_ms: i64) -> Result<i64, Error> {
    match base::number::parse_i64(timeout_ms) {
        None => Err(ConnectionError::TimeoutNotInteger.into()),
        Some(ms) if ms < 0 => Err(ConnectionError::TimeoutNegative.into()),
        Some(ms) if steady_ms.checked_add(ms).is_none() => {
            Err(ConnectionError::TimeoutRange.into())
        }
        Some(ms) => Ok(ms),
    }
}
