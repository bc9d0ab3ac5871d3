//! The payload of FUNCTION DUMP and FUNCTION RESTORE: the sources of all libraries as in an RDB
//! file.
//!
//! ```text
//! 245 │ source as a string │ 245 │ ... │ version │ checksum
//! ```
//!
//! It contains no names and functions: FUNCTION RESTORE runs the sources again.

use persist::lzf::Compressor;
use persist::rdb::string;
use persist::{ByteInput, payload};

use crate::failure::ScriptFailure;
use crate::library::Libraries;

/// A library follows.
const LIBRARY: u8 = 245;
/// A library as written by the release candidates of Redis 7.
const LIBRARY_PREVIEW: u8 = 246;

/// The payload of all libraries, in the order of their names.
pub fn dump(libraries: &Libraries) -> Vec<u8> {
    let mut sorted: Vec<_> = libraries.iter().collect();
    sorted.sort_by_key(|library| library.name());
    let mut content = Vec::new();
    let mut compressor = Compressor::new();
    for library in sorted {
        content.push(LIBRARY);
        // Writing to a vector cannot fail.
        let Ok(()) = string::write(&mut content, library.source(), Some(&mut compressor));
    }
    payload::seal(&mut content);
    content
}

/// The sources in a payload.
///
/// # Errors
///
/// The payload is damaged, of an unknown version, or holds something else.
pub fn sources(payload: &[u8]) -> Result<Vec<Vec<u8>>, ScriptFailure> {
    let opened = payload::open(payload);
    let (content, _) =
        opened.map_err(|_| ScriptFailure::new("ERR DUMP payload version or checksum are wrong"))?;
    let mut input = ByteInput::new(content);
    let mut sources = Vec::new();
    while !input.rest().is_empty() {
        match input.byte() {
            Ok(LIBRARY) => {}
            Ok(LIBRARY_PREVIEW) => {
                return Err(ScriptFailure::new("ERR Pre-GA function format not supported"));
            }
            Ok(_) => return Err(ScriptFailure::new("ERR given type is not a function")),
            Err(_) => return Err(ScriptFailure::new("ERR can not read data type")),
        }
        let mut source = Vec::new();
        string::append(&mut input, &mut source)
            .map_err(|_| ScriptFailure::new("ERR Failed loading library payload"))?;
        sources.push(source);
    }
    Ok(sources)
}
