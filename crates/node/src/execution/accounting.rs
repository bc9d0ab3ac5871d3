//! What is counted of each run of a command, and which runs the slow log keeps.

use command::Flags;
use resp::Args;

use crate::clients::record::ClientRecord;
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::stats::slowlog::{self, SlowEntry};

/// Counts a run and notices a slow one. `tsc` is its duration in TSC cycles.
#[inline]
pub(crate) fn account(
    worker: &mut Worker,
    record: &ClientRecord,
    entry: &Entry,
    args: &Args<'_>,
    succeeded: bool,
    tsc: u64,
) {
    let count = &worker.stats.commands[usize::from(entry.index)];
    count.calls.add(1);
    count.tsc.add(tsc);
    if !succeeded {
        count.failed.add(1);
    }
    if tsc >= worker.slow_tsc && !entry.spec.flags.has(Flags::SKIP_SLOWLOG) {
        log_slow(worker, record, entry, args, tsc);
    }
}

/// Puts a run that took long into the log.
fn log_slow(worker: &Worker, record: &ClientRecord, entry: &Entry, args: &Args<'_>, tsc: u64) {
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
