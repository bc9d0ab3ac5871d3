//! A report for programs. Times are in seconds or, if the name says so, in microseconds; unknown
//! values are null.

use serde_json::{Value, json};

use super::report::{CommandFigures, ThreadFigures, TopReport};

/// The report as one object.
pub(super) fn json(report: &TopReport, address: &str) -> Value {
    let TopReport { clients, memory, keys, files, replication, verdict, .. } = report;
    json!({
        "server": report.server,
        "address": address,
        "process": report.process,
        "is_local": report.is_local,
        "uptime_seconds": report.uptime_seconds,
        "interval_seconds": report.seconds,
        "verdict": {
            "limit": verdict.limit, "finding": verdict.finding, "advice": verdict.advice,
        },
        "commands_per_second": report.commands_per_second,
        "errors_per_second": report.errors_per_second,
        "in_bytes_per_second": report.in_bytes_per_second,
        "out_bytes_per_second": report.out_bytes_per_second,
        "ping_us": report.ping_us,
        "io_threads": report.io_threads,
        "threads": report.threads.iter().map(thread).collect::<Vec<_>>(),
        "commands": report.commands.iter().map(command).collect::<Vec<_>>(),
        "clients": {
            "connected": clients.connected, "blocked": clients.blocked, "max": clients.max,
            "new_per_second": clients.new_per_second,
            "rejected_per_second": clients.rejected_per_second,
        },
        "memory": {
            "used_bytes": memory.used, "peak_bytes": memory.peak, "rss_bytes": memory.rss,
            "max_bytes": memory.max, "policy": memory.policy,
            "fragmentation": memory.fragmentation,
        },
        "keys": {
            "count": keys.count, "hit_rate": keys.hit_rate,
            "expired_per_second": keys.expired_per_second,
            "evicted_per_second": keys.evicted_per_second,
        },
        "persistence": {
            "is_loading": files.is_loading, "changes_since_save": files.changes_since_save,
            "is_saving": files.is_saving, "last_save_ok": files.last_save_ok,
            "append_only": files.append_only, "append_only_ok": files.append_only_ok,
            "is_rewriting": files.is_rewriting, "append_only_bytes": files.append_only_bytes,
        },
        "replication": {
            "role": replication.role, "replicas": replication.replicas,
            "link": replication.link, "offset": replication.offset,
        },
        "hot_keys": report.hot.as_ref().map(|keys| keys.iter().map(|hot| json!({
            "key": hot.key, "db": hot.db, "requests_per_second": hot.requests_per_second,
        })).collect::<Vec<_>>()),
        "slow_log": report.slow.as_ref().map(|entries| entries.iter().map(|slow| json!({
            "unix_seconds": slow.unix_seconds, "micros": slow.micros, "command": slow.words,
        })).collect::<Vec<_>>()),
    })
}

fn thread(thread: &ThreadFigures) -> Value {
    json!({
        "name": thread.name, "cpu": thread.cpu, "busy": thread.busy, "clients": thread.clients,
        "commands_per_second": thread.commands_per_second,
        "reads_per_second": thread.reads_per_second,
        "writes_per_second": thread.writes_per_second,
    })
}

fn command(command: &CommandFigures) -> Value {
    json!({
        "name": command.name, "per_second": command.per_second, "mean_us": command.mean_us,
        "p50_us_so_far": command.p50_us, "p99_us_so_far": command.p99_us,
        "failed_per_second": command.failed_per_second,
    })
}
