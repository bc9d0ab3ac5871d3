//! The sections about work done: by threads, by commands, and what went wrong.

use std::sync::atomic::Ordering;

use super::{Page, Snapshot};

/// One line a thread as Redis has it, and one that tells how busy it was.
pub(super) fn threads(snapshot: &Snapshot<'_>, page: &mut Page) {
    // Behind them may be counts of threads that have ended.
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

pub(super) fn stats(snapshot: &Snapshot<'_>, page: &mut Page) {
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
    page.line("rejected_connections", node.connections_rejected.load(Ordering::Relaxed));
    page.zeros(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    page.line("expired_subkeys", sums.expired_fields);
    page.line("expired_keys", sums.expired);
    page.zeros(&["evicted_keys", "evicted_clients"]);
    page.line("keyspace_hits", sums.hits);
    page.line("keyspace_misses", sums.misses);
    page.zeros(&["pubsub_channels", "pubsub_patterns", "pubsubshard_channels"]);
    // Nothing is forked, ever.
    page.zeros(&["latest_fork_usec", "total_forks"]);
    page.zeros(&["unexpected_error_replies"]);
    page.line("total_error_replies", sums.errors);
    let io_threads = || snapshot.threads.iter().skip(1).map(|thread| &thread.sums);
    page.line("client_output_buffer_limit_disconnections", sums.output_limit_closes);
    page.line("total_reads_processed", sums.reads);
    page.line("total_writes_processed", sums.writes);
    page.line("io_threaded_reads_processed", io_threads().map(|sums| sums.reads).sum::<u64>());
    page.line("io_threaded_writes_processed", io_threads().map(|sums| sums.writes).sum::<u64>());
    page.line("acl_access_denied_auth", sums.auth_failures);
}

pub(super) fn commands(snapshot: &Snapshot<'_>, page: &mut Page) {
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

pub(super) fn errors(snapshot: &Snapshot<'_>, page: &mut Page) {
    for (code, count) in snapshot.node.error_codes() {
        page.line(&format!("errorstat_{code}"), format_args!("count={count}"));
    }
}
