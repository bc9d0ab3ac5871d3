//! `cmsgpack.unpack` and its variants: read a stream of values.
//!
//! Open containers are kept on an explicit stack, so depth needs no recursion. A table grows with
//! the elements that are present, never with an announced length.

use mlua::{MultiValue, Table, Value};

use super::arguments::NativeArguments;
use super::context::{LibraryContext, Problem, Returned};

/// Levels of containers: as many as fit on the stack of Redis's Lua.
const DEPTH_MAX: usize = 4000;
/// The most results of one call.
const RESULTS_MAX: usize = 7990;

const TOO_MANY: &str = "stack overflow (too many return values at once; use unpack_one or \
                        unpack_limit instead.)";

/// `cmsgpack.unpack(data)`: all values.
pub fn unpack(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    values(context, args, None, 0)
}

/// `cmsgpack.unpack_one(data, offset)`: the next offset, or -1, and one value.
pub fn unpack_one(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    let offset = args.integer_or(2, 0)?;
    values(context, args, Some(1), offset)
}

/// `cmsgpack.unpack_limit(data, limit, offset)`: the next offset, or -1, and up to `limit` values.
pub fn unpack_limit(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    let limit = args.integer(2)?;
    let offset = args.integer_or(3, 0)?;
    // Without limit and offset this is `unpack`.
    values(context, args, (limit != 0 || offset != 0).then_some(limit), offset)
}

fn values(
    context: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    limit: Option<i64>,
    offset: i64,
) -> Returned {
    let data = args.text(1)?;
    let len = data.len();
    if offset < 0 || limit.is_some_and(|limit| limit < 0) {
        return Err(Problem::Message(format!(
            "Invalid request to unpack with offset of {offset} and limit of {len}."
        )));
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = data.get(start..);
    let rest =
        rest.ok_or_else(|| format!("Start offset {offset} greater than input length {len}."))?;
    let mut reader = UnpackReader { context, rest };
    let mut results = MultiValue::new();
    while !reader.rest.is_empty() && limit.is_none_or(|limit| (results.len() as i64) < limit) {
        if results.len() >= RESULTS_MAX {
            return Err(Problem::Message(TOO_MANY.to_owned()));
        }
        results.push_back(reader.value()?);
    }
    if limit.is_some() {
        let next = if reader.rest.is_empty() { -1.0 } else { (len - reader.rest.len()) as f64 };
        results.push_front(Value::Number(next));
    }
    Ok(results)
}

struct UnpackReader<'a> {
    context: &'a LibraryContext<'a>,
    rest: &'a [u8],
}

/// A container that is being filled.
struct OpenUnpacked {
    table: Table,
    /// The number of missing elements; keys and values of a map count separately.
    missing: u64,
    /// The index of the next element of an array.
    index: usize,
    /// Whether it is a map, and the key of the next value.
    is_map: bool,
    key: Option<Value>,
}

/// An item of the stream.
enum UnpackedItem {
    Value(Value),
    Array(u64),
    Map(u64),
}

impl UnpackReader<'_> {
    /// One value with all its contents.
    fn value(&mut self) -> Result<Value, Problem> {
        let mut open: Vec<OpenUnpacked> = Vec::new();
        loop {
            self.context.step()?;
            let mut value = match self.item()? {
                UnpackedItem::Value(value) => value,
                container => {
                    if open.len() >= DEPTH_MAX {
                        return Err(Problem::Message(TOO_MANY.to_owned()));
                    }
                    let (is_map, missing) = match container {
                        UnpackedItem::Map(pairs) => (true, pairs * 2),
                        UnpackedItem::Array(len) => (false, len),
                        UnpackedItem::Value(_) => continue,
                    };
                    let table = self.context.lua.create_table()?;
                    if missing > 0 {
                        open.push(OpenUnpacked { table, missing, index: 1, is_map, key: None });
                        continue;
                    }
                    Value::Table(table)
                }
            };
            // Adds the value to the innermost container, which may be complete with it.
            loop {
                let Some(top) = open.last_mut() else { return Ok(value) };
                top.add(value)?;
                if top.missing > 0 {
                    break;
                }
                value = match open.pop() {
                    Some(done) => Value::Table(done.table),
                    None => Value::Nil,
                };
            }
        }
    }

    fn item(&mut self) -> Result<UnpackedItem, Problem> {
        let [kind] = self.bytes()?;
        let value = match kind {
            0x00..=0x7f => Value::Number(f64::from(kind)),
            0xe0..=0xff => Value::Number(f64::from(kind as i8)),
            0xa0..=0xbf => self.string(usize::from(kind & 0x1f))?,
            0x90..=0x9f => return Ok(UnpackedItem::Array(u64::from(kind & 15))),
            0x80..=0x8f => return Ok(UnpackedItem::Map(u64::from(kind & 15))),
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f64::from(f32::from_be_bytes(self.bytes()?))),
            0xcb => Value::Number(f64::from_be_bytes(self.bytes()?)),
            0xcc => Value::Number(f64::from(u8::from_be_bytes(self.bytes()?))),
            0xcd => Value::Number(f64::from(u16::from_be_bytes(self.bytes()?))),
            0xce => Value::Number(f64::from(u32::from_be_bytes(self.bytes()?))),
            // Read as signed, as cmsgpack does.
            0xcf => Value::Number(i64::from_be_bytes(self.bytes()?) as f64),
            0xd0 => Value::Number(f64::from(i8::from_be_bytes(self.bytes()?))),
            0xd1 => Value::Number(f64::from(i16::from_be_bytes(self.bytes()?))),
            0xd2 => Value::Number(f64::from(i32::from_be_bytes(self.bytes()?))),
            0xd3 => Value::Number(i64::from_be_bytes(self.bytes()?) as f64),
            0xd9 => {
                let len = u8::from_be_bytes(self.bytes()?);
                self.string(usize::from(len))?
            }
            0xda => {
                let len = u16::from_be_bytes(self.bytes()?);
                self.string(usize::from(len))?
            }
            0xdb => {
                let len = u32::from_be_bytes(self.bytes()?);
                self.string(len as usize)?
            }
            0xdc => return Ok(UnpackedItem::Array(u64::from(u16::from_be_bytes(self.bytes()?)))),
            0xdd => return Ok(UnpackedItem::Array(u64::from(u32::from_be_bytes(self.bytes()?)))),
            0xde => return Ok(UnpackedItem::Map(u64::from(u16::from_be_bytes(self.bytes()?)))),
            0xdf => return Ok(UnpackedItem::Map(u64::from(u32::from_be_bytes(self.bytes()?)))),
            _ => return Err(Problem::Message("Bad data format in input.".to_owned())),
        };
        Ok(UnpackedItem::Value(value))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(missing)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn string(&mut self, len: usize) -> Result<Value, Problem> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or_else(missing)?;
        self.rest = rest;
        self.context.string(bytes)
    }
}

impl OpenUnpacked {
    fn add(&mut self, value: Value) -> Result<(), Problem> {
        self.missing -= 1;
        if !self.is_map {
            self.table.raw_seti(self.index, value)?;
            self.index += 1;
            return Ok(());
        }
        let Some(key) = self.key.take() else {
            self.key = Some(value);
            return Ok(());
        };
        match &key {
            Value::Nil => return Err(Problem::Message("table index is nil".to_owned())),
            Value::Number(number) if number.is_nan() => {
                return Err(Problem::Message("table index is NaN".to_owned()));
            }
            _ => self.table.raw_set(key, value)?,
        }
        Ok(())
    }
}

fn missing() -> Problem {
    Problem::Message("Missing bytes in input.".to_owned())
}
