//! Runs a script without mlua: keys and arguments become tables, the function runs in a protected
//! call, and a plain result is read from the stack.
//!
//! A run keeps its values at the top of the stack of the VM's main thread, above `base`, and
//! removes them when it is dropped:
//!
//! ```text
//! values of the runner | base | function | keys and arguments, if the function takes them
//! values of the runner | base | result or error
//! ```

use std::cell::Cell;
use std::ffi::c_int;

use mlua::{Function, Lua, Table, Value, ffi};

use super::{NativeArgument, argument};

/// The two tables of a run, as bits.
const KEYS: u8 = 1;
const ARGV: u8 = 2;

/// The stack has room for so many values between runs.
const STACK_ROOM: c_int = 16;

/// A new table gets room for at most so many elements at once.
const ROOM_MAX: usize = 1024;

thread_local! {
    /// The empty tables that the run has not accessed yet.
    static UNASKED: Cell<u8> = const { Cell::new(0) };
}

/// A value that a [`Runner`] of the same VM pushes.
#[derive(Debug)]
pub struct Pinned {
    lua: Lua,
    reference: c_int,
}

impl Pinned {
    /// Keeps a value.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn new(lua: &Lua, value: impl mlua::IntoLua) -> mlua::Result<Self> {
        let mut reference = 0;
        // SAFETY: the value is at the top of the stack.
        unsafe { lua.exec_raw::<()>(value, |state| reference = ffi::lua_ref(state, -1))? };
        Ok(Self { lua: lua.clone(), reference })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let state = main_state(&self.lua);
        // SAFETY: the VM lives, and it returned the reference. No error is raised.
        unsafe { ffi::lua_unref(state, self.reference) };
    }
}

/// The state of a VM's main thread.
pub(super) fn main_state(lua: &Lua) -> *mut ffi::lua_State {
    // SAFETY: the VM lives.
    lua.exec_raw_lua(|raw| unsafe { ffi::lua_mainthread(raw.state()) })
}

/// The stack positions of the table of fields and of their names.
#[derive(Clone, Copy, Debug)]
struct FieldPositions {
    table: c_int,
    keys: c_int,
    argv: c_int,
}

/// Runs functions of one VM with keys and arguments.
#[derive(Debug)]
pub struct Runner {
    lua: Lua,
    state: *mut ffi::lua_State,
    /// The stack position of the error handler.
    handler: c_int,
    fields: Option<FieldPositions>,
    /// The fields that exist.
    set: Cell<u8>,
}

/// The texts of a run.
struct Texts<T> {
    texts: T,
    keys: usize,
    argv: usize,
    /// The tables to create.
    made: u8,
}

impl Runner {
    /// A runner. Errors go through `handler`. Keys and arguments are the fields `KEYS` and `ARGV`
    /// of `fields`, which must not be read-only. Without `fields` they are the function's
    /// arguments.
    ///
    /// A field without elements does not exist until it is accessed: the metatable of `fields`
    /// creates it by [`create_asker`].
    ///
    /// The values that it needs for each run stay on the stack as long as the VM.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn new(lua: &Lua, handler: &Function, fields: Option<&Table>) -> mlua::Result<Self> {
        let (keys, argv) = (lua.create_string("KEYS")?, lua.create_string("ARGV")?);
        let state = main_state(lua);
        let push = |value: Value| -> mlua::Result<c_int> {
            let pinned = Pinned::new(lua, value)?;
            // SAFETY: between runs the main thread is idle. The value is pushed below its frame.
            unsafe {
                if ffi::lua_checkstack(state, STACK_ROOM) == 0 {
                    return Err(mlua::Error::StackError);
                }
                ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, pinned.reference);
                Ok(ffi::lua_gettop(state))
            }
        };
        let handler = push(Value::Function(handler.clone()))?;
        let fields = fields.map(|table| {
            let table = push(Value::Table(table.clone()))?;
            let (keys, argv) = (push(Value::String(keys))?, push(Value::String(argv))?);
            Ok::<_, mlua::Error>(FieldPositions { table, keys, argv })
        });
        let fields = fields.transpose()?;
        Ok(Self { lua: lua.clone(), state, handler, fields, set: Cell::new(0) })
    }

    /// Removes the fields.
    pub fn forget(&self) {
        self.unset(self.set.get());
    }

    fn unset(&self, which: u8) {
        let Some(fields) = self.fields.filter(|_| which != 0) else { return };
        for (field, name) in [(KEYS, fields.keys), (ARGV, fields.argv)] {
            if which & field != 0 {
                // SAFETY: the names are on the stack, which has room for two values.
                unsafe {
                    ffi::lua_pushvalue(self.state, name);
                    ffi::lua_pushnil(self.state);
                    ffi::lua_rawset(self.state, fields.table);
                }
            }
        }
        self.set.set(self.set.get() & !which);
    }

    /// Prepares a run of `function`. The first `keys` texts are its keys, the others its arguments.
    /// If `is_protected`, they may exceed the limit of memory or of a table; otherwise memory must
    /// not be limited. No code runs in the VM.
    ///
    /// # Errors
    ///
    /// The message, if the tables cannot be created.
    pub fn prepare<'r, 'a>(
        &'r self,
        function: &Pinned,
        keys: usize,
        texts: impl ExactSizeIterator<Item = &'a [u8]>,
        is_protected: bool,
    ) -> Result<PreparedRun<'r>, String> {
        let keys = keys.min(texts.len());
        let argv = texts.len() - keys;
        let unasked = match self.fields {
            Some(_) => (if keys == 0 { KEYS } else { 0 }) | (if argv == 0 { ARGV } else { 0 }),
            None => 0,
        };
        let made = (KEYS | ARGV) & !unasked;
        let mut texts = Texts { texts, keys, argv, made };
        let (state, fields) = (self.state, self.fields);
        self.unset(self.set.get() & !made);
        // SAFETY: the main thread is idle, and has room for the values that are pushed here.
        let base = unsafe { ffi::lua_gettop(state) };
        let arguments = if fields.is_some() { 0 } else { 2 };
        let prepared = PreparedRun { runner: self, base, arguments };
        // SAFETY: as above.
        unsafe {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, function.reference);
            if !is_protected {
                give(state, fields, &mut texts);
            } else if let Some(message) = self.give_protected(texts) {
                return Err(message);
            }
        }
        UNASKED.set(unasked);
        Ok(prepared)
    }

    /// Creates a run's tables in a protected call. Returns the message of its error.
    ///
    /// # Safety
    ///
    /// The stack has room for five values.
    unsafe fn give_protected<'a, T: Iterator<Item = &'a [u8]>>(
        &self,
        mut texts: Texts<T>,
    ) -> Option<String> {
        unsafe extern "C-unwind" fn push<'a, T>(state: *mut ffi::lua_State) -> c_int
        where
            T: Iterator<Item = &'a [u8]>,
        {
            // SAFETY: the arguments come from `give_protected`, which waits for this function.
            unsafe {
                let texts = &mut *ffi::lua_touserdata(state, 1).cast::<Texts<T>>();
                let fields = (ffi::lua_gettop(state) > 1).then_some(PASSED);
                give(state, fields, texts);
                if fields.is_some() { 0 } else { 2 }
            }
        }
        let (state, results) = (self.state, if self.fields.is_some() { 0 } else { 2 });
        // SAFETY: by the caller's promise. `texts` outlives the call.
        unsafe {
            ffi::lua_pushcclosurek(state, push::<T>, c"inputs".as_ptr(), 0, None);
            ffi::lua_pushlightuserdata(state, (&raw mut texts).cast());
            let passed = self.fields.map_or(0, |FieldPositions { table, keys, argv }| {
                [table, keys, argv].map(|at| ffi::lua_pushvalue(state, at)).len() as c_int
            });
            if ffi::lua_pcall(state, 1 + passed, results, 0) == ffi::LUA_OK {
                return None;
            }
            match argument(state, -1) {
                NativeArgument::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
                _ => Some("not enough memory".to_owned()),
            }
        }
    }
}

/// The fields' positions in a protected call.
const PASSED: FieldPositions = FieldPositions { table: 2, keys: 3, argv: 4 };

/// Creates a run's tables. They become fields, or are pushed.
///
/// # Safety
///
/// The stack has room for four values, and the fields at their positions. If an error is raised, no
/// value with a destructor is alive except those of the iterator.
unsafe fn give<'a, T>(
    state: *mut ffi::lua_State,
    fields: Option<FieldPositions>,
    texts: &mut Texts<T>,
) where
    T: Iterator<Item = &'a [u8]>,
{
    for (field, count) in [(KEYS, texts.keys), (ARGV, texts.argv)] {
        if texts.made & field == 0 {
            continue;
        }
        // SAFETY: by the caller's promise.
        unsafe {
            if let Some(FieldPositions { keys, argv, .. }) = fields {
                ffi::lua_pushvalue(state, if field == KEYS { keys } else { argv });
            }
            ffi::lua_createtable(state, count.min(ROOM_MAX) as c_int, 0);
        }
        for index in 1..=count {
            let Some(text) = texts.texts.next() else { break };
            // SAFETY: by the caller's promise; the table is below the text.
            unsafe {
                ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
                ffi::lua_rawseti_(state, -2, index as c_int);
            }
        }
        if let Some(fields) = fields {
            // SAFETY: the name is below the table.
            unsafe { ffi::lua_rawset(state, fields.table) };
        }
    }
}

/// Creates a Lua function of a name. If the name is `KEYS` or `ARGV`, and the current run has not
/// accessed that empty table yet, the function makes the table a field and returns it. Otherwise it
/// returns nil.
///
/// # Errors
///
/// If there is not enough memory.
pub fn create_asker(lua: &Lua, fields: &Table) -> mlua::Result<Function> {
    unsafe extern "C-unwind" fn push_asker(state: *mut ffi::lua_State) -> c_int {
        // SAFETY: the state is the running one; a missing argument becomes nil.
        unsafe {
            ffi::lua_settop(state, 1);
            ffi::lua_pushcclosurek(state, ask, c"asker".as_ptr(), 1, None);
        }
        1
    }
    // SAFETY: the functions follow the rules of Lua for C functions.
    let create = unsafe { lua.create_c_function(push_asker)? };
    create.call(fields)
}

unsafe extern "C-unwind" fn ask(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one, whose argument is at 1. The text is read while
    // it is on the stack. If memory runs out, no value with a destructor is alive.
    unsafe {
        ffi::lua_settop(state, 1);
        let field = match argument(state, 1) {
            NativeArgument::Text(b"KEYS") => KEYS,
            NativeArgument::Text(b"ARGV") => ARGV,
            _ => 0,
        };
        if UNASKED.get() & field == 0 {
            return 0;
        }
        ffi::lua_createtable(state, 0, 0);
        ffi::lua_insert(state, 1);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_rawset(state, ffi::lua_upvalueindex(1));
        UNASKED.set(UNASKED.get() & !field);
    }
    1
}

/// A function with its keys and arguments.
#[derive(Debug)]
pub struct PreparedRun<'r> {
    runner: &'r Runner,
    base: c_int,
    arguments: c_int,
}

impl<'r> PreparedRun<'r> {
    /// Calls the function.
    pub fn call(self) -> Ran<'r> {
        let Runner { state, handler, .. } = *self.runner;
        // SAFETY: the function and its arguments are at the top of the stack.
        let status = unsafe { ffi::lua_pcall(state, self.arguments, 1, handler) };
        Ran { succeeded: status == ffi::LUA_OK, prepared: self }
    }
}

impl Drop for PreparedRun<'_> {
    fn drop(&mut self) {
        // SAFETY: the values above the base belong to this run.
        unsafe { ffi::lua_settop(self.runner.state, self.base) };
        self.runner.set.set((KEYS | ARGV) & !UNASKED.take());
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Ran<'r> {
    prepared: PreparedRun<'r>,
    succeeded: bool,
}

/// A result without references to values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Nil, or no value.
    Nil,
}

impl Ran<'_> {
    /// Whether it raised no error.
    pub fn has_succeeded(&self) -> bool {
        self.succeeded
    }

    /// Its result, if it is plain.
    pub fn plain(&self) -> Option<Plain<'_>> {
        let state = self.prepared.runner.state;
        if !self.succeeded {
            return None;
        }
        // SAFETY: the result is at the top of the stack, where it stays during the run.
        unsafe {
            match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => Some(Plain::Nil),
                ffi::LUA_TBOOLEAN => Some(Plain::Boolean(ffi::lua_toboolean(state, -1) != 0)),
                _ => match argument(state, -1) {
                    NativeArgument::Number(number) => Some(Plain::Number(number)),
                    NativeArgument::Text(text) => Some(Plain::Text(text)),
                    NativeArgument::Other => None,
                },
            }
        }
    }

    /// Its result, or the handler's result for the error. Memory must not be limited.
    ///
    /// # Errors
    ///
    /// If there is not enough memory.
    pub fn into_value(self) -> mlua::Result<Value> {
        let Runner { lua, state, .. } = self.prepared.runner;
        // SAFETY: the value is at the top of the stack, and goes to mlua through the registry.
        unsafe {
            let reference = ffi::lua_ref(*state, -1);
            let value = lua.exec_raw((), |state| {
                ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, reference);
            });
            ffi::lua_unref(*state, reference);
            value
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pinned(lua: &Lua, code: &str) -> Pinned {
        Pinned::new(lua, lua.load(code).into_function().unwrap()).unwrap()
    }

    fn handler(lua: &Lua) -> Function {
        lua.load("return function(e) return {e} end").eval().unwrap()
    }

    /// Runs code with these texts; the first one is a key.
    fn check(runner: &Runner, code: &str, texts: &[&[u8]], expected: Plain<'_>) {
        let function = pinned(&runner.lua, code);
        // SAFETY: the VM lives.
        let top = || unsafe { ffi::lua_gettop(runner.state) };
        let base = top();
        for is_protected in [false, true] {
            let texts = texts.iter().copied();
            let ran = runner.prepare(&function, 1, texts, is_protected).unwrap().call();
            assert_eq!(ran.plain(), Some(expected), "{code}");
        }
        assert_eq!(top(), base, "{code}");
    }

    #[test]
    fn a_run_has_its_inputs_and_a_plain_result() {
        let lua = Lua::new();
        let runner = Runner::new(&lua, &handler(&lua), None).unwrap();
        let texts = [&b"k"[..], b"", b"x\0y"];
        let joined = "local k, a = ... return k[1] .. #k .. #a .. a[1] .. a[2]";
        check(&runner, joined, &texts, Plain::Text(b"k12x\0y"));
        check(&runner, "return 1.5", &texts, Plain::Number(1.5));
        check(&runner, "return false", &texts, Plain::Boolean(false));
        check(&runner, "return", &texts, Plain::Nil);
        check(&runner, "local k, a = ... return #k + #a", &[], Plain::Number(0.0));
    }

    #[test]
    fn other_results_are_values() {
        let lua = Lua::new();
        let runner = Runner::new(&lua, &handler(&lua), None).unwrap();
        for (code, succeeds) in [("return {7}", true), ("error(7, 0)", false)] {
            let function = pinned(&lua, code);
            let ran = runner.prepare(&function, 0, [].into_iter(), false).unwrap().call();
            assert_eq!((ran.plain(), ran.has_succeeded()), (None, succeeds));
            let table = ran.into_value().unwrap();
            assert_eq!(table.as_table().unwrap().get::<f64>(1).unwrap(), 7.0);
        }
    }

    #[test]
    fn fields_without_elements_are_made_when_asked_for() {
        let lua = Lua::new();
        let fields = lua.create_table().unwrap();
        let meta = lua.create_table().unwrap();
        let ask = create_asker(&lua, &fields).unwrap();
        let index =
            lua.create_function(move |_, (_, name): (Value, Value)| ask.call::<Value>(name));
        meta.set("__index", index.unwrap()).unwrap();
        fields.set_metatable(Some(meta)).unwrap();
        lua.globals().set("f", &fields).unwrap();
        let runner = Runner::new(&lua, &handler(&lua), Some(&fields)).unwrap();
        check(&runner, "return f.KEYS[1] .. f.ARGV[1]", &[b"k", b"a"], Plain::Text(b"ka"));
        let asked = "f.ARGV[1] = 'own' return f.KEYS[1] .. f.ARGV[1] .. tostring(f.OTHER)";
        check(&runner, asked, &[b"k"], Plain::Text(b"kownnil"));
        // The values that the previous run created no longer exist.
        check(&runner, "return #f.KEYS + #f.ARGV", &[], Plain::Number(0.0));
        check(&runner, "return rawget(f, 'ARGV')", &[b"k"], Plain::Nil);
        assert!(fields.get::<Value>("ARGV").unwrap().is_nil(), "it is there between runs");
        runner.forget();
        assert!(fields.is_empty());
    }

    #[test]
    fn inputs_beyond_the_limit_of_memory_are_refused() {
        let lua = Lua::new();
        let runner = Runner::new(&lua, &handler(&lua), None).unwrap();
        let (function, text) = (pinned(&lua, "return 1"), vec![b'x'; 1 << 20]);
        lua.set_memory_limit(lua.used_memory() + (1 << 19)).unwrap();
        let prepared = runner.prepare(&function, 0, [&text[..]].into_iter(), true);
        assert_eq!(prepared.unwrap_err(), "not enough memory");
        lua.set_memory_limit(0).unwrap();
        assert!(runner.prepare(&function, 0, [&text[..]].into_iter(), true).is_ok());
    }

    #[test]
    fn what_is_pinned_stays_until_it_is_dropped() {
        let lua = Lua::new();
        let runner = Runner::new(&lua, &handler(&lua), None).unwrap();
        let kept = pinned(&lua, "return 'kept'");
        drop(pinned(&lua, "return 'dropped'"));
        lua.gc_collect().unwrap();
        let ran = runner.prepare(&kept, 0, [].into_iter(), false).unwrap().call();
        assert_eq!(ran.plain(), Some(Plain::Text(b"kept")));
    }
}
