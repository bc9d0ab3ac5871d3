//! LATENCY (<https://redis.io/docs/latest/commands/latency/>): slow events and the latency of
//! commands.
//!
//! The samples are in [`crate::stats::latency_events`]; `report` has the texts of DOCTOR and GRAPH.
//! All subcommands read published values and stop no thread.

use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, ServerError, echo};
use resp::{Args, Reply};

use super::help::{help, help_spec};
use crate::command_table::entry::Entry;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::execution::worker::Worker;
use crate::stats::latency_histogram::Latencies;

mod report;

const ADMIN: Flags = Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::LOADING).with(Flags::STALE);
const TIPS: &[&str] =
    &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"];

const fn part(name: &'static str, arity: i32, since: &'static str) -> Spec {
    Spec::new(name, arity, Group::Server, since).flags(ADMIN).tips(TIPS)
}

const EVENT: Argument = Argument::new("event", Shape::String);

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("latency", -2, Group::Server, "2.8.13")
        .summary("A container for commands on latency.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("doctor", 2, "2.8.13")
                .summary("Returns a diagnosis of the latency events, with advice."),
            doctor,
        ),
        Row::new(
            part("graph", 3, "2.8.13")
                .summary("Returns a latency graph of an event.")
                .arguments(&[EVENT]),
            graph,
        ),
        Row::new(help_spec(Group::Server, "2.8.13"), help),
        Row::new(
            part("histogram", -2, "7.0.0")
                .summary("Returns latency histograms of all or some commands.")
                .complexity("O(N) with N commands that have histograms.")
                .arguments(&[Argument::new("COMMAND", Shape::String).optional().multiple()]),
            histogram,
        ),
        Row::new(
            part("history", 3, "2.8.13")
                .summary("Returns the times and latencies of an event.")
                .arguments(&[EVENT]),
            history,
        ),
        Row::new(
            part("latest", 2, "2.8.13").summary("Returns the latest latency of each event."),
            latest,
        ),
        Row::new(
            part("reset", -2, "2.8.13")
                .summary("Discards the samples of all or some events.")
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
                .arguments(&[EVENT.optional().multiple()]),
            reset,
        ),
    ],
)];

fn latest(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let events = cx.worker.node.latency_events.lock();
    reply.array(events.iter().len());
    for (name, event) in events.iter() {
        let last = event.samples.back();
        reply.array(4);
        reply.bulk(name.as_bytes());
        reply.int(last.map_or(0, |sample| sample.unix_seconds));
        reply.unsigned(last.map_or(0, |sample| sample.ms));
        reply.unsigned(event.ms_max);
    }
    Ok(())
}

fn history(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let events = cx.worker.node.latency_events.lock();
    let Some((_, event)) = events.find(args.text(2)) else {
        reply.array(0);
        return Ok(());
    };
    reply.array(event.samples.len());
    for sample in &event.samples {
        reply.array(2);
        reply.int(sample.unix_seconds);
        reply.unsigned(sample.ms);
    }
    Ok(())
}

fn reset(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let mut events = cx.worker.node.latency_events.lock();
    let forgotten = match args.len() {
        2 => events.forget(None),
        _ => args.iter().skip(2).map(|event| events.forget(Some(event))).sum(),
    };
    reply.len(forgotten);
    Ok(())
}

fn graph(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let events = cx.worker.node.latency_events.lock();
    let Some((name, event)) = events.find(args.text(2)) else {
        return Err(ServerError::NoLatencySamples(echo(args.text(2))).into());
    };
    let now = cx.worker.turn.unix_ms.div_euclid(1000);
    reply.verbatim("txt", report::graph(name, event, now).as_bytes());
    Ok(())
}

fn doctor(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let events = cx.worker.node.latency_events.lock().clone();
    let now = cx.worker.turn.unix_ms.div_euclid(1000);
    let text = report::diagnosis(&events, &cx.worker.config, now);
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

fn histogram(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let worker = &*cx.worker;
    let entries: Vec<&Entry> = match args.len() {
        2 => worker.table.entries().iter().collect(),
        _ => args.iter().skip(2).flat_map(|name| named(worker, name)).collect(),
    };
    // Many histograms take long to read, and need no keyspace.
    cx.outside(|_| {
        let all = reply.map_deferred();
        let mut shown = 0;
        for entry in entries {
            let latencies = worker.node.latencies(usize::from(entry.index));
            if latencies.runs() > 0 {
                push_histogram(worker, entry, &latencies, reply);
                shown += 1;
            }
        }
        reply.finish(all, shown);
    });
    Ok(())
}

/// A command with its subcommands, or one `command|subcommand`.
fn named<'a>(worker: &'a Worker, name: &[u8]) -> Vec<&'a Entry> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let Some(entry) = parts.next().and_then(|command| worker.table.find(command)) else {
        return Vec::new();
    };
    match parts.next() {
        Some(part) => worker.table.find_subcommand(entry, part).into_iter().collect(),
        None => std::iter::once(entry).chain(worker.table.subcommands(entry)).collect(),
    }
}

/// The powers of two nanoseconds by which calls are grouped. Longer calls count in the last group,
/// which is about a second.
const GROUP_BITS: std::ops::RangeInclusive<u32> = 10..=30;

/// Writes a cumulative histogram: the limit of each group is twice the one before, a group counts
/// the calls of all groups before it too, and a group without calls of its own is omitted. As in
/// Redis, the limit is the end of the histogram bucket that contains the power of two, in
/// microseconds.
fn push_histogram(worker: &Worker, entry: &Entry, latencies: &Latencies, reply: &mut Reply<'_>) {
    reply.bulk(entry.name.as_bytes());
    reply.map(2);
    reply.bulk(b"calls");
    reply.unsigned(latencies.runs());
    reply.bulk(b"histogram_usec");
    let groups = reply.map_deferred();
    let mut buckets =
        latencies.iter().map(|(tsc, runs)| (worker.fractional_micros(tsc), runs)).peekable();
    let (mut below, mut shown) = (0, 0);
    for bits in GROUP_BITS {
        let end_ns = (1_u64 << bits) + (1 << (bits - 7)) - 1;
        let reaches = |micros: f64| bits == *GROUP_BITS.end() || micros * 1000.0 <= end_ns as f64;
        let mut runs = 0;
        while let Some((_, more)) = buckets.next_if(|(micros, _)| reaches(*micros)) {
            runs += more;
        }
        if runs > 0 {
            below += runs;
            shown += 1;
            reply.unsigned(end_ns / 1000);
            reply.unsigned(below);
        }
    }
    reply.finish(groups, shown);
}
