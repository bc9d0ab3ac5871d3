//! The use of memory, for INFO and MEMORY: by the allocator, tables, clients, scripts and the log.
//!
//! Taking it never waits for a shard: keys are counted without shards, and for a shard in use the
//! other figures are those of an earlier look ([`ShardFigures`]).
//!
//! [`ShardFigures`]: crate::state::shard_figures::ShardFigures

use std::collections::BTreeMap;

use store::SizeFamily;

use crate::execution::node_cx::NodeCx;
use crate::host::ProcessInfo;
use crate::state::script_registry::ScriptFigures;

/// The figures of one database in all shards.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DbSize {
    /// Keys, including expired ones that are still stored.
    pub keys: u64,
    /// Keys with an expiry.
    pub expiring: u64,
    /// Sum of the times to live of keys with an expiry, in milliseconds, estimated by expiry walks.
    pub ttls_ms: f64,
    /// Hashes with fields that expire.
    pub expiring_hashes: u64,
    /// Bytes of the tables' slots.
    pub slot_bytes: u64,
    /// Numbers of keys by family and by the bits of their size.
    pub sizes: BTreeMap<(SizeFamily, u8), u64>,
}

/// The use of memory at one moment.
#[derive(Debug)]
pub(crate) struct Footprint {
    /// The figures of the process.
    pub process: ProcessInfo,
    /// By number.
    pub dbs: Vec<DbSize>,
    /// Bytes of all clients: pending requests, unsent replies, and their state.
    pub client_bytes: u64,
    /// Keys for which clients wait, and those of them for whose removal a client waits.
    pub awaited: (usize, usize),
    /// Scripts and functions.
    pub scripts: ScriptFigures,
    /// Bytes that wait to be written to the log.
    pub log_bytes: u64,
}

/// The sizes of all databases, and the keys for which clients wait.
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
    // Without blocked clients, the shards need not be asked.
    let awaited = if node.waits.count() == 0 { (0, 0) } else { figures.awaited() };
    (dbs, awaited)
}

impl Footprint {
    /// Takes all figures.
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

    /// The highest value of `used` so far.
    pub(crate) fn peak(&self) -> u64 {
        self.process.used_peak_bytes.max(self.used())
    }

    /// Bytes that are not data: the empty server, tables, clients, the log.
    pub(crate) fn overhead(&self) -> u64 {
        self.process.startup_bytes + self.slot_bytes() + self.client_bytes + self.log_bytes
    }

    /// Bytes of the tables' slots in all databases.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.dbs.iter().map(|db| db.slot_bytes).sum()
    }

    /// Bytes of data.
    pub(crate) fn dataset(&self) -> u64 {
        self.used().saturating_sub(self.overhead())
    }

    /// Bytes in use without those of the empty server.
    pub(crate) fn net(&self) -> u64 {
        self.used().saturating_sub(self.process.startup_bytes)
    }

    /// Keys in all databases.
    pub(crate) fn keys(&self) -> u64 {
        self.dbs.iter().map(|db| db.keys).sum()
    }

    /// Memory lost to fragmentation in pages with blocks: ratio and bytes.
    pub(crate) fn fragmentation(&self) -> (f64, i64) {
        compare(self.process.active_bytes, self.process.allocated_bytes)
    }

    /// Memory that the allocator retains in pages without blocks: ratio and bytes.
    pub(crate) fn retained(&self) -> (f64, i64) {
        compare(self.process.resident_bytes, self.process.active_bytes)
    }

    /// Memory of the process outside the allocator: ratio and bytes.
    pub(crate) fn rss_overhead(&self) -> (f64, i64) {
        compare(self.process.rss_bytes, self.process.resident_bytes)
    }

    /// Memory of the process that is not in use: ratio and bytes.
    pub(crate) fn total_fragmentation(&self) -> (f64, i64) {
        compare(self.process.rss_bytes, self.used())
    }
}

/// `part` of `whole` in per cent; 0 if `whole` is 0.
pub(crate) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

fn compare(more: u64, less: u64) -> (f64, i64) {
    let ratio = if less == 0 { 0.0 } else { more as f64 / less as f64 };
    (ratio, more.cast_signed().wrapping_sub(less.cast_signed()))
}
