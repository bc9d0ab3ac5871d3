//! FAILOVER: a primary hands its role to a replica without losing a write.
//!
//! ```text
//!              FAILOVER              a replica has every byte, or FORCE after TIMEOUT
//! no-failover ---------> waiting-for-sync --------------> failover-in-progress
//!      ^  ABORT, TIMEOUT        |     writes are paused    PSYNC .. FAILOVER   |
//!      +------------------------+  <---------------------------------+         |
//!      |                               rejected, ABORT: primary again          |
//!      +-----------------------------------------------------------------------+
//!                                      accepted: replica of the target
//! ```
//!
//! From the request to the end, writes are paused and the server appends nothing of its own to the
//! stream: no PING and no GETACK. Otherwise the offset that replicas must reach would move away.
//! The owner appends one last GETACK before the pause, so that replicas acknowledge at once.

use std::fmt;

use base::number::parse_i64;
use resp::Args;

use crate::replica_link::{ReplicaLink, ReplicaState};

/// FAILOVER's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailoverCommand {
    /// ABORT.
    Abort,
    /// Anything else.
    Start(FailoverOptions),
}

/// The options of a failover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailoverOptions {
    /// TO: the replica's host and port; any replica without it.
    pub target: Option<(Vec<u8>, i64)>,
    /// FORCE: fail over after the timeout, although the replica may miss writes.
    pub force: bool,
    /// TIMEOUT in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Why FAILOVER is refused; the text is the reply without its `-`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailoverError {
    /// An unknown or repeated option.
    Syntax,
    /// A port or timeout that is no number.
    NotInteger,
    /// A timeout below 1.
    Timeout,
    /// ABORT without a failover.
    NotInProgress,
    /// A second failover.
    InProgress,
    /// A replica cannot hand over.
    IsReplica,
    /// There are no replicas.
    NoReplicas,
    /// FORCE without TO and TIMEOUT.
    ForceIncomplete,
    /// TO is no replica.
    NotAReplica,
    /// TO is not in sync.
    NotOnline,
}

impl fmt::Display for FailoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR ")?;
        f.write_str(match self {
            Self::Syntax => "syntax error",
            Self::NotInteger => "value is not an integer or out of range",
            Self::Timeout => "FAILOVER timeout must be greater than 0",
            Self::NotInProgress => "No failover in progress.",
            Self::InProgress => "FAILOVER already in progress.",
            Self::IsReplica => "FAILOVER is not valid when server is a replica.",
            Self::NoReplicas => "FAILOVER requires connected replicas.",
            Self::ForceIncomplete => {
                "FAILOVER with force option requires both a timeout and target HOST and IP."
            }
            Self::NotAReplica => "FAILOVER target HOST and PORT is not a replica.",
            Self::NotOnline => "FAILOVER target replica is not online.",
        })
    }
}

impl std::error::Error for FailoverError {}

impl FailoverCommand {
    /// Reads the arguments.
    ///
    /// # Errors
    /// If they are no options of FAILOVER.
    pub fn parse(args: &Args<'_>) -> Result<Self, FailoverError> {
        let is = |at, word: &[u8]| args.text(at).eq_ignore_ascii_case(word);
        if args.len() == 2 && is(1, b"abort") {
            return Ok(Self::Abort);
        }
        let number = |at| parse_i64(args.text(at)).ok_or(FailoverError::NotInteger);
        let mut options = FailoverOptions::default();
        let mut at = 1;
        while at < args.len() {
            let values = args.len() - at - 1;
            if is(at, b"timeout") && values >= 1 && options.timeout_ms.is_none() {
                let timeout_ms = u64::try_from(number(at + 1)?).ok().filter(|ms| *ms > 0);
                options.timeout_ms = Some(timeout_ms.ok_or(FailoverError::Timeout)?);
                at += 2;
            } else if is(at, b"to") && values >= 2 && options.target.is_none() {
                options.target = Some((args.text(at + 1).to_vec(), number(at + 2)?));
                at += 3;
            } else if is(at, b"force") && !options.force {
                options.force = true;
                at += 1;
            } else {
                return Err(FailoverError::Syntax);
            }
        }
        Ok(Self::Start(options))
    }
}

/// `master_failover_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailoverState {
    /// No failover.
    #[default]
    NoFailover,
    /// Writes are paused until a replica has all of them.
    WaitingForSync,
    /// The target was asked to become the primary.
    InProgress,
}

impl FailoverState {
    /// The name in INFO.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoFailover => "no-failover",
            Self::WaitingForSync => "waiting-for-sync",
            Self::InProgress => "failover-in-progress",
        }
    }
}

/// The next act of a failover's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailoverStep {
    /// Become a replica of the target, and send `PSYNC .. FAILOVER`. Writes stay paused.
    Switch {
        /// The target's host.
        host: Vec<u8>,
        /// The target's port.
        port: u16,
        /// Whether the target may miss writes.
        is_forced: bool,
    },
    /// The target has taken over: writes are refused by the role now, and the pause ends.
    Done,
    /// The pause ends.
    Aborted {
        /// Why, for the log.
        reason: &'static str,
        /// Whether the server had become a replica: it becomes a primary again, with a new id.
        was_switching: bool,
    },
}

/// A failover, or none.
#[derive(Debug, Default)]
pub struct Failover {
    state: FailoverState,
    options: FailoverOptions,
    deadline_ms: Option<u64>,
}

impl Failover {
    /// The state.
    pub fn state(&self) -> FailoverState {
        self.state
    }

    /// Whether writes are paused, and PING and GETACK are withheld.
    pub fn pauses_writes(&self) -> bool {
        self.state != FailoverState::NoFailover
    }

    /// Begins a failover.
    ///
    /// # Errors
    /// If the server cannot hand over now.
    pub fn start<'a>(
        &mut self,
        options: FailoverOptions,
        is_replica: bool,
        links: impl IntoIterator<Item = &'a ReplicaLink>,
        now_ms: u64,
    ) -> Result<(), FailoverError> {
        let links: Vec<_> = links.into_iter().collect();
        if self.pauses_writes() {
            return Err(FailoverError::InProgress);
        }
        if is_replica {
            return Err(FailoverError::IsReplica);
        }
        if links.is_empty() {
            return Err(FailoverError::NoReplicas);
        }
        if options.force && (options.timeout_ms.is_none() || options.target.is_none()) {
            return Err(FailoverError::ForceIncomplete);
        }
        if let Some((host, port)) = &options.target {
            let replica = links.iter().find(|link| link.has_address(host, *port) && is_port(*port));
            let replica = replica.ok_or(FailoverError::NotAReplica)?;
            if replica.state() != ReplicaState::Online {
                return Err(FailoverError::NotOnline);
            }
        }
        self.deadline_ms = options.timeout_ms.map(|timeout_ms| now_ms.saturating_add(timeout_ms));
        (self.state, self.options) = (FailoverState::WaitingForSync, options);
        Ok(())
    }

    /// FAILOVER ABORT.
    ///
    /// # Errors
    /// If there is no failover.
    pub fn abort(&mut self) -> Result<FailoverStep, FailoverError> {
        match self.pauses_writes() {
            true => Ok(self.end("Failover manually aborted")),
            false => Err(FailoverError::NotInProgress),
        }
    }

    /// The next step while replicas catch up with `offset`.
    pub fn poll<'a>(
        &mut self,
        links: impl IntoIterator<Item = &'a ReplicaLink>,
        offset: u64,
        now_ms: u64,
    ) -> Option<FailoverStep> {
        if self.state != FailoverState::WaitingForSync {
            return None;
        }
        if self.deadline_ms.is_some_and(|deadline_ms| deadline_ms <= now_ms) {
            let target = self.options.target.take().filter(|_| self.options.force);
            let switch = target.and_then(|(host, port)| self.switch_to(host, port, true));
            return Some(
                switch.unwrap_or_else(|| self.end("Replica never caught up before timeout")),
            );
        }
        let is_target = |link: &&ReplicaLink| match &self.options.target {
            Some((host, port)) => link.has_address(host, *port),
            None => true,
        };
        let has_all =
            |link: &&ReplicaLink| link.state() == ReplicaState::Online && link.applied() == offset;
        let mut synced = links.into_iter().filter(is_target).filter(has_all);
        let replica = synced.find(|link| is_port(link.options().listening_port))?;
        self.switch_to(replica.ip().to_vec(), replica.options().listening_port, false)
    }

    /// Takes the target's answer to `PSYNC .. FAILOVER`: +CONTINUE and +FULLRESYNC accept, any
    /// error refuses. A connection that ends before it is no answer; the owner tries again until
    /// ABORT.
    pub fn handle_psync_answer(&mut self, is_accepted: bool) -> Option<FailoverStep> {
        if self.state != FailoverState::InProgress {
            return None;
        }
        if !is_accepted {
            return Some(self.end("Failover target rejected psync request"));
        }
        *self = Self::default();
        Some(FailoverStep::Done)
    }

    fn switch_to(&mut self, host: Vec<u8>, port: i64, is_forced: bool) -> Option<FailoverStep> {
        let port = u16::try_from(port).ok()?;
        self.state = FailoverState::InProgress;
        self.deadline_ms = None;
        Some(FailoverStep::Switch { host, port, is_forced })
    }

    fn end(&mut self, reason: &'static str) -> FailoverStep {
        let was_switching = self.state == FailoverState::InProgress;
        *self = Self::default();
        FailoverStep::Aborted { reason, was_switching }
    }
}

/// Whether a server can be reached at a port.
fn is_port(port: i64) -> bool {
    port > 0 && u16::try_from(port).is_ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "failover_tests.rs"]
mod tests;
