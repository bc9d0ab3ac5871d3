//! The table of all commands: the rows of `engine` and those of this folder.

use std::sync::LazyLock;

use ::command::Row;
use engine::{BLOCKING_FAMILIES, FAMILIES};

use super::{client, command, config, connection, debug, info, lolwut, memory, server, slowlog};
use crate::execution::node_cx::NodeHandler;
use crate::execution::table::{Call, Table};

/// The rows of all families that work on sessions or the server.
const NODE_FAMILIES: &[&[Row<NodeHandler>]] = &[
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
const MIXED_FAMILIES: &[&[Row<Call>]] = &[memory::ROWS];

/// The one table of the process.
pub fn table() -> &'static Table {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let mut table = Table::new();
        table.add_all(FAMILIES, Call::Data);
        table.add_all(BLOCKING_FAMILIES, Call::Blocking);
        table.add_all(NODE_FAMILIES, Call::Node);
        table.add_all(MIXED_FAMILIES, |call| call);
        table
    });
    &TABLE
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
