//! HELP for commands with subcommands.

use ::command::{Flags, Group, Spec};
use engine::{Error, help};
use resp::{Args, Reply};

use crate::execution::node_cx::NodeCx;

/// The metadata of a container's HELP.
pub(super) const fn help_spec(group: Group, since: &'static str) -> Spec {
    Spec::new("help", 2, group, since)
        .summary("Returns this text.")
        .flags(Flags::LOADING.with(Flags::STALE))
}

/// The handler of every container's HELP: prints the rows of its subcommands.
pub(super) fn help(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let table = cx.worker.table;
    let specs = table.find(args.name()).into_iter();
    let specs = specs.flat_map(|entry| table.subcommands(entry)).map(|entry| entry.spec);
    let lines = help::lines(&String::from_utf8_lossy(args.name()), specs);
    reply.array(lines.len());
    for line in lines {
        reply.simple(&line);
    }
    Ok(())
}
