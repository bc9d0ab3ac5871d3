//! The log of denials: ACL LOG.
//!
//! Equal events within a minute are one entry with a count. An event is compared only with the
//! newest entries, so the cost of logging does not depend on the length of the log.

use std::collections::VecDeque;

use crate::check::Denied;

/// The number of entries that a new event is compared with.
const COMPARED_MAX: usize = 10;
/// Milliseconds within which equal events are one entry.
const GROUPED_MS_MAX: i64 = 60_000;

/// Bytes kept of the name of a key, a channel or a user, which clients choose.
const NAME_BYTES_MAX: usize = 4096;
/// Bytes kept of the description of a client, including its name.
const CLIENT_BYTES_MAX: usize = 16 * 1024;

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialReason {
    /// The user may not run the command.
    Command,
    /// The user may not use the key.
    Key,
    /// The user may not use the channel.
    Channel,
    /// User and password do not match.
    Auth,
}

impl DenialReason {
    /// The name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Channel => "channel",
            Self::Auth => "auth",
        }
    }

    /// The reason of a denial, and the index of the argument that names the object. Denied options
    /// are not logged.
    pub fn of(denied: Denied) -> Option<(Self, usize)> {
        match denied {
            Denied::Command => Some((Self::Command, 0)),
            Denied::Key(at) => Some((Self::Key, at)),
            Denied::Channel(at) => Some((Self::Channel, at)),
            Denied::Option(_) => None,
        }
    }
}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialOrigin {
    /// The client itself.
    TopLevel,
    /// The client, in a transaction.
    Multi,
    /// A script.
    Lua,
}

impl DenialOrigin {
    /// The name in ACL LOG.
    pub fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Multi => "multi",
            Self::Lua => "lua",
        }
    }
}

/// A denied request. Only the beginning of long names is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclEvent {
    reason: DenialReason,
    origin: DenialOrigin,
    object: Box<[u8]>,
    user: Box<[u8]>,
    client: Box<[u8]>,
}

impl AclEvent {
    /// A denial for a user and client. `client` is its description as in CLIENT INFO, `object` the
    /// command, key or channel.
    pub fn new(
        reason: DenialReason,
        object: &[u8],
        origin: DenialOrigin,
        user: &[u8],
        client: &[u8],
    ) -> Self {
        let kept = |name: &[u8], bytes_max: usize| name[..name.len().min(bytes_max)].into();
        Self {
            reason,
            origin,
            object: kept(object, NAME_BYTES_MAX),
            user: kept(user, NAME_BYTES_MAX),
            client: kept(client, CLIENT_BYTES_MAX),
        }
    }

    /// The reason.
    pub fn reason(&self) -> DenialReason {
        self.reason
    }

    /// The origin of the request.
    pub fn origin(&self) -> DenialOrigin {
        self.origin
    }

    /// The command, key or channel.
    pub fn object(&self) -> &[u8] {
        &self.object
    }

    /// The user.
    pub fn user(&self) -> &[u8] {
        &self.user
    }

    /// The client, as CLIENT INFO describes it.
    pub fn client(&self) -> &[u8] {
        &self.client
    }
}

/// A group of equal events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclLogEntry {
    /// A number that increases from 0 and is never reused.
    pub id: u64,
    /// The number of events.
    pub count: u64,
    /// The last event.
    pub event: AclEvent,
    /// The time of the first event, in milliseconds since 1970.
    pub created_ms: i64,
    /// The time of the last event, in milliseconds since 1970.
    pub updated_ms: i64,
}

/// The log, newest entry first.
#[derive(Debug, Default)]
pub struct AclLog {
    entries: VecDeque<AclLogEntry>,
    next_id: u64,
}

impl AclLog {
    /// Adds an event, and forgets the oldest entries beyond `len_max`.
    pub fn push(&mut self, event: AclEvent, unix_ms: i64, len_max: u64) {
        let len_max = usize::try_from(len_max).unwrap_or(usize::MAX);
        if len_max == 0 {
            return self.clear();
        }
        let is_same = |entry: &AclLogEntry| {
            let (old, new) = (&entry.event, &event);
            (old.reason, old.origin) == (new.reason, new.origin)
                && entry.updated_ms.abs_diff(unix_ms) <= GROUPED_MS_MAX as u64
                && (&old.object, &old.user) == (&new.object, &new.user)
        };
        let place = self.entries.iter().take(COMPARED_MAX).position(is_same);
        let entry = match place.and_then(|place| self.entries.remove(place)) {
            Some(same) => AclLogEntry { count: same.count + 1, event, updated_ms: unix_ms, ..same },
            None => {
                self.next_id += 1;
                let id = self.next_id - 1;
                AclLogEntry { id, count: 1, event, created_ms: unix_ms, updated_ms: unix_ms }
            }
        };
        self.entries.push_front(entry);
        self.entries.truncate(len_max);
    }

    /// The entries, newest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &AclLogEntry> {
        self.entries.iter()
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
