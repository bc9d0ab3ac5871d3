//! The native functions that the prelude wraps for scripts.
//!
//! Each takes any arguments and returns a truth value with its results, or false and a message:
//! errors of mlua are not values that a script could inspect.

use std::rc::Rc;

use mlua::{BString, BorrowedBytes, Either, Function, IntoLua, Lua, MultiValue, Table, Value};
use resp::Args;
use sha1::{Digest, Sha1};
use sys::luau::{self, NativeArgument};

use super::call;
use super::compile::{LOADSTRING_BYTES_MAX, compile};

use crate::failure::{SourcePlace, coded};
use crate::flags::ScriptFlags;
use crate::host::{HOST, LogLevel, ScriptReplication};
use crate::libs::{self, number, text};
use crate::script::digits;
use crate::state::{Registration, VmState};

/// The version of Redis whose commands and scripts this server implements.
const REDIS_VERSION: &str = "8.0.6";
const REDIS_VERSION_NUM: f64 = 0x0008_0006 as f64;

/// 2^52 + 2^51: the sum of this double and a small integer has the integer's bits in its lower
/// half.
const LOW_BITS_BIAS: f64 = 6_755_399_441_055_744.0;

/// How many stack levels below an error handler are searched for the script; frames in between
/// belong to the prelude.
const SOURCE_LEVELS_MAX: usize = 16;

/// The longest line of `redis.log`; longer ones are cut.
const LOG_LINE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that `redis.sha1hex` hashes between two checks of the host.
const SHA_STEP_BYTES: usize = 1 << 20;

/// The results of a native: true and a value, or false and a message.
type NativeResult = mlua::Result<(bool, Value)>;

/// The table for the prelude. `inputs` is that of KEYS and ARGV.
pub fn table(lua: &Lua, state: &Rc<VmState>, inputs: &Table) -> mlua::Result<Table> {
    let natives = lua.create_table()?;
    let with_state = |f: fn(&VmState, &Lua, MultiValue) -> NativeResult| {
        let state = Rc::clone(state);
        lua.create_function(move |lua, args| state.unlimited(lua, || f(&state, lua, args)))
    };
    natives.raw_set("caller", luau::create_caller(lua, call::call)?)?;
    natives.raw_set("ok_code", call::OK_CODE)?;
    let shared = Rc::clone(state);
    natives.raw_set(
        "reply",
        lua.create_function(move |lua, ()| shared.unlimited(lua, || call::reply(&shared, lua)))?,
    )?;
    natives.raw_set("inputs", inputs)?;
    natives.raw_set("ask_input", luau::create_asker(lua, inputs)?)?;
    natives.raw_set("log", with_state(log)?)?;
    natives.raw_set("sha1hex", with_state(sha1hex)?)?;
    natives.raw_set("setresp", with_state(setresp)?)?;
    natives.raw_set("set_repl", with_state(set_repl)?)?;
    natives.raw_set("acl_check_cmd", with_state(acl_check_cmd)?)?;
    natives.raw_set("register_function", with_state(register_function)?)?;
    natives.raw_set("null", Value::NULL)?;
    natives.raw_set("is_negative", lua.create_function(|_, n: f64| Ok(n.is_sign_negative()))?)?;
    let low_bits = |_: &Lua, n: f64| Ok(f64::from((n + LOW_BITS_BIAS).to_bits() as u32));
    natives.raw_set("low_bits", lua.create_function(low_bits)?)?;
    natives.raw_set("error_text", lua.create_function(error_text)?)?;
    natives.raw_set("source", lua.create_function(|lua, ()| Ok(source(lua)))?)?;
    natives.raw_set("loadstring", lua.create_function(loadstring)?)?;
    let strings: Table = lua.globals().raw_get("string")?;
    natives.raw_set("strings", luau::create_string_functions(lua, &strings)?)?;
    natives.raw_set("clock", lua.create_function(|_, ()| Ok(clock()))?)?;
    let shared = Rc::clone(state);
    natives.raw_set("random", lua.create_function(move |_, ()| Ok(random(&shared)))?)?;
    let shared = Rc::clone(state);
    let seed = move |_: &Lua, seed: f64| {
        shared.random.set(Some(seeded(seed as i64 as u64)));
        Ok(())
    };
    natives.raw_set("randomseed", lua.create_function(seed)?)?;
    let shared = Rc::clone(state);
    natives.raw_set("poll", lua.create_function(move |lua, ()| shared.poll(lua))?)?;
    let shared = Rc::clone(state);
    let note_error = move |_: &Lua, text: BorrowedBytes| {
        shared.note_returned_error(&text);
        Ok(())
    };
    natives.raw_set("note_error", lua.create_function(note_error)?)?;
    natives.raw_set("constants", constants(lua)?)?;
    natives.raw_set("replication", replication(lua)?)?;
    natives.raw_set("libraries", libs::tables(lua, state)?)?;
    natives.raw_set("json", libs::json_instance(lua, state, &state.json)?)?;
    let shared = Rc::clone(state);
    let new_json = move |lua: &Lua, ()| {
        shared.unlimited(lua, || libs::json_instance(lua, &shared, &Rc::default()))
    };
    natives.raw_set("new_json", lua.create_function(new_json)?)?;
    Ok(natives)
}

fn constants(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("REDIS_VERSION", REDIS_VERSION)?;
    table.raw_set("REDIS_VERSION_NUM", REDIS_VERSION_NUM)?;
    for (level, name) in
        ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"].iter().enumerate()
    {
        table.raw_set(*name, level as f64)?;
    }
    Ok(table)
}

fn replication(lua: &Lua) -> mlua::Result<Table> {
    let targets = [
        ("REPL_NONE", 0.0),
        ("REPL_AOF", 1.0),
        ("REPL_SLAVE", 2.0),
        ("REPL_REPLICA", 2.0),
        ("REPL_ALL", 3.0),
    ];
    lua.create_table_from(targets)
}

fn done(lua: &Lua, value: impl IntoLua) -> NativeResult {
    Ok((true, value.into_lua(lua)?))
}

fn refused(lua: &Lua, text: &str) -> NativeResult {
    Ok((false, text.into_lua(lua)?))
}

fn log(_: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    if args.len() < 2 {
        return refused(lua, "redis.log() requires two arguments or more.");
    }
    let Some(level) = args.front().and_then(number) else {
        return refused(lua, "First argument must be a number (log level).");
    };
    let level = match level as i64 {
        0 => LogLevel::Debug,
        1 => LogLevel::Verbose,
        2 => LogLevel::Notice,
        3 => LogLevel::Warning,
        _ => return refused(lua, "Invalid log level."),
    };
    let mut line = Vec::new();
    for (index, value) in args.iter().skip(1).enumerate() {
        let Some(text) = text(value) else { continue };
        if index > 0 {
            line.push(b' ');
        }
        let room = LOG_LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(&text[..text.len().min(room)]);
        if room == 0 {
            break;
        }
    }
    HOST.with(|host| host.log(level, &line));
    done(lua, Value::Nil)
}

fn sha1hex(state: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    if args.len() != 1 {
        return refused(lua, "wrong number of arguments");
    }
    let mut sha = Sha1::new();
    let hashed = args.front().and_then(text);
    for part in hashed.as_deref().unwrap_or_default().chunks(SHA_STEP_BYTES) {
        sha.update(part);
        if part.len() == SHA_STEP_BYTES {
            state.poll(lua)?;
        }
    }
    done(lua, lua.create_string(digits(sha))?)
}

fn setresp(state: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    if args.len() != 1 {
        return refused(lua, "redis.setresp() requires one argument.");
    }
    match args.front().and_then(number).map(|version| version as i64) {
        Some(version @ (2 | 3)) => {
            state.resp3.set(version == 3);
            done(lua, Value::Nil)
        }
        _ => refused(lua, "RESP version must be 2 or 3."),
    }
}

fn set_repl(_: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    if args.len() != 1 {
        return refused(lua, "redis.set_repl() requires one argument.");
    }
    let flags = args.front().and_then(number).unwrap_or(0.0) as i64;
    if flags & !3 != 0 {
        return refused(
            lua,
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        );
    }
    let targets = ScriptReplication { aof: flags & 1 != 0, replicas: flags & 2 != 0 };
    HOST.with(|host| host.set_replication(targets));
    done(lua, Value::Nil)
}

fn acl_check_cmd(state: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    let mut buffers = state.buffers.borrow_mut();
    let texts: Vec<_> = args.iter().map(argument).collect();
    let arguments = texts.iter().map(|text| match text {
        Either::Left(text) => NativeArgument::Text(text),
        Either::Right(other) => *other,
    });
    let checked = call::push_arguments(&mut buffers, arguments).map(|()| {
        let request = Args::new(&buffers.bytes, &buffers.spans, &buffers.own);
        HOST.with(|host| host.acl_check(request))
    });
    buffers.clear();
    match checked {
        Ok(Some(allowed)) => done(lua, allowed),
        Ok(None) => refused(lua, "Invalid command passed to redis.acl_check_cmd()"),
        Err(text) => refused(lua, text),
    }
}

/// A value as an argument of a command.
fn argument(value: &Value) -> Either<BorrowedBytes, NativeArgument<'_>> {
    match value {
        Value::String(text) => Either::Left(text.as_bytes()),
        Value::Integer(number) => Either::Right(NativeArgument::Number(*number as f64)),
        Value::Number(number) => Either::Right(NativeArgument::Number(*number)),
        _ => Either::Right(NativeArgument::Other),
    }
}

fn error_text(lua: &Lua, text: BorrowedBytes) -> mlua::Result<Value> {
    lua.create_string(coded(&text)).map(Value::String)
}

/// The source of the innermost function of a script.
fn source(lua: &Lua) -> Option<String> {
    let place =
        (0..SOURCE_LEVELS_MAX).find_map(|level| lua.inspect_stack(level, SourcePlace::of)?);
    place.map(|place| String::from_utf8_lossy(&place.source).into_owned())
}

/// `loadstring`: a function, or nil and a message. Accepts only source text, never bytecode.
fn loadstring(
    lua: &Lua,
    args: (BString, BString, Table),
) -> mlua::Result<Result<Function, String>> {
    let (text, name, env) = args;
    if text.len() > LOADSTRING_BYTES_MAX {
        return Ok(Err(format!("source longer than {LOADSTRING_BYTES_MAX} bytes")));
    }
    let name = String::from_utf8_lossy(crate::failure::until_nul(&name)).into_owned();
    Ok(compile(lua, &text, &name, &env))
}

fn clock() -> f64 {
    HOST.with(|host| host.clock()).as_secs_f64()
}

/// The generator of `drand48`, which Redis uses for scripts on every platform.
fn seeded(seed: u64) -> u64 {
    (seed & 0xffff_ffff) << 16 | 0x330e
}

fn random(state: &VmState) -> f64 {
    let before = state.random.get().unwrap_or_else(|| seeded(HOST.with(|host| host.seed())));
    let next = before.wrapping_mul(0x5_deec_e66d).wrapping_add(0xb) & 0xffff_ffff_ffff;
    state.random.set(Some(next));
    // 31 bits, without the greatest value.
    ((next >> 17) % 0x7fff_ffff) as f64 / f64::from(0x7fff_ffff)
}

/// `redis.register_function`: with name and callback, or with a table of named arguments.
fn register_function(state: &VmState, lua: &Lua, args: MultiValue) -> NativeResult {
    let mut registrations = state.registrations.borrow_mut();
    let Some(registered) = registrations.as_mut() else {
        return refused(lua, "redis.register_function can only be called on FUNCTION LOAD command");
    };
    let read = match args.len() {
        1 => named_arguments(args.front()),
        2 => positional_arguments(&args),
        _ => Err("wrong number of arguments to redis.register_function"),
    };
    let registration = match read {
        Ok(registration) => registration,
        Err(text) => return refused(lua, text),
    };
    if !crate::library::is_name(&registration.name) {
        return refused(lua, crate::library::INVALID_NAME);
    }
    if !registered.add(registration) {
        return refused(lua, "Function already exists in the library");
    }
    done(lua, Value::Nil)
}

fn positional_arguments(args: &MultiValue) -> Result<Registration, &'static str> {
    let name = args.front().and_then(owned_text);
    let name = name.ok_or("first argument to redis.register_function must be a string")?;
    let Some(Value::Function(callback)) = args.get(1) else {
        return Err("second argument to redis.register_function must be a function");
    };
    let callback = callback.clone();
    Ok(Registration { name, description: None, flags: ScriptFlags::default(), callback })
}

fn named_arguments(table: Option<&Value>) -> Result<Registration, &'static str> {
    let Some(Value::Table(table)) = table else {
        return Err(
            "calling redis.register_function with a single argument is only applicable to \
                    Lua table (representing named arguments).",
        );
    };
    let (mut name, mut description, mut callback) = (None, None, None);
    let mut flags = ScriptFlags::default();
    let mut wrong = None;
    let each = table.for_each(|key: Value, value: Value| {
        if wrong.is_some() {
            return Ok(());
        }
        let Some(key) = owned_text(&key) else {
            wrong = Some("named argument key given to redis.register_function is not a string");
            return Ok(());
        };
        match key.to_ascii_lowercase().as_slice() {
            b"function_name" => match owned_text(&value) {
                Some(text) => name = Some(text),
                None => {
                    wrong = Some(
                        "function_name argument given to redis.register_function must be a string",
                    );
                }
            },
            b"description" => match owned_text(&value) {
                Some(text) => description = Some(text),
                None => {
                    wrong = Some(
                        "description argument given to redis.register_function must be a string",
                    );
                }
            },
            b"callback" => match value {
                Value::Function(function) => callback = Some(function),
                _ => {
                    wrong = Some(
                        "callback argument given to redis.register_function must be a function",
                    );
                }
            },
            b"flags" => match value {
                Value::Table(names) => match read_flags(&names) {
                    Some(read) => flags = read,
                    None => wrong = Some("unknown flag given"),
                },
                _ => {
                    wrong = Some(
                        "flags argument to redis.register_function must be a table representing \
                         function flags",
                    );
                }
            },
            _ => wrong = Some("unknown argument given to redis.register_function"),
        }
        Ok(())
    });
    if let Some(text) = wrong {
        return Err(text);
    }
    each.map_err(|_| "unknown argument given to redis.register_function")?;
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let callback = callback.ok_or("redis.register_function must get a callback argument")?;
    Ok(Registration { name, description, flags, callback })
}

fn owned_text(value: &Value) -> Option<Vec<u8>> {
    text(value).map(|text| text.to_vec())
}

fn read_flags(names: &Table) -> Option<ScriptFlags> {
    let mut flags = ScriptFlags::default();
    for index in 1usize.. {
        match names.raw_get::<Value>(index).ok()? {
            Value::Nil => break,
            value => flags = flags.union(ScriptFlags::named_any_case(&text(&value)?)?),
        }
    }
    Some(flags)
}
