//! Input of a client that is not a whole request yet, or that did not fit the turn's buffer.
//!
//! Most clients never have one: their requests arrive whole and are executed from the thread's
//! buffer. A client whose request came in part keeps the bytes here, with the parser's progress, so
//! that they are looked at once. An argument of `BIG_BYTES_MIN` or more is received straight into a
//! buffer of its own, which a command may then keep as the value.

use std::io::{self, Read};
use std::sync::Arc;

use resp::{Limits, Parsed, Parser, ProtocolError, Span};

/// An argument of a declared length gets that much memory only when this much of it has arrived, so
/// that a declaration by itself costs nothing.
const TRUSTED_BYTES: usize = 1 << 20;
/// Most bytes of a big argument read in a turn, so that a fast sender does not keep the thread from
/// other clients.
const READ_BYTES_MAX: usize = 1 << 20;
/// Room for unfinished input that is kept when most of it has been executed.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Unfinished input.
#[derive(Debug, Default)]
pub struct QueryBuffer {
    /// Bytes from the first request that has not been executed.
    pub query: Vec<u8>,
    parser: Parser,
    /// Arguments of the request in progress.
    spans: Vec<Span>,
    /// Arguments with buffers of their own: of requests executed this turn, then in progress.
    pub own: Vec<Arc<Vec<u8>>>,
    /// The bytes in `own`.
    own_bytes: usize,
    big: Option<Big>,
    /// Arguments that were looked at again after they had been parsed.
    #[cfg(test)]
    visited: usize,
}

/// A big argument on its way.
#[derive(Debug)]
struct Big {
    start: usize,
    len: usize,
    bytes: Vec<u8>,
}

impl Big {
    /// How much more memory it takes to read on.
    fn wanted_bytes(&self) -> usize {
        if self.bytes.len() < self.bytes.capacity() {
            return 0;
        }
        let missing = self.len + 2 - self.bytes.len();
        let room = if self.bytes.len() >= TRUSTED_BYTES { missing } else { TRUSTED_BYTES };
        room.min(missing)
    }
}

/// A request that is complete in a [`QueryBuffer`].
#[derive(Clone, Copy, Debug)]
pub struct Complete {
    /// Offset of its end in `query`.
    pub end: usize,
    /// Its arguments, appended to the caller's list, begin there.
    pub spans_start: usize,
}

impl QueryBuffer {
    pub fn new(bytes: &[u8]) -> Self {
        Self { query: bytes.to_vec(), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        let spans = self.spans.len() * size_of::<Span>();
        let big = self.big.as_ref().map_or(0, |big| big.bytes.len());
        self.query.len() + self.own_bytes + spans + big
    }

    /// The same as CLIENT LIST shows it: as in Redis, the header of a long first argument counts as
    /// read.
    pub fn shown_len(&self) -> usize {
        match &self.big {
            Some(big) if self.spans.is_empty() && self.own.is_empty() => big.bytes.len(),
            _ => self.len(),
        }
    }

    /// Whether it is empty, so that the client no longer needs a query buffer.
    pub fn is_empty(&self) -> bool {
        self.query.is_empty() && self.big.is_none() && self.spans.is_empty()
    }

    /// How much memory the next read takes beyond the bytes read through `scratch`.
    pub fn wanted_bytes(&self) -> usize {
        self.big.as_ref().map_or(0, Big::wanted_bytes)
    }

    /// Reads once from `source`: into the big argument if one is on its way, else through
    /// `scratch`. Returns how many bytes came; 0 at the end of the stream.
    ///
    /// # Errors
    /// The socket's error, such as `WouldBlock`; and `OutOfMemory`.
    pub fn receive(&mut self, source: &mut impl Read, scratch: &mut [u8]) -> io::Result<usize> {
        let Some(big) = &mut self.big else {
            let count = source.read(scratch)?;
            self.query.extend_from_slice(&scratch[..count]);
            return Ok(count);
        };
        let missing = big.len + 2 - big.bytes.len();
        let room = big.wanted_bytes();
        if room > 0 {
            big.bytes.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
        }
        let room = (big.bytes.capacity() - big.bytes.len()).min(missing).min(READ_BYTES_MAX);
        let before = big.bytes.len();
        // Stops at the bytes that have arrived: `read_to_end` returns them next to the error.
        let result = source.take(room as u64).read_to_end(&mut big.bytes);
        let count = big.bytes.len() - before;
        match result {
            Err(error) if count == 0 => Err(error),
            _ => Ok(count),
        }
    }

    /// The next complete request; its arguments are appended to `spans`.
    ///
    /// # Errors
    /// When the bytes break the protocol or a limit.
    pub fn next(
        &mut self,
        limits: Limits,
        spans: &mut Vec<Span>,
    ) -> Result<Option<Complete>, ProtocolError> {
        if let Some(big) = &mut self.big {
            if big.bytes.len() < big.len + 2 {
                return Ok(None);
            }
            let mut bytes = std::mem::take(&mut big.bytes);
            bytes.truncate(big.len);
            let start = big.start;
            self.big = None;
            self.own_bytes += bytes.len();
            self.parser.big_received(start, bytes, &mut self.spans, &mut self.own);
            if self.parser.is_between_requests() {
                return Ok(Some(self.complete(start, spans)));
            }
        }
        let owns = self.own.len();
        match self.parser.advance(&self.query, limits, &mut self.spans, &mut self.own)? {
            Parsed::Request(end) => {
                // Those of an inline request.
                self.own_bytes += bytes_of(&self.own[owns..]);
                Ok(Some(self.complete(end, spans)))
            }
            Parsed::Incomplete => Ok(None),
            Parsed::Big { start, len } => {
                let bytes = self.query.split_off(start);
                self.big = Some(Big { start, len, bytes });
                Ok(None)
            }
        }
    }

    fn complete(&mut self, end: usize, spans: &mut Vec<Span>) -> Complete {
        let spans_start = spans.len();
        spans.append(&mut self.spans);
        Complete { end, spans_start }
    }

    /// Drops the bytes before `end`, the end of the last executed request, and the own buffers that
    /// these requests used.
    pub fn consume(&mut self, end: usize) {
        self.query.drain(..end);
        if self.query.capacity() > KEPT_BYTES_MAX && self.query.len() < KEPT_BYTES_MAX / 2 {
            self.query.shrink_to(KEPT_BYTES_MAX / 2);
        }
        if end == 0 {
            // No request was executed. A request of many arguments arrives in many parts, and its
            // arguments so far need no visit for each part.
            return;
        }
        #[cfg(test)]
        {
            self.visited += self.spans.len();
        }
        // A buffer is in use as long as the request in progress names it.
        let kept = self.spans.iter().filter(|span| span.is_own()).count();
        let owns = self.own.len() - kept;
        self.own_bytes -= bytes_of(&self.own[..owns]);
        self.own.drain(..owns);
        if self.spans.is_empty() {
            base::room::clear(&mut self.spans, KEPT_BYTES_MAX);
        }
        for span in &mut self.spans {
            *span = span.moved(end, owns);
        }
        self.parser.rewind(end);
        if let Some(big) = &mut self.big {
            big.start -= end;
        }
    }
}

fn bytes_of(own: &[Arc<Vec<u8>>]) -> usize {
    own.iter().map(|own| own.len()).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { bulk_bytes_max: 1 << 29, authenticated: true };

    /// Parses what has arrived, and drops what is complete, as a turn does. Returns how many
    /// requests were complete.
    fn turn(buffer: &mut QueryBuffer, bytes: &[u8]) -> usize {
        let mut input = bytes;
        let mut scratch = vec![0; bytes.len()];
        let (mut requests, mut consumed) = (0, 0);
        while !input.is_empty() {
            buffer.receive(&mut input, &mut scratch).unwrap();
            while let Some(complete) = buffer.next(LIMITS, &mut Vec::new()).unwrap() {
                (requests, consumed) = (requests + 1, complete.end);
            }
        }
        buffer.consume(consumed);
        requests
    }

    /// Otherwise such a request costs the square of its arguments.
    #[test]
    fn arguments_of_a_request_in_progress_are_visited_once() {
        let mut buffer = QueryBuffer::new(b"PING\r\n*1000000\r\n$0\r\n\r\n");
        assert_eq!(turn(&mut buffer, b"$0\r\n\r\n"), 1);
        assert_eq!((buffer.spans.len(), buffer.visited), (2, 2));
        for _ in 0..1000 {
            assert_eq!(turn(&mut buffer, &b"$0\r\n\r\n".repeat(10)), 0);
        }
        assert_eq!((buffer.spans.len(), buffer.visited), (10_002, 2));
    }

    #[test]
    fn own_buffers_count_until_their_request_is_executed() {
        let mut buffer = QueryBuffer::new(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$40000\r\nx");
        assert_eq!(turn(&mut buffer, b"x"), 0);
        assert!(buffer.len() < 1000);
        assert_eq!(turn(&mut buffer, &[b'x'; 39_998]), 0);
        assert!(buffer.len() > 40_000);
        assert_eq!(turn(&mut buffer, b"\r\n"), 1);
        assert_eq!((buffer.own_bytes, buffer.len(), buffer.is_empty()), (0, 0, true));
        assert_eq!(turn(&mut buffer, b"SET k v\r\n"), 1);
        assert_eq!((buffer.own_bytes, buffer.len()), (0, 0));
    }
}
