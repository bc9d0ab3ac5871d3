//! The run of a script past mlua: keys and arguments become tables, one protected call, and a plain
//! result is read where it lies.
//!
//! A run keeps what it works on at the top of the stack of the VM's main thread, above `base`, and
//! takes it away when it is dropped:
//!
//! ```text
//! what its runner needs | base | function | keys and arguments, of one that takes them
//! what its runner needs | base | result or error
//! ```

use std::cell::Cell;
use std::ffi::c_int;

use mlua::{Function, Lua, Table, Value, ffi};

use super::{Argument, HAS_GROWN, argument};

/// Values for which the stack has room between runs.
const STACK_ROOM: c_int = 16;

/// Elements for which a new table has room at once.
const ROOM_MAX: usize = 1024;

/// Elements of a table that serves several runs.
const KEPT_ELEMENTS_MAX: usize = 16;

/// The count of a table that serves no further run.
const NOT_KEPT: usize = usize::MAX;

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
    /// There is no memory.
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
        // SAFETY: the VM lives, and the reference is one that it has given. Nothing is raised.
        unsafe { ffi::lua_unref(state, self.reference) };
    }
}

/// The state of a VM's main thread.
fn main_state(lua: &Lua) -> *mut ffi::lua_State {
    // SAFETY: the VM lives.
    lua.exec_raw_lua(|raw| unsafe { ffi::lua_mainthread(raw.state()) })
}

/// Where a table of fields is on a stack.
#[derive(Clone, Copy, Debug)]
struct Fields {
    table: c_int,
    /// The names `KEYS` and `ARGV`.
    names: [c_int; 2],
}

/// Runs functions of one VM with keys and arguments.
#[derive(Debug)]
pub struct Runner {
    lua: Lua,
    state: *mut ffi::lua_State,
    /// Where the handler of errors is on the stack.
    handler: c_int,
    fields: Option<Fields>,
    /// Where the values of the fields are on the stack.
    values: [c_int; 2],
    /// What these held when they were made, if they are tables that serve further runs.
    counts: Cell<[usize; 2]>,
}

/// What a run is given.
struct Texts<T> {
    texts: T,
    /// How many are keys, and how many arguments.
    counts: [usize; 2],
}

impl Runner {
    /// A runner whose errors `handler` sees first. Keys and arguments are the fields `KEYS` and
    /// `ARGV` of `fields`, or else the arguments of the function.
    ///
    /// A function that finds them in fields has forgotten them when its run is over: the tables,
    /// emptied, may serve the next one.
    ///
    /// What it needs for each run stays on the stack as long as the VM.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn new(lua: &Lua, handler: &Function, fields: Option<&Table>) -> mlua::Result<Self> {
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
        let mut values = [0; 2];
        let fields = fields.map(|table| {
            let mut names = [0; 2];
            for (at, name) in ["KEYS", "ARGV"].into_iter().enumerate() {
                let (name, value) = (lua.create_string(name)?, Value::Boolean(false));
                table.raw_set(&name, &value)?;
                (names[at], values[at]) = (push(Value::String(name))?, push(value)?);
            }
            Ok::<_, mlua::Error>(Fields { table: push(Value::Table(table.clone()))?, names })
        });
        let fields = fields.transpose()?;
        let counts = Cell::new([NOT_KEPT; 2]);
        Ok(Self { lua: lua.clone(), state, handler, fields, values, counts })
    }

    /// Empties the fields.
    pub fn forget(&self) {
        let Some(fields) = self.fields else { return };
        self.counts.set([NOT_KEPT; 2]);
        for (name, value) in fields.names.into_iter().zip(self.values) {
            // SAFETY: the names and values are on the stack, which has room for three values. The
            // fields exist, so that no memory is needed.
            unsafe {
                ffi::lua_pushboolean(self.state, 0);
                ffi::lua_replace(self.state, value);
                set_field(self.state, fields.table, name, value);
            }
        }
    }

    /// Prepares the run of a function with so many keys, and what follows these as arguments. They
    /// may be more than the limit of memory or a table allows if `is_protected`; otherwise memory
    /// must not be limited. Nothing runs in the VM.
    ///
    /// # Errors
    ///
    /// The message, if it cannot have its tables.
    pub fn prepare<'r, 'a>(
        &'r self,
        function: &Pinned,
        keys: usize,
        texts: impl ExactSizeIterator<Item = &'a [u8]>,
        is_protected: bool,
    ) -> Result<Prepared<'r>, String> {
        let keys = keys.min(texts.len());
        let mut texts = Texts { counts: [keys, texts.len() - keys], texts };
        let state = self.state;
        // SAFETY: the main thread is idle, and has room for what is pushed here.
        let base = unsafe { ffi::lua_gettop(state) };
        let arguments = if self.fields.is_some() { 0 } else { 2 };
        let prepared = Prepared { runner: self, base, arguments };
        // SAFETY: as above.
        unsafe {
            ffi::lua_rawgeti_(state, ffi::LUA_REGISTRYINDEX, function.reference);
            if is_protected {
                if let Some(message) = self.give_protected(texts) {
                    return Err(message);
                }
            } else if let Some(fields) = self.fields {
                self.give_fields(fields, &mut texts);
            } else {
                give(state, &mut texts);
            }
        }
        Ok(prepared)
    }

    /// Gives a run its texts as fields, in the tables of the run before it where they fit.
    ///
    /// # Safety
    ///
    /// There is room for four values on the stack.
    unsafe fn give_fields<'a, T>(&self, fields: Fields, texts: &mut Texts<T>)
    where
        T: Iterator<Item = &'a [u8]>,
    {
        let (state, had) = (self.state, self.counts.replace([NOT_KEPT; 2]));
        let mut counts = [NOT_KEPT; 2];
        let has_grown = HAS_GROWN.take();
        for (at, count) in texts.counts.into_iter().enumerate() {
            let value = self.values[at];
            // SAFETY: by the contract. What is kept is a table.
            unsafe {
                if had[at] == count && !has_grown && is_plain(state, value) {
                    ffi::lua_cleartable(state, value);
                } else {
                    ffi::lua_createtable(state, count.min(ROOM_MAX) as c_int, 0);
                    ffi::lua_replace(state, value);
                    set_field(state, fields.table, fields.names[at], value);
                }
                fill(state, value, &mut texts.texts, count);
            }
            if count <= KEPT_ELEMENTS_MAX {
                counts[at] = count;
            }
        }
        self.counts.set(counts);
    }

    /// Gives a run its texts in a protected call. Returns the message of its error.
    ///
    /// # Safety
    ///
    /// There is room for five values on the stack.
    unsafe fn give_protected<'a, T: Iterator<Item = &'a [u8]>>(
        &self,
        mut texts: Texts<T>,
    ) -> Option<String> {
        unsafe extern "C-unwind" fn push<'a, T>(state: *mut ffi::lua_State) -> c_int
        where
            T: Iterator<Item = &'a [u8]>,
        {
            // SAFETY: the argument is what `give_protected` has passed, which waits meanwhile.
            unsafe { give(state, &mut *ffi::lua_touserdata(state, 1).cast::<Texts<T>>()) };
            2
        }
        let state = self.state;
        // SAFETY: by the contract. `texts` outlives the call. The fields exist, so that to set them
        // needs no memory.
        unsafe {
            ffi::lua_pushcclosurek(state, push::<T>, c"inputs".as_ptr(), 0, None);
            ffi::lua_pushlightuserdata(state, (&raw mut texts).cast());
            if ffi::lua_pcall(state, 1, 2, 0) != ffi::LUA_OK {
                return Some(match argument(state, -1) {
                    Argument::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    _ => "not enough memory".to_owned(),
                });
            }
            if let Some(fields) = self.fields {
                self.counts.set([NOT_KEPT; 2]);
                for (name, value) in fields.names.into_iter().zip(self.values).rev() {
                    ffi::lua_replace(state, value);
                    set_field(state, fields.table, name, value);
                }
            }
        }
        None
    }
}

/// Sets a field that exists to the value at an index of the stack. The table is read-only for
/// scripts.
///
/// # Safety
///
/// There is room for two values on the stack, and table, name and value are where it is said.
unsafe fn set_field(state: *mut ffi::lua_State, table: c_int, name: c_int, value: c_int) {
    // SAFETY: by the contract.
    unsafe {
        ffi::lua_setreadonly(state, table, 0);
        ffi::lua_pushvalue(state, name);
        ffi::lua_pushvalue(state, value);
        ffi::lua_rawset(state, table);
        ffi::lua_setreadonly(state, table, 1);
    }
}

/// Whether a table can be written and has no metatable.
///
/// # Safety
///
/// There is room for one value on the stack, and the table is where it is said.
unsafe fn is_plain(state: *mut ffi::lua_State, table: c_int) -> bool {
    // SAFETY: by the contract.
    unsafe {
        if ffi::lua_getmetatable(state, table) != 0 {
            ffi::lua_settop(state, -2);
            return false;
        }
        ffi::lua_getreadonly(state, table) == 0
    }
}

/// Pushes two tables with texts.
///
/// # Safety
///
/// There is room for three values on the stack. Nothing with a destructor is alive but what the
/// iterator holds, should an error be raised.
unsafe fn give<'a, T>(state: *mut ffi::lua_State, texts: &mut Texts<T>)
where
    T: Iterator<Item = &'a [u8]>,
{
    for count in texts.counts {
        // SAFETY: by the contract.
        unsafe {
            ffi::lua_createtable(state, count.min(ROOM_MAX) as c_int, 0);
            fill(state, ffi::lua_gettop(state), &mut texts.texts, count);
        }
    }
}

/// Puts texts into an empty table.
///
/// # Safety
///
/// As of [`give`], with room for one value; the table is where it is said.
unsafe fn fill<'a>(
    state: *mut ffi::lua_State,
    table: c_int,
    texts: &mut impl Iterator<Item = &'a [u8]>,
    count: usize,
) {
    for (index, text) in texts.take(count).enumerate() {
        // SAFETY: by the contract.
        unsafe {
            ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
            ffi::lua_rawseti_(state, table, index as c_int + 1);
        }
    }
}

/// A function with its keys and arguments.
#[derive(Debug)]
pub struct Prepared<'r> {
    runner: &'r Runner,
    base: c_int,
    arguments: c_int,
}

impl<'r> Prepared<'r> {
    /// Calls the function.
    pub fn call(self) -> Ran<'r> {
        let Runner { state, handler, .. } = *self.runner;
        // SAFETY: the function and its arguments are at the top of the stack.
        let status = unsafe { ffi::lua_pcall(state, self.arguments, 1, handler) };
        Ran { succeeded: status == ffi::LUA_OK, prepared: self }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: what is above the base is this run's.
        unsafe { ffi::lua_settop(self.runner.state, self.base) };
    }
}

/// A run that is over.
#[derive(Debug)]
pub struct Ran<'r> {
    prepared: Prepared<'r>,
    succeeded: bool,
}

/// A result that needs no reference to a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Plain<'a> {
    /// A string.
    Text(&'a [u8]),
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Nil, or nothing.
    Nil,
}

impl Ran<'_> {
    /// Whether it has raised no error.
    pub fn has_succeeded(&self) -> bool {
        self.succeeded
    }

    /// Its result, if that is plain.
    pub fn plain(&self) -> Option<Plain<'_>> {
        let state = self.prepared.runner.state;
        if !self.succeeded {
            return None;
        }
        // SAFETY: the result is at the top of the stack, where it stays as long as the run.
        unsafe {
            match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => Some(Plain::Nil),
                ffi::LUA_TBOOLEAN => Some(Plain::Boolean(ffi::lua_toboolean(state, -1) != 0)),
                _ => match argument(state, -1) {
                    Argument::Number(number) => Some(Plain::Number(number)),
                    Argument::Text(text) => Some(Plain::Text(text)),
                    Argument::Other => None,
                },
            }
        }
    }

    /// Its result, or what the handler has made of the error. Memory must not be limited.
    ///
    /// # Errors
    ///
    /// There is no memory.
    pub fn into_value(self) -> mlua::Result<Value> {
        let Runner { lua, state, .. } = self.prepared.runner;
        // SAFETY: the value is at the top of the stack, and passes to mlua by the registry.
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

    /// Runs code with these texts, of which the first is a key.
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
    fn fields_are_as_new_for_each_run() {
        let lua = Lua::new();
        crate::luau::set_interrupt(&lua, |_| Ok(()));
        let fields = lua.create_table().unwrap();
        let runner = Runner::new(&lua, &handler(&lua), Some(&fields)).unwrap();
        fields.set_readonly(true);
        lua.globals().set("f", &fields).unwrap();
        let own: &[&[u8]] = &[b"k", b"a", b"b"];
        let whole = "local n = 0 for _ in f.KEYS do n += 1 end for _ in f.ARGV do n += 1 end
            return n .. f.KEYS[1] .. f.ARGV[1] .. f.ARGV[2] .. tostring(getmetatable(f.KEYS))";
        for attack in [
            "",
            "f.KEYS.x = 1 f.ARGV.y = 2",
            "f.KEYS[1] = nil f.KEYS.x = 1",
            "f.ARGV[3] = 'c' f.ARGV[7] = 'd'",
            "for i = 1, 20000 do f.ARGV[i] = i f.KEYS['k' .. i] = i end",
            "setmetatable(f.KEYS, {__index = error, __newindex = error})",
            "table.freeze(f.ARGV)",
            "error(f.KEYS)",
        ] {
            let attack = pinned(&lua, attack);
            drop(runner.prepare(&attack, 1, own.iter().copied(), false).unwrap().call());
            check(&runner, whole, own, Plain::Text(b"3kabnil"));
        }
        check(&runner, "return #f.KEYS + #f.ARGV", &[], Plain::Number(0.0));
        assert!(!pinned_table(&runner, "f.KEYS").is_readonly());
        runner.forget();
        assert_eq!(fields.get::<Value>("KEYS").unwrap(), Value::Boolean(false));
    }

    #[test]
    fn what_grew_in_a_run_is_not_kept_for_the_next() {
        let lua = Lua::new();
        crate::luau::set_interrupt(&lua, |_| Ok(()));
        let fields = lua.create_table().unwrap();
        let runner = Runner::new(&lua, &handler(&lua), Some(&fields)).unwrap();
        lua.globals().set("f", &fields).unwrap();
        let kept = pinned_table(&runner, "f.KEYS").to_pointer();
        assert_eq!(pinned_table(&runner, "f.KEYS").to_pointer(), kept, "it is kept");
        let grows = "local t = f.KEYS for i = 1, 20000 do t['k' .. i] = i end
            for i = 1, 20000 do t['k' .. i] = nil end";
        drop(runner.prepare(&pinned(&lua, grows), 1, [].into_iter(), false).unwrap().call());
        let fresh = pinned_table(&runner, "f.KEYS");
        assert_ne!(fresh.to_pointer(), kept);
    }

    /// A table that a run without texts returns.
    fn pinned_table(runner: &Runner, what: &str) -> Table {
        let code = pinned(&runner.lua, &format!("return {what}"));
        let ran = runner.prepare(&code, 0, [].into_iter(), false).unwrap().call();
        ran.into_value().unwrap().as_table().unwrap().clone()
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
