//! The output of the client, and the reasons why it ends early.

use std::io::{self, ErrorKind, Write};

/// Why the client ends early.
#[derive(Debug)]
pub enum CliEnd {
    /// With this error text and code 1.
    Failed(String),
    /// With this code; the reason is printed already.
    Code(u8),
    /// The reader of the output has closed it.
    OutputClosed,
}

impl CliEnd {
    pub fn failed(reason: impl Into<String>) -> CliEnd {
        CliEnd::Failed(reason.into())
    }
}

/// Writes to standard output and flushes.
pub fn print(bytes: &[u8]) -> Result<(), CliEnd> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => CliEnd::OutputClosed,
        _ => CliEnd::failed(format!("cannot write the output: {error}")),
    })
}
