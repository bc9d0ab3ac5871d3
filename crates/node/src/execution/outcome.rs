//! What came of a request.
//!
//! On the way back of a request: the `Executor` makes it, `server::threads::execute` turns it into
//! the client's state.

use std::sync::Arc;

use crate::blocking::Waiter;
use crate::execution::after_grace::AfterGrace;

/// What came of a request, and so what the event loop does next with its client.
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
    /// It was not executed, because another command holds a shard that it needs, or because it runs
    /// a script that has to be alone, and another one is. It is tried again in a moment, and begins
    /// anew.
    ShardInUse,
    /// It was not executed, because so much waits to be delivered that those who publish must wait.
    Congested,
    /// It was not executed, and will be in a later turn: because those before it have used the
    /// client's time in this turn ([`Worker::has_used_turn`](crate::Worker::has_used_turn)).
    Postponed,
}

impl Outcome {
    /// Whether nothing was done, and the command begins anew later.
    pub(crate) fn is_later(&self) -> bool {
        let waits = matches!(self, Self::Paused | Self::Postponed);
        waits || matches!(self, Self::ShardInUse | Self::Congested)
    }
}
