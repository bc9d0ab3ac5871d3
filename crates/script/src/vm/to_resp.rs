//! What a script returns as a reply.
//!
//! Numbers lose their fraction, false and nil are null, a table is what its one field says
//! (`err`, `ok`, `double`, `big_number`, `verbatim_string`, `map`, `set`) or else the array of its
//! elements up to the first nil. Tables nest up to [`DEPTH_MAX`], below which the reply has an
//! error in the place of the value; the walk keeps its own stack and does not recurse.
//!
//! It comes after the run, when nothing ends it and memory is not limited. So nothing of the script
//! is called, and one budget bounds all work: a table can be in a reply, and in itself, many times.

use mlua::{Error, Function, LuaString, Table, Value};
use resp::Reply;

use crate::failure::{one_line, spaced, until_nul};

/// As many levels as fit on the stack that Redis's Lua grants to a C function.
const DEPTH_MAX: usize = 7990;

/// Bytes of all strings of a reply. One string of the script can be in it many times.
const REPLY_BYTES_MAX: usize = 512 << 20;

/// Elements of a reply, at all levels: more than the memory of an interpreter can hold once.
const REPLY_ELEMENTS_MAX: usize = 16 << 20;

/// A table takes as much time as so many other elements.
const TABLE_ELEMENTS: usize = 16;

/// The function `kind` of the prelude, and whether the script speaks RESP3.
pub struct ReturnWriter<'a> {
    pub kind: &'a Function,
    pub script_resp3: bool,
}

/// What `kind` says of a table: a number, and the values that matter.
type Kind = (u8, Value, Value);

/// A list whose elements are being written: of an array, a set, or keys and values of a map.
struct ReturnFrame {
    elements: Table,
    written: usize,
    len: usize,
}

/// What a reply may still take.
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

/// Writes what is no list, or the header of a list, whose elements follow.
fn begin_table(
    reply: &mut Reply<'_>,
    kind: Kind,
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

/// Toward zero; what no integer holds is the least one, as on x86-64.
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

/// A format of other than three bytes is cut, or filled with spaces.
fn verbatim(reply: &mut Reply<'_>, format: &[u8], text: &[u8]) {
    let mut three = *b"   ";
    let format = &format[..format.len().min(three.len())];
    three.iter_mut().zip(until_nul(format)).for_each(|(to, from)| *to = *from);
    reply.verbatim(three, text);
}
