//! What one thread asks of another. A client is never touched by a thread that does not own it.
//!
//! A client changes threads in two ways: it is *moved* to another thread for good, or *lent* to the
//! main thread for what only that one executes, and returned.
//!
//! The type of clients is a parameter: the models in `tests/models` have clients without sockets.

/// A message to a thread's mailbox.
#[derive(Debug)]
pub enum Message<C> {
    /// A client moves here. The main thread passes it to one of the other threads, if there are
    /// any; only the main thread sends it to one of those.
    Move(C),
    /// A client is lent: execute its queued requests and return it. Only the main thread gets it.
    MoveToMain(C, Origin),
    /// A lent client is back; it lives in this slot.
    Return(C, usize),
    /// Close the client with this number, if it is still in this slot.
    Close {
        /// Its number.
        id: u64,
        /// Where it was.
        slot: usize,
    },
    /// The wait of the client with this number for a key is over, or it may take the shard that it
    /// waits for, if it is still in this slot.
    Wake {
        /// Its number.
        id: u64,
        /// Where it was.
        slot: usize,
    },
    /// CLIENT PAUSE began or ended.
    PauseChanged,
    /// A signal asks for the end of the server. Only the main thread gets it.
    Signalled,
    /// There is a log, another one, or none any more.
    FollowLog,
    /// The log has come to where some of the thread's clients wait for it.
    LogReached,
    /// Move all clients to the threads that take clients, and go on.
    MoveAll,
    /// There are more threads: move the surplus of clients.
    MoveSurplus,
    /// Move all clients, those that are still away too, and go on without any.
    Park,
    /// Clients come again.
    Resume,
    /// Move all clients and end.
    Leave,
    /// The thread with this number has ended. Only the main thread gets it.
    Left(usize),
    /// Send what is left to send and end: the server is going down.
    ShutDown,
}

/// Where a lent client is returned to.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The thread that owns it.
    pub thread: usize,
    /// Its slot there.
    pub slot: usize,
}
