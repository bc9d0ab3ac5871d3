//! What a data command works on: the shards that are held for it, and its turn.

use base::random::Random;
use resp::Args;
use store::{Db, Event, Key, Limits, Shard, Stored, Turn};

use crate::error::Error;
use crate::event;

/// Which shard a key belongs to.
#[derive(Clone, Copy, Debug)]
pub struct ShardMap {
    mask: u64,
}

impl ShardMap {
    /// A map onto `shards`, a power of two.
    pub fn new(shards: usize) -> Self {
        debug_assert!(shards.is_power_of_two());
        Self { mask: shards as u64 - 1 }
    }

    /// Shards in all.
    pub fn len(self) -> usize {
        self.mask as usize + 1
    }

    /// There is always one.
    pub fn is_empty(self) -> bool {
        false
    }

    /// The shard of a key's hash: its lower bits, which the tables do not use.
    #[inline]
    pub fn shard_of(self, hash: u64) -> usize {
        (hash & self.mask) as usize
    }
}

/// Visits shards one at a time, each under its own lock.
pub trait ShardAccess {
    /// Shows one shard to `work`.
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard));
}

/// Several shards held at once.
pub trait HeldShards {
    /// One of the held shards by its number.
    ///
    /// # Panics
    /// When it is not held, which the row's key positions rule out.
    fn shard(&mut self, number: usize) -> &mut Shard;

    /// The same for reading only.
    ///
    /// # Panics
    /// As `shard`.
    fn shard_ref(&self, number: usize) -> &Shard;
}

/// All shards while nobody else works: visited one at a time, or held all at once.
pub trait ExclusiveShards: ShardAccess + HeldShards {}

impl<T: ShardAccess + HeldShards> ExclusiveShards for T {}

/// The shards held for a command.
pub enum LockedShards<'a> {
    /// The one shard of all its keys.
    One(&'a mut Shard),
    /// The shards of its keys.
    Many(&'a mut dyn HeldShards),
    /// None: it visits shard after shard. For exclusive commands nobody else runs meanwhile.
    Each(&'a dyn ShardAccess),
}

impl LockedShards<'_> {
    /// One of the held shards by its number.
    ///
    /// # Panics
    /// When it is not held, which the row's key positions rule out.
    #[inline]
    pub fn shard(&mut self, number: usize) -> &mut Shard {
        match self {
            Self::One(shard) => shard,
            Self::Many(shards) => shards.shard(number),
            Self::Each(_) => unreachable!("a command with keys holds their shards"),
        }
    }

    /// The same shards for a while.
    pub fn reborrow(&mut self) -> LockedShards<'_> {
        match self {
            Self::One(shard) => LockedShards::One(shard),
            Self::Many(shards) => LockedShards::Many(&mut **shards),
            Self::Each(shards) => LockedShards::Each(*shards),
        }
    }
}

/// What a command's context consists of besides the locked shards.
pub struct CxParts<'a> {
    /// The thread's turn.
    pub turn: &'a mut Turn,
    /// The thread's random numbers.
    pub random: &'a mut Random,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// The session's database.
    pub db: usize,
    /// Databases in all.
    pub databases: usize,
    /// The longest string, `proto-max-bulk-len`.
    pub bulk_bytes_max: usize,
    /// Sizes up to which collections stay small.
    pub limits: &'a Limits,
}

/// The context of one command.
pub struct Cx<'a> {
    /// Time and by-products.
    pub turn: &'a mut Turn,
    /// The shards held.
    pub shards: LockedShards<'a>,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// The session's database.
    pub db: usize,
    /// Databases in all.
    pub databases: usize,
    /// Hashes of the request's keys, in the order of their positions.
    pub hashes: &'a [u64],
    /// The longest string, `proto-max-bulk-len`.
    pub bulk_bytes_max: usize,
    /// Sizes up to which collections stay small.
    pub limits: &'a Limits,
    /// Random numbers.
    pub random: &'a mut Random,
}

impl<'a> Cx<'a> {
    /// The context of a command on these shards. `hashes` are those of its keys.
    #[inline]
    pub fn new(parts: &'a mut CxParts<'_>, shards: LockedShards<'a>, hashes: &'a [u64]) -> Self {
        Self {
            turn: parts.turn,
            shards,
            map: parts.map,
            db: parts.db,
            databases: parts.databases,
            hashes,
            bulk_bytes_max: parts.bulk_bytes_max,
            limits: parts.limits,
            random: parts.random,
        }
    }

    /// The same shards and turn for the command of another client, which is blocked on one of them.
    pub fn for_blocked<'b>(&'b mut self, db: usize, hashes: &'b [u64]) -> Cx<'b> {
        Cx {
            turn: self.turn,
            shards: self.shards.reborrow(),
            db,
            hashes,
            random: self.random,
            map: self.map,
            databases: self.databases,
            bulk_bytes_max: self.bulk_bytes_max,
            limits: self.limits,
        }
    }

    /// The first key of the request, at index `at`, with the hash that is already known.
    #[inline]
    pub fn first_key<'b>(&self, args: &Args<'b>, at: usize) -> Key<'b> {
        self.nth_key(args, 0, at)
    }

    /// The request's key number `nth`, at index `at`, with the hash that is already known.
    ///
    /// # Panics
    /// When the row's key positions name no such key.
    #[inline]
    pub fn nth_key<'b>(&self, args: &Args<'b>, nth: usize, at: usize) -> Key<'b> {
        Key { bytes: args.text(at), hash: self.hashes[nth] }
    }

    /// Any other key.
    pub fn key<'b>(&self, bytes: &'b [u8]) -> Key<'b> {
        self.turn.key(bytes)
    }

    /// The part of the session's database that holds a key, and the turn.
    #[inline]
    pub fn db(&mut self, key: Key<'_>) -> (&mut Db, &mut Turn) {
        self.db_at(self.db, key)
    }

    /// The part of some database that holds a key, and the turn.
    ///
    /// # Panics
    /// When the key's shard is not held, which its row's key positions rule out.
    #[inline]
    pub fn db_at(&mut self, number: usize, key: Key<'_>) -> (&mut Db, &mut Turn) {
        let shard = self.shards.shard(self.map.shard_of(key.hash));
        (shard.db(number), self.turn)
    }

    /// Shows the part of the session's database that holds a key, whether its shard is held or
    /// visited.
    pub fn with_db<R>(&mut self, key: Key<'_>, work: impl FnOnce(&mut Db, &mut Turn) -> R) -> R {
        let LockedShards::Each(shards) = &self.shards else {
            let (db, turn) = self.db(key);
            return work(db, turn);
        };
        let (mut work, mut result) = (Some(work), None);
        shards.visit(self.map.shard_of(key.hash), &mut |shard| {
            result = work.take().map(|work| work(shard.db(self.db), self.turn));
        });
        result.unwrap_or_else(|| unreachable!("a visit shows the shard once"))
    }

    /// The value of a key of the session's database, by [`Db::lookup_shared`]: the command can
    /// hold the values of several keys at once.
    ///
    /// # Panics
    /// As `db_at`.
    pub fn lookup_shared(&self, key: Key<'_>) -> Option<Stored<'_>> {
        let shard: &Shard = match &self.shards {
            LockedShards::One(shard) => shard,
            LockedShards::Many(shards) => shards.shard_ref(self.map.shard_of(key.hash)),
            LockedShards::Each(_) => unreachable!("a command with keys holds their shards"),
        };
        shard.db_ref(self.db).lookup_shared(self.turn, key)
    }

    /// Shows every shard to `work`, one after another.
    pub fn each_shard(&mut self, work: &mut dyn FnMut(&mut Shard, &mut Turn)) {
        for shard in 0..self.map.len() {
            self.visit(shard, work);
        }
    }

    /// Shows one shard to `work`.
    pub fn visit(&mut self, shard: usize, work: &mut dyn FnMut(&mut Shard, &mut Turn)) {
        if let LockedShards::Each(shards) = &self.shards {
            shards.visit(shard, &mut |shard| work(shard, self.turn));
        }
    }

    /// Notes what the command did to a key: the one effect of the write.
    #[inline]
    pub fn wrote(&mut self, event: Event, key: &[u8]) {
        self.turn.effects.note(event, key);
    }

    /// Records that the command removed elements of a value: the command's own event, and `del` when
    /// none are left.
    #[inline]
    pub fn wrote_removal(&mut self, event: Event, key: &[u8], emptied: bool) {
        self.wrote(event, key);
        if emptied {
            self.wrote(event::DEL, key);
        }
    }

    /// A database number given as an argument.
    ///
    /// # Errors
    /// When it is no number or there is no such database.
    pub fn database(&self, arg: &[u8]) -> Result<usize, Error> {
        let number = base::number::parse_i64(arg).ok_or(Error::NotInteger)?;
        let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
        if !(min..=max).contains(&number) {
            return Err(Error::NotBetween(min, max));
        }
        let number = usize::try_from(number).map_err(|_| Error::DatabaseOutOfRange)?;
        if number < self.databases { Ok(number) } else { Err(Error::DatabaseOutOfRange) }
    }
}
