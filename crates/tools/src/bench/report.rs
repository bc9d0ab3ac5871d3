//! Measurements of one server as text or JSON.
//!
//! Text is for people and may change; the names in the JSON stay, and units are in the names.

use std::fmt::Write;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::measured::{FIGURES, MeasuredWorkload};
use super::remarks::{misses_rate, nulls_percent, remarks};
use crate::Error;
use crate::load::keys::{KeyPatterns, Law};
use crate::load::latency::{distribution, mean_us, percentile_us};
use crate::load::outcome::WindowOutcome;
use crate::load::shape::ValueSizes;
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::printable::grouped;
use crate::servers::account::CpuUse;
use crate::statistics::Interval;

/// Threads of the server below this share of a core share one line.
const QUIET_PERCENT: f64 = 0.1;

/// The percentiles that are shown, with their names in text and JSON.
const PERCENTILES: [(f64, &str, &str); 5] = [
    (50.0, "p50", "p50_us"),
    (90.0, "p90", "p90_us"),
    (95.0, "p95", "p95_us"),
    (99.0, "p99", "p99_us"),
    (99.9, "p99.9", "p99_9_us"),
];

/// The paragraph that the terminal shows for one run of a workload.
pub fn text(
    measured: &MeasuredWorkload,
    outcome: &WindowOutcome,
    with_distribution: bool,
) -> String {
    let mut out = heading(measured);
    // Writing to a string cannot fail.
    let warm_up = match outcome.warm_up {
        0 => String::new(),
        count => format!(", after {} of the warm-up", grouped(count)),
    };
    let _ = writeln!(
        out,
        "  throughput   {} requests/s ({} in {:.2} s{warm_up})",
        grouped(outcome.per_second() as u64),
        grouped(outcome.requests),
        outcome.wall.as_secs_f64()
    );
    let _ = write!(out, "  latency us   mean {:.0}", mean_us(&outcome.latency));
    for (percentile, label, _) in PERCENTILES {
        let _ = write!(out, " {label} {:.0}", percentile_us(&outcome.latency, percentile));
    }
    let _ = writeln!(out, " max {:.0}", outcome.latency.max() as f64 / 1000.0);
    if with_distribution {
        distribution_text(&mut out, &outcome.latency);
    }
    if let Some(server) = &outcome.server {
        server_text(&mut out, measured.pid, server, outcome.requests);
    }
    let _ = writeln!(
        out,
        "  load CPU     {:.2} us/request, busiest thread {:.0}%",
        outcome.load.us_per_request(outcome.requests),
        outcome.load_percent()
    );
    remark_lines(&mut out, measured, std::slice::from_ref(outcome));
    out
}

/// The workload and its load, in one line.
pub(super) fn heading(measured: &MeasuredWorkload) -> String {
    let MeasuredWorkload { row, load, .. } = measured;
    let LoadSpec { clients, threads, pipeline, shape, ratio, .. } = load;
    let name = measured.name();
    let mut out = format!(
        "{name}: {clients} clients, {threads} load threads, pipeline {pipeline}, {} keys",
        shape.keys
    );
    let KeyPatterns { writes, reads } = load.patterns;
    if (writes, reads) != (Law::Uniform, Law::Uniform) && load.commands.is_empty() {
        let _ = match writes == reads {
            true => write!(out, " ({writes})"),
            false => write!(out, " (writes {writes}, reads {reads})"),
        };
    }
    let _ = match &shape.sizes {
        None => write!(out, ", {}-byte values", shape.value_bytes),
        Some(ValueSizes::Range(low, high)) => write!(out, ", values of {low} to {high} bytes"),
        Some(ValueSizes::List(list)) => write!(out, ", values of {} sizes", list.len()),
    };
    if row.is_mixed() {
        let _ = write!(out, ", writes to reads {ratio}");
    }
    if let Some(rate) = load.rate {
        let _ = write!(out, ", at most {} requests/s", grouped(rate as u64));
    }
    if load.reconnects {
        out.push_str(", a new connection for each batch");
    }
    if load.cluster {
        out.push_str(", all nodes of the cluster");
    }
    out.push('\n');
    out
}

/// One line for a run, as redis-benchmark has with `-q`.
pub fn line(measured: &MeasuredWorkload, outcome: &WindowOutcome) -> String {
    let errors = match outcome.errors {
        0 => String::new(),
        errors => format!(", {} ERRORS: {}", grouped(errors), outcome.first_error),
    };
    let missed = match measured.load.rate.filter(|_| misses_rate(&measured.load, outcome)) {
        Some(rate) => format!(", {:.1}% OF THE RATE", 100.0 * outcome.per_second() / rate),
        None => String::new(),
    };
    let nulls = nulls_percent(std::slice::from_ref(outcome));
    let nulls = nulls.map_or(String::new(), |nulls| format!(", {nulls:.1}% NULLS"));
    format!(
        "{}: {:.2} requests per second, p50={:.3} msec, p99={:.3} msec{missed}{nulls}{errors}\n",
        measured.name(),
        outcome.per_second(),
        percentile_us(&outcome.latency, 50.0) / 1000.0,
        percentile_us(&outcome.latency, 99.0) / 1000.0,
    )
}

/// The means of several runs.
pub fn summary(measured: &MeasuredWorkload) -> String {
    let mut out = heading(measured);
    let runs = measured.outcomes.len();
    let _ = writeln!(out, "  mean of {runs} runs, and the 95% interval of its true value:");
    for figure in &FIGURES {
        let Some(interval) = measured.interval(figure) else { continue };
        let shown = |value: f64| match figure.digits {
            0 => grouped(value.max(0.0) as u64),
            digits => format!("{value:.digits$}"),
        };
        let _ = write!(out, "    {:<14} {:>12}", figure.label, shown(interval.mean));
        if let Some(error) = interval.relative_error() {
            let (low, high) = (shown(interval.low), shown(interval.high));
            let _ = write!(out, "   {low} to {high} (+-{:.1}%)", error * 100.0);
        }
        let _ = writeln!(out);
    }
    remark_lines(&mut out, measured, &measured.outcomes);
    out
}

fn remark_lines(out: &mut String, measured: &MeasuredWorkload, outcomes: &[WindowOutcome]) {
    for remark in remarks(&measured.load, outcomes) {
        let _ = writeln!(out, "  {remark}");
    }
}

/// Which share of the requests was answered within which time; each line halves the rest.
fn distribution_text(out: &mut String, latency: &Histogram<u64>) {
    let _ = writeln!(out, "  distribution");
    for (percent, us) in distribution(latency) {
        let _ = writeln!(out, "    {percent:>9.4}% <= {us:>10.1} us");
    }
}

fn server_text(out: &mut String, pid: Option<u32>, server: &CpuUse, requests: u64) {
    let pid = pid.map_or(String::new(), |pid| format!(" (process {pid})"));
    let _ = writeln!(out, "  server CPU   {:.3} us/request{pid}", server.us_per_request(requests));
    let us = |cpu: std::time::Duration| cpu.as_secs_f64() * 1e6 / requests.max(1) as f64;
    let (loud, quiet): (Vec<_>, Vec<_>) =
        server.threads.iter().partition(|t| server.busy_percent(t.cpu) >= QUIET_PERCENT);
    for thread in loud {
        let (us, busy) = (us(thread.cpu), server.busy_percent(thread.cpu));
        let _ = writeln!(out, "    {:<16} {us:8.3} us/request {busy:6.1}% busy", thread.name);
    }
    if !quiet.is_empty() {
        let cpu = quiet.iter().map(|thread| thread.cpu).sum();
        let name = format!("{} quiet threads", quiet.len());
        let (us, busy) = (us(cpu), server.busy_percent(cpu));
        let _ = writeln!(out, "    {name:<16} {us:8.3} us/request {busy:6.1}% busy");
    }
}

/// The JSON object of a workload: its only run, or all runs with their means.
pub fn json(measured: &MeasuredWorkload) -> Value {
    let mut object = load_json(measured);
    let run = |outcome: &WindowOutcome| run_json(measured, outcome);
    match &measured.outcomes[..] {
        [only] => object.extend(run(only)),
        outcomes => {
            let mut means = Map::new();
            for figure in &FIGURES {
                let Some(interval) = measured.interval(figure) else { continue };
                let Interval { mean, low, high } = interval;
                let ends = json!({ "mean": mean, "low_95": low, "high_95": high });
                means.insert(figure.key.into(), ends);
            }
            object.insert("means".into(), means.into());
            let runs = outcomes.iter().map(|outcome| Value::Object(run(outcome)));
            object.insert("runs".into(), runs.collect());
        }
    }
    Value::Object(object)
}

fn load_json(measured: &MeasuredWorkload) -> Map<String, Value> {
    let MeasuredWorkload { row, load, pid, .. } = measured;
    let KeyPatterns { writes, reads } = load.patterns;
    let object = json!({
        "workload": measured.name(),
        "clients": load.clients,
        "threads": load.threads,
        "pipeline": load.pipeline,
        "ratio": row.is_mixed().then(|| load.ratio.to_string()),
        "keys": load.shape.keys,
        "key_minimum": load.shape.first,
        "key_bytes": load.shape.key_bytes,
        "keys_of_writes": writes.to_string(),
        "keys_of_reads": reads.to_string(),
        "value_bytes": load.shape.sizes.is_none().then_some(load.shape.value_bytes),
        "requests_per_second_max": load.rate,
        "keeps_connections": !load.reconnects,
        "cluster": load.cluster,
        "pid": pid,
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

fn run_json(measured: &MeasuredWorkload, outcome: &WindowOutcome) -> Map<String, Value> {
    let mut latency = Map::new();
    latency.insert("min_us".into(), (outcome.latency.min() as f64 / 1000.0).into());
    latency.insert("mean_us".into(), mean_us(&outcome.latency).into());
    for (percentile, _, key) in PERCENTILES {
        latency.insert(key.into(), percentile_us(&outcome.latency, percentile).into());
    }
    latency.insert("max_us".into(), (outcome.latency.max() as f64 / 1000.0).into());
    let series = outcome.series.iter().map(|sample| {
        json!({
            "seconds": sample.seconds,
            "requests_per_second": sample.per_second,
            "p50_us": sample.p50_us,
            "p99_us": sample.p99_us,
        })
    });
    let lateness = measured.load.rate.map(|_| percentile_us(&outcome.lateness, 99.0));
    let object = json!({
        "requests": outcome.requests,
        "warm_up_requests": outcome.warm_up,
        "seconds": outcome.wall.as_secs_f64(),
        "requests_per_second": outcome.per_second(),
        "latency": latency,
        "distribution_percent_us": distribution(&outcome.latency),
        "load_late_p99_us": lateness,
        "never_sent": measured.load.rate.map(|_| outcome.unsent),
        "errors": outcome.errors,
        "first_error": outcome.first_error,
        "nulls_per_reply": outcome.nulls_per_reply,
        "aborted_per_request": outcome.aborted_per_request,
        "server_cpu": outcome.server.as_ref().map(|used| cpu_json(used, outcome.requests)),
        "load_cpu": cpu_json(&outcome.load, outcome.requests),
        "series": series.collect::<Vec<_>>(),
        "interrupted": outcome.interrupted,
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The line of a workload whose preparation the server refused.
pub fn refused_text(row: &Workload, error: &Error) -> String {
    format!("{}: not measured: {error}\n", row.name)
}

/// The same as JSON.
pub fn refused_json(row: &Workload, error: &Error) -> Value {
    json!({ "workload": row.name, "not_measured": error.to_string() })
}

fn cpu_json(used: &CpuUse, requests: u64) -> Value {
    let threads = used.threads.iter().map(|thread| {
        json!({
            "name": thread.name,
            "tid": thread.tid,
            "us_per_request": thread.cpu.as_secs_f64() * 1e6 / requests.max(1) as f64,
            "busy_percent": used.busy_percent(thread.cpu),
        })
    });
    json!({
        "us_per_request": used.us_per_request(requests),
        "threads": threads.collect::<Vec<_>>(),
    })
}
