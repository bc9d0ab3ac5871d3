//! Reads the commands of a file.
//!
//! ```text
//! command │ annotation │ head of a batch, its commands │ ... │ tail of a crash
//!                        checked before the first of them is returned
//! ```
//!
//! Commands are returned where they are in a window that moves over the file. The commands of a
//! batch with a head are returned after its checksum was verified, so none of them is damaged;
//! commands without one are returned as they are parsed. Memory is taken for one command, and for
//! a batch that is not very long.
//!
//! A file ends at its end, or at the first byte that a crash has damaged; [`damage`](super::damage)
//! distinguishes such a tail from damage of bytes that were safe, which is an error. When a crash
//! has cut a batch, the complete commands before the cut are kept, with two exceptions. A command
//! that contains a sector of zeros, which a file has where bytes did not reach the disk, is dropped
//! with everything after it. A batch in which other bytes are in the place of its own is dropped
//! whole, and so is one of full length with a sector of zeros within an argument: the zeros may be
//! the value, and the wrong bytes anywhere. A transaction without an end is dropped.
//!
//! A file that was [closed](AofReader::closed) was complete: it has no tail of a crash before the
//! position where it was closed, and does not end before it.
//!
//! A loader keeps the commands of a transaction until its EXEC, and drops them when
//! [`AofItem::End`] comes first.

use resp::args::{Args, Span};

use super::annotations::{self, Annotation, BatchHead, EarlyEnd};
use super::batch::{self, OpenBatch, ValidPartStop, is_command};
use super::damage::{self, AofFault, AofTail, Damage, NextCommand, ReadError};
use super::end::{AofEnd, FileOrder, Repair};
use super::manifest::ManifestEntry;
use super::window::Window;
use crate::disk::{DiskError, DiskFile};

/// The next part of a file.
#[derive(Debug)]
pub enum AofItem<'a> {
    /// A command.
    Command {
        /// Its arguments, the name first.
        args: Args<'a>,
        /// Where it begins in the file.
        offset: u64,
    },
    /// The time from which on the following commands were written, in seconds since 1970.
    Timestamp(i64),
    /// The end of the file.
    End(AofEnd),
}

/// The last position at which the file can end.
#[derive(Clone, Copy, Debug)]
struct Keep {
    at: u64,
    batch: Option<OpenBatch>,
    log_end: Option<u64>,
    commands: u64,
    unsealed: u64,
}

/// Reads a file; see the module's description.
#[derive(Debug)]
pub struct AofReader<F> {
    window: Window<F>,
    order: FileOrder,
    /// The positions in the log at which the file begins, and at which it was closed.
    start_offset: Option<u64>,
    end_offset: Option<u64>,
    spans: Vec<Span>,
    /// Where reading began.
    from: u64,
    at: u64,
    /// Where reading ends.
    limit: u64,
    batch: Option<OpenBatch>,
    /// Where the last batch ended, which is where the next head is expected.
    batch_end: Option<u64>,
    log_end: Option<u64>,
    commands: u64,
    unsealed: u64,
    /// Where the transaction that is being read began.
    transaction: Option<u64>,
    /// Commands that were written later are not read.
    until: i64,
    /// Where those commands begin.
    later_at: Option<u64>,
    keep: Keep,
    tail: Option<(u64, AofFault)>,
}

impl<F: DiskFile> AofReader<F> {
    /// Reads a file from a position on: 0, or the end of the RDB file that it begins with.
    ///
    /// # Errors
    /// When the length of the file cannot be read.
    pub fn new(file: F, from: u64, order: FileOrder) -> Result<Self, DiskError> {
        let end = file.len()?;
        let keep = Keep { at: from, batch: None, log_end: None, commands: 0, unsealed: 0 };
        Ok(Self {
            window: Window::new(file, end),
            order,
            start_offset: None,
            end_offset: None,
            spans: Vec::new(),
            from,
            at: from,
            limit: end,
            batch: None,
            batch_end: Some(from),
            log_end: None,
            commands: 0,
            unsealed: 0,
            transaction: None,
            until: i64::MAX,
            later_at: None,
            keep,
            tail: None,
        })
    }

    /// Ends at the first command that was written after a time in seconds since 1970, if the file
    /// has timestamps.
    #[must_use]
    pub fn until(mut self, unix_seconds: i64) -> Self {
        self.until = unix_seconds;
        self
    }

    /// The entry of the file in the manifest, which says whether the file was closed, and where.
    #[must_use]
    pub fn closed(mut self, entry: &ManifestEntry) -> Self {
        (self.start_offset, self.end_offset) = (entry.start_offset, entry.end_offset);
        self
    }

    /// Where the commands begin that were written after the time given to [`until`](Self::until).
    pub fn later_at(&self) -> Option<u64> {
        self.later_at
    }

    /// How many commands were read that are complete, as are their transactions.
    pub fn kept_commands(&self) -> u64 {
        self.keep.commands
    }

    /// How many bytes of those commands have no checksum.
    pub fn kept_unsealed(&self) -> u64 {
        self.keep.unsealed
    }

    /// The position up to which the file was read.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// The next part. After the end, the end is returned again.
    ///
    /// # Errors
    /// When the disk fails, or the file has damage other than the tail of a crash.
    pub fn item(&mut self) -> Result<AofItem<'_>, ReadError> {
        loop {
            if self.at >= self.limit {
                match self.end()? {
                    Some(end) => return Ok(AofItem::End(end)),
                    None => continue,
                }
            }
            if self.batch.is_some_and(|batch| self.at >= batch.end) {
                self.close_batch()?;
                continue;
            }
            match self.window.see(self.at, 1)?.first() {
                // The file was truncated meanwhile.
                None => self.limit = self.at,
                Some(b'#') => {
                    if let Some(seconds) = self.annotation()? {
                        return Ok(AofItem::Timestamp(seconds));
                    }
                }
                Some(_) => {
                    if let Some(len) = self.command()? {
                        let offset = self.at - len as u64;
                        let bytes = self.window.see(offset, len)?;
                        return Ok(AofItem::Command {
                            args: Args::new(bytes, &self.spans, &[]),
                            offset,
                        });
                    }
                }
            }
        }
    }

    /// Skips the command here and returns its length; `None` when the file ends instead.
    fn command(&mut self) -> Result<Option<usize>, ReadError> {
        let len = match damage::next_command(&mut self.window, self.at, &mut self.spans)? {
            NextCommand::Complete(len) => len,
            NextCommand::Cut => {
                self.fault(self.at, AofFault::Cut)?;
                return Ok(None);
            }
            NextCommand::Wrong(wrong) => {
                let at = self.at + wrong.at as u64;
                let zeros = damage::only_zeros(&mut self.window, at)?;
                let fault = if zeros { AofFault::Zeros } else { AofFault::Format(wrong.expected) };
                self.fault(at, fault)?;
                return Ok(None);
            }
        };
        let end = self.at + len as u64;
        if self.batch.is_some_and(|batch| end > batch.end) {
            // The checksum is right, so this was written.
            return Err(self.damage(self.at, AofFault::Format("a command within its batch")));
        }
        let name = Args::new(self.window.see(self.at, len)?, &self.spans, &[]).name();
        let (begins, ends) = (is_command(name, b"MULTI"), is_command(name, b"EXEC"));
        match self.transaction {
            None if begins => self.transaction = Some(self.at),
            Some(_) if ends => self.transaction = None,
            Some(_) if begins => {
                self.fault(self.at, AofFault::Format("a command of a transaction or its EXEC"))?;
                return Ok(None);
            }
            None if ends => {
                self.fault(self.at, AofFault::Format("a MULTI before its EXEC"))?;
                return Ok(None);
            }
            _ => {}
        }
        self.commands += 1;
        if self.batch.is_none() {
            // The log contains this command too.
            self.log_end = self.log_end.map(|log_end| log_end.saturating_add(len as u64));
        }
        self.accept(end);
        Ok(Some(len))
    }

    /// Notes that the file is valid up to a position.
    fn accept(&mut self, end: u64) {
        if self.batch.is_none() {
            self.unsealed += end - self.at;
        }
        self.at = end;
        self.keep_here();
    }

    fn keep_here(&mut self) {
        if self.transaction.is_none() {
            let Self { at, batch, log_end, commands, unsealed, .. } = *self;
            self.keep = Keep { at, batch, log_end, commands, unsealed };
        }
    }

    /// Skips the annotation here. Returns its time, if it is a timestamp.
    fn annotation(&mut self) -> Result<Option<i64>, ReadError> {
        let start = self.at;
        let Some(len) = damage::line_len(&mut self.window, start)? else {
            self.annotation_fault()?;
            return Ok(None);
        };
        let line = &self.window.see(start, len)?[..len];
        let parsed = annotations::parse(line);
        let end = start + len as u64;
        if self.batch.is_some() && !matches!(parsed, Some(Annotation::Timestamp(_))) {
            return Err(self.damage(start, AofFault::Format("a command within its batch")));
        }
        match parsed {
            Some(Annotation::Timestamp(seconds)) if seconds > self.until => {
                self.later_at = Some(start);
                self.limit = start;
                // A transaction that continues there is no fault.
                self.transaction = None;
                return Ok(None);
            }
            Some(Annotation::Timestamp(seconds)) => {
                if self.batch.is_some() {
                    // The timestamp counts with the command after it: the log does not have it.
                    self.at = end;
                } else {
                    self.accept(end);
                }
                return Ok(Some(seconds));
            }
            Some(Annotation::Unknown) => self.accept(end),
            Some(Annotation::Head(head)) => self.open_batch(head, end)?,
            Some(Annotation::EarlyEnd(_)) => {
                self.fault(start, AofFault::Format("the batch that ends early here"))?;
            }
            None => self.annotation_fault()?,
        }
        Ok(None)
    }

    /// Reports the line here, which begins like an annotation and is none.
    fn annotation_fault(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        let room = annotations::LINE_BYTES_MAX;
        let seen = self.window.see(start, room)?;
        let line = &seen[..seen.len().min(room)];
        let line_end = memchr::memchr(b'\n', line).map(|at| at + 1);
        let is_cut = line.len() < room && line_end.is_none();
        if annotations::is_head(&line[..line_end.unwrap_or(line.len())]) {
            // The batch would follow.
            self.batch_end = Some(start);
        }
        let zeros = line.iter().position(|byte| *byte == 0).map(|at| start + at as u64);
        let fault = match zeros {
            Some(at) if damage::only_zeros(&mut self.window, at)? => AofFault::Zeros,
            _ if is_cut => AofFault::Cut,
            _ => AofFault::Format("an annotation"),
        };
        self.fault(start, fault)
    }

    /// Verifies the batch whose head was read.
    fn open_batch(&mut self, head: BatchHead, body: u64) -> Result<(), ReadError> {
        let head_at = self.at;
        let mut batch = OpenBatch { head, head_at, body, end: body, is_whole: true };
        let left = self.window.end() - body;
        if head.bytes <= left {
            batch.end = body + head.bytes;
            if head.matches(head_at, damage::checksum(&mut self.window, body, head.bytes)?) {
                self.at = body;
                self.batch = Some(batch);
                return Ok(());
            }
        }
        let until = body + head.bytes.min(left);
        let in_transaction = self.transaction.is_some();
        let Self { window, spans, .. } = self;
        let part = batch::valid_part(window, spans, body..until, in_transaction)?;
        if batch::ends_early(window, head_at, body..part.at)? {
            batch.end = part.at;
            self.at = body;
            self.batch = Some(batch);
            return Ok(());
        }
        let last = self.window.end() - 1;
        let ends_with_zero = self.window.see(last, 1)?.first() == Some(&0);
        let is_short = head.bytes > left;
        let zeros = match part.stop {
            ValidPartStop::Zeros => true,
            ValidPartStop::ZeroSector => is_short,
            ValidPartStop::Cut => ends_with_zero,
            ValidPartStop::End | ValidPartStop::Other => false,
        };
        let cut = is_short && matches!(part.stop, ValidPartStop::Cut | ValidPartStop::End);
        let fault = match () {
            () if zeros => AofFault::Zeros,
            () if cut => AofFault::Cut,
            () => AofFault::Checksum,
        };
        self.batch_end = Some(head_at);
        let seen_at = if zeros || cut { part.at } else { head_at };
        self.fault(head_at, fault)?;
        self.tail = Some((seen_at, fault));
        if let Some(keep) = part.keep.filter(|_| zeros || cut) {
            // Read the commands up to there.
            self.batch = Some(OpenBatch { end: until, is_whole: false, ..batch });
            self.at = body;
            self.limit = keep;
        }
        Ok(())
    }

    /// Ends the batch that was read to its end.
    fn close_batch(&mut self) -> Result<(), ReadError> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.log_end = Some(batch.log_at(batch.end));
        if batch.end < batch.body + batch.head.bytes
            && let Some((_, len)) = batch::early_end(&mut self.window, batch.end)?
        {
            self.at += len as u64;
        }
        self.batch_end = Some(self.at);
        self.keep_here();
        Ok(())
    }

    /// Handles a fault: the file ends here if it is the tail of a crash, and is damaged otherwise.
    fn fault(&mut self, offset: u64, fault: AofFault) -> Result<(), ReadError> {
        let in_batch = self.batch.is_some();
        if self.order != FileOrder::Last || in_batch || self.was_closed_later() {
            return Err(self.damage(offset, fault));
        }
        let is_due = self.batch_end == Some(self.at);
        if fault != AofFault::Zeros || is_due {
            let damaged = damage::was_safe(&mut self.window, self.at + 1, self.at)?
                || !is_due && damage::commands_follow(&mut self.window, self.at + 1)?;
            if damaged {
                return Err(self.damage(offset, fault));
            }
        }
        self.tail = Some((offset, fault));
        self.limit = self.at;
        Ok(())
    }

    /// Whether the file was closed after the batch that begins here, or that should begin here:
    /// then the batch was complete and durable. Another server may append commands later and crash.
    fn was_closed_later(&self) -> bool {
        let begins_batch = self.batch_end == Some(self.at);
        let here = self.log_end.or(self.start_offset).filter(|_| begins_batch);
        here.zip(self.end_offset).is_some_and(|(here, end)| here < end)
    }

    fn damage(&self, offset: u64, fault: AofFault) -> ReadError {
        ReadError::Damage(Damage { offset, fault, valid_to: self.valid_to() })
    }

    /// Where the file ends after the kept commands. A head without commands is not kept.
    fn valid_to(&self) -> u64 {
        match self.keep.batch {
            Some(batch) if self.keep.at == batch.body => batch.head_at,
            _ => self.keep.at,
        }
    }

    /// Whether a file that is valid up to here, at this position in the log, was closed later.
    fn is_short(&self, valid_to: u64, log_end: Option<u64>) -> bool {
        let here = log_end.or(self.start_offset.filter(|_| valid_to == self.from));
        here.zip(self.end_offset).is_some_and(|(here, end)| here < end)
    }

    /// Where the first batch begins that is not kept whole.
    pub(super) fn partial_at(&self) -> u64 {
        let batch = self.keep.batch.filter(|batch| self.keep.at < batch.end || !batch.is_whole);
        batch.map_or(self.keep.at, |batch| batch.head_at)
    }

    /// Ends reading; `None` when a batch was closed instead.
    fn end(&mut self) -> Result<Option<AofEnd>, ReadError> {
        if self.batch.is_some_and(|batch| batch.is_whole && self.at >= batch.end) {
            self.close_batch()?;
            return Ok(None);
        }
        if let (Some(start), None) = (self.transaction, self.tail) {
            if self.order != FileOrder::Last {
                return Err(self.damage(start, AofFault::Transaction));
            }
            self.tail = Some((start, AofFault::Transaction));
        }
        let file_end = self.window.end();
        let valid_to = self.valid_to();
        let tail = self.tail.map(|(offset, fault)| {
            let dropped = file_end.saturating_sub(valid_to);
            AofTail { offset, fault, dropped }
        });
        let Keep { at, batch, commands, unsealed, .. } = self.keep;
        let kept = batch.filter(|batch| at > batch.body);
        let log_end = kept.map(|batch| batch.log_at(at)).or(self.keep.log_end);
        let ends_with_batch = kept.is_some() || self.batch_end == Some(at) && log_end.is_some();
        if self.later_at.is_none() && self.is_short(valid_to, log_end) {
            let (offset, fault) = self.tail.unwrap_or((valid_to, AofFault::Short));
            return Err(self.damage(offset, fault));
        }
        let repair = self.repair()?;
        Ok(Some(AofEnd { valid_to, log_end, ends_with_batch, commands, unsealed, tail, repair }))
    }

    /// The repair that makes the file end after the last complete command or transaction that was
    /// read. `None` if the file already ends there.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn repair(&mut self) -> Result<Option<Repair>, DiskError> {
        let Keep { at, batch, .. } = self.keep;
        let mut annotation = Vec::new();
        let is_closed = |batch: &OpenBatch| batch.is_whole && at == batch.end;
        if let Some(batch) = batch.filter(|batch| at > batch.body && !is_closed(batch)) {
            let crc = damage::checksum(&mut self.window, batch.head_at, at - batch.head_at)?;
            EarlyEnd::push(&mut annotation, at, at - batch.body, crc);
        }
        let truncate_to = self.valid_to();
        let is_due = truncate_to < self.window.end() || !annotation.is_empty();
        Ok(is_due.then_some(Repair { truncate_to, annotation }))
    }
}
