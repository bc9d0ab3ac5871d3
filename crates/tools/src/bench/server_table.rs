//! Tables of servers side by side, in the form that the command line asks for.

use std::fmt::Display;

use serde_json::Value;

use crate::printable::printable;
use crate::{Error, output};

/// A table with a column for each server; `Display` is its text for a terminal.
pub(super) trait ServerTable: Display {
    /// All figures. Their names stay, and units are in the names.
    fn json(&self) -> Value;

    /// The table for a document.
    fn markdown(&self) -> String;
}

/// The form of a printed table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableForm {
    /// For a terminal.
    Text,
    /// For programs.
    Json,
    /// For documents.
    Markdown,
}

impl TableForm {
    /// Prints a table.
    pub(super) fn print(self, table: &impl ServerTable) -> Result<(), Error> {
        print(&match self {
            TableForm::Text => table.to_string(),
            TableForm::Json => format!("{}\n", table.json()),
            TableForm::Markdown => table.markdown(),
        })
    }
}

/// Prints at once, so that a reader at the other end of a pipe sees the floor's port. The text may
/// contain names of commands and replies of servers.
pub(super) fn print(text: &str) -> Result<(), Error> {
    output::print(&printable(text))
}

/// The result of a measurement whose table is printed.
pub(super) fn ended(is_interrupted: bool, failures: usize) -> Result<(), Error> {
    match failures {
        _ if is_interrupted => Err(Error::Interrupted),
        0 => Ok(()),
        count => Err(Error::NotMeasured { count }),
    }
}
