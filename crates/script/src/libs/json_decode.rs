//! `cjson.decode`: JSON as a value of Lua.
//!
//! Open containers are kept on an explicit stack. Beyond RFC 8259 it accepts, as lua-cjson does,
//! numbers with leading zeros, hexadecimal numbers, infinity and NaN, and control characters in
//! strings. A zero byte ends the text.

use mlua::{Table, Value};

use super::arguments::NativeArguments;
use super::context::{LibraryContext, Problem, Returned, one};
use crate::json_config::{JsonConfig, NESTING_MAX};
use crate::number::leading_number;

/// `cjson.decode(text)`.
pub fn decode(
    context: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: JsonConfig,
) -> Returned {
    if args.len() != 1 {
        return Err(Problem::Message(args.wrong(1, "expected 1 argument")));
    }
    let text = args.text(1)?;
    if let [first, second, ..] = text[..]
        && (first == 0 || second == 0)
    {
        let text = "JSON parser does not support UTF-16 or UTF-32".to_owned();
        return Err(Problem::Message(text));
    }
    let mut decoder = JsonDecoder { context, config, text: &text, at: 0, scratch: Vec::new() };
    let value = decoder.document()?;
    one(value)
}

/// The tokens of the text.
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its bytes are in `scratch`.
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// Not a token; describes what was found instead.
    Wrong(&'static str),
}

impl Token {
    /// Its name in errors.
    fn name(&self) -> &'static str {
        match self {
            Self::ObjectBegin => "T_OBJ_BEGIN",
            Self::ObjectEnd => "T_OBJ_END",
            Self::ArrayBegin => "T_ARR_BEGIN",
            Self::ArrayEnd => "T_ARR_END",
            Self::String => "T_STRING",
            Self::Number(_) => "T_NUMBER",
            Self::Boolean(_) => "T_BOOLEAN",
            Self::Null => "T_NULL",
            Self::Colon => "T_COLON",
            Self::Comma => "T_COMMA",
            Self::End => "T_END",
            Self::Wrong(found) => found,
        }
    }
}

/// A container that is being filled.
enum OpenContainer {
    Array { table: Table, len: usize },
    Object { table: Table, key: Value },
}

struct JsonDecoder<'a> {
    context: &'a LibraryContext<'a>,
    config: JsonConfig,
    text: &'a [u8],
    at: usize,
    scratch: Vec<u8>,
}

impl JsonDecoder<'_> {
    fn document(&mut self) -> Result<Value, Problem> {
        let mut open: Vec<OpenContainer> = Vec::new();
        let (mut token, mut start) = self.token()?;
        loop {
            self.context.step()?;
            let mut value = match token {
                Token::String => self.context.string(&self.scratch)?,
                Token::Number(number) => Value::Number(number),
                Token::Boolean(value) => Value::Boolean(value),
                Token::Null => Value::NULL,
                Token::ObjectBegin => match self.object(&mut open)? {
                    Some(empty) => empty,
                    None => {
                        (token, start) = self.token()?;
                        continue;
                    }
                },
                Token::ArrayBegin => {
                    self.descend(&open)?;
                    let table = self.context.lua.create_table()?;
                    (token, start) = self.token()?;
                    if !matches!(token, Token::ArrayEnd) {
                        open.push(OpenContainer::Array { table, len: 0 });
                        continue;
                    }
                    Value::Table(table)
                }
                other => return Err(expected("value", &other, start)),
            };
            // Adds the value to the innermost container, which may end with it.
            loop {
                let Some(top) = open.last_mut() else {
                    let (token, start) = self.token()?;
                    return match token {
                        Token::End => Ok(value),
                        other => Err(expected("the end", &other, start)),
                    };
                };
                top.add(value)?;
                let (next, at) = self.token()?;
                match (next, &mut *top) {
                    (Token::ArrayEnd, OpenContainer::Array { table, .. })
                    | (Token::ObjectEnd, OpenContainer::Object { table, .. }) => {
                        value = Value::Table(table.clone());
                        open.pop();
                    }
                    (Token::Comma, OpenContainer::Array { .. }) => break,
                    (Token::Comma, OpenContainer::Object { key, .. }) => {
                        let (token, at) = self.token()?;
                        *key = self.key(token, at)?;
                        break;
                    }
                    (other, OpenContainer::Array { .. }) => {
                        return Err(expected("comma or array end", &other, at));
                    }
                    (other, OpenContainer::Object { .. }) => {
                        return Err(expected("comma or object end", &other, at));
                    }
                }
            }
            (token, start) = self.token()?;
        }
    }

    /// Opens an object and reads its first key, or returns the object if it is empty.
    fn object(&mut self, open: &mut Vec<OpenContainer>) -> Result<Option<Value>, Problem> {
        self.descend(open)?;
        let table = self.context.lua.create_table()?;
        let (token, at) = self.token()?;
        if matches!(token, Token::ObjectEnd) {
            return Ok(Some(Value::Table(table)));
        }
        let key = self.key(token, at)?;
        open.push(OpenContainer::Object { table, key });
        Ok(None)
    }

    fn descend(&self, open: &[OpenContainer]) -> Result<(), Problem> {
        let depth = open.len() as u32 + 1;
        if depth > self.config.decode_max_depth.min(NESTING_MAX) {
            return Err(Problem::Message(format!(
                "Found too many nested data structures ({depth}) at character {}",
                self.at
            )));
        }
        Ok(())
    }

    /// Checks that `token` is a key, and reads its colon.
    fn key(&mut self, token: Token, at: usize) -> Result<Value, Problem> {
        if !matches!(token, Token::String) {
            return Err(expected("object key string", &token, at));
        }
        let key = self.context.string(&self.scratch)?;
        let (token, at) = self.token()?;
        match token {
            Token::Colon => Ok(key),
            other => Err(expected("colon", &other, at)),
        }
    }

    /// The byte at a position, or zero after the end.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn token(&mut self) -> Result<(Token, usize), Problem> {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
            self.context.step()?;
        }
        let start = self.at;
        let token = match self.byte(start) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b',' => Token::Comma,
            b':' => Token::Colon,
            0 => return Ok((Token::End, start)),
            b'"' => {
                let token = self.string()?;
                let at = if matches!(token, Token::Wrong(_)) { self.at } else { start };
                return Ok((token, at));
            }
            b'-' | b'0'..=b'9' => {
                if !self.config.decode_invalid_numbers && self.is_invalid_number() {
                    return Ok((Token::Wrong("invalid number"), start));
                }
                return Ok((self.number(), start));
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => return Ok((self.word(), start)),
            _ => return Ok((Token::Wrong("invalid token"), start)),
        };
        self.at += 1;
        Ok((token, start))
    }

    fn word(&mut self) -> Token {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let words = [
            (&b"true"[..], Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        for (word, token) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        if self.config.decode_invalid_numbers && self.is_invalid_number() {
            return self.number();
        }
        Token::Wrong("invalid token")
    }

    /// Whether a number that JSON does not have begins here.
    fn is_invalid_number(&self) -> bool {
        let first = self.byte(self.at);
        if first == b'+' {
            return true;
        }
        let at = self.at + usize::from(first == b'-');
        let digit = self.byte(at);
        if digit == b'0' {
            let next = self.byte(at + 1);
            return next.eq_ignore_ascii_case(&b'x') || next.is_ascii_digit();
        }
        if digit <= b'9' {
            return false;
        }
        let word = self.text.get(at..at + 3).unwrap_or_default();
        word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
    }

    fn number(&mut self) -> Token {
        let rest = self.text.get(self.at..).unwrap_or_default();
        match leading_number(rest) {
            Some((number, used)) => {
                self.at += used;
                Token::Number(number)
            }
            None => Token::Wrong("invalid number"),
        }
    }

    /// Reads a string into `scratch`.
    fn string(&mut self) -> Result<Token, Problem> {
        self.at += 1;
        self.scratch.clear();
        loop {
            self.context.step()?;
            let rest = self.text.get(self.at..).unwrap_or_default();
            let Some(plain) = memchr::memchr3(b'"', b'\\', 0, rest) else {
                self.at = self.text.len();
                return Ok(Token::Wrong("unexpected end of string"));
            };
            self.scratch.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match rest[plain] {
                b'"' => {
                    self.at += 1;
                    return Ok(Token::String);
                }
                0 => return Ok(Token::Wrong("unexpected end of string")),
                _ => {}
            }
            let escaped = match self.byte(self.at + 1) {
                byte @ (b'"' | b'\\' | b'/') => byte,
                b'b' => 0x08,
                b't' => b'\t',
                b'n' => b'\n',
                b'f' => 0x0c,
                b'r' => b'\r',
                b'u' => match self.unicode_escape() {
                    Some(used) => {
                        self.at += used;
                        continue;
                    }
                    None => return Ok(Token::Wrong("invalid unicode escape code")),
                },
                _ => return Ok(Token::Wrong("invalid escape code")),
            };
            self.scratch.push(escaped);
            self.at += 2;
        }
    }

    /// Reads `\uXXXX`, or two of them for a character beyond 16 bits, as UTF-8 into `scratch`.
    /// Returns the number of bytes it consumed.
    fn unicode_escape(&mut self) -> Option<usize> {
        let first = self.hex4(self.at + 2)?;
        let (code, used) = match first {
            0xd800..=0xdbff => {
                if self.byte(self.at + 6) != b'\\' || self.byte(self.at + 7) != b'u' {
                    return None;
                }
                let second = self.hex4(self.at + 8)?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return None;
                }
                (0x1_0000 + ((first & 0x3ff) << 10 | second & 0x3ff), 12)
            }
            code => (code, 6),
        };
        let character = char::from_u32(code)?;
        self.scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Some(used)
    }

    fn hex4(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits
            .iter()
            .try_fold(0, |sum, digit| char::from(*digit).to_digit(16).map(|digit| sum << 4 | digit))
    }
}

impl OpenContainer {
    fn add(&mut self, value: Value) -> mlua::Result<()> {
        match self {
            Self::Array { table, len } => {
                *len += 1;
                table.raw_seti(*len, value)
            }
            Self::Object { table, key } => table.raw_set(std::mem::replace(key, Value::Nil), value),
        }
    }
}

fn expected(what: &str, found: &Token, at: usize) -> Problem {
    Problem::Message(format!("Expected {what} but found {} at character {}", found.name(), at + 1))
}
