//! Threads that read and write files: their part of the memory in use.

use std::sync::Arc;

use node::Node;
use node::stats::used_memory::ThreadMemory;

use crate::threads::control::THREADS_MAX;

/// The thread that writes a snapshot.
pub const SAVE_THREAD: usize = THREADS_MAX;
/// The first of those that load.
pub const LOAD_THREADS: usize = THREADS_MAX + 1;

/// A thread's count of the memory that it has taken, until it is dropped.
pub struct CountedThread<'a> {
    node: &'a Node,
    own: Arc<ThreadMemory>,
}

impl<'a> CountedThread<'a> {
    /// The calling thread, which is the only one of this number.
    pub fn begin(node: &'a Node, number: usize) -> Self {
        Self { node, own: node.used_memory.of_thread(number) }
    }

    /// Lets others see what it has taken. The limit is that of memory, or 0.
    pub fn publish(&self) {
        self.node.used_memory.end_turn(&self.own, sys::allocator::thread_bytes(), 1);
    }
}

impl Drop for CountedThread<'_> {
    fn drop(&mut self) {
        self.node.used_memory.end_thread(&self.own, sys::allocator::thread_bytes());
    }
}
