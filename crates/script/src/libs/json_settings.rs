//! The functions of `cjson` that change and return its settings.

use mlua::{MultiValue, Value};

use super::arguments::NativeArguments;
use super::context::{LibraryContext, Problem, Returned, echoed, one};
use crate::json_config::{InvalidNumbers, JsonConfig};

type Setting = fn(&LibraryContext<'_>, NativeArguments<'_>, &mut JsonConfig) -> Returned;

/// The functions by name. Each changes a setting if it is given a value, and returns it.
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

fn count(args: &NativeArguments<'_>, max: usize) -> Result<(), Problem> {
    if args.len() > max {
        return Err(Problem::Message(args.wrong(max + 1, "found too many arguments")));
    }
    Ok(())
}

fn integer(
    args: &NativeArguments<'_>,
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

/// One of the words, or a truth value for the first two of them.
fn word(
    args: &NativeArguments<'_>,
    position: usize,
    current: usize,
    words: &[&str],
) -> Result<usize, Problem> {
    match args.some(position) {
        None => Ok(current),
        Some(Value::Boolean(value)) => Ok(usize::from(*value)),
        Some(_) => {
            let given = args.text(position)?;
            let found = words.iter().position(|word| *word.as_bytes() == *given);
            found.ok_or_else(|| {
                let given = echoed(crate::failure::until_nul(&given));
                Problem::Message(args.wrong(position, &format!("invalid option '{given}'")))
            })
        }
    }
}

fn truth(
    args: &NativeArguments<'_>,
    position: usize,
    setting: &mut bool,
) -> Result<Value, Problem> {
    *setting = word(args, position, usize::from(*setting), &["off", "on"])? == 1;
    Ok(Value::Boolean(*setting))
}

fn encode_sparse_array(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 3)?;
    let convert = truth(&args, 1, &mut config.sparse_convert)?;
    let ratio = integer(&args, 2, &mut config.sparse_ratio, 0, INT_MAX)?;
    let safe = integer(&args, 3, &mut config.sparse_safe, 0, INT_MAX)?;
    Ok(MultiValue::from_vec(vec![convert, ratio, safe]))
}

fn encode_max_depth(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 1)?;
    one(integer(&args, 1, &mut config.encode_max_depth, 1, INT_MAX)?)
}

fn decode_max_depth(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 1)?;
    one(integer(&args, 1, &mut config.decode_max_depth, 1, INT_MAX)?)
}

fn encode_number_precision(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 1)?;
    one(integer(&args, 1, &mut config.number_precision, 1, 14)?)
}

fn encode_keep_buffer(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 1)?;
    one(truth(&args, 1, &mut config.keep_buffer)?)
}

fn encode_invalid_numbers(
    context: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
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
                one(context.string(b"null")?)
            };
        }
    };
    one(Value::Boolean(chosen == 1))
}

fn decode_invalid_numbers(
    _: &LibraryContext<'_>,
    args: NativeArguments<'_>,
    config: &mut JsonConfig,
) -> Returned {
    count(&args, 1)?;
    one(truth(&args, 1, &mut config.decode_invalid_numbers)?)
}
