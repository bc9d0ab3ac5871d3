//! Replies as text for a terminal, raw, as CSV and as JSON, byte by byte as redis-cli prints them.

use base::quote::push_quoted;

use crate::client::reply::ServerReply;
use crate::printable::printable_bytes;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// With types and indexes, for people.
    Standard,
    /// Only the bytes, for programs.
    Raw,
    /// One line of comma-separated values.
    Csv,
    /// JSON, with strings as they are.
    Json,
    /// JSON in ASCII: strings are first quoted as for a terminal.
    QuotedJson,
}

/// A form of output with its delimiters.
#[derive(Debug, Clone)]
pub struct Style {
    pub output: Output,
    /// Between the elements of a raw reply.
    pub element_delimiter: Vec<u8>,
    /// After each raw reply.
    pub reply_delimiter: Vec<u8>,
}

impl Style {
    /// The text of a reply. A `verbatim` one is raw and without a delimiter in every form.
    pub fn format(&self, reply: &ServerReply, verbatim: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match self.output {
            _ if verbatim => self.raw(reply, &mut out),
            Output::Standard => standard(reply, &mut Vec::new(), &mut out),
            Output::Raw => {
                self.raw(reply, &mut out);
                out.extend_from_slice(&self.reply_delimiter);
            }
            Output::Csv => {
                csv(reply, &mut out);
                out.push(b'\n');
            }
            Output::Json | Output::QuotedJson => {
                json(reply, self.output == Output::QuotedJson, &mut out);
                out.push(b'\n');
            }
        }
        out
    }

    fn raw(&self, reply: &ServerReply, out: &mut Vec<u8>) {
        match reply {
            ServerReply::Nil => {}
            ServerReply::Error(text) => {
                out.extend_from_slice(text);
                out.push(b'\n');
            }
            ServerReply::Status(text)
            | ServerReply::Bulk(text)
            | ServerReply::Verbatim(text)
            | ServerReply::Decimal(text) => out.extend_from_slice(text),
            ServerReply::Bool(value) => {
                out.extend_from_slice(if *value { b"(true)" } else { b"(false)" })
            }
            ServerReply::Int(value) => push_int(*value, out),
            ServerReply::Array(items) | ServerReply::Set(items) | ServerReply::Push(items) => {
                join(items, &self.element_delimiter, out, |item, out| self.raw(item, out));
            }
            ServerReply::Map(items) => {
                join(items.chunks_exact(2), &self.element_delimiter, out, |pair, out| {
                    self.raw(&pair[0], out);
                    out.push(b' ');
                    self.raw(&pair[1], out);
                });
            }
        }
    }
}

/// The text of an invalidation for a terminal; `None` for another push.
pub fn invalidation(reply: &ServerReply) -> Option<Vec<u8>> {
    let ServerReply::Push(items) = reply else { return None };
    let [name, ServerReply::Array(keys)] = items.as_slice() else { return None };
    if name.text() != Some(b"invalidate") {
        return None;
    }
    let mut out = b"-> invalidate: ".to_vec();
    join(keys, b", ", &mut out, |key, out| {
        out.push(b'\'');
        out.extend_from_slice(&printable_bytes(key.text().unwrap_or_default()));
        out.push(b'\'');
    });
    out.push(b'\n');
    Some(out)
}

/// Writes the parts with a separator between them.
fn join<T>(
    parts: impl IntoIterator<Item = T>,
    separator: &[u8],
    out: &mut Vec<u8>,
    mut write: impl FnMut(T, &mut Vec<u8>),
) {
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(separator);
        }
        write(part, out);
    }
}

fn push_int(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// Writes a reply with its type, without control characters. `prefix` begins all lines of an
/// element except the first, which follows its index.
fn standard(reply: &ServerReply, prefix: &mut Vec<u8>, out: &mut Vec<u8>) {
    match reply {
        ServerReply::Error(text) => {
            out.extend_from_slice(b"(error) ");
            out.extend_from_slice(&printable_bytes(text));
        }
        ServerReply::Status(text) | ServerReply::Verbatim(text) => {
            out.extend_from_slice(&printable_bytes(text));
        }
        ServerReply::Int(value) => {
            out.extend_from_slice(b"(integer) ");
            push_int(*value, out);
        }
        ServerReply::Decimal(text) => {
            out.extend_from_slice(b"(double) ");
            out.extend_from_slice(&printable_bytes(text));
        }
        ServerReply::Bulk(text) => push_quoted(out, text),
        ServerReply::Nil => out.extend_from_slice(b"(nil)"),
        ServerReply::Bool(value) => {
            out.extend_from_slice(if *value { b"(true)" } else { b"(false)" })
        }
        ServerReply::Array(items) => {
            return aggregate(items, "(empty array)", 1, b')', prefix, out);
        }
        ServerReply::Map(items) => return aggregate(items, "(empty hash)", 2, b'#', prefix, out),
        ServerReply::Set(items) => return aggregate(items, "(empty set)", 1, b'~', prefix, out),
        ServerReply::Push(items) => return aggregate(items, "(empty push)", 1, b')', prefix, out),
    }
    out.push(b'\n');
}

/// Writes numbered lines, each with one element, or with a key and its value.
fn aggregate(
    items: &[ServerReply],
    empty: &str,
    group: usize,
    mark: u8,
    prefix: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    if items.is_empty() {
        out.extend_from_slice(empty.as_bytes());
        out.push(b'\n');
        return;
    }
    let width = (items.len() / group).to_string().len();
    let outer = prefix.len();
    for (at, group) in items.chunks(group).enumerate() {
        if at > 0 {
            out.extend_from_slice(&prefix[..outer]);
        }
        let number = format!("{:>width$}{} ", at + 1, char::from(mark));
        out.extend_from_slice(number.as_bytes());
        prefix.resize(outer + width + 2, b' ');
        standard(&group[0], prefix, out);
        if let Some(value) = group.get(1) {
            out.pop();
            out.extend_from_slice(b" => ");
            if takes_lines(value) {
                out.push(b'\n');
                out.extend_from_slice(prefix);
            }
            standard(value, prefix, out);
        }
        prefix.truncate(outer);
    }
}

/// Whether a reply takes more than one line.
fn takes_lines(reply: &ServerReply) -> bool {
    match reply {
        ServerReply::Map(items) => match items.as_slice() {
            [] => false,
            [_, value] => takes_lines(value),
            _ => true,
        },
        other => match other.items() {
            None | Some([]) => false,
            Some([one]) => takes_lines(one),
            Some(_) => true,
        },
    }
}

fn csv(reply: &ServerReply, out: &mut Vec<u8>) {
    match reply {
        ServerReply::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            push_quoted(out, text);
        }
        ServerReply::Status(text) | ServerReply::Bulk(text) | ServerReply::Verbatim(text) => {
            push_quoted(out, text)
        }
        ServerReply::Int(value) => push_int(*value, out),
        ServerReply::Decimal(text) => out.extend_from_slice(text),
        ServerReply::Nil => out.extend_from_slice(b"NULL"),
        ServerReply::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        ServerReply::Array(items)
        | ServerReply::Set(items)
        | ServerReply::Push(items)
        | ServerReply::Map(items) => {
            join(items, b",", out, csv);
        }
    }
}

fn json(reply: &ServerReply, quoted: bool, out: &mut Vec<u8>) {
    match reply {
        ServerReply::Error(text) => {
            out.extend_from_slice(b"error:");
            json_string(text, quoted, out);
        }
        ServerReply::Status(text) | ServerReply::Bulk(text) | ServerReply::Verbatim(text) => {
            json_string(text, quoted, out);
        }
        ServerReply::Int(value) => push_int(*value, out),
        ServerReply::Decimal(text) => out.extend_from_slice(text),
        ServerReply::Nil => out.extend_from_slice(b"null"),
        ServerReply::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        ServerReply::Array(items) | ServerReply::Set(items) | ServerReply::Push(items) => {
            out.push(b'[');
            join(items, b",", out, |item, out| json(item, quoted, out));
            out.push(b']');
        }
        ServerReply::Map(items) => {
            out.push(b'{');
            join(items.chunks_exact(2), b",", out, |pair, out| {
                json_key(&pair[0], quoted, out);
                out.push(b':');
                json(&pair[1], quoted, out);
            });
            out.push(b'}');
        }
    }
}

/// Writes a key; in JSON it is a string, so a number is put between quotes.
fn json_key(key: &ServerReply, quoted: bool, out: &mut Vec<u8>) {
    let is_string = key.text().is_some() && !matches!(key, ServerReply::Decimal(_));
    if is_string {
        return json(key, quoted, out);
    }
    out.push(b'"');
    json(key, quoted, out);
    out.push(b'"');
}

fn json_string(text: &[u8], quoted: bool, out: &mut Vec<u8>) {
    if quoted {
        let mut ascii = Vec::new();
        push_quoted(&mut ascii, text);
        for byte in ascii {
            if byte == b'\\' {
                out.push(b'\\');
            }
            out.push(byte);
        }
        return;
    }
    out.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x08 => out.extend_from_slice(b"\\b"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> ServerReply {
        ServerReply::Bulk(text.as_bytes().to_vec())
    }

    #[track_caller]
    fn check(reply: &ServerReply, output: Output, expected: &str) {
        let delimiter = b"\n".to_vec();
        let style =
            Style { output, element_delimiter: delimiter.clone(), reply_delimiter: delimiter };
        let text = style.format(reply, false);
        assert_eq!(String::from_utf8_lossy(&text), expected, "{reply:?} as {output:?}");
    }

    #[test]
    fn maps_nest_in_every_form() {
        let pair = ServerReply::Array(vec![bulk("x"), bulk("y\n\u{e9}")]);
        let map = ServerReply::Map(vec![
            bulk("a"),
            ServerReply::Int(1),
            ServerReply::Int(2),
            pair,
            ServerReply::Status(b"c".to_vec()),
            ServerReply::Map(vec![ServerReply::Decimal(b"1.5".to_vec()), ServerReply::Bool(true)]),
        ]);
        let standard = "1# \"a\" => (integer) 1\n2# (integer) 2 => \n   1) \"x\"\n   \
            2) \"y\\n\\xc3\\xa9\"\n3# c => 1# (double) 1.5 => (true)\n";
        check(&map, Output::Standard, standard);
        check(&map, Output::Raw, "a 1\n2 x\ny\n\u{e9}\nc 1.5 (true)\n");
        check(&map, Output::Csv, "\"a\",1,2,\"x\",\"y\\n\\xc3\\xa9\",\"c\",1.5,true\n");
        let json = "{\"a\":1,\"2\":[\"x\",\"y\\n\u{e9}\"],\"c\":{\"1.5\":true}}\n";
        check(&map, Output::Json, json);
        let quoted = "{\"a\":1,\"2\":[\"x\",\"y\\\\n\\\\xc3\\\\xa9\"],\"c\":{\"1.5\":true}}\n";
        check(&map, Output::QuotedJson, quoted);
    }

    #[test]
    fn indexes_are_as_wide_as_the_last_one() {
        let items: Vec<ServerReply> = (0..10).map(ServerReply::Int).collect();
        let lines: Vec<String> =
            (0..10).map(|i| format!("{:>2}) (integer) {i}\n", i + 1)).collect();
        check(&ServerReply::Array(items), Output::Standard, &lines.concat());
    }

    #[test]
    fn control_characters_are_only_in_raw_output() {
        let hostile = b"a\x1b[2J\r\nb".to_vec();
        let replies = [
            ServerReply::Status(hostile.clone()),
            ServerReply::Error(hostile.clone()),
            ServerReply::Verbatim(hostile.clone()),
            ServerReply::Decimal(hostile),
        ];
        let shown = "1) a.[2J\r\nb\n2) (error) a.[2J\r\nb\n3) a.[2J\r\nb\n\
            4) (double) a.[2J\r\nb\n";
        check(&ServerReply::Array(replies.to_vec()), Output::Standard, shown);
        check(&replies[0], Output::Raw, "a\u{1b}[2J\r\nb\n");
    }

    #[test]
    fn an_invalidation_names_its_keys() {
        let keys = ServerReply::Array(vec![bulk("a"), bulk("b")]);
        let push = ServerReply::Push(vec![bulk("invalidate"), keys]);
        assert_eq!(invalidation(&push).as_deref(), Some(&b"-> invalidate: 'a', 'b'\n"[..]));
        assert_eq!(invalidation(&ServerReply::Push(vec![bulk("message")])), None);
    }
}
