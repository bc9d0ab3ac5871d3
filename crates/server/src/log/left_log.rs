//! The log that a killed process has left: the commands after the end of its append-only file.
//!
//! The memory of a killed process is as it was at that moment, for as long as the machine runs.
//! Then a unit is whole, or its thread was writing it, and that thread's words say where and how
//! long it is; a unit whose place was not certain has no bytes, so there are zeros. Such units are
//! left out: they have not been acknowledged. So is everything from the first overflow unit on.
//!
//! After a restart of the machine the log is not used: pages of the file may be of any age. Neither
//! is a copy of the file: its pages may be of as many moments. The commands belong to the
//! append-only file whose manifest names this log, and to no other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use persist::aof::LogId;
use resp::Args;
use resp::args::Span;
use sync::log_positions::LogPositions;
use sys::shared_memory::SharedMemory;

use super::ring_layout::{MemoryPlace, Words, header, names_boot, offset};

/// The commands that a transaction begins and ends with, in lower case.
const MULTI: &[u8] = b"multi";
const EXEC: &[u8] = b"exec";

/// A log whose process has ended.
pub(crate) struct LeftLog {
    pub(super) memory: Arc<SharedMemory>,
    positions: LogPositions<Words>,
    capacity: u64,
    threads: usize,
}

/// The commands of it that can be replayed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftCommands {
    /// The commands, as clients send them.
    pub(crate) bytes: Vec<u8>,
    /// Their parts without a gap: where each ends in `bytes` and in the log, ascending.
    pub(crate) parts: Vec<LeftPart>,
    /// Bytes of unfinished units, which have not been acknowledged.
    pub(crate) unfinished_bytes: u64,
    /// Bytes at the end: of overflow units, which have not been acknowledged.
    pub(crate) lost_bytes: u64,
    /// Bytes before those that are no commands, which must not occur.
    pub(crate) damaged_bytes: u64,
}

/// Commands that follow one another in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftPart {
    /// Where they end in the bytes of all.
    pub(crate) until: usize,
    /// The position after them.
    pub(crate) end: u64,
}

impl LeftCommands {
    /// The position after the last of them, if there are any.
    pub(crate) fn end(&self) -> Option<u64> {
        self.parts.last().map(|part| part.end)
    }

    /// Calls `run` for each command, with where it begins.
    ///
    /// # Errors
    /// The first one of `run`.
    pub(crate) fn each<E>(
        &self,
        mut run: impl FnMut(Args<'_>, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut at, mut spans) = (0, Vec::new());
        // Only whole commands were added.
        while let Some(len) = spans_of(&self.bytes[at..], at, &mut spans) {
            run(Args::new(&self.bytes, &spans, &[]), at)?;
            at += len;
        }
        Ok(())
    }

    /// Adds a unit that ends at a position, after a gap or not.
    fn add(&mut self, unit: &[u8], end: u64) {
        self.bytes.extend_from_slice(unit);
        let (until, begin) = (self.bytes.len(), end - unit.len() as u64);
        match self.parts.last_mut().filter(|part| part.end == begin) {
            Some(part) => *part = LeftPart { until, end },
            None => self.parts.push(LeftPart { until, end }),
        }
    }
}

impl LeftLog {
    /// Whether some memory has a log in the form of this program, wherever it was before.
    pub(crate) fn is_one(memory: &SharedMemory) -> bool {
        memory.len() >= header::WORDS * 8
            && memory.words(header::WORDS)[header::MAGIC].load(Ordering::Acquire) == header::KNOWN
    }

    /// The log in the memory at a place, if it is one, and was there from the beginning.
    pub(crate) fn open(memory: SharedMemory, place: MemoryPlace) -> Option<Self> {
        if !Self::is_one(&memory) {
            return None;
        }
        let word = |at: usize| memory.words(header::WORDS)[at].load(Ordering::Acquire);
        let is_here = (0..4).all(|at| word(header::PLACE + at) == place[at]);
        if !is_here || !names_boot(&place) {
            return None;
        }
        let capacity = word(header::CAPACITY);
        // Sizes from a file are checked before they are used.
        let threads = usize::try_from(word(header::THREADS)).ok().filter(|it| *it <= 1 << 16)?;
        let bytes = offset(threads).checked_add(usize::try_from(capacity).ok()?)?;
        if capacity == 0 || memory.len() != bytes {
            return None;
        }
        let memory = Arc::new(memory);
        let words = Words { memory: Arc::clone(&memory), threads };
        let positions = LogPositions::over(words, threads, capacity);
        Some(Self { memory, positions, capacity, threads })
    }

    pub(crate) fn id(&self) -> LogId {
        let word = |at: usize| self.memory.words(header::WORDS)[at].load(Ordering::Acquire);
        LogId([word(header::ID), word(header::ID + 1)])
    }

    /// When its memory was made: of two logs, the later one continues the other.
    pub(crate) fn created(&self) -> u64 {
        self.memory.words(header::WORDS)[header::PLACE + 3].load(Ordering::Acquire)
    }

    /// The commands from a position on, where the append-only file ends. `None` if the log no
    /// longer has them, or never had.
    pub(crate) fn commands(&self, from: u64) -> Option<LeftCommands> {
        let (released, (end, _)) = (self.positions.released(), self.positions.end());
        if from < released || from > end {
            return None;
        }
        let until = self.positions.first_overflow().unwrap_or(end);
        let until = until.min(released.saturating_add(self.capacity)).min(end).max(from);
        let mut ring = vec![0; usize::try_from(until - from).ok()?];
        self.read(from, &mut ring);
        let mut unfinished: Vec<(u64, u64)> = self
            .positions
            .unfinished()
            .filter(|it| it.is_confirmed && it.position >= from)
            .map(|it| (it.position, it.length))
            .collect();
        unfinished.sort_unstable();
        let mut left = LeftCommands::default();
        let mut at = 0;
        while at < ring.len() {
            let position = from + at as u64;
            let found = unfinished.binary_search_by_key(&position, |(position, _)| *position);
            let skipped = match found {
                Ok(nth) => usize::try_from(unfinished[nth].1).ok().filter(|bytes| *bytes > 0),
                Err(_) if ring[at] == 0 => {
                    // It ends where something is, or where another begins that was not finished.
                    let zeros = ring[at..].iter().take_while(|byte| **byte == 0).count();
                    let next = unfinished.iter().find(|(next, _)| *next > position);
                    let next = next.and_then(|(next, _)| usize::try_from(next - position).ok());
                    Some(next.map_or(zeros, |next| zeros.min(next)))
                }
                Err(_) => None,
            };
            let bytes = match skipped {
                Some(bytes) => {
                    left.unfinished_bytes += bytes as u64;
                    bytes
                }
                None => {
                    let Some(bytes) = unit_len(&ring[at..]) else {
                        left.damaged_bytes = (ring.len() - at) as u64;
                        break;
                    };
                    left.add(&ring[at..at + bytes], from + (at + bytes) as u64);
                    bytes
                }
            };
            at += bytes;
        }
        left.lost_bytes = end - until;
        Some(left)
    }

    fn read(&self, from: u64, bytes: &mut [u8]) {
        let ring = offset(self.threads);
        let at = (from % self.capacity) as usize;
        let first = bytes.len().min(self.capacity as usize - at);
        let (start, rest) = bytes.split_at_mut(first);
        self.memory.read(ring + at, start);
        if !rest.is_empty() {
            self.memory.read(ring, rest);
        }
    }
}

/// Bytes of the unit at the start of some bytes: a command or a transaction. `None` if there is
/// none.
fn unit_len(bytes: &[u8]) -> Option<usize> {
    let (mut at, name) = command(bytes)?;
    if !name.eq_ignore_ascii_case(MULTI) {
        return Some(at);
    }
    loop {
        let (len, name) = command(bytes.get(at..)?)?;
        at += len;
        if name.eq_ignore_ascii_case(EXEC) {
            return Some(at);
        }
    }
}

/// The bytes of the command that some bytes begin with, and its name.
fn command(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut name = None;
    let len = each_arg(bytes, |start, end| {
        name.get_or_insert(&bytes[start..end]);
    })?;
    Some((len, name?))
}

/// The bytes of that command, and where its arguments are when `bytes` begin at `at`.
fn spans_of(bytes: &[u8], at: usize, spans: &mut Vec<Span>) -> Option<usize> {
    spans.clear();
    each_arg(bytes, |start, end| spans.push(Span::new(at + start, end - start)))
}

/// Calls `found` with where each argument begins and ends. Returns where the command ends.
fn each_arg(bytes: &[u8], mut found: impl FnMut(usize, usize)) -> Option<usize> {
    let (args, mut at) = number(bytes, b'*')?;
    for _ in 0..args {
        let (len, head) = number(bytes.get(at..)?, b'$')?;
        let start = at + head;
        let end = start.checked_add(len)?;
        if bytes.get(end..end.checked_add(2)?)? != b"\r\n" {
            return None;
        }
        found(start, end);
        at = end + 2;
    }
    Some(at)
}

/// The number after a mark at the start, and the bytes of both with the end of the line.
fn number(bytes: &[u8], mark: u8) -> Option<(usize, usize)> {
    const DIGITS_MAX: usize = 20;
    let digits = bytes.strip_prefix(&[mark])?;
    let len = digits.iter().take(DIGITS_MAX + 1).position(|byte| *byte == b'\r')?;
    let value = base::number::parse_u64(&digits[..len])?;
    (digits.get(len + 1) == Some(&b'\n')).then_some(())?;
    Some((usize::try_from(value).ok()?, len + 3))
}
