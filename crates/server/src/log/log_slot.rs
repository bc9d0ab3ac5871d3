//! Which log there is, and which threads follow it.
//!
//! A log begins in two steps: it is [set](LogSlot::set), and every thread attaches to it when it
//! gets the message. From the moment when [all have](LogSlot::is_followed), all that is written is
//! appended. A thread that starts later attaches at once. Both steps are made by the main thread,
//! which starts threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use node::Node;
use parking_lot::{Mutex, RwLock};

use super::ring::LogRing;
use crate::system::thread_notifier::ThreadNotifier;

/// The log of the process.
pub(crate) struct LogSlot {
    /// Where the memory of units is counted that do not fit the ring.
    pub(super) node: Arc<Node>,
    /// Wakes the threads that append to the log.
    pub(super) threads: Arc<dyn ThreadNotifier>,
    ring: RwLock<Option<Arc<LogRing>>>,
    /// The log that each thread has attached to, if any, by the numbers of both. A thread is here
    /// until it has ended: a thread that leaves still executes the requests that it has read.
    followers: Mutex<BTreeMap<usize, Option<u64>>>,
}

impl LogSlot {
    /// No log.
    pub(crate) fn new(node: Arc<Node>, threads: Arc<dyn ThreadNotifier>) -> Self {
        Self { node, threads, ring: RwLock::default(), followers: Mutex::default() }
    }

    pub(crate) fn ring(&self) -> Option<Arc<LogRing>> {
        self.ring.read().clone()
    }

    /// Sets the log, or that there is none, and notifies all threads, which then attach to it;
    /// [`is_followed`](Self::is_followed) says when all have. For the main thread.
    pub(crate) fn set(&self, ring: Option<Arc<LogRing>>) {
        if let Some(ring) = &ring {
            ring.count_for(&self.node);
        }
        *self.ring.write() = ring;
        self.threads.log_replaced();
    }

    /// A thread has attached to a log, or to none if there is none: before it executes anything.
    pub(crate) fn followed(&self, thread: usize, ring: Option<&LogRing>) {
        self.followers.lock().insert(thread, ring.map(LogRing::number));
    }

    pub(crate) fn ended(&self, thread: usize) {
        self.followers.lock().remove(&thread);
    }

    /// Whether all threads have attached to a log, which may not be set yet.
    pub(crate) fn is_followed(&self, ring: &LogRing) -> bool {
        self.followers.lock().values().all(|followed| *followed == Some(ring.number()))
    }

    /// Whether replies that are made now have to wait.
    pub(crate) fn replies_wait(&self) -> bool {
        self.ring.read().as_ref().is_some_and(|ring| ring.replies_wait_for().is_some())
    }
}
