//! What one thread keeps to execute requests: its turn, its counts, its copy of the configuration.

use std::sync::Arc;

use base::random::Random;
use base::room::clear;
use command::Flags;
use engine::{CxParts, ScriptError};
use pubsub::{ChannelKind, ChannelRegistry, PublishedMessage};
use store::{Time, Turn, WriteLog};

use crate::blocking::WakeEvent;
use crate::clients::session::Session;
use crate::commands::UserChanges;
use crate::config::{Config, Execute};
use crate::eviction::{Evictor, EvictsOn, Limit};
use crate::execution::place;
use crate::execution::put_off::PutOff;
use crate::execution::table::{Call, Entry, Table};
use crate::node::Node;
use crate::persistence::durability::UNKNOWN_UNITS;
use crate::propagation::tracking::{OwnNews, Reads};
use crate::propagation::{Deliveries, Delivery};
use crate::scripting::{Fate, ScriptLog, vm_bytes};
use crate::stats::counters::ThreadCounters;
use crate::stats::hot_keys::{Participant, SAMPLE_PERIOD};
use crate::stats::shard_figures::ShardFigures;
use crate::stats::used_memory::ThreadMemory;
use crate::transactions::{Transaction, WatchedKeys};

/// Memory that a thread keeps from turn to turn to build values in.
const SCRATCH_KEPT_BYTES_MAX: usize = 256 * 1024;
/// The same for the hashes and for the shards of a command's keys.
const KEYS_KEPT_BYTES_MAX: usize = 64 * 1024;
/// How old the time may be when a command begins, in microseconds. Its milliseconds are those of
/// that moment.
const TIME_AGE_US_MAX: i64 = 500;
/// What the requests of one client take of a turn, in microseconds, before others come first. The
/// request that exceeds it is not interrupted.
const CLIENT_US_MAX: f64 = 1000.0;
/// The system's clock and what is derived from the TSC differ by less, in microseconds.
const CLOCKS_DIFFER_US_MAX: i64 = 1000;

/// What one thread executes requests with.
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
    /// Commands with one of these bits of [`place`] are not executed here and now: they are handed
    /// to the main thread, or are scripts.
    pub remote: u16,
    admits_scripts: bool,
    /// What `remote` would be otherwise, if this is what a thread serves its clients with that has
    /// no access to the keyspace because of a busy script. Every command has a bit of `remote`
    /// then.
    pub(crate) remote_otherwise: Option<u16>,
    /// Fresh random numbers.
    pub random: Random,
    /// The TSC when the last command ended.
    pub(crate) last_tsc: u64,
    /// From this TSC on the turn's time is set anew: another millisecond has begun, or it is as
    /// old as it may be.
    time_end_tsc: u64,
    /// The TSC at which the time was the turn's.
    time_tsc: u64,
    /// [`CLIENT_US_MAX`] in TSC cycles.
    client_tsc_max: u64,
    /// Runs of this many TSC cycles or more go to the slow log, or are an event of latency.
    pub(crate) slow_tsc: u64,
    /// Runs of this many go to the slow log.
    pub(crate) slowlog_tsc: u64,
    /// Runs until the keys of one are looked at.
    pub(crate) until_sample: u64,
    /// Decides which ones are.
    sampler: Random,
    /// Clients are shown the requests that are executed: MONITOR.
    pub(crate) shows_requests: bool,
    /// The thread takes part in a session of HOTKEYS.
    pub(crate) hotkeys: Option<Participant>,
    /// How long runs take is recorded: `latency-tracking`.
    pub(crate) tracks_latency: bool,
    /// Hashes of the keys of the running command, reused.
    pub(crate) hashes: Vec<u64>,
    /// The same of the keys that a script declares.
    pub(crate) script_hashes: Vec<u64>,
    /// That of the last script, for the next one.
    pub(crate) script_fate: Option<Arc<Fate>>,
    /// Shards of the running command, reused.
    pub(crate) shards: Vec<usize>,
    /// What the running command did to the waits of other clients.
    pub(crate) wake_events: Vec<WakeEvent>,
    /// What scripts log, until the thread is outside the gate.
    pub(crate) script_log: ScriptLog,
    /// What it executes comes from files: libraries were accepted before.
    pub(crate) loads_files: bool,
    /// A script has run in this turn.
    pub(crate) has_run_scripts: bool,
    /// FLUSHALL has run, and a save is to follow: the changes of the keyspace at that moment.
    pub(crate) emptied_at: Option<u64>,
    /// The error of the running command has been counted where it arose.
    pub(crate) error_counted: bool,
    /// Why the running command has done nothing: a busy script holds what it needs.
    pub(crate) refusal: Option<ScriptError>,
    /// What waits for shards that were in use.
    pub(crate) put_off: PutOff,
    /// Bytes that count against `maxmemory` because more is left out than may be, when the last
    /// turn ended.
    pub(crate) beyond_uncounted: i64,
    /// How often something had been appended to the log when the requests of a client began.
    pub(crate) units_before: u64,
    /// What has come for the thread's clients.
    pub deliveries: Arc<Deliveries>,
    /// Threads for which something was put into their inboxes, as bits.
    pub(crate) receivers: u128,
    /// What the running command reads, for a client that tracks keys.
    pub(crate) reads: Reads,
    /// What the client of the running command is to be told behind its reply.
    pub(crate) own_news: OwnNews,
    /// The emptied queue of a transaction.
    next_transaction: Option<Box<Transaction>>,
    /// What a client has watched that watches nothing any more.
    next_watched: Option<Box<WatchedKeys>>,
    /// Turns that have begun.
    pub(crate) turns: u64,
    /// What the running transaction has changed for clients by changing users.
    pub(crate) user_changes: Option<Box<UserChanges>>,
    /// The thread's part of the memory in use.
    pub(crate) memory: Arc<ThreadMemory>,
    /// The limit of memory.
    pub(crate) limit: Limit,
    /// Bytes that clients may take together; 0: any.
    pub(crate) clients_bytes_max: i64,
    /// What it knows of the keys that may be evicted.
    pub(crate) evictor: Option<Box<Evictor>>,
    /// Evictions have not kept up, and go on between the turns.
    pub(crate) evicts_on: EvictsOn,
    /// The limit is another one.
    pub(crate) limit_changed: bool,
    /// Memory was over its limit when the running command began, and no key could go.
    pub(crate) out_of_memory: bool,
    /// What this thread's reports last saw in the shards.
    pub(crate) shard_figures: ShardFigures,
    generation: u64,
    tsc_per_micro: f64,
}

impl Worker {
    /// That of thread `index`.
    pub fn new(
        node: Arc<Node>,
        index: usize,
        table: &'static Table,
        seed: u64,
        tsc_per_micro: f64,
    ) -> Self {
        let mut worker = Self {
            config: node.config(),
            turn: Turn::new(
                node.hasher,
                node.key_counts.of_thread(index),
                Arc::clone(&node.shard_sets),
            ),
            stats: node.thread_counters(index, table.entries().len()),
            table,
            index,
            remote: 0,
            admits_scripts: true,
            remote_otherwise: None,
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
            script_fate: None,
            shards: Vec::new(),
            wake_events: Vec::new(),
            script_log: ScriptLog::default(),
            loads_files: false,
            has_run_scripts: false,
            emptied_at: None,
            error_counted: false,
            refusal: None,
            units_before: UNKNOWN_UNITS,
            put_off: PutOff::default(),
            beyond_uncounted: 0,
            deliveries: Arc::new(Deliveries::new(index, Arc::clone(&node.inboxes))),
            receivers: 0,
            reads: Reads::default(),
            own_news: OwnNews::default(),
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
        worker.follow_config();
        worker
    }

    /// Whether commands that run scripts are executed. While a script takes long, the thread has to
    /// serve its other clients, which takes preparation.
    #[inline]
    pub fn admit_scripts(&mut self, admits: bool) {
        self.admits_scripts = admits;
        self.remote = self.remote & !place::SCRIPT | if admits { 0 } else { place::SCRIPT };
    }

    /// What the same thread serves its clients with while it has no access to the keyspace: while
    /// it runs a busy script, or another runs one behind the closed gate. All commands are answered
    /// with BUSY but those that may end the script.
    pub fn busy_worker(&mut self) -> Self {
        let (node, seed) = (Arc::clone(&self.node), self.random.next_u64());
        let mut worker = Self::new(node, self.index, self.table, seed, self.tsc_per_micro);
        worker.deliveries = Arc::clone(&self.deliveries);
        worker.remote_otherwise = Some(0);
        worker.follow_config();
        worker
    }

    /// Begins a turn: sets the time and takes over a changed configuration.
    ///
    /// A time that is slightly earlier than that of the last turn comes from another clock, and the
    /// later one stays; else the system's clock was set back, and the thread follows.
    #[inline]
    pub fn begin_turn(&mut self, time: Time, tsc: u64) {
        if !(0..CLOCKS_DIFFER_US_MAX).contains(&(self.turn.unix_us - time.unix_us)) {
            self.turn.set_time(time.unix_us);
        }
        self.turn.steady_ms = self.turn.steady_ms.max(time.steady_ms);
        self.last_tsc = tsc;
        self.turns += 1;
        self.keep_time(time, tsc);
        self.take_over_config();
    }

    /// A command has ended, or requests were received, and the next begins: the time goes on if
    /// enough has passed. `time` reads the clock.
    ///
    /// A client that was answered on another thread finds no earlier millisecond here: all threads
    /// have the same clock, and its next request is executed by a time from after it was received.
    #[inline]
    pub fn go_on(&mut self, tsc: u64, time: impl FnOnce() -> Time) {
        self.last_tsc = tsc;
        if tsc >= self.time_end_tsc {
            self.advance_time(time(), tsc);
        }
    }

    #[cold]
    fn advance_time(&mut self, time: Time, tsc: u64) {
        self.turn.advance_time(time);
        self.keep_time(time, tsc);
    }

    /// This is the time at this TSC, and for a while.
    fn keep_time(&mut self, time: Time, tsc: u64) {
        self.time_tsc = tsc;
        let left_us = (1000 - time.unix_us.rem_euclid(1000)).min(TIME_AGE_US_MAX);
        self.time_end_tsc = tsc.saturating_add((left_us as f64 * self.tsc_per_micro) as u64);
    }

    /// The TSC when the last command ended, or when the turn began.
    #[inline]
    pub fn last_tsc(&self) -> u64 {
        self.last_tsc
    }

    /// Whether a client whose requests began at this TSC has used its time in this turn, and others
    /// come first.
    #[inline]
    pub fn has_used_turn(&self, since_tsc: u64) -> bool {
        self.is_turn_used(since_tsc, self.last_tsc)
    }

    /// The same at this TSC.
    #[inline]
    pub fn is_turn_used(&self, since_tsc: u64, tsc: u64) -> bool {
        tsc.wrapping_sub(since_tsc) >= self.client_tsc_max
    }

    /// Takes over a changed configuration, so that what follows in the batch sees it.
    #[inline]
    pub fn take_over_config(&mut self) {
        let generation = self.node.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.node.config();
            self.follow_config();
        }
    }

    /// The bits of [`place`] that send a command to the main thread.
    fn places_of_main(&self) -> u16 {
        match self.config.io_threads_execute {
            // A script that may call anything may need the main thread.
            Execute::All if self.config.scripts.allow_noscript => place::MAIN | place::NOT_SIMPLE,
            Execute::All => place::MAIN,
            Execute::Simple => place::MAIN | place::NOT_SIMPLE,
            Execute::None => place::MAIN | place::NOT_SIMPLE | place::ANY,
        }
    }

    /// Whether another thread would send this request of its client here, to the main thread.
    pub fn is_for_main(&self, session: &Session, entry: Option<&Entry>) -> bool {
        let Some(entry) = entry else { return false };
        let place = match &session.transaction {
            None => entry.place,
            // It is queued where it is.
            Some(_) if !entry.spec.flags.has(Flags::NOT_QUEUED) => 0,
            Some(transaction) if matches!(entry.call, Call::Exec) => {
                place::of_exec(entry.place, transaction.place())
            }
            Some(_) => entry.place,
        };
        place & self.places_of_main() != 0
    }

    /// Sets where what is written is logged, if it is. No command runs.
    pub fn set_log(&mut self, log: Option<Box<dyn WriteLog>>) {
        self.turn.effects.set_log(log);
        self.follow_config();
    }

    fn follow_config(&mut self) {
        self.remote = if self.index == 0 { 0 } else { self.places_of_main() };
        let notified = self.config.notify_keyspace_events.classes();
        self.turn.effects.set_notified(notified);
        if !notified.is_empty() {
            self.remote |= place::NOTIFIES;
        }
        if self.node.refuses_writes() {
            self.remote |= place::KEPT;
        }
        if self.node.is_loading() {
            self.remote |= place::NOT_LOADED;
        }
        if self.turn.effects.is_logged() {
            self.remote |= place::LOGS;
        }
        self.admit_scripts(self.admits_scripts);
        if self.remote_otherwise.is_some() {
            self.remote_otherwise = Some(self.remote);
            self.remote = place::ANY | place::HOME;
        }
        self.follow_memory_config();
        self.follow_client_limit();
        self.turn.unlink_expired = self.config.lazyfree.lazy_expire;
        self.turn.unlink_emptied = self.config.lazyfree.lazy_server_del;
        self.turn.restores_unchecked = self.config.saving.restores_unchecked;
        self.tracks_latency = self.config.latency.tracking;
        let tsc = |micros: f64| (micros * self.tsc_per_micro) as u64;
        self.slowlog_tsc = match u64::try_from(self.config.slowlog_log_slower_than) {
            Ok(micros) => tsc(micros as f64),
            Err(_) => u64::MAX,
        };
        self.slow_tsc = match self.config.latency.monitor_threshold_ms {
            0 => self.slowlog_tsc,
            ms => self.slowlog_tsc.min(tsc(ms as f64 * 1000.0)),
        };
        self.follow_hotkeys();
        self.shows_requests = self.node.pubsub.len(ChannelKind::Requests) > 0;
        if self.shows_requests {
            self.slow_tsc = 0;
        }
    }

    /// Takes part in the session of HOTKEYS, in which every run is looked at, if there is one.
    fn follow_hotkeys(&mut self) {
        let session = self.node.hotkeys.lock().clone();
        let session = session.filter(|session| session.is_active(self.turn.steady_ms));
        let before = self.hotkeys.take();
        self.hotkeys = session.map(|session| match before {
            Some(before) if Arc::ptr_eq(&before.session, &session) => before,
            _ => Participant::new(session),
        });
        if self.hotkeys.is_some() {
            self.slow_tsc = 0;
        }
    }

    /// A number below `period`, drawn anew each time, for choosing what to look at.
    pub(crate) fn sample_below(&mut self, period: u64) -> u64 {
        self.sampler.below(period)
    }

    /// The session of HOTKEYS has ended.
    pub(crate) fn leave_hotkeys(&mut self) {
        self.hotkeys = None;
        self.follow_config();
    }

    /// Remembers that something took so many milliseconds, unless that is less than
    /// `latency-monitor-threshold` or this is 0. `event` is the name that LATENCY shows.
    pub fn note_latency(&self, event: &'static str, ms: u64) {
        let threshold_ms = self.config.latency.monitor_threshold_ms;
        if threshold_ms != 0 && ms >= threshold_ms {
            let unix_seconds = self.turn.unix_ms.div_euclid(1000);
            self.node.latency_events.lock().add(event, unix_seconds, ms);
        }
    }

    /// What a command's context takes of the worker, on a database; and what else the service of
    /// blocked clients needs.
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

    /// An empty queue for a transaction.
    pub(crate) fn new_transaction(&mut self) -> Box<Transaction> {
        self.next_transaction.take().unwrap_or_default()
    }

    /// Empties the queue of a transaction and keeps it for the next one.
    pub(crate) fn keep_for_next(&mut self, mut transaction: Box<Transaction>) {
        transaction.clear();
        self.next_transaction = Some(transaction);
    }

    /// What a client that begins to watch keys keeps them in.
    pub(crate) fn new_watched(&mut self) -> Box<WatchedKeys> {
        self.next_watched.take().unwrap_or_default()
    }

    /// Keeps what a client has watched, whose watch has ended in all shards, for the next one.
    pub(crate) fn keep_watched(&mut self, mut watched: Box<WatchedKeys>) {
        if watched.clear() {
            self.next_watched = Some(watched);
        }
    }

    /// Microseconds in this many TSC cycles.
    pub fn micros(&self, tsc: u64) -> u64 {
        (tsc as f64 / self.tsc_per_micro) as u64
    }

    /// The system's time at a TSC of this turn, in microseconds since 1970.
    pub(crate) fn unix_us_at(&self, tsc: u64) -> i64 {
        let since = self.micros(tsc.saturating_sub(self.time_tsc));
        self.turn.unix_us.saturating_add_unsigned(since)
    }

    /// The same with what is less than a microsecond.
    pub(crate) fn fractional_micros(&self, tsc: f64) -> f64 {
        tsc / self.tsc_per_micro
    }

    /// Why commands that change keys are refused, if they are.
    #[inline]
    pub(crate) fn refusal_of_writes(&self) -> Option<engine::Error> {
        (self.remote & place::KEPT != 0).then(|| self.node.refusal()).flatten()
    }

    /// Publishes a message to a channel of a kind. Returns how many receivers it has.
    #[inline]
    pub(crate) fn publish(&mut self, kind: ChannelKind, channel: &[u8], payload: &[u8]) -> usize {
        // Redis replicates PUBLISH, and does not log it: as soon as there are replicas, here.
        self.send_message(|pubsub, send| pubsub.publish(kind, channel, payload, send))
    }

    /// Publishes what tells of a key on a channel.
    pub(crate) fn publish_event(&mut self, channel: &[u8], payload: &[u8]) {
        self.send_message(|pubsub, send| pubsub.publish_event(channel, payload, send));
    }

    #[inline]
    fn send_message(
        &mut self,
        publish: impl FnOnce(&ChannelRegistry, &mut dyn FnMut(usize, PublishedMessage)) -> usize,
    ) -> usize {
        let Self { node, receivers, .. } = self;
        let count = publish(&node.pubsub, &mut |thread, message| {
            node.inboxes.push(thread, Delivery::Published(message));
            *receivers |= 1 << thread;
        });
        if count > 0 && node.inboxes.is_full(self.index) {
            self.give_up_slow_readers();
        }
        count
    }

    /// A script, a transaction or a command on many keys publishes more than this thread can write
    /// meanwhile: gives up those of its clients for whom more waits than may.
    #[cold]
    fn give_up_slow_readers(&mut self) {
        let bytes_max = self.config.client_output_buffer_limit.pubsub.hard_bytes;
        if bytes_max == 0 {
            return;
        }
        for client in self.deliveries.give_up(usize::try_from(bytes_max).unwrap_or(usize::MAX)) {
            if let Some(record) = self.node.clients.find(client)
                && self.node.kill(&record)
            {
                // The thread closes it when it writes to it the next time.
                self.stats.output_limit_closes.add(1);
            }
        }
    }

    /// Whether threads are to be [woken](Self::wake_receivers).
    #[inline]
    pub fn has_receivers(&self) -> bool {
        self.receivers != 0
    }

    /// Wakes the threads in whose inboxes this one has put something. Outside the gate.
    pub fn wake_receivers(&mut self) {
        let mut receivers = std::mem::take(&mut self.receivers) & !(1 << self.index);
        while receivers != 0 {
            let thread = receivers.trailing_zeros() as usize;
            receivers &= receivers - 1;
            self.node.inboxes.wake(thread);
        }
    }

    /// Adds what the turn has counted so far to the thread's counts.
    #[inline]
    pub fn publish_counters(&mut self) {
        self.stats.add(std::mem::take(&mut self.turn.counters));
    }

    /// Ends a turn: adds its counts to the thread's, and frees memory that only a large request
    /// needed.
    pub fn end_turn(&mut self) {
        self.publish_events();
        if std::mem::take(&mut self.has_run_scripts) {
            self.node.scripting.set_vm_bytes(self.index, vm_bytes());
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
