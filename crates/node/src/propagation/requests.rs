//! MONITOR: the requests that are executed, as lines for the clients that watch them.
//!
//! A line is encoded once and goes to each thread with such clients as one message, in the way of
//! pub/sub. It is sent when its command has ended and before the reply is, so what follows from an
//! answer comes behind it. All clients see all lines in one order, by rising times; of two commands
//! that end within a few microseconds of each other on two threads, either may come first.
//!
//! While nobody watches this costs nothing: threads look at each run closely only while someone
//! does, as they do for HOTKEYS ([`account`](crate::execution::accounting::account)).
//!
//! A thread that does not get to take its lines in is not waited for: what waits for it is bounded,
//! and whoever watches there is closed when it is more. What waits for those who do not read is
//! bounded for all of them together, but for one line, which may wait for each: however long it is,
//! those who read are never closed.

use std::io::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::quote::push_quoted;
use command::Flags;
use pubsub::ChannelKind;
use resp::Args;

use super::inboxes::Delivery;
use crate::clients::record::{ClientRecord, flag};
use crate::execution::table::Entry;
use crate::execution::worker::Worker;
use crate::node::Node;
use crate::stats::slowlog::shown;

/// Lines that may wait for all who watch, in bytes, whatever `client-output-buffer-limit` says: the
/// class of these clients, that of ordinary ones, has no limit by default.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// By how much it may grow until it is added up again.
const GROWTH_BYTES_MAX: u64 = OUTPUT_BYTES_MAX / 16;

/// A time in a line: seconds and microseconds since 1970 in so many digits.
const TIME_BYTES: usize = "1700000000.000000".len();
/// Where it begins.
const TIME_AT: usize = 1;

/// What the lines of all threads have in common.
#[derive(Debug, Default)]
pub(crate) struct ShownRequests {
    /// The time of the last line, in microseconds since 1970. Written while no other line is.
    last_us: AtomicI64,
    /// Bytes of all lines.
    bytes: AtomicU64,
    /// Those of the longest line that may be waiting.
    longest: AtomicU64,
    /// What waited for all who watch when it was last added up, and the bytes of all lines then.
    waiting: AtomicU64,
    waiting_at: AtomicU64,
}

impl ShownRequests {
    /// Writes the time into a line: `unix_us`, unless the last line's is later.
    fn stamp(&self, line: &mut [u8], unix_us: i64) {
        let unix_us = unix_us.max(self.last_us.load(Ordering::Relaxed));
        self.last_us.store(unix_us, Ordering::Relaxed);
        if let Some(mut place) = line.get_mut(TIME_AT..TIME_AT + TIME_BYTES) {
            let (seconds, micros) = (unix_us.div_euclid(1_000_000), unix_us.rem_euclid(1_000_000));
            let written = write!(place, "{seconds:010}.{micros:06}");
            debug_assert!(written.is_ok(), "there are ten digits of seconds until 2286");
        }
    }
}

impl Node {
    /// Whether so many bytes of lines are too much for a client, if it is one that watches: more
    /// than its share, while more waits for all together than may.
    pub fn is_behind(&self, record: &ClientRecord, bytes: u64) -> bool {
        record.has(flag::MONITOR) && self.is_watcher_behind(record, bytes)
    }

    #[cold]
    fn is_watcher_behind(&self, record: &ClientRecord, bytes: u64) -> bool {
        let shown = &self.shown_requests;
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let watchers = self.pubsub.clients(ChannelKind::Requests, b"").max(1) as u64;
        if bytes.saturating_sub(value(&shown.longest)) <= OUTPUT_BYTES_MAX / watchers {
            return false;
        }
        let all = value(&shown.bytes);
        let growth = all.wrapping_sub(value(&shown.waiting_at)).saturating_mul(watchers);
        if value(&shown.waiting) <= OUTPUT_BYTES_MAX && growth < GROWTH_BYTES_MAX {
            return false;
        }
        let clients = self.clients.all();
        let others = clients.iter().filter(|other| other.id != record.id);
        let watching =
            others.filter(|other| other.has(flag::MONITOR) && !other.location.is_killed());
        let outputs: Vec<u64> = watching.map(|other| value(&other.output_bytes)).collect();
        let largest = outputs.iter().copied().fold(bytes, u64::max);
        // No longer one waits.
        let longest = shown.longest.fetch_min(largest, Ordering::Relaxed).min(largest);
        let beyond = |bytes: &u64| bytes.saturating_sub(longest);
        let waiting = longest + beyond(&bytes) + outputs.iter().map(beyond).sum::<u64>();
        shown.waiting.store(waiting, Ordering::Relaxed);
        shown.waiting_at.store(all, Ordering::Relaxed);
        waiting > OUTPUT_BYTES_MAX
    }
}

impl Worker {
    /// Shows a command that has ended at this TSC to those who watch, unless it is one of those
    /// that are not shown.
    pub(crate) fn show(
        &mut self,
        record: &ClientRecord,
        (entry, args): (&Entry, &Args<'_>),
        tsc: u64,
    ) {
        let flags = entry.spec.flags;
        if self.shows_requests && !flags.has(Flags::ADMIN) && !flags.has(Flags::SKIP_MONITOR) {
            self.show_always(record, (&entry.name, args), tsc);
        }
    }

    /// The same for any command: those that run scripts are shown before what the scripts call.
    #[cold]
    pub(crate) fn show_always(
        &mut self,
        record: &ClientRecord,
        (command, args): (&str, &Args<'_>),
        tsc: u64,
    ) {
        if !self.shows_requests {
            return;
        }
        let mut line = Vec::with_capacity(128);
        line.push(b'+');
        line.resize(TIME_AT + TIME_BYTES, b'0');
        let db = record.db.load(Ordering::Relaxed);
        let source = if self.turn.in_script {
            "lua"
        } else if record.has(flag::UNIX_SOCKET) {
            &format!("unix:{}", self.config.unixsocket)
        } else {
            &*record.address
        };
        let written = write!(line, " [{db} {source}]");
        debug_assert!(written.is_ok(), "a vector takes everything");
        for arg in shown(command, args) {
            line.push(b' ');
            match arg {
                None => line.extend_from_slice(b"\"(redacted)\""),
                Some(arg) => push_quoted(&mut line, arg),
            }
        }
        line.extend_from_slice(b"\r\n");
        self.send_line(line, tsc);
    }

    fn send_line(&mut self, line: Vec<u8>, tsc: u64) {
        let unix_us = self.unix_us_at(tsc);
        let (node, mut receivers, mut full) = (&self.node, 0u128, 0u128);
        node.shown_requests.bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
        node.shown_requests.longest.fetch_max(line.len() as u64, Ordering::Relaxed);
        let stamp = |line: &mut [u8]| node.shown_requests.stamp(line, unix_us);
        node.pubsub.show_request(line, stamp, &mut |thread, message| {
            if node.inboxes.has_room_for_lines(thread) {
                node.inboxes.push(thread, Delivery::Published(message));
                receivers |= 1 << thread;
            } else {
                full |= 1 << thread;
            }
        });
        self.receivers |= receivers;
        while full != 0 {
            let thread = full.trailing_zeros();
            full &= full - 1;
            if self.node.inboxes.begin_cut(thread as usize) {
                self.cut_watchers(thread);
            }
        }
    }

    /// Marks those who watch on a thread as killed: it is behind by too many lines, and they would
    /// miss some. It closes them when it takes in the lines that it has.
    fn cut_watchers(&self, thread: u32) {
        let node = &self.node;
        for record in node.clients.all() {
            let is_there = record.location.place().0 == thread;
            if is_there && record.has(flag::MONITOR) && node.kill(&record) {
                self.stats.output_limit_closes.add(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_lines_never_fall() {
        let shown = ShownRequests::default();
        let stamped = |unix_us| {
            let mut line = b"+0000000000.000000 rest".to_vec();
            shown.stamp(&mut line, unix_us);
            String::from_utf8_lossy(&line).into_owned()
        };
        assert_eq!(stamped(1_700_000_000_000_042), "+1700000000.000042 rest");
        assert_eq!(stamped(1_600_000_000_000_000), "+1700000000.000042 rest");
        assert_eq!(stamped(1_700_000_001_500_000), "+1700000001.500000 rest");
    }
}
