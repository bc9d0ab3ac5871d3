//! INFO PERSISTENCE: RDB files, the append-only file and loading.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::{InfoInput, InfoPage};
use crate::commands::footprint::percent;
use crate::state::snapshots::{Ended, Purpose, SnapshotFigures};

fn value(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

fn status(ended: Option<Ended>) -> &'static str {
    if ended.is_none_or(|ended| ended.is_ok) { "ok" } else { "err" }
}

fn seconds(ms: Option<i64>) -> i64 {
    ms.map_or(-1, |ms| ms / 1000)
}

pub(super) fn write(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let node = snapshot.node;
    let (figures, progress) = (node.snapshots.figures.lock().clone(), &node.snapshots.progress);
    page.line("loading", u8::from(node.is_loading()));
    page.zeros(&["async_loading"]);
    let is_running = figures.running.is_some();
    let while_running = |count: &AtomicU64| if is_running { value(count) } else { 0 };
    // There is no fork: these are the old versions of changed entries that are not written yet.
    page.line("current_cow_peak", while_running(&progress.saved_bytes_peak));
    page.line("current_cow_size", while_running(&progress.saved_bytes));
    page.zeros(&["current_cow_size_age"]);
    let (keys, keys_total) = (while_running(&progress.keys), while_running(&progress.keys_total));
    page.line("current_fork_perc", format_args!("{:.2}", percent(keys, keys_total)));
    page.line("current_save_keys_processed", keys);
    page.line("current_save_keys_total", keys_total);
    rdb(snapshot, &figures, page);
    append_only(snapshot, page);
    page.zeros(&["module_fork_in_progress", "module_fork_last_cow_size"]);
    append_only_sizes(snapshot, page);
    if node.is_loading() {
        loading(snapshot, page);
    }
}

fn rdb(snapshot: &InfoInput<'_>, figures: &SnapshotFigures, page: &mut InfoPage) {
    let running = |purpose| figures.running.filter(|running| running.purpose == purpose);
    let background = running(Purpose::Background);
    page.line("rdb_changes_since_last_save", snapshot.node.unsaved_changes());
    page.line("rdb_bgsave_in_progress", u8::from(background.is_some()));
    page.line("rdb_last_save_time", figures.last_save_unix);
    page.line("rdb_last_bgsave_status", status(figures.last_background));
    page.line(
        "rdb_last_bgsave_time_sec",
        seconds(figures.last_background.map(|ended| ended.took_ms)),
    );
    let now_ms = snapshot.worker.turn.steady_ms;
    page.line(
        "rdb_current_bgsave_time_sec",
        seconds(background.map(|running| now_ms - running.began_ms)),
    );
    page.line("rdb_saves", figures.saves - figures.saves_before);
    page.line("rdb_last_cow_size", figures.last_saved_bytes);
    let (loaded, expired) = figures.loaded;
    page.line("rdb_last_load_keys_expired", expired);
    page.line("rdb_last_load_keys_loaded", loaded);
    page.line("weft_backup_in_progress", u8::from(running(Purpose::Backup).is_some()));
    page.line("weft_last_backup_status", status(figures.last_backup));
    page.line("weft_backups", figures.backups);
}

fn loading(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let progress = &snapshot.node.snapshots.loading;
    let began = AtomicI64::load(&progress.began_unix, Ordering::Relaxed);
    let (bytes, total) = (value(&progress.bytes), value(&progress.bytes_total));
    let done = percent(bytes, total);
    let passed = snapshot.worker.turn.unix_ms.div_euclid(1000) - began;
    page.line("loading_start_time", began);
    page.line("loading_total_bytes", total);
    page.line("loading_rdb_used_mem", value(&progress.writer_used_bytes));
    page.line("loading_loaded_bytes", bytes);
    page.line("loading_loaded_perc", format_args!("{done:.2}"));
    let left = if done > 0.0 { passed as f64 * (100.0 - done) / done } else { 1.0 };
    page.line("loading_eta_seconds", left as i64);
    page.line("weft_loading_loaded_keys", value(&progress.keys));
}

/// Writes the lines that are always shown.
fn append_only(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
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
    page.line("aof_last_bgrewrite_status", status(!figures.has_last_rewrite_failed));
    page.line("aof_rewrites", figures.rewrites);
    page.line("aof_rewrites_consecutive_failures", figures.rewrites_failed_in_row);
    page.line("aof_last_write_status", status(!figures.has_last_write_failed));
    page.line("aof_last_cow_size", figures.last_saved_bytes);
}

/// Writes the lines that are shown while the file is enabled.
fn append_only_sizes(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
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
