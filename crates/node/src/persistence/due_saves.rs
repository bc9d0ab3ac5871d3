//! When the next save is due, and whether writes are refused because the last one has failed.

use crate::config::Config;
use crate::state::node::Node;
use crate::state::refusals::Cause;
use crate::state::snapshots::Due;

/// After a save has failed, the next try follows after so many milliseconds, or after twice the
/// time that the last one took.
const RETRY_MS: i64 = 500;

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
            let retry_ms = RETRY_MS.max(2 * ended.took_ms);
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
