//! Reasons why an actor cannot go on with its connection.

use std::io::{self, ErrorKind};

use test_support::Value;

/// Why an actor cannot go on with its connection.
#[derive(Debug)]
pub enum Trouble {
    /// The connection is closed.
    Lost,
    /// The server has not replied in time.
    Silent,
    /// The server has sent a reply that breaks a promise.
    Wrong(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidData => Self::Wrong(error.to_string()),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Lost,
        }
    }
}

/// An error about a broken promise.
pub fn wrong<T>(text: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(text.into()))
}

/// Fails unless a reply is this status.
pub fn expect(reply: &Value, status: &str) -> Result<(), Trouble> {
    match reply.bytes() {
        Some(text) if text == status.as_bytes() => Ok(()),
        _ => wrong(format!("{reply} is not {status}")),
    }
}
