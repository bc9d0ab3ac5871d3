//! What one thread asks of another. A client is never touched by a thread that does not own it.
//!
//! The type of clients is a parameter: the models in `tests/models` have clients without sockets.

/// A message to a thread's mailbox.
#[derive(Debug)]
pub enum Message<C> {
    /// Own this client from now on. The main thread gives it to another thread when there are
    /// others; only the main thread sends it to one of those.
    Adopt(C),
    /// Execute the queued requests of a client of another thread, and send it back. Only the main
    /// thread gets it.
    Execute(C, Origin),
    /// The client is back; it lives in this slot.
    Return(C, usize),
    /// Close the client with this number, if it is still in this slot.
    Close {
        /// Its number.
        id: u64,
        /// Where it was.
        slot: usize,
    },
    /// The wait of the client with this number for a key is over, if it is still in this slot.
    Wake {
        /// Its number.
        id: u64,
        /// Where it was.
        slot: usize,
    },
    /// Look again at clients that wait for the end of CLIENT PAUSE.
    PauseChanged,
    /// Give your clients to the threads that are there for them, and go on.
    Spread,
    /// There are more threads: give them your surplus of clients.
    Share,
    /// Hand all clients to other threads and end.
    Leave,
    /// The thread with this number has ended. Only the main thread gets it.
    Left(usize),
    /// Send what is left to send and end: the server is going down.
    ShutDown,
}

/// Where a client goes back to.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The thread that owns it.
    pub thread: usize,
    /// Its slot there.
    pub slot: usize,
}
