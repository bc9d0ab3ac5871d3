//! Runs a data command on the shards that are held for it, and seals its effect.

use resp::{Args, Reply};
use store::Key;

use crate::blocking::{Serve, ServeOutcome};
use crate::cx::Cx;
use crate::error::Error;

/// What a data command does: reads its arguments behind its name, touches data, and replies once or
/// returns an error.
pub type Handler = fn(&mut Cx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// Runs a handler. Returns whether it succeeded; if not, the reply is its error and nothing else.
#[inline]
pub fn run(handler: Handler, cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> bool {
    let mark = reply.mark();
    let result = handler(cx, args, reply);
    seal(cx, args);
    match result {
        Ok(()) => true,
        Err(error) => {
            reply.truncate(mark);
            reply.error(error.to_string().as_bytes());
            false
        }
    }
}

/// Tries to answer a request that waits for a key. Returns also whether it succeeded; if not, the
/// reply is its error and nothing else.
pub fn serve(
    serve: Serve,
    cx: &mut Cx<'_>,
    key: Key<'_>,
    args: &Args<'_>,
    reply: &mut Reply<'_>,
) -> (ServeOutcome, bool) {
    let mark = reply.mark();
    let result = serve(cx, key, args, reply);
    seal(cx, args);
    match result {
        Ok(attempt) => (attempt, true),
        Err(error) => {
            reply.truncate(mark);
            reply.error(error.to_string().as_bytes());
            (ServeOutcome::Replied, false)
        }
    }
}

#[inline]
fn seal(cx: &mut Cx<'_>, sent: &Args<'_>) {
    let (db, unix_ms) = (cx.db, cx.turn.unix_ms);
    cx.turn.effects.seal(db, unix_ms, || sent.iter().map(<[u8]>::to_vec).collect());
}
