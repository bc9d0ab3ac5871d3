//! `struct`: numbers and strings in C's layout.
//!
//! A format is a sequence of `b B h H l L T i I f d x c s`, with `< >` for the byte order and `!n`
//! for the alignment. Integers have up to 32 bytes, of which those beyond the eighth are zero.

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{NativeArguments, number};
use super::context::{LibraryContext, Problem, Returned, function, one};
use super::output::LibraryOutput;
use crate::state::VmState;

/// Longest integer in bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// The alignment of `!` without a number.
const NATIVE_ALIGNMENT: usize = 8;

pub fn library(lua: &Lua, state: &Rc<VmState>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", function(lua, state, "pack", pack)?)?;
    table.raw_set("unpack", function(lua, state, "unpack", unpack)?)?;
    table.raw_set("size", function(lua, state, "size", size)?)?;
    Ok(table)
}

/// Reads a format option by option.
struct PackFormat<'a> {
    rest: &'a [u8],
    big_endian: bool,
    alignment: usize,
    /// Only the size of the format is computed.
    only_sizes: bool,
}

/// A data option with its size.
struct PackItem {
    option: u8,
    size: usize,
}

impl<'a> PackFormat<'a> {
    fn new(text: &'a [u8]) -> Self {
        // As in C, a zero byte ends the format.
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Self { rest: &text[..end], big_endian: false, alignment: 1, only_sizes: false }
    }

    /// The next data option. Options before it change the order and alignment.
    fn next(
        &mut self,
        context: &LibraryContext<'_>,
        args: &NativeArguments<'_>,
    ) -> Result<Option<PackItem>, Problem> {
        loop {
            context.step()?;
            let Some((option, rest)) = self.rest.split_first() else { return Ok(None) };
            self.rest = rest;
            let size = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'f' => 4,
                b's' => 0,
                b'c' => self.number(1)?,
                b'i' | b'I' => {
                    let size = self.number(4)?;
                    if size > INTEGER_BYTES_MAX {
                        return Err(Problem::Message(format!(
                            "integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"
                        )));
                    }
                    size
                }
                b' ' => continue,
                b'<' | b'>' => {
                    self.big_endian = *option == b'>';
                    continue;
                }
                b'!' => {
                    let alignment = self.number(NATIVE_ALIGNMENT)?;
                    if !alignment.is_power_of_two() {
                        let text = format!("alignment {alignment} is not a power of 2");
                        return Err(Problem::Message(text));
                    }
                    self.alignment = alignment;
                    continue;
                }
                // As in Redis, which does not check unknown letters in this case.
                other if self.only_sizes && other.is_ascii_alphanumeric() => 0,
                other => {
                    let option = char::from(*other);
                    let why = format!("invalid format option '{option}'");
                    return Err(Problem::Message(args.wrong(1, &why)));
                }
            };
            return Ok(Some(PackItem { option: *option, size }));
        }
    }

    fn number(&mut self, default: usize) -> Result<usize, String> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Ok(default);
        }
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        let fold = |sum: i32, digit: &u8| {
            sum.checked_mul(10).and_then(|sum| sum.checked_add(i32::from(digit - b'0')))
        };
        let number = number.iter().try_fold(0i32, fold);
        number.map(|number| number as usize).ok_or_else(|| "integral size overflow".to_owned())
    }

    /// Padding bytes from `position` to where an item may begin.
    fn padding(&self, position: usize, item: &PackItem) -> usize {
        if item.size == 0 || item.option == b'c' {
            return 0;
        }
        let size = item.size.min(self.alignment);
        size.wrapping_sub(position & (size - 1)) & (size - 1)
    }

    fn push<const N: usize>(&self, out: &mut LibraryOutput<'_>, mut bytes: [u8; N], size: usize) {
        let bytes = &mut bytes[..size];
        if self.big_endian {
            bytes.reverse();
        }
        out.extend(bytes);
    }

    fn push_integer(&self, out: &mut LibraryOutput<'_>, number: f64, size: usize) {
        // A value out of range becomes zero, or the least integer, as on x86-64.
        let value = match number {
            number if number < 0.0 => number as i64 as u64,
            number if number < 18_446_744_073_709_551_616.0 => number as u64,
            number if number.is_nan() => 1 << 63,
            _ => 0,
        };
        let mut bytes = [0; INTEGER_BYTES_MAX];
        bytes[..8].copy_from_slice(&value.to_le_bytes());
        self.push(out, bytes, size);
    }

    fn integer(&self, bytes: &[u8], is_signed: bool) -> f64 {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if self.big_endian {
            bytes.iter().fold(0, fold)
        } else {
            bytes.iter().rev().fold(0, fold)
        };
        if !is_signed {
            return value as f64;
        }
        let unused = 64u32.saturating_sub(bytes.len() as u32 * 8).min(63);
        ((value << unused) as i64 >> unused) as f64
    }
}

fn pack(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    let text = args.text(1)?;
    let mut format = PackFormat::new(&text);
    let mut out = LibraryOutput::new(context);
    let mut next = 2;
    while let Some(item) = format.next(context, &args)? {
        out.check()?;
        let padding = format.padding(out.len(), &item);
        out.pad(padding);
        match item.option {
            b'x' => {
                out.push(0);
                continue;
            }
            b'f' => format.push(&mut out, (args.number(next)? as f32).to_le_bytes(), 4),
            b'd' => format.push(&mut out, args.number(next)?.to_le_bytes(), 8),
            b'c' | b's' => {
                let value = args.text(next)?;
                let size = if item.size == 0 { value.len() } else { item.size };
                let part = value.get(..size);
                let part = part.ok_or_else(|| args.wrong(next + 1, "string too short"))?;
                out.extend(part);
                if item.option == b's' {
                    out.push(0);
                }
            }
            _ => format.push_integer(&mut out, args.number(next)?, item.size),
        }
        next += 1;
    }
    out.into_returned()
}

fn unpack(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    let (text, data) = (args.text(1)?, args.text(2)?);
    let start = args.integer_or(3, 1)?;
    if start == 0 {
        return Err(Problem::Message(args.wrong(3, "offset must be 1 or greater")));
    }
    // As in C, a negative offset becomes a very large one.
    let mut position = (start as usize).wrapping_sub(1);
    let mut format = PackFormat::new(&text);
    let mut results = MultiValue::new();
    let short = || args.wrong(2, "data string too short");
    while let Some(item) = format.next(context, &args)? {
        position = position.checked_add(format.padding(position, &item)).ok_or_else(short)?;
        let rest = data.get(position..).ok_or_else(short)?;
        let bytes = rest.get(..item.size).ok_or_else(short)?;
        let mut size = item.size;
        let value = match item.option {
            b'x' => None,
            b'f' => Some(float(&format, bytes)),
            b'd' => Some(double(&format, bytes)),
            b'c' if size == 0 => {
                let length = results.pop_back().as_ref().and_then(number);
                let length = length.ok_or("format 'c0' needs a previous size".to_owned())?;
                size = if length < 0.0 { usize::MAX } else { length as usize };
                Some(context.string(rest.get(..size).ok_or_else(short)?)?)
            }
            b'c' => Some(context.string(bytes)?),
            b's' => {
                let end = memchr::memchr(0, rest);
                let end = end.ok_or("unfinished string in data".to_owned())?;
                size = end + 1;
                Some(context.string(&rest[..end])?)
            }
            option => Some(Value::Number(format.integer(bytes, option.is_ascii_lowercase()))),
        };
        results.extend(value);
        position += size;
    }
    results.push_back(Value::Number((position + 1) as f64));
    Ok(results)
}

fn float(format: &PackFormat<'_>, bytes: &[u8]) -> Value {
    let bytes = bytes.try_into().unwrap_or_default();
    let number =
        if format.big_endian { f32::from_be_bytes(bytes) } else { f32::from_le_bytes(bytes) };
    Value::Number(f64::from(number))
}

fn double(format: &PackFormat<'_>, bytes: &[u8]) -> Value {
    let bytes = bytes.try_into().unwrap_or_default();
    Value::Number(if format.big_endian {
        f64::from_be_bytes(bytes)
    } else {
        f64::from_le_bytes(bytes)
    })
}

fn size(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    let text = args.text(1)?;
    let mut format = PackFormat { only_sizes: true, ..PackFormat::new(&text) };
    let mut position = 0usize;
    while let Some(item) = format.next(context, &args)? {
        if item.option == b's' {
            return Err(Problem::Message(args.wrong(1, "option 's' has no fixed size")));
        }
        if item.option == b'c' && item.size == 0 {
            return Err(Problem::Message(args.wrong(1, "option 'c0' has no fixed size")));
        }
        position = position.saturating_add(format.padding(position, &item) + item.size);
    }
    one(Value::Number(position as f64))
}
