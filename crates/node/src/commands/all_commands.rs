//! The table of all commands: the rows of `engine` and those of this folder.

use std::sync::LazyLock;

use ::acl::CommandIndex;
use ::command::Row;
use engine::{BLOCKING_FAMILIES, FAMILIES};

use super::any_handler::AnyHandler;
use super::{
    acl, append_only, client, cluster, command, config, connection, debug, function, hotkeys, info,
    latency, lolwut, memory, module, monitor, persistence, pubsub, replication, scripting, server,
    slowlog, transactions, weft,
};
use crate::command_table::entry::{Call, Entry};
use crate::command_table::index::Table;
use crate::config::RenamedCommands;
use crate::execution::node_cx::NodeHandler;

/// The rows of families that work on sessions or the server.
const NODE_FAMILIES: &[&[Row<NodeHandler>]] = &[
    acl::ROWS,
    append_only::ROWS,
    client::ROWS,
    cluster::ROWS,
    connection::ROWS,
    command::ROWS,
    config::ROWS,
    debug::ROWS,
    function::ROWS,
    hotkeys::ROWS,
    info::ROWS,
    latency::ROWS,
    lolwut::ROWS,
    module::ROWS,
    monitor::ROWS,
    persistence::ROWS,
    pubsub::ROWS,
    replication::ROWS,
    server::ROWS,
    slowlog::ROWS,
    weft::ROWS,
];

/// The rows of families with several kinds of handlers.
const MIXED_FAMILIES: &[&[Row<AnyHandler>]] = &[memory::ROWS, scripting::ROWS, transactions::ROWS];

/// The table of all commands with their original names.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| build(&RenamedCommands::default()));
    &TABLE
}

/// The table of a server whose configuration renames commands. A command has the same index in
/// every table.
pub(crate) fn table_with(renamed: &RenamedCommands) -> &'static Table {
    if renamed.is_empty() { table() } else { Box::leak(Box::new(build(renamed))) }
}

fn build(renamed: &RenamedCommands) -> Table {
    let mut table = Table::new();
    table.add_all(FAMILIES, Call::Data, renamed);
    table.add_all(BLOCKING_FAMILIES, Call::Blocking, renamed);
    table.add_all(NODE_FAMILIES, |_| Call::Node, renamed);
    table.add_all(MIXED_FAMILIES, AnyHandler::call, renamed);
    table
}

/// The handler of a command on sessions or the server.
pub(super) fn node_handler(entry: &Entry) -> Option<NodeHandler> {
    static HANDLERS: LazyLock<Vec<Option<NodeHandler>>> = LazyLock::new(|| {
        let mut handlers = Vec::new();
        FAMILIES.iter().for_each(|rows| push_handlers(&mut handlers, rows, |_| None));
        BLOCKING_FAMILIES.iter().for_each(|rows| push_handlers(&mut handlers, rows, |_| None));
        NODE_FAMILIES.iter().for_each(|rows| push_handlers(&mut handlers, rows, Some));
        MIXED_FAMILIES.iter().for_each(|rows| push_handlers(&mut handlers, rows, AnyHandler::node));
        handlers
    });
    HANDLERS.get(usize::from(entry.index)).copied().flatten()
}

/// Adds an element for each row, in the order in which the table numbers its entries.
fn push_handlers<H: Copy>(
    handlers: &mut Vec<Option<NodeHandler>>,
    rows: &[Row<H>],
    node: fn(H) -> Option<NodeHandler>,
) {
    for row in rows {
        handlers.push(row.run.and_then(node));
        push_handlers(handlers, row.subcommands, node);
    }
}

/// The commands for ACL rules.
pub(crate) fn acl_commands() -> &'static CommandIndex {
    static COMMANDS: LazyLock<CommandIndex> = LazyLock::new(|| {
        let mut commands = CommandIndex::default();
        let mut parent = None;
        for entry in table().entries() {
            if !entry.is_subcommand {
                parent = Some(entry.index);
            }
            let parent = parent.filter(|_| entry.is_subcommand);
            commands.push(&entry.name, parent, entry.spec.categories());
        }
        commands
    });
    &COMMANDS
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_exist_are_not_listed_as_foreign() {
        for name in ::acl::foreign::FOREIGN {
            assert!(acl_commands().find(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn every_name_finds_its_entry_in_any_case() {
        for entry in table().commands() {
            assert_eq!(table().find(entry.name.as_bytes()).unwrap().index, entry.index);
            let upper = entry.name.to_uppercase();
            assert_eq!(table().find(upper.as_bytes()).unwrap().index, entry.index);
            assert!(entry.spec.name.chars().all(|c| !c.is_uppercase()));
        }
        for entry in table().entries() {
            let has_handler = node_handler(entry).is_some();
            assert_eq!(has_handler, matches!(entry.call, Call::Node), "{}", entry.name);
        }
        assert!(table().find(b"getx").is_none());
        assert!(table().find(b"").is_none());
    }
}
