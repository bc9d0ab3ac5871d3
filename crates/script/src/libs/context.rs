//! The calling convention of library functions: their arguments, their access to the VM, and their
//! results.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Error, Function, Lua, MultiValue, Value};

use super::arguments::NativeArguments;
use crate::state::VmState;

/// Elements between two checks of the host and the memory.
const STEP_ELEMENTS: u32 = 1024;

/// Bytes of one string between two checks.
pub const STEP_BYTES: usize = 64 * 1024;

/// The interpreter's own text.
const NO_MEMORY: &str = "not enough memory";

/// Why a function has no result.
pub enum Problem {
    /// An error of the script. Arguments in it are [`echoed`].
    Message(String),
    /// An error of the interpreter: the script was stopped, or memory is short.
    Lua(Error),
}

impl Problem {
    /// The interpreter has no memory left.
    pub fn no_memory() -> Self {
        Self::Message(NO_MEMORY.to_owned())
    }
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

/// The results of a function.
pub type Returned = Result<MultiValue, Problem>;

/// A function's access to the VM.
pub struct LibraryContext<'a> {
    /// The interpreter.
    pub lua: &'a Lua,
    state: &'a VmState,
    elements: Cell<u32>,
    /// Bytes of the output that the interpreter does not count yet.
    output_bytes: Cell<usize>,
}

impl<'a> LibraryContext<'a> {
    pub fn new(lua: &'a Lua, state: &'a VmState) -> Self {
        Self { lua, state, elements: Cell::new(0), output_bytes: Cell::new(0) }
    }

    /// Counts one more element of long work.
    ///
    /// # Errors
    ///
    /// The script was stopped, or has used up its memory.
    #[inline]
    pub fn step(&self) -> Result<(), Problem> {
        let elements = self.elements.get() + 1;
        self.elements.set(elements);
        if elements.is_multiple_of(STEP_ELEMENTS) { self.look() } else { Ok(()) }
    }

    /// Counts another [`STEP_BYTES`] of long work on bytes.
    ///
    /// # Errors
    ///
    /// As [`LibraryContext::step`].
    pub fn step_bytes(&self) -> Result<(), Problem> {
        self.look()
    }

    /// How many bytes an output may have that needs so many.
    pub fn output_room(&self, bytes: usize) -> usize {
        // Only finalizers can fail here, and there are none.
        let _ = self.state.collect_before(self.lua, bytes);
        self.state.memory_bytes_max.saturating_sub(self.lua.used_memory())
    }

    /// Counts the memory of the output.
    pub fn note_output(&self, bytes: usize) {
        self.output_bytes.set(bytes);
    }

    #[cold]
    fn look(&self) -> Result<(), Problem> {
        self.state.poll(self.lua)?;
        if self.lua.used_memory() + self.output_bytes.get() > self.state.memory_bytes_max {
            return Err(Problem::no_memory());
        }
        Ok(())
    }

    /// A string of Lua.
    pub fn string(&self, bytes: &[u8]) -> Result<Value, Problem> {
        Ok(Value::String(self.lua.create_string(bytes)?))
    }
}

/// Wraps a function for the prelude: it returns a truth value before the results or the message.
pub fn function<F>(
    lua: &Lua,
    state: &Rc<VmState>,
    name: &'static str,
    f: F,
) -> mlua::Result<Function>
where
    F: Fn(&LibraryContext<'_>, NativeArguments<'_>) -> Returned + 'static,
{
    let state = Rc::clone(state);
    lua.create_function(move |lua, args: MultiValue| {
        state.unlimited(lua, || {
            let context = LibraryContext::new(lua, &state);
            match f(&context, NativeArguments::new(name, &args)) {
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

/// Bytes of an argument in a message, each as the character with its number; [`byte_text`] reverses
/// this.
pub fn echoed(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The bytes of a message in which arguments are [`echoed`].
fn byte_text(message: &str) -> Vec<u8> {
    message.chars().map(|character| u8::try_from(character).unwrap_or(b'?')).collect()
}

/// One value as a result.
pub fn one(value: Value) -> Returned {
    Ok(MultiValue::from_vec(vec![value]))
}
