//! Where a client is between one request and the next: one state, and what follows an [`Outcome`].
//!
//! ```text
//!                 input has come
//!     Reading ---------------------> Batched
//!        ^                              | its requests are executed
//!        |                              v
//!        |   Done, Failed           (Outcome)
//!        +------------------------------+
//!        |                              +-- Block ------> Blocked       until its wait is settled
//!        |                              +-- GracePeriod > GracePeriod   until others have passed
//!        |   its queue is executed      +-- Paused -----> Paused        until CLIENT PAUSE ends
//!        +<---- proceed <---------------+-- MainThread -> OnMainThread  until it is returned
//!                                       +-- ShardInUse -> AwaitsShard   until that is free
//!                                       +-- Postponed --> Postponed     until the next turn
//!                                       +-- Congested --> Congested     until messages have left
//!                                       +-- Close ------> Closing       until its output is sent
//! ```
//!
//! A client that is Blocked, Paused, OnMainThread, Postponed, Congested, in a GracePeriod or
//! AwaitsShard is *held*: its next requests stay in its queue and nothing more is read.
//! `IoThread::proceed` is the way on from every held state: the queue is executed, which may lead
//! to the next held state. Beside its state, a client's output may wait for the log (`log_holds`):
//! then nothing is read of it, and what its state asks for is done as far as it needs no output.
//! MONITOR and links to replicas add their states here.

use std::sync::Arc;

use node::{AfterGrace, Outcome, Waiter};

/// What a client's thread does with it next.
#[derive(Debug)]
pub enum ClientState {
    /// It is read when it sends something.
    Reading,
    /// Requests of this turn wait to be executed. Nothing more is read until then, because they may
    /// lie in its query buffer.
    Batched,
    /// It waits for a key.
    Blocked(Blocked),
    /// Its request is answered when all that others had begun is over.
    GracePeriod(Box<AfterGrace>),
    /// Its next request waits for the end of CLIENT PAUSE.
    Paused,
    /// The main thread executes what of its queue it alone may. From here its slot is `Away`.
    OnMainThread,
    /// Its next request needs a shard that another command keeps in use, or runs a script that has
    /// to be alone among scripts.
    AwaitsShard,
    /// It has used its time in this turn: its queue goes on in the next one, or when enough of its
    /// output has left.
    Postponed,
    /// It publishes, and waits until more of what was published before has been delivered.
    Congested,
    /// It is closed when its output is sent; nothing more is read.
    Closing,
}

/// The wait of a blocked client.
#[derive(Debug)]
pub struct Blocked {
    /// How it is served.
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

    /// The same, to be changed.
    pub fn blocked_mut(&mut self) -> Option<&mut Blocked> {
        match self {
            Self::Blocked(blocked) => Some(blocked),
            _ => None,
        }
    }
}
