//! HOTKEYS (<https://redis.io/docs/latest/commands/hotkeys/>) of Redis 8.6: measures the processor
//! time and the network bytes of requests by key, in sessions.
//!
//! The measurements are in [`crate::stats::hot_keys`]. All subcommands run on the main thread,
//! which can ask the process for its processor time. WEFT HOTKEYS shows the most used keys without
//! a session.

use std::sync::Arc;

use base::number::parse_i64;
use command::{Argument, Flags, Group, Row, Shape, Spec};
use engine::{Error, HotkeysError};
use resp::{Args, Reply};
use store::Time;

use super::help::{help, help_spec};
use super::map_writer::MapWriter;
use crate::execution::node_cx::{NodeCx, NodeHandler};
use crate::stats::hot_keys::{HotkeysSession, SessionOptions};
use crate::stats::top_keys::{TopKey, TopKeys, merge};

/// The last slot of a cluster.
const SLOT_MAX: i64 = 16_383;
/// Keys to report by default, and at most.
const COUNT_DEFAULT: usize = 10;
const COUNT_MAX: i64 = 64;
/// The longest session, in seconds.
const DURATION_MAX: i64 = 1_000_000;

const fn part(name: &'static str, arity: i32) -> Spec {
    Spec::new(name, arity, Group::Server, "8.6.0")
        .flags(Flags::ADMIN.with(Flags::NOSCRIPT).with(Flags::MAIN))
}

const METRICS: &[Argument] = &[
    Argument::new("count", Shape::Integer),
    Argument::word("cpu", "CPU").optional(),
    Argument::word("net", "NET").optional(),
];

/// The commands.
pub const ROWS: &[Row<NodeHandler>] = &[Row::container(
    Spec::new("hotkeys", -2, Group::Server, "8.6.0")
        .summary("A container for commands on hot keys.")
        .complexity("That of the subcommand."),
    &[
        Row::new(
            part("get", 2)
                .summary("Returns the measurements of the session.")
                .complexity("O(K) with K keys replied.")
                .tips(&["nondeterministic_output"]),
            report,
        ),
        Row::new(help_spec(Group::Server, "8.6.1"), help),
        Row::new(part("reset", 2).summary("Discards the measurements."), reset),
        Row::new(
            part("start", -2).summary("Starts a session that measures requests.").arguments(&[
                Argument::new("metrics", Shape::Block(METRICS)).after("METRICS"),
                Argument::new("k", Shape::Integer).after("COUNT").optional(),
                Argument::new("seconds", Shape::Integer).after("DURATION").optional(),
                Argument::new("ratio", Shape::Integer).after("SAMPLE").optional(),
                Argument::new(
                    "slots",
                    Shape::Block(&[
                        Argument::new("count", Shape::Integer),
                        Argument::new("slot", Shape::Integer).multiple(),
                    ]),
                )
                .after("SLOTS")
                .optional(),
            ]),
            start,
        ),
        Row::new(part("stop", 2).summary("Stops the session; GET still reports it."), stop),
    ],
)];

/// Whether a session measures now.
fn is_active(cx: &NodeCx<'_>) -> bool {
    let session = cx.worker.node.hotkeys.lock();
    session.as_ref().is_some_and(|session| session.is_active(cx.worker.turn.steady_ms))
}

fn start(cx: &mut NodeCx<'_>, args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if is_active(cx) {
        return Err(HotkeysError::InProgress.into());
    }
    let options = parse(args)?;
    let cpu = cx.outside(|host| host.process_info()).cpu;
    let turn = &cx.worker.turn;
    let now = Time { unix_us: turn.unix_us, steady_ms: turn.steady_ms };
    cx.worker.node.set_hotkeys(Some(Arc::new(HotkeysSession::new(options, now, cpu))));
    cx.worker.take_over_config();
    reply.ok();
    Ok(())
}

/// The options of START. As in Redis, unknown metrics are counted and ignored.
fn parse(args: &mut Args<'_>) -> Result<SessionOptions, Error> {
    args.seek(2);
    if args.remaining() < 2 || !args.take_word("metrics") {
        return Err(HotkeysError::NoMetrics.into());
    }
    let mut options = SessionOptions {
        cpu: false,
        net: false,
        count: COUNT_DEFAULT,
        duration_ms: None,
        sample_ratio: 1,
    };
    for _ in 0..number(args, 1..=2).ok_or(HotkeysError::MetricsCount)? {
        let metric = args.next().ok_or(HotkeysError::MetricsMismatch)?;
        let (name, wanted) = match metric.to_ascii_lowercase().as_slice() {
            b"cpu" => ("CPU", &mut options.cpu),
            b"net" => ("NET", &mut options.net),
            _ => continue,
        };
        if std::mem::replace(wanted, true) {
            return Err(HotkeysError::Twice(name).into());
        }
    }
    if !options.cpu && !options.net {
        return Err(HotkeysError::NoValidMetrics.into());
    }
    while let Some(word) = args.next() {
        if args.remaining() == 0 {
            return Err(Error::Syntax);
        }
        match word.to_ascii_lowercase().as_slice() {
            b"count" => {
                let count = number(args, 1..=COUNT_MAX).ok_or(HotkeysError::Count)?;
                options.count = usize::try_from(count).unwrap_or(COUNT_DEFAULT);
            }
            b"duration" => {
                let seconds = number(args, 1..=DURATION_MAX).ok_or(HotkeysError::Duration)?;
                options.duration_ms = Some(seconds * 1000);
            }
            b"sample" => {
                let ratio = number(args, 1..=i64::from(i32::MAX)).ok_or(HotkeysError::Sample)?;
                options.sample_ratio = u32::try_from(ratio).unwrap_or(1);
            }
            b"slots" => return Err(HotkeysError::Slots.into()),
            _ => return Err(Error::Syntax),
        }
    }
    Ok(options)
}

fn number(args: &mut Args<'_>, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
    args.next().and_then(parse_i64).filter(|number| range.contains(number))
}

fn stop(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let steady_ms = cx.worker.turn.steady_ms;
    let session = cx.worker.node.hotkeys.lock().clone();
    match session.filter(|session| session.is_active(steady_ms)) {
        Some(session) => {
            session.stop(steady_ms);
            // Setting the session again makes all threads look at it.
            cx.worker.node.set_hotkeys(Some(session));
            cx.worker.take_over_config();
            reply.ok();
        }
        None => reply.null(),
    }
    Ok(())
}

fn reset(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    if is_active(cx) {
        return Err(HotkeysError::StopFirst.into());
    }
    cx.worker.node.set_hotkeys(None);
    reply.ok();
    Ok(())
}

/// The heaviest keys and their weights.
fn reply_keys(reply: &mut Reply<'_>, keys: &[TopKey], weight: impl Fn(u64) -> u64) {
    reply.array(keys.len() * 2);
    for key in keys {
        reply.bulk(&key.key);
        reply.unsigned(weight(key.weight()));
    }
}

fn report(cx: &mut NodeCx<'_>, _: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let Some(session) = cx.worker.node.hotkeys.lock().clone() else {
        reply.null();
        return Ok(());
    };
    let steady_ms = cx.worker.turn.steady_ms;
    let options = &session.options;
    let measured = session.measured();
    let micros = |tsc| cx.worker.micros(tsc);
    reply.array(1);
    let mut fields = MapWriter::begin(reply);
    fields.number("tracking-active", i64::from(session.is_active(steady_ms)));
    fields.number("sample-ratio", options.sample_ratio);
    // Ranges of slots: all slots, because there is no cluster.
    let slots = fields.field("selected-slots");
    slots.array(1);
    slots.array(2);
    slots.int(0);
    slots.int(SLOT_MAX);
    fields.number("all-commands-all-slots-us", micros(measured.iter().map(|m| m.tsc).sum()));
    fields.number(
        "net-bytes-all-commands-all-slots",
        measured.iter().map(|measured| measured.bytes).sum::<u64>(),
    );
    fields.number("collection-start-time-unix-ms", session.began_unix_ms);
    fields.number("collection-duration-ms", session.elapsed_ms(steady_ms));
    let (by_cpu, by_net): (Vec<TopKeys>, Vec<TopKeys>) =
        measured.into_iter().map(|measured| (measured.cpu, measured.net)).unzip();
    if options.cpu {
        let (user, system) = cx.outside(|host| host.process_info()).cpu;
        let millis = |seconds: f64| (seconds.max(0.0) * 1000.0) as i64;
        fields.number("total-cpu-time-user-ms", millis(user - session.cpu_before.0));
        fields.number("total-cpu-time-sys-ms", millis(system - session.cpu_before.1));
    }
    if options.net {
        fields.number("total-net-bytes", by_net.iter().map(TopKeys::total).sum::<u64>());
    }
    if options.cpu {
        let keys = merge(&by_cpu, options.count);
        reply_keys(fields.field("by-cpu-time-us"), &keys, micros);
    }
    if options.net {
        let keys = merge(&by_net, options.count);
        reply_keys(fields.field("by-net-bytes"), &keys, |bytes| bytes);
    }
    fields.end();
    Ok(())
}
