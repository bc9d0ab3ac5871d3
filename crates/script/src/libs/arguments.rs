//! The arguments of a library function, with the conversions and errors of Lua's own functions.

use std::ops::Deref;

use mlua::{BorrowedBytes, MultiValue, Value};

use crate::number::number_text;

/// The arguments of one call. Positions count from 1, as errors show them.
#[derive(Clone, Copy)]
pub struct NativeArguments<'a> {
    name: &'static str,
    values: &'a MultiValue,
}

impl<'a> NativeArguments<'a> {
    pub fn new(name: &'static str, values: &'a MultiValue) -> Self {
        Self { name, values }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        self.values.iter()
    }

    /// The value at a position, `None` for one that was not passed.
    pub fn at(&self, position: usize) -> Option<&'a Value> {
        self.values.get(position - 1)
    }

    /// The value at a position unless it is nil or was not passed.
    pub fn some(&self, position: usize) -> Option<&'a Value> {
        self.at(position).filter(|value| !value.is_nil())
    }

    /// The message of a wrong argument.
    pub fn wrong(&self, position: usize, why: &str) -> String {
        format!("bad argument #{position} to '{}' ({why})", self.name)
    }

    fn expected(&self, position: usize, what: &str) -> String {
        let found = self.at(position).map_or("no value", type_name);
        self.wrong(position, &format!("{what} expected, got {found}"))
    }

    /// A string, or a number as text.
    pub fn text(&self, position: usize) -> Result<TextArgument, String> {
        self.at(position).and_then(text).ok_or_else(|| self.expected(position, "string"))
    }

    /// A number, or a string that spells one.
    pub fn number(&self, position: usize) -> Result<f64, String> {
        self.at(position).and_then(number).ok_or_else(|| self.expected(position, "number"))
    }

    /// A number without its fraction.
    pub fn integer(&self, position: usize) -> Result<i64, String> {
        self.number(position).map(|number| number as i64)
    }

    /// A number without its fraction, or `default` for nil and what was not passed.
    pub fn integer_or(&self, position: usize, default: i64) -> Result<i64, String> {
        if self.some(position).is_none() { Ok(default) } else { self.integer(position) }
    }
}

/// The name of a value's type in Lua 5.1.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        Value::LightUserData(_) => "userdata",
        other => other.type_name(),
    }
}

/// The text of a string, which the interpreter keeps, or of a number.
pub enum TextArgument {
    Lua(BorrowedBytes),
    Number(String),
}

impl Deref for TextArgument {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lua(text) => text,
            Self::Number(text) => text.as_bytes(),
        }
    }
}

/// The text of a string or number.
pub fn text(value: &Value) -> Option<TextArgument> {
    match value {
        Value::String(text) => Some(TextArgument::Lua(text.as_bytes())),
        Value::Integer(number) => Some(TextArgument::Number(number_text(*number as f64))),
        Value::Number(number) => Some(TextArgument::Number(number_text(*number))),
        _ => None,
    }
}

/// A number, or the number that a string spells.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        Value::String(text) => {
            let text = text.as_bytes();
            let text = text.trim_ascii();
            let (number, used) = crate::number::leading_number(text)?;
            (used == text.len()).then_some(number)
        }
        _ => None,
    }
}
