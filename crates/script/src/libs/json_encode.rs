//! `cjson.encode`: a value of Lua as JSON.
//!
//! A table whose keys are all positive integers is an array, and any other an object; an empty
//! table is an object. Open containers are kept on an explicit stack. Strings are bytes: invalid
//! UTF-8 is written unchanged.

use mlua::{Error, Table, Value};

use super::arguments::type_name;

use super::arguments::NativeArguments;
use super::context::{LibraryContext, Problem, Returned, STEP_BYTES};
use super::output::LibraryOutput;
use crate::json_config::{InvalidNumbers, JsonConfig, NESTING_MAX};
use crate::number::push_general;

/// `cjson.encode(value)`.
pub fn encode(
    context: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: JsonConfig,
) -> Returned {
    let value = args.at(1).filter(|_| args.len() == 1);
    let value = value.ok_or_else(|| args.wrong(1, "expected 1 argument"))?;
    let mut encoder = JsonEncoder { context, config, out: LibraryOutput::new(context) };
    encoder.document(value)?;
    encoder.out.into_returned()
}

struct JsonEncoder<'a> {
    context: &'a LibraryContext<'a>,
    config: JsonConfig,
    out: LibraryOutput<'a>,
}

/// A container that is being written, with its remaining elements.
enum OpenTable {
    Array {
        table: Table,
        written: usize,
        len: usize,
    },
    /// Alternating keys and values, as a list: the interpreter holds a bounded number of values for
    /// us at a time.
    Object {
        entries: Table,
        written: usize,
        len: usize,
    },
}

impl JsonEncoder<'_> {
    fn document(&mut self, value: &Value) -> Result<(), Problem> {
        let mut open = Vec::new();
        self.push(value, &mut open)?;
        while let Some(top) = open.last_mut() {
            self.context.step()?;
            self.out.check()?;
            match top {
                OpenTable::Array { written, len, .. } if written == len => {
                    self.out.push(b']');
                    open.pop();
                }
                OpenTable::Array { table, written, .. } => {
                    if *written > 0 {
                        self.out.push(b',');
                    }
                    *written += 1;
                    let value = table.raw_get(*written)?;
                    self.push(&value, &mut open)?;
                }
                OpenTable::Object { written, len, .. } if written == len => {
                    self.out.push(b'}');
                    open.pop();
                }
                OpenTable::Object { entries, written, .. } => {
                    if *written > 0 {
                        self.out.push(b',');
                    }
                    *written += 2;
                    let key = entries.raw_get(*written - 1)?;
                    let value = entries.raw_get(*written)?;
                    self.push_key(&key)?;
                    self.out.push(b':');
                    self.push(&value, &mut open)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a plain value, or the beginning of a container.
    fn push(&mut self, value: &Value, open: &mut Vec<OpenTable>) -> Result<(), Problem> {
        match value {
            Value::String(text) => {
                self.push_string(&text.as_bytes())?;
            }
            Value::Integer(number) => self.push_number(value, *number as f64)?,
            Value::Number(number) => self.push_number(value, *number)?,
            Value::Boolean(true) => self.out.extend(b"true"),
            Value::Boolean(false) => self.out.extend(b"false"),
            Value::Table(table) => self.begin(table, open)?,
            Value::Nil => self.out.extend(b"null"),
            null if *null == Value::NULL => self.out.extend(b"null"),
            other => return Err(refused(other, "type not supported")),
        }
        Ok(())
    }

    fn begin(&mut self, table: &Table, open: &mut Vec<OpenTable>) -> Result<(), Problem> {
        let depth = open.len() + 1;
        if depth > self.config.encode_max_depth.min(NESTING_MAX) as usize {
            let text = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(Problem::Message(text));
        }
        match self.array_len(table)? {
            Some(len) if len > 0 => {
                self.out.push(b'[');
                open.push(OpenTable::Array { table: table.clone(), written: 0, len });
            }
            _ => {
                self.out.push(b'{');
                let (entries, len) = self.entries(table)?;
                open.push(OpenTable::Object { entries, written: 0, len });
            }
        }
        Ok(())
    }

    /// The alternating keys and values of a table, and their number.
    fn entries(&self, table: &Table) -> Result<(Table, usize), Problem> {
        let entries = self.context.lua.create_table()?;
        let (mut len, mut stopped) = (0, None);
        let each = table.for_each(|key: Value, value: Value| {
            if let Err(problem) = self.context.step() {
                stopped = Some(problem);
                return Err(Error::StackError);
            }
            entries.raw_seti(len + 1, key)?;
            entries.raw_seti(len + 2, value)?;
            len += 2;
            Ok(())
        });
        match stopped {
            Some(problem) => Err(problem),
            None => Ok(each.map(|()| (entries, len))?),
        }
    }

    fn push_key(&mut self, key: &Value) -> Result<(), Problem> {
        let number = match key {
            Value::String(text) => {
                return self.push_string(&text.as_bytes());
            }
            Value::Integer(number) => *number as f64,
            Value::Number(number) => *number,
            other => return Err(refused(other, "table key must be a number or string")),
        };
        self.out.push(b'"');
        self.push_number(key, number)?;
        self.out.push(b'"');
        Ok(())
    }

    /// The greatest index of a table that is an array, or `None` for an object.
    fn array_len(&self, table: &Table) -> Result<Option<usize>, Problem> {
        let (mut greatest, mut elements) = (0.0f64, 0.0f64);
        for pair in table.pairs::<Value, Value>() {
            self.context.step()?;
            let index = match pair?.0 {
                Value::Integer(index) => index as f64,
                Value::Number(index) => index,
                _ => return Ok(None),
            };
            // Indexes have 32 bits.
            if index < 1.0 || index.fract() != 0.0 || index > f64::from(i32::MAX) {
                return Ok(None);
            }
            greatest = greatest.max(index);
            elements += 1.0;
        }
        let JsonConfig { sparse_ratio, sparse_safe, sparse_convert, .. } = self.config;
        let is_sparse = sparse_ratio > 0
            && greatest > elements * f64::from(sparse_ratio)
            && greatest > f64::from(sparse_safe);
        match (is_sparse, sparse_convert) {
            (false, _) => Ok(Some(greatest as usize)),
            (true, true) => Ok(None),
            (true, false) => {
                let text = "Cannot serialise table: excessively sparse array".to_owned();
                Err(Problem::Message(text))
            }
        }
    }

    fn push_number(&mut self, value: &Value, number: f64) -> Result<(), Problem> {
        if !number.is_finite() {
            let text = match self.config.encode_invalid_numbers {
                InvalidNumbers::Off => return Err(refused(value, "must not be NaN or Inf")),
                InvalidNumbers::Null => "null",
                InvalidNumbers::On if number.is_nan() => "nan",
                InvalidNumbers::On if number > 0.0 => "inf",
                InvalidNumbers::On => "-inf",
            };
            self.out.extend(text.as_bytes());
            return Ok(());
        }
        let precision = self.config.number_precision;
        let is_short = number.fract() == 0.0 && number.abs() < 10f64.powi(precision as i32);
        if is_short && (number != 0.0 || number.is_sign_positive()) {
            self.out.push_short(|out| base::number::push_i64(out, number as i64));
            return Ok(());
        }
        let mut text = String::new();
        push_general(&mut text, number, precision as usize);
        self.out.extend(text.as_bytes());
        Ok(())
    }

    fn push_string(&mut self, text: &[u8]) -> Result<(), Problem> {
        self.out.push(b'"');
        for part in text.chunks(STEP_BYTES) {
            self.push_escaped(part);
            self.out.check()?;
            if part.len() == STEP_BYTES {
                self.context.step_bytes()?;
            }
        }
        self.out.push(b'"');
        Ok(())
    }

    fn push_escaped(&mut self, text: &[u8]) {
        let mut plain = 0;
        for (at, byte) in text.iter().enumerate() {
            if !matches!(byte, 0..=0x1f | b'"' | b'\\' | b'/' | 0x7f) {
                continue;
            }
            self.out.extend(&text[plain..at]);
            plain = at + 1;
            match byte {
                b'"' | b'\\' | b'/' => self.out.extend(&[b'\\', *byte]),
                0x08 => self.out.extend(b"\\b"),
                b'\t' => self.out.extend(b"\\t"),
                b'\n' => self.out.extend(b"\\n"),
                0x0c => self.out.extend(b"\\f"),
                b'\r' => self.out.extend(b"\\r"),
                other => {
                    let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                    let (high, low) = (digit(other >> 4), digit(other & 15));
                    self.out.extend(&[b'\\', b'u', b'0', b'0', high, low]);
                }
            }
        }
        self.out.extend(&text[plain..]);
    }
}

fn refused(value: &Value, why: &str) -> Problem {
    Problem::Message(format!("Cannot serialise {}: {why}", type_name(value)))
}
