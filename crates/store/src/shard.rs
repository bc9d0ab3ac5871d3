//! One shard: its part of every database.
//!
//! The part of database 0, which nearly all clients use, lies in the shard itself: with the shard's
//! lock it fills one cache line, so that reaching a table costs one miss and not two.

use crate::db::Db;

/// One shard's part of every database.
#[derive(Debug)]
pub struct Shard {
    first: Db,
    others: Box<Others>,
}

/// What few requests need, behind one pointer to keep the shard within its cache line.
#[derive(Debug)]
struct Others {
    dbs: Box<[Db]>,
}

impl Shard {
    /// A shard with so many empty databases, at least one.
    pub fn new(databases: usize) -> Self {
        let db = |number: usize| Db { number: number as u32, ..Db::default() };
        let dbs = (1..databases).map(db).collect();
        Self { first: db(0), others: Box::new(Others { dbs }) }
    }

    /// A database by its number, which the session has checked.
    #[inline]
    pub fn db(&mut self, number: usize) -> &mut Db {
        match number.checked_sub(1) {
            None => &mut self.first,
            Some(index) => &mut self.others.dbs[index],
        }
    }

    /// The same for reading only.
    #[inline]
    pub fn db_ref(&self, number: usize) -> &Db {
        match number.checked_sub(1) {
            None => &self.first,
            Some(index) => &self.others.dbs[index],
        }
    }

    /// All databases, by number.
    pub fn dbs(&mut self) -> impl Iterator<Item = &mut Db> {
        std::iter::once(&mut self.first).chain(&mut self.others.dbs)
    }

    /// Exchanges the contents of two databases.
    pub fn swap(&mut self, a: usize, b: usize) {
        if a == b {
            return;
        }
        let content_a = std::mem::take(self.db(a));
        let content_b = std::mem::replace(self.db(b), content_a);
        *self.db(a) = content_b;
        self.db(a).number = a as u32;
        self.db(b).number = b as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Stamp;
    use crate::text::NewText;
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
        let mut turn = Turn::new(KeyHasher::new(1));
        let key = turn.key(b"k");
        shard.db(2).put(&mut turn, key, NewText::Integer(7), Stamp::Clear);
        for (a, b) in [(0, 2), (0, 0), (1, 2)] {
            shard.swap(a, b);
            let numbers: Vec<u32> = shard.dbs().map(|db| db.number).collect();
            assert_eq!(numbers, [0, 1, 2]);
        }
        let lens: Vec<usize> = shard.dbs().map(|db| db.len()).collect();
        assert_eq!(lens, [1, 0, 0]);
    }
}
