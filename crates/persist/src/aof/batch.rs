//! A batch of commands while it is read, and the search for its valid part when it is damaged.

use std::ops::Range;

use resp::args::{Args, Span};

use super::annotations::{self, Annotation, BatchHead, EarlyEnd};
use super::damage::{self, NextCommand};
use super::window::Window;
use crate::disk::{DiskError, DiskFile};

/// A batch that is being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBatch {
    pub(super) head: BatchHead,
    /// Where the head begins.
    pub(super) head_at: u64,
    /// Where the first command begins.
    pub(super) body: u64,
    /// The end of the valid part.
    pub(super) end: u64,
    /// Whether the batch ends there, because it was written like this or has an early end.
    pub(super) is_whole: bool,
}

impl OpenBatch {
    /// The position in the log at a position in the file.
    pub(super) fn log_at(&self, at: u64) -> u64 {
        let missing = (self.body + self.head.bytes).saturating_sub(at);
        self.head.end.saturating_sub(missing)
    }
}

/// The valid part of a damaged batch.
pub(super) struct ValidPart {
    /// The end of the last complete command outside of transactions.
    pub(super) keep: Option<u64>,
    /// Where the search stopped.
    pub(super) at: u64,
    pub(super) stop: ValidPartStop,
}

/// Why the search for the valid part stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValidPartStop {
    End,
    Cut,
    /// There are zeros where a command must begin or end.
    Zeros,
    /// A sector of a command's argument is zeros, as where its bytes did not reach the disk, or
    /// because that is its value.
    ZeroSector,
    Other,
}

/// Finds the commands at the beginning of a damaged batch that are complete. `in_transaction` says
/// whether the batch begins within a transaction.
pub(super) fn valid_part<F: DiskFile>(
    window: &mut Window<F>,
    spans: &mut Vec<Span>,
    body: Range<u64>,
    in_transaction: bool,
) -> Result<ValidPart, DiskError> {
    let (mut at, mut is_open, mut keep) = (body.start, in_transaction, None);
    let stop = loop {
        if at >= body.end {
            break ValidPartStop::End;
        }
        let len = match window.see(at, 1)?.first() {
            Some(b'#') => match timestamp_len(window, at)? {
                Some(len) => len,
                None => break ValidPartStop::Other,
            },
            _ => match damage::next_command(window, at, spans)? {
                NextCommand::Complete(len) => len,
                NextCommand::Cut => break ValidPartStop::Cut,
                NextCommand::Wrong(wrong) => {
                    let byte = window.see(at + wrong.at as u64, 1)?.first().copied();
                    let is_zero = byte == Some(0);
                    break if is_zero { ValidPartStop::Zeros } else { ValidPartStop::Other };
                }
            },
        };
        if at + len as u64 > body.end {
            break ValidPartStop::Cut;
        }
        let bytes = &window.see(at, len)?[..len];
        if has_zero_sector(bytes, at) {
            break ValidPartStop::ZeroSector;
        }
        at += len as u64;
        if bytes.starts_with(b"*") {
            let name = Args::new(bytes, spans, &[]).name();
            is_open = if is_open { !is_command(name, b"EXEC") } else { is_command(name, b"MULTI") };
            keep = if is_open { keep } else { Some(at) };
        }
    };
    Ok(ValidPart { keep, at, stop })
}

fn timestamp_len<F: DiskFile>(window: &mut Window<F>, at: u64) -> Result<Option<usize>, DiskError> {
    let Some(len) = damage::line_len(window, at)? else { return Ok(None) };
    let parsed = annotations::parse(&window.see(at, len)?[..len]);
    Ok(matches!(parsed, Some(Annotation::Timestamp(_))).then_some(len))
}

/// Whether the batch with this head and body has its early end at a position.
pub(super) fn ends_early<F: DiskFile>(
    window: &mut Window<F>,
    head_at: u64,
    body: Range<u64>,
) -> Result<bool, DiskError> {
    let at = body.end;
    let Some((end, _)) = early_end(window, at)? else { return Ok(false) };
    Ok(end.bytes == at - body.start
        && end.matches(at, damage::checksum(window, head_at, at - head_at)?))
}

/// The early end at a position, and the length of its line.
pub(super) fn early_end<F: DiskFile>(
    window: &mut Window<F>,
    at: u64,
) -> Result<Option<(EarlyEnd, usize)>, DiskError> {
    let Some(len) = damage::line_len(window, at)? else { return Ok(None) };
    Ok(match annotations::parse(&window.see(at, len)?[..len]) {
        Some(Annotation::EarlyEnd(end)) => Some((end, len)),
        _ => None,
    })
}

const SECTOR_BYTES: u64 = 512;

/// Whether a whole sector of the file, within the bytes at a position, is zeros.
fn has_zero_sector(bytes: &[u8], at: u64) -> bool {
    let first = (at.next_multiple_of(SECTOR_BYTES) - at) as usize;
    let sectors = bytes.get(first..).unwrap_or_default().chunks_exact(SECTOR_BYTES as usize);
    sectors.into_iter().any(|sector| sector.iter().all(|byte| *byte == 0))
}

pub(super) fn is_command(name: &[u8], wanted: &[u8]) -> bool {
    name.eq_ignore_ascii_case(wanted)
}
