//! Threads that read and write files: their part of the memory in use.
//!
//! Such a thread frees memory that others have taken, or the other way round, so the sum is right
//! only if all of them are part of it, from start to end. A thread that serves clients is counted
//! already, and loads with its own part.

use std::sync::Arc;

use node::Node;
use node::stats::used_memory::ThreadMemory;

/// The part of the calling thread in the memory in use.
#[derive(Debug)]
pub struct CountedThread<'a> {
    node: &'a Node,
    own: Arc<ThreadMemory>,
    /// The thread is counted only while this lives.
    is_other: bool,
}

impl<'a> CountedThread<'a> {
    /// Does the work of a thread that begins, and counts it.
    pub fn run<T>(node: &'a Node, work: impl FnOnce(&Self) -> T) -> T {
        sys::crash::protect_thread();
        sys::crash::block_report_signals();
        let thread = Self { node, own: node.used_memory.of_other(), is_other: true };
        work(&thread)
    }

    /// The calling thread, which is counted as the main thread is.
    pub fn main(node: &'a Node) -> Self {
        Self { node, own: node.used_memory.of_thread(0), is_other: false }
    }

    /// The server that it works for.
    pub fn node(&self) -> &'a Node {
        self.node
    }

    /// Its part, for code on this thread that reads the sum.
    pub fn own(&self) -> &Arc<ThreadMemory> {
        &self.own
    }

    /// Publishes the memory that it has taken.
    pub fn publish(&self) {
        // A limit that is not 0 has all of it shared.
        self.node.used_memory.end_turn(&self.own, sys::allocator::thread_bytes(), 1);
    }
}

impl Drop for CountedThread<'_> {
    fn drop(&mut self) {
        if self.is_other {
            let used = &self.node.used_memory;
            let bytes = sys::allocator::thread_bytes();
            sys::thread_end::count_rest(bytes);
            used.end_other(Arc::clone(&self.own), bytes);
        }
    }
}
