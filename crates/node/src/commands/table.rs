//! The table of all commands: the rows of `engine` and those of this folder.

use std::sync::LazyLock;

use ::acl::CommandIndex;
use ::command::Row;
use engine::{BLOCKING_FAMILIES, FAMILIES};

use super::{
    acl, append_only, client, command, config, connection, debug, function, hotkeys, info, latency,
    lolwut, memory, module, monitor, persistence, pubsub, scripting, server, slowlog, transactions,
    weft,
};
use crate::config::RenamedCommands;
use crate::execution::node_cx::NodeHandler;
use crate::execution::table::{Call, Table};

/// The rows of all families that work on sessions or the server.
const NODE_FAMILIES: &[&[Row<NodeHandler>]] = &[
    acl::ROWS,
    append_only::ROWS,
    client::ROWS,
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
    server::ROWS,
    slowlog::ROWS,
    weft::ROWS,
];

/// The rows of families whose commands are called in different ways.
const MIXED_FAMILIES: &[&[Row<Call>]] = &[memory::ROWS, scripting::ROWS, transactions::ROWS];

/// All commands under their names.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| build(&RenamedCommands::default()));
    &TABLE
}

/// The commands of a server whose configuration renames some. A command has the same index in all
/// tables.
pub(crate) fn table_with(renamed: &RenamedCommands) -> &'static Table {
    if renamed.is_empty() { table() } else { Box::leak(Box::new(build(renamed))) }
}

fn build(renamed: &RenamedCommands) -> Table {
    let mut table = Table::new();
    table.add_all(FAMILIES, Call::Data, renamed);
    table.add_all(BLOCKING_FAMILIES, Call::Blocking, renamed);
    table.add_all(NODE_FAMILIES, Call::Node, renamed);
    table.add_all(MIXED_FAMILIES, |call| call, renamed);
    table
}

/// The commands as the rules of users see them.
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
    fn every_name_finds_its_entry_in_any_case() {
        for entry in table().commands() {
            assert_eq!(table().find(entry.name.as_bytes()).unwrap().index, entry.index);
            let upper = entry.name.to_uppercase();
            assert_eq!(table().find(upper.as_bytes()).unwrap().index, entry.index);
            assert!(entry.spec.name.chars().all(|c| !c.is_uppercase()));
        }
        assert!(table().find(b"getx").is_none());
        assert!(table().find(b"").is_none());
    }
}
