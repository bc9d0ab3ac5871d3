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
//!        |   its queue is executed      +-- Paused -----> Paused        until CLIENT PAUSE ends
//!        +<---- proceed <---------------+-- MainThread -> OnMainThread  until it is returned
//!                                       +-- Close ------> Closing       until its output is sent
//! ```
//!
//! A client that is Blocked, Paused or OnMainThread is *held*: its next requests stay in its queue
//! and nothing more is read. `IoThread::proceed` is the way on from every held state: the queue is
//! executed, which may lead to the next held state. MULTI, subscriptions, MONITOR and links to
//! replicas add their states here.

use std::sync::Arc;

use node::{Outcome, Waiter};

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
    /// Its next request waits for the end of CLIENT PAUSE.
    Paused,
    /// The main thread executes its queue. From here its slot is `Away`.
    OnMainThread,
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
            Outcome::MainThread => Self::OnMainThread,
            Outcome::Paused => Self::Paused,
        }
    }

    /// Whether nothing is read or executed for the client until something else happens.
    pub fn is_held(&self) -> bool {
        matches!(self, Self::Blocked(_) | Self::Paused | Self::OnMainThread)
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
