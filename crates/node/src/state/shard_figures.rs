//! Figures about the contents of shards, as statistics last saw them.
//!
//! A look takes each shard by try-lock and waits for none that a command holds for long, so that a
//! report is never as slow as the slowest command. The figures of a shard that stays in use are
//! those of the last look, and zero before the first. Their sum is not of one moment.

use std::time::Duration;

use engine::LockedShards;
use store::Shard;
use store::SizeClass;

use super::waits::Waits;

/// How long a look waits for one shard that is in use. Most commands take less.
const WAIT: Duration = Duration::from_micros(250);
/// How often a look waits like this.
const WAITS_MAX: usize = 4;

/// The figures of all shards.
#[derive(Debug, Default)]
pub struct ShardFigures {
    shards: Vec<OneShard>,
}

#[derive(Debug, Default)]
struct OneShard {
    dbs: Vec<DbFigures>,
    awaited: (usize, usize),
}

/// One database in one shard.
#[derive(Debug)]
pub(crate) struct DbFigures {
    pub number: usize,
    /// Keys with an expiry.
    pub expiring: usize,
    /// Milliseconds until these expire, all together.
    pub ttls_ms: f64,
    /// Hashes with fields that end.
    pub expiring_hashes: usize,
    /// Bytes of the table's slots.
    pub slot_bytes: usize,
    /// Keys by the class of their size, in no order.
    pub sizes: Vec<(SizeClass, u32)>,
}

impl ShardFigures {
    /// Looks at `count` shards again, as far as they are free.
    pub(crate) fn look(&mut self, shards: &mut LockedShards<'_>, count: usize, waits: &Waits) {
        self.shards.resize_with(count, OneShard::default);
        let mut look = |number: usize, wait| {
            let figures = &mut self.shards[number];
            shards.try_visit(number, wait, &mut |shard| figures.take(shard, waits))
        };
        let mut busy: Vec<usize> = (0..count).collect();
        busy.retain(|number| !look(*number, Duration::ZERO));
        for (nth, number) in busy.into_iter().enumerate() {
            look(number, if nth < WAITS_MAX { WAIT } else { Duration::ZERO });
        }
    }

    /// The databases with keys, those of all shards in a row.
    pub(crate) fn dbs(&self) -> impl Iterator<Item = &DbFigures> {
        self.shards.iter().flat_map(|shard| &shard.dbs)
    }

    /// Keys that clients wait for, and those among them whose end a client waits for as well.
    pub(crate) fn awaited(&self) -> (usize, usize) {
        let counts = self.shards.iter().map(|shard| shard.awaited);
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }
}

impl OneShard {
    fn take(&mut self, shard: &mut Shard, waits: &Waits) {
        let mut kept = std::mem::take(&mut self.dbs).into_iter();
        for db in shard.dbs() {
            let mut sizes = kept.next().map_or_else(Vec::new, |figures| figures.sizes);
            sizes.clear();
            sizes.extend_from_slice(db.sizes());
            self.dbs.push(DbFigures {
                number: db.number(),
                expiring: db.expiring_len(),
                ttls_ms: db.mean_ttl_ms() * db.expiring_len() as f64,
                expiring_hashes: db.hashes_with_expiry(),
                slot_bytes: db.slot_bytes(),
                sizes,
            });
        }
        self.awaited = match shard.has_waiters() {
            true => shard.waiters().count(|id| waits.find(id).is_some()),
            false => (0, 0),
        };
    }
}
