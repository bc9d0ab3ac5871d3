//! How a server answers SYNC and PSYNC: a partial synchronization, a full one, or an error.
//!
//! ```text
//! PSYNC id offset [FAILOVER]
//!   the client is a replica already            ignored, without a reply
//!   FAILOVER at a primary, or another id       error; else: promote, and decide again
//!   failing over, or the own link is down      -NOMASTERLINK: the replica tries again
//!   output pending                             error
//!   (id, or second id up to its offset) and first <= offset <= first + length of the backlog
//!                                              +CONTINUE [id], the backlog from offset on
//!   otherwise                                  a full synchronization: +FULLRESYNC at its cut
//! ```
//!
//! A server that loads its data refuses both commands before this decision, with -LOADING.

use std::fmt;

use base::number::parse_i64;
use resp::Args;

use crate::history::{ReplicationHistory, SecondId};
use crate::replid::{REPLICATION_ID_BYTES, ReplicationId};

/// The request of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncRequest<'a> {
    /// SYNC, of replicas and tools that know no offsets; they send no REPLCONF ACK either.
    Sync,
    /// PSYNC.
    Psync {
        /// The id, or `?` for a full synchronization.
        id: &'a [u8],
        /// The first wanted byte as it was sent, or -1.
        offset: &'a [u8],
        /// A planned failover: the receiver promotes itself first.
        failover: bool,
    },
}

impl<'a> SyncRequest<'a> {
    /// The request of PSYNC, whatever the command is renamed to.
    pub fn psync(args: &Args<'a>) -> Self {
        let failover = args.at(3).is_some_and(|word| word.eq_ignore_ascii_case(b"failover"));
        Self::Psync { id: args.text(1), offset: args.text(2), failover }
    }

    /// The request of a replica that the receiver has promoted itself for.
    pub fn after_promotion(self) -> Self {
        match self {
            Self::Sync => Self::Sync,
            Self::Psync { id, offset, .. } => Self::Psync { id, offset, failover: false },
        }
    }
}

/// The role of the server that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicationRole {
    /// A primary.
    Primary,
    /// A replica.
    Replica {
        /// Whether it is in sync with its own primary, `master_link_status:up`.
        link_up: bool,
    },
}

/// The facts that decide besides the history.
#[derive(Clone, Copy, Debug)]
pub struct SyncConditions {
    /// The role.
    pub role: ReplicationRole,
    /// Whether a FAILOVER is under way.
    pub failing_over: bool,
    /// Whether the client sent SYNC or PSYNC before on this connection.
    pub is_replica: bool,
    /// Whether replies to the client are still unsent.
    pub pending_output: bool,
    /// Whether the client asked for a filtered RDB file without `capa eof`.
    pub filtered_without_eof: bool,
    /// The bytes that can still be sent, if there is a backlog.
    pub backlog: Option<BacklogRange>,
}

/// The offsets of the bytes in a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacklogRange {
    /// `repl_backlog_first_byte_offset`.
    pub first: u64,
    /// `repl_backlog_histlen`.
    pub bytes: u64,
}

impl BacklogRange {
    /// Whether a replica can continue at an offset: at a byte of the backlog, or at the next one.
    pub fn continues_at(&self, offset: u64) -> bool {
        offset.checked_sub(self.first).is_some_and(|skipped| skipped <= self.bytes)
    }
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncAnswer {
    /// No reply: the connection is a replica's already.
    Ignored,
    /// The server promotes itself, and then answers `request.after_promotion()`.
    Promote,
    /// [`continue_line`], then the backlog from this offset on.
    Partial {
        /// The first byte to send.
        from: u64,
    },
    /// A full synchronization. [`full_resync_line`] is sent at its cut.
    Full(FullSyncReason),
}

/// Why a synchronization is full, for the log and for `sync_partial_err`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullSyncReason {
    /// The replica asked for it, by SYNC or by the id `?`.
    Asked,
    /// The id is none of the server's.
    UnknownId,
    /// The second id ends before the offset.
    SecondIdEnded {
        /// The wanted byte.
        offset: i64,
        /// The last one that this id may ask for.
        end: u64,
    },
    /// The backlog does not have the wanted bytes.
    NoBacklog {
        /// The wanted byte.
        offset: i64,
        /// Whether the replica is ahead of the server.
        is_ahead: bool,
    },
}

impl FullSyncReason {
    /// Whether `sync_partial_err` counts it: the replica wanted a partial synchronization.
    pub fn is_failed_partial(&self) -> bool {
        *self != Self::Asked
    }

    /// The line for the log about a replica's request, in the words that operators search for.
    pub fn log_line(
        &self,
        replica: impl fmt::Display,
        request: SyncRequest<'_>,
        history: &ReplicationHistory,
    ) -> String {
        const REFUSED: &str = "Partial resynchronization not accepted";
        match self {
            Self::Asked => format!("Full resync requested by replica {replica}"),
            Self::UnknownId => {
                let asked = match request {
                    SyncRequest::Sync => &b"?"[..],
                    SyncRequest::Psync { id, .. } => id,
                };
                let asked = &asked[..asked.len().min(REPLICATION_ID_BYTES)];
                let asked = String::from_utf8_lossy(asked);
                let none = "0".repeat(REPLICATION_ID_BYTES);
                let second = history.second().map_or(none, |second| second.id.to_string());
                format!(
                    "{REFUSED}: Replication ID mismatch (Replica asked for '{asked}', my \
                     replication IDs are '{}' and '{second}')",
                    history.id()
                )
            }
            Self::SecondIdEnded { offset, end } => format!(
                "{REFUSED}: Requested offset for second ID was {offset}, but I can reply up to \
                 {end}"
            ),
            Self::NoBacklog { offset, is_ahead } => {
                let ahead = match is_ahead {
                    true => " Its offset is greater than the master replication offset.",
                    false => "",
                };
                format!(
                    "Unable to partial resync with replica {replica} for lack of backlog (Replica \
                     request was: {offset}).{ahead}"
                )
            }
        }
    }
}

/// Why a request gets an error; the text is the reply without its `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncRefusal {
    /// FAILOVER at a primary.
    FailoverAtPrimary,
    /// FAILOVER with an id that is not the server's.
    FailoverIdMismatch,
    /// The server hands its role over.
    FailingOver,
    /// The server's own link is down, so it cannot know its id.
    LinkDown,
    /// Replies are still unsent.
    PendingOutput,
    /// A filtered RDB file without `capa eof`.
    FilteredWithoutEof,
    /// The offset is not a number.
    OffsetNotInteger,
}

impl fmt::Display for SyncRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FailoverAtPrimary => "ERR PSYNC FAILOVER can't be sent to a master.",
            Self::FailoverIdMismatch => "ERR PSYNC FAILOVER replid must match my replid.",
            Self::FailingOver => "NOMASTERLINK Can't SYNC while failing over",
            Self::LinkDown => "NOMASTERLINK Can't SYNC while not connected with my master",
            Self::PendingOutput => "ERR SYNC and PSYNC are invalid with pending output",
            Self::FilteredWithoutEof => "ERR Filtered replica requires EOF capability",
            Self::OffsetNotInteger => "ERR value is not an integer or out of range",
        })
    }
}

impl std::error::Error for SyncRefusal {}

/// Decides about a request.
///
/// # Errors
/// The reply that ends the request.
pub fn answer_sync(
    history: &ReplicationHistory,
    request: SyncRequest<'_>,
    conditions: &SyncConditions,
) -> Result<SyncAnswer, SyncRefusal> {
    if conditions.is_replica {
        return Ok(SyncAnswer::Ignored);
    }
    if let SyncRequest::Psync { id, failover: true, .. } = request {
        if conditions.role == ReplicationRole::Primary {
            return Err(SyncRefusal::FailoverAtPrimary);
        }
        let is_own = ReplicationId::parse(id) == Some(history.id());
        return is_own.then_some(SyncAnswer::Promote).ok_or(SyncRefusal::FailoverIdMismatch);
    }
    if conditions.failing_over {
        return Err(SyncRefusal::FailingOver);
    }
    if conditions.role == (ReplicationRole::Replica { link_up: false }) {
        return Err(SyncRefusal::LinkDown);
    }
    if conditions.pending_output {
        return Err(SyncRefusal::PendingOutput);
    }
    if conditions.filtered_without_eof {
        return Err(SyncRefusal::FilteredWithoutEof);
    }
    let SyncRequest::Psync { id, offset, .. } = request else {
        return Ok(SyncAnswer::Full(FullSyncReason::Asked));
    };
    let offset = parse_i64(offset).ok_or(SyncRefusal::OffsetNotInteger)?;
    Ok(match partial(history, id, offset, conditions.backlog) {
        Ok(from) => SyncAnswer::Partial { from },
        Err(reason) => SyncAnswer::Full(reason),
    })
}

/// The first byte of a partial synchronization, or why it has to be full.
fn partial(
    history: &ReplicationHistory,
    id: &[u8],
    offset: i64,
    backlog: Option<BacklogRange>,
) -> Result<u64, FullSyncReason> {
    if id.first() == Some(&b'?') {
        return Err(FullSyncReason::Asked);
    }
    let id = ReplicationId::parse(id).ok_or(FullSyncReason::UnknownId)?;
    let wanted = u64::try_from(offset);
    if id != history.id() {
        match history.second() {
            Some(SecondId { id: second, offset: end }) if second == id => {
                if wanted.is_ok_and(|wanted| wanted > end) {
                    return Err(FullSyncReason::SecondIdEnded { offset, end });
                }
            }
            _ => return Err(FullSyncReason::UnknownId),
        }
    }
    let is_ahead = wanted.is_ok_and(|wanted| wanted > history.next_offset());
    let no_backlog = FullSyncReason::NoBacklog { offset, is_ahead };
    let wanted = wanted.map_err(|_| no_backlog)?;
    // A backlog never reaches beyond the history, whatever its owner says.
    let has_bytes = !is_ahead && backlog.is_some_and(|backlog| backlog.continues_at(wanted));
    has_bytes.then_some(wanted).ok_or(no_backlog)
}

/// The reply that accepts a partial synchronization. Only a replica with `capa psync2` expects the
/// id.
pub fn continue_line(id: ReplicationId, psync2: bool) -> Vec<u8> {
    match psync2 {
        true => format!("+CONTINUE {id}\r\n"),
        false => "+CONTINUE\r\n".to_owned(),
    }
    .into_bytes()
}

/// The reply to PSYNC at the cut of a full synchronization: the RDB file has the data up to
/// `offset`.
pub fn full_resync_line(id: ReplicationId, offset: u64) -> Vec<u8> {
    format!("+FULLRESYNC {id} {offset}\r\n").into_bytes()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "psync_tests.rs"]
mod tests;
