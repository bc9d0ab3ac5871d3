//! The state with which one thread executes requests: its turn, its counts, its copy of the
//! configuration.

use std::sync::Arc;

use base::random::Random;
use base::room::clear;
use command::Flags;
use engine::{CxParts, ScriptError};
use resp::Args;
use store::{LazyFree, Turn};

use super::deferred::DeferredWork;
use super::reads::{OwnNotifications, Reads};
use crate::clients::record::ClientRecord;
use crate::clients::transaction_queue::Transaction;
use crate::clients::watched_keys::WatchedKeys;
use crate::command_table::entry::Entry;
use crate::command_table::index::Table;
use crate::config::Config;
use crate::state::deliveries::Deliveries;
use crate::state::eviction_pool::Evictor;
use crate::state::inboxes::ReceivingThreads;
use crate::state::memory_limit::{EvictsOn, Limit};
use crate::state::node::Node;
use crate::state::script_log::ScriptLog;
use crate::state::script_registry::KillState;
use crate::state::shard_figures::ShardFigures;
use crate::state::user_changes::UserChanges;
use crate::state::waiter::WakeEvent;
use crate::stats::counters::ThreadCounters;
use crate::stats::hot_keys::{Participant, SAMPLE_PERIOD};
use crate::stats::used_memory::ThreadMemory;

/// Bytes of scratch memory that a thread keeps from turn to turn.
const SCRATCH_KEPT_BYTES_MAX: usize = 256 * 1024;
/// The same for the hashes and for the shards of a command's keys.
const KEYS_KEPT_BYTES_MAX: usize = 64 * 1024;
/// Microseconds of a turn after which the requests of other clients come first. The request that
/// exceeds it is not interrupted.
const CLIENT_US_MAX: f64 = 1000.0;
/// `units_before` of a worker that has not noted where its requests begin.
pub(crate) const UNKNOWN_UNITS: u64 = u64::MAX;

/// The features above execution that a worker calls without shard locks, each off the hot path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerHooks {
    /// Publishes the changes of keys by the running command.
    pub(crate) publish_changes: fn(&mut Worker),
    /// Shows a request of a client to the clients that watch requests. The text is the command's
    /// name, and the number is the TSC when the request ended.
    pub(crate) show_request: fn(&mut Worker, &ClientRecord, &str, &Args<'_>, u64),
    /// Frees what the thread's interpreter keeps beyond its share, and returns its bytes.
    pub(crate) relieve_interpreter: fn() -> usize,
}

/// The state with which one thread executes requests.
#[derive(Debug)]
pub struct Worker {
    /// The shared state.
    pub node: Arc<Node>,
    /// The configuration as of this turn.
    pub config: Arc<Config>,
    /// Time and by-products.
    pub turn: Turn,
    /// All commands.
    pub table: &'static Table,
    /// The thread's counts.
    pub stats: Arc<ThreadCounters>,
    /// The thread's number; 0 is the main thread.
    pub index: usize,
    /// Commands with one of these [admission flags](crate::command_table::admission_flags) are
    /// looked at closely before they run.
    pub admission_mask: u16,
    pub(super) admits_scripts: bool,
    /// The mask of the same thread with access to the keyspace, if this worker serves the thread's
    /// clients without it because of a busy script. Every command has a flag of `admission_mask`
    /// then.
    pub(crate) mask_with_access: Option<u16>,
    hooks: WorkerHooks,
    /// The source of random numbers.
    pub random: Random,
    /// The TSC when the last command ended.
    pub(crate) last_tsc: u64,
    /// From this TSC on the turn's time is set again: another millisecond has begun, or the time is
    /// too old.
    pub(super) time_end_tsc: u64,
    /// The TSC at the turn's time.
    pub(super) time_tsc: u64,
    /// [`CLIENT_US_MAX`] in TSC cycles.
    pub(super) client_tsc_max: u64,
    /// Runs of this many TSC cycles or more go to the slow log, or are a latency event.
    pub(crate) slow_tsc: u64,
    /// Runs of this many go to the slow log.
    pub(crate) slowlog_tsc: u64,
    /// Runs until the next one whose keys are sampled.
    pub(crate) until_sample: u64,
    /// Chooses the sampled runs.
    pub(super) sampler: Random,
    /// Clients are shown the requests that are executed: MONITOR.
    pub(crate) shows_requests: bool,
    pub(crate) hotkeys: Option<Participant>,
    /// How long runs take is recorded: `latency-tracking`.
    pub(crate) tracks_latency: bool,
    /// Hashes of the keys of the running command, reused.
    pub(crate) hashes: Vec<u64>,
    /// The same for the keys that a script declares.
    pub(crate) script_hashes: Vec<u64>,
    /// The kill state of the last script, reused.
    pub(crate) script_kill_state: Option<Arc<KillState>>,
    /// Shards of the running command, reused.
    pub(crate) shards: Vec<usize>,
    /// The waits of other clients that the running command has ended or changed.
    pub(crate) wake_events: Vec<WakeEvent>,
    /// Lines that scripts have logged, until the thread is outside the gate.
    pub(crate) script_log: ScriptLog,
    /// Its commands come from files: libraries were accepted before.
    pub(crate) loads_files: bool,
    /// A script has run in this turn.
    pub(crate) has_run_scripts: bool,
    /// FLUSHALL has run, and a save follows: the number of changes of the keyspace at that moment.
    pub(crate) emptied_at: Option<u64>,
    /// The error of the running command has been counted where it arose.
    pub(crate) error_counted: bool,
    /// Why the running command has done nothing: a busy script holds what it needs.
    pub(crate) refusal: Option<ScriptError>,
    pub(crate) deferred: DeferredWork,
    /// Bytes of notifications beyond those that may be left out of `maxmemory`, when the last turn
    /// ended.
    pub(crate) beyond_uncounted: i64,
    /// The number of units in the log when the requests of a client began.
    pub(crate) units_before: u64,
    /// Messages for the thread's clients.
    pub deliveries: Arc<Deliveries>,
    pub(crate) receivers: ReceivingThreads,
    /// The keys that the running command reads, for a client that tracks keys.
    pub(crate) reads: Reads,
    /// The notifications for the client of the running command, which follow its reply.
    pub(crate) own_notifications: OwnNotifications,
    /// The emptied queue of a transaction, reused.
    pub(crate) next_transaction: Option<Box<Transaction>>,
    /// The emptied list of watched keys, reused.
    pub(crate) next_watched: Option<Box<WatchedKeys>>,
    /// Turns that have begun.
    pub(crate) turns: u64,
    /// The effects on clients of the running transaction's changes of users.
    pub(crate) user_changes: Option<Box<UserChanges>>,
    pub(crate) memory: Arc<ThreadMemory>,
    pub(crate) limit: Limit,
    /// Bytes that all clients may take together; 0 if unlimited.
    pub(crate) clients_bytes_max: i64,
    /// Samples of keys that may be evicted.
    pub(crate) evictor: Option<Box<Evictor>>,
    /// Whether evictions have not kept up, and go on between the turns.
    pub(crate) evicts_on: EvictsOn,
    pub(crate) limit_changed: bool,
    /// Memory was over its limit when the running command began, and no key could be evicted.
    pub(crate) out_of_memory: bool,
    /// The figures of the shards as this thread's reports last saw them.
    pub(crate) shard_figures: ShardFigures,
    pub(super) generation: u64,
    pub(super) tsc_per_micro: f64,
}

impl Worker {
    pub(crate) fn with_hooks(
        hooks: WorkerHooks,
        node: Arc<Node>,
        index: usize,
        table: &'static Table,
        seed: u64,
        tsc_per_micro: f64,
    ) -> Self {
        let keys = node.key_counts.of_thread(index);
        let turn = Turn::new(node.hasher, keys, Arc::clone(&node.shard_sets));
        let mut worker = Self {
            config: node.config(),
            turn,
            stats: node.thread_counters(index, table.entries().len()),
            table,
            index,
            admission_mask: 0,
            admits_scripts: true,
            hooks,
            mask_with_access: None,
            random: Random::new(seed),
            last_tsc: 0,
            time_end_tsc: 0,
            time_tsc: 0,
            client_tsc_max: (CLIENT_US_MAX * tsc_per_micro) as u64,
            slow_tsc: u64::MAX,
            slowlog_tsc: u64::MAX,
            until_sample: SAMPLE_PERIOD,
            sampler: Random::new(!seed),
            shows_requests: false,
            hotkeys: None,
            tracks_latency: false,
            hashes: Vec::new(),
            script_hashes: Vec::new(),
            script_kill_state: None,
            shards: Vec::new(),
            wake_events: Vec::new(),
            script_log: ScriptLog::default(),
            loads_files: false,
            has_run_scripts: false,
            emptied_at: None,
            error_counted: false,
            refusal: None,
            units_before: UNKNOWN_UNITS,
            deferred: DeferredWork::default(),
            beyond_uncounted: 0,
            deliveries: Arc::new(Deliveries::new(index, Arc::clone(&node.inboxes))),
            receivers: ReceivingThreads::default(),
            reads: Reads::default(),
            own_notifications: OwnNotifications::default(),
            next_transaction: None,
            next_watched: None,
            user_changes: None,
            turns: 0,
            memory: node.used_memory.of_thread(index),
            limit: Limit::default(),
            clients_bytes_max: 0,
            evictor: Some(Box::new(Evictor::new(seed.rotate_left(32)))),
            evicts_on: EvictsOn::No,
            limit_changed: false,
            out_of_memory: false,
            shard_figures: ShardFigures::default(),
            generation: node.generation(),
            tsc_per_micro,
            node,
        };
        worker.turn.lazy_free = LazyFree::new(worker.node.used_memory.backlog.clone());
        worker.follow_config();
        worker
    }

    /// The worker with which the same thread serves its clients while it has no access to the
    /// keyspace: while it runs a busy script, or another thread runs one behind the closed gate.
    /// All commands get BUSY, except those that may end the script.
    pub fn busy_worker(&mut self) -> Self {
        let (node, seed) = (Arc::clone(&self.node), self.random.next_u64());
        let mut worker =
            Self::with_hooks(self.hooks, node, self.index, self.table, seed, self.tsc_per_micro);
        worker.deliveries = Arc::clone(&self.deliveries);
        worker.mask_with_access = Some(0);
        worker.follow_config();
        worker
    }

    /// The parts of the worker for the context of a command on a database, and those that serving
    /// blocked clients needs as well.
    #[inline]
    pub(crate) fn parts(&mut self, db: usize) -> (CxParts<'_>, &Node, &mut Vec<WakeEvent>) {
        let parts = CxParts {
            turn: &mut self.turn,
            random: &mut self.random,
            map: self.node.map,
            db,
            databases: self.node.databases,
            bulk_bytes_max: self.config.bulk_bytes_max() as usize,
            limits: &self.config.limits,
        };
        (parts, &self.node, &mut self.wake_events)
    }

    /// Publishes the changes of keys by the running command, as far as clients follow them.
    #[inline]
    pub(crate) fn publish_changes(&mut self) {
        if self.turn.effects.has_pending_notifications() {
            (self.hooks.publish_changes)(self);
        }
    }

    /// Shows a command that has ended at this TSC to the clients that watch requests, unless it is
    /// one of those that are not shown.
    pub(crate) fn show(&mut self, record: &ClientRecord, entry: &Entry, args: &Args<'_>, tsc: u64) {
        let flags = entry.spec.flags;
        if self.shows_requests && !flags.has(Flags::ADMIN) && !flags.has(Flags::SKIP_MONITOR) {
            (self.hooks.show_request)(self, record, &entry.name, args, tsc);
        }
    }

    /// Empties the queue of a transaction and keeps it for the next one.
    pub(crate) fn keep_for_next(&mut self, mut transaction: Box<Transaction>) {
        transaction.clear();
        self.next_transaction = Some(transaction);
    }

    /// Keeps the list of a client whose watch has ended in all shards, for the next one.
    pub(crate) fn keep_watched(&mut self, mut watched: Box<WatchedKeys>) {
        if watched.clear() {
            self.next_watched = Some(watched);
        }
    }

    /// Adds the turn's counts so far to the thread's counts.
    #[inline]
    pub fn publish_counters(&mut self) {
        self.stats.add(std::mem::take(&mut self.turn.counters));
    }

    /// Ends a turn: adds its counts to the thread's, and frees memory that only a large request
    /// needed.
    pub fn end_turn(&mut self) {
        self.publish_changes();
        if std::mem::take(&mut self.has_run_scripts) {
            let bytes = (self.hooks.relieve_interpreter)();
            self.node.scripting.set_vm_bytes(self.index, bytes);
        }
        self.publish_counters();
        self.turn.lazy_free.clear();
        clear(&mut self.turn.scratch, SCRATCH_KEPT_BYTES_MAX);
        clear(&mut self.hashes, KEYS_KEPT_BYTES_MAX);
        clear(&mut self.script_hashes, KEYS_KEPT_BYTES_MAX);
        clear(&mut self.shards, KEYS_KEPT_BYTES_MAX);
    }

    /// Bytes of memory that the reused lists occupy.
    #[cfg(test)]
    fn room_bytes(&self) -> usize {
        let lists = [&self.hashes, &self.script_hashes].map(Vec::capacity);
        self.turn.scratch.capacity() + 8 * (lists[0] + lists[1] + self.shards.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table;

    #[test]
    fn large_requests_leave_a_bounded_amount_of_memory() {
        let node = Arc::new(Node::new(Config::default(), 1, 1));
        let mut worker = Worker::new(node, 0, table(), 1, 1000.0);
        worker.hashes.resize(3_000_000, 0);
        worker.script_hashes.resize(3_000_000, 0);
        worker.shards.resize(3_000_000, 0);
        worker.turn.scratch.resize(100_000_000, 0);
        worker.end_turn();
        assert!(worker.room_bytes() <= SCRATCH_KEPT_BYTES_MAX + 3 * KEYS_KEPT_BYTES_MAX);
    }
}
