//! Reading the commands of a file.
//!
//! ```text
//! command │ annotation │ head of a batch, its commands │ ... │ tail of a crash
//!                        checked before the first of them is shown
//! ```
//!
//! Commands are shown where they lie in a window that moves over the file. A batch with a head is
//! shown when its checksum is right, so nothing damaged is ever shown of it; what has none is shown
//! as it is parsed. Memory is taken for one command, and for a batch that is not very long.
//!
//! A file ends at its end, or at the first byte that a crash has spoilt; [`damage`](super::damage)
//! tells such a tail from damage of what was safe, which is an error. Of a batch that a crash has
//! cut, the whole commands before the cut are kept: but none that contains a sector of zeros, as
//! files have them where bytes did not reach the disk, and nothing of a batch with other bytes in
//! the place of its own. A transaction without an end is dropped.
//!
//! Who loads a file keeps the commands of a transaction until its EXEC, and drops them when
//! [`Item::End`] comes first.

use resp::args::{Args, Span};

use super::annotations::{self, Annotation, EarlyEnd, Head};
use super::damage::{self, Damage, Fault, Next, ReadError, Tail};
use super::window::Window;
use crate::disk::{DiskError, DiskFile};

/// Whether a file may end as a crash leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Another file follows, so it was whole once.
    BeforeOthers,
    /// It is the last one.
    Last,
}

/// What comes next in a file.
#[derive(Debug)]
pub enum Item<'a> {
    /// A command.
    Command {
        /// Its arguments, the name first.
        args: Args<'a>,
        /// Where it stands in the file.
        offset: u64,
    },
    /// What follows was written from this time on, in seconds since 1970.
    Timestamp(i64),
    /// Nothing more.
    End(End),
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Bytes that are whole commands and transactions.
    pub valid_to: u64,
    /// The position in the log behind them, where a batch tells it.
    pub log_end: Option<u64>,
    /// A batch is the last of them: whoever wrote that position has written nothing behind it.
    pub ends_with_batch: bool,
    /// Commands up to there.
    pub commands: u64,
    /// Bytes of them that no checksum covers.
    pub unsealed: u64,
    /// What is dropped, if anything is.
    pub tail: Option<Tail>,
    /// What makes the file end there, before anything is appended to it.
    pub repair: Option<Repair>,
}

/// What makes a file end behind its last whole command or transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Its length.
    pub truncate_to: u64,
    /// What is appended then, if a batch ends early.
    pub annotation: Vec<u8>,
}

impl Repair {
    /// Repairs the file.
    ///
    /// # Errors
    /// When the disk fails; the same can be done again then.
    pub fn apply<F: DiskFile>(&self, file: &F) -> Result<(), DiskError> {
        file.truncate(self.truncate_to)?;
        if !self.annotation.is_empty() {
            file.append(&[&self.annotation])?;
        }
        file.sync()
    }
}

/// A batch that is read.
#[derive(Clone, Copy, Debug)]
struct OpenBatch {
    head: Head,
    /// Where the head begins.
    head_at: u64,
    /// Where the batch begins.
    body: u64,
    /// How far it is right.
    end: u64,
    /// Whether that was so when it was written, or an early end says it.
    is_whole: bool,
}

impl OpenBatch {
    /// The position in the log at a position in the file.
    fn log_at(&self, at: u64) -> u64 {
        let missing = (self.body + self.head.bytes).saturating_sub(at);
        self.head.end.saturating_sub(missing)
    }
}

/// Where the file can end.
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
pub struct Reader<F> {
    window: Window<F>,
    place: Place,
    spans: Vec<Span>,
    at: u64,
    /// Where reading ends.
    limit: u64,
    batch: Option<OpenBatch>,
    /// Where the last batch ended: the next head is due there.
    batch_end: Option<u64>,
    log_end: Option<u64>,
    commands: u64,
    unsealed: u64,
    /// Where the transaction began that is read.
    transaction: Option<u64>,
    /// What was written later is not read.
    until: i64,
    /// Where that begins.
    later_at: Option<u64>,
    keep: Keep,
    tail: Option<(u64, Fault)>,
}

/// What a place holds, for the walk over a batch that is not right.
struct Walk {
    /// Behind the last whole command outside of transactions.
    keep: Option<u64>,
    /// Where it ends.
    at: u64,
    stop: Stop,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    Cut,
    Zeros,
    Other,
}

impl<F: DiskFile> Reader<F> {
    /// Reads a file from a position on: 0, or behind the RDB file that it begins with.
    ///
    /// # Errors
    /// When its length cannot be had.
    pub fn new(file: F, from: u64, place: Place) -> Result<Self, DiskError> {
        let end = file.len()?;
        let keep = Keep { at: from, batch: None, log_end: None, commands: 0, unsealed: 0 };
        Ok(Self {
            window: Window::new(file, end),
            place,
            spans: Vec::new(),
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

    /// The same, up to what was written later than a time in seconds since 1970, as far as the file
    /// tells times.
    #[must_use]
    pub fn until(mut self, unix_seconds: i64) -> Self {
        self.until = unix_seconds;
        self
    }

    /// Where something was found that was written later than reading was to go.
    pub fn later_at(&self) -> Option<u64> {
        self.later_at
    }

    /// Commands that are whole and in whole transactions, as far as was read, and bytes of them
    /// that no checksum covers.
    pub fn kept(&self) -> (u64, u64) {
        (self.keep.commands, self.keep.unsealed)
    }

    /// How far has been read.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// What comes next. Nothing but the end comes behind the end.
    ///
    /// # Errors
    /// When the disk fails, or the file is damaged and that is no tail of a crash.
    pub fn item(&mut self) -> Result<Item<'_>, ReadError> {
        loop {
            if self.at >= self.limit {
                match self.end()? {
                    Some(end) => return Ok(Item::End(end)),
                    None => continue,
                }
            }
            if self.batch.is_some_and(|batch| self.at >= batch.end) {
                self.close_batch()?;
                continue;
            }
            match self.window.see(self.at, 1)?.first() {
                // The file has become shorter.
                None => self.limit = self.at,
                Some(b'#') => {
                    if let Some(seconds) = self.annotation()? {
                        return Ok(Item::Timestamp(seconds));
                    }
                }
                Some(_) => {
                    if let Some(len) = self.command()? {
                        let offset = self.at - len as u64;
                        let bytes = self.window.see(offset, len)?;
                        return Ok(Item::Command {
                            args: Args::new(bytes, &self.spans, &[]),
                            offset,
                        });
                    }
                }
            }
        }
    }

    /// Passes over the command here and says how long it is; `None` when the file ends instead.
    fn command(&mut self) -> Result<Option<usize>, ReadError> {
        let len = match damage::next_command(&mut self.window, self.at, &mut self.spans)? {
            Next::Command(len) => len,
            Next::Cut => {
                self.fault(self.at, Fault::Cut)?;
                return Ok(None);
            }
            Next::Wrong(wrong) => {
                let at = self.at + wrong.at as u64;
                let zeros = damage::only_zeros(&mut self.window, at)?;
                let fault = if zeros { Fault::Zeros } else { Fault::Format(wrong.expected) };
                self.fault(at, fault)?;
                return Ok(None);
            }
        };
        let end = self.at + len as u64;
        if self.batch.is_some_and(|batch| end > batch.end) {
            // Its checksum is right, so it was written like that.
            return Err(self.damage(self.at, Fault::Format("a command within its batch")));
        }
        let name = Args::new(self.window.see(self.at, len)?, &self.spans, &[]).name();
        let (begins, ends) = (is(name, b"MULTI"), is(name, b"EXEC"));
        match self.transaction {
            None if begins => self.transaction = Some(self.at),
            Some(_) if ends => self.transaction = None,
            Some(_) if begins => {
                self.fault(self.at, Fault::Format("a command of a transaction or its EXEC"))?;
                return Ok(None);
            }
            None if ends => {
                self.fault(self.at, Fault::Format("a MULTI before its EXEC"))?;
                return Ok(None);
            }
            _ => {}
        }
        self.commands += 1;
        if self.batch.is_none() {
            // The log has it as well.
            self.log_end = self.log_end.map(|log_end| log_end.saturating_add(len as u64));
        }
        self.pass(end);
        Ok(Some(len))
    }

    /// What was read up to a position is right.
    fn pass(&mut self, end: u64) {
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

    /// Passes over the annotation here. The time, if it tells one.
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
            return Err(self.damage(start, Fault::Format("a command within its batch")));
        }
        match parsed {
            Some(Annotation::Timestamp(seconds)) if seconds > self.until => {
                self.later_at = Some(start);
                self.limit = start;
                // Nothing is wrong with a transaction that goes on.
                self.transaction = None;
                return Ok(None);
            }
            Some(Annotation::Timestamp(seconds)) => {
                if self.batch.is_some() {
                    // It is kept with the command behind it: the log does not have it.
                    self.at = end;
                } else {
                    self.pass(end);
                }
                return Ok(Some(seconds));
            }
            Some(Annotation::Unknown) => self.pass(end),
            Some(Annotation::Head(head)) => self.open_batch(head, end)?,
            Some(Annotation::EarlyEnd(_)) => {
                self.fault(start, Fault::Format("the batch that ends early here"))?;
            }
            None => self.annotation_fault()?,
        }
        Ok(None)
    }

    /// The annotation here is none.
    fn annotation_fault(&mut self) -> Result<(), ReadError> {
        let start = self.at;
        let room = annotations::LINE_BYTES_MAX;
        let seen = self.window.see(start, room)?;
        let line = &seen[..seen.len().min(room)];
        let line_end = memchr::memchr(b'\n', line).map(|at| at + 1);
        let is_cut = line.len() < room && line_end.is_none();
        if annotations::is_head(&line[..line_end.unwrap_or(line.len())]) {
            // What would follow is the batch.
            self.batch_end = Some(start);
        }
        let zeros = line.iter().position(|byte| *byte == 0).map(|at| start + at as u64);
        let fault = match zeros {
            Some(at) if damage::only_zeros(&mut self.window, at)? => Fault::Zeros,
            _ if is_cut => Fault::Cut,
            _ => Fault::Format("an annotation"),
        };
        self.fault(start, fault)
    }

    /// Checks the batch whose head was read.
    fn open_batch(&mut self, head: Head, body: u64) -> Result<(), ReadError> {
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
        let walk = self.walk(body, until)?;
        if self.ends_early(head_at, body, walk.at)? {
            batch.end = walk.at;
            self.at = body;
            self.batch = Some(batch);
            return Ok(());
        }
        let last = self.window.end() - 1;
        let ends_with_zero = self.window.see(last, 1)?.first() == Some(&0);
        let zeros = walk.stop == Stop::Zeros || walk.stop == Stop::Cut && ends_with_zero;
        let cut = head.bytes > left && matches!(walk.stop, Stop::Cut | Stop::End);
        let fault = match () {
            () if zeros => Fault::Zeros,
            () if cut => Fault::Cut,
            () => Fault::Checksum,
        };
        self.batch_end = Some(head_at);
        let seen_at = if zeros || cut { walk.at } else { head_at };
        self.fault(head_at, fault)?;
        self.tail = Some((seen_at, fault));
        if let Some(keep) = walk.keep.filter(|_| zeros || cut) {
            // Its commands up to there.
            self.batch = Some(OpenBatch { end: until, is_whole: false, ..batch });
            self.at = body;
            self.limit = keep;
        }
        Ok(())
    }

    /// Whether a batch ends early at a position.
    fn ends_early(&mut self, head_at: u64, body: u64, at: u64) -> Result<bool, ReadError> {
        let Some(end) = self.early_end(at)?.filter(|(end, _)| end.bytes == at - body) else {
            return Ok(false);
        };
        Ok(end.0.matches(at, damage::checksum(&mut self.window, head_at, at - head_at)?))
    }

    /// The early end at a position, and the length of its line.
    fn early_end(&mut self, at: u64) -> Result<Option<(EarlyEnd, usize)>, DiskError> {
        let Some(len) = damage::line_len(&mut self.window, at)? else { return Ok(None) };
        Ok(match annotations::parse(&self.window.see(at, len)?[..len]) {
            Some(Annotation::EarlyEnd(end)) => Some((end, len)),
            _ => None,
        })
    }

    /// Walks over the commands of a batch that is not right as a whole.
    fn walk(&mut self, body: u64, until: u64) -> Result<Walk, ReadError> {
        let (mut at, mut open) = (body, self.transaction.is_some());
        let mut keep = None;
        let stop = loop {
            if at >= until {
                break Stop::End;
            }
            let len = match self.window.see(at, 1)?.first() {
                Some(b'#') => match self.timestamp_len(at)? {
                    Some(len) => len,
                    None => break Stop::Other,
                },
                _ => match damage::next_command(&mut self.window, at, &mut self.spans)? {
                    Next::Command(len) => len,
                    Next::Cut => break Stop::Cut,
                    Next::Wrong(wrong) => {
                        let byte = self.window.see(at + wrong.at as u64, 1)?.first().copied();
                        break if byte == Some(0) { Stop::Zeros } else { Stop::Other };
                    }
                },
            };
            if at + len as u64 > until {
                break Stop::Cut;
            }
            let bytes = &self.window.see(at, len)?[..len];
            if has_zero_sector(bytes, at) {
                break Stop::Zeros;
            }
            at += len as u64;
            if bytes.starts_with(b"*") {
                let name = Args::new(bytes, &self.spans, &[]).name();
                open = if open { !is(name, b"EXEC") } else { is(name, b"MULTI") };
                keep = if open { keep } else { Some(at) };
            }
        };
        Ok(Walk { keep, at, stop })
    }

    fn timestamp_len(&mut self, at: u64) -> Result<Option<usize>, DiskError> {
        let Some(len) = damage::line_len(&mut self.window, at)? else { return Ok(None) };
        let parsed = annotations::parse(&self.window.see(at, len)?[..len]);
        Ok(matches!(parsed, Some(Annotation::Timestamp(_))).then_some(len))
    }

    /// The batch is read.
    fn close_batch(&mut self) -> Result<(), ReadError> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        self.log_end = Some(batch.log_at(batch.end));
        if batch.end < batch.body + batch.head.bytes
            && let Some((_, len)) = self.early_end(batch.end)?
        {
            self.at += len as u64;
        }
        self.batch_end = Some(self.at);
        self.keep_here();
        Ok(())
    }

    /// Something is wrong: the file ends here, or it is damaged.
    fn fault(&mut self, offset: u64, fault: Fault) -> Result<(), ReadError> {
        let in_batch = self.batch.is_some();
        if self.place != Place::Last || in_batch {
            return Err(self.damage(offset, fault));
        }
        let is_due = self.batch_end == Some(self.at);
        if fault != Fault::Zeros || is_due {
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

    fn damage(&self, offset: u64, fault: Fault) -> ReadError {
        ReadError::Damage(Damage { offset, fault, valid_to: self.valid_to() })
    }

    /// Where the file ends when it ends behind what is kept: not behind a head alone.
    fn valid_to(&self) -> u64 {
        match self.keep.batch {
            Some(batch) if self.keep.at == batch.body => batch.head_at,
            _ => self.keep.at,
        }
    }

    /// The end is reached; `None` when a batch is still to be closed.
    fn end(&mut self) -> Result<Option<End>, ReadError> {
        if self.batch.is_some_and(|batch| batch.is_whole && self.at >= batch.end) {
            self.close_batch()?;
            return Ok(None);
        }
        if let (Some(start), None) = (self.transaction, self.tail) {
            if self.place != Place::Last {
                return Err(self.damage(start, Fault::Transaction));
            }
            self.tail = Some((start, Fault::Transaction));
        }
        let file_end = self.window.end();
        let valid_to = self.valid_to();
        let tail = self.tail.map(|(offset, fault)| {
            let dropped = file_end.saturating_sub(valid_to);
            Tail { offset, fault, dropped }
        });
        let Keep { at, batch, commands, unsealed, .. } = self.keep;
        let kept = batch.filter(|batch| at > batch.body);
        let log_end = kept.map(|batch| batch.log_at(at)).or(self.keep.log_end);
        let ends_with_batch = kept.is_some() || self.batch_end == Some(at) && log_end.is_some();
        let repair = self.repair()?;
        Ok(Some(End { valid_to, log_end, ends_with_batch, commands, unsealed, tail, repair }))
    }

    /// What makes the file end behind the last whole command or transaction that was read, if it
    /// does not yet: at the end, or where it is damaged.
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

const SECTOR_BYTES: u64 = 512;

/// Whether a whole sector of the file within the bytes at a position is zeros.
fn has_zero_sector(bytes: &[u8], at: u64) -> bool {
    let first = (at.next_multiple_of(SECTOR_BYTES) - at) as usize;
    let sectors = bytes.get(first..).unwrap_or_default().chunks_exact(SECTOR_BYTES as usize);
    sectors.into_iter().any(|sector| sector.iter().all(|byte| *byte == 0))
}

fn is(name: &[u8], wanted: &[u8]) -> bool {
    name.eq_ignore_ascii_case(wanted)
}
