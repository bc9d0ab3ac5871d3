//! A client as a line of text, for CLIENT LIST and logs.
//!
//! ```text
//! id=3 addr=127.0.0.1:52555 laddr=127.0.0.1:6379 fd=8 name= age=855 ... lib-ver= io-thread=0
//! ```
//!
//! A line is made from the record, so that no client is disturbed by being listed; values that
//! change during a turn may be a turn old. Fields of features that do not exist yet have the value
//! of a client that does not use them.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use super::node::Node;
use crate::clients::record::{ClientRecord, flag};

/// The line of a client, without its end.
pub fn client_line(record: &ClientRecord, node: &Node, steady_ms: i64) -> String {
    let mut line = String::new();
    push_line(&mut line, record, node, steady_ms);
    line
}

/// Appends the line of a client, without its end.
pub(crate) fn push_line(out: &mut String, record: &ClientRecord, node: &Node, steady_ms: i64) {
    let names = record.names();
    let [name, library, version] =
        [&names.name, &names.library, &names.library_version].map(|name| listed(name));
    let seconds = |ms: i64| ms.div_euclid(1000);
    let now = seconds(steady_ms);
    let age = now - seconds(record.created_ms);
    let idle = now - seconds(record.seen_ms.load(Ordering::Relaxed));
    let query = record.query_bytes.load(Ordering::Relaxed);
    let output = record.output_bytes.load(Ordering::Relaxed);
    let arguments = record.held_bytes();
    let (watched, _) = record.watched();
    let (queued, queued_bytes) = match record.queued() {
        Some((queued, bytes)) => (i64::from(queued), bytes),
        None => (-1, 0),
    };
    let last = record.last_command.load(Ordering::Relaxed).checked_sub(1);
    let command = last.and_then(|index| node.table.entries().get(usize::from(index)));
    let redirect = record.tracking.mode().map_or(-1, |mode| mode.redirect as i64);
    let [channels, patterns, shard_channels] = record.subscribed();
    // Replies waiting are bytes of one buffer, not a list; arguments are slices of the query.
    let written = write!(
        out,
        "id={} addr={} laddr={} fd={} name={name} age={age} idle={idle} flags={} db={} \
         sub={channels} psub={patterns} ssub={shard_channels} multi={queued} watch={watched} \
         qbuf={query} qbuf-free=0 argv-mem={arguments} multi-mem={queued_bytes} \
         rbs={output} rbp={output} obl={output} oll=0 omem={output} tot-mem={} events={} \
         cmd={} user={} redir={redirect} resp={} lib-name={library} lib-ver={version} \
         io-thread={} tot-net-in={} tot-net-out={} tot-cmds={}",
        record.id,
        record.address,
        record.local_address,
        record.fd_guard.number(),
        flags(record, node.is_blocked(record)),
        record.db.load(Ordering::Relaxed),
        record.memory_bytes(),
        if output > 0 { "rw" } else { "r" },
        command.map_or("NULL", |command| &command.name),
        String::from_utf8_lossy(names.user()),
        if record.has(flag::RESP3) { 3 } else { 2 },
        record.location.place().0,
        record.in_bytes.load(Ordering::Relaxed),
        record.out_bytes.load(Ordering::Relaxed),
        record.commands.load(Ordering::Relaxed),
    );
    debug_assert!(written.is_ok(), "a string takes everything");
}

/// A name up to a zero byte: what stands behind one was not checked for spaces.
fn listed(name: &[u8]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// The letters of a client's flags in Redis's order; `N` for none.
fn flags(record: &ClientRecord, is_blocked: bool) -> String {
    const LETTERS: [(u32, char); 4] = [
        (flag::CLOSING, 'c'),
        (flag::UNIX_SOCKET, 'U'),
        (flag::NO_EVICT, 'e'),
        (flag::NO_TOUCH, 'T'),
    ];
    let mode = record.tracking.mode();
    let set = LETTERS.iter().filter(|(flag, _)| record.has(*flag));
    let first = [
        (record.has(flag::MONITOR), 'O'),
        (record.has(flag::PUBSUB), 'P'),
        (record.queued().is_some(), 'x'),
        (is_blocked, 'b'),
        (mode.is_some(), 't'),
        (mode.is_some_and(|mode| mode.is_broken), 'R'),
        (mode.is_some_and(|mode| mode.broadcasts), 'B'),
        (record.watched().1, 'd'),
    ];
    let first = first.into_iter().filter_map(|(is_set, letter)| is_set.then_some(letter));
    let letters: String = first.chain(set.map(|(_, letter)| *letter)).collect();
    if letters.is_empty() { "N".to_owned() } else { letters }
}
