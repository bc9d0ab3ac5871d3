//! CLIENT LIST (<https://redis.io/docs/latest/commands/client-list/>) and CLIENT INFO: clients as
//! lines of text.
//!
//! ```text
//! id=3 addr=127.0.0.1:52555 laddr=127.0.0.1:6379 fd=8 name= age=855 ... lib-ver= io-thread=0
//! ```
//!
//! A line is made of a record alone, so that no client is disturbed by being listed; what changes
//! in the middle of a turn may be a turn old. Fields of features that do not exist yet have the
//! value of a client that does not use them.

use std::fmt::Write;
use std::sync::atomic::Ordering;

use command::{Argument, Shape, Spec};
use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::admin;
use crate::clients::record::{ClientRecord, ClientType, flag};
use crate::execution::node_cx::NodeCx;
use crate::execution::worker::Worker;

pub(super) const SPEC: Spec = admin("list", -2, "2.4.0")
    .summary("Returns a line for each client, or for those of a type or with the given IDs.")
    .complexity("O(N) in the connections")
    .tips(&["nondeterministic_output"])
    .history(&[
        ("2.8.12", "Lines have `id`."),
        ("5.0.0", "Clients can be chosen by `TYPE`."),
        ("6.0.0", "Lines have `user`."),
        ("6.2.0", "Lines have `argv-mem`, `tot-mem`, `laddr` and `redir`; `ID` chooses clients."),
        ("7.0.0", "Lines have `resp`, `multi-mem`, `rbs` and `rbp`."),
        ("7.0.3", "Lines have `ssub`."),
        ("7.2.0", "Lines have `lib-name` and `lib-ver`."),
        ("7.4.0", "Lines have `watch`."),
        ("8.0.0", "Lines have `io-thread`."),
        ("8.4.0", "Lines have `tot-net-in`, `tot-net-out` and `tot-cmds`."),
    ])
    .arguments(&[
        Argument::new(
            "client-type",
            Shape::OneOf(&[
                Argument::word("normal", "NORMAL"),
                Argument::word("master", "MASTER"),
                Argument::word("replica", "REPLICA"),
                Argument::word("pubsub", "PUBSUB"),
            ]),
        )
        .after("TYPE")
        .optional()
        .since("5.0.0"),
        Argument::new("client-id", Shape::Integer).after("ID").optional().multiple().since("6.2.0"),
    ]);

pub(super) fn info(
    cx: &mut NodeCx<'_>,
    _args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let text = client_line(&cx.session.record, cx.worker) + "\n";
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

pub(super) fn list(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let is_first = |word: &[u8]| args.text(2).eq_ignore_ascii_case(word);
    let clients = &cx.worker.node.clients;
    let records = if args.len() == 2 {
        clients.all()
    } else if args.len() == 4 && is_first(b"type") {
        let wanted = client_type(args.text(3))?;
        clients.all().into_iter().filter(|record| record.client_type() == wanted).collect()
    } else if args.len() > 3 && is_first(b"id") {
        let ids: Option<Vec<i64>> = args.iter().skip(3).map(base::number::parse_i64).collect();
        let ids = ids.ok_or(ConnectionError::Id)?.into_iter().flat_map(u64::try_from);
        ids.filter_map(|id| clients.find(id)).collect()
    } else {
        return Err(Error::Syntax);
    };
    // Ten thousand lines take long, and none needs the keyspace.
    let text = cx.outside(|_| {
        let mut text = String::new();
        for record in records.iter().filter(|record| !record.location.is_killed()) {
            push_line(&mut text, record, cx.worker);
            text.push('\n');
        }
        text
    });
    reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// A type of client by its name.
pub(super) fn client_type(name: &[u8]) -> Result<ClientType, Error> {
    ClientType::parse(name).ok_or_else(|| ConnectionError::Type(echo(name)).into())
}

/// The line of a client, without its end.
pub fn client_line(record: &ClientRecord, worker: &Worker) -> String {
    let mut line = String::new();
    push_line(&mut line, record, worker);
    line
}

/// Appends the line of a client, without its end.
fn push_line(out: &mut String, record: &ClientRecord, worker: &Worker) {
    let names = record.names();
    let [name, library, version] =
        [&names.name, &names.library, &names.library_version].map(|name| listed(name));
    let seconds = |ms: i64| ms.div_euclid(1000);
    let now = seconds(worker.turn.steady_ms);
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
    let command = last.and_then(|index| worker.table.entries().get(usize::from(index)));
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
        flags(record, worker.node.is_blocked(record)),
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
