//! The log: a ring of bytes in memory that threads append effects to, that the thread of the
//! append-only file reads, and that outlives the process when it is the mapping of a file.
//!
//! ```text
//!   the memory:  header | positions (sync::log_positions) | up to a page | the ring's bytes
//!                 id, capacity, where the memory is
//! ```
//!
//! The ring contains commands as clients send them, so they are written to the file unchanged. A
//! unit for which there is no room, or that is very large, is kept outside the ring, as *overflow*
//! in ordinary memory; while there is overflow no reply leaves, because a kill would lose it. Room
//! is checked before a command takes its shards ([`LogRing::has_room`]), so the overflow is small:
//! the units of the commands that run at that moment.
//!
//! Invariants:
//! - A thread appends under the locks of the shards that it has changed, and waits for nothing
//!   there except, for overflow, a lock that is never held for long.
//! - Bytes that are not reserved are zero, so a reservation of which nothing was written is seen.
//!
//! One thread reads and releases ([`LogRing::readable_until`] and below); `left_log` reads the log
//! of a killed process.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use node::Node;
use node::config::{Config, Fsync};
use parking_lot::Mutex;
use persist::aof::LogId;
use store::log::{UnitPart, push_select};
use store::{LogPosition, LogUnit, WriteLog};
use sync::log_positions::{LogPositions, Reservation, UNKNOWN_DATABASE, Wanted};
use sync::log_waits::{LogMark, LogSleep, SyncPolicy};
use sys::shared_memory::SharedMemory;

use super::places::Places;
use super::ring_layout::{CAPACITY, MemoryPlace, THREADS_MAX, Words, header, memory_bytes, offset};

/// Larger units become overflow, so that one does not use up the ring.
const UNIT_BYTES_MAX: u64 = CAPACITY as u64 / 4;
/// Room that must be free before a command begins that may write.
const HEADROOM: u64 = CAPACITY as u64 / 8;

/// Bytes that are prefetched after a unit.
const PREFETCH_BYTES_MAX: u64 = 512;

pub(crate) struct LogRing {
    memory: Arc<SharedMemory>,
    positions: LogPositions<Words>,
    /// Overflow units by their positions. A thread that adds or removes one holds the lock.
    overflow: Mutex<BTreeMap<u64, Arc<OverflowUnit>>>,
    /// Whether replies wait until the log is synced, also when nothing lies overflow.
    pub(crate) policy: SyncPolicy,
    /// Nothing can be written or synced: replies of clients that have written nothing do not wait.
    serves_reads: AtomicBool,
    /// Replies that depend on positions before this one may leave: those written, or synced if
    /// replies wait for that.
    pub(crate) replies: LogMark,
    /// Up to where the log is synced.
    pub(crate) synced: LogMark,
    sleep: LogSleep,
    reader: OnceLock<Thread>,
    /// Distinguishes it from other logs of the process.
    number: u64,
    /// Where the memory of overflow is counted.
    node: OnceLock<Arc<Node>>,
    places: Places,
}

impl std::fmt::Debug for LogRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (released, end) = (self.positions.released(), self.positions.end());
        f.debug_struct("LogRing").field("released", &released).field("end", &end).finish()
    }
}

/// A unit that is not in the ring.
#[derive(Debug)]
struct OverflowUnit {
    parts: Vec<OverflowPart>,
}

#[derive(Debug)]
enum OverflowPart {
    Bytes(Box<[u8]>),
    Shared(Arc<Vec<u8>>),
}

impl OverflowPart {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Shared(argument) => argument,
        }
    }
}

impl OverflowUnit {
    fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.as_slice().len() as u64).sum()
    }

    /// The memory it takes besides arguments, which may be in the keyspace as well.
    fn own_bytes(&self) -> u64 {
        let own = |part: &OverflowPart| matches!(part, OverflowPart::Bytes(_));
        self.parts.iter().filter(|part| own(part)).map(|part| part.as_slice().len() as u64).sum()
    }
}

impl LogRing {
    /// A log that begins at a position, in memory of [`memory_bytes`] that is zero.
    ///
    /// # Errors
    /// When the memory has another size.
    pub(crate) fn new(
        memory: SharedMemory,
        id: LogId,
        place: MemoryPlace,
        begin: u64,
    ) -> io::Result<Self> {
        if memory.len() != memory_bytes() {
            return Err(io::Error::other("the memory of a log has another size"));
        }
        let threads = THREADS_MAX;
        let memory = Arc::new(memory);
        let positions = Words { memory: Arc::clone(&memory), threads };
        let positions = LogPositions::new(positions, threads, CAPACITY as u64, begin);
        let set =
            |at: usize, value| memory.words(header::WORDS)[at].store(value, Ordering::Relaxed);
        (0..2).for_each(|at| set(header::ID + at, id.0[at]));
        (0..4).for_each(|at| set(header::PLACE + at, place[at]));
        set(header::CAPACITY, CAPACITY as u64);
        set(header::THREADS, threads as u64);
        memory.words(header::WORDS)[header::MAGIC].store(header::KNOWN, Ordering::Release);
        Ok(Self {
            memory,
            positions,
            overflow: Mutex::default(),
            policy: SyncPolicy::default(),
            serves_reads: AtomicBool::new(false),
            replies: LogMark::new(threads, begin),
            // The reader sets it.
            synced: LogMark::new(threads, 0),
            sleep: LogSleep::default(),
            reader: OnceLock::new(),
            number: id.0[0],
            node: OnceLock::new(),
            places: Places::default(),
        })
    }

    /// A new log that begins at a position, in one of the places.
    ///
    /// # Errors
    /// When there is no memory.
    pub(crate) fn create(mut places: Places, id: LogId, begin: u64) -> io::Result<Arc<Self>> {
        let (memory, place) = places.create_memory()?;
        Ok(Arc::new(Self { places, ..Self::new(memory, id, place, begin)? }))
    }

    /// Where its memory may be.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn id(&self) -> LogId {
        let word = |at: usize| self.memory.words(header::WORDS)[at].load(Ordering::Relaxed);
        LogId([word(header::ID), word(header::ID + 1)])
    }

    /// From now on overflow is counted for this node.
    pub(crate) fn count_for(&self, node: &Arc<Node>) {
        let _ = self.node.set(Arc::clone(node));
    }

    /// The producer of thread `thread`: one at a time for each thread.
    pub(crate) fn producer(self: &Arc<Self>, thread: usize) -> Producer {
        Producer { ring: Arc::clone(self), thread, select: (usize::MAX, Vec::new()), end: None }
    }

    /// Distinguishes it from other logs of the process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The position after everything that was appended.
    pub(crate) fn end(&self) -> u64 {
        self.positions.end().0
    }

    /// Whether a command that may write may begin.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.positions.has_room(HEADROOM)
    }

    /// The position that the log must reach before replies that are made now may leave. `None` if
    /// they need not wait.
    #[inline]
    pub(crate) fn replies_wait_for(&self) -> Option<u64> {
        let (end, has_overflow) = self.positions.end();
        let waits = has_overflow || self.policy.replies_wait();
        (waits && end > self.replies.reached()).then_some(end)
    }

    /// Follows a configuration: `appendfsync` and `no-appendfsync-on-rewrite`.
    pub(crate) fn configure(&self, config: &Config) {
        let config = &config.append_only;
        let always = config.appendfsync == Fsync::Always;
        self.policy.configure(always, config.no_appendfsync_on_rewrite);
    }

    /// Whether replies of clients that have written nothing need not wait, because writing the log
    /// fails.
    pub(crate) fn serves_reads(&self) -> bool {
        self.serves_reads.load(Ordering::Relaxed)
    }

    /// Sets that; threads check the waiting replies when they are notified.
    pub(crate) fn set_serves_reads(&self, serves: bool) {
        self.serves_reads.store(serves, Ordering::Relaxed);
    }

    /// At the end of a turn: wakes the reader, if it sleeps until the log is this long. No shard is
    /// held.
    #[inline]
    pub(crate) fn look(&self) {
        if self.sleep.look(self.end()) {
            self.wake_reader();
        }
    }

    /// Wakes the reader, because replies wait for it.
    pub(crate) fn urge(&self) {
        if self.sleep.urge() {
            self.wake_reader();
        }
    }

    fn wake_reader(&self) {
        if let Some(reader) = self.reader.get() {
            reader.unpark();
        }
    }

    /// The next unit is probably as long as the one that ends at a position. Its place was cleared
    /// by another processor some time ago, and the release of the shard waits until it is written.
    #[inline]
    fn prefetch(&self, position: u64, bytes: u64) {
        let at = position as usize % CAPACITY;
        let bytes = bytes.min(PREFETCH_BYTES_MAX) as usize;
        self.memory.prefetch(offset(THREADS_MAX) + at, bytes.min(CAPACITY - at));
    }

    fn write(&self, position: u64, bytes: &[u8]) -> u64 {
        let at = position as usize % CAPACITY;
        let first = bytes.len().min(CAPACITY - at);
        let ring = offset(THREADS_MAX);
        self.memory.write(ring + at, &bytes[..first]);
        if first < bytes.len() {
            self.memory.write(ring, &bytes[first..]);
        }
        position + bytes.len() as u64
    }
}

/// The reader's part: one thread calls it.
impl LogRing {
    /// The calling thread reads the log, and sleeps in [`sleep`](Self::sleep).
    pub(crate) fn begin_reading(&self) {
        let _ = self.reader.set(std::thread::current());
    }

    /// Everything in front of this position can be read.
    pub(crate) fn readable_until(&self) -> u64 {
        self.positions.readable_until()
    }

    /// The log ends here for a file, and the next unit selects its database. Nothing is executed.
    pub(crate) fn cut(&self) -> u64 {
        self.positions.forget_database();
        self.end()
    }

    /// The position up to which the log was released.
    pub(crate) fn released(&self) -> u64 {
        self.positions.released()
    }

    /// Appends the bytes of a range that is readable and not released to `out`.
    pub(crate) fn read(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut at = range.start;
        while at < range.end {
            // One unit at a time: the lock is not held while it is copied.
            let next = self
                .overflow
                .lock()
                .range(at..range.end)
                .next()
                .map(|(at, unit)| (*at, Arc::clone(unit)));
            let until = next.as_ref().map_or(range.end, |(position, _)| *position);
            self.read_ring(at..until, out);
            at = until;
            if let Some((position, unit)) = next {
                unit.parts.iter().for_each(|part| out.extend_from_slice(part.as_slice()));
                at = position + unit.len();
            }
        }
    }

    fn read_ring(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut position = range.start;
        while position < range.end {
            let at = position as usize % CAPACITY;
            let left = usize::try_from(range.end - position).unwrap_or(usize::MAX);
            let count = left.min(CAPACITY - at);
            let behind = out.len();
            out.resize(behind + count, 0);
            self.memory.read(offset(THREADS_MAX) + at, &mut out[behind..]);
            position += count as u64;
        }
    }

    /// Frees the room before a position, whose bytes are safe elsewhere. Returns the bytes that
    /// were [kept](node::stats::used_memory::UsedMemory::keep_for_log) for them and are free now.
    pub(crate) fn release(&self, until: u64) -> i64 {
        let mut freed = 0;
        let mut overflow = self.overflow.lock();
        if !overflow.is_empty() {
            let left = overflow.split_off(&until);
            let released = std::mem::replace(&mut *overflow, left);
            freed = released.values().map(|unit| unit.own_bytes()).sum();
            match overflow.first_key_value() {
                Some((first, _)) => self.positions.set_first_overflow(*first),
                None => self.positions.end_overflow(),
            }
        }
        drop(overflow);
        let mut position = self.positions.released();
        // The bytes beyond that were overflow.
        let end = until.min(position + CAPACITY as u64);
        while position < end {
            let at = position as usize % CAPACITY;
            let count = ((end - position) as usize).min(CAPACITY - at);
            self.memory.clear(offset(THREADS_MAX) + at, count);
            position += count as u64;
        }
        self.positions.release(until);
        if self.node.get().is_some() { freed.cast_signed() } else { 0 }
    }

    /// Drops the overflow, because the log has no reader; it is lost for the next process. Returns
    /// the bytes that are free now, as [`release`](Self::release) does.
    pub(crate) fn drop_overflow(&self) -> i64 {
        let dropped = std::mem::take(&mut *self.overflow.lock());
        let freed: u64 = dropped.values().map(|unit| unit.own_bytes()).sum();
        if self.node.get().is_some() { freed.cast_signed() } else { 0 }
    }

    /// Releases the replies that wait for positions before this one. `notify` notifies a thread to
    /// check its waiting replies.
    pub(crate) fn release_replies(&self, until: u64, notify: impl FnMut(usize)) {
        self.replies.advance(until, notify);
    }

    /// Whether a client has begun to wait for the reader since the last call.
    pub(crate) fn take_urgent(&self) -> bool {
        self.sleep.take_urgent()
    }

    /// Sleeps until the log reaches a position, a client waits for the reader, or the time is over.
    /// It may end earlier.
    pub(crate) fn sleep(&self, until: u64, time: Duration) {
        if self.sleep.prepare_sleep(until, || self.end()) {
            std::thread::park_timeout(time);
            self.sleep.awake();
        }
    }
}

/// The end of a log with which one thread appends.
#[derive(Debug)]
pub(crate) struct Producer {
    ring: Arc<LogRing>,
    thread: usize,
    /// A database and the command that selects it.
    select: (usize, Vec<u8>),
    /// The position after the last unit.
    end: Option<u64>,
}

impl WriteLog for Producer {
    fn append(&mut self, unit: LogUnit<'_>) {
        if self.select.0 != unit.db {
            self.select.0 = unit.db;
            self.select.1.clear();
            push_select(&mut self.select.1, unit.db);
        }
        let wanted = Wanted {
            db: u8::try_from(unit.db).unwrap_or(UNKNOWN_DATABASE),
            bytes: unit.len() as u64,
            select_bytes: self.select.1.len() as u64,
            selects_others: unit.selects_others,
        };
        let ring = &*self.ring;
        let fits = wanted.bytes <= UNIT_BYTES_MAX;
        let reservation = match fits {
            true => ring.positions.reserve(self.thread, wanted),
            false => None,
        };
        let Some(reservation) = reservation else { return self.append_overflow(unit, wanted) };
        let mut position = reservation.position;
        if reservation.selects {
            position = ring.write(position, &self.select.1);
        }
        match unit.as_slice() {
            Some(bytes) => position = ring.write(position, bytes),
            None => {
                for part in unit.parts() {
                    position = ring.write(position, part.as_slice());
                }
            }
        }
        ring.positions.finish(self.thread, reservation);
        ring.prefetch(position, wanted.bytes);
        self.end = Some(position);
    }

    fn has_room(&self) -> bool {
        self.ring.has_room()
    }

    fn position(&self) -> Option<LogPosition> {
        self.end.map(|position| LogPosition { log: self.ring.number, position })
    }

    fn end(&self) -> Option<LogPosition> {
        Some(LogPosition { log: self.ring.number, position: self.ring.end() })
    }
}

impl Producer {
    #[cold]
    fn append_overflow(&mut self, unit: LogUnit<'_>, wanted: Wanted) {
        let ring = &*self.ring;
        let mut parts: Vec<OverflowPart> = unit.parts().map(OverflowPart::of).collect();
        let mut overflow = ring.overflow.lock();
        let reservation: Reservation = ring.positions.reserve_overflow(self.thread, wanted);
        if reservation.selects {
            parts.insert(0, OverflowPart::Bytes(self.select.1.as_slice().into()));
        }
        let unit = OverflowUnit { parts };
        self.end = Some(reservation.position + unit.len());
        if let Some(node) = ring.node.get() {
            node.used_memory.keep_for_log(unit.own_bytes().cast_signed());
        }
        overflow.insert(reservation.position, Arc::new(unit));
        drop(overflow);
        ring.positions.finish(self.thread, reservation);
    }
}

impl OverflowPart {
    fn of(part: UnitPart<'_>) -> Self {
        match part {
            UnitPart::Bytes(bytes) => Self::Bytes(bytes.into()),
            UnitPart::Shared(argument) => Self::Shared(Arc::clone(argument)),
        }
    }
}

/// For tests of the log that a killed process leaves.
#[cfg(test)]
impl LogRing {
    /// The memory as it is now.
    #[allow(clippy::unwrap_used)]
    pub(super) fn copy_memory(&self) -> SharedMemory {
        let (mut bytes, mut at) = (vec![0; 256 * 1024], 0);
        let copy = SharedMemory::anonymous(self.memory.len()).unwrap();
        while at < self.memory.len() {
            let count = bytes.len().min(self.memory.len() - at);
            self.memory.read(at, &mut bytes[..count]);
            if bytes[..count].iter().any(|byte| *byte != 0) {
                copy.write(at, &bytes[..count]);
            }
            at += count;
        }
        copy
    }

    /// A thread reserves a unit, and writes its first bytes.
    #[allow(clippy::unwrap_used)]
    pub(super) fn begin_unit(&self, thread: usize, bytes: u64, start: &[u8]) {
        let wanted = Wanted { db: 0, bytes, select_bytes: 0, selects_others: false };
        let reservation = self.positions.reserve(thread, wanted).unwrap();
        self.write(reservation.position, start);
    }
}
