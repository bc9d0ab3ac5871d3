//! One shard: its part of every database.

use crate::db::Db;

/// One shard's part of every database.
#[derive(Debug)]
pub struct Shard {
    dbs: Box<[Db]>,
}

impl Shard {
    /// A shard with so many empty databases.
    pub fn new(databases: usize) -> Self {
        let dbs = (0..databases).map(|number| Db { number, ..Db::default() }).collect();
        Self { dbs }
    }

    /// A database by its number, which the session has checked.
    #[inline]
    pub fn db(&mut self, number: usize) -> &mut Db {
        &mut self.dbs[number]
    }

    /// All databases.
    pub fn dbs(&mut self) -> &mut [Db] {
        &mut self.dbs
    }

    /// Exchanges the contents of two databases.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.dbs.swap(a, b);
        self.dbs[a].number = a;
        self.dbs[b].number = b;
    }
}
