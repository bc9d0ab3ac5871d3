//! Splits a byte stream into RESP2 and RESP3 replies and hands their parts to a [`ReplySink`].
//!
//! The scanner keeps a few words of state and no bytes, so it resumes at any split of the stream
//! and costs next to nothing: it skips bulk bodies by length, and nested replies by one count of
//! the elements still due (no stack, no recursion). Streamed aggregates (`$?`, `*?`) are refused:
//! no server sends them. Format: the RESP page of the Redis documentation (versions 2 and 3).

use std::fmt;

/// A length or element count beyond this means that the stream is out of step.
const COUNT_MAX: u64 = 1 << 40;

/// Receives the parts of replies in the order of the stream.
///
/// An element is a reply, a push, an attribute, or a part of one of these. Each begins with
/// [`begin`](Sink::begin) and continues with `null`, `aggregate`, or any number of `text` and one
/// `end`.
pub(crate) trait ReplySink {
    /// An element with this type byte begins.
    fn begin(&mut self, kind: u8);

    /// The next bytes of a line or of a bulk body. The last of them are the line's `\r`, or the
    /// body's `\r\n`.
    fn text(&mut self, kind: u8, bytes: &[u8]);

    /// The text is complete.
    ///
    /// # Errors
    /// The text is not valid for this type.
    fn end(&mut self, kind: u8) -> Result<(), NotResp>;

    /// The element is null. `is_outermost` says that it is not part of another one.
    fn null(&mut self, is_outermost: bool);

    /// The element is an aggregate of so many elements, which follow; a map counts keys and values.
    ///
    /// # Errors
    /// The sink does not take such an aggregate.
    fn aggregate(&mut self, kind: u8, elements: u64) -> Result<(), NotResp>;

    /// A whole reply, or a push, has ended.
    fn complete(&mut self, is_push: bool);
}

/// Why a stream is not RESP. The texts are those of redis-cli where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotResp {
    /// No element begins with this byte.
    Kind(u8),
    /// This byte cannot be in a length at this position.
    Length(u8),
    /// An integer is not a number of 64 bits.
    Integer,
    /// Replies are nested deeper than a reader accepts.
    Depth,
}

impl fmt::Display for NotResp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error, ")?;
        match self {
            NotResp::Kind(byte) => write!(f, "got \"{}\" as reply type byte", byte.escape_ascii()),
            NotResp::Length(byte) => write!(f, "got \"{}\" in a length", byte.escape_ascii()),
            NotResp::Integer => f.write_str("an integer is not a number of 64 bits"),
            NotResp::Depth => f.write_str("replies are nested too deeply"),
        }
    }
}

/// The position of the stream in an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Position {
    /// Before the type byte.
    #[default]
    Kind,
    /// Inside a line.
    Line,
    /// Inside the decimal count after `$`, `*` and the like; `is_empty` before its first digit.
    Count { is_negative: bool, is_empty: bool },
    /// Before this many bytes of a body, line end included.
    Body(u64),
}

/// The resumable scanner of one connection.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    position: Position,
    /// The type byte of the current element.
    kind: u8,
    /// The count read so far.
    count: u64,
    /// Elements still due before the top-level reply is complete.
    due: u64,
    /// The current element is not part of another one.
    is_outermost: bool,
    /// The top-level element is a push.
    is_push: bool,
}

impl Scanner {
    /// Scans the next bytes of the stream.
    ///
    /// # Errors
    /// The bytes are not RESP; nothing that follows can be understood.
    #[inline]
    pub(crate) fn feed(
        &mut self,
        mut bytes: &[u8],
        sink: &mut impl ReplySink,
    ) -> Result<(), NotResp> {
        while let Some(&first) = bytes.first() {
            match self.position {
                Position::Kind => {
                    self.open(first, sink)?;
                    bytes = &bytes[1..];
                }
                Position::Count { is_negative, is_empty } => {
                    bytes = self.read_count(bytes, is_negative, is_empty, sink)?;
                }
                Position::Body(left) => bytes = self.skip_body(left, bytes, sink)?,
                Position::Line => bytes = self.skip_line(bytes, sink)?,
            }
        }
        Ok(())
    }

    /// Starts an element at its type byte.
    #[inline]
    fn open(&mut self, kind: u8, sink: &mut impl ReplySink) -> Result<(), NotResp> {
        self.is_outermost = self.due == 0;
        if self.is_outermost {
            self.due = 1;
            self.is_push = kind == b'>';
        }
        self.kind = kind;
        self.position = match kind {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' | b'_' => Position::Line,
            b'$' | b'=' | b'!' | b'*' | b'%' | b'~' | b'>' | b'|' => {
                self.count = 0;
                Position::Count { is_negative: false, is_empty: true }
            }
            other => return Err(NotResp::Kind(other)),
        };
        sink.begin(kind);
        Ok(())
    }

    #[inline]
    fn read_count<'a>(
        &mut self,
        bytes: &'a [u8],
        mut is_negative: bool,
        mut is_empty: bool,
        sink: &mut impl ReplySink,
    ) -> Result<&'a [u8], NotResp> {
        let mut count = self.count;
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' if count < COUNT_MAX => {
                    count = count * 10 + u64::from(byte - b'0');
                    is_empty = false;
                }
                b'\r' if !is_empty => {}
                b'\n' if !is_empty => {
                    self.counted(count, is_negative, sink)?;
                    return Ok(&bytes[at + 1..]);
                }
                b'-' if is_empty && !is_negative => is_negative = true,
                other => return Err(NotResp::Length(*other)),
            }
        }
        self.count = count;
        self.position = Position::Count { is_negative, is_empty };
        Ok(&[])
    }

    /// The count of the current element is known: a body or elements follow, or it is a null.
    #[inline]
    fn counted(
        &mut self,
        count: u64,
        is_negative: bool,
        sink: &mut impl ReplySink,
    ) -> Result<(), NotResp> {
        let kind = self.kind;
        let (elements, due) = match kind {
            b'$' | b'*' if is_negative && count == 1 => {
                sink.null(self.is_outermost);
                self.close(0, sink);
                return Ok(());
            }
            _ if is_negative => return Err(NotResp::Length(b'-')),
            b'$' | b'=' | b'!' => {
                self.position = Position::Body(count + 2);
                return Ok(());
            }
            b'%' => (count * 2, count * 2),
            // An attribute precedes an element and does not count as one.
            b'|' => (count * 2, count * 2 + 1),
            _ => (count, count),
        };
        sink.aggregate(kind, elements)?;
        self.close(due, sink);
        Ok(())
    }

    /// Ends the current element, which announced `children` more.
    #[inline]
    fn close(&mut self, children: u64, sink: &mut impl ReplySink) {
        self.position = Position::Kind;
        self.due = (self.due - 1).saturating_add(children);
        if self.due == 0 {
            sink.complete(self.is_push);
        }
    }

    #[inline]
    fn skip_body<'a>(
        &mut self,
        left: u64,
        bytes: &'a [u8],
        sink: &mut impl ReplySink,
    ) -> Result<&'a [u8], NotResp> {
        let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        sink.text(self.kind, &bytes[..here]);
        if here as u64 == left {
            sink.end(self.kind)?;
            self.close(0, sink);
        } else {
            self.position = Position::Body(left - here as u64);
        }
        Ok(&bytes[here..])
    }

    #[inline]
    fn skip_line<'a>(
        &mut self,
        bytes: &'a [u8],
        sink: &mut impl ReplySink,
    ) -> Result<&'a [u8], NotResp> {
        let end = memchr::memchr(b'\n', bytes);
        if self.kind != b'_' {
            sink.text(self.kind, &bytes[..end.unwrap_or(bytes.len())]);
        }
        let Some(end) = end else { return Ok(&[]) };
        match self.kind {
            b'_' => sink.null(self.is_outermost),
            kind => sink.end(kind)?,
        }
        self.close(0, sink);
        Ok(&bytes[end + 1..])
    }
}
