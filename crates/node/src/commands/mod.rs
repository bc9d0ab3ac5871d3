//! Commands on sessions and on the server itself: one file per family, as in `engine`.

use engine::{Error, Flags, Group, Row, Spec, Visit, help};
use resp::{Args, Reply};

use crate::host::Host;
use crate::session::Session;
use crate::table::{Entry, table};
use crate::worker::Worker;

mod client;
mod connection;
mod handshake;

/// What a command on sessions or the server does.
pub type NodeHandler = fn(&mut NodeCx<'_>, &mut Args<'_>, &mut Reply<'_>) -> Result<(), Error>;

/// The rows of all families that work on sessions or the server.
pub const FAMILIES: &[&[Row<NodeHandler>]] = &[client::ROWS, connection::ROWS];

/// What happens after the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The next request.
    Done,
    /// The client is closed when its replies are sent.
    Close,
    /// There is no reply, whatever was written; then the next request.
    NoReply,
}

/// The context of one command.
pub struct NodeCx<'a> {
    /// The thread's means, the shared state among them.
    pub worker: &'a mut Worker,
    /// The client that sent the request.
    pub session: &'a mut Session,
    /// The command.
    pub entry: &'static Entry,
    /// All shards, one at a time.
    pub shards: &'a dyn Visit,
    /// Services of the process.
    pub host: &'a dyn Host,
    /// What happens after the reply.
    pub then: &'a mut Then,
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

/// Puts a run that took long into the slow log.
pub(crate) fn note_slow(
    _worker: &Worker,
    _session: &Session,
    _entry: &Entry,
    _args: &Args<'_>,
    _ticks: u64,
) {
}
