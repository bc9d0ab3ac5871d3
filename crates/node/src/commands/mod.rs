//! Commands on sessions and on the server itself: one file per family, as in `engine`.

use core::net::SocketAddr;

use ::command::{Flags, Group, Row, Spec};
use engine::{Error, ShardAccess, help};
use resp::{Args, Reply};

use crate::clients::record::{ClientRecord, flag};
use crate::clients::session::Session;
use crate::execution::executor::Outcome;
use crate::execution::table::{Call, Entry, table};
use crate::execution::worker::Worker;
use crate::host::Host;

mod client;
mod command;
mod config;
mod connection;
mod debug;
mod footprint;
mod handshake;
mod info;
mod lolwut;
mod memory;
mod server;
mod slowlog;

/// What a command on sessions or the server does.
pub type NodeHandler = fn(&mut NodeCx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// The rows of all families that work on sessions or the server.
pub const FAMILIES: &[&[Row<NodeHandler>]] = &[
    client::ROWS,
    connection::ROWS,
    command::ROWS,
    config::ROWS,
    debug::ROWS,
    info::ROWS,
    lolwut::ROWS,
    server::ROWS,
    slowlog::ROWS,
];

/// The rows of families where one subcommand works on the server and another on data.
pub const MIXED_FAMILIES: &[&[Row<Call>]] = &[memory::ROWS];

/// The context of one command.
pub struct NodeCx<'a> {
    /// The thread's means, the shared state among them.
    pub worker: &'a mut Worker,
    /// The client that sent the request.
    pub session: &'a mut Session,
    /// The command.
    pub entry: &'static Entry,
    /// All shards, one at a time.
    pub shards: &'a dyn ShardAccess,
    /// Services of the process.
    pub host: &'a dyn Host,
    /// What happens after the reply, unless the command fails.
    pub outcome: Outcome,
}

/// Whether a client is on this host: by the unix socket or a loopback address.
fn is_local(client: &ClientRecord) -> bool {
    let address = client.address.parse::<SocketAddr>();
    client.has(flag::UNIX_SOCKET)
        || address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
}

/// The metadata of a container's HELP.
const fn help_spec(group: Group, since: &'static str) -> Spec {
    Spec::new("help", 2, group, since)
        .summary("Prints this text.")
        .flags(Flags::LOADING.with(Flags::STALE))
}

/// What every container's HELP does: prints the rows of its subcommands.
fn help(cx: &mut NodeCx<'_>, _args: &mut Args<'_>, reply: &mut Reply<'_>) -> Result<(), Error> {
    let command = cx.entry.name.split('|').next().unwrap_or_default();
    let specs = table().find(command.as_bytes()).into_iter();
    let specs = specs.flat_map(|entry| table().subcommands(entry)).map(|entry| entry.spec);
    let lines = help::lines(command, specs);
    reply.array(lines.len());
    for line in lines {
        reply.simple(&line);
    }
    Ok(())
}
