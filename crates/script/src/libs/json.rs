//! `cjson`: values of Lua as JSON, RFC 8259, with the settings of lua-cjson.
//!
//! Each run starts with the default settings of the module that all scripts share; an instance from
//! `cjson.new` has its own.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, Table, Value};

use super::context::function;
use super::json_decode::decode;
use super::json_encode::encode;
use super::json_settings::SETTINGS;
use crate::json_config::JsonConfig;
use crate::state::VmState;

/// The functions of one instance, without `new`.
pub fn instance(
    lua: &Lua,
    state: &Rc<VmState>,
    config: &Rc<Cell<JsonConfig>>,
) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let shared = Rc::clone(config);
    let f =
        function(lua, state, "encode", move |context, args| encode(context, args, shared.get()))?;
    table.raw_set("encode", f)?;
    let shared = Rc::clone(config);
    let f =
        function(lua, state, "decode", move |context, args| decode(context, args, shared.get()))?;
    table.raw_set("decode", f)?;
    for (name, setting) in SETTINGS {
        let shared = Rc::clone(config);
        let f = function(lua, state, name, move |context, args| {
            let mut changed = shared.get();
            let result = setting(context, args, &mut changed);
            shared.set(changed);
            result
        })?;
        table.raw_set(*name, f)?;
    }
    table.raw_set("null", Value::NULL)?;
    table.raw_set("_NAME", "cjson")?;
    table.raw_set("_VERSION", "2.1.0")?;
    Ok(table)
}
