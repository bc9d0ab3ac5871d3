//! Where a client is between two requests: one state, and how an [`Outcome`] determines it.
//!
//! ```text
//!                 input arrives
//!     Reading ---------------------> Batched
//!        ^                              | its requests are executed
//!        |                              v
//!        |   Done, Failed           (Outcome)
//!        +------------------------------+
//!        |                              +-- Block ------> Blocked       until its wait is settled
//!        |                              +-- GracePeriod > GracePeriod   until earlier commands end
//!        |   its queue is executed      +-- Paused -----> Paused        until CLIENT PAUSE ends
//!        +<---- proceed <---------------+-- MainThread -> OnMainThread  until it returns
//!                                       +-- ShardInUse,
//!                                       |   NotExclusive> AwaitsShard   until the shard is free,
//!                                       |                              or the exclusive slot
//!                                       +-- Postponed --> Postponed     until the next turn
//!                                       +-- Congested --> Congested     until messages have left
//!                                       +-- Close ------> Closing       until its output is sent
//! ```
//!
//! A client that is Blocked, Paused, OnMainThread, Postponed, Congested, in a GracePeriod or
//! AwaitsShard is *suspended*: its next requests stay in its queue and nothing more is read.
//! `IoThread::proceed` leaves every suspended state: it executes the queue, which may suspend the
//! client again. In any state a client's output may wait for the log (`release_replies`): then
//! nothing is read from the client and nothing is sent to it.

use std::sync::Arc;

use node::{AfterGrace, Outcome, Waiter};

/// The next step of a client's thread.
#[derive(Debug)]
pub enum ClientState {
    /// It is read when it sends something.
    Reading,
    /// Requests of this turn wait for execution. Nothing more is read until then, because they may
    /// lie in its query buffer.
    Batched,
    /// It waits for a key.
    Blocked(Blocked),
    /// Its request is answered when the commands that other threads had begun are over.
    GracePeriod(Box<AfterGrace>),
    /// Its next request waits for the end of CLIENT PAUSE.
    Paused,
    /// The main thread executes the requests at the front of its queue that only the main thread
    /// may execute. From here its slot is `OnMain`.
    OnMainThread,
    /// Its next request needs a shard that another command uses, or runs a script that must be
    /// exclusive among scripts.
    AwaitsShard,
    /// It has used its time in this turn: its queue continues in the next turn, or when enough of
    /// its output has left.
    Postponed,
    /// It publishes, and waits until more of the earlier messages have been delivered.
    Congested,
    /// It is closed when its output is sent; nothing more is read.
    Closing,
}

#[derive(Debug)]
pub struct Blocked {
    pub waiter: Arc<Waiter>,
    /// Its time among its thread's deadlines, in milliseconds on the steady scale.
    pub due_ms: Option<i64>,
}

impl ClientState {
    /// The state that a request's outcome leads to.
    pub fn after(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done | Outcome::Failed => Self::Reading,
            Outcome::Close => Self::Closing,
            Outcome::Block(waiter) => Self::Blocked(Blocked { waiter, due_ms: None }),
            Outcome::GracePeriod(after) => Self::GracePeriod(after),
            Outcome::MainThread => Self::OnMainThread,
            Outcome::Paused => Self::Paused,
            Outcome::ShardInUse | Outcome::NotExclusive => Self::AwaitsShard,
            Outcome::Postponed | Outcome::Script => Self::Postponed,
            Outcome::Congested => Self::Congested,
        }
    }

    /// Whether nothing is read or executed for the client until something else happens.
    pub fn is_suspended(&self) -> bool {
        match self {
            Self::Blocked(_) | Self::GracePeriod(_) => true,
            Self::Paused | Self::OnMainThread | Self::AwaitsShard => true,
            Self::Postponed | Self::Congested => true,
            Self::Reading | Self::Batched | Self::Closing => false,
        }
    }

    /// Whether the client is closed when its output is sent.
    pub fn is_closing(&self) -> bool {
        matches!(self, Self::Closing)
    }

    /// The client's wait for a key, if it is blocked.
    pub fn blocked(&self) -> Option<&Blocked> {
        match self {
            Self::Blocked(blocked) => Some(blocked),
            _ => None,
        }
    }

    pub fn blocked_mut(&mut self) -> Option<&mut Blocked> {
        match self {
            Self::Blocked(blocked) => Some(blocked),
            _ => None,
        }
    }
}
