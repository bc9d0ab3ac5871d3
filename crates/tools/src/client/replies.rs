//! Counts replies and notices errors among them, without building values: the reader of the load.
//!
//! A request may be several commands: it is answered when all their replies have come, and the
//! [`ReplyTally`] counts it once. Errors are counted one by one, at any depth. Of a reply nothing
//! is kept but the text of the first error.

use super::scanner::{NotResp, ReplySink, Scanner};

/// The longest error text that is kept.
const ERROR_TEXT_BYTES_MAX: usize = 200;

/// The replies to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedReplies {
    /// Top-level replies, one for each command of the request.
    pub replies: u64,
    /// The last of them is EXEC's, which is null if a watched key has changed.
    pub is_transaction: bool,
}

impl ExpectedReplies {
    /// The reply to one command.
    pub const ONE_REPLY: ExpectedReplies = ExpectedReplies { replies: 1, is_transaction: false };
}

/// The sums over the replies of one load thread.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ReplyTally {
    /// Complete top-level replies, without pushes.
    pub replies: u64,
    /// Requests of which every reply has come.
    pub requests: u64,
    /// Error replies, also those nested in arrays.
    pub errors: u64,
    /// Nulls at any depth except those of `aborted`: for a read, keys that were missing.
    pub nulls: u64,
    /// Transactions that EXEC did not execute because a watched key had changed.
    pub aborted: u64,
    /// The text of the first error, without its marker.
    pub first_error: Vec<u8>,
}

/// The resumable counter of one connection.
#[derive(Debug)]
pub struct ReplyCounter {
    scanner: Scanner,
    answer: ExpectedReplies,
    /// Replies of the current answer that have come.
    replied: u64,
    /// The current element is the first error, and its text is kept.
    keeps_text: bool,
}

impl Default for ReplyCounter {
    fn default() -> Self {
        ReplyCounter::new(ExpectedReplies::ONE_REPLY)
    }
}

impl ReplyCounter {
    /// The counter of a connection on which every request has this answer.
    pub fn new(answer: ExpectedReplies) -> Self {
        ReplyCounter { scanner: Scanner::default(), answer, replied: 0, keeps_text: false }
    }

    /// Adds the next bytes of the stream to `tally`. Returns how many requests they completed.
    #[inline]
    pub fn feed(&mut self, bytes: &[u8], tally: &mut ReplyTally) -> Result<u64, NotResp> {
        let before = tally.requests;
        let ReplyCounter { scanner, answer, replied, keeps_text } = self;
        let mut counting = Counting { answer: *answer, replied, keeps_text, tally };
        scanner.feed(bytes, &mut counting)?;
        Ok(tally.requests - before)
    }
}

/// The counter while it reads, apart from its scanner.
struct Counting<'a> {
    answer: ExpectedReplies,
    replied: &'a mut u64,
    keeps_text: &'a mut bool,
    tally: &'a mut ReplyTally,
}

impl ReplySink for Counting<'_> {
    #[inline]
    fn begin(&mut self, kind: u8) {
        if matches!(kind, b'-' | b'!') {
            *self.keeps_text = self.tally.errors == 0;
            self.tally.errors += 1;
        }
    }

    #[inline]
    fn text(&mut self, kind: u8, bytes: &[u8]) {
        if matches!(kind, b'-' | b'!') && *self.keeps_text {
            let room = ERROR_TEXT_BYTES_MAX.saturating_sub(self.tally.first_error.len());
            let text = bytes.iter().filter(|byte| !matches!(byte, b'\r' | b'\n'));
            self.tally.first_error.extend(text.take(room));
        }
    }

    #[inline]
    fn end(&mut self, _: u8) -> Result<(), NotResp> {
        *self.keeps_text = false;
        Ok(())
    }

    #[inline]
    fn null(&mut self, is_outermost: bool) {
        let is_last = is_outermost && *self.replied + 1 == self.answer.replies;
        match self.answer.is_transaction && is_last {
            true => self.tally.aborted += 1,
            false => self.tally.nulls += 1,
        }
    }

    #[inline]
    fn aggregate(&mut self, _: u8, _: u64) -> Result<(), NotResp> {
        Ok(())
    }

    #[inline]
    fn complete(&mut self, is_push: bool) {
        if is_push {
            return;
        }
        self.tally.replies += 1;
        *self.replied += 1;
        if *self.replied == self.answer.replies {
            *self.replied = 0;
            self.tally.requests += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of everything, with the sums expected of it.
    const STREAM: &[u8] = b"+OK\r\n$5\r\nhe\r\no\r\n$-1\r\n*-1\r\n:42\r\n-ERR first one\r\n*0\r\n\
        *3\r\n$1\r\na\r\n*2\r\n:1\r\n:2\r\n-WRONG second\r\n%2\r\n+a\r\n:1\r\n+b\r\n_\r\n\
        >2\r\n+message\r\n$2\r\nhi\r\n~2\r\n#t\r\n,1.5\r\n|1\r\n+ttl\r\n:3\r\n$2\r\nok\r\n\
        =7\r\ntxt:abc\r\n!6\r\nERR no\r\n(12345678901234567890\r\n$0\r\n\r\n";

    fn expected() -> ReplyTally {
        let first_error = b"ERR first one".to_vec();
        ReplyTally { replies: 15, requests: 15, errors: 3, nulls: 3, aborted: 0, first_error }
    }

    #[test]
    fn counts_the_whole_stream() {
        let mut tally = ReplyTally::default();
        assert_eq!(ReplyCounter::default().feed(STREAM, &mut tally), Ok(15));
        assert_eq!(tally, expected());
    }

    #[test]
    fn resumes_at_every_pair_of_splits() {
        for first in 0..=STREAM.len() {
            for second in first..=STREAM.len() {
                let (mut counter, mut tally) = (ReplyCounter::default(), ReplyTally::default());
                let parts = [&STREAM[..first], &STREAM[first..second], &STREAM[second..]];
                let sum: u64 = parts.iter().map_while(|p| counter.feed(p, &mut tally).ok()).sum();
                assert_eq!((sum, &tally), (15, &expected()), "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn resumes_byte_by_byte() {
        let (mut counter, mut tally) = (ReplyCounter::default(), ReplyTally::default());
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
        let answer = ExpectedReplies { replies: 3, is_transaction: true };
        let counted = |stream: &[u8]| {
            let (mut counter, mut tally) = (ReplyCounter::new(answer), ReplyTally::default());
            for byte in stream {
                assert!(counter.feed(&[*byte], &mut tally).is_ok());
            }
            tally
        };
        let first_error = b"ERR no".to_vec();
        let expected =
            ReplyTally { replies: 12, requests: 4, errors: 2, nulls: 1, aborted: 1, first_error };
        assert_eq!(counted(TRANSACTIONS), expected);
        // Only a null as EXEC's own reply means that the transaction was aborted, in RESP3 too.
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
        let (mut counter, mut tally) = (ReplyCounter::default(), ReplyTally::default());
        assert_eq!(counter.feed(b"*2\r\n$3\r\nabc\r\n$3\r\nabc\r", &mut tally), Ok(0));
        assert_eq!(counter.feed(b"\n", &mut tally), Ok(1));
    }

    #[test]
    fn a_bulk_error_keeps_its_text() {
        let (mut counter, mut tally) = (ReplyCounter::default(), ReplyTally::default());
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
            let mut tally = ReplyTally::default();
            let fed = ReplyCounter::default().feed(stream.as_bytes(), &mut tally);
            assert!(fed.is_err(), "{stream}");
        }
    }
}
