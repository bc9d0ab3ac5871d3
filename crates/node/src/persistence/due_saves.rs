//! When the next save is due, and whether writes are refused because the last one has failed.

use crate::config::Config;
use crate::state::node::Node;
use crate::state::refusals::Cause;
use crate::state::snapshots::Due;

/// After a save has failed, the next one follows after so many milliseconds, as in Redis, and after
/// each further failure twice as many, up to the maximum: a disk that is full stays so for a while.
const RETRY_MS: i64 = 5000;
const RETRY_MS_MAX: i64 = 30_000;

/// The error for writes while saves fail, in Redis's words: clients look for them.
const NOT_SAVED: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently \
    unable to persist to disk. Commands that may modify the data set are disabled, because this \
    instance is configured to report errors during writes if RDB snapshotting fails \
    (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
    error.";

impl Node {
    /// Starts or stops refusing writes, as the configuration and the last save ask for.
    pub fn follow_saves(&self, config: &Config) {
        let saving = &config.saving;
        let refuses = saving.stop_writes_on_bgsave_error
            && !saving.save.is_empty()
            && self.snapshots.figures.lock().has_failed();
        self.refuse_writes(Cause::Snapshot, refuses.then(|| NOT_SAVED.to_owned()));
    }

    /// Changes of the keyspace since the last save.
    pub fn unsaved_changes(&self) -> u64 {
        self.changes().saturating_sub(self.snapshots.figures.lock().saved_changes)
    }

    /// Why a save is due now, if it is: a point of `save`, a save that had to wait, or a new try.
    pub fn due_save(&self, config: &Config, unix_seconds: i64, steady_ms: i64) -> Option<Due> {
        let changes = self.changes();
        let figures = self.snapshots.figures.lock();
        if figures.running.is_some() || self.is_loading() {
            return None;
        }
        if let Some(ended) = figures.last_background.filter(|ended| !ended.is_ok) {
            let doublings = figures.failed_in_row.saturating_sub(1).min(8);
            let retry_ms = (RETRY_MS << doublings).min(RETRY_MS_MAX);
            let is_wanted = !config.saving.save.is_empty() || figures.is_scheduled;
            return (is_wanted && steady_ms - ended.at_ms >= retry_ms).then_some(Due::Again);
        }
        if figures.is_scheduled {
            return Some(Due::Scheduled);
        }
        let changes = changes.saturating_sub(figures.saved_changes);
        let seconds = unix_seconds - figures.last_save_unix;
        let point = config.saving.save.iter().find(|point| {
            changes >= u64::from(point.changes) && seconds > i64::from(point.seconds)
        });
        point.map(|point| Due::Point { changes: point.changes, seconds: point.seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::snapshots::Ended;

    #[test]
    fn saves_that_fail_are_tried_again_less_and_less_often() {
        let config = Config::default();
        let node = Node::new(config.clone(), 1, 1);
        let due = |at_ms| node.due_save(&config, 0, at_ms);
        let fail = |at_ms, took_ms| {
            let mut figures = node.snapshots.figures.lock();
            figures.last_background = Some(Ended { is_ok: false, took_ms, at_ms });
            figures.failed_in_row += 1;
        };
        for (took_ms, pause_ms) in
            [(1, 5000), (1, 10_000), (1, 20_000), (1, 30_000), (1, 30_000), (40_000, 30_000)]
        {
            fail(1000, took_ms);
            assert_eq!(due(1000 + pause_ms - 1), None, "{pause_ms}");
            assert_eq!(due(1000 + pause_ms), Some(Due::Again), "{pause_ms}");
        }
        let mut figures = node.snapshots.figures.lock();
        (figures.failed_in_row, figures.last_background) = (0, None);
        drop(figures);
        fail(0, 1);
        assert_eq!(due(5000), Some(Due::Again));
        // One that is given up meanwhile defers nothing.
        let given_up = Ended { is_ok: false, took_ms: 1, at_ms: 4000 };
        node.snapshots.figures.lock().end_background(given_up, true);
        assert_eq!(due(5000), Some(Due::Again));
    }
}
