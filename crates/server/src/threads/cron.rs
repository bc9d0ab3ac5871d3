//! The background tick of a thread: expired keys of the shards that are its to tend, clients that
//! have been idle too long or do not finish their handshakes.

use std::sync::atomic::Ordering;

use crate::keyspace::shard_locks::ThreadShards;
use crate::net::tls::HANDSHAKE_MS_MAX;
use crate::process::host::ProcessHost;
use crate::threads::io_thread::IoThread;

/// Keys looked at in one step on one database of one shard.
const KEYS_A_STEP: usize = 20;
/// Fields of hashes removed in one step on one database of one shard.
const FIELDS_A_STEP: usize = 64;
/// Of a step's keys, more than one in so many expired: another step is worth its time.
const EXPIRED_ONE_IN: usize = 10;
/// A tick's share of time, per cent of the time between two ticks, at `active-expire-effort 1`.
const TIME_PERCENT: i64 = 25;
/// Between two looks at idle clients.
const IDLE_CHECK_MS: i64 = 1000;

/// How long a thread sleeps that has nothing to do.
const SLEEP_MS_MAX: i32 = 60 * 60 * 1000;

/// When a thread's background work is due, on the steady scale.
#[derive(Debug, Default)]
pub struct Cron {
    next_ms: i64,
    next_idle_check_ms: i64,
    /// The shard where the next expiry walk begins.
    shard: usize,
}

impl Cron {
    /// How long the thread may sleep, if it has clients and if it tends shards.
    pub fn wait_ms(&self, steady_ms: i64, has_clients: bool, tends_shards: bool) -> i32 {
        match (tends_shards, has_clients) {
            (true, _) => (self.next_ms - steady_ms).clamp(0, 1000) as i32,
            (false, true) => (self.next_idle_check_ms - steady_ms).clamp(0, IDLE_CHECK_MS) as i32,
            // Whoever gives it a client or shards sends a message.
            (false, false) => SLEEP_MS_MAX,
        }
    }

    /// Whether a tick is due. The caller then says when the [next](Self::schedule) one is.
    pub fn is_due(&self, steady_ms: i64, tends_shards: bool) -> bool {
        steady_ms >= if tends_shards { self.next_ms } else { self.next_idle_check_ms }
    }

    /// Puts the next tick at the end of this interval: at the same moment in all threads, so that
    /// what ends together goes together.
    pub fn schedule(&mut self, steady_ms: i64, interval_ms: i64) {
        self.next_ms = (steady_ms / interval_ms + 1) * interval_ms;
    }

    /// Does what is due.
    pub fn run(&mut self, thread: &mut IoThread) {
        let steady_ms = thread.now.steady_ms;
        let tends_shards = thread.tends_shards();
        if !self.is_due(steady_ms, tends_shards) {
            return;
        }
        let clients = thread.worker.node.clients.len();
        let interval_ms = 1000 / i64::from(thread.worker.config.ticks_a_second(clients));
        self.schedule(steady_ms, interval_ms);
        if thread.worker.index == 0 {
            thread.worker.node.sample(steady_ms);
        }
        if tends_shards {
            self.expire(thread, interval_ms);
        }
        if thread.waits_for_pause {
            thread.resume_paused();
        }
        if steady_ms >= self.next_idle_check_ms {
            self.next_idle_check_ms = steady_ms + IDLE_CHECK_MS;
            close_idle(thread, steady_ms);
        }
    }

    /// Walks over the thread's shards, longer where many keys had expired.
    fn expire(&mut self, thread: &mut IoThread, interval_ms: i64) {
        let node = &thread.worker.node;
        let paused = node.pause_left_ms(thread.now.steady_ms) > 0;
        if paused || !node.active_expire.load(Ordering::Relaxed) {
            return;
        }
        let threads = thread.shared.cron_threads();
        let effort = i64::from(thread.worker.config.active_expire_effort.max(1));
        let percent = TIME_PERCENT + 2 * (effort - 1);
        let deadline_us = sys::clock::steady_micros() + interval_ms * 10 * percent;
        let shards = thread.shared.shards.len();
        for _ in 0..shards.div_ceil(threads) {
            self.shard += 1;
            let number = (self.shard * threads + thread.worker.index) % shards;
            loop {
                // Whoever wants to close the gate waits for one step, not for the whole walk.
                let (looked_at, expired) = expire_in_shard(thread, number);
                if expired * EXPIRED_ONE_IN <= looked_at || looked_at == 0 {
                    break;
                }
                if sys::clock::steady_micros() > deadline_us {
                    return;
                }
            }
        }
    }
}

/// One step in every database of a shard. Returns how many keys it looked at, and how many of them
/// had expired.
fn expire_in_shard(thread: &mut IoThread, number: usize) -> (usize, usize) {
    let shards = &thread.shared.shards;
    let locks = ThreadShards::enter(shards, &thread.pass);
    // CLIENT PAUSE may have begun before the gate let this thread in.
    if thread.worker.node.pause_left_ms(thread.now.steady_ms) > 0 {
        return (0, 0);
    }
    let host = ProcessHost(&thread.shared);
    node::blocking::after_expiry(&mut thread.worker, &locks, &host, |turn| {
        let (mut looked_at, mut expired) = (0, 0);
        for db in shards.lock(number).dbs() {
            if db.hashes_with_expiry() > 0 {
                let fields = db.expire_due_fields(turn, FIELDS_A_STEP);
                looked_at += fields;
                expired += fields;
            }
            if db.expiring_len() > 0 {
                let step = db.expire_step(turn, KEYS_A_STEP);
                looked_at += step.looked_at;
                expired += step.expired;
            }
        }
        (looked_at, expired)
    })
}

/// Closes clients that have said nothing for longer than `timeout`, and those whose handshake does
/// not end.
fn close_idle(thread: &mut IoThread, steady_ms: i64) {
    let timeout_ms = i64::from(thread.worker.config.timeout) * 1000;
    let config = &thread.worker.config;
    let mut doomed = Vec::new();
    for (slot, client) in thread.slots.iter_mut() {
        let seen_ms = client.session.record.seen_ms.load(Ordering::Relaxed);
        // Those whose requests wait for us are not idle.
        let idle = timeout_ms > 0 && !client.state.is_held() && steady_ms - seen_ms > timeout_ms;
        let created_ms = client.session.record.created_ms;
        let overdue =
            client.transport.is_handshaking() && steady_ms - created_ms > HANDSHAKE_MS_MAX;
        let over = client.wants_write() && client.is_over(config, steady_ms);
        thread.worker.stats.output_limit_closes.add(u64::from(over));
        if idle || overdue || over {
            doomed.push(slot);
        }
    }
    for slot in doomed {
        thread.refuse(slot);
    }
}
