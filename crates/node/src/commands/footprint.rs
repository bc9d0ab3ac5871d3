//! Where the memory is: what the allocator says, what the tables take, what clients have in flight.
//!
//! INFO and MEMORY show the same numbers, which are taken here. No shard is waited for: keys are
//! counted without shards, and the rest may be of an earlier look where a shard is in use
//! ([`ShardFigures`]).
//!
//! [`ShardFigures`]: crate::state::shard_figures::ShardFigures

use std::collections::BTreeMap;

use store::SizeFamily;

use crate::execution::node_cx::NodeCx;
use crate::host::ProcessInfo;
use crate::state::script_registry::ScriptFigures;

/// One database in all shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DbSize {
    /// Keys, expired ones that nobody has noticed included.
    pub keys: u64,
    /// Of these, with an expiry.
    pub expiring: u64,
    /// How long these have to live together, in milliseconds, as far as walks have seen.
    pub ttls_ms: f64,
    /// Hashes with fields that end.
    pub expiring_hashes: u64,
    /// Bytes of the tables' slots.
    pub slot_bytes: u64,
    /// Keys by family, and in each by the bits of their size.
    pub sizes: BTreeMap<(SizeFamily, u8), u64>,
}

/// The memory of this moment.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// What the process tells.
    pub process: ProcessInfo,
    /// By number.
    pub dbs: Vec<DbSize>,
    /// What clients take: requests not executed and replies not sent yet, and their own state.
    pub client_bytes: u64,
    /// Keys that clients wait for, and those among them whose end a client waits for as well.
    pub awaited: (usize, usize),
    /// Scripts and functions.
    pub scripts: ScriptFigures,
    /// What the log keeps until it is written.
    pub log_bytes: u64,
}

/// The sizes of all databases, and the keys that are waited for.
fn sizes(cx: &mut NodeCx<'_>) -> (Vec<DbSize>, (usize, usize)) {
    let node = &cx.worker.node;
    let figures = &mut cx.worker.shard_figures;
    figures.look(&mut cx.shards, node.map.len(), &node.waits);
    let keys = cx.worker.turn.keys.totals();
    let mut dbs: Vec<DbSize> =
        keys.map(|keys| DbSize { keys: keys as u64, ..DbSize::default() }).collect();
    for part in figures.dbs() {
        let sum = &mut dbs[part.number];
        sum.expiring += part.expiring as u64;
        sum.ttls_ms += part.ttls_ms;
        sum.expiring_hashes += part.expiring_hashes as u64;
        sum.slot_bytes += part.slot_bytes as u64;
        for (class, keys) in &part.sizes {
            let count = sum.sizes.entry((class.family, class.bits)).or_default();
            *count += u64::from(*keys);
        }
    }
    // That nobody waits is known without the shards.
    let awaited = if node.waits.count() == 0 { (0, 0) } else { figures.awaited() };
    (dbs, awaited)
}

impl Footprint {
    /// Looks at everything.
    pub(crate) fn take(cx: &mut NodeCx<'_>) -> Self {
        let (dbs, awaited) = sizes(cx);
        let clients = cx.worker.node.clients.all();
        Self {
            process: cx.outside(|host| host.process_info()),
            dbs,
            client_bytes: clients.iter().map(|client| client.memory_bytes()).sum(),
            awaited,
            scripts: cx.worker.node.scripting.figures(),
            log_bytes: cx.worker.node.used_memory.kept_for_log(),
        }
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.process.used_bytes
    }

    /// The most that `used` has been.
    pub(crate) fn peak(&self) -> u64 {
        self.process.used_peak_bytes.max(self.used())
    }

    /// Bytes that hold no data: the empty server, tables, clients, the log.
    pub(crate) fn overhead(&self) -> u64 {
        self.process.startup_bytes + self.slot_bytes() + self.client_bytes + self.log_bytes
    }

    /// Bytes of the tables' slots in all databases.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.dbs.iter().map(|db| db.slot_bytes).sum()
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
