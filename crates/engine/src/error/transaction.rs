//! The errors of transactions, whose commands are on layer 5.

use std::fmt;

/// Why a command on transactions, or in one, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionError {
    /// EXEC outside a transaction.
    ExecWithoutMulti,
    /// DISCARD outside a transaction.
    DiscardWithoutMulti,
    /// MULTI in a transaction.
    Nested,
    /// WATCH in a transaction.
    WatchInMulti,
    /// The command cannot be queued.
    NotAllowed,
    /// EXEC of a transaction in which a command was rejected.
    Aborted,
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ExecWithoutMulti => "ERR EXEC without MULTI",
            Self::DiscardWithoutMulti => "ERR DISCARD without MULTI",
            Self::Nested => "ERR MULTI calls can not be nested",
            Self::WatchInMulti => "ERR WATCH inside MULTI is not allowed",
            Self::NotAllowed => "ERR Command not allowed inside a transaction",
            Self::Aborted => "EXECABORT Transaction discarded because of previous errors.",
        })
    }
}
