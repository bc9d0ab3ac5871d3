//! Counts complete RESP2 and RESP3 replies in a byte stream and notices errors among them.
//!
//! A request may be several commands: it is answered when all their replies have come, and it is
//! what the [`Tally`] counts. Errors are counted one by one, wherever in a reply they stand.
//! The counter keeps a few words of state and no bytes, so it resumes at any split of the stream
//! and costs next to nothing: bulk bodies are skipped by length, nested replies by one count of the
//! elements still due (no stack, no recursion). It keeps nothing of a reply but the text of the
//! first error. Streamed aggregates (`$?`, `*?`) are not understood: no server sends them.
//! Format: the RESP page of the Redis documentation (protocol versions 2 and 3).

use std::fmt;

/// The longest error text that is kept.
const ERROR_TEXT_BYTES_MAX: usize = 200;

/// A length or element count beyond this is taken for a desynchronised stream.
const COUNT_MAX: u64 = 1 << 40;

/// What answers one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Top-level replies, one for each command of the request.
    pub replies: u64,
    /// The last of them is EXEC's, which is null if a watched key has changed.
    pub is_transaction: bool,
}

impl Answer {
    /// The one reply of an ordinary command.
    pub const ONE_REPLY: Answer = Answer { replies: 1, is_transaction: false };
}

/// What the replies of one load thread added up to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Complete top-level replies; pushes are not replies.
    pub replies: u64,
    /// Requests of which every reply has come.
    pub requests: u64,
    /// Error replies, also those nested in arrays.
    pub errors: u64,
    /// Nulls at any depth, but for those of `aborted`: for a read, keys that were missing.
    pub nulls: u64,
    /// Transactions that EXEC did not execute because a watched key had changed.
    pub aborted: u64,
    /// The text of the first error, without its marker.
    pub first_error: Vec<u8>,
}

/// The stream is not RESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotResp(
    /// The byte that is not valid where it was found.
    pub u8,
);

impl fmt::Display for NotResp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unexpected byte '{}' in a reply", self.0.escape_ascii())
    }
}

/// The position of the stream in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the type byte of an element.
    Kind,
    /// Inside a line whose content does not matter.
    Line,
    /// Inside the line of an error.
    Error,
    /// Inside the decimal count after `$`, `*` and their like; before its first byte it is empty.
    Count { negative: bool, empty: bool },
    /// Inside a body of this many bytes, line end included.
    Body(u64),
}

/// The resumable counter of one connection.
#[derive(Debug)]
pub struct ReplyCounter {
    answer: Answer,
    /// Replies that have come of the current answer.
    replied: u64,
    state: State,
    /// The type byte of the current element.
    kind: u8,
    /// The count read so far.
    count: u64,
    /// Elements still due before the top-level reply is complete.
    due: u64,
    /// The current element is a reply, or a push, and not part of one.
    outermost: bool,
    /// The top-level element is a push, which answers no request.
    push: bool,
    /// The current error is the first and its text is being kept.
    keep: bool,
}

impl Default for ReplyCounter {
    fn default() -> Self {
        ReplyCounter::new(Answer::ONE_REPLY)
    }
}

impl ReplyCounter {
    /// The counter of a connection whose requests are all answered alike.
    pub fn new(answer: Answer) -> Self {
        ReplyCounter {
            answer,
            replied: 0,
            state: State::Kind,
            kind: 0,
            count: 0,
            due: 0,
            outermost: true,
            push: false,
            keep: false,
        }
    }

    /// Takes the next bytes of the stream, adds what they complete to `tally`, and gives the number
    /// of requests whose last reply ended in them.
    ///
    /// # Errors
    /// When the bytes cannot be RESP; the connection is of no use then.
    #[inline]
    pub fn feed(&mut self, mut bytes: &[u8], tally: &mut Tally) -> Result<u64, NotResp> {
        let before = tally.requests;
        while let Some(&first) = bytes.first() {
            match self.state {
                State::Kind => {
                    self.open(first, tally)?;
                    bytes = &bytes[1..];
                }
                State::Count { negative, empty } => {
                    self.count_byte(first, (negative, empty), tally)?;
                    bytes = &bytes[1..];
                }
                State::Body(left) => bytes = self.skip_body(left, bytes, tally),
                State::Line | State::Error => bytes = self.skip_line(bytes, tally),
            }
        }
        Ok(tally.requests - before)
    }

    /// Starts an element at its type byte.
    fn open(&mut self, kind: u8, tally: &mut Tally) -> Result<(), NotResp> {
        self.outermost = self.due == 0;
        if self.outermost {
            self.due = 1;
            self.push = kind == b'>';
        }
        self.kind = kind;
        self.state = match kind {
            b'+' | b':' | b',' | b'#' | b'(' => State::Line,
            b'_' => {
                self.null_found(tally);
                State::Line
            }
            b'-' => {
                self.error_found(tally);
                State::Error
            }
            b'$' | b'=' | b'!' | b'*' | b'%' | b'~' | b'>' | b'|' => {
                self.count = 0;
                State::Count { negative: false, empty: true }
            }
            other => return Err(NotResp(other)),
        };
        Ok(())
    }

    fn error_found(&mut self, tally: &mut Tally) {
        self.keep = tally.errors == 0;
        tally.errors += 1;
    }

    fn null_found(&mut self, tally: &mut Tally) {
        let is_last = self.outermost && self.replied + 1 == self.answer.replies;
        if self.answer.is_transaction && is_last {
            tally.aborted += 1;
        } else {
            tally.nulls += 1;
        }
    }

    fn count_byte(
        &mut self,
        byte: u8,
        (negative, empty): (bool, bool),
        tally: &mut Tally,
    ) -> Result<(), NotResp> {
        match byte {
            b'0'..=b'9' if self.count < COUNT_MAX => {
                self.count = self.count * 10 + u64::from(byte - b'0');
                self.state = State::Count { negative, empty: false };
            }
            b'-' if empty && !negative => self.state = State::Count { negative: true, empty },
            b'\r' if !empty => {}
            // The only length below zero is that of a null.
            b'\n' if negative && self.count == 1 && matches!(self.kind, b'$' | b'*') => {
                self.null_found(tally);
                self.close(0, tally);
            }
            b'\n' if !negative && !empty => self.counted(tally),
            other => return Err(NotResp(other)),
        }
        Ok(())
    }

    /// The count of the current element is known: a body or children follow.
    fn counted(&mut self, tally: &mut Tally) {
        match self.kind {
            b'$' | b'=' | b'!' => {
                if self.kind == b'!' {
                    self.error_found(tally);
                }
                self.state = State::Body(self.count + 2);
            }
            b'%' => self.close(self.count * 2, tally),
            // An attribute precedes an element and does not count as one.
            b'|' => self.close(self.count * 2 + 1, tally),
            _ => self.close(self.count, tally),
        }
    }

    /// Ends the current element, which announced `children` more.
    #[inline]
    fn close(&mut self, children: u64, tally: &mut Tally) {
        self.state = State::Kind;
        self.due = (self.due - 1).saturating_add(children);
        if self.due == 0 && !self.push {
            tally.replies += 1;
            self.replied += 1;
            if self.replied == self.answer.replies {
                self.replied = 0;
                tally.requests += 1;
            }
        }
    }

    #[inline]
    fn skip_body<'a>(&mut self, left: u64, bytes: &'a [u8], tally: &mut Tally) -> &'a [u8] {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        if self.kind == b'!' {
            self.keep_text(&bytes[..here], tally);
        }
        if here as u64 == left {
            self.keep = false;
            self.close(0, tally);
        } else {
            self.state = State::Body(left - here as u64);
        }
        &bytes[here..]
    }

    #[inline]
    fn skip_line<'a>(&mut self, bytes: &'a [u8], tally: &mut Tally) -> &'a [u8] {
        let end = memchr::memchr(b'\n', bytes);
        let line = &bytes[..end.unwrap_or(bytes.len())];
        if self.state == State::Error {
            self.keep_text(line, tally);
        }
        match end {
            Some(end) => {
                self.keep = false;
                self.close(0, tally);
                &bytes[end + 1..]
            }
            None => &[],
        }
    }

    fn keep_text(&mut self, text: &[u8], tally: &mut Tally) {
        if !self.keep {
            return;
        }
        let room = ERROR_TEXT_BYTES_MAX.saturating_sub(tally.first_error.len());
        let printable = text.iter().filter(|byte| !matches!(byte, b'\r' | b'\n'));
        tally.first_error.extend(printable.take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of everything, with what it must add up to.
    const STREAM: &[u8] = b"+OK\r\n$5\r\nhe\r\no\r\n$-1\r\n*-1\r\n:42\r\n-ERR first one\r\n*0\r\n\
        *3\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n-WRONG second\r\n%2\r\n+a\r\n:1\r\n+b\r\n_\r\n\
        >2\r\n+message\r\n$2\r\nhi\r\n~2\r\n#t\r\n,1.5\r\n|1\r\n+ttl\r\n:3\r\n$2\r\nok\r\n\
        =7\r\ntxt:abc\r\n!6\r\nERR no\r\n(12345678901234567890\r\n$0\r\n\r\n";

    fn expected() -> Tally {
        let first_error = b"ERR first one".to_vec();
        Tally { replies: 15, requests: 15, errors: 3, nulls: 3, aborted: 0, first_error }
    }

    #[test]
    fn counts_the_whole_stream() {
        let mut tally = Tally::default();
        assert_eq!(ReplyCounter::default().feed(STREAM, &mut tally), Ok(15));
        assert_eq!(tally, expected());
    }

    #[test]
    fn resumes_at_every_pair_of_splits() {
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
                let parts = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                let sum: u64 = parts.iter().map_while(|p| counter.feed(p, &mut tally).ok()).sum();
                assert_eq!((sum, &tally), (15, &expected()), "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn resumes_byte_by_byte() {
        let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
        for byte in STREAM {
            assert!(counter.feed(&[*byte], &mut tally).is_ok());
        }
        assert_eq!(tally, expected());
    }

    /// Four times MULTI, GET and EXEC: one reads a missing key, one is aborted, one fails to queue.
    const TRANSACTIONS: &[u8] = b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\nv\r\n\
        +OK\r\n+QUEUED\r\n*1\r\n$-1\r\n+OK\r\n+QUEUED\r\n*-1\r\n\
        +OK\r\n-ERR no\r\n-EXECABORT discarded\r\n";

    #[test]
    fn a_request_is_answered_by_the_replies_of_all_its_commands() {
        let answer = Answer { replies: 3, is_transaction: true };
        let counted = |stream: &[u8]| {
            let (mut counter, mut tally) = (ReplyCounter::new(answer), Tally::default());
            for byte in stream {
                assert!(counter.feed(&[*byte], &mut tally).is_ok());
            }
            tally
        };
        let first_error = b"ERR no".to_vec();
        let expected =
            Tally { replies: 12, requests: 4, errors: 2, nulls: 1, aborted: 1, first_error };
        assert_eq!(counted(TRANSACTIONS), expected);
        // Only a null in EXEC's place says that a transaction was aborted, in RESP3 too.
        let counts = |stream: &[u8]| {
            let tally = counted(stream);
            (tally.requests, tally.nulls, tally.aborted)
        };
        assert_eq!(counts(b"_\r\n+OK\r\n_\r\n_\r\n"), (1, 2, 1));
        assert_eq!(counts(b"+OK\r\n+OK\r\n*2\r\n_\r\n_\r\n"), (1, 2, 0));
        assert_eq!(counts(b"+OK\r\n>1\r\n_\r\n$-1\r\n*-1\r\n"), (1, 2, 1));
        assert_eq!(counts(b"+OK\r\n+QUEUED\r\n"), (0, 0, 0));
    }

    #[test]
    fn an_incomplete_reply_is_not_counted() {
        let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
        assert_eq!(counter.feed(b"*2\r\n$3\r\nabc\r\n$3\r\nabc\r", &mut tally), Ok(0));
        assert_eq!(counter.feed(b"\n", &mut tally), Ok(1));
    }

    #[test]
    fn a_bulk_error_alone_keeps_its_text() {
        let (mut counter, mut tally) = (ReplyCounter::default(), Tally::default());
        assert_eq!(counter.feed(b"!6\r\nERR", &mut tally), Ok(0));
        assert_eq!(counter.feed(b" no\r\n", &mut tally), Ok(1));
        assert_eq!(tally.first_error, b"ERR no");
    }

    #[test]
    fn bytes_that_are_not_resp_are_refused() {
        for stream in [
            "HTTP/1.1 400",
            "$x\r\n",
            "*99999999999999999999\r\n",
            "*-7\r\n",
            "$-2\r\n",
            "$--1\r\n",
            "$0-1\r\n",
            "*-\r\n",
            "*\r\n",
            "$\n",
            "%-1\r\n",
        ] {
            let mut tally = Tally::default();
            let fed = ReplyCounter::default().feed(stream.as_bytes(), &mut tally);
            assert!(fed.is_err(), "{stream}");
        }
    }
}
