//! Distinguishes the tail of a crash from damage of bytes that were safe.
//!
//! The two look alike where they begin. It is damage if one of these follows:
//!
//! - A batch whose head says that the bytes at this position were durable when it was written. Then
//!   something changed them later, and a load without them would lose data silently.
//! - In files without checksums, commands up to the end of the file.
//!
//! Otherwise it is the tail of the last writes before a crash, and all bytes before it are valid.

use std::fmt;

use resp::args::{Args, Span};

use super::annotations::{self, Annotation};
use super::command::{self, ParsedCommand};
use super::window::Window;
use crate::crc64::Crc64;
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile};

/// A fault in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AofFault {
    /// The file ends before the command or the batch does.
    Cut,
    /// There are zeros, up to the end or where no zeros were written.
    Zeros,
    /// This is expected, and there is something else.
    Format(&'static str),
    /// The checksum of a batch is wrong.
    Checksum,
    /// A transaction has no end.
    Transaction,
    /// The file ends before the position in the log at which it was closed.
    Short,
}

impl fmt::Display for AofFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("the file ends within a command"),
            Self::Zeros => f.write_str("there are zeros"),
            Self::Format(expected) => write!(f, "there is something else instead of {expected}"),
            Self::Checksum => f.write_str("the checksum of a batch of commands is wrong"),
            Self::Transaction => f.write_str("a transaction has no EXEC"),
            Self::Short => f.write_str("the file is shorter than when it was closed"),
        }
    }
}

/// The remains of the last writes before a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AofTail {
    /// Where the fault was found.
    pub offset: u64,
    /// The fault.
    pub fault: AofFault,
    /// How many bytes are dropped.
    pub dropped: u64,
}

/// Damage of bytes that were safe, or of a file that is not the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where the fault was found.
    pub offset: u64,
    /// The fault.
    pub fault: AofFault,
    /// How many bytes before it are complete commands and transactions.
    pub valid_to: u64,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damage at offset {}: {}", self.offset, self.fault)
    }
}

/// Why reading cannot continue.
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

/// The checksum of a part of a file, which the end of the file may cut.
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

/// How many bytes a search may read for each byte that it searches. A search that needs more counts
/// as successful: refusing to load loses no data.
const WORK_FACTOR: u64 = 4;
/// How many bytes a search may read in addition.
const WORK_BYTES_MIN: u64 = 1 << 20;
/// How many bytes are searched for the end of a head, which has 113 at most.
const HEAD_BYTES_MAX: usize = 128;

pub(super) fn work_bytes_max(bytes: u64) -> u64 {
    bytes.saturating_mul(WORK_FACTOR).saturating_add(WORK_BYTES_MIN)
}

/// Whether a batch at or after `from` says that the byte at `position` was durable when the batch
/// was written.
pub(super) fn was_safe<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
    position: u64,
) -> Result<bool, DiskError> {
    let (mut at, end) = (from, window.end());
    let mut left = work_bytes_max(end.saturating_sub(from));
    loop {
        let bytes = window.see(at, BLOCK_BYTES)?;
        let len = bytes.len() as u64;
        let Some(found) = annotations::find_head(bytes) else {
            if at + len >= end {
                return Ok(false);
            }
            // A mark may be split between two blocks.
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
            if head_at.saturating_sub(head.unsynced) > position {
                return Ok(true);
            }
            at = batch_end;
        }
    }
}

pub(super) fn head_line<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
) -> Result<Option<(annotations::BatchHead, u64)>, DiskError> {
    let bytes = window.see(at, HEAD_BYTES_MAX)?;
    let line = memchr::memchr(b'\n', &bytes[..bytes.len().min(HEAD_BYTES_MAX)]);
    let Some(line) = line.map(|end| &bytes[..=end]) else { return Ok(None) };
    Ok(match annotations::parse(line) {
        Some(Annotation::Head(head)) => Some((head, at + line.len() as u64)),
        _ => None,
    })
}

/// So many commands in a row are no coincidence.
const COMMANDS_MIN: u32 = 16;

/// Whether commands begin at or after `from`, and continue to the end of the file or are many.
pub(super) fn commands_follow<F: DiskFile>(
    window: &mut Window<F>,
    from: u64,
) -> Result<bool, DiskError> {
    let (mut at, end) = (from, window.end());
    let mut left = work_bytes_max(end.saturating_sub(from));
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

/// Whether there is one command after another from a position on.
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
                    NextCommand::Complete(len) if has_name(window, at, len, spans)? => Some(len),
                    // The end of the file cuts a command.
                    NextCommand::Cut => return Ok(commands > 1),
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

/// The length of an annotation with its line end, if it is not longer than other servers read.
pub(super) fn line_len<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
) -> Result<Option<usize>, DiskError> {
    let bytes = window.see(at, annotations::LINE_BYTES_MAX)?;
    let line = &bytes[..bytes.len().min(annotations::LINE_BYTES_MAX)];
    Ok(memchr::memchr(b'\n', line).map(|end| end + 1))
}

/// The command at a position.
pub(super) enum NextCommand {
    /// A command of this length, which is in the window.
    Complete(usize),
    /// A command that the end of the file cuts.
    Cut,
    /// No command.
    Wrong(command::Wrong),
}

/// Parses the command at a position.
pub(super) fn next_command<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
    spans: &mut Vec<Span>,
) -> Result<NextCommand, DiskError> {
    let mut wanted = 1;
    loop {
        let bytes = window.see(at, wanted)?;
        match command::parse(bytes, spans) {
            ParsedCommand::Whole(len) => return Ok(NextCommand::Complete(len)),
            ParsedCommand::Wrong(wrong) => return Ok(NextCommand::Wrong(wrong)),
            ParsedCommand::More(len) => {
                let have = bytes.len();
                if at.saturating_add(len as u64) > window.end() {
                    return Ok(NextCommand::Cut);
                }
                // Doubled, because each attempt parses a command of many arguments from its start.
                wanted = len.max(have.saturating_mul(2));
            }
        }
    }
}
