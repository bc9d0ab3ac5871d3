//! When a replica connects to its primary again, and why it has to.
//!
//! A connection that was lost or not made is tried again at once and then each second, as peers do.
//! A failure that the next attempt would only repeat, such as a file that cannot be read, costs the
//! primary a snapshot each time: its delay doubles, up to a minute. A synchronization that lasts
//! resets both, so that a link which breaks as soon as it is up is not made again without a delay.

use std::fmt;

use crate::empty_primary::EmptyPrimaryRefused;
use crate::handshake_outcome::HandshakeFailure;
use crate::stream::BrokenStream;
use crate::transfer::TransferError;

const DELAY_MS: u64 = 1_000;
const DELAY_MAX_MS: u64 = 60_000;
/// How long a link in sync lasts before earlier failures are forgotten.
const STABLE_MS: u64 = 10_000;

/// Why a link ended. It prints as a line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFailure {
    /// The connection was not made, with the reason.
    Connect(String),
    /// The connection of a replica in sync ended.
    Lost,
    /// The primary sent nothing for `repl-timeout`.
    Timeout,
    /// The handshake failed.
    Handshake(HandshakeFailure),
    /// The RDB file did not arrive.
    Transfer(TransferError),
    /// The RDB file cannot be loaded, with the reason: its checksum, a type, a version.
    BadFile(String),
    /// The RDB file would wipe the data.
    EmptyPrimary(EmptyPrimaryRefused),
    /// The stream is broken.
    Stream(BrokenStream),
}

impl LinkFailure {
    /// Whether another attempt is likely to fail in the same way.
    fn is_lasting(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Lost | Self::Timeout => false,
            Self::Handshake(failure) => failure.needs_operator(),
            Self::Transfer(error) => !matches!(error, TransferError::Truncated { .. }),
            Self::BadFile(_) | Self::EmptyPrimary(_) | Self::Stream(_) => true,
        }
    }
}

impl fmt::Display for LinkFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(reason) => write!(f, "Unable to connect to MASTER: {reason}"),
            Self::Lost => f.write_str("Connection with master lost."),
            Self::Timeout => f.write_str("MASTER timeout: no data nor PING received..."),
            Self::Handshake(failure) => failure.fmt(f),
            Self::Transfer(error) => error.fmt(f),
            Self::BadFile(reason) => {
                write!(f, "Failed trying to load the MASTER synchronization DB: {reason}")
            }
            Self::EmptyPrimary(refused) => refused.fmt(f),
            Self::Stream(error) => error.fmt(f),
        }
    }
}

/// The attempts of a replica to get in sync.
#[derive(Debug, Default)]
pub struct SyncRetries {
    failure: Option<LinkFailure>,
    /// Failures since the last synchronization that lasted.
    failures: u64,
    /// When the current synchronization began.
    synced_ms: Option<u64>,
    /// The delay after the last lasting failure.
    lasting_ms: u64,
    due_ms: u64,
}

impl SyncRetries {
    /// The next attempt is due at once: after REPLICAOF and at start.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the end of a link. Returns the delay before the next attempt.
    pub fn handle_failure(&mut self, failure: LinkFailure, now_ms: u64) -> u64 {
        let synced_ms = self.synced_ms.take();
        if synced_ms.is_some_and(|synced_ms| now_ms.saturating_sub(synced_ms) >= STABLE_MS) {
            *self = Self::default();
        }
        let delay_ms = if failure.is_lasting() {
            self.lasting_ms = (self.lasting_ms * 2).clamp(DELAY_MS, DELAY_MAX_MS);
            self.lasting_ms
        } else if self.failures == 0 && failure == LinkFailure::Lost {
            0
        } else {
            DELAY_MS
        };
        self.failures = self.failures.saturating_add(1);
        self.failure = Some(failure);
        self.due_ms = now_ms.saturating_add(delay_ms);
        delay_ms
    }

    /// Takes a synchronization that is complete.
    pub fn handle_sync(&mut self, now_ms: u64) {
        self.failure = None;
        self.synced_ms = Some(now_ms);
    }

    /// When the next attempt is due.
    pub fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// The last failure since the last synchronization.
    pub fn failure(&self) -> Option<&LinkFailure> {
        self.failure.as_ref()
    }

    /// Failures since the last synchronization that lasted.
    pub fn failures(&self) -> u64 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(failures: &[LinkFailure]) -> Vec<u64> {
        let mut retries = SyncRetries::new();
        failures.iter().map(|failure| retries.handle_failure(failure.clone(), 0)).collect()
    }

    #[test]
    fn lost_links_are_tried_again_each_second() {
        let refused = LinkFailure::Connect("refused".to_owned());
        assert_eq!(delays(&vec![LinkFailure::Lost; 3]), [0, 1_000, 1_000]);
        assert_eq!(delays(&vec![refused; 3]), [1_000; 3]);
        let loading = HandshakeFailure::NotNow("-LOADING".to_owned());
        assert_eq!(delays(&vec![LinkFailure::Handshake(loading); 2]), [1_000; 2]);
        let truncated = TransferError::Truncated { received: 1, announced: None };
        assert_eq!(delays(&vec![LinkFailure::Transfer(truncated); 2]), [1_000; 2]);
    }

    #[test]
    fn lasting_failures_are_tried_less_and_less() {
        let wanted = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
        for failure in [
            LinkFailure::BadFile("version 99".to_owned()),
            LinkFailure::EmptyPrimary(EmptyPrimaryRefused),
            LinkFailure::Handshake(HandshakeFailure::Auth("-WRONGPASS".to_owned())),
            LinkFailure::Transfer(TransferError::Refused("ERR".to_owned())),
        ] {
            assert_eq!(delays(&vec![failure; 8]), wanted);
        }
        // Other failures in between do not hide them.
        let bad = LinkFailure::BadFile(String::new());
        assert_eq!(delays(&[bad.clone(), LinkFailure::Lost, bad]), [1_000, 1_000, 2_000]);
    }

    #[test]
    fn a_synchronization_forgets_failures() {
        let mut retries = SyncRetries::new();
        assert_eq!(retries.due_ms(), 0);
        let bad = LinkFailure::BadFile("wrong checksum".to_owned());
        retries.handle_failure(bad.clone(), 5_000);
        retries.handle_failure(bad.clone(), 6_000);
        assert_eq!((retries.due_ms(), retries.failures()), (8_000, 2));
        assert_eq!(retries.failure(), Some(&bad));
        retries.handle_sync(20_000);
        assert_eq!(retries.failure(), None);
        // A synchronization that ends soon forgets nothing.
        assert_eq!(retries.handle_failure(LinkFailure::Lost, 29_999), 1_000);
        assert_eq!(retries.handle_failure(bad.clone(), 29_999), 4_000);
        retries.handle_sync(40_000);
        assert_eq!(retries.handle_failure(LinkFailure::Lost, 50_000), 0);
        assert_eq!(retries.handle_failure(bad, 50_000), 1_000);
        assert_eq!(retries.failures(), 2);
    }
}
