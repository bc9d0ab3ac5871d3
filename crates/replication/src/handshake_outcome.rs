//! How a handshake ends, and its lines for the log, in the words that operators search for.

use std::fmt;

use crate::replid::ReplicationId;

/// The end of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeOutcome {
    /// An RDB file with the data at this offset of a history follows, and then the stream.
    Full {
        /// The primary's id.
        id: ReplicationId,
        /// The offset of the last byte whose effect the file has.
        offset: u64,
    },
    /// An RDB file of a primary that knows no offsets follows, and then the stream. The replica
    /// sends no REPLCONF ACK and cannot resume.
    FullWithoutOffset,
    /// The stream continues at the wanted byte.
    Continue {
        /// The primary's id if it sent one, which may be new:
        /// [`ReplicationHistory::continue_as`](crate::history::ReplicationHistory::continue_as).
        id: Option<ReplicationId>,
    },
    /// The connection is closed, and the replica tries again later.
    Retry(HandshakeFailure),
}

/// Why a handshake failed. It prints as the line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The answer to PING.
    Ping(String),
    /// The answer to AUTH.
    Auth(String),
    /// An error to PSYNC that will pass, such as -NOMASTERLINK and -LOADING.
    NotNow(String),
    /// The user may not use PSYNC, or has to log in.
    NotPermitted(String),
    /// The target of a failover does not take over.
    FailoverRefused(String),
    /// A line that no primary sends.
    BadAnswer(String),
    /// The primary sent nothing for `repl-timeout`.
    Timeout,
}

impl HandshakeFailure {
    /// Whether the operator has to act before another attempt can succeed.
    pub fn needs_operator(&self) -> bool {
        matches!(self, Self::Auth(_) | Self::NotPermitted(_) | Self::BadAnswer(_))
    }
}

impl fmt::Display for HandshakeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ping(reply) => write!(f, "Error reply to PING from master: '{reply}'"),
            Self::Auth(reply) => write!(f, "Unable to AUTH to MASTER: {reply}"),
            Self::NotNow(reply) => write!(
                f,
                "Master is currently unable to PSYNC but should be in the future: {reply}"
            ),
            Self::NotPermitted(reply) => write!(
                f,
                "The master refuses PSYNC: {reply}; check 'masteruser' and 'masterauth', and that \
                 the user may run PSYNC, REPLCONF and PING"
            ),
            Self::FailoverRefused(reply) => {
                write!(f, "Failover target rejected psync request: {reply}")
            }
            Self::BadAnswer(reply) => {
                write!(f, "Unexpected reply from master in replication handshake: {reply}")
            }
            Self::Timeout => f.write_str("Timeout connecting to the MASTER..."),
        }
    }
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeEvent {
    /// The primary answered PING.
    PingAnswered,
    /// The primary does not know an option of REPLCONF, which does no harm.
    NotUnderstood(&'static str, String),
    /// The replica asks for the rest of its history.
    Resuming(ReplicationId, u64),
    /// The replica has no history to resume.
    NothingToResume,
    /// The primary continues.
    Continued,
    /// The primary has another id.
    IdChanged(ReplicationId),
    /// The primary sends all of its data.
    FullResync(ReplicationId, u64),
    /// The primary does not know PSYNC; the replica sends SYNC.
    RetryingWithSync(String),
}

impl fmt::Display for HandshakeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PingAnswered => {
                f.write_str("Master replied to PING, replication can continue...")
            }
            Self::NotUnderstood(option, reply) => {
                write!(f, "(Non critical) Master does not understand REPLCONF {option}: {reply}")
            }
            Self::Resuming(id, offset) => {
                write!(f, "Trying a partial resynchronization (request {id}:{offset}).")
            }
            Self::NothingToResume => {
                f.write_str("Partial resynchronization not possible (no cached master)")
            }
            Self::Continued => {
                f.write_str("MASTER <-> REPLICA sync: Master accepted a Partial Resynchronization.")
            }
            Self::IdChanged(id) => write!(f, "Master replication ID changed to {id}"),
            Self::FullResync(id, offset) => write!(f, "Full resync from master: {id}:{offset}"),
            Self::RetryingWithSync(reply) => write!(
                f,
                "Master does not support PSYNC or is in error state (reply: {reply}). Retrying \
                 with SYNC..."
            ),
        }
    }
}
