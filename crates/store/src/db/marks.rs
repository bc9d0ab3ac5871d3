//! Marks for added, expiring and changed keys, set under the lock of their shard: in the sets of
//! shards, and for clients that track keys.

use crate::turn::Turn;

/// Marks the shard of a key that is added to a database, which may have had no keys there.
#[inline]
pub(super) fn key_comes(turn: &Turn, hash: u64, was_empty: bool) {
    if was_empty {
        turn.shard_sets.occupied.mark(hash);
    }
}

/// Marks the shard of a key that may have an expiry from now on: the walk over expired keys then
/// visits the shard, and the key may be evicted as a volatile one.
#[inline]
pub(super) fn key_expires(turn: &Turn, hash: u64, expires: bool) {
    if expires {
        turn.shard_sets.expiring.mark(hash);
        turn.shard_sets.volatile.mark(hash);
    }
}

/// Marks the shard of a key with a field that may expire.
#[inline]
pub(super) fn field_expires(turn: &Turn, hash: u64, expires: bool) {
    if expires {
        turn.shard_sets.expiring.mark(hash);
    }
}

/// Proof for [`Db::changed`](super::Db::changed) that the change was recorded for tracking clients.
pub(crate) struct TrackingNoted(());

/// Records a change or removal of a key. Called under the lock of its shard, so it sees every
/// client that has read the key and tracks it.
#[inline]
pub(crate) fn key_changes(turn: &mut Turn, key: &[u8]) -> TrackingNoted {
    if turn.shard_sets.are_tracked() {
        turn.effects.touch(key);
    }
    TrackingNoted(())
}
