//! The counts of each run of a command, and the runs that the slow log keeps.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::number::decimal_len_i64;
use command::Flags;
use resp::out::Mark;
use resp::{Args, Out};

use crate::clients::record::ClientRecord;
use crate::command_table::entry::{Call, Entry};
use crate::execution::worker::Worker;
use crate::stats::hot_keys::SAMPLE_PERIOD;
use crate::stats::slowlog::{self, SlowEntry};

/// A run of a command that has ended, for a closer look.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// The client.
    pub record: &'a ClientRecord,
    pub entry: &'a Entry,
    pub args: &'a Args<'a>,
    /// Where its reply is, and from where on; `None` if it is elsewhere.
    pub reply: Option<(&'a Out, Mark)>,
    /// The TSC when it ended; `None` if it was shown to watching clients when it began.
    pub end_tsc: Option<u64>,
}

/// Counts a run and notices a slow one. `tsc` is its duration in TSC cycles. Few runs are looked at
/// closely; `run` returns them.
#[inline(always)]
pub(crate) fn account<'a>(
    worker: &mut Worker,
    entry: &Entry,
    succeeded: bool,
    tsc: u64,
    run: impl FnOnce() -> Run<'a>,
) {
    let count = &worker.stats.commands[usize::from(entry.index)];
    count.calls.add(1);
    count.tsc.add(tsc);
    if !succeeded {
        count.failed.add(1);
    }
    if worker.tracks_latency {
        count.record_latency(tsc);
    }
    worker.until_sample -= 1;
    if tsc >= worker.slow_tsc || worker.until_sample == 0 {
        look_at(worker, run(), tsc);
    }
}

/// Counts the error that was replied from `mark` on.
pub(crate) fn note_error(worker: &Worker, out: &Out, mark: Mark) {
    // The reply is the error and nothing else.
    let error = out.bytes[mark.bytes..].strip_prefix(b"-").unwrap_or_default();
    worker.stats.note_error(error);
}

/// Looks at a run that took long, at one of a sample, or at any while HOTKEYS measures.
#[cold]
#[inline(never)]
fn look_at(worker: &mut Worker, run: Run<'_>, tsc: u64) {
    let flags = run.entry.spec.flags;
    if let Some(end_tsc) = run.end_tsc {
        worker.show(run.record, run.entry, run.args, end_tsc);
    }
    if worker.until_sample == 0 {
        // At random, so that no pattern of requests escapes.
        worker.until_sample = 1 + worker.sample_below(2 * SAMPLE_PERIOD - 1);
        sample_keys(worker, run);
    }
    if tsc >= worker.slowlog_tsc && !flags.has(Flags::SKIP_SLOWLOG) {
        log_slow(worker, run, tsc);
    }
    let event = if flags.has(Flags::FAST) { "fast-command" } else { "command" };
    worker.note_latency(event, worker.micros(tsc) / 1000);
    // The commands of a script are a part of the script's own run.
    if worker.hotkeys.is_some() && !worker.turn.in_script {
        measure_keys(worker, run, tsc);
    }
}

/// The keys in a request.
fn keys<'a>(run: &Run<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let args = run.args;
    run.entry.spec.keys.iter().flat_map(|spec| spec.positions(args)).filter_map(|at| args.at(at))
}

/// Counts the keys of one of many runs. The commands of a script count for themselves.
fn sample_keys(worker: &Worker, run: Run<'_>) {
    if matches!(run.entry.call, Call::Script(_)) {
        return;
    }
    let (db, steady_ms) = (run.record.db.load(Ordering::Relaxed), worker.turn.steady_ms);
    let Some(mut table) = worker.stats.hot_keys.try_lock() else { return };
    for key in keys(&run) {
        table.add(db, key, worker.node.hasher.hash(key), steady_ms);
    }
}

/// Measures a run for HOTKEYS. Its keys share what it took evenly.
fn measure_keys(worker: &mut Worker, run: Run<'_>, tsc: u64) {
    let steady_ms = worker.turn.steady_ms;
    let Some(participant) = &mut worker.hotkeys else { return };
    if !participant.session.is_active(steady_ms) {
        worker.leave_hotkeys();
        return;
    }
    let len = keys(&run).count() as u64;
    if len == 0 {
        return;
    }
    let (session, measured) = (Arc::clone(&participant.session), participant.measured());
    let options = &session.options;
    let ratio = u64::from(options.sample_ratio);
    let is_sampled = ratio <= 1 || worker.sample_below(ratio) == 0;
    let bytes = request_bytes(run.args) + run.reply.map_or(0, |(out, mark)| out.bytes_since(mark));
    let mut measured = measured.lock();
    measured.tsc += tsc;
    measured.bytes += bytes as u64;
    if !is_sampled {
        return;
    }
    for key in keys(&run) {
        let hash = worker.node.hasher.hash(key);
        // As in Redis, keys of different databases count as one.
        if options.cpu {
            measured.cpu.add(0, key, hash, tsc / len);
        }
        if options.net {
            measured.net.add(0, key, hash, bytes as u64 / len);
        }
    }
}

/// The bytes of a request in the protocol.
fn request_bytes(args: &Args<'_>) -> usize {
    // `*3\r\n`, and for each argument `$5\r\nvalue\r\n`.
    let number = |len: usize| decimal_len_i64(len as i64) + 3;
    number(args.len()) + args.iter().map(|arg| number(arg.len()) + arg.len() + 2).sum::<usize>()
}

/// Puts a run that took long into the log.
fn log_slow(worker: &Worker, run: Run<'_>, tsc: u64) {
    let Run { record, entry, args, .. } = run;
    // A log that takes nothing keeps what it has until it is emptied, as in Redis.
    if worker.config.slowlog_max_len == 0 {
        return;
    }
    let slow = SlowEntry {
        id: 0,
        unix_seconds: worker.turn.unix_ms.div_euclid(1000),
        micros: worker.micros(tsc),
        arguments: slowlog::kept(&entry.name, args),
        address: record.address.clone(),
        name: record.names().name,
    };
    worker.node.slowlog.lock().push(slow, worker.config.slowlog_max_len);
}
