//! A thread's deliveries of published messages under way, and its clients that wait to publish.

use node::PendingClient;
use sync::gate::GracePeriod;

/// Between two checks whether publishers may continue.
const LOOK_AGAIN_MS: i64 = 1;

#[derive(Debug, Default)]
pub(crate) struct Deliverer {
    /// More messages have arrived than were taken.
    pub(crate) has_more: bool,
    /// Clients had more messages than one turn writes.
    pub(super) has_unwritten: bool,
    /// Clients of the round; reused.
    pub(super) ready: Vec<PendingClient>,
    /// Clients of the round with more messages; reused.
    pub(super) unfinished: Vec<PendingClient>,
    /// Suspended clients that wait until they may publish.
    pub(super) publishers: Vec<usize>,
    /// How often full inboxes had had room again at the last check.
    pub(super) relieved: usize,
    /// Since when threads with full inboxes have been observed.
    pub(super) watch: Option<StallWatch>,
}

/// The commands that threads ran at a moment when publishers waited for them.
#[derive(Debug)]
pub(super) struct StallWatch {
    since_ms: i64,
    commands: GracePeriod,
}

/// A thread that has been in one command for so long is not waited for.
const STALLED_MS: i64 = 5;

impl StallWatch {
    pub(super) fn begin(now_ms: i64, commands: GracePeriod) -> Self {
        Self { since_ms: now_ms, commands }
    }

    /// Whether threads have been observed for long enough.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        now_ms - self.since_ms >= STALLED_MS
    }

    /// Whether a thread has been in the same command for long.
    pub(super) fn is_stalled(&mut self, thread: usize, now_ms: i64) -> bool {
        let is_other = |other| other != thread;
        self.is_due(now_ms) && !self.commands.is_over_but_for(is_other, true)
    }
}

impl Deliverer {
    /// How long the thread may sleep before the next check. `None` if no client waits.
    pub(crate) fn wait_ms(&self) -> Option<i64> {
        (!self.publishers.is_empty()).then_some(LOOK_AGAIN_MS)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use sync::gate::Gate;

    use super::*;

    #[test]
    fn a_thread_in_one_command_is_stalled() {
        let gate = Gate::new(2);
        let (own, other) = (gate.register_as(0).unwrap(), gate.register_as(1).unwrap());
        let begin = |now_ms| StallWatch::begin(now_ms, own.grace_period());
        assert!(!begin(0).is_stalled(1, 1000), "it executes nothing");
        other.enter();
        let mut watch = begin(1000);
        assert!(!watch.is_stalled(1, 1000 + STALLED_MS - 1) && !watch.is_due(1001));
        assert!(watch.is_stalled(1, 1000 + STALLED_MS) && watch.is_due(1000 + STALLED_MS));
        assert!(!watch.is_stalled(0, 2000));
        other.leave();
        other.enter();
        assert!(!watch.is_stalled(1, 3000), "another command");
        other.leave();
    }
}
