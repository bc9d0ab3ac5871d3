//! The end of the first line of a manifest that Weft writes: the log that continues where the files
//! end, and a checksum. Other servers ignore these words, and drop them when they write the
//! manifest.
//!
//! ```text
//! file NAME seq 1 type b log 000102030405060708090a0b0c0d0e0f checksum 0123456789abcdef
//!                                                                      CRC64 of all other bytes
//! ```

use super::annotations::hex;
use crate::crc64::Crc64;

/// The word before a log, and the word before a checksum.
pub(super) const LOG: &str = "log";
const CHECKSUM: &str = "checksum";
const MARK: &[u8] = b" checksum ";
const DIGITS: usize = 16;

/// Identifies a log. Each start of a server begins a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(pub [u64; 2]);

/// Adds the seal to the first line of a text.
pub(super) fn sealed(text: &[u8], log: Option<LogId>) -> Vec<u8> {
    let Some(end) = memchr::memchr(b'\n', text) else { return text.to_vec() };
    let (mut line, rest) = (text[..end].to_vec(), &text[end..]);
    if let Some(LogId([high, low])) = log {
        line.extend_from_slice(format!(" {LOG} {high:016x}{low:016x}").as_bytes());
    }
    line.extend_from_slice(MARK);
    let checksum = checksum(&line, rest);
    [&line[..], format!("{checksum:016x}").as_bytes(), rest].concat()
}

fn checksum(before: &[u8], after: &[u8]) -> u64 {
    let mut crc = Crc64::new();
    crc.update(before);
    crc.update(after);
    crc.value()
}

/// Whether the checksum of a text is right. True for a text without a checksum.
pub(super) fn is_intact(text: &[u8]) -> bool {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let Some(mark) = memchr::memmem::rfind(line, MARK) else { return true };
    let start = mark + MARK.len();
    let Some(stored) = hex(&line[start..], DIGITS) else { return false };
    stored == checksum(&text[..start], &text[start + DIGITS..])
}

/// Whether a pair of words is a checksum, or was one before its name was damaged.
pub(super) fn is_checksum(word: &[u8], value: &[u8]) -> bool {
    word.len() == CHECKSUM.len() && hex(value, DIGITS).is_some()
}

/// Parses the name of a log.
pub(super) fn log(value: &[u8]) -> Option<LogId> {
    let (high, low) = value.split_at_checked(DIGITS)?;
    Some(LogId([hex(high, DIGITS)?, hex(low, DIGITS)?]))
}
