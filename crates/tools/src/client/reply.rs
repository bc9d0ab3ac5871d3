//! Replies as values, for tools that show or inspect them.
//!
//! Memory is taken for bytes that have come, never for an announced length, and nesting beyond
//! [`DEPTH_MAX`] is refused. Attributes are read and dropped.

use std::collections::VecDeque;

use super::scanner::{NotResp, Scanner, Sink};

/// How deeply replies may nest.
const DEPTH_MAX: usize = 128;

/// Elements for which memory is taken before they have come.
const ROOM_MAX: u64 = 1024;

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A simple string.
    Status(Vec<u8>),
    /// An error, without its marker.
    Error(Vec<u8>),
    /// A number.
    Int(i64),
    /// A double or a big number, as the server wrote it.
    Decimal(Vec<u8>),
    /// A bulk string.
    Bulk(Vec<u8>),
    /// A verbatim string, without its format.
    Verbatim(Vec<u8>),
    /// No value.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An array.
    Array(Vec<Reply>),
    /// A map: keys and values in turn.
    Map(Vec<Reply>),
    /// A set.
    Set(Vec<Reply>),
    /// A message or an invalidation, which answers no request.
    Push(Vec<Reply>),
}

impl Reply {
    /// The bytes of any kind of string, errors included.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Reply::Status(text)
            | Reply::Error(text)
            | Reply::Decimal(text)
            | Reply::Bulk(text)
            | Reply::Verbatim(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of any kind of aggregate.
    pub fn items(&self) -> Option<&[Reply]> {
        match self {
            Reply::Array(items) | Reply::Map(items) | Reply::Set(items) | Reply::Push(items) => {
                Some(items)
            }
            _ => None,
        }
    }

    /// Whether the server refused the request.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// The value of a key, for a map of RESP3 or the flat array that RESP2 has instead.
    pub fn field(&self, name: &str) -> Option<&Reply> {
        let pairs = self.items()?.chunks_exact(2);
        pairs.into_iter().find(|pair| pair[0].text() == Some(name.as_bytes())).map(|pair| &pair[1])
    }
}

/// An aggregate of which elements are still due.
#[derive(Debug)]
struct Open {
    kind: u8,
    items: Vec<Reply>,
    due: u64,
}

/// Reads the replies of one connection.
#[derive(Debug, Default)]
pub struct Parser {
    scanner: Scanner,
    builder: Builder,
    failure: Option<NotResp>,
}

impl Parser {
    /// Reads the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.scanner.feed(bytes, &mut self.builder).err();
        }
    }

    /// The next whole reply, if it has come.
    ///
    /// # Errors
    /// The bytes after the last whole reply are not RESP.
    pub fn reply(&mut self) -> Result<Option<Reply>, NotResp> {
        match (self.builder.whole.pop_front(), self.failure) {
            (None, Some(failure)) => Err(failure),
            (reply, _) => Ok(reply),
        }
    }
}

/// Puts values together.
#[derive(Debug, Default)]
struct Builder {
    /// Of the current element.
    text: Vec<u8>,
    /// The aggregates around it, from the outermost.
    open: Vec<Open>,
    whole: VecDeque<Reply>,
}

impl Builder {
    /// Adds a value to the innermost aggregate, and closes those that it completes.
    fn add(&mut self, mut value: Reply) {
        while let Some(parent) = self.open.last_mut() {
            parent.items.push(value);
            parent.due -= 1;
            if parent.due > 0 {
                return;
            }
            let Some(Open { kind, items, .. }) = self.open.pop() else { return };
            match aggregate(kind, items) {
                Some(closed) => value = closed,
                None => return,
            }
        }
        self.whole.push_back(value);
    }
}

impl Sink for Builder {
    fn begin(&mut self, _: u8) {
        self.text.clear();
    }

    fn text(&mut self, _: u8, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    fn end(&mut self, kind: u8) -> Result<(), NotResp> {
        let mut text = std::mem::take(&mut self.text);
        match kind {
            b'$' | b'=' | b'!' => text.truncate(text.len().saturating_sub(2)),
            _ if text.last() == Some(&b'\r') => drop(text.pop()),
            _ => {}
        }
        self.add(match kind {
            b'+' => Reply::Status(text),
            b'-' | b'!' => Reply::Error(text),
            b':' => {
                let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                Reply::Int(number.ok_or(NotResp::Integer)?)
            }
            b'#' => Reply::Bool(text == b"t"),
            b'$' => Reply::Bulk(text),
            b'=' => Reply::Verbatim(text.get(4..).unwrap_or_default().to_vec()),
            _ => Reply::Decimal(text),
        });
        Ok(())
    }

    fn null(&mut self, _: bool) {
        self.add(Reply::Nil);
    }

    fn aggregate(&mut self, kind: u8, elements: u64) -> Result<(), NotResp> {
        if elements == 0 {
            aggregate(kind, Vec::new()).into_iter().for_each(|empty| self.add(empty));
            return Ok(());
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(NotResp::Depth);
        }
        let items = Vec::with_capacity(elements.min(ROOM_MAX) as usize);
        self.open.push(Open { kind, items, due: elements });
        Ok(())
    }

    fn complete(&mut self, _: bool) {}
}

/// A closed aggregate; `None` for an attribute, whose reply is still to come.
fn aggregate(kind: u8, items: Vec<Reply>) -> Option<Reply> {
    match kind {
        b'*' => Some(Reply::Array(items)),
        b'%' => Some(Reply::Map(items)),
        b'~' => Some(Reply::Set(items)),
        b'>' => Some(Reply::Push(items)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], step: usize) -> Result<Vec<Reply>, NotResp> {
        let (mut parser, mut replies) = (Parser::default(), Vec::new());
        for piece in bytes.chunks(step) {
            parser.push(piece);
            while let Some(reply) = parser.reply()? {
                replies.push(reply);
            }
        }
        Ok(replies)
    }

    #[test]
    fn replies_come_in_pieces_of_any_size() {
        let bytes = b"+OK\r\n-ERR x\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n\
            %1\r\n+k\r\n~1\r\n#t\r\n=7\r\ntxt:abc\r\n|1\r\n+a\r\n:1\r\n,1.5\r\n_\r\n(12\r\n\
            !3\r\nbad\r\n>2\r\n+a\r\n|1\r\n+a\r\n:1\r\n$0\r\n\r\n";
        let text = |text: &[u8]| text.to_vec();
        let expected = [
            Reply::Status(text(b"OK")),
            Reply::Error(text(b"ERR x")),
            Reply::Int(-7),
            Reply::Bulk(text(b"a\r\n")),
            Reply::Nil,
            Reply::Nil,
            Reply::Array(vec![Reply::Int(1), Reply::Array(vec![])]),
            Reply::Map(vec![Reply::Status(text(b"k")), Reply::Set(vec![Reply::Bool(true)])]),
            Reply::Verbatim(text(b"abc")),
            Reply::Decimal(text(b"1.5")),
            Reply::Nil,
            Reply::Decimal(text(b"12")),
            Reply::Error(text(b"bad")),
            Reply::Push(vec![Reply::Status(text(b"a")), Reply::Bulk(vec![])]),
        ];
        for step in [1, 2, 3, 7, bytes.len()] {
            assert_eq!(parse(bytes, step).unwrap(), expected, "in pieces of {step} bytes");
        }
    }

    #[test]
    fn bytes_that_are_not_resp_are_refused() {
        let deep = b"*1\r\n".repeat(DEPTH_MAX + 1);
        let cases: [&[u8]; 8] = [
            b"HTTP/1.1 400 Bad Request\r\n",
            b"H",
            b"\r\n",
            b":x\r\n",
            b"$-2\r\n",
            b"$99999999999999999999\r\n",
            b"%-3\r\n",
            &deep,
        ];
        for bytes in cases {
            assert!(parse(bytes, 5).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
