//! What the first line of a manifest from here ends with: which log goes on where the files end,
//! and a checksum. Other servers pass over pairs of unknown words, and drop them when they write
//! the manifest.
//!
//! ```text
//! file NAME seq 1 type b log 000102030405060708090a0b0c0d0e0f checksum 0123456789abcdef
//!                                                                      CRC64 of all other bytes
//! ```

use super::annotations::hex;
use super::manifest::Fault;
use crate::crc64::Crc64;

/// The word in front of a log, and that in front of a checksum.
pub(super) const LOG: &str = "log";
const CHECKSUM: &str = "checksum";
const MARK: &[u8] = b" checksum ";
const DIGITS: usize = 16;

/// What tells one log from another. Each start of a server begins a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(pub [u64; 2]);

/// A text with the seal at the end of its first line.
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

fn checksum(before: &[u8], behind: &[u8]) -> u64 {
    let mut crc = Crc64::new();
    crc.update(before);
    crc.update(behind);
    crc.value()
}

/// Looks at the checksum of a text, if its first line has one.
///
/// # Errors
/// When it is wrong.
pub(super) fn check(text: &[u8]) -> Result<(), Fault> {
    let line = &text[..memchr::memchr(b'\n', text).unwrap_or(text.len())];
    let Some(mark) = memchr::memmem::rfind(line, MARK) else { return Ok(()) };
    let start = mark + MARK.len();
    let stored = hex(&line[start..], DIGITS).ok_or(Fault::Checksum)?;
    match stored == checksum(&text[..start], &text[start + DIGITS..]) {
        true => Ok(()),
        false => Err(Fault::Checksum),
    }
}

/// Whether a pair of words is a checksum, or was one before its name was damaged.
pub(super) fn is_checksum(word: &[u8], value: &[u8]) -> bool {
    word.len() == CHECKSUM.len() && hex(value, DIGITS).is_some()
}

/// The log that a word names.
pub(super) fn log(value: &[u8]) -> Option<LogId> {
    let (high, low) = value.split_at_checked(DIGITS)?;
    Some(LogId([hex(high, DIGITS)?, hex(low, DIGITS)?]))
}
