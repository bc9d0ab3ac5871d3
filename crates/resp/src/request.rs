//! Parses bytes that arrive in any parts into requests.
//!
//! ```text
//!            '*' count          last argument
//!   Start ------------> Count(n) ------------> complete
//!     |                  |    ^
//!     | inline line      |    | '$' len, bytes        an incomplete long argument leaves by
//!     v                  v    |                       `Parsed::Big` and returns by
//!   complete            Argument                      `Parser::big_received`
//! ```
//!
//! A [`Parser`] remembers its position in a request, so each byte is read once. The connection owns
//! the buffer. The spans of the arguments go to a list that the caller reuses. Limits and error
//! texts, which clients see, are those of Redis. As in Redis, any byte after a carriage return
//! counts as the line feed.

use std::fmt;
use std::sync::Arc;

use base::number::parse_i64;
use base::quote::split_args;
use memchr::memchr;

use crate::args::Span;

/// An incomplete argument of at least this length gets its own buffer.
pub const BIG_BYTES_MIN: usize = 32 * 1024;
/// The longest inline request and the longest header line.
pub const LINE_BYTES_MAX: usize = 64 * 1024;
/// The most arguments of one request.
pub const ARGUMENTS_MAX: i64 = i32::MAX as i64;
/// The most arguments before authentication.
pub const ARGUMENTS_UNAUTHENTICATED_MAX: i64 = 10;
/// The longest argument before authentication.
pub const BULK_UNAUTHENTICATED_BYTES_MAX: i64 = 16 * 1024;

/// The limits of a client's requests.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest argument, `proto-max-bulk-len`.
    pub bulk_bytes_max: i64,
    /// Whether the client has authenticated, or does not have to.
    pub authenticated: bool,
}

/// A protocol error. The connection is closed after the error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// An inline request without a line end.
    InlineTooBig,
    /// An inline request with an open quote.
    UnbalancedQuotes,
    /// A count line without a line end.
    CountLineTooBig,
    /// A count that is not a number or exceeds the limit.
    InvalidCount,
    /// Too many arguments for a client that has not authenticated.
    UnauthenticatedCount,
    /// A length line without a line end.
    LengthLineTooBig,
    /// Another byte where an argument should start.
    ExpectedDollar(u8),
    /// A length that is not a number, is negative or exceeds the limit.
    InvalidLength,
    /// An argument too long for a client that has not authenticated.
    UnauthenticatedLength,
    /// There is not enough memory for an argument of this length.
    OutOfMemory,
}

impl ProtocolError {
    /// The text for the client, with the received byte.
    pub fn text(&self) -> Vec<u8> {
        let mut text = self.to_string().into_bytes();
        if let Self::ExpectedDollar(byte) = self {
            text.extend_from_slice(&[b' ', b'\'', *byte, b'\'']);
        }
        text
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR Protocol error: ")?;
        f.write_str(match self {
            Self::InlineTooBig => "too big inline request",
            Self::UnbalancedQuotes => "unbalanced quotes in request",
            Self::CountLineTooBig => "too big mbulk count string",
            Self::InvalidCount => "invalid multibulk length",
            Self::UnauthenticatedCount => "unauthenticated multibulk length",
            Self::LengthLineTooBig => "too big bulk count string",
            // The byte may not be a character; `ProtocolError::text` has it.
            Self::ExpectedDollar(_) => "expected '$', got",
            Self::InvalidLength => "invalid bulk length",
            Self::UnauthenticatedLength => "unauthenticated bulk length",
            Self::OutOfMemory => "out of memory for a bulk of this length",
        })
    }
}

impl std::error::Error for ProtocolError {}

/// The result of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A request ends before this offset. Skip a request without arguments.
    Request(usize),
    /// More bytes are needed.
    Incomplete,
    /// More bytes are needed for an argument of `len` bytes that starts at `start`. Receive it into
    /// its own buffer of `len` and two more bytes, and pass that to `big_received`.
    Big {
        /// Offset of the argument's first byte.
        start: usize,
        /// The argument's length without the line end.
        len: usize,
    },
}

/// The position in one request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parser {
    /// The offset of the first unread byte.
    at: usize,
    /// The number of missing arguments; 0 between requests.
    remaining: i64,
}

impl Parser {
    /// A parser at the start of a request, which is at offset `at`.
    #[inline]
    pub fn new(at: usize) -> Self {
        Self { at, remaining: 0 }
    }

    /// The offset of the first unread byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Adjusts to the removal of `bytes` bytes, which were read, from the front of the buffer.
    pub fn rewind(&mut self, bytes: usize) {
        self.at -= bytes;
    }

    /// Reads `buffer` up to the end of one request, and adds its arguments to `spans`. After
    /// `Incomplete` and `Big`, call it again with the same spans when the buffer has grown.
    ///
    /// # Errors
    /// If the bytes break the protocol or a limit.
    #[inline]
    pub fn advance(
        &mut self,
        buffer: &[u8],
        limits: Limits,
        spans: &mut Vec<Span>,
        own: &mut Vec<Arc<Vec<u8>>>,
    ) -> Result<Parsed, ProtocolError> {
        if self.remaining == 0 {
            match buffer.get(self.at) {
                None => return Ok(Parsed::Incomplete),
                Some(b'*') => {
                    let Some((count, next)) = number_line(buffer, self.at + 1) else {
                        return too_long(buffer, self.at, ProtocolError::CountLineTooBig);
                    };
                    let count = count.ok_or(ProtocolError::InvalidCount)?;
                    check_count(count, limits)?;
                    self.at = next;
                    if count <= 0 {
                        return Ok(Parsed::Request(next));
                    }
                    self.remaining = count;
                }
                Some(_) => return self.inline(buffer, spans, own),
            }
        }
        while self.remaining > 0 {
            let Some(&first) = buffer.get(self.at) else { return Ok(Parsed::Incomplete) };
            if first != b'$' {
                // Redis searches for the line end first.
                if memchr(b'\r', &buffer[self.at..]).is_none() {
                    return too_long(buffer, self.at, ProtocolError::LengthLineTooBig);
                }
                return Err(ProtocolError::ExpectedDollar(first));
            }
            let Some((len, start)) = number_line(buffer, self.at + 1) else {
                return too_long(buffer, self.at, ProtocolError::LengthLineTooBig);
            };
            let len = check_len(len, limits)?;
            let end = start + len;
            if buffer.len() < end + 2 {
                // The next call reads the header again, which is only a few bytes.
                let big = len >= BIG_BYTES_MIN;
                return Ok(if big { Parsed::Big { start, len } } else { Parsed::Incomplete });
            }
            spans.push(Span::new(start, len));
            self.at = end + 2;
            self.remaining -= 1;
        }
        Ok(Parsed::Request(self.at))
    }

    /// Takes the buffer of the argument of `Parsed::Big`, without its line end. The caller has cut
    /// the query buffer at the argument's start, where parsing continues.
    pub fn big_received(
        &mut self,
        start: usize,
        argument: Vec<u8>,
        spans: &mut Vec<Span>,
        own: &mut Vec<Arc<Vec<u8>>>,
    ) {
        spans.push(Span::own(own.len()));
        own.push(Arc::new(argument));
        self.at = start;
        self.remaining -= 1;
    }

    /// Whether `big_received` completed the request.
    pub fn is_between_requests(&self) -> bool {
        self.remaining == 0
    }

    fn inline(
        &mut self,
        buffer: &[u8],
        spans: &mut Vec<Span>,
        own: &mut Vec<Arc<Vec<u8>>>,
    ) -> Result<Parsed, ProtocolError> {
        let rest = &buffer[self.at..];
        let Some(len) = memchr(b'\n', rest) else {
            return too_long(buffer, self.at, ProtocolError::InlineTooBig);
        };
        let line = rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]);
        let args = split_args(line).ok_or(ProtocolError::UnbalancedQuotes)?;
        for arg in args {
            spans.push(Span::own(own.len()));
            own.push(Arc::new(arg));
        }
        self.at += len + 1;
        Ok(Parsed::Request(self.at))
    }
}

fn too_long(buffer: &[u8], at: usize, error: ProtocolError) -> Result<Parsed, ProtocolError> {
    if buffer.len() - at > LINE_BYTES_MAX { Err(error) } else { Ok(Parsed::Incomplete) }
}

fn check_count(count: i64, limits: Limits) -> Result<(), ProtocolError> {
    if count > ARGUMENTS_MAX {
        Err(ProtocolError::InvalidCount)
    } else if count > ARGUMENTS_UNAUTHENTICATED_MAX && !limits.authenticated {
        Err(ProtocolError::UnauthenticatedCount)
    } else {
        Ok(())
    }
}

#[inline]
fn check_len(len: Option<i64>, limits: Limits) -> Result<usize, ProtocolError> {
    match len {
        Some(len) if len >= 0 && len <= limits.bulk_bytes_max => {
            if len > BULK_UNAUTHENTICATED_BYTES_MAX && !limits.authenticated {
                return Err(ProtocolError::UnauthenticatedLength);
            }
            usize::try_from(len).map_err(|_| ProtocolError::InvalidLength)
        }
        _ => Err(ProtocolError::InvalidLength),
    }
}

/// The number on the line that starts at `at`, and the offset after the line. `None` if the line
/// has no end yet; the inner value is `None` if it is not a number.
#[inline]
fn number_line(buffer: &[u8], at: usize) -> Option<(Option<i64>, usize)> {
    let digit = |byte: u8| i64::from(byte - b'0');
    // Nearly every line has one to three digits, and the byte after its end has arrived.
    match buffer.get(at..)? {
        [a @ b'0'..=b'9', b'\r', _, ..] => Some((Some(digit(*a)), at + 3)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', _, ..] => {
            Some((Some(digit(*a) * 10 + digit(*b)), at + 4))
        }
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', _, ..] => {
            Some((Some(digit(*a) * 100 + digit(*b) * 10 + digit(*c)), at + 5))
        }
        _ => any_number_line(buffer, at),
    }
}

/// The same for lines of any length.
#[inline(never)]
fn any_number_line(buffer: &[u8], at: usize) -> Option<(Option<i64>, usize)> {
    let len = memchr(b'\r', &buffer[at..])?;
    let next = at + len + 2;
    (next <= buffer.len()).then(|| (parse_i64(&buffer[at..at + len]), next))
}
