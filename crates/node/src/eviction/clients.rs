//! Closing the clients that take the most memory, while all together take more than
//! `maxmemory-clients`.

use std::sync::Arc;

use crate::clients::record::ClientRecord;
use crate::execution::worker::Worker;

/// Milliseconds between two warnings that no more client may be closed.
const WARNING_MS: i64 = 10_000;

impl Worker {
    /// Counts the memory of a client after work for it, if that is limited.
    #[inline]
    pub fn count_client(&self, record: &Arc<ClientRecord>) {
        if self.clients_bytes_max != 0 {
            self.node.client_memory.count(self.index, record);
        }
    }

    /// Forgets a closed client. Another thread may have learned of a new limit already, and count
    /// it.
    pub fn forget_client(&self, record: &ClientRecord) {
        self.node.client_memory.forget(self.index, record, true);
    }

    /// Whether there is a limit.
    #[inline]
    pub fn limits_clients(&self) -> bool {
        self.clients_bytes_max != 0
    }

    /// Whether clients take more than they may.
    #[inline]
    pub fn has_too_large_clients(&self) -> bool {
        self.clients_bytes_max != 0 && self.is_over_client_limit()
    }

    fn is_over_client_limit(&self) -> bool {
        self.node.client_memory.total() > self.clients_bytes_max
    }

    /// Chooses the largest clients until the others take less than the limit, and calls `close`
    /// for each. Returns whether to warn, because the rest may not be closed.
    pub fn evict_clients(&self, mut close: impl FnMut(&Arc<ClientRecord>)) -> bool {
        let memory = &self.node.client_memory;
        // Otherwise another thread does it.
        let Some(mut warned_ms) = memory.closing.try_lock() else { return false };
        while self.is_over_client_limit() {
            let Some(record) = memory.take_largest(self.index) else {
                let steady_ms = self.turn.steady_ms;
                let warns = steady_ms.saturating_sub(*warned_ms) >= WARNING_MS;
                if warns {
                    *warned_ms = steady_ms;
                }
                return warns;
            };
            if self.node.kill(&record) {
                self.stats.evicted_clients.add(1);
                close(&record);
            }
        }
        false
    }
}
