//! The settings of `cjson`, and the functions that change and return them.

use mlua::{MultiValue, Value};

use super::{Arguments, Context, Problem, Returned, echoed};

/// Levels of nesting whatever a setting allows: about what fits on the stack of Redis's Lua.
pub const NESTING_MAX: u32 = 2600;

/// How `cjson` treats numbers that JSON does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidNumbers {
    /// They are errors.
    Off,
    /// They are written as C prints them.
    On,
    /// They are written as null.
    Null,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether a sparse array becomes an object, and not an error.
    pub sparse_convert: bool,
    /// An array is sparse when its length exceeds its elements so many times; 0 for never.
    pub sparse_ratio: u32,
    /// Up to this length no array is sparse.
    pub sparse_safe: u32,
    /// Levels that `encode` writes.
    pub encode_max_depth: u32,
    /// Levels that `decode` reads.
    pub decode_max_depth: u32,
    /// Significant digits of numbers.
    pub number_precision: u32,
    /// Without effect: there is no buffer to keep.
    pub keep_buffer: bool,
    /// Numbers that JSON does not have, in `encode`.
    pub encode_invalid_numbers: InvalidNumbers,
    /// Whether `decode` takes such numbers.
    pub decode_invalid_numbers: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1000,
            decode_max_depth: 1000,
            number_precision: 14,
            keep_buffer: true,
            encode_invalid_numbers: InvalidNumbers::Off,
            decode_invalid_numbers: true,
        }
    }
}

type Setting = fn(&Context<'_>, Arguments<'_>, &mut Config) -> Returned;

/// The functions by name. Each changes a setting if it gets a value, and returns it.
pub const SETTINGS: &[(&str, Setting)] = &[
    ("encode_sparse_array", encode_sparse_array),
    ("encode_max_depth", encode_max_depth),
    ("decode_max_depth", decode_max_depth),
    ("encode_number_precision", encode_number_precision),
    ("encode_keep_buffer", encode_keep_buffer),
    ("encode_invalid_numbers", encode_invalid_numbers),
    ("decode_invalid_numbers", decode_invalid_numbers),
];

const INT_MAX: i64 = i32::MAX as i64;

fn count(args: &Arguments<'_>, max: usize) -> Result<(), Problem> {
    if args.len() > max {
        return Err(Problem::Message(args.wrong(max + 1, "found too many arguments")));
    }
    Ok(())
}

fn integer(
    args: &Arguments<'_>,
    position: usize,
    setting: &mut u32,
    min: i64,
    max: i64,
) -> Result<Value, Problem> {
    if args.some(position).is_some() {
        let value = args.integer(position)?;
        if !(min..=max).contains(&value) {
            let why = format!("expected integer between {min} and {max}");
            return Err(Problem::Message(args.wrong(1, &why)));
        }
        *setting = value as u32;
    }
    Ok(Value::Number(f64::from(*setting)))
}

/// One of the words, or a truth value for the first two.
fn word(
    args: &Arguments<'_>,
    position: usize,
    current: usize,
    words: &[&str],
) -> Result<usize, Problem> {
    match args.some(position) {
        None => Ok(current),
        Some(Value::Boolean(value)) => Ok(usize::from(*value)),
        Some(_) => {
            let given = args.text(position)?;
            let found = words.iter().position(|word| word.as_bytes() == given);
            found.ok_or_else(|| {
                let given = echoed(crate::failure::until_nul(&given));
                Problem::Message(args.wrong(position, &format!("invalid option '{given}'")))
            })
        }
    }
}

fn truth(args: &Arguments<'_>, position: usize, setting: &mut bool) -> Result<Value, Problem> {
    *setting = word(args, position, usize::from(*setting), &["off", "on"])? == 1;
    Ok(Value::Boolean(*setting))
}

fn encode_sparse_array(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 3)?;
    let convert = truth(&args, 1, &mut config.sparse_convert)?;
    let ratio = integer(&args, 2, &mut config.sparse_ratio, 0, INT_MAX)?;
    let safe = integer(&args, 3, &mut config.sparse_safe, 0, INT_MAX)?;
    Ok(MultiValue::from_vec(vec![convert, ratio, safe]))
}

fn encode_max_depth(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 1)?;
    super::one(integer(&args, 1, &mut config.encode_max_depth, 1, INT_MAX)?)
}

fn decode_max_depth(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 1)?;
    super::one(integer(&args, 1, &mut config.decode_max_depth, 1, INT_MAX)?)
}

fn encode_number_precision(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 1)?;
    super::one(integer(&args, 1, &mut config.number_precision, 1, 14)?)
}

fn encode_keep_buffer(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 1)?;
    super::one(truth(&args, 1, &mut config.keep_buffer)?)
}

fn encode_invalid_numbers(
    context: &Context<'_>,
    args: Arguments<'_>,
    config: &mut Config,
) -> Returned {
    count(&args, 1)?;
    let current = config.encode_invalid_numbers as usize;
    let chosen = word(&args, 1, current, &["off", "on", "null"])?;
    config.encode_invalid_numbers = match chosen {
        0 => InvalidNumbers::Off,
        1 => InvalidNumbers::On,
        _ => {
            return {
                config.encode_invalid_numbers = InvalidNumbers::Null;
                super::one(context.string(b"null")?)
            };
        }
    };
    super::one(Value::Boolean(chosen == 1))
}

fn decode_invalid_numbers(_: &Context<'_>, args: Arguments<'_>, config: &mut Config) -> Returned {
    count(&args, 1)?;
    super::one(truth(&args, 1, &mut config.decode_invalid_numbers)?)
}
