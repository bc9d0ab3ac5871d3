//! MONITOR: the requests that are executed, as lines for the clients that watch them.
//!
//! A line is encoded once and goes to each thread with such clients as one message, as in pub/sub.
//! It is sent when its command has ended and before the reply is sent, so commands that follow from
//! a reply have later lines. All clients see all lines in one order, by rising times; of two
//! commands that end within a few microseconds of each other on two threads, either may come first.
//!
//! Without watching clients this costs nothing: threads look at each run closely only while there
//! are some, as they do for HOTKEYS ([`account`](crate::execution::accounting::account)).
//!
//! No thread waits until another takes its lines in: the lines in its inbox are bounded, and beyond
//! that its thread closes the clients that watch there, before they get a later line. Lines for
//! clients that do not read are bounded for all of them together, except for one line, which may
//! wait for each: however long it is, clients that read are never closed.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use base::quote::push_quoted;
use pubsub::ChannelKind;
use resp::Args;

use crate::clients::record::{ClientRecord, flag};
use crate::execution::worker::Worker;
use crate::state::inboxes::Delivery;
use crate::state::node::Node;
use crate::state::shown_requests::{TIME_AT, TIME_BYTES};
use crate::stats::slowlog::shown;

/// Bytes of lines that may wait for all watching clients, whatever `client-output-buffer-limit`
/// says: the class of these clients, that of ordinary ones, has no limit by default.
const OUTPUT_BYTES_MAX: u64 = 256 << 20;
/// By how much that may grow until it is added up again.
const GROWTH_BYTES_MAX: u64 = OUTPUT_BYTES_MAX / 16;

impl Node {
    /// Whether so many bytes of lines are too much for a watching client: more than its share,
    /// while the lines of all together exceed the bound.
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

/// Shows a request that has ended at this TSC to the clients that watch requests. `command` is its
/// command's name.
#[cold]
pub(crate) fn show_request(
    worker: &mut Worker,
    record: &ClientRecord,
    command: &str,
    args: &Args<'_>,
    tsc: u64,
) {
    if !worker.shows_requests {
        return;
    }
    let mut line = Vec::with_capacity(128);
    line.push(b'+');
    line.resize(TIME_AT + TIME_BYTES, b'0');
    let db = record.db.load(Ordering::Relaxed);
    let source = if worker.turn.in_script {
        "lua"
    } else if record.has(flag::UNIX_SOCKET) {
        &format!("unix:{}", worker.config.unixsocket)
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
    worker.send_line(line, tsc);
}

impl Worker {
    fn send_line(&mut self, line: Vec<u8>, tsc: u64) {
        let unix_us = self.unix_us_at(tsc);
        let Self { node, receivers, .. } = self;
        node.shown_requests.bytes.fetch_add(line.len() as u64, Ordering::Relaxed);
        node.shown_requests.longest.fetch_max(line.len() as u64, Ordering::Relaxed);
        let stamp = |line: &mut [u8]| node.shown_requests.stamp(line, unix_us);
        node.pubsub.show_request(line, stamp, &mut |thread, message| {
            if node.inboxes.has_room_for_lines(thread) {
                node.inboxes.push(thread, Delivery::Published(message));
            } else {
                // Here, where the thread is known to have such clients.
                node.inboxes.cut(thread);
            }
            receivers.threads |= 1 << thread;
        });
    }
}
