//! Metrics with several samples: by thread, command, database, kind or code.

use std::sync::Arc;

use pubsub::ChannelKind as Subscribed;

use super::MetricsInput;
use super::metric::{Metric, counter, gauge};
use super::page::{MetricKind, MetricsPage};
use crate::stats::ThreadCounters;
use crate::stats::counters::CommandSums;
use crate::stats::latency_histogram::Latencies;
use crate::stats::totals::ThreadSums;
use crate::version;

/// Upper bounds of latencies, in seconds.
const BOUNDS: &[f64] = &[
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
    0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
];

const OF_THREADS: &[Metric<ThreadSums>] = &[
    gauge(
        "weft_thread_clients",
        "Clients of a thread; thread 0 is the main thread.",
        |_, thread| thread.sums.clients as f64,
    ),
    counter(
        "weft_thread_busy_seconds_total",
        "Time in which a thread did not wait for events.",
        |snapshot, thread| snapshot.seconds(thread.sums.busy_tsc as f64),
    ),
    counter("weft_thread_commands_total", "Commands that a thread executed.", |_, thread| {
        thread.calls() as f64
    }),
    counter("weft_thread_reads_total", "Reads from sockets by a thread.", |_, thread| {
        thread.sums.reads as f64
    }),
    counter("weft_thread_writes_total", "Writes to sockets by a thread.", |_, thread| {
        thread.sums.writes as f64
    }),
    counter("weft_thread_turns_total", "Turns of a thread's event loop.", |_, thread| {
        thread.sums.turns as f64
    }),
];

const OF_COMMANDS: &[Metric<CommandSums>] = &[
    counter("weft_commands_total", "Calls of a command.", |_, sums| sums.calls as f64),
    counter("weft_commands_failed_total", "Calls of a command with an error reply.", |_, sums| {
        sums.failed as f64
    }),
    counter(
        "weft_commands_rejected_total",
        "Requests for a command that were refused before execution.",
        |_, sums| sums.rejected as f64,
    ),
];

/// Writes the metrics of this file.
pub(super) fn write(
    snapshot: &MetricsInput<'_>,
    counters: &[Arc<ThreadCounters>],
    page: &mut MetricsPage,
) {
    build(page);
    cpu(snapshot, page);
    for metric in OF_THREADS {
        let mut family = page.family(metric.name, metric.kind, metric.help);
        for (number, thread) in snapshot.threads.iter().enumerate() {
            let value = (metric.value)(snapshot, thread);
            family.sample(&[("thread", &number.to_string())], value);
        }
    }
    for metric in OF_COMMANDS {
        let mut family = page.family(metric.name, metric.kind, metric.help);
        let entries = snapshot.node.table.entries().iter();
        for (entry, sums) in entries.zip(&snapshot.total.commands) {
            if *sums != CommandSums::default() {
                family.sample(&[("command", &entry.name)], (metric.value)(snapshot, sums));
            }
        }
    }
    durations(snapshot, counters, page);
    keys(snapshot, page);
    errors(snapshot, page);
    denials(snapshot, page);
    subscriptions(snapshot, page);
}

fn build(page: &mut MetricsPage) {
    let labels = [
        ("version", version::VERSION),
        ("redis_version", version::COMPAT_VERSION),
        ("git_sha1", version::GIT_SHA1),
    ];
    let help = "Always 1; the labels describe the build.";
    page.family("weft_build_info", MetricKind::Gauge, help).sample(&labels, 1.0);
}

fn cpu(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    let process = snapshot.process;
    for (name, help, (user, system)) in [
        ("weft_cpu_seconds_total", "Processor time of all threads.", process.cpu),
        (
            "weft_main_thread_cpu_seconds_total",
            "Processor time of the main thread.",
            process.cpu_main,
        ),
    ] {
        let mut family = page.family(name, MetricKind::Counter, help);
        family.sample(&[("mode", "user")], user);
        family.sample(&[("mode", "system")], system);
    }
}

fn durations(
    snapshot: &MetricsInput<'_>,
    counters: &[Arc<ThreadCounters>],
    page: &mut MetricsPage,
) {
    let help = "Latency of a command; needs latency-tracking.";
    let mut family = page.family("weft_command_duration_seconds", MetricKind::Histogram, help);
    for entry in snapshot.node.table.entries() {
        let mut all = Latencies::default();
        for thread in counters {
            let own = thread.commands.get(usize::from(entry.index));
            if let Some(latencies) = own.and_then(|own| own.latencies()) {
                all.add(&latencies);
            }
        }
        let (count, sum) = (all.runs(), snapshot.seconds(all.cycles()));
        if count != 0 {
            let mut below = 0;
            let mut runs = all.iter().peekable();
            let bounds = BOUNDS.iter().map(|bound| {
                while let Some((_, more)) =
                    runs.next_if(|(cycles, _)| snapshot.seconds(*cycles) <= *bound)
                {
                    below += more;
                }
                (*bound, below)
            });
            family.histogram(("command", &entry.name), bounds, count, sum);
        }
    }
}

fn keys(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    let help = "Keys in a database; empty databases other than 0 are omitted.";
    let mut family = page.family("weft_keys", MetricKind::Gauge, help);
    for (number, keys) in snapshot.node.key_counts.totals().into_iter().enumerate() {
        if keys > 0 || number == 0 {
            family.sample(&[("db", &number.to_string())], keys.max(0) as f64);
        }
    }
}

fn errors(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    let help = "Error replies, by code.";
    let mut family = page.family("weft_errors_total", MetricKind::Counter, help);
    for (code, count) in snapshot.node.error_codes() {
        family.sample(&[("code", &code)], count as f64);
    }
}

fn denials(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    let sums = &snapshot.total.sums;
    let help = "Denied authentications, commands, keys and channels.";
    let mut family = page.family("weft_acl_denied_total", MetricKind::Counter, help);
    for (reason, count) in [
        ("auth", sums.auth_failures),
        ("command", sums.denied_commands),
        ("key", sums.denied_keys),
        ("channel", sums.denied_channels),
    ] {
        family.sample(&[("reason", reason)], count as f64);
    }
}

fn subscriptions(snapshot: &MetricsInput<'_>, page: &mut MetricsPage) {
    let help = "Channels, patterns and shard channels with subscribers.";
    let mut family = page.family("weft_pubsub_subscribed", MetricKind::Gauge, help);
    for (kind, of) in [
        ("channel", Subscribed::Channel),
        ("pattern", Subscribed::Pattern),
        ("shard_channel", Subscribed::Shard),
    ] {
        family.sample(&[("kind", kind)], snapshot.node.pubsub.len(of) as f64);
    }
}
