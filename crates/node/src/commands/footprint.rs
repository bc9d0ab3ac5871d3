//! Where the memory is: what the allocator says, what the tables take, what clients have in flight.
//!
//! INFO and MEMORY show the same numbers, which are taken here. Shards are looked at one after
//! another, so that the sums are of no single moment.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use store::key_index::Family;

use crate::execution::node_cx::NodeCx;
use crate::host::ProcessInfo;

/// One database in all shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DbSize {
    /// Keys, expired ones that nobody has noticed included.
    pub keys: u64,
    /// Of these, with an expiry.
    pub expiring: u64,
    /// Hashes with fields that end.
    pub expiring_hashes: u64,
    /// Bytes of the tables' slots.
    pub slot_bytes: u64,
    /// Keys by family, and in each by the bits of their size.
    pub sizes: BTreeMap<(Family, u8), u64>,
}

/// The memory of this moment.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// What the process tells.
    pub process: ProcessInfo,
    /// By number.
    pub dbs: Vec<DbSize>,
    /// Requests not executed and replies not sent yet.
    pub client_bytes: u64,
    /// Keys that clients wait for, and those among them whose end a client waits for as well.
    pub awaited: (usize, usize),
}

/// The sizes of all databases.
pub(crate) fn db_sizes(cx: &NodeCx<'_>) -> Vec<DbSize> {
    let mut dbs = vec![DbSize::default(); cx.worker.node.databases];
    for shard in 0..cx.worker.node.map.len() {
        cx.shards.visit(shard, &mut |shard| {
            for db in shard.dbs() {
                let sum = &mut dbs[db.number()];
                sum.keys += db.len() as u64;
                sum.expiring += db.expiring_len() as u64;
                sum.expiring_hashes += db.hashes_with_expiry() as u64;
                sum.slot_bytes += db.slot_bytes() as u64;
                for (class, keys) in db.sizes() {
                    let count = sum.sizes.entry((class.family, class.bits)).or_default();
                    *count += u64::from(*keys);
                }
            }
        });
    }
    dbs
}

fn awaited_keys(cx: &NodeCx<'_>) -> (usize, usize) {
    let mut sum = (0, 0);
    let node = &cx.worker.node;
    let waits = |id| node.waits.find(id).is_some();
    let shards = if node.waits.count() == 0 { 0 } else { cx.worker.node.map.len() };
    for shard in 0..shards {
        cx.shards.visit(shard, &mut |shard| {
            if shard.has_waiters() {
                let (keys, for_end) = shard.waiters().count(waits);
                sum = (sum.0 + keys, sum.1 + for_end);
            }
        });
    }
    sum
}

impl Footprint {
    /// Looks at everything.
    pub(crate) fn take(cx: &NodeCx<'_>) -> Self {
        let clients = cx.worker.node.clients.all();
        let bytes = |client: &crate::ClientRecord| {
            client.query_bytes.load(Ordering::Relaxed) + client.output_bytes.load(Ordering::Relaxed)
        };
        Self {
            process: cx.outside(|host| host.process_info()),
            dbs: db_sizes(cx),
            client_bytes: clients.iter().map(|client| bytes(client)).sum(),
            awaited: awaited_keys(cx),
        }
    }

    /// Bytes handed out by the allocator.
    pub(crate) fn used(&self) -> u64 {
        self.process.allocated_bytes
    }

    /// The most that `used` has been.
    pub(crate) fn peak(&self) -> u64 {
        self.process.allocated_peak_bytes.max(self.used())
    }

    /// Bytes that hold no data: the empty server, tables, clients.
    pub(crate) fn overhead(&self) -> u64 {
        let slots: u64 = self.dbs.iter().map(|db| db.slot_bytes).sum();
        self.process.startup_bytes + slots + self.client_bytes
    }

    /// Bytes that hold data.
    pub(crate) fn dataset(&self) -> u64 {
        self.used().saturating_sub(self.overhead())
    }

    /// Bytes used beyond those of the empty server.
    pub(crate) fn net(&self) -> u64 {
        self.used().saturating_sub(self.process.startup_bytes)
    }

    /// Keys in all databases.
    pub(crate) fn keys(&self) -> u64 {
        self.dbs.iter().map(|db| db.keys).sum()
    }

    /// How much of the memory that holds blocks is lost between them: ratio and bytes.
    pub(crate) fn fragmentation(&self) -> (f64, i64) {
        compare(self.process.active_bytes, self.process.allocated_bytes)
    }

    /// What the allocator keeps beyond pages with blocks.
    pub(crate) fn retained(&self) -> (f64, i64) {
        compare(self.process.resident_bytes, self.process.active_bytes)
    }

    /// What the process has beyond its allocator.
    pub(crate) fn rss_overhead(&self) -> (f64, i64) {
        compare(self.process.rss_bytes, self.process.resident_bytes)
    }

    /// What the process has in memory beyond what is used.
    pub(crate) fn total_fragmentation(&self) -> (f64, i64) {
        compare(self.process.rss_bytes, self.used())
    }
}

/// `part` of `whole` in percent; 0 when there is no whole.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn compare(more: u64, less: u64) -> (f64, i64) {
    let ratio = if less == 0 { 0.0 } else { more as f64 / less as f64 };
    (ratio, more.cast_signed().wrapping_sub(less.cast_signed()))
}
