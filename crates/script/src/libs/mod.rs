//! The libraries in Rust that scripts find beside Lua's own: `cjson`, `cmsgpack`, `struct`.
//!
//! A function takes the arguments of the call and returns values, or a message that becomes an
//! error at the line of the script. Long work polls the host, and memory is checked on the way,
//! because the limit of the interpreter is off meanwhile.

mod arguments;
mod json;
mod json_config;
mod json_decode;
mod json_encode;
mod msgpack;
mod msgpack_pack;
mod msgpack_unpack;
mod structs;

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Error, Function, Lua, MultiValue, Table, Value};

pub use self::arguments::{Arguments, number, text};
pub use self::json::instance as json_instance;
pub use self::json_config::Config as JsonConfig;
use crate::vm::State;

/// Elements between two looks at the host and the memory.
const STEP_ELEMENTS: u32 = 1024;

/// Bytes of one string between two looks.
pub const STEP_BYTES: usize = 64 * 1024;

/// The interpreter's own words.
const NO_MEMORY: &str = "not enough memory";

/// Why a function has no result.
pub enum Problem {
    /// An error of the script. Arguments in it are [`echoed`].
    Message(String),
    /// An error of the interpreter: the script has been stopped, or memory is short.
    Lua(Error),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Lua(error)
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

/// What a function returns.
pub type Returned = Result<MultiValue, Problem>;

/// What a function reaches of the VM.
pub struct Context<'a> {
    /// The interpreter.
    pub lua: &'a Lua,
    state: &'a State,
    elements: Cell<u32>,
}

impl<'a> Context<'a> {
    pub fn new(lua: &'a Lua, state: &'a State) -> Self {
        Self { lua, state, elements: Cell::new(0) }
    }

    /// One more element of long work.
    ///
    /// # Errors
    ///
    /// The script has been stopped, or has used up its memory.
    #[inline]
    pub fn step(&self) -> Result<(), Problem> {
        let elements = self.elements.get() + 1;
        self.elements.set(elements);
        if elements.is_multiple_of(STEP_ELEMENTS) { self.look() } else { Ok(()) }
    }

    /// Another [`STEP_BYTES`] of long work on bytes.
    ///
    /// # Errors
    ///
    /// As [`Context::step`].
    pub fn step_bytes(&self) -> Result<(), Problem> {
        self.look()
    }

    /// Checks the length of an output, which the interpreter does not count yet.
    ///
    /// # Errors
    ///
    /// It is longer than all memory of the interpreter.
    #[inline]
    pub fn check_output(&self, len: usize) -> Result<(), Problem> {
        if len > self.state.memory_bytes_max {
            return Err(Problem::Message(NO_MEMORY.to_owned()));
        }
        Ok(())
    }

    #[cold]
    fn look(&self) -> Result<(), Problem> {
        self.state.poll(self.lua)?;
        if self.lua.used_memory() > self.state.memory_bytes_max {
            return Err(Problem::Message(NO_MEMORY.to_owned()));
        }
        Ok(())
    }

    /// A string of Lua.
    pub fn string(&self, bytes: &[u8]) -> Result<Value, Problem> {
        Ok(Value::String(self.lua.create_string(bytes)?))
    }
}

/// A function as the prelude expects it: a truth value before the results or the message.
pub fn function<F>(lua: &Lua, state: &Rc<State>, name: &'static str, f: F) -> mlua::Result<Function>
where
    F: Fn(&Context<'_>, Arguments<'_>) -> Returned + 'static,
{
    let state = Rc::clone(state);
    lua.create_function(move |lua, args: MultiValue| {
        state.unlimited(lua, || {
            let context = Context::new(lua, &state);
            match f(&context, Arguments::new(name, &args)) {
                Ok(mut values) => {
                    values.push_front(Value::Boolean(true));
                    Ok(values)
                }
                Err(Problem::Message(text)) => {
                    let text = lua.create_string(byte_text(&text))?;
                    Ok(MultiValue::from_vec(vec![Value::Boolean(false), Value::String(text)]))
                }
                Err(Problem::Lua(error)) => Err(error),
            }
        })
    })
}

/// Bytes of an argument in a message, each as the character of its number: [`byte_text`] has them
/// back.
pub fn echoed(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The bytes of a message in which arguments are [`echoed`].
fn byte_text(message: &str) -> Vec<u8> {
    message.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
}

/// The libraries by name, each a table of functions.
pub fn tables(lua: &Lua, state: &Rc<State>) -> mlua::Result<Table> {
    let libraries = lua.create_table()?;
    libraries.raw_set("cmsgpack", msgpack::library(lua, state)?)?;
    libraries.raw_set("struct", structs::library(lua, state)?)?;
    Ok(libraries)
}

/// One value as a result.
pub fn one(value: Value) -> Returned {
    Ok(MultiValue::from_vec(vec![value]))
}
