//! One shard: its part of every database.
//!
//! The part of database 0, which nearly all clients use, lies in the shard itself. Together with
//! the shard's lock it fills one cache line, so reaching a table costs one miss and not two. That
//! line also holds whether a client is blocked on a key of the shard; the rest is behind a pointer.
//!
//! Other databases take memory only while they hold keys here: with 1024 shards, thousands of
//! databases are millions of parts, nearly all of them empty. A request for an absent part returns
//! the spare one. It joins the others when it holds something and the next absent part is
//! requested.

use crate::db::Db;
use crate::key::Key;
use crate::turn::Turn;
use crate::waiters::{BlockedClient, Waiters};

/// One shard's part of every database.
#[derive(Debug, Default)]
pub struct Shard {
    first: Db,
    rest: Box<ShardRest>,
}

/// The less frequently used part.
#[derive(Debug, Default)]
struct ShardRest {
    /// Databases that held keys when they came here, by ascending number.
    others: Vec<Db>,
    /// The absent database that was requested last; number 0 before the first request.
    spare: Db,
    /// Stands for an absent database in reads.
    empty: Db,
    waiters: Waiters,
}

impl ShardRest {
    #[inline]
    fn place_of(&self, number: usize) -> Result<usize, usize> {
        self.others.binary_search_by_key(&(number as u32), |db| db.number)
    }

    fn db(&mut self, number: usize) -> &mut Db {
        if self.spare.number as usize == number {
            return &mut self.spare;
        }
        match self.place_of(number) {
            Ok(at) => &mut self.others[at],
            Err(_) => {
                self.keep_spare();
                self.spare = Db { number: number as u32, ..Db::default() };
                &mut self.spare
            }
        }
    }

    fn db_ref(&self, number: usize) -> &Db {
        if self.spare.number as usize == number {
            return &self.spare;
        }
        self.place_of(number).map_or(&self.empty, |at| &self.others[at])
    }

    /// Adds the spare database to the others if it holds keys. Removes empty databases before the
    /// list grows.
    fn keep_spare(&mut self) {
        if self.spare.is_unused() {
            return;
        }
        if self.others.len() == self.others.capacity() {
            self.others.retain(|db| !db.is_unused());
            self.others.shrink_to(self.others.len() * 2);
        }
        let spare = std::mem::take(&mut self.spare);
        let at = self.others.partition_point(|db| db.number < spare.number);
        self.others.insert(at, spare);
    }
}

impl Shard {
    /// A database by its number, which the session has checked.
    #[inline]
    pub fn db(&mut self, number: usize) -> &mut Db {
        match number {
            0 => &mut self.first,
            number => self.rest.db(number),
        }
    }

    /// A database for reading only. An absent one has no keys, and not the requested number.
    #[inline]
    pub fn db_ref(&self, number: usize) -> &Db {
        match number {
            0 => &self.first,
            number => self.rest.db_ref(number),
        }
    }

    /// Database 0 and all others that hold keys, in no order.
    pub fn dbs(&mut self) -> impl Iterator<Item = &mut Db> {
        let ShardRest { others, spare, .. } = &mut *self.rest;
        let others = others.iter_mut().chain(std::iter::once(spare));
        std::iter::once(&mut self.first).chain(others.filter(|db| !db.is_empty()))
    }

    /// All databases, including empty and absent ones.
    pub(crate) fn all_dbs(&mut self) -> impl Iterator<Item = &mut Db> {
        let ShardRest { others, spare, .. } = &mut *self.rest;
        let others = others.iter_mut().chain(std::iter::once(spare));
        std::iter::once(&mut self.first).chain(others)
    }

    /// A random database, each with a probability proportional to `weight`, or `None` if all
    /// weights are 0. The time is proportional to the databases that hold keys here.
    pub fn random_db(&mut self, random: u64, weight: impl Fn(&Db) -> usize) -> Option<&mut Db> {
        let total: usize = self.dbs().map(|db| weight(db)).sum();
        let mut at = (random % total.max(1) as u64) as usize;
        self.dbs().find(|db| {
            let weight = weight(db);
            let is_here = at < weight;
            at = at.saturating_sub(weight);
            is_here
        })
    }

    /// Frees the memory of emptied databases.
    pub fn drop_empty(&mut self) {
        let others = &mut self.rest.others;
        others.retain(|db| !db.is_unused());
        others.shrink_to_fit();
    }

    /// Whether a key, or a field of a hash, expires in some database.
    pub fn expires(&mut self) -> bool {
        self.dbs().any(|db| db.expiring_len() > 0 || db.hashes_with_expiry() > 0)
    }

    /// Whether a client waits in a queue of this shard.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.first.awaited
    }

    /// Whether a client may be blocked on a key with this hash.
    #[inline]
    pub fn is_awaited(&self, hash: u64) -> bool {
        self.has_waiters() && self.rest.waiters.is_awaited(hash)
    }

    /// The clients blocked on keys of this shard.
    pub fn waiters(&mut self) -> &mut Waiters {
        &mut self.rest.waiters
    }

    /// Adds a client to the end of a key's queue. Returns the bytes of memory that this takes.
    pub fn add_waiter(&mut self, db: usize, key: Key<'_>, client: BlockedClient) -> usize {
        self.first.awaited = true;
        self.rest.waiters.add(db, key, client)
    }

    /// Removes the client at a position from a key's queue.
    pub fn remove_waiter(&mut self, db: usize, key: Key<'_>, at: usize) {
        self.rest.waiters.remove(db, key, at);
        self.first.awaited = !self.rest.waiters.is_empty();
    }

    /// Removes the client with this number from a key's queue, if it is still there.
    pub fn leave(&mut self, db: usize, key: Key<'_>, client: u64) {
        self.rest.waiters.leave(db, key, client);
        self.first.awaited = !self.rest.waiters.is_empty();
    }

    /// Exchanges the contents of two databases. Clients that are blocked on or watch a key keep the
    /// key with that name in the database with that number.
    pub fn swap(&mut self, turn: &Turn, a: usize, b: usize) {
        if a == b {
            return;
        }
        let awaited = self.first.awaited;
        let mut content_a = self.put(a, Db::default());
        let mut content_b = self.put(b, Db::default());
        if content_a.watched || content_b.watched {
            content_b.swap_watchers(&mut content_a, turn);
        }
        self.put(a, content_b);
        self.put(b, content_a);
        self.first.awaited = awaited;
    }

    /// Replaces the content of a database and returns the old content.
    fn put(&mut self, number: usize, content: Db) -> Db {
        std::mem::replace(self.db(number), Db { number: number as u32, ..content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{ExpiryChange, Lookup};
    use crate::new::string::NewString;
    use base::hash::KeyHasher;

    #[test]
    fn database_0_shares_the_lock_s_cache_line() {
        // The lock takes one byte, aligned to eight.
        assert_eq!(size_of::<Shard>() + 8, 64);
    }

    #[test]
    fn numbers_stay_when_contents_are_exchanged() {
        let mut shard = Shard::default();
        let mut turn = Turn::alone(KeyHasher::new(1));
        let key = turn.key(b"k");
        shard.db(2).put(&mut turn, key, NewString::Integer(7), ExpiryChange::Clear);
        for (a, b) in [(0, 2), (0, 0), (1, 2)] {
            shard.swap(&turn, a, b);
            let numbers = [0, 1, 2].map(|number| shard.db(number).number);
            assert_eq!(numbers, [0, 1, 2]);
        }
        let lens = [0, 1, 2].map(|number| shard.db(number).len());
        assert_eq!(lens, [1, 0, 0]);
        assert_eq!([0, 1, 2].map(|number| shard.db_ref(number).len()), lens);
    }

    #[test]
    fn databases_take_memory_only_while_they_hold_keys() {
        let mut shard = Shard::default();
        let mut turn = Turn::alone(KeyHasher::new(1));
        let key = turn.key(b"k");
        for number in 0..10_000 {
            assert!(shard.db(number).lookup(&mut turn, key, Lookup::Read).is_none());
            assert_eq!(shard.db_ref(number).len(), 0);
        }
        assert_eq!((shard.rest.others.capacity(), shard.dbs().count()), (0, 1));
        // In a shuffled order.
        let numbers: Vec<usize> = (1..500).map(|step| step * 7919 % 10_000).collect();
        for number in &numbers {
            shard.db(*number).put(&mut turn, key, NewString::Integer(7), ExpiryChange::Clear);
        }
        for number in 1..10_000 {
            let len = usize::from(numbers.contains(&number));
            assert_eq!((shard.db_ref(number).len(), shard.db(number).len()), (len, len));
            assert_eq!(shard.db(number).number as usize, number);
        }
        assert_eq!(shard.dbs().map(|db| db.len()).sum::<usize>(), numbers.len());
        // Databases that were used and emptied do not accumulate.
        for number in &numbers {
            shard.db(*number).remove(&mut turn, key);
        }
        for number in 1..10_000 {
            shard.db(number).put(&mut turn, key, NewString::Integer(7), ExpiryChange::Clear);
            shard.db(number).remove(&mut turn, key);
        }
        assert!(shard.rest.others.capacity() <= 2 * numbers.len());
        shard.drop_empty();
        assert_eq!(shard.rest.others.capacity(), 0);
    }
}
