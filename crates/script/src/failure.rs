//! The errors of scripts, with Redis's texts.

use mlua::Error;
use mlua::debug::Debug;

/// The chunk name of the prelude, which errors never show.
pub const PRELUDE_NAME: &str = "weft";

/// An error that a script replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFailure {
    /// The error with its code and without `-` or line ends.
    pub text: Vec<u8>,
    /// Whether it is the error of a command that the script called, which has already been counted.
    pub counted: bool,
}

impl ScriptFailure {
    /// An error that begins with its code.
    pub fn new(text: impl Into<Vec<u8>>) -> Self {
        Self { text: one_line(text.into()), counted: false }
    }
}

/// The position of an error in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The name of the chunk: with `@` before a file's name, with `=` before another name, else its
    /// text.
    pub source: Vec<u8>,
    /// The line, from 1.
    pub line: usize,
}

impl SourcePlace {
    /// The position of a stack frame, or `None` if it does not belong to a script.
    pub fn of(frame: &Debug<'_>) -> Option<SourcePlace> {
        let source = frame.source();
        let (short, line) = (source.short_src?, frame.current_line()?);
        let is_script = short != PRELUDE_NAME && short != "[C]";
        is_script.then(|| SourcePlace {
            source: source.source.unwrap_or_default().into_owned().into_bytes(),
            line,
        })
    }

    /// Appends ` script: NAME, on @user_script:LINE.`
    pub fn push_suffix(&self, name: &[u8], text: &mut Vec<u8>) {
        text.extend_from_slice(b" script: ");
        text.extend_from_slice(name);
        text.extend_from_slice(b", on ");
        text.extend_from_slice(&self.source);
        text.push(b':');
        base::number::push_u64(text, self.line as u64);
        text.push(b'.');
    }
}

/// The part before the first zero byte: Redis reads error texts from Lua as C strings.
pub fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// An error text as one line: trailing line ends are removed, others become spaces.
pub fn one_line(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().rposition(|byte| !is_line_end(byte)).map_or(0, |at| at + 1);
    text.truncate(end);
    spaced(text)
}

/// The text with spaces instead of line ends.
pub fn spaced(mut text: Vec<u8>) -> Vec<u8> {
    text.iter_mut().filter(|byte| is_line_end(byte)).for_each(|byte| *byte = b' ');
    text
}

fn is_line_end(byte: &u8) -> bool {
    matches!(*byte, b'\r' | b'\n')
}

/// An error reply, or the argument of `redis.error_reply`, as the text of an error table. A text
/// without a space gets the code `ERR`.
pub fn coded(text: &[u8]) -> Vec<u8> {
    let text = until_nul(text);
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (code, message) = match text.iter().position(|byte| *byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&b"ERR"[..], text),
    };
    let end = message.iter().rposition(|byte| !is_line_end(byte)).map_or(0, |at| at + 1);
    let start = message.iter().position(|byte| !is_line_end(byte)).unwrap_or(0).min(end);
    [code, b" ", &message[start..end]].concat()
}

/// The end of an error in which Lua 5.1 names the called function.
pub const CALL_OF_NIL: &[u8] = b"attempt to call a nil value";

/// Names the field whose call failed, which the interpreter does not do: the last field in the line
/// that its library does not have, or else the only call in the line if it is of a field.
///
/// `has` returns whether a library has a field, or `None` if there is no such library.
pub fn name_call(
    text: &mut Vec<u8>,
    source: &[u8],
    line: usize,
    has: impl Fn(&[u8], &[u8]) -> Option<bool>,
) {
    let line = source.split(|byte| *byte == b'\n').nth(line.saturating_sub(1));
    let calls: Vec<SourceCall<'_>> = line.map(calls).unwrap_or_default();
    let missing = calls
        .iter()
        .rev()
        .find(|call| call.of.is_some_and(|library| has(library, call.name) == Some(false)));
    let called = match (missing, calls.as_slice()) {
        (Some(call), _) => call.name,
        (None, [SourceCall { of: Some(_), name }]) => name,
        _ => return,
    };
    text.truncate(text.len() - CALL_OF_NIL.len());
    text.extend_from_slice(b"attempt to call field '");
    text.extend_from_slice(called);
    text.extend_from_slice(b"' (a nil value)");
}

/// A call in a line of source: `name(` or `of.name(`.
struct SourceCall<'a> {
    of: Option<&'a [u8]>,
    name: &'a [u8],
}

fn calls(line: &[u8]) -> Vec<SourceCall<'_>> {
    let open = line.iter().enumerate().filter(|(_, byte)| **byte == b'(');
    let call = |(at, _): (usize, &u8)| {
        let (before, name) = split_name(line[..at].trim_ascii_end());
        let of = before.strip_suffix(b".").map(|before| split_name(before).1);
        let is_call = !name.is_empty() && name != b"function";
        is_call.then_some(SourceCall { of, name })
    };
    open.filter_map(call).collect()
}

/// Splits off the name at the end of a text.
fn split_name(text: &[u8]) -> (&[u8], &[u8]) {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let start = text.iter().rposition(|byte| !is_name(byte)).map_or(0, |at| at + 1);
    text.split_at(start)
}

/// The message of an interpreter error, without a traceback.
pub fn message(error: &Error) -> String {
    let text = match error {
        Error::SyntaxError { message, .. } => message.clone(),
        Error::CallbackError { cause, .. } => return message(cause),
        Error::MemoryError(_) => "not enough memory".to_owned(),
        Error::RuntimeError(text) => text.clone(),
        other => other.to_string(),
    };
    text.lines().next().unwrap_or_default().to_owned()
}
