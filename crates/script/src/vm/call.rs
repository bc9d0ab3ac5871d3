//! `redis.call` and `redis.pcall`: from Lua's arguments to a request, and from the reply to values.
//!
//! Arguments and most replies pass as texts and numbers ([`call`]); a second function ([`reply`])
//! fetches a reply that becomes a table.

use std::ops::Range;
use std::sync::Arc;

use mlua::{Lua, Table, Value};
use resp::request::BIG_BYTES_MIN;
use resp::{Args, Span};
use sys::luau::{CallResult, NativeArgument, StackArguments};

use super::from_resp::{self, Unconverted};
use crate::failure::coded;
use crate::host::HOST;
use crate::state::{CallBuffers, KEPT_BYTES_MAX, STATE, VmState};

const NO_ARGUMENTS: &str = "Please specify at least one argument for this redis lib call";
const TOO_LONG: &str = "Lua redis lib command arguments are longer than 512 MiB";
const NO_MEMORY: &[u8] = b"ERR not enough memory";
const WRONG_TYPE: &str = "Lua redis lib command arguments must be strings or integers";

/// The most bytes of all arguments of one command, which may contain one string many times.
const ARGUMENT_BYTES_MAX: usize = 512 << 20;

/// Longer replies go through [`reply`], which may collect garbage.
const TEXT_BYTES_MAX: usize = 16 * 1024;
/// The code of the status `OK`.
pub const OK_CODE: u8 = 1;
/// The code of a reply that [`reply`] must fetch.
pub const OTHER_CODE: u8 = 2;

/// Executes one command and returns its reply if it is of a common kind. Creates no reference to a
/// value of the interpreter.
pub fn call(arguments: StackArguments<'_>, text: &mut Vec<u8>) -> CallResult {
    // Commands can be called only within a run.
    if !STATE.is_set() || !HOST.is_set() {
        return CallResult::False;
    }
    STATE.with(|state| {
        let buffers = &mut *state.buffers.borrow_mut();
        buffers.clear();
        match push_arguments(buffers, arguments) {
            Ok(()) => execute(state, buffers),
            Err(text) => {
                buffers.is_refused = true;
                buffers.flat.extend_from_slice(text.as_bytes());
            }
        }
        let Some(answer) = short_answer(buffers) else { return CallResult::Code(OTHER_CODE) };
        if let CallResult::Text(_) = answer {
            std::mem::swap(buffers.reply_buffer(), text);
        }
        buffers.clear();
        answer
    })
}

/// Executes the command in the buffers, and leaves its reply there.
fn execute(state: &VmState, buffers: &mut CallBuffers) {
    let CallBuffers { bytes, spans, own, out, .. } = buffers;
    let request = Args::new(bytes, spans, own);
    let resp3 = state.resp3.get();
    HOST.with(|host| host.call(request, resp3, out));
}

/// The reply in the buffers, if it is short and not a table.
fn short_answer(buffers: &mut CallBuffers) -> Option<CallResult> {
    // Shared values are long.
    if buffers.shares_values() {
        return None;
    }
    let reply = buffers.reply_buffer();
    match reply.first()? {
        b'$' if reply[..] == *b"$-1\r\n" => Some(CallResult::False),
        // Its memory is reused by the next call.
        b'$' if reply.capacity() <= KEPT_BYTES_MAX => bulk(reply).map(CallResult::Text),
        b':' => {
            let digits = reply.get(1..)?.strip_suffix(b"\r\n")?;
            Some(CallResult::Number(base::number::parse_i64(digits)? as f64))
        }
        b'+' if reply[..] == *b"+OK\r\n" => Some(CallResult::Code(OK_CODE)),
        _ => None,
    }
}

/// The range of a short string in its reply.
fn bulk(reply: &[u8]) -> Option<Range<usize>> {
    let (mut len, mut start) = (0, 1);
    while let digit @ b'0'..=b'9' = reply.get(start)? {
        len = 10 * len + usize::from(digit - b'0');
        start += 1;
        if len > TEXT_BYTES_MAX {
            return None;
        }
    }
    start += 2;
    (start + len + 2 == reply.len()).then_some(start..start + len)
}

/// The reply after [`call`]: its value, or nil and the table of its error.
pub fn reply(state: &VmState, lua: &Lua) -> mlua::Result<(Value, Option<Table>)> {
    let mut buffers = state.buffers.borrow_mut();
    let bytes = buffers.reply_bytes();
    // Only finalizers can fail here, and there are none.
    let _ = state.collect_before(lua, bytes);
    if lua.used_memory().saturating_add(bytes) > state.memory_bytes_max {
        buffers.clear();
        return Ok((Value::Nil, Some(failure(lua, NO_MEMORY, false)?)));
    }
    buffers.join_reply();
    let reply = buffers.reply();
    let result = match reply.strip_prefix(b"-") {
        _ if buffers.is_refused => {
            Ok((Value::Nil, Some(failure(lua, &[b"ERR ", reply].concat(), false)?)))
        }
        Some(error) => {
            let line = error.strip_suffix(b"\r\n").unwrap_or(error);
            failure(lua, &coded(line), true).map(|table| (Value::Nil, Some(table)))
        }
        None => match from_resp::value(lua, state.memory_bytes_max, reply) {
            Ok(value) => Ok((value, None)),
            Err(Unconverted::NoMemory) => Ok((Value::Nil, Some(failure(lua, NO_MEMORY, false)?))),
            Err(Unconverted::Lua(error)) => Err(error),
        },
    };
    buffers.clear();
    result
}

/// The table of an error, as scripts see it.
pub fn failure(lua: &Lua, text: &[u8], counted: bool) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 2)?;
    table.raw_set("err", lua.create_string(text)?)?;
    if counted {
        table.raw_set("ignore_error_stats_update", true)?;
    }
    Ok(table)
}

/// Copies the arguments into the buffers.
///
/// # Errors
///
/// There are no arguments, one is neither a string nor a number, or they are too long.
pub fn push_arguments<'a>(
    buffers: &mut CallBuffers,
    arguments: impl ExactSizeIterator<Item = NativeArgument<'a>>,
) -> Result<(), &'static str> {
    buffers.is_used = true;
    if arguments.len() == 0 {
        return Err(NO_ARGUMENTS);
    }
    let mut len = 0;
    for argument in arguments {
        match argument {
            NativeArgument::Text(text) => {
                len += text.len();
                if len > ARGUMENT_BYTES_MAX {
                    return Err(TOO_LONG);
                }
                push_bytes(buffers, text);
            }
            NativeArgument::Number(number) => push_number(buffers, number),
            NativeArgument::Other => return Err(WRONG_TYPE),
        }
    }
    Ok(())
}

#[inline]
fn push_bytes(buffers: &mut CallBuffers, text: &[u8]) {
    if text.len() >= BIG_BYTES_MIN {
        buffers.spans.push(Span::own(buffers.own.len()));
        buffers.own.push(Arc::new(text.to_vec()));
        return;
    }
    buffers.spans.push(Span::new(buffers.bytes.len(), text.len()));
    buffers.bytes.extend_from_slice(text);
}

/// Writes integers in full, and other numbers with the shortest digits that read back as the same.
fn push_number(buffers: &mut CallBuffers, number: f64) {
    let start = buffers.bytes.len();
    // Removes the sign of a negative zero.
    base::number::push_f64(&mut buffers.bytes, number + 0.0);
    buffers.spans.push(Span::new(start, buffers.bytes.len() - start));
}
