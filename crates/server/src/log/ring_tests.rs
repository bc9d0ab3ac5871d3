//! The log in memory: units are read in one order; overflow; the log of a killed process.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::random::Random;
use persist::aof::LogId;
use store::{CommandWriter, Effects, KeyspaceEvent, Turn};
use sys::shared_memory::SharedMemory;

use super::left_log::{LeftCommands, LeftLog};
use super::ring::LogRing;
use super::ring_layout::{CAPACITY, MemoryPlace, memory_bytes};

const PLACE: MemoryPlace = [7, 8, 9, 10];
const ID: LogId = LogId([1, 2]);
const WRITTEN: KeyspaceEvent = KeyspaceEvent::new('$', "set");

fn ring_at(begin: u64) -> Arc<LogRing> {
    let memory = SharedMemory::anonymous(memory_bytes()).unwrap();
    Arc::new(LogRing::new(memory, ID, PLACE, begin).unwrap())
}

/// The effects of a thread that appends to a log.
fn thread(ring: &Arc<LogRing>, number: usize) -> Effects {
    let mut effects = Effects::default();
    effects.set_log(Some(Box::new(ring.producer(number))));
    effects
}

fn append(effects: &mut Effects, db: usize, args: &[&[u8]]) {
    effects.note(WRITTEN, b"k");
    effects.seal(db, 0, |command: &mut CommandWriter<'_>| command.args(args));
}

fn read(ring: &LogRing, from: u64) -> Vec<u8> {
    read_range(ring, from..ring.readable_until())
}

fn read_range(ring: &LogRing, range: Range<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    ring.read(range, &mut bytes);
    bytes
}

/// The commands that another process finds in the memory of one that is killed now.
fn left(ring: &LogRing, from: u64) -> Option<LeftCommands> {
    LeftLog::open(ring.copy_memory(), PLACE).expect("it is a log").commands(from)
}

/// The position after the last command.
fn end(left: &LeftCommands) -> u64 {
    left.parts.last().map_or(0, |part| part.end)
}

fn encoded(args: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn what_is_appended_is_read_with_its_databases() {
    let ring = ring_at(1000);
    let mut effects = thread(&ring, 3);
    append(&mut effects, 0, &[b"SET", b"a", b"1"]);
    append(&mut effects, 0, &[b"SET", b"b", b"2"]);
    append(&mut effects, 300, &[b"SET", b"c", b"3"]);
    append(&mut effects, 0, &[b"SET", b"d", b"4"]);
    let expected = [
        encoded(&[b"SELECT", b"0"]),
        encoded(&[b"SET", b"a", b"1"]),
        encoded(&[b"SET", b"b", b"2"]),
        encoded(&[b"SELECT", b"300"]),
        encoded(&[b"SET", b"c", b"3"]),
        encoded(&[b"SELECT", b"0"]),
        encoded(&[b"SET", b"d", b"4"]),
    ];
    assert_eq!(read(&ring, 1000), expected.concat());
    assert_eq!(ring.end(), 1000 + expected.concat().len() as u64);
    let found = left(&ring, 1000).unwrap();
    assert_eq!(end(&found), ring.end());
    assert_eq!(found.bytes, expected.concat());
    assert_eq!(left(&ring, ring.end()).unwrap().bytes, b"");
    assert_eq!(left(&ring, ring.end() + 1), None);
    assert_eq!(left(&ring, 999), None);
}

#[test]
fn a_transaction_is_one_unit() {
    let ring = ring_at(0);
    let mut effects = thread(&ring, 0);
    effects.begin_transaction(0, 0);
    append(&mut effects, 0, &[b"SET", b"a", b"1"]);
    append(&mut effects, 2, &[b"SET", b"b", b"2"]);
    assert_eq!(ring.end(), 0, "nothing of it is there before its end");
    effects.end_transaction();
    append(&mut effects, 2, &[b"SET", b"c", b"3"]);
    let expected = [
        encoded(&[b"SELECT", b"0"]),
        encoded(&[b"MULTI"]),
        encoded(&[b"SET", b"a", b"1"]),
        encoded(&[b"SELECT", b"2"]),
        encoded(&[b"SET", b"b", b"2"]),
        encoded(&[b"EXEC"]),
        encoded(&[b"SELECT", b"2"]),
        encoded(&[b"SET", b"c", b"3"]),
    ];
    assert_eq!(read(&ring, 0), expected.concat());
    assert_eq!(left(&ring, 0).unwrap().bytes, expected.concat());
}

#[test]
fn the_ring_is_used_again_and_again() {
    let ring = ring_at(5);
    let mut effects = thread(&ring, 0);
    let value = vec![b'v'; 1_000_001];
    let (mut from, mut count) = (5, 0);
    while ring.end() < 5 * CAPACITY as u64 {
        assert!(ring.has_room());
        append(&mut effects, 0, &[b"SET", b"k", &value]);
        count += 1;
        if count % 10 == 0 {
            let bytes = read(&ring, from);
            let unit = encoded(&[b"SET", b"k", &value]);
            let rest = bytes.strip_prefix(encoded(&[b"SELECT", b"0"]).as_slice());
            let rest = rest.unwrap_or(&bytes);
            assert!(rest.chunks(unit.len()).all(|found| found == unit), "at {from}");
            from = ring.readable_until();
            ring.release(from);
        }
    }
    append(&mut effects, 0, &[b"DEL", b"k"]);
    let left = left(&ring, from).unwrap();
    assert!(left.bytes.ends_with(&encoded(&[b"DEL", b"k"])));
    assert_eq!((left.unfinished_bytes, left.lost_bytes, end(&left)), (0, 0, ring.end()));
}

#[test]
fn units_without_room_become_overflow_and_later_units_wait() {
    let ring = ring_at(0);
    let mut effects = thread(&ring, 0);
    append(&mut effects, 0, &[b"SET", b"a", b"1"]);
    assert_eq!(ring.replies_wait_for(), None);
    let safe = ring.end();
    let large = Arc::new(vec![b'x'; CAPACITY]);
    effects.note(WRITTEN, b"k");
    effects.seal(0, 0, |command: &mut CommandWriter<'_>| {
        command.args(["SET", "large"]);
        command.own(&large);
    });
    assert_eq!(Arc::strong_count(&large), 2, "it is shared");
    append(&mut effects, 1, &[b"SET", b"b", b"2"]);
    assert!(!ring.has_room());
    assert_eq!(ring.replies_wait_for(), Some(ring.end()));
    let expected = [
        encoded(&[b"SELECT", b"0"]),
        encoded(&[b"SET", b"a", b"1"]),
        encoded(&[b"SET", b"large", &large]),
        encoded(&[b"SELECT", b"1"]),
        encoded(&[b"SET", b"b", b"2"]),
    ];
    let bytes = read(&ring, 0);
    assert!(bytes == expected.concat());
    let found = left(&ring, 0).unwrap();
    assert_eq!(found.bytes, expected[..2].concat());
    assert_eq!((end(&found), found.lost_bytes), (safe, ring.end() - safe));
    ring.release_replies(ring.end(), |_| {});
    assert_eq!(ring.replies_wait_for(), None);
    ring.release(ring.end());
    assert!(ring.has_room());
    assert_eq!(Arc::strong_count(&large), 1);
    let from = ring.end();
    append(&mut effects, 1, &[b"SET", b"c", b"3"]);
    assert_eq!(ring.replies_wait_for(), None, "there is no overflow left");
    assert_eq!(read(&ring, from), encoded(&[b"SET", b"c", b"3"]));
    assert_eq!(left(&ring, from).unwrap().bytes, encoded(&[b"SET", b"c", b"3"]));
}

#[test]
fn what_was_not_finished_is_left_out() {
    let ring = ring_at(0);
    let mut effects = thread(&ring, 0);
    append(&mut effects, 0, &[b"SET", b"a", b"1"]);
    // One whose thread has written a part, and one whose thread has not written anything.
    ring.begin_unit(1, 50, b"*3\r\n$3\r\nSET\r\n");
    append(&mut effects, 0, &[b"SET", b"b", b"2"]);
    ring.begin_unit(2, 60, b"");
    append(&mut effects, 0, &[b"SET", b"c", b"3"]);
    let found = left(&ring, 0).unwrap();
    let expected = [
        encoded(&[b"SELECT", b"0"]),
        encoded(&[b"SET", b"a", b"1"]),
        encoded(&[b"SET", b"b", b"2"]),
        encoded(&[b"SET", b"c", b"3"]),
    ];
    assert_eq!(found.bytes, expected.concat());
    assert_eq!((found.unfinished_bytes, found.lost_bytes, end(&found)), (110, 0, ring.end()));
    assert!(ring.readable_until() < ring.end());
    // From the end of each command on, the rest is found: an append may have ended there.
    let mut at = 0;
    for part in &found.parts {
        let bytes = (part.until - at) as u64;
        let rest = left(&ring, part.end - bytes).unwrap();
        assert_eq!(rest.bytes, found.bytes[at..]);
        assert_eq!(left(&ring, part.end).unwrap().bytes, found.bytes[part.until..]);
        at = part.until;
    }
    assert_eq!((found.parts.len(), at), (3, found.bytes.len()));
}

#[test]
fn bytes_that_are_no_command_are_reported() {
    let ring = ring_at(0);
    let mut effects = thread(&ring, 0);
    append(&mut effects, 0, &[b"SET", b"a", b"1"]);
    let sound = ring.end();
    append(&mut effects, 0, &[b"SET", b"b", b"2"]);
    let log = LeftLog::open(ring.copy_memory(), PLACE).unwrap();
    assert_eq!(log.commands(0).unwrap().damaged_bytes, 0);
    log.memory.write(memory_bytes() - CAPACITY + sound as usize, b"x");
    let found = log.commands(0).unwrap();
    assert_eq!((found.damaged_bytes, end(&found)), (ring.end() - sound, sound));
}

#[test]
fn a_log_of_another_start_of_the_machine_or_file_or_form_is_none() {
    let ring = ring_at(0);
    assert!(LeftLog::open(ring.copy_memory(), PLACE).is_some());
    for other in [[6, 8, 9, 10], [7, 7, 9, 10], [7, 8, 8, 10], [7, 8, 9, 11]] {
        assert!(LeftLog::open(ring.copy_memory(), other).is_none());
    }
    // Where the machine does not name its start, any log may be of an earlier one.
    let unknown = [0, 0, 9, 10];
    let memory = SharedMemory::anonymous(memory_bytes()).unwrap();
    let log = LogRing::new(memory, ID, unknown, 0).unwrap();
    assert!(LeftLog::open(log.copy_memory(), unknown).is_none());
    let zeros = SharedMemory::anonymous(memory_bytes()).unwrap();
    assert!(LeftLog::open(zeros, [0; 4]).is_none());
    let shorter = SharedMemory::anonymous(4096).unwrap();
    let mut head = [0; 128];
    ring.copy_memory().read(0, &mut head);
    shorter.write(0, &head);
    assert!(LeftLog::open(shorter, PLACE).is_none());
}

#[test]
fn damaged_memory_ends_the_commands() {
    let ring = ring_at(0);
    let mut effects = thread(&ring, 0);
    for _ in 0..20 {
        append(&mut effects, 0, &[b"SET", b"key", b"some value"]);
    }
    let left = LeftLog::open(ring.copy_memory(), PLACE).unwrap();
    let whole = left.commands(0).unwrap().bytes;
    let unit = encoded(&[b"SET", b"key", b"some value"]).len();
    let mut random = Random::new(9);
    for _ in 0..2000 {
        let at = random.below(whole.len() as u64) as usize;
        let byte = random.next_u64() as u8;
        left.memory.write(memory_bytes() - CAPACITY + at, &[byte]);
        let found = left.commands(0).unwrap();
        left.memory.write(memory_bytes() - CAPACITY + at, &whole[at..=at]);
        let first = whole.len() % unit;
        let sound = if at < first { 0 } else { first + (at - first) / unit * unit };
        assert!(found.bytes.starts_with(&whole[..sound]), "{byte} at {at}");
        assert!(found.bytes.len() <= whole.len() && end(&found) <= ring.end());
    }
    assert_eq!(left.commands(0).unwrap().bytes, whole);
}

/// Four threads append, a fifth reads and releases: each thread's commands come whole and in order.
#[test]
fn threads_append_while_another_reads() {
    const THREADS: usize = 4;
    const COMMANDS: usize = 20_000;
    let ring = ring_at(0);
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..THREADS)
        .map(|number| {
            let ring = Arc::clone(&ring);
            std::thread::spawn(move || {
                let mut effects = thread(&ring, number);
                let mut random = Random::new(number as u64);
                for count in 0..COMMANDS {
                    while !ring.has_room() {
                        ring.urge();
                        std::thread::yield_now();
                    }
                    let value = vec![b'v'; random.below(4000) as usize];
                    let count = count.to_string();
                    let name = number.to_string();
                    let args: [&[u8]; 3] = [name.as_bytes(), count.as_bytes(), &value];
                    append(&mut effects, random.below(3) as usize, &args);
                    ring.look();
                }
            })
        })
        .collect();
    let reader = {
        let (ring, done) = (Arc::clone(&ring), Arc::clone(&done));
        std::thread::spawn(move || {
            ring.begin_reading();
            let (mut from, mut next) = (0, [0; THREADS]);
            loop {
                let is_done = done.load(Ordering::Acquire);
                let _ = ring.take_urgent();
                let until = ring.readable_until();
                if until > from {
                    follow(&read_range(&ring, from..until), &mut next);
                    ring.release(until);
                    from = until;
                } else if is_done {
                    return (next, from);
                } else {
                    ring.sleep(ring.end() + 1, Duration::from_millis(10));
                }
            }
        })
    };
    for writer in writers {
        writer.join().unwrap();
    }
    done.store(true, Ordering::Release);
    ring.urge();
    let (next, from) = reader.join().unwrap();
    assert_eq!((next, from), ([COMMANDS; THREADS], ring.end()));
}

/// Checks that each thread's commands follow one another.
fn follow(mut bytes: &[u8], next: &mut [usize]) {
    let number = |bytes: &mut &[u8], mark: u8| {
        let line = bytes.strip_prefix(&[mark]).expect("a mark");
        let end = line.iter().position(|byte| *byte == b'\r').expect("a line");
        *bytes = &line[end + 2..];
        std::str::from_utf8(&line[..end]).unwrap().parse::<usize>().unwrap()
    };
    while !bytes.is_empty() {
        let count = number(&mut bytes, b'*');
        let mut args = Vec::new();
        for _ in 0..count {
            let len = number(&mut bytes, b'$');
            args.push(&bytes[..len]);
            bytes = &bytes[len + 2..];
        }
        let text = |arg: &[u8]| String::from_utf8_lossy(arg).parse::<usize>();
        if let (Ok(thread), 3) = (text(args[0]), args.len()) {
            assert_eq!(text(args[1]), Ok(next[thread]));
            next[thread] += 1;
        } else {
            assert_eq!(args[0], b"SELECT");
        }
    }
}

#[test]
fn an_expired_key_is_logged_before_the_command_that_found_it() {
    let ring = ring_at(0);
    let mut turn = Turn::alone(base::hash::KeyHasher::new(1));
    turn.effects = thread(&ring, 0);
    turn.effects.push(0, 0, [(WRITTEN, &b"old"[..])], |command| command.args(["DEL", "old"]));
    append(&mut turn.effects, 0, &[b"SET", b"old", b"1"]);
    let expected =
        [encoded(&[b"SELECT", b"0"]), encoded(&[b"DEL", b"old"]), encoded(&[b"SET", b"old", b"1"])];
    assert_eq!(read(&ring, 0), expected.concat());
}
