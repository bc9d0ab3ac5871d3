//! A script's return value as a reply.
//!
//! Numbers lose their fraction, false and nil are null. A table with a known field (`err`, `ok`,
//! `double`, `big_number`, `verbatim_string`, `map`, `set`) has that type; any other is the array
//! of its elements up to the first nil. Tables nest up to [`DEPTH_MAX`]; deeper values become an
//! error in the reply. The walk uses an explicit stack.
//!
//! This runs after the script, when it cannot be stopped and memory is not limited. So no code of
//! the script is called, and one budget bounds all work: a table can occur in a reply, and in
//! itself, many times.

use mlua::{Error, Function, LuaString, Table, Value};
use resp::Reply;

use crate::failure::{one_line, spaced, until_nul};

/// The depth that fits on the stack of a C function in Redis's Lua.
const DEPTH_MAX: usize = 7990;

/// The most bytes of all strings in a reply, which may contain one string many times.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// The most elements of a reply, at all levels: more than the memory of an interpreter can hold
/// once.
const REPLY_ELEMENTS_MAX: usize = 16 << 20;

/// Writing a table takes as long as this many other elements.
const TABLE_ELEMENTS: usize = 16;

/// The function `kind` of the prelude, and whether the script speaks RESP3.
pub struct ReturnWriter<'a> {
    pub kind: &'a Function,
    pub script_resp3: bool,
}

/// The result of `kind` for a table: a number, and the relevant values.
type TableKind = (u8, Value, Value);

/// A list whose elements are being written: an array, a set, or the keys and values of a map.
struct ReturnFrame {
    elements: Table,
    written: usize,
    len: usize,
}

/// The remaining budget of a reply.
struct ReplyBudget {
    bytes: usize,
    elements: usize,
}

impl ReplyBudget {
    fn take_bytes(&mut self, bytes: usize) -> mlua::Result<()> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| Error::runtime(format!("reply longer than {REPLY_BYTES_MAX} bytes")))?;
        Ok(())
    }

    fn take_elements(&mut self, elements: usize) -> mlua::Result<()> {
        self.elements = self.elements.checked_sub(elements).ok_or_else(|| {
            Error::runtime(format!("reply of more than {REPLY_ELEMENTS_MAX} elements"))
        })?;
        Ok(())
    }
}

impl ReturnWriter<'_> {
    /// Writes a value.
    pub fn write(&self, reply: &mut Reply<'_>, value: Value) -> mlua::Result<()> {
        let mut stack: Vec<ReturnFrame> = Vec::new();
        let mut budget = ReplyBudget { bytes: REPLY_BYTES_MAX, elements: REPLY_ELEMENTS_MAX };
        self.begin(reply, value, &mut stack, &mut budget)?;
        while let Some(top) = stack.last_mut() {
            if top.written == top.len {
                stack.pop();
                continue;
            }
            top.written += 1;
            let value: Value = top.elements.raw_get(top.written)?;
            self.begin(reply, value, &mut stack, &mut budget)?;
        }
        Ok(())
    }

    /// Writes a number.
    pub fn number(&self, reply: &mut Reply<'_>, number: f64) {
        reply.int(truncated(number));
    }

    /// Writes a truth value.
    pub fn boolean(&self, reply: &mut Reply<'_>, value: bool) {
        match value {
            _ if self.script_resp3 => reply.bool(value),
            true => reply.int(1),
            false => reply.null(),
        }
    }

    /// Writes a plain value, or the beginning of a table.
    fn begin(
        &self,
        reply: &mut Reply<'_>,
        value: Value,
        stack: &mut Vec<ReturnFrame>,
        budget: &mut ReplyBudget,
    ) -> mlua::Result<()> {
        if stack.len() >= DEPTH_MAX {
            reply.error(b"ERR reached lua stack limit");
            return Ok(());
        }
        match value {
            Value::String(text) => {
                let text = text.as_bytes();
                budget.take_bytes(text.len())?;
                reply.bulk(&text);
            }
            Value::Integer(number) => self.number(reply, number as f64),
            Value::Number(number) => self.number(reply, number),
            Value::Boolean(value) => self.boolean(reply, value),
            Value::Table(table) => {
                budget.take_elements(TABLE_ELEMENTS)?;
                let frame = begin_table(reply, self.kind.call(&table)?, budget)?;
                stack.extend(frame);
            }
            _ => reply.null(),
        }
        Ok(())
    }
}

/// Writes a value other than a list, or the header of a list, whose elements follow.
fn begin_table(
    reply: &mut Reply<'_>,
    kind: TableKind,
    budget: &mut ReplyBudget,
) -> mlua::Result<Option<ReturnFrame>> {
    if let (_, Value::String(text), _) = &kind {
        budget.take_bytes(text.as_bytes().len())?;
    }
    match kind {
        (1, Value::String(text), _) => reply.error(&error_text(&text)),
        (2, Value::String(text), _) => {
            let text = spaced(until_nul(&text.as_bytes()).to_vec());
            reply.raw(b"+");
            reply.raw(&text);
            reply.raw(b"\r\n");
        }
        (3, Value::Number(number), _) => reply.double(number),
        (3, Value::Integer(number), _) => reply.double(number as f64),
        (4, Value::String(digits), _) => big_number(reply, &digits),
        (5, Value::String(format), Value::String(text)) => {
            let text = text.as_bytes();
            budget.take_bytes(text.len())?;
            verbatim(reply, &format.as_bytes(), &text);
        }
        (kind, Value::Table(elements), len) => {
            let len = len.as_usize().unwrap_or_default();
            budget.take_elements(len)?;
            match kind {
                6 => reply.map(len / 2),
                7 => reply.set(len),
                _ => reply.array(len),
            }
            return Ok(Some(ReturnFrame { elements, written: 0, len }));
        }
        _ => reply.null(),
    }
    Ok(None)
}

/// The text of an error table as one line, up to its first zero byte.
pub fn error_text(text: &LuaString) -> Vec<u8> {
    one_line(until_nul(&text.as_bytes()).to_vec())
}

/// Rounds toward zero. A value out of range becomes the least integer, as on x86-64.
fn truncated(number: f64) -> i64 {
    let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
    if fits { number as i64 } else { i64::MIN }
}

fn big_number(reply: &mut Reply<'_>, digits: &LuaString) {
    let digits = spaced(digits.as_bytes().to_vec());
    if reply.resp3() {
        reply.raw(b"(");
        reply.raw(&digits);
        reply.raw(b"\r\n");
    } else {
        reply.bulk(&digits);
    }
}

/// The format is cut or padded to three bytes.
fn verbatim(reply: &mut Reply<'_>, format: &[u8], text: &[u8]) {
    let mut three = *b"   ";
    let format = &format[..format.len().min(three.len())];
    three.iter_mut().zip(until_nul(format)).for_each(|(to, from)| *to = *from);
    reply.verbatim(three, text);
}
