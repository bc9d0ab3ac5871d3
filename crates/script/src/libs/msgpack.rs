//! `cmsgpack`: values of Lua as MessagePack, <https://github.com/msgpack/msgpack>.

use std::rc::Rc;

use mlua::{Lua, Table};

use super::context::function;
use super::msgpack_pack::pack;
use super::msgpack_unpack::{unpack, unpack_limit, unpack_one};
use crate::state::VmState;

pub fn library(lua: &Lua, state: &Rc<VmState>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("pack", function(lua, state, "pack", pack)?)?;
    table.raw_set("unpack", function(lua, state, "unpack", unpack)?)?;
    table.raw_set("unpack_one", function(lua, state, "unpack_one", unpack_one)?)?;
    table.raw_set("unpack_limit", function(lua, state, "unpack_limit", unpack_limit)?)?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    Ok(table)
}
