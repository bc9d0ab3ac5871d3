//! How the log and the disk wake threads that serve clients, without knowing these threads.

/// Notifies the threads that serve clients. No call waits, and none is part of a request: threads
/// that write files make them.
pub(crate) trait ThreadNotifier: Send + Sync {
    /// There is a log, another one, or none: every thread attaches to it.
    fn log_replaced(&self);

    /// The log reached a position that a client of this thread waits for.
    fn log_advanced(&self, thread: usize);

    /// Replies that wait for the log may need to wait no longer, on any thread.
    fn log_failed(&self);

    /// The client with this number, in this slot of a thread, may take the shard that it waits for.
    fn shard_available(&self, thread: usize, slot: usize, client: u64);

    /// The wait of the client with this number, in this slot of a thread, is over.
    fn wait_ended(&self, thread: usize, slot: usize, client: u64);

    /// The main thread looks again at what it waits for.
    fn wake_main(&self);
}
