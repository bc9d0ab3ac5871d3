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

/// When a thread's background work is due.
#[derive(Debug, Default)]
pub struct Cron {
    next_ms: i64,
    next_idle_check_ms: i64,
    /// The shard where the next expiry walk begins.
    shard: usize,
}

impl Cron {
    /// How long the thread may sleep.
    pub fn wait_ms(&self, unix_ms: i64) -> i32 {
        (self.next_ms - unix_ms).clamp(0, 1000) as i32
    }

    /// Does what is due.
    pub fn run(&mut self, thread: &mut IoThread) {
        let unix_ms = thread.unix_ms();
        if unix_ms < self.next_ms {
            return;
        }
        let interval_ms = 1000 / i64::from(thread.worker.config.hz.max(1));
        // At the same moments in all threads, so that what ends together goes together.
        self.next_ms = (unix_ms / interval_ms + 1) * interval_ms;
        if thread.worker.index == 0 {
            thread.worker.node.sample(unix_ms);
        }
        self.expire(thread, interval_ms);
        if thread.waits_for_pause {
            thread.resume_paused();
        }
        if unix_ms >= self.next_idle_check_ms {
            self.next_idle_check_ms = unix_ms + IDLE_CHECK_MS;
            close_idle(thread, unix_ms);
        }
    }

    /// Walks over the thread's shards, longer where many keys had expired.
    fn expire(&mut self, thread: &mut IoThread, interval_ms: i64) {
        let node = &thread.worker.node;
        let paused = node.pause_left_ms(thread.unix_ms()) > 0;
        if paused || !node.active_expire.load(Ordering::Relaxed) {
            return;
        }
        let threads = thread.shared.threads_active.load(Ordering::Relaxed).max(1);
        let effort = i64::from(thread.worker.config.active_expire_effort.max(1));
        let percent = TIME_PERCENT + 2 * (effort - 1);
        let deadline_us = sys::clock::unix_micros() + interval_ms * 10 * percent;
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
                if sys::clock::unix_micros() > deadline_us {
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
fn close_idle(thread: &mut IoThread, unix_ms: i64) {
    let timeout_ms = i64::from(thread.worker.config.timeout) * 1000;
    let limit = thread.worker.config.client_output_buffer_limit.normal;
    let mut doomed = Vec::new();
    for (slot, client) in thread.slots.iter_mut() {
        let seen_ms = client.session.record.seen_ms.load(Ordering::Relaxed);
        // Those whose requests wait for us are not idle.
        let idle = timeout_ms > 0 && !client.state.is_held() && unix_ms - seen_ms > timeout_ms;
        let created_ms = client.session.record.created_ms;
        let overdue = client.transport.is_handshaking() && unix_ms - created_ms > HANDSHAKE_MS_MAX;
        if idle || overdue || client.wants_write() && client.is_over(limit, unix_ms) {
            doomed.push(slot);
        }
    }
    for slot in doomed {
        thread.refuse(slot);
    }
}
