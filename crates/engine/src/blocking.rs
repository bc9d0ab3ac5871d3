//! Waits for keys: how a blocking command describes its wait, and how a wait is answered.
//!
//! A handler tries its keys first. If none can answer it, it replies nothing and returns a
//! [`BlockRequest`]. From then on every write to one of the keys calls the request's [`Serve`], on
//! the writer's thread and before another command can use the key, first come first served.
//!
//! It deliberately does not keep the blocked clients (`store::waiters` does, for each shard), let
//! waits time out, or send replies; layer 5 does that.

use std::ops::Range;

use resp::{Args, Reply};
pub use store::BlockedOn;
use store::Key;

use crate::cx::Cx;
use crate::error::Error;

/// Tries to answer a waiting request because `key` has changed, or because its retry time has come.
/// If it does not reply, the request goes on waiting, and nothing must have been written. An error
/// ends the wait, and is the reply.
///
/// The context is that of the waiting client: its database, its keys' hashes (in the order of its
/// row's positions) and its protocol. The shards of the key and of the target are held; those of
/// its other keys only where [`LockedShards::try_hold`](crate::LockedShards::try_hold) says so. It
/// reports its writes by [`Cx::wrote`] and `replay_as`, as any handler.
pub type Serve = fn(&mut Cx<'_>, Key<'_>, &Args<'_>, &mut Reply<'_>) -> Result<ServeOutcome, Error>;

/// The outcome of an attempt to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeOutcome {
    /// It replied.
    Replied,
    /// The key has nothing until a command writes to it.
    Nothing,
    /// The key has nothing yet, and an entry at this time in milliseconds since 1970 without
    /// another write: XREADGROUP CLAIM. A write before that causes another attempt.
    NothingUntil(i64),
}

impl From<bool> for ServeOutcome {
    fn from(replied: bool) -> Self {
        if replied { Self::Replied } else { Self::Nothing }
    }
}

/// The wait of a request, and how it is answered. When its timeout is over, the reply is a null
/// array, as in Redis for every blocking command.
#[derive(Clone, Debug)]
pub struct BlockRequest {
    /// The kind of value that it waits for.
    pub blocked_on: BlockedOn,
    /// Indexes of the arguments that are the keys it waits for.
    pub keys: Range<usize>,
    /// Index of a key to which serving writes: the destination of BLMOVE.
    pub target: Option<usize>,
    /// When the wait ends, in milliseconds since 1970; `None` to wait for ever.
    pub until_ms: Option<i64>,
    /// When to try again without a write to the keys, in milliseconds since 1970: for each key, or
    /// empty.
    pub retry_at_ms: Vec<Option<i64>>,
    /// Answers it.
    pub serve: Serve,
    /// Arguments for [`Serve`] instead of those that were sent, with the keys at the same indexes:
    /// XREAD's with `$` resolved.
    pub args: Option<Vec<Vec<u8>>>,
}

impl BlockRequest {
    /// A wait for a write to one of the keys at these arguments, answered by `serve` with the
    /// arguments that were sent.
    pub fn new(
        blocked_on: BlockedOn,
        keys: Range<usize>,
        until_ms: Option<i64>,
        serve: Serve,
    ) -> Self {
        Self {
            blocked_on,
            keys,
            target: None,
            until_ms,
            retry_at_ms: Vec::new(),
            serve,
            args: None,
        }
    }
}
