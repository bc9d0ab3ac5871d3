//! A primary's view of one replica.
//!
//! ```text
//!  SYNC, PSYNC            cut of the snapshot           RDB file sent
//!  ---------> wait_bgsave ----------------> send_bulk ----------------> online
//!                                                |        behind a mark: no stream before the
//!                                                |        first REPLCONF ACK
//!                                                +----> the end, after `rdb-only 1`
//!  PSYNC, partial -----------------------------------------------------> online
//! ```
//!
//! The link keeps no bytes and no positions in the backlog: its owner sends, and asks the link what
//! may be sent. Acknowledged offsets only grow. Times are milliseconds of a monotonic clock.

use std::fmt;

use crate::replconf::{PeerVersion, ReplicaOptions};

/// How often a replica that waits for a snapshot gets a newline.
const KEEP_ALIVE_PERIOD_MS: u64 = 1_000;
/// From this version on Valkey reads its own RDB version.
const VALKEY_RDB_MIN: PeerVersion = PeerVersion([9, 0, 0]);

/// The state of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// The replica waits for the cut of a snapshot.
    WaitBgsave,
    /// The replica receives an RDB file.
    SendBulk,
    /// The replica receives the stream, or has to send its first ACK to receive it.
    Online,
    /// The replica has the RDB file that it asked for, and its connection ends.
    RdbTransmitted,
}

impl ReplicaState {
    /// The name in INFO.
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitBgsave => "wait_bgsave",
            Self::SendBulk => "send_bulk",
            Self::Online => "online",
            Self::RdbTransmitted => "rdb_transmitted",
        }
    }
}

/// Why a replica is disconnected. It prints as the line for the log, without the replica's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaTimeout {
    /// The replica sent no ACK.
    Streaming,
    /// The replica did not read the RDB file.
    FullSync,
}

impl fmt::Display for ReplicaTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streaming => "Disconnecting timedout replica (streaming sync)",
            Self::FullSync => "Disconnecting timedout replica (full sync)",
        })
    }
}

/// The version of an RDB file for a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireRdbVersion {
    /// 11, which every peer since Redis 7.2 reads.
    Shared,
    /// 12, with Redis's types for fields with a TTL.
    Redis,
    /// 80, with Valkey's type for them.
    Valkey,
}

impl WireRdbVersion {
    /// The version for a dataset and a replica. A Redis replica never says its version, so it gets
    /// Redis's types, which Redis 7.4 and later read.
    pub fn of(has_field_ttls: bool, replica: Option<PeerVersion>) -> Self {
        match (has_field_ttls, replica) {
            (false, _) => Self::Shared,
            (true, Some(version)) if version >= VALKEY_RDB_MIN => Self::Valkey,
            (true, _) => Self::Redis,
        }
    }

    /// The number in the file's first line.
    pub fn number(self) -> u8 {
        match self {
            Self::Shared => 11,
            Self::Redis => 12,
            Self::Valkey => 80,
        }
    }
}

/// A replica of this server.
#[derive(Debug)]
pub struct ReplicaLink {
    options: ReplicaOptions,
    peer_ip: Vec<u8>,
    state: ReplicaState,
    /// The replica came by SYNC, and need not acknowledge anything.
    is_silent: bool,
    awaits_first_ack: bool,
    applied: u64,
    durable: u64,
    /// When it was heard last.
    heard_ms: u64,
    /// When it was sent something last, until it is online.
    sent_ms: u64,
}

impl ReplicaLink {
    /// A replica that continues, connected from `peer_ip`. The stream follows +CONTINUE.
    pub fn partial(options: ReplicaOptions, peer_ip: Vec<u8>, now_ms: u64) -> Self {
        let link = Self::full(options, peer_ip, false, now_ms);
        Self { state: ReplicaState::Online, ..link }
    }

    /// A replica that waits for a snapshot. `by_sync` is SYNC instead of PSYNC.
    pub fn full(options: ReplicaOptions, peer_ip: Vec<u8>, by_sync: bool, now_ms: u64) -> Self {
        Self {
            options,
            peer_ip,
            state: ReplicaState::WaitBgsave,
            is_silent: by_sync,
            awaits_first_ack: false,
            applied: 0,
            durable: 0,
            heard_ms: now_ms,
            sent_ms: now_ms,
        }
    }

    /// The options that it set by REPLCONF.
    pub fn options(&self) -> &ReplicaOptions {
        &self.options
    }

    /// The same, for REPLCONF on the open link.
    pub fn options_mut(&mut self) -> &mut ReplicaOptions {
        &mut self.options
    }

    /// The state.
    pub fn state(&self) -> ReplicaState {
        self.state
    }

    /// `type` in INFO: Weft uses one connection for each replica.
    pub fn type_name(&self) -> &'static str {
        "replica"
    }

    /// The address at which other servers reach it: what it announced, or that of its connection.
    pub fn ip(&self) -> &[u8] {
        self.options.ip_address.as_deref().unwrap_or(&self.peer_ip)
    }

    /// Whether FAILOVER's TO means this replica.
    pub fn has_address(&self, host: &[u8], port: i64) -> bool {
        self.ip().eq_ignore_ascii_case(host) && self.options.listening_port == port
    }

    /// The last byte that it has applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The last byte in its synced append-only file.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// Seconds since it was heard; 0 before it is online.
    pub fn lag_seconds(&self, now_ms: u64) -> u64 {
        match self.state {
            ReplicaState::Online => now_ms.saturating_sub(self.heard_ms) / 1_000,
            _ => 0,
        }
    }

    /// Whether bytes of the stream may be sent. Peers that spool an RDB file to disk recognize its
    /// mark only as the last bytes of a read, so nothing follows it before their first ACK.
    pub fn may_send_stream(&self) -> bool {
        self.state == ReplicaState::Online && !self.awaits_first_ack
    }

    /// The cut of its snapshot has passed, and +FULLRESYNC and the RDB file are sent now.
    pub fn begin_bulk(&mut self, now_ms: u64) {
        if self.state == ReplicaState::WaitBgsave {
            (self.state, self.sent_ms) = (ReplicaState::SendBulk, now_ms);
        }
    }

    /// The replica took some bytes of the RDB file.
    pub fn handle_bulk_progress(&mut self, now_ms: u64) {
        self.sent_ms = now_ms;
    }

    /// The replica took the last byte of the RDB file, which ended with a mark or had a length.
    pub fn end_bulk(&mut self, has_mark: bool, now_ms: u64) {
        if self.state != ReplicaState::SendBulk {
            return;
        }
        if self.options.rdb_only {
            self.state = ReplicaState::RdbTransmitted;
            return;
        }
        (self.state, self.heard_ms) = (ReplicaState::Online, now_ms);
        self.awaits_first_ack = has_mark;
    }

    /// Takes an ACK. Returns whether the stream begins with it.
    pub fn handle_ack(&mut self, applied: u64, durable: Option<u64>, now_ms: u64) -> bool {
        self.applied = self.applied.max(applied);
        self.durable = self.durable.max(durable.unwrap_or(0));
        self.heard_ms = now_ms;
        let begins = self.state == ReplicaState::Online && self.awaits_first_ack;
        self.awaits_first_ack &= !begins;
        begins
    }

    /// Takes an empty line, by which a replica that loads a file shows that it is alive.
    pub fn handle_newline(&mut self, now_ms: u64) {
        self.heard_ms = now_ms;
    }

    /// Whether a newline is due that keeps a waiting replica alive.
    pub fn poll_keep_alive(&mut self, now_ms: u64) -> bool {
        let is_due = self.state == ReplicaState::WaitBgsave
            && now_ms.saturating_sub(self.sent_ms) >= KEEP_ALIVE_PERIOD_MS;
        if is_due {
            self.sent_ms = now_ms;
        }
        is_due
    }

    /// Why the replica is disconnected now, if it is: `repl-timeout` has passed.
    pub fn timeout(&self, now_ms: u64, timeout_ms: u64) -> Option<ReplicaTimeout> {
        let is_over = |since: u64| now_ms.saturating_sub(since) > timeout_ms;
        match self.state {
            ReplicaState::Online if !self.is_silent && is_over(self.heard_ms) => {
                Some(ReplicaTimeout::Streaming)
            }
            ReplicaState::SendBulk if is_over(self.sent_ms) => Some(ReplicaTimeout::FullSync),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
#[path = "replica_link_tests.rs"]
mod tests;
