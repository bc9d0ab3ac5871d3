//! Replies of a server as values: RESP2 and RESP3, read from bytes that come in pieces.
//!
//! The parser resumes at any split of the stream. It takes memory for bytes that have come and
//! never for an announced length, and refuses nesting beyond [`DEPTH_MAX`]. Attributes are read
//! and dropped. Format: the protocol page of the Redis documentation.

use memchr::memmem;

/// How deeply replies may nest.
const DEPTH_MAX: usize = 128;

/// Elements for which memory is taken before they have come.
const ROOM_MAX: usize = 1024;

/// Bytes that were read are dropped from the front of the buffer beyond this many.
const READ_BYTES_MAX: usize = 64 * 1024;

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
    /// What nobody asked for: a message or an invalidation.
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

#[derive(Debug, Clone, Copy)]
enum Kind {
    Array,
    Map,
    Set,
    Push,
    Attribute,
}

impl Kind {
    fn close(self, items: Vec<Reply>) -> Option<Reply> {
        match self {
            Kind::Array => Some(Reply::Array(items)),
            Kind::Map => Some(Reply::Map(items)),
            Kind::Set => Some(Reply::Set(items)),
            Kind::Push => Some(Reply::Push(items)),
            Kind::Attribute => None,
        }
    }
}

/// An aggregate of which elements are still due.
#[derive(Debug)]
struct Open {
    kind: Kind,
    items: Vec<Reply>,
    due: usize,
}

enum Element {
    Value(Reply),
    Opens(Kind, usize),
}

/// What has come from a server and is not a whole reply yet.
#[derive(Debug, Default)]
pub struct Parser {
    buffer: Vec<u8>,
    at: usize,
    open: Vec<Open>,
}

impl Parser {
    /// Takes bytes from the server.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        } else if self.at > READ_BYTES_MAX {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole reply, if it has come.
    ///
    /// # Errors
    /// When the bytes are not RESP; the text is for a person.
    pub fn reply(&mut self) -> Result<Option<Reply>, String> {
        while let Some(element) = self.element()? {
            let mut value = match element {
                Element::Value(value) => Some(value),
                Element::Opens(kind, 0) => kind.close(Vec::new()),
                Element::Opens(kind, due) => {
                    if self.open.len() >= DEPTH_MAX {
                        return Err("Protocol error, replies are nested too deeply".into());
                    }
                    let items = Vec::with_capacity(due.min(ROOM_MAX));
                    self.open.push(Open { kind, items, due });
                    continue;
                }
            };
            // An attribute that has ended leaves no value: its reply is still to come.
            while let Some(whole) = value.take() {
                let Some(mut parent) = self.open.pop() else { return Ok(Some(whole)) };
                parent.items.push(whole);
                parent.due -= 1;
                if parent.due > 0 {
                    self.open.push(parent);
                } else {
                    value = parent.kind.close(parent.items);
                }
            }
        }
        Ok(None)
    }

    /// One value, or the head of an aggregate; `None` until all its bytes have come.
    fn element(&mut self) -> Result<Option<Element>, String> {
        let rest = &self.buffer[self.at..];
        let Some(end) = memmem::find(rest, b"\r\n") else {
            return rest.first().map_or(Ok(None), |kind| known(*kind).map(|()| None));
        };
        let Some((kind, line)) = rest[..end].split_first() else { return Err(unknown(b'\r')) };
        let mut used = end + 2;
        let element = match kind {
            b'+' => Element::Value(Reply::Status(line.to_vec())),
            b'-' => Element::Value(Reply::Error(line.to_vec())),
            b':' => Element::Value(Reply::Int(number(line)?)),
            b',' | b'(' => Element::Value(Reply::Decimal(line.to_vec())),
            b'_' => Element::Value(Reply::Nil),
            b'#' => Element::Value(Reply::Bool(line == b"t")),
            b'$' | b'=' | b'!' => match length(line)? {
                None => Element::Value(Reply::Nil),
                Some(length) => {
                    let body_end = used.checked_add(length).and_then(|end| end.checked_add(2));
                    let body_end = body_end.ok_or_else(|| bad_length(line))?;
                    let Some(body) = rest.get(used..body_end) else { return Ok(None) };
                    used = body_end;
                    let body = &body[..length];
                    Element::Value(match kind {
                        b'$' => Reply::Bulk(body.to_vec()),
                        b'!' => Reply::Error(body.to_vec()),
                        _ => Reply::Verbatim(body.get(4..).unwrap_or_default().to_vec()),
                    })
                }
            },
            b'*' | b'~' | b'>' | b'%' | b'|' => aggregate(*kind, line)?,
            other => return Err(unknown(*other)),
        };
        self.at += used;
        Ok(Some(element))
    }
}

fn aggregate(kind: u8, line: &[u8]) -> Result<Element, String> {
    let Some(count) = length(line)? else { return Ok(Element::Value(Reply::Nil)) };
    let pairs = || count.checked_mul(2).ok_or_else(|| bad_length(line));
    Ok(match kind {
        b'*' => Element::Opens(Kind::Array, count),
        b'~' => Element::Opens(Kind::Set, count),
        b'>' => Element::Opens(Kind::Push, count),
        b'%' => Element::Opens(Kind::Map, pairs()?),
        _ => Element::Opens(Kind::Attribute, pairs()?),
    })
}

fn known(kind: u8) -> Result<(), String> {
    if b"+-:,(_#$=!*~>%|".contains(&kind) { Ok(()) } else { Err(unknown(kind)) }
}

fn unknown(kind: u8) -> String {
    format!("Protocol error, got \"{}\" as reply type byte", kind.escape_ascii())
}

fn bad_length(line: &[u8]) -> String {
    format!("Protocol error, \"{}\" is no length", line.escape_ascii())
}

fn number(line: &[u8]) -> Result<i64, String> {
    let parsed = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| format!("Protocol error, \"{}\" is no number", line.escape_ascii()))
}

/// A length or count; `None` for the null of RESP2.
fn length(line: &[u8]) -> Result<Option<usize>, String> {
    match number(line)? {
        -1 => Ok(None),
        length => usize::try_from(length).map(Some).map_err(|_| bad_length(line)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8], step: usize) -> Result<Vec<Reply>, String> {
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
    fn what_is_not_resp_is_refused() {
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
