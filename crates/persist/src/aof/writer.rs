//! Writes batches: bytes of the log, and what precedes them in the file.
//!
//! ```text
//! head of the batch │ timestamp, once a second │ SELECT, at the beginning of a file │ bytes
//! ```
//!
//! The bytes are written from where they are in the log, without a copy, and in two parts where
//! they wrap around the end of a ring.

use base::number;

use super::annotations::{BatchHead, push_timestamp};
use crate::crc64::Crc64;

/// The name of the command that selects a database, as the log has it.
const SELECT: &[u8] = b"SELECT";
/// The rest of the command for the database in which loading a file begins.
const FIRST: &[u8] = b"\r\n$1\r\n0\r\n";

/// Complete commands of the log.
#[derive(Clone, Copy, Debug)]
pub struct AofBatch<'a> {
    /// The bytes; the second part may be empty.
    pub parts: [&'a [u8]; 2],
    /// The position in the log after them.
    pub end: u64,
    /// The time in seconds since 1970, if timestamps are written: `aof-timestamp-enabled`.
    pub unix_seconds: Option<i64>,
}

impl AofBatch<'_> {
    /// How many bytes of the log they are.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes what precedes the bytes of each batch of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct HeadWriter {
    /// The last timestamp that was written.
    unix_seconds: Option<i64>,
    /// The database of the first command, until its SELECT was written.
    database: Option<u64>,
    /// Where the last batch begins that may select a database. `None` if database 0 is selected
    /// since the file began.
    selected_at: Option<u64>,
    text: Vec<u8>,
    head: Vec<u8>,
}

/// The bytes that precede those of a batch.
pub(super) struct BatchPrefix<'a> {
    /// The head.
    pub(super) head: &'a [u8],
    /// The timestamp and SELECT, which the head counts with the bytes.
    pub(super) text: &'a [u8],
}

impl HeadWriter {
    /// The writer of a file whose first command is for this database.
    pub(super) fn of_file(database: Option<u64>) -> Self {
        Self { database, ..Self::default() }
    }

    /// The writer that continues a file of so many bytes, which may end in any database.
    pub(super) fn after(bytes: u64) -> Self {
        Self { selected_at: bytes.checked_sub(1), ..Self::default() }
    }

    /// Writes what precedes a batch at position `at` of a file whose first `synced` bytes are
    /// durable. Returns the same again until [`written`](Self::written) is called.
    pub(super) fn prefix(&mut self, batch: &AofBatch<'_>, at: u64, synced: u64) -> BatchPrefix<'_> {
        self.text.clear();
        self.head.clear();
        if let Some(now) = batch.unix_seconds.filter(|now| self.unix_seconds < Some(*now)) {
            push_timestamp(&mut self.text, now);
        }
        if let Some(database) = self.database {
            push_select(&mut self.text, database);
        }
        let mut crc = Crc64::new();
        crc.update(&self.text);
        batch.parts.iter().for_each(|part| crc.update(part));
        let bytes = self.text.len() as u64 + batch.len();
        let unsynced = at.saturating_sub(synced);
        let selected = self.selected_at.map_or(0, |selected| at.saturating_sub(selected));
        let head = BatchHead { bytes, unsynced, end: batch.end, selected, checksum: 0 };
        head.push(&mut self.head, at, crc);
        BatchPrefix { head: &self.head, text: &self.text }
    }

    /// Notes that the batch was written at this position of the file.
    pub(super) fn written(&mut self, batch: &AofBatch<'_>, at: u64) {
        let is_first = self.selected_at.is_none();
        if self.database.is_some() || selects(batch.parts, is_first) {
            self.selected_at = Some(at);
        }
        self.database = None;
        self.unix_seconds = self.unix_seconds.max(batch.unix_seconds);
    }
}

/// Whether commands may select a database, or another one than the first if that `is_first` one is
/// selected. Values with the word count as well: then fewer batches are kept after damage.
fn selects(parts: [&[u8]; 2], is_first: bool) -> bool {
    // The log gives one part, unless it wraps around.
    let joined = if parts[1].is_empty() { Vec::new() } else { parts.concat() };
    let bytes = if joined.is_empty() { parts[0] } else { &joined };
    let mut found = memchr::memmem::find_iter(bytes, SELECT);
    found.any(|at| !(is_first && bytes[at + SELECT.len()..].starts_with(FIRST)))
}

fn push_select(out: &mut Vec<u8>, database: u64) {
    let mut digits = Vec::with_capacity(number::INTEGER_BYTES_MAX);
    number::push_u64(&mut digits, database);
    push_command(out, &[b"SELECT", &digits]);
}

/// Appends a command in the form of the file.
pub fn push_command(out: &mut Vec<u8>, args: &[&[u8]]) {
    out.push(b'*');
    number::push_u64(out, args.len() as u64);
    out.extend_from_slice(b"\r\n");
    for arg in args {
        out.push(b'$');
        number::push_u64(out, arg.len() as u64);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
