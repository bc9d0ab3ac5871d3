//! One measured window as text or JSON.
//!
//! Text is for people and may change; the names in the JSON stay, and units are in the names.

use std::fmt::Write;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use super::account::CpuUse;
use super::load::{Load, Outcome};
use super::workload::Row;
use crate::Error;

/// Threads of the server below this share of a core are summed up in one line.
const QUIET_PERCENT: f64 = 0.1;

/// The kernel books CPU time at every tick, so in a window shorter than this it is only rough.
const WINDOW_SECONDS_MIN: f64 = 0.5;

/// A load thread above this share of its core may itself be what limits throughput.
const LOAD_BUSY_PERCENT: f64 = 97.0;

/// The percentiles that are shown, with their names in text and JSON.
const PERCENTILES: [(f64, &str, &str); 4] = [
    (50.0, "p50", "p50_us"),
    (90.0, "p90", "p90_us"),
    (99.0, "p99", "p99_us"),
    (99.9, "p99.9", "p99_9_us"),
];

/// A percentile of a histogram of nanoseconds, in microseconds.
pub(crate) fn percentile_us(latency: &Histogram<u64>, percentile: f64) -> f64 {
    latency.value_at_quantile(percentile / 100.0) as f64 / 1000.0
}

/// The paragraph that the terminal shows for one workload.
pub fn text(row: &Row, load: &Load, pid: Option<u32>, outcome: &Outcome) -> String {
    let mut out = String::new();
    let Load { clients, threads, pipeline, shape, ratio, .. } = load;
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{}: {clients} clients, {threads} load threads, pipeline {pipeline}, {} keys, \
         {}-byte values",
        row.name, shape.keys, shape.value_bytes
    );
    if row.is_mixed() {
        let _ = write!(out, ", reads to writes {ratio}");
    }
    let _ = writeln!(out);
    let _ = writeln!(
        out,
        "  throughput   {} requests/s ({} in {:.2} s)",
        grouped(outcome.per_second() as u64),
        grouped(outcome.requests),
        outcome.wall.as_secs_f64()
    );
    let _ = write!(out, "  latency us  ");
    for (percentile, label, _) in PERCENTILES {
        let _ = write!(out, " {label} {:.0}", percentile_us(&outcome.latency, percentile));
    }
    let _ = writeln!(out, " max {:.0}", outcome.latency.max() as f64 / 1000.0);
    if let Some(server) = &outcome.server {
        server_text(&mut out, pid, server, outcome.requests);
    }
    let busiest = outcome.load.threads.first().map_or(0.0, |t| outcome.load.busy_percent(t.cpu));
    let _ = writeln!(
        out,
        "  load CPU     {:.2} us/request, busiest thread {busiest:.0}%",
        outcome.load.us_per_request(outcome.requests)
    );
    for remark in remarks(outcome, busiest) {
        let _ = writeln!(out, "  {remark}");
    }
    out
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

/// What a reader must know before believing the figures.
fn remarks(outcome: &Outcome, busiest: f64) -> Vec<String> {
    let mut remarks = Vec::new();
    if outcome.errors > 0 {
        remarks.push(format!(
            "ERRORS       {} replies were errors; the first: {}",
            grouped(outcome.errors),
            outcome.first_error
        ));
    }
    if outcome.aborted_per_request > 0.0 {
        remarks.push(format!(
            "aborted      {:.2}% of the transactions, by a change of a watched key",
            outcome.aborted_per_request * 100.0
        ));
    }
    if outcome.nulls_per_reply > 0.001 {
        remarks.push(format!(
            "note         {:.1} nulls per 100 replies: --prefill writes the whole key range first",
            outcome.nulls_per_reply * 100.0
        ));
    }
    if outcome.server.is_some() && outcome.wall.as_secs_f64() < WINDOW_SECONDS_MIN {
        remarks.push("note         the window is too short for CPU times to be exact".into());
    }
    if busiest > LOAD_BUSY_PERCENT {
        remarks.push(
            "note         a load thread used its whole core: throughput may be its; add --threads"
                .into(),
        );
    }
    remarks
}

/// The JSON object for one workload.
pub fn json(row: &Row, load: &Load, pid: Option<u32>, outcome: &Outcome) -> Value {
    let mut latency = serde_json::Map::new();
    for (percentile, _, key) in PERCENTILES {
        latency.insert(key.into(), percentile_us(&outcome.latency, percentile).into());
    }
    latency.insert("max_us".into(), (outcome.latency.max() as f64 / 1000.0).into());
    json!({
        "workload": row.name,
        "clients": load.clients,
        "threads": load.threads,
        "pipeline": load.pipeline,
        "ratio": row.is_mixed().then(|| load.ratio.to_string()),
        "keys": load.shape.keys,
        "key_bytes": load.shape.key_bytes,
        "value_bytes": load.shape.value_bytes,
        "requests": outcome.requests,
        "seconds": outcome.wall.as_secs_f64(),
        "requests_per_second": outcome.per_second(),
        "latency": latency,
        "errors": outcome.errors,
        "first_error": outcome.first_error,
        "nulls_per_reply": outcome.nulls_per_reply,
        "aborted_per_request": outcome.aborted_per_request,
        "pid": pid,
        "server_cpu": outcome.server.as_ref().map(|used| cpu_json(used, outcome.requests)),
        "load_cpu": cpu_json(&outcome.load, outcome.requests),
    })
}

/// The line for a workload that the server refused to be made ready for.
pub fn refused_text(row: &Row, error: &Error) -> String {
    format!("{}: not measured: {error}\n", row.name)
}

/// The same as JSON.
pub fn refused_json(row: &Row, error: &Error) -> Value {
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

/// A number with a comma between each three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_three() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")];
        cases.iter().for_each(|&(number, text)| assert_eq!(grouped(number), text));
    }
}
