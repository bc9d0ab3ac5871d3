//! The memory that clients take, for `maxmemory-clients`: the clients that take the most are
//! closed.
//!
//! ```text
//!   a client's facts change -> its bytes, as its thread counts them ---> the sum of all threads
//!                                        | its class of size changes         | over the limit
//!                                        v                                   v
//!                              classes of clients, by their numbers <- the largest of them goes
//! ```
//!
//! A thread that works for a client counts the client's memory afterwards. It takes a lock only
//! when the client's class changes, and classes are powers of two; the sum is one count for each
//! thread. A thread that finds the sum over the limit when its turn ends closes clients of any
//! thread until it is below; one thread does so at a time. The memory of a closed client stops
//! counting at once, although its owner frees it a moment later.
//!
//! While there is no limit nothing is counted. As in Redis, clients that are protected by CLIENT
//! NO-EVICT count and stay.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::clients::record::{ClientRecord, flag};
use crate::config::IO_THREADS_MAX;
use crate::stats::used_memory::OwnLine;

/// Locks for the classes.
const PARTS: usize = 16;
/// Clients below this size are one class; clients below twice the size are the next.
const CLASS_BYTES_MIN: u64 = 32 << 10;
/// The class of a client that may not be closed, or is not counted.
const NO_CLASS: u8 = 0;

/// Clients by their class and number.
type Classes = BTreeMap<(u8, u64), Arc<ClientRecord>>;

/// The memory of all clients, while that is limited.
#[derive(Debug)]
pub struct ClientMemory {
    /// Bytes by the thread that has counted them. Only the sum has a meaning.
    bytes: Box<[OwnLine<AtomicI64>]>,
    /// Threads beyond these have counted nothing.
    threads: AtomicUsize,
    /// The clients that may be closed, by parts of their numbers.
    classes: Box<[OwnLine<Mutex<Classes>>]>,
    /// Held by the thread that closes clients: when it last warned that none is left, in
    /// milliseconds on the steady scale.
    pub(crate) closing: Mutex<i64>,
}

impl Default for ClientMemory {
    fn default() -> Self {
        Self {
            bytes: (0..IO_THREADS_MAX).map(|_| OwnLine::default()).collect(),
            threads: AtomicUsize::new(0),
            classes: (0..PARTS).map(|_| OwnLine::default()).collect(),
            closing: Mutex::new(i64::MIN),
        }
    }
}

/// The class of a client that takes so many bytes.
fn class_of(bytes: u64) -> u8 {
    // At most the 64 bits of a number.
    (bytes / CLASS_BYTES_MIN).checked_ilog2().map_or(1, |power| power + 2) as u8
}

impl ClientMemory {
    /// Bytes that all clients take.
    pub fn total(&self) -> i64 {
        let threads = self.threads.load(Ordering::Relaxed);
        self.bytes.iter().take(threads).map(|part| part.0.load(Ordering::Relaxed)).sum()
    }

    fn add(&self, thread: usize, bytes: i64) {
        self.threads.fetch_max(thread + 1, Ordering::Relaxed);
        self.bytes[thread].0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn classes(&self, client: u64) -> &Mutex<Classes> {
        &self.classes[client as usize % PARTS].0
    }

    /// Counts the memory of a client, on a thread.
    pub(crate) fn count(&self, thread: usize, record: &Arc<ClientRecord>) {
        let bytes = record.memory_bytes();
        let Some(before) = record.counted.replace(bytes) else { return };
        if before != bytes {
            self.add(thread, bytes.cast_signed().wrapping_sub(before.cast_signed()));
        }
        let class = if record.has(flag::NO_EVICT) { NO_CLASS } else { class_of(bytes) };
        if record.counted.class() != class {
            self.classify(record, class);
        }
    }

    #[cold]
    fn classify(&self, record: &Arc<ClientRecord>, class: u8) {
        let mut classes = self.classes(record.id).lock();
        // It may have been closed meanwhile.
        if !record.counted.counts() {
            return;
        }
        classes.remove(&(record.counted.class(), record.id));
        record.counted.set_class(class);
        if class != NO_CLASS {
            classes.insert((class, record.id), Arc::clone(record));
        }
    }

    pub(crate) fn forget(&self, thread: usize, record: &ClientRecord, is_gone: bool) {
        let mut classes = self.classes(record.id).lock();
        if let Some(before) = record.counted.take(is_gone) {
            self.add(thread, before.cast_signed().wrapping_neg());
            classes.remove(&(record.counted.class(), record.id));
            record.counted.set_class(NO_CLASS);
        }
    }

    /// Takes out a client of the greatest class; `None` if no client may be closed.
    pub(crate) fn take_largest(&self, thread: usize) -> Option<Arc<ClientRecord>> {
        loop {
            let class = |part: &usize| {
                self.classes[*part].0.lock().last_key_value().map(|((class, _), _)| *class)
            };
            let greatest = (0..PARTS).max_by_key(class)?;
            let mut classes = self.classes[greatest].0.lock();
            let Some((_, record)) = classes.pop_last() else {
                // Clients may have come and gone.
                drop(classes);
                if self.classes.iter().all(|part| part.0.lock().is_empty()) {
                    return None;
                }
                continue;
            };
            record.counted.set_class(NO_CLASS);
            if let Some(bytes) = record.counted.take(true) {
                self.add(thread, bytes.cast_signed().wrapping_neg());
                return Some(record);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn client(memory: &ClientMemory, id: u64, output_bytes: u64) -> Arc<ClientRecord> {
        let record = Arc::new(ClientRecord::new(id, ("a".into(), "b".into()), 1, 0, 0));
        record.output_bytes.store(output_bytes, Ordering::Relaxed);
        memory.count(id as usize % 4, &record);
        record
    }

    #[test]
    fn classes_are_powers_of_two() {
        let classes = [0, 32 << 10, (64 << 10) - 1, 64 << 10, 1 << 20, u64::MAX].map(class_of);
        assert_eq!(classes, [1, 2, 2, 3, 7, 50]);
    }

    #[test]
    fn the_largest_client_is_closed_first_whatever_its_thread() {
        let memory = ClientMemory::default();
        let clients: Vec<_> = [1 << 20, 10, 5 << 20, 100 << 10, 20 << 20]
            .into_iter()
            .zip(1..)
            .map(|(bytes, id)| client(&memory, id, bytes))
            .collect();
        let sum: u64 = clients.iter().map(|client| client.memory_bytes()).sum();
        assert_eq!(memory.total(), sum as i64);
        // One shrinks, one is protected.
        clients[4].output_bytes.store(10, Ordering::Relaxed);
        memory.count(2, &clients[4]);
        clients[2].set_flag(flag::NO_EVICT, true);
        memory.count(3, &clients[2]);
        memory.forget(1, &clients[3], true);
        let order: Vec<u64> =
            std::iter::from_fn(|| memory.take_largest(0)).map(|client| client.id).collect();
        assert_eq!(order[0], 1);
        assert_eq!(order.len(), 3, "{order:?}");
        assert_eq!(memory.total(), clients[2].memory_bytes() as i64);
        // A client that is gone is not counted again.
        memory.count(0, &clients[0]);
        assert!(memory.total() == clients[2].memory_bytes() as i64);
        assert!(memory.take_largest(0).is_none());
    }
}
