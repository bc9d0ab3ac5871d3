//! The table of metrics with one sample.

use std::sync::atomic::{AtomicU64, Ordering};

use super::MetricsInput;
use super::metric::{Metric, counter, gauge};
use super::page::MetricsPage;

fn loaded(count: &AtomicU64) -> f64 {
    count.load(Ordering::Relaxed) as f64
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[rustfmt::skip]
const METRICS: &[Metric<()>] = &[
    // The process, with the usual names.
    gauge("process_start_time_seconds", "Start of the process, as Unix time.",
        |s, ()| (s.time.unix_us / 1_000_000) as f64 - s.process.uptime_seconds as f64),
    counter("process_cpu_seconds_total", "User and system processor time.",
        |s, ()| s.process.cpu.0 + s.process.cpu.1),
    gauge("process_resident_memory_bytes", "Resident memory of the process.",
        |s, ()| s.process.rss_bytes as f64),
    gauge("weft_uptime_seconds", "Time since the start of the server.",
        |s, ()| s.process.uptime_seconds as f64),

    // Clients.
    gauge("weft_connected_clients", "Connected clients.", |s, ()| s.node.clients.len() as f64),
    gauge("weft_blocked_clients", "Clients blocked in a command.",
        |s, ()| s.node.waits.count() as f64),
    gauge("weft_tracking_clients", "Clients that use CLIENT TRACKING.",
        |s, ()| s.node.trackers.clients() as f64),
    gauge("weft_clients_max", "The limit maxclients.", |s, ()| f64::from(s.config.maxclients)),
    counter("weft_connections_received_total", "Accepted connections.",
        |s, ()| loaded(&s.node.connections_received)),
    counter("weft_connections_rejected_total", "Connections refused because of maxclients.",
        |s, ()| loaded(&s.node.connections_rejected)),
    counter("weft_clients_evicted_total",
        "Clients closed because of maxmemory-clients.",
        |s, ()| s.total.sums.evicted_clients as f64),
    counter("weft_clients_output_limit_closed_total",
        "Clients closed because of client-output-buffer-limit.",
        |s, ()| s.total.sums.output_limit_closes as f64),
    counter("weft_clients_query_limit_closed_total",
        "Clients closed because of client-query-buffer-limit.",
        |s, ()| s.total.sums.query_limit_closes as f64),

    // Work.
    counter("weft_network_received_bytes_total", "Bytes received from clients.",
        |s, ()| s.total.sums.in_bytes as f64),
    counter("weft_network_sent_bytes_total", "Bytes sent to clients.",
        |s, ()| s.total.sums.out_bytes as f64),
    counter("weft_error_replies_total", "Error replies.",
        |s, ()| s.total.sums.errors as f64),
    gauge("weft_slowlog_entries", "Entries in the slow log.",
        |s, ()| s.node.slowlog.lock().len() as f64),
    gauge("weft_threads", "Running threads that can serve clients, including the main thread.",
        |s, ()| s.process.threads_active as f64),
    gauge("weft_threads_carrying", "Threads that serve clients now.",
        // The main thread serves clients only without I/O threads.
        |s, ()| s.process.threads_carrying.saturating_sub(1).max(1) as f64),

    // Memory.
    gauge("weft_memory_used_bytes", "Memory in use.", |s, ()| s.process.used_bytes as f64),
    gauge("weft_memory_used_peak_bytes", "Highest use of memory.",
        |s, ()| s.process.used_peak_bytes.max(s.process.used_bytes) as f64),
    gauge("weft_memory_startup_bytes", "Memory in use at the start.",
        |s, ()| s.process.startup_bytes as f64),
    gauge("weft_memory_max_bytes", "The limit maxmemory; 0 means no limit.",
        |s, ()| s.config.eviction.maxmemory as f64),
    gauge("weft_memory_log_buffer_bytes", "Data that waits to be written to the append-only file.",
        |s, ()| s.node.used_memory.kept_for_log() as f64),
    gauge("weft_memory_system_bytes", "Memory of the machine.",
        |s, ()| s.process.system_memory_bytes as f64),
    gauge("weft_allocator_allocated_bytes", "Bytes in allocated blocks.",
        |s, ()| s.process.allocated_bytes as f64),
    gauge("weft_allocator_active_bytes", "Bytes in pages with allocated blocks.",
        |s, ()| s.process.active_bytes as f64),
    gauge("weft_allocator_resident_bytes", "Resident memory of the allocator.",
        |s, ()| s.process.resident_bytes as f64),
    gauge("weft_lazyfree_pending_values", "Values to be freed in the background.",
        |s, ()| loaded(&s.node.lazy_free_pending)),

    // Keys.
    counter("weft_keyspace_hits_total", "Reads of existing keys.",
        |s, ()| s.total.sums.hits as f64),
    counter("weft_keyspace_misses_total", "Reads of missing keys.",
        |s, ()| s.total.sums.misses as f64),
    counter("weft_keyspace_changes_total", "Changes of keys.", |s, ()| s.total.sums.changes as f64),
    counter("weft_keys_expired_total", "Expired keys.",
        |s, ()| s.total.sums.expired as f64),
    counter("weft_hash_fields_expired_total", "Expired fields of hashes.",
        |s, ()| s.total.sums.expired_fields as f64),
    counter("weft_keys_evicted_total", "Keys evicted because of maxmemory.",
        |s, ()| s.total.sums.evicted as f64),
    counter("weft_eviction_behind_seconds_total",
        "Time in which memory exceeded maxmemory despite evictions.",
        |s, ()| s.node.eviction.behind_ms(s.time.steady_ms).0 as f64 / 1000.0),

    // Persistence.
    gauge("weft_loading", "1 while keys are loaded.", |s, ()| flag(s.node.is_loading())),
    gauge("weft_writes_refused",
        "1 while writes are refused because they could not be persisted.",
        |s, ()| flag(s.node.refusals.any())),
    gauge("weft_rdb_changes_since_save", "Changes of keys since the last save.",
        |s, ()| s.node.changes().saturating_sub(s.snapshots.saved_changes) as f64),
    gauge("weft_rdb_last_save_timestamp_seconds",
        "Last successful save or start of the server, as Unix time.",
        |s, ()| s.snapshots.last_save_unix as f64),
    gauge("weft_rdb_last_save_success", "1 unless the last background save failed.",
        |s, ()| flag(!s.snapshots.has_failed())),
    gauge("weft_rdb_last_save_duration_seconds", "Duration of the last background save.",
        |s, ()| s.snapshots.last_background.map_or(0.0, |ended| ended.took_ms as f64 / 1000.0)),
    gauge("weft_rdb_save_in_progress", "1 while an RDB file is written.",
        |s, ()| flag(s.snapshots.running.is_some())),
    counter("weft_rdb_saves_total", "Started saves.", |s, ()| s.snapshots.saves as f64),
    gauge("weft_aof_enabled", "1 if the append-only file is enabled.",
        |s, ()| flag(s.append_only.is_enabled)),
    gauge("weft_aof_last_write_success", "1 unless the last write to the append-only file failed.",
        |s, ()| flag(!s.append_only.has_last_write_failed)),
    gauge("weft_aof_last_rewrite_success",
        "1 unless the last rewrite of the append-only file failed.",
        |s, ()| flag(!s.append_only.has_last_rewrite_failed)),
    gauge("weft_aof_rewrite_in_progress", "1 while the append-only file is rewritten.",
        |s, ()| flag(s.append_only.rewrite_began_ms.is_some())),
    counter("weft_aof_rewrites_total", "Started rewrites of the append-only file.",
        |s, ()| s.append_only.rewrites as f64),
    gauge("weft_aof_size_bytes", "Size of all files of the append-only file.",
        |s, ()| s.append_only.current_bytes as f64),
    gauge("weft_aof_base_size_bytes", "Size of the append-only file after the last rewrite.",
        |s, ()| s.append_only.base_bytes as f64),
    counter("weft_aof_delayed_fsyncs_total",
        "Syncs that were delayed by an earlier sync.",
        |s, ()| s.append_only.delayed_syncs as f64),
];

/// Writes all metrics of the table.
pub(super) fn write(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    for metric in METRICS {
        let mut family = page.family(metric.name, metric.kind, metric.help);
        family.sample(&[], (metric.value)(snapshot, &()));
    }
}
