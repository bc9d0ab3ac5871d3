//! Metrics of one value each: a table.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Snapshot;
use super::page::{Kind, Page};

/// One metric.
struct Metric {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    value: fn(&Snapshot<'_>) -> f64,
}

const fn counter(
    name: &'static str,
    help: &'static str,
    value: fn(&Snapshot<'_>) -> f64,
) -> Metric {
    Metric { name, kind: Kind::Counter, help, value }
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&Snapshot<'_>) -> f64) -> Metric {
    Metric { name, kind: Kind::Gauge, help, value }
}

fn loaded(count: &AtomicU64) -> f64 {
    count.load(Ordering::Relaxed) as f64
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[rustfmt::skip]
const METRICS: &[Metric] = &[
    // The process, by the names that are usual for all programs.
    gauge("process_start_time_seconds", "When the process started, in seconds since 1970.",
        |s| (s.time.unix_us / 1_000_000) as f64 - s.process.uptime_seconds as f64),
    counter("process_cpu_seconds_total", "User and system time of the process.",
        |s| s.process.cpu.0 + s.process.cpu.1),
    gauge("process_resident_memory_bytes", "Memory of the process, as the kernel sees it.",
        |s| s.process.rss_bytes as f64),
    gauge("weft_uptime_seconds", "Time since the server started.",
        |s| s.process.uptime_seconds as f64),

    // Clients.
    gauge("weft_connected_clients", "Clients connected.", |s| s.node.clients.len() as f64),
    gauge("weft_blocked_clients", "Clients that wait in a blocking command.",
        |s| s.node.waits.count() as f64),
    gauge("weft_tracking_clients", "Clients that cache keys.",
        |s| s.node.trackers.clients() as f64),
    gauge("weft_clients_max", "maxclients.", |s| f64::from(s.config.maxclients)),
    counter("weft_connections_received_total", "Connections accepted.",
        |s| loaded(&s.node.connections_received)),
    counter("weft_connections_rejected_total", "Connections refused, beyond maxclients.",
        |s| loaded(&s.node.connections_rejected)),
    counter("weft_clients_evicted_total",
        "Clients closed because all of them took more than maxmemory-clients.",
        |s| s.total.sums.evicted_clients as f64),
    counter("weft_clients_output_limit_closed_total",
        "Clients closed because their unsent replies were over the limit.",
        |s| s.total.sums.output_limit_closes as f64),
    counter("weft_clients_query_limit_closed_total",
        "Clients closed because their unfinished requests were over the limit.",
        |s| s.total.sums.query_limit_closes as f64),

    // Work.
    counter("weft_network_received_bytes_total", "Bytes received from clients.",
        |s| s.total.sums.in_bytes as f64),
    counter("weft_network_sent_bytes_total", "Bytes sent to clients.",
        |s| s.total.sums.out_bytes as f64),
    counter("weft_error_replies_total", "Replies that were errors.",
        |s| s.total.sums.errors as f64),
    gauge("weft_slowlog_entries", "Commands in the slow log.",
        |s| s.node.slowlog.lock().len() as f64),
    gauge("weft_threads", "Threads that run, the main thread included.",
        |s| s.process.threads_active as f64),
    gauge("weft_threads_carrying", "Threads that take clients.",
        // The main thread takes them only when it is alone.
        |s| s.process.threads_carrying.saturating_sub(1).max(1) as f64),

    // Memory.
    gauge("weft_memory_used_bytes", "Memory in use.", |s| s.process.used_bytes as f64),
    gauge("weft_memory_used_peak_bytes", "The most memory that has been in use.",
        |s| s.process.used_peak_bytes.max(s.process.used_bytes) as f64),
    gauge("weft_memory_startup_bytes", "Memory in use when the server was empty.",
        |s| s.process.startup_bytes as f64),
    gauge("weft_memory_max_bytes", "maxmemory; 0 without a limit.",
        |s| s.config.eviction.maxmemory as f64),
    gauge("weft_memory_log_buffer_bytes", "What waits to be written to the append-only file.",
        |s| s.node.used_memory.kept_for_log() as f64),
    gauge("weft_memory_system_bytes", "Memory of the machine.",
        |s| s.process.system_memory_bytes as f64),
    gauge("weft_allocator_allocated_bytes", "What the allocator has handed out.",
        |s| s.process.allocated_bytes as f64),
    gauge("weft_allocator_active_bytes", "Pages with blocks that are in use.",
        |s| s.process.active_bytes as f64),
    gauge("weft_allocator_resident_bytes", "What the allocator has in memory.",
        |s| s.process.resident_bytes as f64),
    gauge("weft_lazyfree_pending_values", "Values that wait to be freed in the background.",
        |s| loaded(&s.node.lazy_free_pending)),

    // Keys.
    counter("weft_keyspace_hits_total", "Reads of keys that were there.",
        |s| s.total.sums.hits as f64),
    counter("weft_keyspace_misses_total", "Reads of keys that were not there.",
        |s| s.total.sums.misses as f64),
    counter("weft_keyspace_changes_total", "Changes of keys.", |s| s.total.sums.changes as f64),
    counter("weft_keys_expired_total", "Keys that have expired.",
        |s| s.total.sums.expired as f64),
    counter("weft_hash_fields_expired_total", "Fields of hashes that have expired.",
        |s| s.total.sums.expired_fields as f64),
    counter("weft_keys_evicted_total", "Keys evicted to keep to maxmemory.",
        |s| s.total.sums.evicted as f64),
    counter("weft_eviction_behind_seconds_total",
        "Time in which memory was over maxmemory in spite of evictions.",
        |s| s.node.eviction.behind_ms(s.time.steady_ms).0 as f64 / 1000.0),

    // Persistence.
    gauge("weft_loading", "1 while keys are being loaded.", |s| flag(s.node.is_loading())),
    gauge("weft_writes_refused",
        "1 while commands that change keys are refused, because they could not be kept.",
        |s| flag(s.node.refusals.any())),
    gauge("weft_rdb_changes_since_save", "Changes of keys since the last save.",
        |s| s.node.changes().saturating_sub(s.snapshots.saved_changes) as f64),
    gauge("weft_rdb_last_save_timestamp_seconds",
        "When the last save succeeded, or the server started, in seconds since 1970.",
        |s| s.snapshots.last_save_unix as f64),
    gauge("weft_rdb_last_save_success", "1 unless the last save in the background failed.",
        |s| flag(!s.snapshots.has_failed())),
    gauge("weft_rdb_last_save_duration_seconds", "How long the last save in the background took.",
        |s| s.snapshots.last_background.map_or(0.0, |ended| ended.took_ms as f64 / 1000.0)),
    gauge("weft_rdb_save_in_progress", "1 while a snapshot is written.",
        |s| flag(s.snapshots.running.is_some())),
    counter("weft_rdb_saves_total", "Saves that have begun.", |s| s.snapshots.saves as f64),
    gauge("weft_aof_enabled", "1 with an append-only file.",
        |s| flag(s.append_only.is_enabled)),
    gauge("weft_aof_last_write_success", "1 unless the last write to it failed.",
        |s| flag(s.append_only.is_last_write_ok)),
    gauge("weft_aof_last_rewrite_success", "1 unless the last rewrite of it failed.",
        |s| flag(s.append_only.is_last_rewrite_ok)),
    gauge("weft_aof_rewrite_in_progress", "1 while it is rewritten.",
        |s| flag(s.append_only.rewrite_began_ms.is_some())),
    counter("weft_aof_rewrites_total", "Rewrites that were begun.",
        |s| s.append_only.rewrites as f64),
    gauge("weft_aof_size_bytes", "Size of all its files.",
        |s| s.append_only.current_bytes as f64),
    gauge("weft_aof_base_size_bytes", "The same after the last rewrite.",
        |s| s.append_only.base_bytes as f64),
    counter("weft_aof_delayed_fsyncs_total",
        "Times that a sync was due while another one was on its way.",
        |s| s.append_only.delayed_syncs as f64),
];

/// Writes all of them.
pub(super) fn write(snapshot: &Snapshot<'_>, page: &mut Page) {
    for metric in METRICS {
        let mut family = page.family(metric.name, metric.kind, metric.help);
        family.sample(&[], (metric.value)(snapshot));
    }
}
