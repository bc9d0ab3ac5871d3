//! Models of the log's positions: readable bytes are written, reservations follow one another, and
//! the log of a killed process can be interpreted.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64 as Byte, Ordering};
use loom::thread;

use crate::log_positions::{LogPositions, Reservation, UNKNOWN_DATABASE, UnfinishedUnit, Wanted};
use crate::shim::{AtomicU64, Fault};
use crate::{fails_with, holds};

const THREADS: usize = 2;
const CAPACITY: u64 = 12;
/// Bytes of a command that selects a database.
const SELECT_BYTES: u64 = 1;

struct Log {
    positions: LogPositions<Box<[AtomicU64]>>,
    bytes: Vec<Byte>,
}

fn wanted(db: u8, bytes: u64) -> Wanted {
    Wanted { db, bytes, select_bytes: SELECT_BYTES, selects_others: false }
}

/// Without databases.
fn plain(bytes: u64) -> Wanted {
    Wanted { select_bytes: 0, ..wanted(UNKNOWN_DATABASE, bytes) }
}

impl Log {
    fn new(threads: usize, capacity: u64, begin: u64) -> Self {
        let words = LogPositions::<Box<[AtomicU64]>>::words(threads);
        let words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let positions = LogPositions::new(words, threads, capacity, begin);
        Self { positions, bytes: (0..capacity).map(|_| Byte::new(0)).collect() }
    }

    fn reserve(&self, thread: usize, wanted: Wanted) -> Reservation {
        self.positions.reserve(thread, wanted).expect("there is room")
    }

    /// Appends a thread's mark, so many times.
    fn append(&self, thread: usize, length: u64) -> u64 {
        let reservation = self.reserve(thread, plain(length));
        for at in reservation.position..reservation.position + length {
            self.bytes[at as usize].store(thread as u64 + 1, Ordering::Relaxed);
        }
        self.positions.finish(thread, reservation);
        reservation.position
    }

    fn read(&self) -> Vec<u64> {
        let until = self.positions.readable_until();
        (0..until).map(|at| self.bytes[at as usize].load(Ordering::Relaxed)).collect()
    }
}

/// Two threads append, one of them twice, while a third reads.
fn appended_and_read() {
    let log = Arc::new(Log::new(THREADS, CAPACITY, 0));
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

#[test]
fn reservations_that_overlap_are_found() {
    fails_with(Fault::TornExchange, "all is readable in the end", 2, appended_and_read);
}

/// A thread appends while another reads and releases, in a ring of two bytes.
fn no_byte_is_overwritten_before_it_was_read() {
    let log = Arc::new(Log::new(1, 2, 10));
    let writer = Arc::clone(&log);
    let writer = thread::spawn(move || {
        let Log { positions, bytes } = &*writer;
        let mut written = 10;
        for _ in 0..4 {
            if let Some(reservation) = positions.reserve(0, plain(1)) {
                let at = reservation.position;
                assert_eq!(at, written);
                bytes[at as usize % 2].store(at, Ordering::Relaxed);
                positions.finish(0, reservation);
                written += 1;
            }
        }
        written
    });
    let Log { positions, bytes } = &*log;
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

/// A thread reserves while the unit of another is written, read and released: there is room for
/// both all the time.
#[test]
fn what_is_released_meanwhile_makes_no_room_less() {
    holds(3, || {
        let log = Arc::new(Log::new(THREADS, 4, 10));
        let other = Arc::clone(&log);
        let other = thread::spawn(move || {
            let reservation = other.reserve(1, plain(2));
            other.positions.finish(1, reservation);
            other.positions.release(reservation.position.min(other.positions.readable_until()));
            other.positions.release(other.positions.readable_until());
        });
        let reservation = log.reserve(0, plain(1));
        log.positions.finish(0, reservation);
        other.join().expect("it ends");
        assert_eq!(log.positions.end(), (13, false));
    });
}

/// The log of a process that was killed at any of these moments.
#[test]
fn what_was_not_finished_is_found() {
    holds(1, || {
        let log = Log::new(THREADS, CAPACITY, 0);
        assert_eq!(log.positions.unfinished().count(), 0);
        log.append(0, 2);
        assert_eq!(log.reserve(1, plain(3)).position, 2);
        log.append(0, 1);
        let expected = UnfinishedUnit { position: 2, length: 3, is_confirmed: true };
        assert_eq!(log.positions.unfinished().collect::<Vec<_>>(), [expected]);
        assert_eq!((log.positions.readable_until(), log.positions.end()), (2, (6, false)));
    });
}

/// A thread is killed before it has finished a unit that selects a database. Another one appends to
/// the same database: twice, so that it may find it selected.
fn nothing_relies_on_what_was_not_finished() {
    let log = Arc::new(Log::new(THREADS, CAPACITY, 0));
    let other = Arc::clone(&log);
    let other = thread::spawn(move || {
        let append = || {
            let reservation = other.reserve(1, wanted(1, 1));
            other.positions.finish(1, reservation);
            reservation
        };
        [append(), append()]
    });
    let killed = log.reserve(0, wanted(1, 1));
    let appended = other.join().expect("it ends");
    let unfinished: Vec<UnfinishedUnit> = log.positions.unfinished().collect();
    assert!(unfinished.len() == 1 && unfinished[0].position == killed.position);
    let first = appended[0];
    assert!(first.selects, "nothing relies on what was not finished");
    let follows = killed.position > first.position && killed.position < appended[1].position;
    assert!(follows || !appended[1].selects, "what was finished can be relied on");
}

#[test]
fn a_database_counts_as_selected_when_that_is_finished() {
    holds(3, nothing_relies_on_what_was_not_finished);
}

#[test]
fn a_database_that_counts_too_early_is_found() {
    let failure = "nothing relies on what was not finished";
    fails_with(Fault::SelectedEarly, failure, 3, nothing_relies_on_what_was_not_finished);
}

#[test]
fn a_unit_that_selects_others_leaves_none_selected() {
    holds(1, || {
        let log = Log::new(1, CAPACITY, 0);
        let append = |wanted| {
            let reservation = log.reserve(0, wanted);
            log.positions.finish(0, reservation);
            (reservation.position, reservation.selects)
        };
        assert_eq!(append(wanted(3, 1)), (0, true));
        assert_eq!(append(wanted(3, 1)), (2, false));
        assert_eq!(append(Wanted { selects_others: true, ..wanted(3, 1) }), (3, false));
        assert_eq!(append(wanted(3, 1)), (4, true));
        assert_eq!(append(wanted(UNKNOWN_DATABASE, 1)), (6, true));
        assert_eq!(append(wanted(UNKNOWN_DATABASE, 1)), (8, true));
    });
}

/// A thread keeps an overflow unit, and removes it when it has read it; another one appends.
fn a_later_thread_knows() {
    let log = Arc::new(Log::new(THREADS, CAPACITY, 0));
    let overflow = Arc::new(Mutex::new(Vec::new()));
    let (other, others) = (Arc::clone(&log), Arc::clone(&overflow));
    let other = thread::spawn(move || {
        let position = other.append(1, 1);
        let (end, knows) = other.positions.end();
        let (first, readable) =
            (other.positions.first_overflow(), other.positions.readable_until());
        let units = others.lock().expect("not poisoned").len();
        (position, (end, knows, first), (readable, units))
    });
    let mut units = overflow.lock().expect("not poisoned");
    let reservation = log.positions.reserve_overflow(0, plain(2));
    units.push(reservation.position);
    drop(units);
    log.positions.finish(0, reservation);
    let (position, (end, knows, first), (readable, units_seen)) = other.join().expect("it ends");
    if position > reservation.position {
        assert!(knows && end > position, "a later thread knows of the overflow");
        assert_eq!(first, Some(reservation.position));
    }
    if readable > reservation.position {
        assert_eq!(units_seen, 1, "what is readable lies there");
    }
    let mut units = overflow.lock().expect("not poisoned");
    units.clear();
    log.positions.end_overflow();
    assert_eq!(log.positions.end(), (3, false), "no thread waits for it");
}

#[test]
fn a_thread_that_reserves_after_overflow_knows_of_it() {
    holds(3, a_later_thread_knows);
}

#[test]
fn unknown_overflow_is_found() {
    let failure = "a later thread knows of the overflow";
    fails_with(Fault::HiddenOverflow, failure, 3, a_later_thread_knows);
}
