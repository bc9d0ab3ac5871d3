//! Batches on their way to the disk: bytes of the log with what goes before them in the file.
//!
//! ```text
//! head of the batch │ timestamp, when a second has passed │ SELECT, first of a file │ bytes
//! ```
//!
//! Nothing is copied: the log's bytes go to the disk from where they are, in two parts when they
//! lie around the end of a ring.

use base::number;

use super::annotations::{Head, push_timestamp};
use crate::crc64::Crc64;

/// Bytes of the log, whole commands each.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The bytes; the second part may be empty.
    pub parts: [&'a [u8]; 2],
    /// The position in the log behind them.
    pub end: u64,
    /// The time in seconds since 1970, if it is to be written: `aof-timestamp-enabled`.
    pub unix_seconds: Option<i64>,
}

impl Batch<'_> {
    /// Bytes of the log.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes what goes before the bytes of each batch of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchHeads {
    /// The time that was written last.
    unix_seconds: Option<i64>,
    /// The database of the first command, until it is written.
    database: Option<u64>,
    text: Vec<u8>,
    head: Vec<u8>,
}

/// What goes before the bytes of a batch.
pub(super) struct Prefix<'a> {
    /// The head.
    pub(super) head: &'a [u8],
    /// What the head counts with the bytes.
    pub(super) text: &'a [u8],
}

impl BatchHeads {
    /// Those of a file whose first command is for this database.
    pub(super) fn of_file(database: Option<u64>) -> Self {
        Self { database, ..Self::default() }
    }

    /// What goes before a batch at a place of a file, of which so many bytes are certain to be on
    /// the disk. The same again until [`written`](Self::written) is called.
    pub(super) fn prefix(&mut self, batch: &Batch<'_>, at: u64, synced: u64) -> Prefix<'_> {
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
        Head { bytes, unsynced, end: batch.end, checksum: 0 }.push(&mut self.head, at, crc);
        Prefix { head: &self.head, text: &self.text }
    }

    /// The batch has been written.
    pub(super) fn written(&mut self, batch: &Batch<'_>) {
        self.database = None;
        self.unix_seconds = self.unix_seconds.max(batch.unix_seconds);
    }
}

fn push_select(out: &mut Vec<u8>, database: u64) {
    let mut digits = Vec::with_capacity(number::INTEGER_BYTES_MAX);
    number::push_u64(&mut digits, database);
    push_command(out, &[b"SELECT", &digits]);
}

/// Appends a command as it stands in a file.
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
