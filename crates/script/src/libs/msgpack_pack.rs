//! `cmsgpack.pack`: each value in its shortest form.
//!
//! A table whose keys are 1 to n is an array, any other a map. Tables nested deeper than
//! [`DEPTH_MAX`] become nil, which also ends tables that contain themselves.

use mlua::{Table, Value};

use super::arguments::NativeArguments;
use super::context::{LibraryContext, Problem, Returned};
use super::output::LibraryOutput;

/// Levels of tables.
const DEPTH_MAX: u32 = 16;

/// `cmsgpack.pack(...)`: all arguments one after the other.
pub fn pack(context: &LibraryContext<'_>, args: NativeArguments<'_>) -> Returned {
    if args.len() == 0 {
        return Err(Problem::Message(args.wrong(0, "MessagePack pack needs input.")));
    }
    let mut out = LibraryOutput::new(context);
    for value in args.iter() {
        push(context, &mut out, value, 0)?;
    }
    out.into_returned()
}

fn push(
    context: &LibraryContext<'_>,
    out: &mut LibraryOutput<'_>,
    value: &Value,
    depth: u32,
) -> Result<(), Problem> {
    context.step()?;
    out.check()?;
    match value {
        Value::String(text) => push_string(out, &text.as_bytes()),
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => push_integer(out, *number),
        Value::Number(number) => push_number(out, *number),
        Value::Table(table) if depth < DEPTH_MAX => push_table(context, out, table, depth)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// The length of an array, or the number of pairs of a map.
enum TableShape {
    Array(usize),
    Map(usize),
}

fn shape(context: &LibraryContext<'_>, table: &Table) -> Result<TableShape, Problem> {
    let (mut pairs, mut greatest, mut is_array) = (0usize, 0.0f64, true);
    for pair in table.pairs::<Value, Value>() {
        context.step()?;
        let (key, _) = pair?;
        let index = match key {
            Value::Integer(index) => index as f64,
            Value::Number(index) => index,
            _ => 0.0,
        };
        // Indices have 32 bits.
        is_array &= index > 0.0 && index.fract() == 0.0 && index <= f64::from(i32::MAX);
        greatest = greatest.max(index);
        pairs += 1;
    }
    Ok(if is_array && greatest == pairs as f64 {
        TableShape::Array(pairs)
    } else {
        TableShape::Map(pairs)
    })
}

fn push_table(
    context: &LibraryContext<'_>,
    out: &mut LibraryOutput<'_>,
    table: &Table,
    depth: u32,
) -> Result<(), Problem> {
    match shape(context, table)? {
        TableShape::Array(len) => {
            push_header(out, 0x90, 0xdc, len);
            for index in 1..=len {
                push(context, out, &table.raw_get(index)?, depth + 1)?;
            }
        }
        TableShape::Map(len) => {
            push_header(out, 0x80, 0xde, len);
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                push(context, out, &key, depth + 1)?;
                push(context, out, &value, depth + 1)?;
            }
        }
    }
    Ok(())
}

/// The header of an array or map: with a short, a 16-bit or a 32-bit length.
fn push_header(out: &mut LibraryOutput<'_>, short: u8, long: u8, len: usize) {
    if len <= 15 {
        out.push(short | len as u8);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(long);
        out.extend(&len.to_be_bytes());
    } else {
        out.push(long + 1);
        out.extend(&(len as u32).to_be_bytes());
    }
}

fn push_string(out: &mut LibraryOutput<'_>, text: &[u8]) {
    let len = text.len();
    if len < 32 {
        out.push(0xa0 | len as u8);
    } else if let Ok(len) = u8::try_from(len) {
        out.extend(&[0xd9, len]);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(0xda);
        out.extend(&len.to_be_bytes());
    } else {
        out.push(0xdb);
        out.extend(&(len as u32).to_be_bytes());
    }
    out.extend(text);
}

fn push_number(out: &mut LibraryOutput<'_>, number: f64) {
    let is_integer = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    if is_integer {
        push_integer(out, number as i64);
    } else if f64::from(number as f32) == number {
        out.push(0xca);
        out.extend(&(number as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend(&number.to_be_bytes());
    }
}

fn push_integer(out: &mut LibraryOutput<'_>, number: i64) {
    let bytes = number.to_be_bytes();
    let (kind, len) = match number {
        -32..=127 => return out.push(number as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..=-33 => (0xd0, 1),
        -0x8000..=-0x81 => (0xd1, 2),
        -0x8000_0000..=-0x8001 => (0xd2, 4),
        i64::MIN..=-0x8000_0001 => (0xd3, 8),
    };
    out.push(kind);
    out.extend(&bytes[8 - len..]);
}
