//! The keyspace with all that a thread needs to work on it: the state of the server, the shards,
//! and the gate.

use std::sync::Arc;

use node::Node;
use sync::gate::{Gate, Pass};

use super::gate_passes::{PASSES_MAX, SNAPSHOT_PASS};
use super::shard_locks::{ServesOthers, ThreadShards};
use super::shards::Shards;
use super::thread_waits::ThreadWaits;
use crate::system::thread_notifier::ThreadNotifier;

/// The state shared by all threads that read or change keys, whether they serve clients or files.
pub(crate) struct SharedKeyspace {
    /// The state of the server as Redis knows it.
    pub(crate) node: Arc<Node>,
    pub(crate) shards: Shards,
    /// Every thread enters it before it executes.
    pub(crate) gate: Gate,
    /// Wakes the threads that serve clients.
    pub(crate) threads: Arc<dyn ThreadNotifier>,
}

impl SharedKeyspace {
    /// A keyspace without keys, of so many shards.
    pub(crate) fn new(node: Arc<Node>, shards: usize, threads: Arc<dyn ThreadNotifier>) -> Self {
        Self { node, shards: Shards::new(shards), gate: Gate::new(PASSES_MAX), threads }
    }

    /// The shards as a thread sees them that enters the gate by its pass; see
    /// [`ThreadShards::enter`].
    #[inline]
    pub(crate) fn enter<'a>(
        &'a self,
        pass: Option<&'a Pass>,
        others: &'a dyn ServesOthers,
    ) -> ThreadShards<'a> {
        ThreadShards::enter(&self.shards, pass, &self.node.scripting.busy, others)
    }

    /// Whether a snapshot is being taken, so that no other can begin.
    pub(crate) fn is_snapshot_running(&self) -> bool {
        self.gate.register_as(SNAPSHOT_PASS).is_none()
    }

    /// Wakes the clients that may take the shards which a thread has released. The thread is
    /// outside the gate.
    #[inline]
    pub(crate) fn wake_called(&self, waits: &ThreadWaits) {
        if waits.has_calls() {
            for call in waits.take_calls() {
                self.threads.shard_available(call.owner.thread, call.owner.slot, call.client);
            }
        }
    }
}
