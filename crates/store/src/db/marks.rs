//! Notes what comes to a database and what changes there, under the lock of its shard: in the sets
//! of shards, and for those who track keys.

use crate::turn::Turn;

/// A key with this hash comes to a database, which may have had none in this shard.
#[inline]
pub(super) fn key_comes(turn: &Turn, hash: u64, was_empty: bool) {
    if was_empty {
        turn.shard_sets.occupied.mark(hash);
    }
}

/// The key with this hash may have an expiry from now on: the walk over expired keys visits its
/// shard then, and it may be evicted as a volatile one.
#[inline]
pub(super) fn key_expires(turn: &Turn, hash: u64, expires: bool) {
    if expires {
        turn.shard_sets.expiring.mark(hash);
        turn.shard_sets.volatile.mark(hash);
    }
}

/// The same for a field of its value.
#[inline]
pub(super) fn field_expires(turn: &Turn, hash: u64, expires: bool) {
    if expires {
        turn.shard_sets.expiring.mark(hash);
    }
}

/// Those who track keys are told of a change: proof for [`Db::changed`](super::Db::changed).
pub(crate) struct TrackingNoted(());

/// A key changes, or goes. Asked under the lock of its shard, so that whoever has read the key
/// before, and tracks it, is seen here.
#[inline]
pub(crate) fn key_changes(turn: &mut Turn, key: &[u8]) -> TrackingNoted {
    if turn.shard_sets.are_tracked() {
        turn.effects.touch(key);
    }
    TrackingNoted(())
}
