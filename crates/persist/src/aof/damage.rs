//! What is wrong with a file: its end, as a crash has left it, or what was safe once.
//!
//! The two look alike where they begin. What tells them apart is what follows:
//!
//! - A batch whose head says that the place was certain to be on the disk when it was written. Then
//!   something has changed what was safe, and whoever loads the rest would lose it silently.
//! - In files without checksums, commands that go on to the end of the file.
//!
//! Otherwise it is the tail of the last writes before a crash, and nothing before it is in doubt.

use std::fmt;

use resp::args::{Args, Span};

use super::annotations::{self, Annotation};
use super::command::{self, Parsed};
use super::window::Window;
use crate::crc64::Crc64;
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile};

/// What is wrong at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The file ends before the command or the batch does.
    Cut,
    /// Zeros stand there, up to the end or where no zeros were written.
    Zeros,
    /// This is expected and something else stands there.
    Format(&'static str),
    /// The bytes of a batch do not have its checksum.
    Checksum,
    /// A transaction has no end.
    Transaction,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("the file ends within a command"),
            Self::Zeros => f.write_str("there are zeros"),
            Self::Format(expected) => write!(f, "something else stands in the place of {expected}"),
            Self::Checksum => f.write_str("the checksum of a batch of commands is wrong"),
            Self::Transaction => f.write_str("a transaction has no EXEC"),
        }
    }
}

/// What a crash has left of the last writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Where it is seen.
    pub offset: u64,
    /// What is seen.
    pub fault: Fault,
    /// Bytes that are dropped.
    pub dropped: u64,
}

/// A damage of what was safe, or of a file that is not the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it is seen.
    pub offset: u64,
    /// What is seen.
    pub fault: Fault,
    /// Bytes before it that are whole commands and transactions.
    pub valid_to: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damage at offset {}: {}", self.offset, self.fault)
    }
}

/// Why reading cannot go on.
#[derive(Debug)]
pub enum ReadError {
    /// The disk failed.
    Disk(DiskError),
    /// The file is damaged.
    Damage(Damage),
}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Damage(damage) => damage.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

/// The checksum of a part of a file, as far as the file has it.
pub(super) fn checksum<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
    len: u64,
) -> Result<Crc64, DiskError> {
    let (mut crc, mut at, end) = (Crc64::new(), from, from.saturating_add(len));
    while at < end {
        let bytes = window.see(at, (end - at).min(BLOCK_BYTES as u64) as usize)?;
        let bytes = &bytes[..bytes.len().min((end - at) as usize)];
        if bytes.is_empty() {
            break;
        }
        crc.update(bytes);
        at += bytes.len() as u64;
    }
    Ok(crc)
}

/// Whether there are only zeros from a position on.
pub(super) fn only_zeros<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
) -> Result<bool, DiskError> {
    let mut at = from;
    loop {
        let bytes = window.see(at, BLOCK_BYTES)?;
        if bytes.is_empty() {
            return Ok(true);
        }
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += bytes.len() as u64;
    }
}

/// Work that a search may cost for each byte that it is in; behind that, it is taken to have
/// found: refusing to load loses nothing.
const WORK_FACTOR: u64 = 4;
/// What it may cost besides.
const WORK_BYTES_MIN: u64 = 1 << 20;
/// Bytes of a head that are looked at: it has 90 at most.
const HEAD_BYTES_MAX: usize = 128;

fn work(bytes: u64) -> u64 {
    bytes.saturating_mul(WORK_FACTOR).saturating_add(WORK_BYTES_MIN)
}

/// Whether a batch follows from `from` on that says that `place` was certain when it was written.
pub(super) fn was_safe<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
    place: u64,
) -> Result<bool, DiskError> {
    let (mut at, end) = (from, window.end());
    let mut left = work(end.saturating_sub(from));
    loop {
        let bytes = window.see(at, BLOCK_BYTES)?;
        let len = bytes.len() as u64;
        let Some(found) = annotations::find_head(bytes) else {
            if at + len >= end {
                return Ok(false);
            }
            // A mark may lie across two blocks.
            at += len - 3;
            continue;
        };
        let head_at = at + found as u64;
        at = head_at + 1;
        let Some((head, body)) = head_line(window, head_at)? else { continue };
        let Some(batch_end) = body.checked_add(head.bytes).filter(|batch| *batch <= end) else {
            continue;
        };
        let Some(rest) = left.checked_sub(head.bytes) else { return Ok(true) };
        left = rest;
        if head.matches(head_at, checksum(window, body, head.bytes)?) {
            if head_at.saturating_sub(head.unsynced) > place {
                return Ok(true);
            }
            at = batch_end;
        }
    }
}

fn head_line<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
) -> Result<Option<(annotations::Head, u64)>, DiskError> {
    let bytes = window.see(at, HEAD_BYTES_MAX)?;
    let line = memchr::memchr(b'\n', &bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    let Some(line) = line.map(|end| &bytes[..=end]) else { return Ok(None) };
    Ok(match annotations::parse(line) {
        Some(Annotation::Head(head)) => Some((head, at + line.len() as u64)),
        _ => None,
    })
}

/// Commands in a row that cannot be chance.
const COMMANDS_MIN: u32 = 16;

/// Whether commands follow from `from` on: up to the end, or many.
pub(super) fn commands_follow<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
) -> Result<bool, DiskError> {
    let (mut at, end) = (from, window.end());
    let mut left = work(end.saturating_sub(from));
    let mut spans = Vec::new();
    loop {
        let bytes = window.see(at, BLOCK_BYTES)?;
        let len = bytes.len() as u64;
        let Some(found) = memchr::memchr(b'*', bytes) else {
            if at + len >= end {
                return Ok(false);
            }
            at += len;
            continue;
        };
        at += found as u64;
        if is_chain(window, at, &mut left, &mut spans)? {
            return Ok(true);
        }
        at += 1;
    }
}

/// Whether commands stand one behind the other from a position on.
fn is_chain<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
    left: &mut u64,
    spans: &mut Vec<Span>,
) -> Result<bool, DiskError> {
    let (mut at, mut commands) = (from, 0);
    while commands < COMMANDS_MIN {
        let first = window.see(at, 1)?.first().copied();
        let len = match first {
            None => return Ok(commands > 0),
            Some(b'#') => line_len(window, at)?,
            Some(_) => {
                commands += 1;
                match next_command(window, at, spans)? {
                    Next::Command(len) if has_name(window, at, len, spans)? => Some(len),
                    // The file is cut there.
                    Next::Cut => return Ok(commands > 1),
                    _ => None,
                }
            }
        };
        let Some(len) = len else { return Ok(false) };
        let Some(rest) = left.checked_sub(len as u64) else { return Ok(true) };
        *left = rest;
        at += len as u64;
    }
    Ok(true)
}

fn has_name<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
    len: usize,
    spans: &[Span],
) -> Result<bool, DiskError> {
    let name = Args::new(window.see(at, len)?, spans, &[]).name();
    Ok(!name.is_empty() && name.iter().all(u8::is_ascii_graphic))
}

/// The length of an annotation with its end, if it has one that other servers read.
pub(super) fn line_len<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
) -> Result<Option<usize>, DiskError> {
    let bytes = window.see(at, annotations::LINE_BYTES_MAX)?;
    let line = &bytes[..bytes.len().min(annotations::LINE_BYTES_MAX)];
    Ok(memchr::memchr(b'\n', line).map(|end| end + 1))
}

/// What begins at a position.
pub(super) enum Next {
    /// A command of so many bytes, which the window shows.
    Command(usize),
    /// One that the file does not have whole.
    Cut,
    /// None.
    Wrong(command::Wrong),
}

/// Looks at the command at a position.
pub(super) fn next_command<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
    spans: &mut Vec<Span>,
) -> Result<Next, DiskError> {
    let mut wanted = 1;
    loop {
        let bytes = window.see(at, wanted)?;
        match command::parse(bytes, spans) {
            Parsed::Whole(len) => return Ok(Next::Command(len)),
            Parsed::Wrong(wrong) => return Ok(Next::Wrong(wrong)),
            Parsed::More(len) => {
                let have = bytes.len();
                if at.saturating_add(len as u64) > window.end() {
                    return Ok(Next::Cut);
                }
                // Commands of many small arguments are looked at from their beginning each time.
                wanted = len.max(have.saturating_mul(2));
            }
        }
    }
}
