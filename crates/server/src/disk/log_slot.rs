//! Which log there is, and which threads follow it.
//!
//! A log begins in two steps: it is [set](LogSlot::set), and every thread attaches to it when it
//! gets the message. From the moment when [all have](LogSlot::is_followed), all that is written is
//! appended. A thread that starts later attaches at once. Both steps are made by the main thread,
//! which starts threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::log_ring::LogRing;

/// The log of the process.
#[derive(Debug, Default)]
pub struct LogSlot {
    ring: RwLock<Option<Arc<LogRing>>>,
    /// The log that each thread has attached to, if any, by the numbers of both. A thread is here
    /// until it has ended: one that is to leave still executes what it has read.
    followers: Mutex<BTreeMap<usize, Option<u64>>>,
}

impl LogSlot {
    /// The log, if there is one.
    pub(crate) fn ring(&self) -> Option<Arc<LogRing>> {
        self.ring.read().clone()
    }

    /// Sets the log. Threads are to be told by `Message::FollowLog`.
    pub(crate) fn set(&self, ring: Option<Arc<LogRing>>) {
        *self.ring.write() = ring;
    }

    /// A thread has attached to a log, or to none if there is none: before it executes anything.
    pub(crate) fn followed(&self, thread: usize, ring: Option<&LogRing>) {
        self.followers.lock().insert(thread, ring.map(LogRing::number));
    }

    /// A thread has ended.
    pub(crate) fn ended(&self, thread: usize) {
        self.followers.lock().remove(&thread);
    }

    /// Whether all threads have attached to a log, which may not be set yet.
    pub(crate) fn is_followed(&self, ring: &LogRing) -> bool {
        self.followers.lock().values().all(|followed| *followed == Some(ring.number()))
    }

    /// Whether replies that are made now have to wait.
    pub(crate) fn holds(&self) -> bool {
        self.ring.read().as_ref().is_some_and(|ring| ring.hold().is_some())
    }
}
