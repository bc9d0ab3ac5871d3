//! Models of the log's positions: what is readable is written, and reservations follow one another.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64 as Byte, Ordering};
use loom::thread;

use crate::log_positions::{LogPositions, Unfinished};
use crate::shim::{AtomicU64, Fault};
use crate::{fails_with, holds};

const THREADS: usize = 2;
const CAPACITY: u64 = 8;

struct Log {
    positions: LogPositions<Box<[AtomicU64]>>,
    bytes: Vec<Byte>,
}

impl Log {
    fn new() -> Self {
        let words = LogPositions::<Box<[AtomicU64]>>::words(THREADS);
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let positions = LogPositions::new(words, THREADS, CAPACITY, 0);
        Self { positions, bytes: (0..CAPACITY).map(|_| Byte::new(0)).collect() }
    }

    /// Appends a thread's mark, so many times.
    fn append(&self, thread: usize, length: u64) -> u64 {
        let position = self.positions.reserve(thread, length);
        for at in position..position + length {
            self.bytes[at as usize].store(thread as u64 + 1, Ordering::Relaxed);
        }
        self.positions.finish(thread);
        position
    }

    fn read(&self) -> Vec<u64> {
        let until = self.positions.readable_until();
        (0..until).map(|at| self.bytes[at as usize].load(Ordering::Relaxed)).collect()
    }
}

/// Two threads append, one of them twice, while a third reads.
fn appended_and_read() {
    let log = Arc::new(Log::new());
    let appends = [(0, &[1, 1][..]), (1, &[2][..])].map(|(thread, lengths)| {
        let log = Arc::clone(&log);
        thread::spawn(move || lengths.iter().map(|length| log.append(thread, *length)).collect())
    });
    for _ in 0..2 {
        assert!(!log.read().contains(&0), "what is readable is written");
    }
    let positions: Vec<Vec<u64>> = appends.map(|append| append.join().expect("it ends")).into();
    assert!(positions[0][0] < positions[0][1], "reservations follow one another");
    let all = log.read();
    assert_eq!(all.len(), 4, "all is readable in the end");
    assert!(all == [1, 1, 2, 2] || all == [1, 2, 2, 1] || all == [2, 2, 1, 1], "{all:?}");
}

#[test]
fn what_is_readable_is_written() {
    holds(2, appended_and_read);
}

#[test]
fn a_reservation_that_is_not_announced_is_found() {
    fails_with(Fault::Unannounced, "what is readable is written", 2, appended_and_read);
}

#[test]
fn missing_orders_are_found() {
    fails_with(Fault::Relaxed, "what is readable is written", 2, appended_and_read);
}

/// A thread appends while another reads and releases, in a ring of two bytes.
fn no_byte_is_overwritten_before_it_was_read() {
    let words = LogPositions::<Box<[AtomicU64]>>::words(1);
    let words = (0..words).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>();
    let log = Arc::new((LogPositions::new(words, 1, 2, 10), [Byte::new(0), Byte::new(0)]));
    let writer = Arc::clone(&log);
    let writer = thread::spawn(move || {
        let (positions, bytes) = &*writer;
        let mut written = 10;
        for _ in 0..4 {
            if positions.has_room(1) {
                let at = positions.reserve(0, 1);
                assert_eq!(at, written);
                bytes[at as usize % 2].store(at, Ordering::Relaxed);
                positions.finish(0);
                written += 1;
            }
        }
        written
    });
    let (positions, bytes) = &*log;
    let mut read = 10;
    for _ in 0..2 {
        while read < positions.readable_until() {
            let found = bytes[read as usize % 2].load(Ordering::Relaxed);
            assert_eq!(found, read, "a byte stays until it is released");
            read += 1;
        }
        positions.release(read);
    }
    let written = writer.join().expect("it ends");
    assert!(written >= 12 && positions.readable_until() == written);
}

#[test]
fn bytes_stay_until_they_are_released() {
    holds(3, no_byte_is_overwritten_before_it_was_read);
}

#[test]
fn a_release_without_order_is_found() {
    let failure = "a byte stays until it is released";
    fails_with(Fault::Relaxed, failure, 3, no_byte_is_overwritten_before_it_was_read);
}

/// What a process that was killed at any of these moments leaves.
#[test]
fn what_was_not_finished_is_found() {
    holds(1, || {
        let log = Log::new();
        assert_eq!(log.positions.unfinished().count(), 0);
        log.append(0, 2);
        assert_eq!(log.positions.reserve(1, 3), 2);
        log.append(0, 1);
        let expected = Unfinished { position: 2, length: 3, is_exact: true };
        assert_eq!(log.positions.unfinished().collect::<Vec<_>>(), [expected]);
        assert_eq!((log.positions.readable_until(), log.positions.end()), (2, 6));
    });
}
