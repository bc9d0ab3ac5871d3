//! The log as the thread sees it that writes it to the append-only file.

use std::sync::Arc;
use std::time::{Duration, Instant};

use node::stats::used_memory::ThreadMemory;
use store::LogPosition;

use super::log_slot::LogSlot;
use super::places::Places;
use super::ring::LogRing;
use super::ring_layout::CAPACITY;

/// Bytes of the buffer that are kept between two reads: of several batches, since this thread may
/// be late, and allocating memory again costs as much as all the rest.
const BUFFER_BYTES_MAX: usize = 8 * BATCH_BYTES as usize;
/// Turns of other threads that a sync waits for.
const GATHERED_TURNS_MAX: usize = 8;
/// No client's thread keeps the processor for longer in one turn.
const TURN_MAX: Duration = Duration::from_micros(500);
/// The number of syncs after that which do not wait.
const HURRIED_SYNCS: u32 = 256;

/// How far the log has reached the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogProgress {
    /// Everything before this position is found again after the process was killed.
    pub written: u64,
    /// Everything before this position survives a power loss. `None` if there is no base.
    pub synced: Option<u64>,
    /// Replies wait until the writes that they depend on are synced.
    pub waits: bool,
    /// Writing fails: replies of clients that have written nothing do not wait.
    pub has_failed: bool,
}

/// Bytes of the log from a position on. All positions are those of whole units.
pub trait LogSource {
    /// Everything before this position can be read.
    fn readable_until(&self) -> u64;

    /// Shows bytes from a position on, at least those of a unit and none from `until` on, with the
    /// position after them.
    fn with_bytes(&mut self, from: u64, until: u64, look: &mut dyn FnMut([&[u8]; 2], u64));

    /// Everything before a position is no longer needed.
    fn release(&mut self, until: u64);
}

/// The ring as a source, when there is one.
pub struct RingSource {
    slot: Arc<LogSlot>,
    ring: Option<Arc<LogRing>>,
    /// Where the log ends while there is none.
    end: u64,
    buffer: Vec<u8>,
    /// Replies that wait for positions before this one may leave.
    replied: u64,
    /// The part of its thread in the memory in use.
    memory: Option<Arc<ThreadMemory>>,
    /// How many more syncs do not wait.
    hurried_syncs: u32,
}

impl RingSource {
    pub fn new(slot: &Arc<LogSlot>) -> Self {
        let slot = Arc::clone(slot);
        let buffer = Vec::new();
        Self { slot, ring: None, end: 0, buffer, replied: 0, memory: None, hurried_syncs: 0 }
    }

    /// Reads another ring, on the calling thread, or none. The former ring's bytes are safe
    /// elsewhere, or no longer needed.
    pub fn replace(&mut self, ring: Option<Arc<LogRing>>) {
        if let Some(old) = self.ring.take() {
            self.release_of(&old, old.readable_until());
            self.end_waits(&old);
        }
        if let Some(ring) = &ring {
            ring.begin_reading();
            self.end = ring.end();
            self.replied = ring.released();
        }
        self.ring = ring;
    }

    /// Stops reading and leaves the ring's bytes for the next start.
    pub fn leave(&mut self) {
        if let Some(old) = self.ring.take() {
            self.slot.node.used_memory.keep_for_log(-old.drop_overflow());
            self.end_waits(&old);
        }
    }

    /// Releases everything that waits for a ring that is no longer read.
    fn end_waits(&mut self, old: &LogRing) {
        self.end = old.end();
        let slot = &self.slot;
        let notify = |thread| slot.threads.log_advanced(thread);
        slot.node.durability.set(None);
        old.policy.follow(false, false);
        old.synced.advance(u64::MAX, notify);
        old.release_replies(u64::MAX, notify);
    }

    /// Where the ring's memory may be.
    pub fn places(&self) -> Option<&Places> {
        self.ring.as_ref().map(|ring| ring.places())
    }

    /// This thread has a part in the memory in use.
    pub fn count_as(&mut self, memory: &Arc<ThreadMemory>) {
        self.memory = Some(Arc::clone(memory));
    }

    fn release_of(&self, ring: &LogRing, until: u64) {
        let freed = ring.release(until);
        let used = &self.slot.node.used_memory;
        if let Some(memory) = &self.memory {
            // In this order, so that no keys are evicted for memory that is free.
            used.end_turn(memory, sys::allocator::thread_bytes(), 1);
        }
        used.keep_for_log(-freed);
    }

    /// Whether all threads log into the ring.
    pub fn is_followed(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| self.slot.is_followed(ring))
    }

    /// Where the log ends, while nothing is executed. The next unit selects its database.
    pub fn cut(&self) -> u64 {
        self.ring.as_ref().map_or(self.end, |ring| ring.cut())
    }

    /// Whether replies wait for syncs by the policy that is in force now, if there is a base or a
    /// rewrite is in progress. Asked after the positions were read that are reported.
    pub fn replies_wait(&self, has_base: bool, is_rewriting: bool) -> bool {
        self.ring.as_ref().is_some_and(|ring| {
            ring.policy.follow(has_base, is_rewriting);
            ring.policy.replies_wait()
        })
    }

    /// Publishes how far the log has reached the disk, and releases replies that waited for that.
    pub fn progress(&mut self, progress: LogProgress) {
        let Some(ring) = &self.ring else { return };
        let LogProgress { written, synced, waits, has_failed } = progress;
        if ring.serves_reads() != has_failed {
            ring.set_serves_reads(has_failed);
            if has_failed {
                self.slot.threads.log_failed();
            }
        }
        let slot = &self.slot;
        let notify = |thread| slot.threads.log_advanced(thread);
        let place = synced.map(|position| LogPosition { log: ring.number(), position });
        slot.node.durability.set(place);
        ring.synced.advance(synced.unwrap_or(0), notify);
        // The former policy may have waited for less, so more replies may have left.
        let reached = synced.filter(|_| waits).unwrap_or(written);
        self.replied = self.replied.max(reached);
        ring.release_replies(self.replied, notify);
    }

    /// Sleeps until the log reaches `wake_at`, the thread is woken, a client waits for it, or the
    /// time is over.
    pub fn wait(&self, time: Duration, wake_at: u64) {
        match &self.ring {
            Some(ring) => {
                ring.sleep(wake_at, time);
                ring.take_urgent();
            }
            None => std::thread::park_timeout(time),
        }
    }

    /// Lets other threads that want this processor end their turns first, as long as that makes the
    /// log longer: a sync for the requests of several turns costs as much as a sync for one. On a
    /// processor that no other thread wants, this takes no time. Other programs keep the processor
    /// for much longer than a turn takes, so after meeting one, this is skipped for a number of
    /// syncs.
    pub fn gather_turns(&mut self) {
        if self.hurried_syncs > 0 {
            self.hurried_syncs -= 1;
            return;
        }
        let mut end = self.readable_until();
        for _ in 0..GATHERED_TURNS_MAX {
            let start = Instant::now();
            std::thread::yield_now();
            if start.elapsed() > TURN_MAX {
                self.hurried_syncs = HURRIED_SYNCS;
                return;
            }
            let before = std::mem::replace(&mut end, self.readable_until());
            if end == before {
                return;
            }
        }
    }
}

impl LogSource for RingSource {
    fn readable_until(&self) -> u64 {
        self.ring.as_ref().map_or(self.end, |ring| ring.readable_until())
    }

    fn with_bytes(&mut self, from: u64, until: u64, look: &mut dyn FnMut([&[u8]; 2], u64)) {
        let Some(ring) = &self.ring else { return };
        self.buffer.clear();
        ring.read(from..until, &mut self.buffer);
        look([&self.buffer, &[]], until);
        base::room::clear(&mut self.buffer, BUFFER_BYTES_MAX);
    }

    fn release(&mut self, until: u64) {
        if let Some(ring) = self.ring.as_ref().filter(|ring| ring.released() < until) {
            self.release_of(ring, until);
        }
    }
}

/// The most efficient size of a batch: as many bytes as processors keep in their cache while they
/// are copied, checksummed and cleared. A larger batch comes from memory each time, which takes
/// three times as long.
pub const BATCH_BYTES: u64 = CAPACITY as u64 / 128;
