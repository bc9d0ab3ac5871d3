//! Replies of commands as values of Lua.
//!
//! The types of RESP3 become tables with one field (`double`, `map`, `set`, `big_number`,
//! `verbatim_string`), nulls of RESP2 become false and the null of RESP3 nil. The server writes the
//! replies itself, so one that cannot be parsed is a bug: it becomes an error of the script.

use mlua::{Error, Lua, Table, Value};

/// The nesting limit of replies. Commands nest a few levels.
const DEPTH_MAX: u32 = 64;

/// Values between two looks at the memory.
const STEP_VALUES: usize = 1024;
/// Bytes of memory of an element of a table, and of a pair.
const ELEMENT_BYTES: usize = 16;
const PAIR_BYTES: usize = 64;

/// Why a reply did not become a value.
pub enum Unconverted {
    /// It needs more memory than the interpreter may take.
    NoMemory,
    Lua(Error),
}

/// The value of one whole reply that is not an error. The interpreter's memory is not limited
/// meanwhile, so what the value takes is compared with its limit here.
pub fn value(lua: &Lua, memory_bytes_max: usize, reply: &[u8]) -> Result<Value, Unconverted> {
    let mut parser = ReplyParser { lua, rest: reply, memory_bytes_max, values: 0, is_full: false };
    let value = parser.value(0);
    value.map_err(|error| match parser.is_full {
        true => Unconverted::NoMemory,
        false => Unconverted::Lua(error),
    })
}

struct ReplyParser<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
    memory_bytes_max: usize,
    values: usize,
    /// There is no memory for a part of the value.
    is_full: bool,
}

impl<'a> ReplyParser<'a> {
    fn value(&mut self, depth: u32) -> mlua::Result<Value> {
        if depth > DEPTH_MAX {
            return Err(malformed());
        }
        self.values += 1;
        if self.values.is_multiple_of(STEP_VALUES) {
            self.reserve(0)?;
        }
        let (kind, line) = self.line()?;
        match kind {
            b'$' => match length(line)? {
                Some(len) => self.string(len),
                None => Ok(Value::Boolean(false)),
            },
            b':' => integer(line).map(|number| Value::Number(number as f64)),
            b'+' => self.field("ok", Value::String(self.lua.create_string(line)?)),
            b'-' => {
                let table = super::call::failure(self.lua, &crate::failure::coded(line), true)?;
                Ok(Value::Table(table))
            }
            b'*' | b'>' => match length(line)? {
                Some(len) => self.array(len, depth),
                None => Ok(Value::Boolean(false)),
            },
            b'_' => Ok(Value::Nil),
            b'#' => Ok(Value::Boolean(line == b"t")),
            b',' => {
                let number = base::number::parse_f64(line).unwrap_or(f64::NAN);
                self.field("double", Value::Number(number))
            }
            b'(' => self.field("big_number", Value::String(self.lua.create_string(line)?)),
            b'=' => self.verbatim(count(line)?),
            b'%' => self.map(count(line)?, depth),
            b'~' => self.set(count(line)?, depth),
            b'|' => {
                for _ in 0..count(line)? * 2 {
                    self.value(depth + 1)?;
                }
                self.value(depth)
            }
            _ => Err(malformed()),
        }
    }

    /// Fails if there is no memory for so many bytes.
    fn reserve(&mut self, bytes: usize) -> mlua::Result<()> {
        let is_over = || self.lua.used_memory().saturating_add(bytes) > self.memory_bytes_max;
        if is_over() {
            self.lua.gc_collect()?;
            if is_over() {
                self.is_full = true;
                return Err(Error::runtime("not enough memory"));
            }
        }
        Ok(())
    }

    /// The type and the rest of a line.
    fn line(&mut self) -> mlua::Result<(u8, &'a [u8])> {
        let (kind, rest) = self.rest.split_first().ok_or_else(malformed)?;
        let end = rest.iter().position(|byte| *byte == b'\r').ok_or_else(malformed)?;
        self.rest = rest.get(end + 2..).ok_or_else(malformed)?;
        Ok((*kind, &rest[..end]))
    }

    fn bytes(&mut self, len: usize) -> mlua::Result<&'a [u8]> {
        let bytes = self.rest.get(..len).ok_or_else(malformed)?;
        self.rest = self.rest.get(len + 2..).ok_or_else(malformed)?;
        Ok(bytes)
    }

    fn string(&mut self, len: usize) -> mlua::Result<Value> {
        let bytes = self.bytes(len)?;
        self.lua.create_string(bytes).map(Value::String)
    }

    fn array(&mut self, len: usize, depth: u32) -> mlua::Result<Value> {
        let room = len.min(self.rest.len());
        self.reserve(room * ELEMENT_BYTES)?;
        let table = self.lua.create_table_with_capacity(room, 0)?;
        for index in 1..=len {
            let value = self.value(depth + 1)?;
            table.raw_seti(index, value)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: u32) -> mlua::Result<Value> {
        let room = len.min(self.rest.len());
        self.reserve(room * PAIR_BYTES)?;
        let map = self.lua.create_table_with_capacity(0, room)?;
        for _ in 0..len {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            if !key.is_nil() {
                map.raw_set(key, value)?;
            }
        }
        self.field("map", Value::Table(map))
    }

    fn set(&mut self, len: usize, depth: u32) -> mlua::Result<Value> {
        let room = len.min(self.rest.len());
        self.reserve(room * PAIR_BYTES)?;
        let set = self.lua.create_table_with_capacity(0, room)?;
        for _ in 0..len {
            let member = self.value(depth + 1)?;
            if !member.is_nil() {
                set.raw_set(member, true)?;
            }
        }
        self.field("set", Value::Table(set))
    }

    fn verbatim(&mut self, len: usize) -> mlua::Result<Value> {
        let bytes = self.bytes(len)?;
        let (format, text) = bytes.split_at_checked(4).ok_or_else(malformed)?;
        let table: Table = self.lua.create_table_with_capacity(0, 2)?;
        table.raw_set("string", self.lua.create_string(text)?)?;
        table.raw_set("format", self.lua.create_string(&format[..3])?)?;
        self.field("verbatim_string", Value::Table(table))
    }

    fn field(&self, name: &str, value: Value) -> mlua::Result<Value> {
        let table = self.lua.create_table_with_capacity(0, 1)?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    }
}

fn integer(line: &[u8]) -> mlua::Result<i64> {
    base::number::parse_i64(line).ok_or_else(malformed)
}

/// A length, or `None` for the null of RESP2.
fn length(line: &[u8]) -> mlua::Result<Option<usize>> {
    // The usual case is one digit.
    if let [digit @ b'0'..=b'9'] = line {
        return Ok(Some(usize::from(digit - b'0')));
    }
    Ok(usize::try_from(integer(line)?).ok())
}

fn count(line: &[u8]) -> mlua::Result<usize> {
    length(line)?.ok_or_else(malformed)
}

#[cold]
fn malformed() -> Error {
    Error::runtime("malformed reply of a command")
}
