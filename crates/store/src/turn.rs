//! One turn of a thread, passed through the layers: the time, and by-products of commands.

use std::sync::Arc;

use base::hash::KeyHasher;

use crate::access::AccessPolicy;
use crate::effect::Effects;
use crate::key::Key;
use crate::key_counts::{KeyCount, KeyCounts};
use crate::lazy_free::{FreeBacklog, LazyFree};
use crate::pre_images::queue::PreImages;
use crate::shard_sets::ShardSets;
use crate::value::stored::Stored;

/// The time by both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Microseconds since 1970, by the system's clock, which may be set. Keys expire by it.
    pub unix_us: i64,
    /// Milliseconds by the steady clock, which is never set. Timers and timeouts run by it.
    pub steady_ms: i64,
}

/// Counts for INFO, added to the thread's totals after the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceCounters {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Expired keys removed.
    pub expired: u64,
    /// Expired fields of hashes removed.
    pub expired_fields: u64,
    /// Keys evicted to keep to `maxmemory`.
    pub evicted: u64,
    /// Changes of the keyspace.
    pub changes: u64,
}

/// The time and the by-products of a turn. Each thread has one and reuses it.
#[derive(Debug)]
pub struct Turn {
    /// Milliseconds since 1970, at the beginning of the running command.
    pub unix_ms: i64,
    /// The same in microseconds, exact to about a millisecond.
    pub unix_us: i64,
    /// The time that the command TIME replies, in microseconds since 1970. It equals `unix_us`,
    /// except in a script that runs for too long: there time passes for TIME, but nothing expires.
    pub shown_us: i64,
    /// Keys that expire before this moment have expired. It is the current time, or the earliest
    /// possible one while commands are [replayed](Self::replay).
    pub expired_before_ms: i64,
    replays: bool,
    /// Milliseconds by the steady clock at the same moment; see [`Time`].
    pub steady_ms: i64,
    /// Whether reading a key counts as using it; CLIENT NO-TOUCH turns it off.
    pub touch: bool,
    /// How access clocks are updated.
    pub access: AccessPolicy,
    /// Counts of the turn.
    pub counters: KeyspaceCounters,
    /// How many keys the databases have.
    pub keys: KeyCount,
    /// Which shards have keys, and which have keys or fields that expire.
    pub shard_sets: Arc<ShardSets>,
    /// The effects of the turn's writes.
    pub effects: Effects,
    /// Values taken out of the keyspace, to be dropped without a lock.
    pub lazy_free: LazyFree,
    /// A buffer to build a value in before it is written to its record in one go. Each user clears
    /// it first.
    pub scratch: Vec<u8>,
    /// Whether expired keys stay in place and are only hidden: during a pause, for commands that
    /// change nothing. A command that adds a key needs its place free.
    pub keep_expired: bool,
    /// Whether the removal of an expired key is replayed as UNLINK, not DEL:
    /// `lazyfree-lazy-expire`.
    pub unlink_expired: bool,
    /// Whether the removal of an evicted key is replayed as UNLINK, not DEL:
    /// `lazyfree-lazy-eviction`.
    pub unlink_evicted: bool,
    /// Whether the removal of a key that a command emptied completely is replayed as UNLINK, not
    /// DEL: `lazyfree-lazy-server-del`.
    pub unlink_emptied: bool,
    /// Whether RESTORE accepts payloads with a wrong checksum, for tests of damaged ones.
    pub restores_unchecked: bool,
    /// Whether a script runs the command: then its result must not depend on the order of a set's
    /// members.
    pub in_script: bool,
    /// The snapshot that may share the long string of a record on its way to another key.
    pub(crate) departed: Option<Arc<PreImages>>,
    /// The process's key hash.
    pub hasher: KeyHasher,
}

impl Turn {
    /// A turn for tests, of the only thread with one database.
    pub fn alone(hasher: KeyHasher) -> Self {
        let keys = Arc::new(KeyCounts::new(1)).of_thread(0);
        Self::new(hasher, keys, Arc::new(ShardSets::new(1)))
    }

    /// A turn at time 0, of a thread that counts keys in `keys` and marks shards in
    /// `shard_sets`.
    pub fn new(hasher: KeyHasher, keys: KeyCount, shard_sets: Arc<ShardSets>) -> Self {
        Self {
            unix_ms: 0,
            unix_us: 0,
            shown_us: 0,
            expired_before_ms: 0,
            replays: false,
            steady_ms: 0,
            touch: true,
            access: AccessPolicy::default(),
            counters: KeyspaceCounters::default(),
            keys,
            shard_sets,
            effects: Effects::default(),
            lazy_free: LazyFree::new(FreeBacklog::default()),
            scratch: Vec::new(),
            keep_expired: false,
            unlink_expired: false,
            unlink_evicted: false,
            unlink_emptied: false,
            restores_unchecked: false,
            in_script: false,
            departed: None,
            hasher,
        }
    }

    /// Advances the time within the turn. It never runs backwards.
    pub fn advance_time(&mut self, time: Time) {
        self.set_time(time.unix_us.max(self.unix_us));
        self.steady_ms = self.steady_ms.max(time.steady_ms);
    }

    /// Sets the time, in microseconds since 1970.
    pub fn set_time(&mut self, unix_us: i64) {
        self.unix_us = unix_us;
        self.shown_us = unix_us;
        self.unix_ms = unix_us / 1000;
        self.expired_before_ms = if self.replays { i64::MIN } else { self.unix_ms };
    }

    /// From now on nothing expires: logged commands are replayed, including those that removed
    /// expired keys.
    pub fn replay(&mut self) {
        self.replays = true;
        self.expired_before_ms = i64::MIN;
    }

    /// Whether logged commands are replayed.
    pub fn is_replay(&self) -> bool {
        self.replays
    }

    /// Whether a key or field that expires at this moment, in milliseconds since 1970, has expired
    /// already and need not be stored.
    #[inline]
    pub fn is_past(&self, at_ms: i64) -> bool {
        at_ms <= self.expired_before_ms
    }

    /// A key with its hash.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, hash: self.hasher.hash(bytes) }
    }
}

impl Stored<'_> {
    /// Whether the key has expired. As in Redis, it has not at the millisecond of its expiry.
    #[inline]
    pub fn is_expired(self, turn: &Turn) -> bool {
        self.0.has_expiry() && self.0.expires_at().is_some_and(|at| at < turn.expired_before_ms)
    }
}
