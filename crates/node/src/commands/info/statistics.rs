//! The sections about work: threads, commands, latencies and errors.

use std::sync::atomic::Ordering;

use pubsub::ChannelKind;

use super::{InfoInput, InfoPage};
use crate::config::percentile_text;

/// A line for each thread as in Redis, and one with its load.
pub(super) fn threads(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    // Later elements may be counters of threads that have ended.
    let running = || snapshot.threads.iter().take(snapshot.memory.process.threads_active.max(1));
    for (number, thread) in running().enumerate() {
        let sums = &thread.sums;
        page.line(
            &format!("io_thread_{number}"),
            format_args!("clients={},reads={},writes={}", sums.clients, sums.reads, sums.writes),
        );
    }
    for (number, thread) in running().enumerate() {
        let (commands, busy) = (thread.calls(), snapshot.worker.micros(thread.sums.busy_tsc));
        page.line(
            &format!("weft_thread_{number}"),
            format_args!("commands={commands},busy_usec={busy}"),
        );
    }
}

pub(super) fn stats(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let (node, sums) = (snapshot.node, &snapshot.total.sums);
    let rates = node.rates();
    let kilobytes = |bytes: u64| format!("{:.2}", bytes as f64 / 1024.0);
    page.line("total_connections_received", node.connections_received.load(Ordering::Relaxed));
    page.line("total_commands_processed", snapshot.total.calls());
    page.line("instantaneous_ops_per_sec", rates.commands);
    page.line("total_net_input_bytes", sums.in_bytes);
    page.line("total_net_output_bytes", sums.out_bytes);
    page.zeros(&["total_net_repl_input_bytes", "total_net_repl_output_bytes"]);
    page.line("instantaneous_input_kbps", kilobytes(rates.in_bytes));
    page.line("instantaneous_output_kbps", kilobytes(rates.out_bytes));
    page.line("instantaneous_input_repl_kbps", "0.00");
    page.line("instantaneous_output_repl_kbps", "0.00");
    page.line("rejected_connections", node.connections_rejected.load(Ordering::Relaxed));
    page.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    page.line("expired_subkeys", sums.expired_fields);
    page.line("expired_keys", sums.expired);
    page.line("expired_stale_perc", format_args!("{:.2}", node.expired_share() * 100.0));
    page.line("expired_time_cap_reached_count", sums.expiry_timeouts);
    page.line("expire_cycle_cpu_milliseconds", sums.expiry_us / 1000);
    page.line("evicted_keys", sums.evicted);
    page.line("evicted_clients", sums.evicted_clients);
    page.line("evicted_scripts", snapshot.memory.scripts.evicted);
    let (behind_ms, now_ms) = node.eviction.behind_ms(snapshot.worker.turn.steady_ms);
    page.line("total_eviction_exceeded_time", behind_ms);
    page.line("current_eviction_exceeded_time", now_ms);
    page.line("keyspace_hits", sums.hits);
    page.line("keyspace_misses", sums.misses);
    page.line("pubsub_channels", node.pubsub.len(ChannelKind::Channel));
    page.line("pubsub_patterns", node.pubsub.len(ChannelKind::Pattern));
    page.line("pubsubshard_channels", node.pubsub.len(ChannelKind::Shard));
    // The server never forks.
    page.zeros(&["latest_fork_usec", "total_forks"]);
    // No key is moved to another server, and no replica follows this one.
    page.zeros(&["migrate_cached_sockets", "slave_expires_tracked_keys"]);
    page.zeros(&["active_defrag_hits", "active_defrag_misses"]);
    page.zeros(&["active_defrag_key_hits", "active_defrag_key_misses"]);
    page.zeros(&["total_active_defrag_time", "current_active_defrag_time"]);
    page.line("tracking_total_keys", node.trackers.keys.len());
    page.line("tracking_total_items", node.trackers.keys.items());
    page.line("tracking_total_prefixes", node.trackers.prefixes());
    page.zeros(&["unexpected_error_replies"]);
    page.line("total_error_replies", sums.errors);
    // Every payload is validated.
    page.line("dump_payload_sanitizations", restored(snapshot));
    let io_threads = || snapshot.threads.iter().skip(1).map(|thread| &thread.sums);
    page.line("total_reads_processed", sums.reads);
    page.line("total_writes_processed", sums.writes);
    page.line("io_threaded_reads_processed", io_threads().map(|sums| sums.reads).sum::<u64>());
    page.line("io_threaded_writes_processed", io_threads().map(|sums| sums.writes).sum::<u64>());
    page.line("client_query_buffer_limit_disconnections", sums.query_limit_closes);
    page.line("client_output_buffer_limit_disconnections", sums.output_limit_closes);
    // Clients have no buffer for replies that could grow or shrink.
    page.zeros(&["reply_buffer_shrinks", "reply_buffer_expands"]);
    event_loops(snapshot, page);
    page.line("acl_access_denied_auth", sums.auth_failures);
    page.line("acl_access_denied_cmd", sums.denied_commands);
    page.line("acl_access_denied_key", sums.denied_keys);
    page.line("acl_access_denied_channel", sums.denied_channels);
}

/// Calls of RESTORE.
fn restored(snapshot: &InfoInput<'_>) -> u64 {
    let entry = snapshot.worker.table.find(b"restore");
    let sums = entry.and_then(|entry| snapshot.total.commands.get(usize::from(entry.index)));
    sums.map_or(0, |sums| sums.calls)
}

/// Turns of the event loops of all threads, and the time in them.
fn event_loops(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    let (sums, rates) = (&snapshot.total.sums, snapshot.node.rates());
    let micros = |tsc| snapshot.worker.micros(tsc);
    page.line("eventloop_cycles", sums.turns);
    page.line("eventloop_duration_sum", micros(sums.busy_tsc));
    page.line("eventloop_duration_cmd_sum", micros(snapshot.total.command_tsc()));
    page.line("instantaneous_eventloop_cycles_per_sec", rates.turns);
    let turn_tsc = rates.busy_tsc.checked_div(rates.turns).unwrap_or(0);
    page.line("instantaneous_eventloop_duration_usec", micros(turn_tsc));
}

pub(super) fn commands(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    for (entry, sums) in snapshot.worker.table.entries().iter().zip(&snapshot.total.commands) {
        if sums.calls == 0 && sums.rejected == 0 && sums.failed == 0 {
            continue;
        }
        let micros = snapshot.worker.micros(sums.tsc);
        let each = if sums.calls == 0 { 0.0 } else { micros as f64 / sums.calls as f64 };
        page.line(
            &format!("cmdstat_{}", entry.name),
            format_args!(
                "calls={},usec={micros},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
                sums.calls, sums.rejected, sums.failed
            ),
        );
    }
}

/// Latencies of commands at the configured percentiles.
pub(super) fn latencies(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    if !snapshot.config.latency.tracking {
        return;
    }
    for entry in snapshot.worker.table.entries() {
        let latencies = snapshot.node.latencies(usize::from(entry.index));
        if latencies.runs() == 0 {
            continue;
        }
        let shown = snapshot.config.latency.tracking_info_percentiles.iter().map(|millionths| {
            let tsc = latencies.percentile(f64::from(*millionths) / 1e6);
            let micros = snapshot.worker.fractional_micros(tsc);
            format!("p{}={micros:.3}", percentile_text(*millionths))
        });
        let shown = shown.collect::<Vec<_>>().join(",");
        page.line(&format!("latency_percentiles_usec_{}", entry.name), shown);
    }
}

pub(super) fn errors(snapshot: &InfoInput<'_>, page: &mut InfoPage) {
    for (code, count) in snapshot.node.error_codes() {
        // Scripts can make any code.
        let code = code.replace(['#', ':', '\r', '\n'], "_");
        page.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}
