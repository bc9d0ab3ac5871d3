//! The libraries in Rust for scripts: `cjson`, `cmsgpack`, `struct`.
//!
//! A function takes the arguments of the call and returns values, or a message that becomes an
//! error at the line of the script. Long work polls the host and checks memory as it goes, because
//! the interpreter's limit is off during the call.

mod arguments;
mod context;
mod json;
mod json_decode;
mod json_encode;
mod json_settings;
mod msgpack;
mod msgpack_pack;
mod msgpack_unpack;
mod output;
mod structs;

use std::rc::Rc;

use mlua::{Lua, Table};

pub use self::arguments::{number, text};
pub use self::json::instance as json_instance;
use crate::state::VmState;

/// The libraries by name, each a table of functions.
pub fn tables(lua: &Lua, state: &Rc<VmState>) -> mlua::Result<Table> {
    let libraries = lua.create_table()?;
    libraries.raw_set("cmsgpack", msgpack::library(lua, state)?)?;
    libraries.raw_set("struct", structs::library(lua, state)?)?;
    Ok(libraries)
}
