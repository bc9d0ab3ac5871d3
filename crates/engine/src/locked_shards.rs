//! The shards that are locked for a command, and how it reaches them.
//!
//! ```text
//! the command's row                    what it gets        locked
//! keys, all in one shard               One                 that shard
//! keys in several shards               Many (HeldShards)   their shards, all at once
//! exclusive                            All (HeldShards)    all shards
//! each shard, or no keys               Each (ShardAccess)  each shard while it is visited
//! ```
//!
//! The layers above implement the traits and take the locks: which shards a command needs follows
//! from its row before its handler runs. Nothing here locks, and a handler cannot reach a shard
//! that is not locked for it.
//!
//! In a transaction the shards are those of all its commands: a command that visits each shard gets
//! `Many`, with all shards in it.

use std::time::Duration;

use store::Shard;

use crate::ScriptError;

/// Access to all shards, one at a time.
///
/// Between two visits other commands run, exclusive ones among them: databases may have been
/// swapped or emptied, and CLIENT PAUSE may have begun.
pub trait ShardAccess {
    /// Calls `work` once with the shard of this number, which is locked only for the call.
    ///
    /// # Errors
    /// A busy script holds the shard, or another command does for longer than the wait budget
    /// ([`ScriptError::ShardInUse`]). `work` was not called.
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) -> Result<(), ScriptError>;

    /// The same for a caller that can do without the shard: if it is in use for longer than `wait`,
    /// `work` is not called, and this returns false.
    fn try_visit(&self, shard: usize, wait: Duration, work: &mut dyn FnMut(&mut Shard)) -> bool;

    /// The progress that the same request has kept when it had to wait for a shard.
    fn take_visited(&self) -> Option<Visited> {
        None
    }

    /// Keeps the progress of a request that has to wait for a shard, until it is executed again.
    fn keep_visited(&self, _: Visited) {}

    /// Whether the visit must leave expired keys in place, because CLIENT PAUSE has begun since the
    /// command has. Asked within the visit.
    fn keeps_expired(&self) -> bool {
        false
    }
}

/// The progress of a command that visits one shard after another.
#[derive(Debug, Default)]
pub struct Visited {
    /// The first shard.
    pub first: usize,
    /// How many shards it has visited.
    pub shards: usize,
    /// How many elements it has found.
    pub found: usize,
    /// The elements that it has kept.
    pub kept: Vec<u8>,
    /// The [generation](store::KeyCount::generation) of databases in which it began.
    generation: u64,
    /// How often it has begun again because the generation had changed.
    restarts: u32,
}

impl Visited {
    /// How often a command begins again while databases are swapped, before it takes all shards.
    const RESTARTS_MAX: u32 = 4;

    /// The progress of a command that will begin with this shard.
    pub fn from_shard(first: usize) -> Self {
        Self { first, ..Self::default() }
    }

    /// Whether the elements of the next shard, which is locked, belong to those of earlier shards.
    pub fn belongs_to(&mut self, generation: u64) -> bool {
        if self.shards == 0 {
            self.generation = generation;
        }
        self.generation == generation
    }

    /// Begins again.
    pub fn restart(&mut self) {
        *self = Self { restarts: self.restarts + 1, ..Self::default() };
    }

    /// Whether it has begun again so often that it needs all shards at once.
    pub fn needs_all(&self) -> bool {
        self.restarts >= Self::RESTARTS_MAX
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

    /// Calls `work` with the shard of this number, unless another command holds it. A shard that is
    /// not locked is locked for the call. Returns whether `work` was called.
    fn try_visit(&mut self, number: usize, work: &mut dyn FnMut(&mut Shard)) -> bool;

    /// Whether the shard of this number is locked.
    fn holds(&self, number: usize) -> bool;

    /// Locks one more shard if it is free. Returns whether it is locked now.
    fn try_add(&mut self, number: usize) -> bool;

    /// Locks one more shard, for which it waits no longer than `wait`. Returns whether it is locked
    /// now. Only the exclusive script may call this: no other command waits for a shard while it
    /// holds one, so the script gets it in the end.
    fn add(&mut self, number: usize, wait: Duration) -> bool;
}

/// The shards that are locked for a command.
pub enum LockedShards<'a> {
    /// One shard with its number, to which all its keys belong.
    One(usize, &'a mut Shard),
    /// The shards of its keys.
    Many(&'a mut dyn HeldShards),
    /// All of them, while no other command runs.
    All(&'a mut dyn HeldShards),
    /// None until the command visits one.
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
            Self::One(_, shard) => shard,
            Self::Many(shards) | Self::All(shards) => shards.shard(number),
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
            Self::One(_, shard) => shard,
            Self::Many(shards) | Self::All(shards) => shards.shard_ref(number),
            Self::Each(_) => unreachable!("a command with keys holds their shards"),
        }
    }

    /// Whether the shard of this number is locked.
    pub fn holds(&self, number: usize) -> bool {
        match self {
            Self::One(one, _) => *one == number,
            Self::Many(shards) => shards.holds(number),
            Self::All(_) => true,
            Self::Each(_) => false,
        }
    }

    /// Whether the shard of this number is locked. A free shard is locked now, if several can be.
    pub fn try_hold(&mut self, number: usize) -> bool {
        match self {
            Self::Many(shards) => shards.try_add(number),
            locked => locked.holds(number),
        }
    }

    /// Calls `work` once with the shard of this number, for a command whose row says that it visits
    /// shards.
    ///
    /// # Errors
    /// As [`ShardAccess::visit`].
    ///
    /// # Panics
    /// When only the shards of keys are locked: the row does not say so.
    pub fn visit(
        &mut self,
        number: usize,
        work: &mut dyn FnMut(&mut Shard),
    ) -> Result<(), ScriptError> {
        match self {
            Self::Each(shards) => return shards.visit(number, work),
            // The caller of such a command has locked all of them.
            Self::Many(shards) | Self::All(shards) => work(shards.shard(number)),
            Self::One(..) => unreachable!("the row names no visits"),
        }
        Ok(())
    }

    /// The same for a caller that can do without the shard: see [`ShardAccess::try_visit`]. While
    /// other shards are locked it waits for none.
    ///
    /// # Panics
    /// When only one shard is locked: the row does not say that it visits some.
    pub fn try_visit(
        &mut self,
        number: usize,
        wait: Duration,
        work: &mut dyn FnMut(&mut Shard),
    ) -> bool {
        match self {
            Self::Each(shards) => shards.try_visit(number, wait, work),
            Self::Many(shards) | Self::All(shards) => shards.try_visit(number, work),
            Self::One(..) => unreachable!("the row names no visits"),
        }
    }

    /// See [`ShardAccess::take_visited`].
    pub fn take_visited(&self) -> Option<Visited> {
        match self {
            Self::Each(shards) => shards.take_visited(),
            _ => None,
        }
    }

    /// See [`ShardAccess::keep_visited`].
    pub fn keep_visited(&self, visited: Visited) {
        if let Self::Each(shards) = self {
            shards.keep_visited(visited);
        }
    }

    /// The same shards for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> LockedShards<'_> {
        match self {
            Self::One(number, shard) => LockedShards::One(*number, shard),
            Self::Many(shards) => LockedShards::Many(&mut **shards),
            Self::All(shards) => LockedShards::All(&mut **shards),
            Self::Each(shards) => LockedShards::Each(*shards),
        }
    }
}
