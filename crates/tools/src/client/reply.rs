//! Replies as values, for tools that show or inspect them.
//!
//! Memory is allocated for bytes that arrived, never for an announced length, and nesting beyond
//! [`DEPTH_MAX`] is refused. Attributes are read and dropped.

use std::collections::VecDeque;

use super::scanner::{NotResp, ReplySink, Scanner};

/// How deeply replies may nest.
const DEPTH_MAX: usize = 128;

/// The most elements for which memory is allocated before they arrive.
const ROOM_MAX: u64 = 1024;

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerReply {
    Status(Vec<u8>),
    /// An error, without its marker.
    Error(Vec<u8>),
    Int(i64),
    /// A double or a big number, as the server wrote it.
    Decimal(Vec<u8>),
    Bulk(Vec<u8>),
    /// A verbatim string, without its format.
    Verbatim(Vec<u8>),
    Nil,
    Bool(bool),
    Array(Vec<ServerReply>),
    /// A map: keys and values in turn.
    Map(Vec<ServerReply>),
    Set(Vec<ServerReply>),
    /// A message or an invalidation, which answers no request.
    Push(Vec<ServerReply>),
}

impl ServerReply {
    /// The bytes of any kind of string, errors included.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            ServerReply::Status(text)
            | ServerReply::Error(text)
            | ServerReply::Decimal(text)
            | ServerReply::Bulk(text)
            | ServerReply::Verbatim(text) => Some(text),
            _ => None,
        }
    }

    /// The elements of any kind of aggregate.
    pub fn items(&self) -> Option<&[ServerReply]> {
        match self {
            ServerReply::Array(items)
            | ServerReply::Map(items)
            | ServerReply::Set(items)
            | ServerReply::Push(items) => Some(items),
            _ => None,
        }
    }

    /// Whether the server refused the request.
    pub fn is_error(&self) -> bool {
        matches!(self, ServerReply::Error(_))
    }

    /// The value of a key, for a map of RESP3 or the flat array that RESP2 has instead.
    pub fn field(&self, name: &str) -> Option<&ServerReply> {
        let pairs = self.items()?.chunks_exact(2);
        pairs.into_iter().find(|pair| pair[0].text() == Some(name.as_bytes())).map(|pair| &pair[1])
    }
}

/// An aggregate of which elements are still due.
#[derive(Debug)]
struct OpenAggregate {
    kind: u8,
    items: Vec<ServerReply>,
    due: u64,
}

/// Reads the replies of one connection.
#[derive(Debug, Default)]
pub struct ReplyReader {
    scanner: Scanner,
    builder: Builder,
    failure: Option<NotResp>,
}

impl ReplyReader {
    /// Reads the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failure.is_none() {
            self.failure = self.scanner.feed(bytes, &mut self.builder).err();
        }
    }

    /// The next whole reply, if it has come.
    pub fn reply(&mut self) -> Result<Option<ServerReply>, NotResp> {
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
    open: Vec<OpenAggregate>,
    whole: VecDeque<ServerReply>,
}

impl Builder {
    /// Adds a value to the innermost aggregate, and closes those that it completes.
    fn add(&mut self, mut value: ServerReply) {
        while let Some(parent) = self.open.last_mut() {
            parent.items.push(value);
            parent.due -= 1;
            if parent.due > 0 {
                return;
            }
            let Some(OpenAggregate { kind, items, .. }) = self.open.pop() else { return };
            match aggregate(kind, items) {
                Some(closed) => value = closed,
                None => return,
            }
        }
        self.whole.push_back(value);
    }
}

impl ReplySink for Builder {
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
            b'+' => ServerReply::Status(text),
            b'-' | b'!' => ServerReply::Error(text),
            b':' => {
                let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                ServerReply::Int(number.ok_or(NotResp::Integer)?)
            }
            b'#' => ServerReply::Bool(text == b"t"),
            b'$' => ServerReply::Bulk(text),
            b'=' => ServerReply::Verbatim(text.get(4..).unwrap_or_default().to_vec()),
            _ => ServerReply::Decimal(text),
        });
        Ok(())
    }

    fn null(&mut self, _: bool) {
        self.add(ServerReply::Nil);
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
        self.open.push(OpenAggregate { kind, items, due: elements });
        Ok(())
    }

    fn complete(&mut self, _: bool) {}
}

/// A closed aggregate; `None` for an attribute, whose reply is still to come.
fn aggregate(kind: u8, items: Vec<ServerReply>) -> Option<ServerReply> {
    match kind {
        b'*' => Some(ServerReply::Array(items)),
        b'%' => Some(ServerReply::Map(items)),
        b'~' => Some(ServerReply::Set(items)),
        b'>' => Some(ServerReply::Push(items)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], step: usize) -> Result<Vec<ServerReply>, NotResp> {
        let (mut parser, mut replies) = (ReplyReader::default(), Vec::new());
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
            ServerReply::Status(text(b"OK")),
            ServerReply::Error(text(b"ERR x")),
            ServerReply::Int(-7),
            ServerReply::Bulk(text(b"a\r\n")),
            ServerReply::Nil,
            ServerReply::Nil,
            ServerReply::Array(vec![ServerReply::Int(1), ServerReply::Array(vec![])]),
            ServerReply::Map(vec![
                ServerReply::Status(text(b"k")),
                ServerReply::Set(vec![ServerReply::Bool(true)]),
            ]),
            ServerReply::Verbatim(text(b"abc")),
            ServerReply::Decimal(text(b"1.5")),
            ServerReply::Nil,
            ServerReply::Decimal(text(b"12")),
            ServerReply::Error(text(b"bad")),
            ServerReply::Push(vec![ServerReply::Status(text(b"a")), ServerReply::Bulk(vec![])]),
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
