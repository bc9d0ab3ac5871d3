//! The node: the state that all threads of one server share besides the keyspace.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

use acl::CommandIndex;
use base::hash::KeyHasher;
use engine::{Error, ShardMap};
use parking_lot::{Mutex, RwLock};
use pubsub::{ChannelId, ChannelRegistry as Subscribed};
use store::{KeyCounts, ShardSets};

use super::append_only_figures::AppendOnlyFigures;
use super::client_memory::ClientMemory;
use super::durability::Durability;
use super::inboxes::Inboxes;
use super::memory_limit::EvictionState;
use super::refusals::{Cause, Refusals};
use super::script_registry::Scripting;
use super::shown_requests::ShownRequests;
use super::snapshots::Snapshots;
use super::trackers::Trackers;
use super::waits::Waits;
use crate::clients::record::{ClientRecord, flag};
use crate::clients::registry::Registry;
use crate::clients::users::UserRegistry;
use crate::command_table::index::Table;
use crate::config::Config;
use crate::stats::counters::ThreadCounters;
use crate::stats::hot_keys::HotkeysSession;
use crate::stats::latency_events::LatencyEvents;
use crate::stats::slowlog::SlowLog;
use crate::stats::totals::{LatencyBase, Totals};
use crate::stats::used_memory::UsedMemory;

/// No pause: no command is postponed.
pub const PAUSE_NONE: u8 = 0;
/// CLIENT PAUSE WRITE.
pub const PAUSE_WRITE: u8 = 1;
/// CLIENT PAUSE ALL.
pub const PAUSE_ALL: u8 = 2;
/// The server shuts down: no command begins.
pub const PAUSE_FOR_EVER: u8 = 3;

/// The end of a pause that waits for the commands which began before it.
const UNTIL_BEGUN_MS: i64 = i64::MAX;

/// CLIENT PAUSE, and the shutdown of the server, which may be called off.
#[derive(Debug, Default)]
struct Pauses {
    /// Changes when all pauses are ended.
    generation: u64,
    /// Pauses that wait for the commands which began before them.
    beginning: usize,
    /// The commands that are postponed: one of the `PAUSE_` constants.
    mode: u8,
    /// When the pauses that do not wait end, in milliseconds on the steady scale.
    until_ms: i64,
    /// The server shuts down.
    for_ever: bool,
}

/// The state that all threads of one server share.
#[derive(Debug)]
pub struct Node {
    config: RwLock<Arc<Config>>,
    generation: AtomicU64,
    /// All clients.
    pub clients: Registry,
    /// All commands, under the names that the configuration gives them.
    pub table: &'static Table,
    /// All users.
    pub users: UserRegistry,
    /// The counts of all threads that ever ran, by their numbers.
    pub threads: RwLock<Vec<Arc<ThreadCounters>>>,
    /// How many keys the databases have.
    pub key_counts: Arc<KeyCounts>,
    /// Which shards have keys, and which have keys that expire.
    pub shard_sets: Arc<ShardSets>,
    /// The process's key hash.
    pub hasher: KeyHasher,
    /// Which shard a key belongs to.
    pub map: ShardMap,
    /// The number of databases.
    pub databases: usize,
    /// 40 hexadecimal digits, different at each start.
    pub run_id: String,
    /// One of the `PAUSE_` constants.
    pub pause: AtomicU8,
    /// When the pause ends, in milliseconds on the steady scale.
    pub pause_until_ms: AtomicI64,
    /// Locked to change the two above.
    pauses: Mutex<Pauses>,
    /// Whether expired keys are removed without a command that reads them; DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// Whether background ticks do nothing, and signals do not end the server yet; DEBUG
    /// PAUSE-CRON.
    pub cron_paused: AtomicBool,
    /// Microseconds that pass before the log is written; DEBUG AOF-FLUSH-SLEEP.
    pub log_delay_us: AtomicU64,
    /// The waits of blocked clients.
    pub waits: Waits,
    /// The channels and patterns of which threads have subscribers.
    pub pubsub: Subscribed,
    /// Which clients track keys, and which keys.
    pub trackers: Trackers,
    /// Where each thread finds the messages of other threads for its clients.
    pub inboxes: Arc<Inboxes>,
    /// The lines of MONITOR.
    pub(crate) shown_requests: ShownRequests,
    /// Connections accepted.
    pub connections_received: AtomicU64,
    /// Connections refused.
    pub connections_rejected: AtomicU64,
    /// How much memory is in use.
    pub used_memory: UsedMemory,
    /// How far memory is over its limit.
    pub eviction: EvictionState,
    /// The memory that clients take.
    pub client_memory: ClientMemory,
    /// Values that wait to be freed in the background.
    pub lazy_free_pending: AtomicU64,
    /// Values freed in the background.
    pub lazy_freed: AtomicU64,
    pub(crate) refusals: Refusals,
    /// The state of RDB files.
    pub snapshots: Snapshots,
    /// The state of the append-only file.
    pub append_only: Mutex<AppendOnlyFigures>,
    /// Up to where the append-only file is durable.
    pub durability: Durability,
    /// Serializes changes of the configuration.
    pub config_change: Mutex<()>,
    /// Scripts and functions.
    pub scripting: Scripting,
    /// The slow log.
    pub slowlog: Mutex<SlowLog>,
    /// The current session of HOTKEYS, or the last one.
    pub(crate) hotkeys: Mutex<Option<Arc<HotkeysSession>>>,
    /// Events that took longer than `latency-monitor-threshold`.
    pub latency_events: Mutex<LatencyEvents>,
    /// The latencies of commands when statistics were last reset.
    pub(crate) latency_base: Mutex<Arc<LatencyBase>>,
    /// The base of statistics, and rates.
    pub(crate) statistics: Mutex<Totals>,
}

impl Node {
    /// The shared state of a server with this configuration, and with these commands as requests
    /// and as the rules of users name them.
    pub(crate) fn with_commands(
        table: &'static Table,
        for_rules: &'static CommandIndex,
        config: Config,
        seed: u64,
        shards: usize,
    ) -> Self {
        let mut random = base::random::Random::new(seed ^ 0x5bd1_e995);
        let shard_sets = Arc::new(ShardSets::new(shards));
        let run_id = (0..40).map(|_| char::from(b"0123456789abcdef"[random.below(16) as usize]));
        Self {
            clients: Registry::default(),
            table,
            users: UserRegistry::with_commands(for_rules, &config),
            threads: RwLock::new(Vec::new()),
            key_counts: Arc::new(KeyCounts::new(config.databases as usize)),
            trackers: Trackers::new(shards, Arc::clone(&shard_sets)),
            shard_sets,
            hasher: KeyHasher::new(seed),
            map: ShardMap::new(shards),
            databases: config.databases as usize,
            run_id: run_id.collect(),
            pause: AtomicU8::new(PAUSE_NONE),
            pause_until_ms: AtomicI64::new(0),
            pauses: Mutex::default(),
            active_expire: AtomicBool::new(true),
            cron_paused: AtomicBool::new(false),
            log_delay_us: AtomicU64::new(0),
            waits: Waits::default(),
            pubsub: Subscribed::new(KeyHasher::new(random.next_u64())),
            inboxes: Arc::new(Inboxes::new()),
            shown_requests: ShownRequests::default(),
            connections_received: AtomicU64::new(0),
            connections_rejected: AtomicU64::new(0),
            used_memory: UsedMemory::default(),
            eviction: EvictionState::default(),
            client_memory: ClientMemory::default(),
            lazy_free_pending: AtomicU64::new(0),
            lazy_freed: AtomicU64::new(0),
            refusals: Refusals::default(),
            snapshots: Snapshots::default(),
            append_only: Mutex::default(),
            durability: Durability::default(),
            config_change: Mutex::new(()),
            scripting: Scripting::default(),
            slowlog: Mutex::default(),
            hotkeys: Mutex::default(),
            latency_events: Mutex::default(),
            latency_base: Mutex::default(),
            statistics: Mutex::default(),
            generation: AtomicU64::new(0),
            config: RwLock::new(Arc::new(config)),
        }
    }

    /// The configuration of this moment.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read())
    }

    /// Replaces the configuration; threads take it over at their next turn. A `requirepass` that
    /// differs becomes the only password of the default user.
    pub fn set_config(&self, config: Config) {
        if config.requirepass != self.config.read().requirepass {
            self.users.set_default_password(&config.requirepass);
        }
        *self.config.write() = Arc::new(config);
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Replaces the session of HOTKEYS; threads follow at their next turn.
    pub(crate) fn set_hotkeys(&self, session: Option<Arc<HotkeysSession>>) {
        *self.hotkeys.lock() = session;
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// A client begins or stops watching requests; threads follow at their next turn.
    pub(crate) fn requests_watched(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Makes threads follow a change at their next turn.
    pub(crate) fn follow_change(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// A number that changes with the configuration, and with everything else that threads follow.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The counts of thread `index`, which continue those of an ended thread with this number.
    /// `commands` is the number of entries in the table.
    pub fn thread_counters(&self, index: usize, commands: usize) -> Arc<ThreadCounters> {
        let mut threads = self.threads.write();
        while threads.len() <= index {
            threads.push(Arc::new(ThreadCounters::new(commands)));
        }
        Arc::clone(&threads[index])
    }

    /// Whether a client is suspended by a wait for a key or by CLIENT PAUSE.
    pub fn is_blocked(&self, client: &ClientRecord) -> bool {
        client.has(flag::PAUSED) || self.waits.find(client.id).is_some()
    }

    /// Marks a client as killed: nothing leaves the keyspace for it from now on, and it does not
    /// count as a subscriber. Returns whether this caller was the first.
    pub fn kill(&self, client: &ClientRecord) -> bool {
        let first = client.location.kill();
        // A subscription that begins meanwhile is found here, or it finds the mark.
        self.stop_counting(client);
        // A wait that begins meanwhile is found here, or it finds the mark.
        if let Some(waiter) = self.waits.find_surely(client.id) {
            waiter.give_up();
        }
        first
    }

    /// Stops counting a client that will be closed as a subscriber. Any thread may call this; the
    /// client's owner still has to forget its subscriptions.
    pub(crate) fn stop_counting(&self, client: &ClientRecord) {
        let mut subscriptions = client.subscriptions.lock();
        let Some(subscriptions) = subscriptions.as_mut() else { return };
        // The thread that moves a client stops counting it at the end.
        if let Some(home) = subscriptions.count_on(None)
            && !subscriptions.moves()
        {
            for (kind, name, hash) in subscriptions.all() {
                self.pubsub.unsubscribe(ChannelId { kind, name, hash }, home, |_| {});
            }
        }
    }

    /// Refuses commands that change keys with this error, or ends the refusal for this cause.
    pub fn refuse_writes(&self, cause: Cause, text: Option<String>) {
        if self.refusals.set(cause, text) {
            self.follow_change();
        }
    }

    /// Why a command that changes keys is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.refusals.first()
    }

    /// Starts or stops replying LOADING. Threads follow at their next turn.
    pub fn set_loading(&self, loading: bool) {
        self.snapshots.set_loading(loading);
        self.follow_change();
    }

    /// Whether keys are being loaded.
    pub fn is_loading(&self) -> bool {
        self.snapshots.is_loading()
    }

    /// Changes of the keyspace since the start, resets or not.
    pub fn changes(&self) -> u64 {
        self.threads.read().iter().map(|stats| stats.changes.value()).sum()
    }

    /// Whether events of keys would go to a thread whose inbox is full.
    pub(crate) fn holds_events(&self) -> bool {
        let inboxes = &self.inboxes;
        inboxes.are_some_full() && self.pubsub.reaches_events(|thread| inboxes.is_full(thread))
    }

    /// Postpones commands, or only writes, from now on. While a pause runs, the stricter mode
    /// stays. When all commands that began before are over, call [`limit_pause`](Self::limit_pause)
    /// with the returned number to say how long the pause lasts.
    pub fn begin_pause(&self, writes_only: bool, steady_ms: i64) -> u64 {
        let mut pauses = self.pauses.lock();
        let waits = pauses.beginning > 0;
        let runs = pauses.mode != PAUSE_NONE && (waits || steady_ms < pauses.until_ms);
        if !waits && !runs {
            pauses.until_ms = steady_ms;
        }
        pauses.beginning += 1;
        let stays_all = runs && pauses.mode == PAUSE_ALL;
        pauses.mode = if writes_only && !stays_all { PAUSE_WRITE } else { PAUSE_ALL };
        self.publish_pause(&pauses);
        pauses.generation
    }

    /// Sets the end of a pause that was [begun](Self::begin_pause), unless it has been ended
    /// meanwhile. Of several pauses the longest counts.
    pub fn limit_pause(&self, generation: u64, until_ms: i64, steady_ms: i64) {
        let mut pauses = self.pauses.lock();
        if generation != pauses.generation {
            return;
        }
        pauses.beginning -= 1;
        // The greatest time says that a pause begins.
        pauses.until_ms = pauses.until_ms.max(until_ms.min(UNTIL_BEGUN_MS - 1));
        if pauses.beginning == 0 && pauses.until_ms <= steady_ms {
            pauses.mode = PAUSE_NONE;
        }
        self.publish_pause(&pauses);
    }

    /// Whether a pause waits for commands that began before it.
    pub fn pause_begins(&self) -> bool {
        self.pause_until_ms.load(Ordering::Acquire) == UNTIL_BEGUN_MS
    }

    /// Ends all pauses.
    pub fn unpause_clients(&self) {
        let mut pauses = self.pauses.lock();
        let (generation, for_ever) = (pauses.generation + 1, pauses.for_ever);
        *pauses = Pauses { generation, for_ever, ..Pauses::default() };
        self.publish_pause(&pauses);
    }

    /// The server shuts down: from now on only commands that may end a script begin. Commands that
    /// have begun are over after a grace period.
    pub fn pause_for_ever(&self) {
        self.end_begins(true);
    }

    /// The shutdown was called off. CLIENT PAUSE goes on if it has not ended meanwhile.
    pub fn end_pause_for_ever(&self) {
        self.end_begins(false);
    }

    fn end_begins(&self, begins: bool) {
        let mut pauses = self.pauses.lock();
        pauses.for_ever = begins;
        self.publish_pause(&pauses);
    }

    /// Publishes the mode and the end of the pause. The end is stored first: a thread that sees the
    /// mode sees the end.
    fn publish_pause(&self, pauses: &Pauses) {
        let (mode, until_ms) = match pauses {
            Pauses { for_ever: true, .. } => (PAUSE_FOR_EVER, UNTIL_BEGUN_MS),
            Pauses { beginning: 1.., mode, .. } => (*mode, UNTIL_BEGUN_MS),
            Pauses { mode, until_ms, .. } => (*mode, *until_ms),
        };
        self.pause_until_ms.store(until_ms, Ordering::Release);
        self.pause.store(mode, Ordering::Release);
    }

    /// Whether the server shuts down. The shutdown may still be called off.
    pub fn is_shutting_down(&self) -> bool {
        self.pause.load(Ordering::Acquire) == PAUSE_FOR_EVER
    }

    /// Whether the server shuts down while a busy script runs: no command waits for that script, so
    /// commands are refused.
    pub fn refuses_all(&self) -> bool {
        self.is_shutting_down() && self.scripting.busy.any()
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
        (pause >= PAUSE_ALL || pause == PAUSE_WRITE && may_write)
            && steady_ms < self.pause_until_ms.load(Ordering::Acquire)
    }
}
