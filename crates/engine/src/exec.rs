//! Runs a data command on the shards that are held for it, and seals its effect.

use resp::{Args, Reply};

use crate::cx::Cx;
use crate::row::Handler;

/// Runs a handler. Returns whether it succeeded; if not, the reply is its error and nothing else.
#[inline]
pub fn run(handler: Handler, cx: &mut Cx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> bool {
    let mark = reply.mark();
    let result = handler(cx, args, reply);
    let (db, unix_ms) = (cx.db, cx.turn.unix_ms);
    let sent = *args;
    cx.turn.effects.seal(db, unix_ms, || sent.iter().map(<[u8]>::to_vec).collect());
    match result {
        Ok(()) => true,
        Err(error) => {
            reply.truncate(mark);
            reply.error(error.to_string().as_bytes());
            false
        }
    }
}
