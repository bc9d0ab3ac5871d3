//! A thread's deliveries of published messages under way, and its clients that wait to publish.

use node::PendingClient;

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
    /// The threads with full inboxes for which publishers wait.
    pub(super) stalls: Stalls,
}

/// How long a thread with a full inbox has not looked into it: a slow command, a save or a move
/// keeps it. Longer than the first, publishers do not wait for it as long as its clients are far
/// from their limits. Longer than the second, they do not wait for it at all: it is one slow
/// command and not several with messages written between them.
const STALLED_MS: i64 = 5;
const LONG_STALLED_MS: i64 = 1000;

/// The stall of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    Short,
    Long,
}

/// When each thread with a full inbox was last known to look into it.
#[derive(Debug, Default)]
pub(super) struct Stalls(Vec<LastRound>);

/// The number of a thread's last look into its inbox, known since then.
#[derive(Debug)]
struct LastRound {
    thread: usize,
    round: usize,
    since_ms: i64,
}

impl Stalls {
    /// Forgets all threads: they have not been observed meanwhile.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Observes the threads with full inboxes, each with the number of its last look into it.
    /// Returns those that are stalled.
    pub(super) fn look(
        &mut self,
        full: impl Iterator<Item = (usize, usize)>,
        now_ms: i64,
    ) -> Vec<(usize, Stall)> {
        let before = std::mem::take(&mut self.0);
        let mut stalled = Vec::new();
        for (thread, round) in full {
            let mut known =
                before.iter().filter(|last| (last.thread, last.round) == (thread, round));
            let since_ms = known.next().map_or(now_ms, |last| last.since_ms);
            match now_ms - since_ms {
                LONG_STALLED_MS.. => stalled.push((thread, Stall::Long)),
                STALLED_MS.. => stalled.push((thread, Stall::Short)),
                _ => {}
            }
            self.0.push(LastRound { thread, round, since_ms });
        }
        stalled
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
    use super::*;

    #[test]
    fn a_thread_that_does_not_look_into_its_inbox_is_stalled() {
        let mut stalls = Stalls::default();
        let mut look = |full: &[(usize, usize)], now_ms| stalls.look(full.iter().copied(), now_ms);
        assert!(look(&[(1, 7)], 1000).is_empty());
        assert!(look(&[(1, 7)], 1000 + STALLED_MS - 1).is_empty());
        assert_eq!(look(&[(1, 7)], 1000 + STALLED_MS), [(1, Stall::Short)]);
        // Another thread begins later, while the first one is full at each look.
        assert_eq!(look(&[(1, 7), (3, 1)], 1500), [(1, Stall::Short)]);
        let both = [(1, Stall::Short), (3, Stall::Short)];
        assert_eq!(look(&[(1, 7), (3, 1)], 1500 + STALLED_MS), both);
        let long = [(1, Stall::Long), (3, Stall::Short)];
        assert_eq!(look(&[(1, 7), (3, 1)], 1000 + LONG_STALLED_MS), long);
        // The first one has looked.
        assert_eq!(look(&[(1, 8), (3, 1)], 2010), [(3, Stall::Short)]);
        // The third one had room meanwhile.
        assert!(look(&[], 2011).is_empty());
        assert!(look(&[(1, 8), (3, 1)], 2012).is_empty());
    }
}
