//! The replay of deliveries: a delivery depends on the moment, so its outcome is replayed. XCLAIM
//! sets the consumer, the time and the number of deliveries, XGROUP SETID how far a group has read.

use ds::stream::{Id, UNKNOWN};

use super::id::to_vec;

/// The names that identify a consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupReader<'a> {
    pub(super) key: &'a [u8],
    pub(super) group: &'a [u8],
    pub(super) consumer: &'a [u8],
}

/// An entry that was delivered, or found to be deleted: both are replayed alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayedClaim {
    pub(super) id: Id,
    pub(super) delivered_ms: i64,
    pub(super) deliveries: i64,
}

type ReplayCommand = Vec<Vec<u8>>;

fn words(words: &[&[u8]]) -> ReplayCommand {
    words.iter().map(|word| word.to_vec()).collect()
}

fn integer(value: i64) -> Vec<u8> {
    value.to_string().into_bytes()
}

impl GroupReader<'_> {
    /// The commands that make the same claims; consecutive entries with the same delivery share
    /// one.
    pub(super) fn claims(self, claims: &[ReplayedClaim], last_id: Id) -> Vec<ReplayCommand> {
        let alike = |a: &ReplayedClaim, b: &ReplayedClaim| {
            a.delivered_ms == b.delivered_ms && a.deliveries == b.deliveries
        };
        claims.chunk_by(alike).map(|alike| self.claim(alike, last_id)).collect()
    }

    fn claim(self, alike: &[ReplayedClaim], last_id: Id) -> ReplayCommand {
        let mut command = words(&[b"XCLAIM", self.key, self.group, self.consumer, b"0"]);
        command.extend(alike.iter().map(|claim| to_vec(claim.id)));
        if let Some(first) = alike.first() {
            command.push(b"TIME".to_vec());
            command.push(integer(first.delivered_ms));
            command.push(b"RETRYCOUNT".to_vec());
            command.push(integer(first.deliveries));
        }
        command.extend(words(&[b"FORCE", b"JUSTID", b"LASTID"]));
        command.push(to_vec(last_id));
        command
    }

    /// The command that sets how far the group has read. A count out of range cannot be an
    /// argument, and is replayed as unknown.
    pub(super) fn set_id(self, last_id: Id, entries_read: i64) -> ReplayCommand {
        let mut command = words(&[b"XGROUP", b"SETID", self.key, self.group]);
        command.push(to_vec(last_id));
        command.push(b"ENTRIESREAD".to_vec());
        command.push(integer(entries_read.max(UNKNOWN)));
        command
    }

    /// The command that creates the consumer.
    pub(super) fn create(self) -> ReplayCommand {
        words(&[b"XGROUP", b"CREATECONSUMER", self.key, self.group, self.consumer])
    }
}
