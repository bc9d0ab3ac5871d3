//! A reply as a tree.
//!
//! Types keep their markers, so that a simple string and a bulk string with the same bytes are two
//! different replies. Pairs of a map stand flat, as they come. Format: the RESP page of the Redis
//! documentation (protocol versions 2 and 3).

use std::fmt;
use std::io::{self, BufRead, ErrorKind, Read};

/// The deepest nesting that is read; replies of servers are a few levels deep.
const DEPTH_MAX: usize = 32;

/// A longer body or more elements can only be a stream that is out of step.
const LENGTH_MAX: usize = 1 << 30;

/// Bytes of one string that are printed, and elements of one array.
const PRINTED_BYTES_MAX: usize = 300;
const PRINTED_ELEMENTS_MAX: usize = 40;

/// One reply or an element of one, with its type's marker.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A line or a string: `+` `-` `:` `$` and, in version 3, `,` `#` `(` `=` `!`.
    Text(u8, Vec<u8>),
    /// The absence of a string (`$`), an array (`*`), or of anything (`_`).
    Null(u8),
    /// An array `*`, set `~`, push `>`, or a map `%` with keys and values in turn.
    Many(u8, Vec<Value>),
}

impl Value {
    /// The absence of a string in RESP2.
    pub const NULL: Self = Self::Null(b'$');
    /// The absence of an array in RESP2.
    pub const NULL_ARRAY: Self = Self::Null(b'*');

    /// A simple string.
    pub fn simple(text: &str) -> Self {
        Self::Text(b'+', text.as_bytes().to_vec())
    }

    /// An error.
    pub fn error(text: &str) -> Self {
        Self::Text(b'-', text.as_bytes().to_vec())
    }

    /// An integer.
    pub fn number(number: i64) -> Self {
        Self::Text(b':', number.to_string().into_bytes())
    }

    /// A bulk string.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Text(b'$', bytes.as_ref().to_vec())
    }

    /// An array.
    pub fn array(items: Vec<Value>) -> Self {
        Self::Many(b'*', items)
    }

    /// Reads the next reply and skips pushes.
    ///
    /// # Errors
    /// Errors of the stream, and `InvalidData` for bytes that are no reply.
    pub fn read(from: &mut impl BufRead) -> io::Result<Self> {
        loop {
            match Self::read_any(from)? {
                Self::Many(b'>', _) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Reads the next reply or push.
    ///
    /// # Errors
    /// As [`Value::read`].
    pub fn read_any(from: &mut impl BufRead) -> io::Result<Self> {
        Self::read_at(from, 0)
    }

    fn read_at(from: &mut impl BufRead, depth: usize) -> io::Result<Self> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let Some((&marker, text)) = line.strip_suffix(b"\r\n").and_then(<[u8]>::split_first) else {
            return Err(out_of_step(&line));
        };
        match marker {
            b'+' | b'-' | b':' | b',' | b'#' | b'(' => Ok(Self::Text(marker, text.to_vec())),
            b'_' => Ok(Self::Null(b'_')),
            b'$' | b'*' if text == b"-1" => Ok(Self::Null(marker)),
            b'$' | b'=' | b'!' => {
                let mut body = Vec::new();
                let length = length(&line, text)?;
                from.by_ref().take(length as u64 + 2).read_to_end(&mut body)?;
                match body.len() == length + 2 {
                    true if body.ends_with(b"\r\n") => body.truncate(length),
                    true => return Err(out_of_step(&line)),
                    false => return Err(ErrorKind::UnexpectedEof.into()),
                }
                Ok(Self::Text(marker, body))
            }
            b'*' | b'~' | b'>' | b'%' if depth < DEPTH_MAX => {
                let count = length(&line, text)? * if marker == b'%' { 2 } else { 1 };
                let elements = (0..count).map(|_| Self::read_at(from, depth + 1));
                Ok(Self::Many(marker, elements.collect::<io::Result<_>>()?))
            }
            _ => Err(out_of_step(&line)),
        }
    }

    /// Whether the request was refused.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Text(b'-' | b'!', _))
    }

    /// Whether it is an integer.
    pub fn is_int(&self) -> bool {
        matches!(self, Self::Text(b':', _))
    }

    /// The bytes of a line or a string.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(_, bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements; none of a value that has no elements.
    pub fn elements(&self) -> &[Value] {
        match self {
            Self::Many(_, elements) => elements,
            _ => &[],
        }
    }

    /// The number that a line or a string spells.
    pub fn integer(&self) -> Option<i64> {
        std::str::from_utf8(self.bytes()?).ok()?.parse().ok()
    }

    /// The number of an integer.
    ///
    /// # Panics
    /// When it is no integer.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Text(b':', _) => self.integer().expect("an integer is a number"),
            other => panic!("not an integer: {other}"),
        }
    }

    /// The text of a simple string, an error or a bulk string.
    ///
    /// # Panics
    /// When it has none.
    #[track_caller]
    pub fn text(&self) -> String {
        match self {
            Self::Text(marker, bytes) if *marker != b':' => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            other => panic!("no text: {other}"),
        }
    }

    /// The elements of an array, a set, a map or a push.
    ///
    /// # Panics
    /// When it is none of them.
    #[track_caller]
    pub fn items(&self) -> &[Value] {
        match self {
            Self::Many(_, items) => items,
            other => panic!("not an array: {other}"),
        }
    }
}

fn length(line: &[u8], text: &[u8]) -> io::Result<usize> {
    let length = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    length.filter(|length| *length <= LENGTH_MAX).ok_or_else(|| out_of_step(line))
}

fn out_of_step(line: &[u8]) -> io::Error {
    let shown = line.get(..PRINTED_BYTES_MAX).unwrap_or(line).escape_ascii();
    io::Error::new(ErrorKind::InvalidData, format!("this is no reply: {shown}"))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(marker, bytes) => {
                let shown = bytes.get(..PRINTED_BYTES_MAX).unwrap_or(bytes).escape_ascii();
                write!(f, "{}\"{shown}\"", char::from(*marker))?;
                if bytes.len() > PRINTED_BYTES_MAX {
                    write!(f, "... of {} bytes", bytes.len())?;
                }
                Ok(())
            }
            Self::Null(marker) => write!(f, "{}null", char::from(*marker)),
            Self::Many(marker, elements) => {
                write!(f, "{}[", char::from(*marker))?;
                for (at, element) in elements.iter().take(PRINTED_ELEMENTS_MAX).enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(f, "{comma}{element}")?;
                }
                if elements.len() > PRINTED_ELEMENTS_MAX {
                    write!(f, ", ... of {}", elements.len())?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &str) -> io::Result<Value> {
        Value::read(&mut bytes.as_bytes())
    }

    #[test]
    fn every_type_is_read_with_its_marker() {
        let shown = |bytes: &str| read(bytes).unwrap().to_string();
        assert_eq!(shown("+OK\r\n"), "+\"OK\"");
        assert_eq!(shown("$3\r\na\r\n\r\n"), "$\"a\\r\\n\"");
        assert_eq!(shown("$-1\r\n"), "$null");
        assert_eq!(shown("*-1\r\n"), "*null");
        assert_eq!(shown("*2\r\n:1\r\n*0\r\n"), "*[:\"1\", *[]]");
        assert_eq!(shown("%1\r\n+a\r\n,1.5\r\n"), "%[+\"a\", ,\"1.5\"]");
        assert_eq!(shown(">1\r\n+x\r\n_\r\n"), "_null");
    }

    #[test]
    fn bytes_that_are_no_reply_are_an_error() {
        for bytes in ["", "hello\r\n", "$x\r\n", "$5\r\nabc\r\n", "*2\r\n:1\r\n", "$1\r\nabc\r\n"] {
            assert!(read(bytes).is_err(), "{bytes:?}");
        }
        assert!(read(&"*1\r\n".repeat(DEPTH_MAX + 2)).is_err());
    }
}
