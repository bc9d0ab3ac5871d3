//! Identifiers of entries in requests and replies: `ms-seq`.

use base::number::{parse_u64, write_u64};
use ds::stream::Id;
use resp::Reply;

use crate::error::Error;
use crate::error::stream::StreamError;

/// Longer texts are not IDs.
const TEXT_BYTES_MAX: usize = 127;
/// Two numbers of 20 digits and their separator.
const SHOWN_BYTES_MAX: usize = 41;

/// The ID in XADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// `*`: the time and a free sequence.
    Now,
    /// `ms-*`: a free sequence in this millisecond.
    In(u64),
    /// Exactly this one.
    At(Id),
}

/// An identifier, with the sequence `seq` if it has none.
pub(super) fn parse(text: &[u8], seq: u64) -> Result<Id, Error> {
    match parts(text) {
        Some((ms, None)) => Ok(Id::new(ms, seq)),
        Some((ms, Some(seq))) => Ok(Id::new(ms, number(seq).ok_or(StreamError::Id)?)),
        None => Err(StreamError::Id.into()),
    }
}

/// An identifier, where `-` and `+` are the lowest and the highest.
pub(super) fn parse_end(text: &[u8], seq: u64) -> Result<Id, Error> {
    match text {
        b"-" => Ok(Id::MIN),
        b"+" => Ok(Id::MAX),
        _ => parse(text, seq),
    }
}

pub(super) fn parse_new(text: &[u8]) -> Result<NewId, Error> {
    match parts(text) {
        Some((ms, Some(b"*"))) => Ok(NewId::In(ms)),
        _ => parse(text, 0).map(NewId::At),
    }
}

/// The first identifier of an interval, exclusive after a bracket.
pub(super) fn parse_from(text: &[u8]) -> Result<Id, Error> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => {
            Ok(parse(id, 0)?.next().ok_or(StreamError::IntervalStart)?)
        }
        _ => parse_end(text, 0),
    }
}

/// The last identifier of an interval, exclusive after a bracket.
pub(super) fn parse_to(text: &[u8]) -> Result<Id, Error> {
    match text {
        [b'(', id @ ..] if !id.is_empty() => {
            Ok(parse(id, u64::MAX)?.previous().ok_or(StreamError::IntervalEnd)?)
        }
        _ => parse_end(text, u64::MAX),
    }
}

/// The milliseconds, and the text of the sequence if there is one.
fn parts(text: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    match text.iter().position(|byte| *byte == b'-') {
        Some(at) => Some((number(&text[..at])?, Some(&text[at + 1..]))),
        None => Some((number(text)?, None)),
    }
}

/// A number. Redis leaves unusual spellings to the C library, so leading zeros, a plus and blanks
/// are no errors.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(value) = parse_u64(text) {
        return Some(value);
    }
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let zeros = text.iter().take_while(|byte| **byte == b'0').count();
    match &text[zeros..] {
        [] => (zeros > 0).then_some(0),
        digits => parse_u64(digits),
    }
}

/// An identifier as text.
#[derive(Clone, Copy)]
pub(super) struct ShownId {
    bytes: [u8; SHOWN_BYTES_MAX],
    len: usize,
}

impl ShownId {
    pub(super) fn new(id: Id) -> Self {
        let mut bytes = [0; SHOWN_BYTES_MAX];
        let mut len = write_u64(id.ms, &mut bytes);
        bytes[len] = b'-';
        len += 1;
        len += write_u64(id.seq, &mut bytes[len..]);
        Self { bytes, len }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// An ID as an owned text, for replays.
pub(super) fn to_vec(id: Id) -> Vec<u8> {
    ShownId::new(id).as_bytes().to_vec()
}

#[inline]
pub(super) fn reply_id(reply: &mut Reply<'_>, id: Id) {
    reply.bulk(ShownId::new(id).as_bytes());
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_of_all_spellings() {
        for (text, ms, seq) in [
            ("0", 0, 7),
            ("5", 5, 7),
            ("5-3", 5, 3),
            ("0005-03", 5, 3),
            ("+5", 5, 7),
            (" 5", 5, 7),
            ("18446744073709551615-18446744073709551615", u64::MAX, u64::MAX),
        ] {
            assert_eq!(parse(text.as_bytes(), 7), Ok(Id::new(ms, seq)), "{text}");
        }
        for text in ["", "-", "+", "-5", "5-", "5--3", "x", "5-x", "5-*", "5 ", "1-2-3", "(5"] {
            assert_eq!(parse(text.as_bytes(), 0), Err(StreamError::Id.into()), "{text}");
        }
        let digits = "18446744073709551616";
        assert!(parse(digits.as_bytes(), 0).is_err());
        assert!(parse(&[b'0'; 127], 0).is_ok() && parse(&[b'0'; 128], 0).is_err());
    }

    #[test]
    fn new_identifiers_may_omit_the_sequence() {
        assert_eq!(parse_new(b"5-*"), Ok(NewId::In(5)));
        assert_eq!(parse_new(b"5"), Ok(NewId::At(Id::new(5, 0))));
        assert!(parse_new(b"*-5").is_err() && parse_new(b"+").is_err());
    }

    #[test]
    fn intervals_exclude_ends_after_a_bracket() {
        assert_eq!(parse_from(b"(5-1"), Ok(Id::new(5, 2)));
        assert_eq!(parse_from(b"-"), Ok(Id::MIN));
        assert_eq!(parse_to(b"5"), Ok(Id::new(5, u64::MAX)));
        assert_eq!(parse_to(b"(5-0"), Ok(Id::new(4, u64::MAX)));
        assert_eq!(parse_to(b"+"), Ok(Id::MAX));
        assert_eq!(parse_to(b"(0-0"), Err(StreamError::IntervalEnd.into()));
        let highest = b"(18446744073709551615-18446744073709551615";
        assert_eq!(parse_from(highest), Err(StreamError::IntervalStart.into()));
        assert!(parse_from(b"(").is_err() && parse_from(b"(-").is_err());
    }

    #[test]
    fn the_longest_fits() {
        let shown = ShownId::new(Id::MAX);
        assert_eq!(shown.as_bytes(), b"18446744073709551615-18446744073709551615");
        assert_eq!(to_vec(Id::new(0, 10)), b"0-10");
    }
}
