//! A thread's deliveries of published messages under way, and its clients that wait to publish.

use node::PendingClient;

/// Between two checks whether publishers may continue.
const LOOK_AGAIN_MS: i64 = 1;

#[derive(Debug, Default)]
pub(crate) struct Deliverer {
    /// More messages have arrived than were taken.
    pub(crate) has_more: bool,
    /// Clients of the round; reused.
    pub(super) ready: Vec<PendingClient>,
    /// Suspended clients that wait until they may publish.
    pub(super) publishers: Vec<usize>,
    /// How often full inboxes had had room again at the last check.
    pub(super) relieved: usize,
}

impl Deliverer {
    /// How long the thread may sleep before the next check. `None` if no client waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        (!self.publishers.is_empty()).then_some(LOOK_AGAIN_MS)
    }
}
