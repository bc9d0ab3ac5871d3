//! The first line of a script or library: `#!lua name=library` or `#!lua flags=no-writes`.

use base::quote::split_args;

use crate::failure::ScriptFailure;
use crate::flags::ScriptFlags;

/// The parts of the line after `#!`, and its end.
struct ShebangLine {
    parts: Vec<Vec<u8>>,
    end: usize,
}

/// The flags of a script, and where its code begins: at the end of the line, so that line numbers
/// stay the same. A script without a shebang has no flags and runs in compatibility mode.
///
/// # Errors
///
/// The line does not end, names another engine, or has an unknown option or flag.
pub fn script(body: &[u8]) -> Result<(Option<ScriptFlags>, usize), ScriptFailure> {
    if !body.starts_with(b"#!") {
        return Ok((None, 0));
    }
    let line = line(body).ok_or_else(|| ScriptFailure::new("ERR Invalid script shebang"))?;
    let Some((engine, options)) = line.parts.split_first() else {
        return Err(ScriptFailure::new("ERR Invalid engine in script shebang"));
    };
    if engine != b"#!lua" {
        return Err(refused("Unexpected engine in script shebang: ", engine));
    }
    let mut flags = ScriptFlags::default();
    for option in options {
        let names = option.strip_prefix(b"flags=");
        let names = names.ok_or_else(|| refused("Unknown lua shebang option: ", option))?;
        if names.is_empty() {
            continue;
        }
        for name in names.split(|byte| *byte == b',') {
            let flag = ScriptFlags::named(name);
            let flag = flag.ok_or_else(|| refused("Unexpected flag in script shebang: ", name))?;
            flags = flags.union(flag);
        }
    }
    Ok((Some(flags), line.end))
}

/// The contents of a library's shebang.
#[derive(Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The engine after `#!`.
    pub engine: Vec<u8>,
    /// The value of `name=`.
    pub name: Vec<u8>,
    /// Where the code begins: at the end of the line.
    pub code_start: usize,
}

/// Reads the mandatory shebang of a library.
///
/// # Errors
///
/// It is missing, has no name or two, or has another option.
pub fn library(code: &[u8]) -> Result<Metadata, ScriptFailure> {
    if !code.starts_with(b"#!") {
        return Err(ScriptFailure::new("ERR Missing library metadata"));
    }
    let invalid = || ScriptFailure::new("ERR Invalid library metadata");
    let line = line(code).ok_or_else(invalid)?;
    let (engine, options) = line.parts.split_first().ok_or_else(invalid)?;
    let mut name = None;
    for option in options {
        let (key, value) = option.split_at_checked(5).unwrap_or((option, b""));
        if !key.eq_ignore_ascii_case(b"name=") {
            return Err(refused("Invalid metadata value given: ", option));
        }
        if name.is_some() {
            return Err(ScriptFailure::new(
                "ERR Invalid metadata value, name argument was given multiple times",
            ));
        }
        name = Some(value.to_vec());
    }
    let name = name.ok_or_else(|| ScriptFailure::new("ERR Library name was not given"))?;
    let engine = engine.get(2..).unwrap_or_default().to_vec();
    Ok(Metadata { engine, name, code_start: line.end })
}

/// The first line as words: `None` if it does not end, no words if a quote is not closed.
fn line(text: &[u8]) -> Option<ShebangLine> {
    // As in C, a zero byte ends the text.
    let end = memchr::memchr2(b'\n', 0, text)?;
    if text.get(end) != Some(&b'\n') {
        return None;
    }
    Some(ShebangLine { parts: split_args(text.get(..end)?).unwrap_or_default(), end })
}

fn refused(text: &str, what: &[u8]) -> ScriptFailure {
    ScriptFailure::new([b"ERR ", text.as_bytes(), what].concat())
}
