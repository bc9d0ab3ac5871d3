//! What came of a request.
//!
//! On the way back of a request: the `Executor` makes it, `server::threads::execute` turns it into
//! the client's state.

use std::sync::Arc;

use crate::blocking::Waiter;

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
    /// It was not executed, because only the main thread may.
    MainThread,
    /// It was not executed, because CLIENT PAUSE holds it back.
    Paused,
}
