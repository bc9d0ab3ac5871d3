//! A thread's deliveries of published messages under way, and its clients that wait to publish.

use node::PendingClient;

/// Between two looks whether those who publish may go on.
const LOOK_AGAIN_MS: i64 = 1;

/// A thread's deliveries under way.
#[derive(Debug, Default)]
pub(crate) struct Deliverer {
    /// More has come than was taken in.
    pub(crate) has_more: bool,
    /// Clients of the round; reused.
    pub(super) ready: Vec<PendingClient>,
    /// Clients that are held until they may publish.
    pub(super) publishers: Vec<usize>,
    /// How often threads had had room again when these were last looked at.
    pub(super) relieved: usize,
}

impl Deliverer {
    /// How long the thread may sleep before it looks again. None: nobody waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        (!self.publishers.is_empty()).then_some(LOOK_AGAIN_MS)
    }
}
