//! One shard: its part of every database.
//!
//! The part of database 0, which nearly all clients use, lies in the shard itself: with the shard's
//! lock it fills one cache line, so that reaching a table costs one miss and not two. That line
//! also tells whether a client is blocked on a key of the shard; the rest is behind a pointer.

use crate::db::Db;
use crate::turn::Key;
use crate::waiters::{BlockedClient, Waiters};

/// One shard's part of every database.
#[derive(Debug)]
pub struct Shard {
    first: Db,
    rest: Box<Rest>,
}

/// What is used less often.
#[derive(Debug)]
struct Rest {
    others: Box<[Db]>,
    waiters: Waiters,
}

impl Shard {
    /// A shard of empty databases, at least one.
    pub fn new(databases: usize) -> Self {
        let db = |number: usize| Db { number: number as u32, ..Db::default() };
        let others = (1..databases).map(db).collect();
        let rest = Box::new(Rest { others, waiters: Waiters::default() });
        Self { first: db(0), rest }
    }

    /// A database by its number, which the session has checked.
    #[inline]
    pub fn db(&mut self, number: usize) -> &mut Db {
        match number.checked_sub(1) {
            None => &mut self.first,
            Some(index) => &mut self.rest.others[index],
        }
    }

    /// The same for reading only.
    #[inline]
    pub fn db_ref(&self, number: usize) -> &Db {
        match number.checked_sub(1) {
            None => &self.first,
            Some(index) => &self.rest.others[index],
        }
    }

    /// All databases, by number.
    pub fn dbs(&mut self) -> impl Iterator<Item = &mut Db> {
        std::iter::once(&mut self.first).chain(&mut self.rest.others)
    }

    /// Whether a key, or a field of a hash, expires in some database.
    pub fn expires(&mut self) -> bool {
        self.dbs().any(|db| db.expiring_len() > 0 || db.hashes_with_expiry() > 0)
    }

    /// Whether a client stands in a queue of this shard.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.first.waiting != 0
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

    /// Adds a client to the end of a key's queue.
    pub fn add_waiter(&mut self, db: usize, key: Key<'_>, client: BlockedClient) {
        self.first.waiting += u32::from(self.rest.waiters.add(db, key, client));
    }

    /// Takes the client at a place out of a key's queue.
    pub fn remove_waiter(&mut self, db: usize, key: Key<'_>, at: usize) {
        self.first.waiting -= u32::from(self.rest.waiters.remove(db, key, at));
    }

    /// Takes the client with this number out of a key's queue, if it is still there.
    pub fn leave(&mut self, db: usize, key: Key<'_>, client: u64) {
        self.first.waiting -= u32::from(self.rest.waiters.leave(db, key, client));
    }

    /// Exchanges the contents of two databases. A client blocked on a key stays blocked on the key
    /// of that name in the database of that number.
    pub fn swap(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let waiting = self.first.waiting;
        let content_a = std::mem::take(self.db(a));
        let content_b = std::mem::replace(self.db(b), content_a);
        *self.db(a) = content_b;
        self.db(a).number = a as u32;
        self.db(b).number = b as u32;
        self.first.waiting = waiting;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::ExpiryChange;
    use crate::string::NewString;
    use crate::turn::Turn;
    use base::hash::KeyHasher;

    #[test]
    fn database_0_shares_the_lock_s_cache_line() {
        // The lock takes one byte, aligned to eight.
        assert_eq!(size_of::<Shard>() + 8, 64);
    }

    #[test]
    fn numbers_stay_when_contents_are_exchanged() {
        let mut shard = Shard::new(3);
        let mut turn = Turn::alone(KeyHasher::new(1));
        let key = turn.key(b"k");
        shard.db(2).put(&mut turn, key, NewString::Integer(7), ExpiryChange::Clear);
        for (a, b) in [(0, 2), (0, 0), (1, 2)] {
            shard.swap(a, b);
            let numbers: Vec<u32> = shard.dbs().map(|db| db.number).collect();
            assert_eq!(numbers, [0, 1, 2]);
        }
        let lens: Vec<usize> = shard.dbs().map(|db| db.len()).collect();
        assert_eq!(lens, [1, 0, 0]);
    }
}
