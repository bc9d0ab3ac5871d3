//! What all threads of one server share besides the keyspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

use base::hash::KeyHasher;
use engine::ShardMap;
use parking_lot::{Mutex, RwLock};
use store::{ExpiringShards, KeyCounts};

use crate::blocking::Waits;
use crate::clients::record::{ClientRecord, Registry, flag};
use crate::config::Config;
use crate::stats::counters::ThreadCounters;
use crate::stats::slowlog::SlowLog;
use crate::stats::totals::Totals;

/// CLIENT PAUSE: nothing is postponed.
pub const PAUSE_NONE: u8 = 0;
/// CLIENT PAUSE WRITE.
pub const PAUSE_WRITE: u8 = 1;
/// CLIENT PAUSE ALL.
pub const PAUSE_ALL: u8 = 2;

/// The state that all threads of one server share.
#[derive(Debug)]
pub struct Node {
    config: RwLock<Arc<Config>>,
    generation: AtomicU64,
    /// All clients.
    pub clients: Registry,
    /// The counts of all threads that ever ran, by their numbers.
    pub threads: RwLock<Vec<Arc<ThreadCounters>>>,
    /// How many keys the databases have.
    pub key_counts: Arc<KeyCounts>,
    /// Which shards have something that expires.
    pub expiring_shards: Arc<ExpiringShards>,
    /// The process's key hash.
    pub hasher: KeyHasher,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// Databases in all.
    pub databases: usize,
    /// 40 hexadecimal digits, different at each start.
    pub run_id: String,
    /// One of the `PAUSE_` constants.
    pub pause: AtomicU8,
    /// When the pause ends, in milliseconds on the steady scale.
    pub pause_until_ms: AtomicI64,
    /// Whether expired keys are removed that nobody asks for; DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// The waits of blocked clients.
    pub waits: Waits,
    /// Connections accepted.
    pub connections_received: AtomicU64,
    /// Connections refused.
    pub connections_rejected: AtomicU64,
    /// Serializes changes of the configuration.
    pub config_change: Mutex<()>,
    /// The slow log.
    pub slowlog: Mutex<SlowLog>,
    /// What statistics are counted from, and rates.
    pub(crate) statistics: Mutex<Totals>,
}

impl Node {
    /// The shared state of a server with this configuration.
    pub fn new(config: Config, seed: u64, shards: usize) -> Self {
        let mut random = base::random::Random::new(seed ^ 0x5bd1_e995);
        let run_id = (0..40).map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize]));
        Self {
            clients: Registry::default(),
            threads: RwLock::new(Vec::new()),
            key_counts: Arc::new(KeyCounts::new(config.databases as usize)),
            expiring_shards: Arc::new(ExpiringShards::new(shards)),
            hasher: KeyHasher::new(seed),
            map: ShardMap::new(shards),
            databases: config.databases as usize,
            run_id: run_id.collect(),
            pause: AtomicU8::new(PAUSE_NONE),
            pause_until_ms: AtomicI64::new(0),
            active_expire: AtomicBool::new(true),
            waits: Waits::default(),
            connections_received: AtomicU64::new(0),
            connections_rejected: AtomicU64::new(0),
            config_change: Mutex::new(()),
            slowlog: Mutex::default(),
            statistics: Mutex::default(),
            generation: AtomicU64::new(0),
            config: RwLock::new(Arc::new(config)),
        }
    }

    /// The configuration of this moment.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read())
    }

    /// Replaces the configuration; threads take it over at their next turn.
    pub fn set_config(&self, config: Config) {
        *self.config.write() = Arc::new(config);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// A number that changes with the configuration.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The counts of thread `index`, which go on where an ended thread of this number left them.
    /// `commands` is the number of entries in the table.
    pub fn thread_counters(&self, index: usize, commands: usize) -> Arc<ThreadCounters> {
        let mut threads = self.threads.write();
        while threads.len() <= index {
            threads.push(Arc::new(ThreadCounters::new(commands)));
        }
        Arc::clone(&threads[index])
    }

    /// Whether a client is held by a wait for a key or by CLIENT PAUSE.
    pub fn is_blocked(&self, client: &ClientRecord) -> bool {
        client.has(flag::PAUSED) || self.waits.find(client.id).is_some()
    }

    /// Marks a client as one to be closed, so that nothing leaves the keyspace for it any more.
    /// Returns whether this caller was the first.
    pub fn kill(&self, client: &ClientRecord) -> bool {
        let first = client.location.kill();
        // A wait that begins meanwhile is found here, or it finds the mark.
        if let Some(waiter) = self.waits.find_surely(client.id) {
            waiter.give_up();
        }
        first
    }

    /// Postpones commands, or only writes, until a moment. While a pause runs, the longer time and
    /// the stricter mode stay. Only the main thread calls this.
    pub fn pause_clients(&self, writes_only: bool, until_ms: i64, steady_ms: i64) {
        let running_until_ms = self.pause_until_ms.load(Ordering::Relaxed);
        let runs = steady_ms < running_until_ms && self.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        let stays_all = runs && self.pause.load(Ordering::Relaxed) == PAUSE_ALL;
        let until_ms = if runs { until_ms.max(running_until_ms) } else { until_ms };
        self.pause_until_ms.store(until_ms, Ordering::Release);
        let mode = match (until_ms > steady_ms, writes_only && !stays_all) {
            (false, _) => PAUSE_NONE,
            (true, true) => PAUSE_WRITE,
            (true, false) => PAUSE_ALL,
        };
        self.pause.store(mode, Ordering::Release);
    }

    /// Ends a pause. Only the main thread calls this.
    pub fn unpause_clients(&self) {
        self.pause.store(PAUSE_NONE, Ordering::Release);
        self.pause_until_ms.store(0, Ordering::Release);
    }

    /// How long CLIENT PAUSE goes on, in milliseconds; 0 when none runs.
    pub fn pause_left_ms(&self, steady_ms: i64) -> i64 {
        match self.pause.load(Ordering::Acquire) {
            PAUSE_NONE => 0,
            _ => self.pause_until_ms.load(Ordering::Acquire).saturating_sub(steady_ms).max(0),
        }
    }

    /// Whether CLIENT PAUSE postpones a command now.
    pub fn is_paused(&self, may_write: bool, steady_ms: i64) -> bool {
        let pause = self.pause.load(Ordering::Acquire);
        (pause == PAUSE_ALL || pause == PAUSE_WRITE && may_write)
            && steady_ms < self.pause_until_ms.load(Ordering::Acquire)
    }
}
