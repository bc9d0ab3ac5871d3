//! The shards that are locked for a command, and how it reaches them.
//!
//! ```text
//! the command's row                    what it gets        locked
//! keys, all in one shard               One                 that shard
//! keys in several shards               Many (HeldShards)   their shards, all at once
//! each shard, or no keys               Each (ShardAccess)  each shard while it is visited
//! exclusive                            Each or Many        all shards (ExclusiveShards)
//! ```
//!
//! The layers above implement the traits and take the locks: which shards a command needs follows
//! from its row before its handler runs. Nothing here locks, and a handler cannot reach a shard
//! that is not locked for it.

use store::Shard;

/// Access to all shards, one at a time.
///
/// Between two visits other commands run, exclusive ones among them unless all shards are locked:
/// databases may have been swapped or emptied, and CLIENT PAUSE may have begun.
pub trait ShardAccess {
    /// Calls `work` once with the shard of this number, which is locked only for the call unless
    /// all shards are.
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard));

    /// Whether the visit must leave expired keys in place, because CLIENT PAUSE has begun since the
    /// command has. Asked within the visit.
    fn keeps_expired(&self) -> bool {
        false
    }
}

/// Several shards that are locked together.
pub trait HeldShards {
    /// The shard of this number.
    ///
    /// # Panics
    /// When it is not locked, which the row's key positions rule out.
    fn shard(&mut self, number: usize) -> &mut Shard;

    /// The shard of this number, for reading only.
    ///
    /// # Panics
    /// As `shard`.
    fn shard_ref(&self, number: usize) -> &Shard;
}

/// All shards, locked together while no other thread executes commands.
pub trait ExclusiveShards: ShardAccess + HeldShards {}

impl<T: ShardAccess + HeldShards> ExclusiveShards for T {}

/// The shards that are locked for a command.
pub enum LockedShards<'a> {
    /// One shard, to which all its keys belong.
    One(&'a mut Shard),
    /// The shards of its keys.
    Many(&'a mut dyn HeldShards),
    /// None until the command visits one; all of them when the command is exclusive.
    Each(&'a dyn ShardAccess),
}

impl LockedShards<'_> {
    /// The shard of this number. With `One` it is that shard whatever the number.
    ///
    /// # Panics
    /// When it is not locked, which the row's key positions rule out.
    #[inline]
    pub fn shard(&mut self, number: usize) -> &mut Shard {
        match self {
            Self::One(shard) => shard,
            Self::Many(shards) => shards.shard(number),
            Self::Each(_) => unreachable!("a command with keys holds their shards"),
        }
    }

    /// The shard of this number, for reading only.
    ///
    /// # Panics
    /// As `shard`.
    #[inline]
    pub fn shard_ref(&self, number: usize) -> &Shard {
        match self {
            Self::One(shard) => shard,
            Self::Many(shards) => shards.shard_ref(number),
            Self::Each(_) => unreachable!("a command with keys holds their shards"),
        }
    }

    /// The same shards for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> LockedShards<'_> {
        match self {
            Self::One(shard) => LockedShards::One(shard),
            Self::Many(shards) => LockedShards::Many(&mut **shards),
            Self::Each(shards) => LockedShards::Each(*shards),
        }
    }
}
