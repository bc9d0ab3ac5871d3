//! From source text to a function.
//!
//! Compiling cannot be interrupted, so the length of sources is limited, and long ones are compiled
//! without optimisation, whose time grows with the square of the length. The compiler only sees
//! source text; bytecode never comes from outside.

use mlua::chunk::{ChunkMode, Compiler};
use mlua::{Function, Lua, Table};

use super::zero_bytes::without_zero_bytes;
use crate::failure::message;

/// The longest script or library. The compiler temporarily takes up to 80 times as much memory, and
/// half a second for each megabyte.
const SOURCE_BYTES_MAX: usize = 16 << 20;
/// Longer scripts and libraries must be compiled by one thread at a time: the compiler's memory is
/// outside of the VM's limit. It is returned to the system afterwards.
pub const LARGE_SOURCE_BYTES: usize = 1 << 20;
/// The longest source that is optimised.
const OPTIMISED_BYTES_MAX: usize = 256 << 10;
/// The longest source of `loadstring`, during which a script cannot be killed.
pub const LOADSTRING_BYTES_MAX: usize = 256 << 10;

/// Functions that must not be compiled specially: our replacements would not be called, or
/// arguments would be evaluated before the function is looked up.
const REPLACED_BUILTINS: [&str; 3] = ["tostring", "getmetatable", "math.log"];

/// Functions that scripts do not have, by a word that calls of them contain: compiled specially,
/// they would exist anyway. Those of buffers, and other functions of vectors, do nothing without a
/// buffer or a vector.
#[rustfmt::skip]
const ABSENT_BUILTINS: [(&str, &[&str]); 12] = [
    ("typeof", &["typeof"]),
    ("rawlen", &["rawlen"]),
    ("unpack", &["table.unpack"]),
    ("vector", &["vector.create"]),
    ("clamp", &["math.clamp"]),
    ("sign", &["math.sign"]),
    ("round", &["math.round"]),
    ("lerp", &["math.lerp"]),
    ("isnan", &["math.isnan"]),
    ("isinf", &["math.isinf"]),
    ("isfinite", &["math.isfinite"]),
    ("bit32", &[
        "bit32.arshift", "bit32.band", "bit32.bnot", "bit32.bor", "bit32.bxor", "bit32.btest",
        "bit32.extract", "bit32.lrotate", "bit32.lshift", "bit32.replace", "bit32.rrotate",
        "bit32.rshift", "bit32.countlz", "bit32.countrz", "bit32.byteswap",
    ]),
];

/// Functions to disable in the compiler for this source. Each costs some allocations, so those that
/// the source does not name are left out.
fn disabled_builtins(source: &[u8]) -> impl Iterator<Item = &'static str> {
    let is_named = |word: &str| memchr::memmem::find(source, word.as_bytes()).is_some();
    let absent = ABSENT_BUILTINS.into_iter().filter(move |(word, _)| is_named(word));
    REPLACED_BUILTINS.into_iter().chain(absent.flat_map(|(_, names)| names.iter().copied()))
}

/// Compiles a source into a function with the given globals. `name` is the chunk's name: a file's
/// after `@`, any other after `=`, else the source itself. Imports are resolved now, from the
/// globals of the interpreter.
///
/// # Errors
///
/// The message of the compiler, with the position.
pub fn compile(lua: &Lua, source: &[u8], name: &str, globals: &Table) -> Result<Function, String> {
    let place = shown(name);
    if source.len() > SOURCE_BYTES_MAX {
        return Err(format!("{place}:1: source longer than {SOURCE_BYTES_MAX} bytes"));
    }
    let source =
        without_zero_bytes(source).map_err(|line| format!("{place}:{line}: unexpected symbol"))?;
    let level = if source.len() > OPTIMISED_BYTES_MAX { 0 } else { 1 };
    let compiler = Compiler::new()
        .set_optimization_level(level)
        .set_debug_level(1)
        .set_disabled_builtins(disabled_builtins(&source));
    // The message begins with the line number.
    let is_large = source.len() > LARGE_SOURCE_BYTES;
    let bytecode = compiler.compile(source);
    if is_large {
        sys::allocator::trim_c_heap();
    }
    let bytecode = bytecode.map_err(|error| match error {
        mlua::Error::SyntaxError { message, .. } => format!("{place}:{message}"),
        other => message(&other),
    })?;
    let chunk = lua.load(bytecode).set_name(name).set_mode(ChunkMode::Binary);
    let function = chunk.set_environment(globals.clone()).into_function();
    function.map_err(|error| message(&error))
}

/// Compiles code that imports from `imported` instead of the interpreter's globals.
///
/// # Errors
///
/// As [`compile`].
pub fn compile_importing(
    lua: &Lua,
    source: &[u8],
    name: &str,
    globals: &Table,
    imported: &Table,
) -> Result<Function, String> {
    let before = lua.globals();
    lua.set_globals(imported.clone()).map_err(|error| message(&error))?;
    let function = compile(lua, source, name, globals);
    lua.set_globals(before).map_err(|error| message(&error))?;
    function
}

/// The name of a chunk as errors show it.
fn shown(name: &str) -> String {
    if let Some(name) = name.strip_prefix(['@', '=']) {
        return name.to_owned();
    }
    let start: String = name.lines().next().unwrap_or_default().chars().take(60).collect();
    let dots = if start.len() < name.len() { "..." } else { "" };
    format!("[string \"{start}{dots}\"]")
}
