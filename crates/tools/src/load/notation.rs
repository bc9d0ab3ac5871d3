//! The arguments of requests in their two notations: that of the [workload table], and that of
//! words on the command line.
//!
//! [workload table]: super::workload::table

use std::borrow::Cow;

use super::shape::{RequestShape, decimal_width};
use super::workload::scripts;
use crate::Error;

/// The most digits a `u64` range can need.
const DIGITS_MAX: usize = 19;

/// Stands for a number of the range on the command line, in so many digits.
const RANDOM_NUMBER: &str = "__rand_int__";
const RANDOM_DIGITS: usize = 12;

/// Stand for a key and for a value there.
const KEY: &str = "__key__";
const DATA: &str = "__data__";

/// The value of a digit field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RandomDraw {
    /// The number of a key.
    Key,
    /// The number of the key before it in the request.
    SameKey,
    /// An integer from `low`, one of `span` values.
    Integer { low: u64, span: u64 },
}

/// A run of decimal digits inside a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DigitField {
    /// The position of its first digit.
    pub at: usize,
    pub width: usize,
    pub draw: RandomDraw,
}

impl DigitField {
    pub fn is_key(&self) -> bool {
        matches!(self.draw, RandomDraw::Key | RandomDraw::SameKey)
    }
}

/// One argument under construction.
#[derive(Debug, Default)]
pub(super) struct TemplateArgument {
    pub body: Vec<u8>,
    /// With positions counted from its first byte.
    pub fields: Vec<DigitField>,
    /// A value of varying length follows the body.
    pub has_value: bool,
}

/// Reads an argument of the workload table. `has_key` says that the request has a key before it.
pub(super) fn table_argument(
    word: &str,
    shape: &RequestShape,
    has_key: bool,
) -> Result<TemplateArgument, Error> {
    let mut argument = TemplateArgument::default();
    let mut rest = word;
    while let Some((before, inside, after)) = next_placeholder(rest) {
        argument.body.extend_from_slice(before.as_bytes());
        match inside {
            "same-key" if !has_key && !argument.fields.iter().any(DigitField::is_key) => {
                let text = "{same-key} stands before any {key} of the request";
                return Err(Error::Usage(text.into()));
            }
            "key" => argument.push_key(RandomDraw::Key, shape),
            "same-key" => argument.push_key(RandomDraw::SameKey, shape),
            "value" => argument.push_value(shape),
            other => match (script_text(other), integer_range(other)) {
                (Some(script), _) => argument.body.extend_from_slice(script.as_bytes()),
                (None, Some((low, high))) => {
                    let width = decimal_width(high);
                    let draw = RandomDraw::Integer { low, span: high - low + 1 };
                    argument.fields.push(DigitField { at: argument.body.len(), width, draw });
                    argument.body.extend_from_slice(low.to_string().as_bytes());
                }
                (None, None) => {
                    let text = format!("{{{other}}} is not a placeholder of a template");
                    return Err(Error::Usage(text));
                }
            },
        }
        rest = after;
    }
    argument.body.extend_from_slice(rest.as_bytes());
    Ok(argument)
}

impl TemplateArgument {
    fn push_key(&mut self, draw: RandomDraw, shape: &RequestShape) {
        self.body.extend_from_slice(shape.prefix.as_bytes());
        self.body.resize(self.body.len() + shape.key_digits(), b'0');
        let width = shape.moving_digits();
        self.fields.push(DigitField { at: self.body.len() - width, width, draw });
    }

    fn push_value(&mut self, shape: &RequestShape) {
        match shape.sizes {
            None => self.body.extend_from_slice(&shape.value()),
            Some(_) => self.has_value = true,
        }
    }
}

/// Reads an argument of the command line.
pub(super) fn word_argument(word: &[u8], shape: &RequestShape) -> Result<TemplateArgument, Error> {
    let mut argument = TemplateArgument::default();
    let mut rest = word;
    let names = [KEY, DATA, RANDOM_NUMBER];
    let next = |rest: &[u8]| {
        let found = names
            .into_iter()
            .filter_map(|name| memchr::memmem::find(rest, name.as_bytes()).map(|at| (at, name)));
        found.min()
    };
    while let Some((at, name)) = next(rest) {
        argument.body.extend_from_slice(&rest[..at]);
        match name {
            KEY => argument.push_key(RandomDraw::Key, shape),
            DATA => argument.push_value(shape),
            _ => {
                if shape.moving_digits() > RANDOM_DIGITS {
                    let text = format!("{RANDOM_NUMBER} has room for {RANDOM_DIGITS} digits");
                    return Err(Error::Usage(text));
                }
                let (at, width) = (argument.body.len(), RANDOM_DIGITS);
                argument.body.resize(at + width, b'0');
                argument.fields.push(DigitField { at, width, draw: RandomDraw::Key });
            }
        }
        rest = &rest[at + name.len()..];
    }
    argument.body.extend_from_slice(rest);
    Ok(argument)
}

/// Splits at the next `{...}`: before, inside, after.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, after) = rest.split_once('}')?;
    Some((before, inside, after))
}

/// `LOW..HIGH`, both of the same width, so that every number between them has it too.
fn integer_range(text: &str) -> Option<(u64, u64)> {
    let (low, high) = text.split_once("..")?;
    let fits = low.len() == high.len() && high.len() < DIGITS_MAX;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (fits && low <= high && decimal_width(low) == decimal_width(high)).then_some((low, high))
}

/// The source of a script for `script:NAME`, its hash for `sha1:NAME`.
fn script_text(text: &str) -> Option<Cow<'static, str>> {
    match text.split_once(':')? {
        ("script", name) => scripts::source(name).map(Cow::Borrowed),
        ("sha1", name) => scripts::sha1(name).map(Cow::Owned),
        _ => None,
    }
}

/// The text with `N*(...)` groups written out.
pub(super) fn expand_groups(text: &str) -> Result<String, Error> {
    let mut flat = String::new();
    let mut rest = text;
    while let Some((before, group)) = rest.split_once("*(") {
        let (head, times) = before.rsplit_once(' ').unwrap_or(("", before));
        let (group, after) = group
            .split_once(')')
            .ok_or_else(|| Error::Usage(format!("template '{text}': a group lacks its ')'")))?;
        let times: usize = times
            .parse()
            .map_err(|_| Error::Usage(format!("template '{text}': '{times}' repeats nothing")))?;
        flat.push_str(head);
        (0..times).for_each(|_| {
            flat.push(' ');
            flat.push_str(group);
        });
        rest = after;
    }
    flat.push_str(rest);
    Ok(flat)
}
