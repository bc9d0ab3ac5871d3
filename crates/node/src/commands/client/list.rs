//! CLIENT LIST (<https://redis.io/docs/latest/commands/client-list/>) and CLIENT INFO: clients as
//! lines of text.
//!
//! ```text
//! id=3 addr=127.0.0.1:52555 laddr=127.0.0.1:6379 fd=8 name= age=855 ... lib-ver= io-thread=0
//! ```
//!
//! A line is made from the client's record only, without its owner thread, so values may be one
//! turn old. Fields of features that do not exist have the value of a client that does not use
//! them.

use command::{Argument, Shape, Spec};
use engine::{ConnectionError, Error, echo};
use resp::{Args, Reply};

use super::admin;
use crate::clients::record::ClientType;
use crate::execution::node_cx::NodeCx;
use crate::state::client_line::{client_line, push_line};

pub(super) const SPEC: Spec = admin("list", -2, "2.4.0")
    .summary("Returns a line for each client, or for those of a type or with the given IDs.")
    .complexity("O(N) in the connections")
    .tips(&["nondeterministic_output"])
    .history(&[
        ("2.8.12", "Lines have `id`."),
        ("5.0.0", "Filter `TYPE`."),
        ("6.0.0", "Lines have `user`."),
        ("6.2.0", "Lines have `argv-mem`, `tot-mem`, `laddr` and `redir`; filter `ID`."),
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
    let text = client_line(&cx.session.record, &cx.worker.node, cx.worker.turn.steady_ms) + "\n";
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
    // Ten thousand lines take long, and need no keyspace.
    let text = cx.outside(|_| {
        let mut text = String::new();
        for record in records.iter().filter(|record| !record.location.is_killed()) {
            push_line(&mut text, record, &cx.worker.node, cx.worker.turn.steady_ms);
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
