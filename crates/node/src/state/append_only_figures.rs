//! The state of the append-only file for INFO. The thread that writes the file keeps it up to date.

/// The state of the append-only file as INFO shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendOnlyFigures {
    /// It is written, or about to be: its first base is being written.
    pub is_enabled: bool,
    /// It has no base yet, and has not failed to get one.
    pub awaits_first_base: bool,
    /// When the rewrite began that is in progress, in milliseconds on the steady scale.
    pub rewrite_began_ms: Option<i64>,
    /// A rewrite follows as soon as one can.
    pub is_rewrite_scheduled: bool,
    /// Rewrites that BGREWRITEAOF has asked for. They are shown until the thread that writes knows
    /// of them.
    pub asked: u64,
    /// Seconds that the last rewrite took.
    pub last_rewrite_seconds: Option<i64>,
    /// Whether the last rewrite failed.
    pub has_last_rewrite_failed: bool,
    /// Rewrites that were begun.
    pub rewrites: u64,
    /// Rewrites that have failed since the last one that did not.
    pub rewrites_failed_in_row: u64,
    /// Whether the last write failed.
    pub has_last_write_failed: bool,
    /// Bytes of old state that the last rewrite had to save before they were changed.
    pub last_saved_bytes: u64,
    /// Bytes of all files that are loaded.
    pub current_bytes: u64,
    /// The same when the last rewrite was over, or at start.
    pub base_bytes: u64,
    /// Bytes that wait to be written.
    pub buffered_bytes: u64,
    /// Syncs on their way.
    pub pending_syncs: u64,
    /// Times that a sync was due while another one was on its way.
    pub delayed_syncs: u64,
}
