//! The background tick of a thread: removes expired keys from its share of the shards, and closes
//! clients that have been idle too long or do not finish their handshakes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use node::{Worker, blocking};
use store::{Shard, Turn};

use crate::net::tls::HANDSHAKE_MS_MAX;
use crate::system::server_log::warning;
use crate::threads::cron_schedule::{Cron, IDLE_CHECK_MS};
use crate::threads::expiry_walk::{StepResult, WalkedShards};
use crate::threads::io_thread::IoThread;

/// Keys looked at in one step on one database of one shard.
const KEYS_A_STEP: usize = 20;
/// Fields of hashes removed in one step on one database of one shard.
const FIELDS_A_STEP: usize = 64;
/// How often keys that clients track are forgotten in a tick, some each time, while there are too
/// many.
const FORGETS: usize = 16;
/// How long a shard is waited for before clients are served, when hardly anything uses it.
const SHARD_WAIT: Duration = Duration::from_millis(2);
/// The time in a turn of the main thread for fields that had expired when they were loaded.
const LOADED_TIME_US: i64 = 5000;
/// A tick's share of time, per cent of the time between two ticks, at `active-expire-effort 1`.
const TIME_PERCENT: i64 = 25;

impl Cron {
    /// Does the background work that is due.
    pub fn run(&mut self, thread: &mut IoThread) {
        let steady_ms = thread.steady_ms();
        let tends_shards = thread.tends_shards();
        if !self.is_due(steady_ms, tends_shards) {
            return;
        }
        let clients = thread.worker.node.clients.len();
        let interval_ms = 1000 / i64::from(thread.worker.config.ticks_a_second(clients));
        self.schedule(steady_ms, interval_ms);
        if thread.worker.node.cron_paused.load(Ordering::Relaxed) {
            self.next_idle_check_ms = self.next_idle_check_ms.max(steady_ms + IDLE_CHECK_MS);
            return;
        }
        if thread.worker.index == 0 {
            thread.worker.node.used_memory.add_rest(sys::thread_end::take_rest());
            thread.worker.node.sample(steady_ms);
            if let Some(codes) = thread.worker.node.excess_error_codes() {
                warn_of_codes(&codes);
            }
            let unix_seconds = thread.worker.turn.unix_ms.div_euclid(1000);
            thread.shared.saves.begin_if_due(unix_seconds);
            let _ = (0..FORGETS).take_while(|_| thread.worker.limit_tracked_keys()).count();
        }
        if tends_shards {
            self.expire(thread, interval_ms);
        }
        thread.resume_paused();
        if steady_ms >= self.next_idle_check_ms {
            self.next_idle_check_ms = steady_ms + IDLE_CHECK_MS;
            close_idle(thread, steady_ms);
        }
    }

    /// Removes expired keys from the thread's shards, for a part of the time between two ticks.
    fn expire(&mut self, thread: &mut IoThread, interval_ms: i64) {
        let node = &thread.worker.node;
        let paused = node.pause_left_ms(thread.steady_ms()) > 0;
        let may_expire = thread.log.has_room() && node.active_expire.load(Ordering::Relaxed);
        if paused || node.is_loading() || !may_expire {
            return;
        }
        let threads = thread.shared.cron_threads();
        let effort = i64::from(thread.worker.config.active_expire_effort.max(1));
        let percent = TIME_PERCENT + 2 * (effort - 1);
        let start_us = sys::clock::steady_micros();
        let deadline_us = start_us + interval_ms * 10 * percent;
        let (shards, index) = (thread.shared.keyspace.shards.len(), thread.worker.index);
        let mut walk = ThreadWalk { thread, deadline_us, looked_at: 0, expired: 0 };
        let out_of_time = self.walk.tick(&mut walk, shards, index, threads);
        let ThreadWalk { looked_at, expired, .. } = walk;
        let Worker { node, stats, .. } = &*thread.worker;
        node.note_expiry_walk(looked_at, expired);
        stats.expiry_timeouts.add(u64::from(out_of_time));
        let elapsed_us = sys::clock::steady_micros() - start_us;
        let elapsed_us = u64::try_from(elapsed_us).unwrap_or(0);
        stats.expiry_us.add(elapsed_us);
        thread.worker.note_latency("expire-cycle", elapsed_us / 1000);
    }
}

impl IoThread {
    /// Removes the fields that have expired since their file was written, before clients see a hash
    /// that has no others, from a shard on. Returns false if it must be called again, because the
    /// log has no room or the time is over. A log that cannot be written defers it for good: then
    /// reads are served.
    pub fn expire_loaded_fields(&mut self, from: &mut usize) -> bool {
        let shards = self.shared.keyspace.shards.len();
        let deadline_us = sys::clock::steady_micros() + LOADED_TIME_US;
        let mut walk = ThreadWalk { thread: self, deadline_us, looked_at: 0, expired: 0 };
        while *from < shards {
            if !walk.may_expire(*from) {
                *from += 1;
                continue;
            }
            if !walk.thread.log.has_room() {
                return walk.thread.log.has_failed();
            }
            if walk.is_out_of_time() {
                walk.thread.shared.keyspace.threads.wake_main();
                return false;
            }
            match walk.step(*from, SHARD_WAIT) {
                None => return false,
                Some(step) if step.fields == 0 => *from += 1,
                Some(_) => {}
            }
        }
        true
    }
}

/// The shards as a thread's walk over expired keys visits them.
struct ThreadWalk<'a> {
    thread: &'a mut IoThread,
    deadline_us: i64,
    /// Keys visited so far, and how many of them had expired.
    looked_at: usize,
    expired: usize,
}

impl WalkedShards for ThreadWalk<'_> {
    fn may_expire(&self, shard: usize) -> bool {
        self.thread.worker.node.shard_sets.expiring.contains(shard)
    }

    /// One step in every database of a shard. The thread is inside the gate for this step only, so
    /// that a closer does not wait for the walk.
    fn step(&mut self, shard: usize, wait: Duration) -> Option<StepResult> {
        let IoThread { shared, access, worker, .. } = &mut *self.thread;
        let locks = shared.enter(access.as_deref());
        // CLIENT PAUSE may have begun before the gate let this thread in.
        if worker.node.pause_left_ms(worker.turn.steady_ms) > 0 {
            return Some(StepResult::default());
        }
        let step = locks.try_one_for(shard, wait, |locked| {
            blocking::expire_and_serve(worker, &locks, shard, locked, |locked, turn| {
                let step = expire_in_shard(locked, turn);
                if !locked.expires() {
                    turn.shard_sets.expiring.clear(shard);
                }
                step
            })
        });
        worker.deliver_wakes(&**shared);
        let StepResult { looked_at, expired, .. } = step.unwrap_or_default();
        self.looked_at += looked_at;
        self.expired += expired;
        step
    }

    fn is_out_of_time(&mut self) -> bool {
        sys::clock::steady_micros() > self.deadline_us
    }
}

/// Visits a few keys and fields in every database of a shard, and removes the expired ones.
fn expire_in_shard(shard: &mut Shard, turn: &mut Turn) -> StepResult {
    let mut result = StepResult::default();
    for db in shard.dbs() {
        if db.hashes_with_expiry() > 0 {
            result.fields += db.expire_due_fields(turn, FIELDS_A_STEP);
        }
        if db.expiring_len() > 0 {
            let step = db.expire_step(turn, KEYS_A_STEP);
            result.looked_at += step.looked_at;
            result.expired += step.expired;
        }
    }
    result
}

fn warn_of_codes(codes: &[Box<str>]) {
    warning!(
        "Errorstats stopped adding new errors because the number of errors reached the limit, may \
         be misuse of lua error_reply, please check INFO ERRORSTATS, this can be re-enabled via \
         CONFIG RESETSTAT."
    );
    warning!("Current errors code list: {}", codes.join(", "));
}

/// Closes clients that have been silent for longer than `timeout`, and those whose handshake does
/// not end.
fn close_idle(thread: &mut IoThread, steady_ms: i64) {
    let timeout_ms = i64::from(thread.worker.config.timeout) * 1000;
    let mut doomed = Vec::new();
    for (slot, client) in thread.slots.iter_mut() {
        let seen_ms = client.session.record.seen_ms.load(Ordering::Relaxed);
        // A client whose requests wait for the server is not idle, and neither is one that waits
        // for messages.
        let waits = client.state.is_suspended() || client.session.record.follows();
        let idle = timeout_ms > 0 && !waits && steady_ms - seen_ms > timeout_ms;
        let created_ms = client.session.record.created_ms;
        let overdue =
            client.transport.is_handshaking() && steady_ms - created_ms > HANDSHAKE_MS_MAX;
        let over = client.wants_write() && client.is_over(&thread.worker);
        thread.worker.stats.output_limit_closes.add(u64::from(over));
        if idle || overdue || over {
            doomed.push(slot);
        }
    }
    for slot in doomed {
        thread.refuse(slot);
    }
}
