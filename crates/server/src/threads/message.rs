//! Messages between threads. A client is never touched by a thread that does not own it.
//!
//! A client changes threads in two ways: it *moves* to another thread for good, or it moves to the
//! main thread for the requests that only that thread may execute, and returns.
//!
//! The type of clients is a parameter: the models in `tests/models` have clients without sockets.

#[derive(Debug)]
pub enum Message<C> {
    /// A client moves here. The main thread passes it to one of the other threads, if there are
    /// any; only the main thread sends it to one of those.
    Move(C),
    /// A client comes to the main thread, which executes its queued requests and returns it.
    MoveToMain(C, ReturnAddress),
    /// A client returns from the main thread; it lives in this slot.
    Return(C, usize),
    /// Close the client with this number, if it is still in this slot.
    Close { id: u64, slot: usize },
    /// The wait of the client with this number for a key is over, or it may take the shard that it
    /// waits for, if it is still in this slot.
    Wake { id: u64, slot: usize },
    /// CLIENT PAUSE began or ended.
    PauseChanged,
    /// A signal asks for the end of the server. Only the main thread gets it.
    Signalled,
    /// There is a log, another one, or none.
    FollowLog,
    /// The log reached a position that some of the thread's clients wait for.
    LogReached,
    /// Move all clients to the active threads, and continue.
    MoveAll,
    /// There are more threads: move the surplus of clients.
    MoveSurplus,
    /// Move all clients, later including those that are on the main thread, and continue without
    /// clients.
    Park,
    /// Clients come again.
    Resume,
    /// Move all clients and end.
    Leave,
    /// The thread with this number has ended. Only the main thread gets it.
    Left(usize),
    /// Send the pending output and end: the server shuts down.
    ShutDown,
}

/// Where a client returns to from the main thread.
#[derive(Clone, Copy, Debug)]
pub struct ReturnAddress {
    pub thread: usize,
    pub slot: usize,
}
