//! The outcome of a request.
//!
//! The `Executor` returns it, and `server::threads::execute` turns it into the client's state.

use std::sync::Arc;

use super::after_grace::AfterGrace;
use crate::state::waiter::Waiter;

/// The outcome of a request, which says what the event loop does next with its client.
#[derive(Debug)]
pub enum Outcome {
    /// It replied. The next request follows.
    Done,
    /// It replied an error and nothing else. The next request follows.
    Failed,
    /// It replied. The client is closed when its replies are sent; later requests are dropped.
    Close,
    /// It replied nothing: the client is blocked on keys until this waiter is settled.
    Block(Arc<Waiter>),
    /// It replied nothing yet: this is left to do when a grace period that begins now is over. The
    /// next request follows then.
    GracePeriod(Box<AfterGrace>),
    /// It was not executed, because only the main thread may.
    MainThread,
    /// It was not executed, because it runs scripts and the thread does not
    /// [admit](crate::Worker::admit_scripts) them.
    Script,
    /// It was not executed, because CLIENT PAUSE holds it back.
    Paused,
    /// It was not executed, because another command holds a shard that it needs. It begins again
    /// when the shard is free.
    ShardInUse,
    /// It was not executed, because its script must be exclusive among scripts, and another one is.
    /// It begins again when the other script has ended.
    NotExclusive,
    /// It was not executed, because so much is undelivered that publishers must wait.
    Congested,
    /// It was not executed, and will be in a later turn, because the requests before it have used
    /// the client's time in this turn ([`Worker::has_used_turn`](crate::Worker::has_used_turn)).
    Postponed,
}

impl Outcome {
    /// Whether nothing was done, and the command begins again later.
    pub(crate) fn is_later(&self) -> bool {
        let waits = matches!(self, Self::Paused | Self::Postponed);
        waits || matches!(self, Self::ShardInUse | Self::NotExclusive | Self::Congested)
    }
}
