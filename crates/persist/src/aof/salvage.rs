//! The intact part of a damaged file, for a new file that replaces it.
//!
//! ```text
//! damaged   batch │ batch with a flipped bit │ batch │ cut command
//! new       batch │ #----------------------- │ batch
//! ```
//!
//! Reading continues at the next batch with a right checksum. Lost bytes before it become
//! annotations, which all servers skip: so later batches stay at their positions, which are part of
//! their checksums. Commands without checksums are lost after damage, because nothing says which of
//! them are intact.
//!
//! A batch is not kept if its commands could do something else than they did: if it ends a
//! transaction whose beginning is lost, or if a SELECT may be lost before it and it has none
//! itself. Its head says where the last one is: the lost bytes need not be read for that.

use std::ops::Range;
use std::path::PathBuf;

use resp::args::{Args, Span};

use super::annotations::{self, BatchHead};
use super::batch::is_command;
use super::damage::{self, NextCommand};
use super::window::Window;
use super::{AofEnd, AofItem, AofReader, FileOrder, ManifestEntry, ReadError, Repair};
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile, DiskOperation, FileSink};
use crate::sink::ByteSink;

/// Lost parts of a file at most; everything after the last one is lost too.
const LOST_MAX: usize = 256;
/// Bytes of a line that fills a lost part, with its end. The last line has up to twice as many,
/// which other servers still read at once.
const LINE_BYTES: u64 = 500;
/// The shortest one.
const LINE_BYTES_MIN: u64 = 3;
const SELECT: &[u8] = b"SELECT";

/// A new file with the intact part of a damaged one.
#[derive(Clone, Debug)]
pub struct AofFix {
    /// The parts that are lost before the end, in order.
    pub lost: Vec<Range<u64>>,
    /// How many commands are kept.
    pub commands: u64,
    /// Where the new file ends, if not where the damaged one does.
    pub cut: Option<Repair>,
}

impl AofFix {
    /// A fix that only cuts the file.
    pub fn of_cut(cut: Repair, commands: u64) -> Self {
        Self { lost: Vec::new(), commands, cut: Some(cut) }
    }

    /// How many bytes of a file of this length are lost.
    pub fn lost_bytes(&self, file_bytes: u64) -> u64 {
        let between: u64 = self.lost.iter().map(|lost| lost.end - lost.start).sum();
        let cut = self.cut.as_ref().map_or(0, |cut| file_bytes.saturating_sub(cut.truncate_to));
        between + cut
    }

    /// Writes the new file.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn write<F: DiskFile>(&self, file: &F, out: &mut FileSink<F>) -> Result<(), DiskError> {
        let patched = Patched { file: file.clone(), lost: self.lost.clone() };
        let end = self.cut.as_ref().map_or(file.len()?, |cut| cut.truncate_to);
        let (mut at, mut room) = (0, vec![0; BLOCK_BYTES]);
        while at < end {
            // The cast is of at most the length of a block.
            let wanted = (end - at).min(BLOCK_BYTES as u64) as usize;
            let read = patched.read_at(at, &mut room[..wanted])?;
            if read == 0 {
                break;
            }
            out.put(&room[..read])?;
            at += read as u64;
        }
        self.cut.as_ref().map_or(Ok(()), |cut| out.put(&cut.annotation))
    }
}

/// Finds the intact part of a file after the RDB file that it may begin with. `entry` is that of
/// the file in the manifest.
///
/// # Errors
/// When the disk fails.
pub fn find<F: DiskFile>(
    file: &F,
    from: u64,
    order: FileOrder,
    entry: Option<&ManifestEntry>,
) -> Result<AofFix, DiskError> {
    let mut patched = Patched { file: file.clone(), lost: Vec::new() };
    loop {
        let mut reader = AofReader::new(patched.clone(), from, order)?;
        if let Some(entry) = entry {
            reader = reader.closed(entry);
        }
        let valid_to = match read_to_end(&mut reader) {
            Ok(AofEnd { commands, repair: cut, .. }) => {
                return Ok(AofFix { lost: patched.lost, commands, cut });
            }
            Err(ReadError::Disk(error)) => return Err(error),
            Err(ReadError::Damage(damage)) => damage.valid_to,
        };
        let next = if patched.lost.len() < LOST_MAX {
            next_batch(file, valid_to, reader.partial_at())?
        } else {
            None
        };
        match next {
            Some(next) if patched.lose(valid_to..next) => {}
            _ => {
                let (commands, cut) = (reader.kept_commands(), reader.repair()?);
                return Ok(AofFix { lost: patched.lost, commands, cut });
            }
        }
    }
}

/// Reads a file to its end.
///
/// # Errors
/// Those of the reader.
pub fn read_to_end<F: DiskFile>(reader: &mut AofReader<F>) -> Result<AofEnd, ReadError> {
    loop {
        if let AofItem::End(end) = reader.item()? {
            return Ok(end);
        }
    }
}

/// Where the next batch begins that can be kept if everything from `from` to it is lost. `batch_at`
/// is where the first batch begins that is not kept whole.
fn next_batch<F: DiskFile>(file: &F, from: u64, batch_at: u64) -> Result<Option<u64>, DiskError> {
    let mut window = Window::new(file.clone(), file.len()?);
    let (mut at, mut spans) = (from + 1, Vec::new());
    let mut left = damage::work_bytes_max(window.end().saturating_sub(from));
    loop {
        let bytes = window.see(at, BLOCK_BYTES)?;
        let len = bytes.len() as u64;
        let Some(found) = annotations::find_head(bytes) else {
            if at + len >= window.end() {
                return Ok(None);
            }
            // A mark may be split between two blocks.
            at += len - 3;
            continue;
        };
        let head_at = at + found as u64;
        at = head_at + 1;
        let Some((head, body)) = damage::head_line(&mut window, head_at)? else { continue };
        let end = body.checked_add(head.bytes).filter(|end| *end <= window.end());
        let Some(end) = end.filter(|_| head_at - from >= LINE_BYTES_MIN) else { continue };
        let Some(rest) = left.checked_sub(head.bytes) else { return Ok(None) };
        left = rest;
        if !is_whole(&mut window, &head, head_at, body)? {
            continue;
        }
        let lacks_select = head.selected > 0 && head_at.saturating_sub(head.selected) >= batch_at;
        if is_complete(&mut window, &mut spans, body..end, lacks_select)? {
            return Ok(Some(head_at));
        }
        at = end;
    }
}

fn is_whole<F: DiskFile>(
    window: &mut Window<F>,
    head: &BatchHead,
    head_at: u64,
    body: u64,
) -> Result<bool, DiskError> {
    Ok(head.matches(head_at, damage::checksum(window, body, head.bytes)?))
}

/// Whether the commands of a batch do the same without those before it: the first one must be a
/// SELECT if `lacks_select`, and no EXEC may come before a MULTI.
fn is_complete<F: DiskFile>(
    window: &mut Window<F>,
    spans: &mut Vec<Span>,
    body: Range<u64>,
    lacks_select: bool,
) -> Result<bool, DiskError> {
    let (mut at, mut is_selected) = (body.start, !lacks_select);
    while at < body.end {
        let len = match window.see(at, 1)?.first() {
            Some(b'#') => damage::line_len(window, at)?,
            _ => match damage::next_command(window, at, spans)? {
                NextCommand::Complete(len) => {
                    let name = Args::new(window.see(at, len)?, spans, &[]).name();
                    is_selected |= is_command(name, SELECT);
                    if !is_selected || is_command(name, b"EXEC") {
                        return Ok(false);
                    }
                    if is_command(name, b"MULTI") {
                        return Ok(true);
                    }
                    Some(len)
                }
                _ => None,
            },
        };
        let Some(len) = len else { return Ok(false) };
        at += len as u64;
    }
    Ok(is_selected)
}

/// A file as it reads with annotations instead of its lost parts.
#[derive(Clone, Debug)]
struct Patched<F> {
    file: F,
    lost: Vec<Range<u64>>,
}

impl<F> Patched<F> {
    /// Loses a part, which may contain others. Returns false if it was lost already.
    fn lose(&mut self, part: Range<u64>) -> bool {
        if self.lost.contains(&part) {
            return false;
        }
        self.lost.retain(|lost| lost.end <= part.start || lost.start >= part.end);
        self.lost.push(part);
        self.lost.sort_by_key(|lost| lost.start);
        true
    }
}

/// The byte at a position of a lost part, which is filled with lines.
fn filling(lost: &Range<u64>, at: u64) -> u8 {
    let len = lost.end - lost.start;
    let place = at - lost.start;
    // The last line takes the rest, which must not be shorter than a line can be.
    let lines = (len / LINE_BYTES).max(1);
    let line = (place / LINE_BYTES).min(lines - 1);
    let line_end = if line + 1 == lines { len } else { (line + 1) * LINE_BYTES };
    match (place - line * LINE_BYTES, line_end - place) {
        (0, _) => b'#',
        (_, 2) => b'\r',
        (_, 1) => b'\n',
        _ => b'-',
    }
}

impl<F: DiskFile> DiskFile for Patched<F> {
    fn append(&self, _: &[&[u8]]) -> Result<(), DiskError> {
        Err(unchanged(DiskOperation::Append))
    }

    fn read_at(&self, position: u64, room: &mut [u8]) -> Result<usize, DiskError> {
        let read = self.file.read_at(position, room)?;
        let end = position + read as u64;
        for lost in &self.lost {
            for at in lost.start.max(position)..lost.end.min(end) {
                room[(at - position) as usize] = filling(lost, at);
            }
        }
        Ok(read)
    }

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn truncate(&self, _: u64) -> Result<(), DiskError> {
        Err(unchanged(DiskOperation::Truncate))
    }

    fn sync(&self) -> Result<(), DiskError> {
        Err(unchanged(DiskOperation::Sync))
    }
}

fn unchanged(operation: DiskOperation) -> DiskError {
    let error = std::io::ErrorKind::Unsupported.into();
    DiskError { operation, path: PathBuf::new(), error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_part_becomes_lines_that_other_servers_skip() {
        for len in (3..2100).chain([10_000, 123_457]) {
            let lost = 7..7 + len;
            let bytes: Vec<u8> = lost.clone().map(|at| filling(&lost, at)).collect();
            for line in bytes.split_inclusive(|byte| *byte == b'\n') {
                assert!((3..=annotations::LINE_BYTES_MAX).contains(&line.len()), "{len}");
                let parsed = annotations::parse(line);
                assert_eq!(parsed, Some(annotations::Annotation::Unknown), "{len}");
            }
            assert!(bytes.ends_with(b"\r\n"));
        }
    }
}
