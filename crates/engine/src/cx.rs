//! The context of a data command: the shards that are locked for it, its turn, and the settings
//! that it depends on.

use base::random::Random;
use resp::Args;
use store::{Db, EncodingLimits, Key, KeyspaceEvent, Shard, Stored, Turn};

use crate::ScriptError;
use crate::args::number::integer;
use crate::error::Error;
use crate::event;
use crate::locked_shards::LockedShards;
use crate::shard_map::ShardMap;

/// The context of a command without its shards and keys.
pub struct CxParts<'a> {
    /// The time, and the results of commands: effects, counters.
    pub turn: &'a mut Turn,
    /// The source of random numbers.
    pub random: &'a mut Random,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// Index of the session's database.
    pub db: usize,
    /// Number of databases.
    pub databases: usize,
    /// Length of the longest string in bytes: `proto-max-bulk-len`.
    pub bulk_bytes_max: usize,
    /// Sizes up to which collections keep their compact encodings.
    pub limits: &'a EncodingLimits,
}

/// The context of one command.
pub struct Cx<'a> {
    /// The time, and the results of commands: effects, counters.
    pub turn: &'a mut Turn,
    /// The shards that are locked for the command.
    pub shards: LockedShards<'a>,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// Index of the session's database.
    pub db: usize,
    /// Number of databases.
    pub databases: usize,
    /// Hashes of the request's keys, in the order of its row's key positions.
    pub hashes: &'a [u64],
    /// Length of the longest string in bytes: `proto-max-bulk-len`.
    pub bulk_bytes_max: usize,
    /// Sizes up to which collections keep their compact encodings.
    pub limits: &'a EncodingLimits,
    /// The source of random numbers.
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

    /// The context of another request on the same shards: of a blocked client that is served, or of
    /// a command in a script. It has that request's database and hashes of keys.
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

    /// The first key of the request, at index `at`, with its hash.
    #[inline]
    pub fn first_key<'b>(&self, args: &Args<'b>, at: usize) -> Key<'b> {
        self.nth_key(args, 0, at)
    }

    /// Key number `nth` of the request, from 0, at index `at`, with its hash.
    ///
    /// # Panics
    /// When the row's key positions have no such key.
    #[inline]
    pub fn nth_key<'b>(&self, args: &Args<'b>, nth: usize, at: usize) -> Key<'b> {
        Key { bytes: args.text(at), hash: self.hashes[nth] }
    }

    /// A key that the row's key positions do not name; its hash is computed.
    pub fn key<'b>(&self, bytes: &'b [u8]) -> Key<'b> {
        self.turn.key(bytes)
    }

    /// The part of the session's database that holds a key, and the turn.
    #[inline]
    pub fn db(&mut self, key: Key<'_>) -> (&mut Db, &mut Turn) {
        self.db_at(self.db, key)
    }

    /// The part of database `number` that holds a key, and the turn.
    ///
    /// # Panics
    /// When the key's shard is not locked, which the row's key positions rule out.
    #[inline]
    pub fn db_at(&mut self, number: usize, key: Key<'_>) -> (&mut Db, &mut Turn) {
        let shard = self.shards.shard(self.map.shard_of(key.hash));
        (shard.db(number), self.turn)
    }

    /// The value of a key of the session's database, by [`Db::lookup_shared`]: the command can
    /// hold the values of several keys at once.
    ///
    /// # Panics
    /// As `db_at`.
    pub fn lookup_shared(&self, key: Key<'_>) -> Option<Stored<'_>> {
        let shard = self.shards.shard_ref(self.map.shard_of(key.hash));
        shard.db_ref(self.db).lookup_shared(self.turn, key)
    }

    /// Calls `work` with each shard, one after another.
    ///
    /// # Errors
    /// As `visit`.
    pub fn each_shard(
        &mut self,
        work: &mut dyn FnMut(&mut Shard, &mut Turn),
    ) -> Result<(), ScriptError> {
        (0..self.map.len()).try_for_each(|shard| self.visit(shard, work))
    }

    /// Calls `work` with one shard, for a command that visits shards.
    ///
    /// # Errors
    /// As [`ShardAccess::visit`](crate::ShardAccess::visit).
    pub fn visit(
        &mut self,
        shard: usize,
        work: &mut dyn FnMut(&mut Shard, &mut Turn),
    ) -> Result<(), ScriptError> {
        let turn = &mut *self.turn;
        match &mut self.shards {
            LockedShards::Each(shards) => shards.visit(shard, &mut |shard| {
                turn.keep_expired |= shards.keeps_expired();
                work(shard, turn);
            }),
            locked => locked.visit(shard, &mut |shard| work(shard, turn)),
        }
    }

    /// Records an event of a key, as the effect of the write.
    #[inline]
    pub fn wrote(&mut self, event: KeyspaceEvent, key: &[u8]) {
        self.turn.effects.note(event, key);
    }

    /// Records that the command removed elements of a value: its own event, and `del` if no element
    /// is left.
    #[inline]
    pub fn wrote_removal(&mut self, event: KeyspaceEvent, key: &[u8], emptied: bool) {
        self.wrote(event, key);
        if emptied {
            self.wrote(event::DEL, key);
        }
    }

    /// Counts the changes of a command by elements, as Redis does for the save points. Its edits
    /// have counted one each.
    #[inline]
    pub fn count_elements(&mut self, edits: u64, elements: usize) {
        let changes = &mut self.turn.counters.changes;
        *changes = changes.wrapping_sub(edits).wrapping_add(elements as u64);
    }

    /// Parses the index of a database.
    ///
    /// # Errors
    /// When it is not an integer, or no database has this index.
    pub fn database(&self, arg: &[u8]) -> Result<usize, Error> {
        let number = integer(arg)?;
        let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
        if !(min..=max).contains(&number) {
            return Err(Error::NotBetween(min, max));
        }
        let number = usize::try_from(number).map_err(|_| Error::DatabaseOutOfRange)?;
        if number < self.databases { Ok(number) } else { Err(Error::DatabaseOutOfRange) }
    }
}
