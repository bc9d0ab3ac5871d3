//! The lines of INFO PERSISTENCE about the append-only file.

use super::{Page, Snapshot};

/// Writes the lines that are always shown.
pub(super) fn write(snapshot: &Snapshot<'_>, page: &mut Page) {
    let figures = snapshot.node.append_only.lock().clone();
    let steady_ms = snapshot.worker.turn.steady_ms;
    let status = |ok| if ok { "ok" } else { "err" };
    let running = figures.rewrite_began_ms.map(|began| (steady_ms - began).max(0) / 1000);
    // A scheduled rewrite that waits for no other snapshot starts in a moment. It is shown as in
    // progress, so that a client that polls for its end does not take this moment for the end.
    let others_run = snapshot.node.snapshots.figures.lock().running.is_some();
    let begins = figures.is_rewrite_scheduled && !others_run;
    page.line("aof_enabled", u8::from(figures.is_enabled));
    page.line("aof_rewrite_in_progress", u8::from(running.is_some() || begins));
    page.line("aof_rewrite_scheduled", u8::from(figures.is_rewrite_scheduled && !begins));
    page.line("aof_last_rewrite_time_sec", figures.last_rewrite_seconds.unwrap_or(-1));
    page.line("aof_current_rewrite_time_sec", running.unwrap_or(-1));
    page.line("aof_last_bgrewrite_status", status(figures.is_last_rewrite_ok));
    page.line("aof_rewrites", figures.rewrites);
    page.line("aof_rewrites_consecutive_failures", figures.rewrites_failed_in_row);
    page.line("aof_last_write_status", status(figures.is_last_write_ok));
    page.line("aof_last_cow_size", figures.last_saved_bytes);
}

/// Writes the lines that are shown while the file is enabled.
pub(super) fn write_sizes(snapshot: &Snapshot<'_>, page: &mut Page) {
    let figures = snapshot.node.append_only.lock().clone();
    if !figures.is_enabled {
        return;
    }
    page.line("aof_current_size", figures.current_bytes);
    page.line("aof_base_size", figures.base_bytes);
    page.line("aof_pending_rewrite", u8::from(figures.is_rewrite_scheduled));
    // `buffered_bytes` is the last value that the log's thread published.
    let kept = snapshot.node.used_memory.kept_for_log();
    page.line("aof_buffer_length", figures.buffered_bytes.max(kept));
    page.line("aof_pending_bio_fsync", figures.pending_syncs);
    page.line("aof_delayed_fsync", figures.delayed_syncs);
}
