//! What scripts do most often, past mlua: its way to a Rust function costs some 1500 instructions
//! for a call of two arguments, and 180 for each safepoint.
//!
//! - **Safepoints**, at which a script can be ended: calls, returns, jumps, steps of a pattern.
//!   All but a few only count.
//! - **Natives**, which make no references to values: [`create_caller`] makes functions that pass
//!   texts and numbers to Rust and back, and [`create_runner`] those that run a script.
//!
//! Errors of Luau are long jumps. A function here that may raise one holds no value with a
//! destructor at that point: what it works on lies in thread-local variables.

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::slice;

use mlua::{Function, Lua, ffi};

/// A change of used memory between two safepoints after which the interrupt is called at once: what
/// takes long in one step most often takes memory.
const MEMORY_STEP_BYTES: usize = 1 << 20;

type Interrupt = unsafe extern "C-unwind" fn(state: *mut ffi::lua_State, gc: c_int);

thread_local! {
    /// Safepoints until the next interrupt.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// Bytes that were used at the last safepoint.
    static USED_BYTES: Cell<usize> = const { Cell::new(0) };
    /// What mlua installs in every VM alike.
    static INTERRUPT: Cell<Option<Interrupt>> = const { Cell::new(None) };
}

/// Calls `interrupt` at some safepoints of a VM: when those are used up that
/// [`set_safepoints`] grants, and when much memory is taken or freed in one step.
pub fn set_interrupt(lua: &Lua, interrupt: impl Fn(&Lua) -> mlua::Result<()> + 'static) {
    lua.set_interrupt(move |lua| interrupt(lua).map(|()| mlua::VmState::Continue));
    // SAFETY: the state is that of `lua`, which is borrowed, and nothing is pushed or popped.
    let replaced = unsafe {
        lua.exec_raw::<()>((), |state| {
            let callbacks = ffi::lua_callbacks(state);
            let installed = (*callbacks).interrupt.replace(at_safepoint);
            INTERRUPT.set(installed);
        })
    };
    debug_assert!(replaced.is_ok(), "an exchange of pointers fails");
}

/// Grants this thread's VMs so many safepoints until the next interrupt.
#[inline]
pub fn set_safepoints(count: u32) {
    LEFT.set(count);
}

/// Luau calls it at each safepoint, and before steps of its garbage collector (`gc` >= 0).
unsafe extern "C-unwind" fn at_safepoint(state: *mut ffi::lua_State, gc: c_int) {
    if gc >= 0 {
        return;
    }
    // SAFETY: the state is the one that runs.
    let used = unsafe { ffi::lua_totalbytes(state, -1) };
    let step = used.abs_diff(USED_BYTES.replace(used));
    let left = LEFT.get();
    if left > 1 && step < MEMORY_STEP_BYTES {
        LEFT.set(left - 1);
        return;
    }
    if let Some(interrupt) = INTERRUPT.get() {
        // SAFETY: it is mlua's own, with what Luau has passed. It may leave by a long jump: no
        // value of this frame has a destructor.
        unsafe { interrupt(state, gc) };
    }
}

/// An argument of a native.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// The bytes of a string.
    Text(&'a [u8]),
    /// A number.
    Number(f64),
    /// A value of another type.
    Other,
}

/// The arguments of a native.
pub struct Arguments<'a> {
    state: *mut ffi::lua_State,
    next: c_int,
    end: c_int,
    stack: PhantomData<&'a ()>,
}

impl<'a> Iterator for Arguments<'a> {
    type Item = Argument<'a>;

    fn next(&mut self) -> Option<Argument<'a>> {
        let index = self.next;
        if index >= self.end {
            return None;
        }
        self.next += 1;
        // SAFETY: the argument is on the stack, where it stays until the native returns.
        Some(unsafe { argument(self.state, index) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next).max(0) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Arguments<'_> {}

/// The value at an index of the stack.
///
/// # Safety
///
/// There is a value at the index, and it stays there for `'a`.
unsafe fn argument<'a>(state: *mut ffi::lua_State, index: c_int) -> Argument<'a> {
    // SAFETY: by the contract. A string is not converted, and so its bytes stay where they are.
    unsafe {
        match ffi::lua_type(state, index) {
            ffi::LUA_TSTRING => {
                let mut len = 0;
                let bytes = ffi::lua_tolstring(state, index, &mut len);
                Argument::Text(slice::from_raw_parts(bytes.cast(), len))
            }
            ffi::LUA_TNUMBER => Argument::Number(ffi::lua_tonumber(state, index)),
            _ => Argument::Other,
        }
    }
}

/// What a call answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// The text that it has written.
    Text,
    /// A number.
    Number(f64),
    /// False.
    False,
    /// What the function in Lua returns that belongs to the caller, given this number.
    Code(u8),
}

/// A call: it takes the arguments, and may write a text.
pub type Call = fn(arguments: Arguments<'_>, text: &mut Vec<u8>) -> Answer;

thread_local! {
    /// What callers do.
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
    /// The text of an answer, or of a result: see [`Answer::Text`] and [`Returned::Text`].
    static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// Texts with their lengths, four bytes each.
    static INPUTS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    /// How many of them are keys.
    static KEYS: Cell<usize> = const { Cell::new(0) };
    static RETURNED: Cell<Option<Returned>> = const { Cell::new(None) };
}

/// Capacity that a text or the inputs keep until the next run.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// A function that takes another, `settle`, and returns a caller: a function that does `call` with
/// its arguments and returns one value, which `settle` makes of an [`Answer::Code`]. All VMs of a
/// thread have the same call.
///
/// # Errors
///
/// There is no memory.
pub fn create_caller(lua: &Lua, call: Call) -> mlua::Result<Function> {
    CALL.set(Some(call));
    // SAFETY: the function keeps to the rules of Lua for functions in C.
    unsafe { lua.create_c_function(push_caller) }
}

unsafe extern "C-unwind" fn push_caller(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the one that runs; a missing argument becomes nil.
    unsafe {
        ffi::lua_settop(state, 1);
        ffi::lua_pushcclosurek(state, run_call, c"call".as_ptr(), 1, None);
    }
    1
}

unsafe extern "C-unwind" fn run_call(state: *mut ffi::lua_State) -> c_int {
    let Some(call) = CALL.get() else { return 0 };
    // SAFETY: the state is the one that runs, whose arguments begin at 1.
    let end = unsafe { ffi::lua_gettop(state) } + 1;
    let mut text = TEXT.take();
    text.clear();
    let answer = call(Arguments { state, next: 1, end, stack: PhantomData }, &mut text);
    let (bytes, len) = (text.as_ptr(), text.len());
    TEXT.set(text);
    // SAFETY: there is room for two values on the stack of a function in C. The bytes stay until
    // the next native or run. Nothing with a destructor is alive, should there be no memory.
    unsafe {
        match answer {
            Answer::Text => ffi::lua_pushlstring_(state, bytes.cast::<c_char>(), len),
            Answer::Number(number) => ffi::lua_pushnumber(state, number),
            Answer::False => ffi::lua_pushboolean(state, 0),
            Answer::Code(code) => {
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
                ffi::lua_pushnumber(state, f64::from(code));
                ffi::lua_call(state, 1, 1);
            }
        }
    }
    1
}

/// Gives the next run its texts: so many keys, and arguments. Returns about how many bytes they
/// take there.
pub fn set_inputs<'a>(keys: usize, texts: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut inputs = INPUTS.take();
    inputs.clear();
    for text in texts {
        inputs.extend_from_slice(&(text.len() as u32).to_le_bytes());
        inputs.extend_from_slice(text);
    }
    let bytes = inputs.len();
    INPUTS.set(inputs);
    KEYS.set(keys);
    bytes
}

/// Frees what large inputs take, when their run is over.
pub fn free_inputs() {
    let mut inputs = INPUTS.take();
    inputs.clear();
    inputs.shrink_to(KEPT_BYTES_MAX);
    INPUTS.set(inputs);
}

/// A function that takes a handler of errors, and a table or nil, and returns a runner: a function
/// that calls its argument with the inputs, the keys in one table and the arguments in another.
/// They are arguments of that call, or the fields `KEYS` and `ARGV` of the table.
///
/// A runner returns nothing when the result is plain, which is kept for [`take_returned`];
/// otherwise whether the call succeeded, and its result or what the handler made of the error.
///
/// # Errors
///
/// There is no memory.
pub fn create_runner(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: as in `create_caller`.
    unsafe { lua.create_c_function(push_runner) }
}

unsafe extern "C-unwind" fn push_runner(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the one that runs; missing arguments become nil.
    unsafe {
        ffi::lua_settop(state, 2);
        ffi::lua_pushcclosurek(state, run, c"run".as_ptr(), 2, None);
    }
    1
}

/// A runner: its upvalues are the handler, and the table or nil.
unsafe extern "C-unwind" fn run(state: *mut ffi::lua_State) -> c_int {
    let inputs = INPUTS.take();
    let (bytes, len) = (inputs.as_ptr(), inputs.len());
    INPUTS.set(inputs);
    // SAFETY: the bytes stay until the next call of `set_inputs`, which is that of the next run.
    let texts = unsafe { slice::from_raw_parts(bytes, len) };
    // SAFETY: the state is the one that runs, and there is room for seven values on its stack.
    // Nothing with a destructor is alive, should there be no memory.
    unsafe {
        ffi::lua_settop(state, 1);
        ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
        ffi::lua_insert(state, 1);
        // The stack is the handler and the function.
        let mut arguments = 0;
        if ffi::lua_type(state, ffi::lua_upvalueindex(2)) == ffi::LUA_TTABLE {
            ffi::lua_pushvalue(state, ffi::lua_upvalueindex(2));
            let texts = push_table(state, KEYS.get(), texts);
            ffi::lua_rawsetfield(state, -2, c"KEYS".as_ptr());
            push_table(state, usize::MAX, texts);
            ffi::lua_rawsetfield(state, -2, c"ARGV".as_ptr());
            ffi::lua_settop(state, 2);
        } else {
            let texts = push_table(state, KEYS.get(), texts);
            push_table(state, usize::MAX, texts);
            arguments = 2;
        }
        let failed = ffi::lua_pcall(state, arguments, 1, 1) != ffi::LUA_OK;
        if !failed && keep(state, -1) {
            return 0;
        }
        ffi::lua_pushboolean(state, c_int::from(!failed));
        ffi::lua_insert(state, -2);
    }
    2
}

/// Pushes a table of up to `count` texts, and returns those behind them.
///
/// # Safety
///
/// There is room for two values on the stack.
unsafe fn push_table(state: *mut ffi::lua_State, count: usize, mut rest: &[u8]) -> &[u8] {
    let expected = count.min(rest.len() / size_of::<u32>()).min(i32::MAX as usize);
    // SAFETY: by the contract.
    unsafe { ffi::lua_createtable(state, expected.min(1024) as c_int, 0) };
    for index in 1..=expected {
        let Some((len, behind)) = rest.split_first_chunk::<4>() else { break };
        let Some((text, behind)) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)
        else {
            break;
        };
        rest = behind;
        // SAFETY: by the contract; the table is below the text.
        unsafe {
            ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
            ffi::lua_rawseti_(state, -2, index as c_int);
        }
    }
    rest
}

/// A result that needs no reference to a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Returned {
    /// The text of [`with_text`].
    Text,
    /// A number.
    Number(f64),
    /// True or false.
    Boolean(bool),
    /// Nil, or nothing.
    Nil,
}

/// Results of more bytes are returned as values.
const RETURNED_BYTES_MAX: usize = 16 * 1024;

/// Keeps the value at an index, if it is a plain result.
///
/// # Safety
///
/// There is a value at the index.
unsafe fn keep(state: *mut ffi::lua_State, index: c_int) -> bool {
    // SAFETY: by the contract; nothing is pushed.
    let returned = unsafe {
        match ffi::lua_type(state, index) {
            ffi::LUA_TNIL => Returned::Nil,
            ffi::LUA_TBOOLEAN => Returned::Boolean(ffi::lua_toboolean(state, index) != 0),
            _ => match argument(state, index) {
                Argument::Number(number) => Returned::Number(number),
                Argument::Text(bytes) if bytes.len() <= RETURNED_BYTES_MAX => {
                    let mut text = TEXT.take();
                    text.clear();
                    text.extend_from_slice(bytes);
                    TEXT.set(text);
                    Returned::Text
                }
                _ => return false,
            },
        }
    };
    RETURNED.set(Some(returned));
    true
}

/// The result that a runner has kept.
#[inline]
pub fn take_returned() -> Option<Returned> {
    RETURNED.take()
}

/// Calls `f` with the text of [`Returned::Text`].
pub fn with_text<R>(f: impl FnOnce(&[u8]) -> R) -> R {
    let mut text = TEXT.take();
    let result = f(&text);
    text.clear();
    text.shrink_to(KEPT_BYTES_MAX);
    TEXT.set(text);
    result
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn safepoints_are_counted_and_large_steps_of_memory_seen() {
        let (lua, interrupts) = (Lua::new(), Rc::new(Cell::new(0)));
        let counter = Rc::clone(&interrupts);
        set_interrupt(&lua, move |_| {
            counter.set(counter.get() + 1);
            set_safepoints(100);
            Ok(())
        });
        set_safepoints(100);
        lua.load("for i = 1, 1000 do end").exec().unwrap();
        let counted = interrupts.get();
        assert!((9..=11).contains(&counted), "{counted}");
        lua.load("local s = string.rep('x', 2000000) for i = 1, 10 do end").exec().unwrap();
        assert!(interrupts.get() > counted);
    }

    #[test]
    fn an_error_of_the_interrupt_ends_the_script() {
        let lua = Lua::new();
        set_interrupt(&lua, |_| Err(mlua::Error::runtime("enough")));
        set_safepoints(10);
        let error = lua.load("while true do end").exec().unwrap_err();
        assert!(error.to_string().contains("enough"));
        set_safepoints(u32::MAX);
        let sum: i64 = lua.load("local s = 0 for i = 1, 9 do s += i end return s").eval().unwrap();
        assert_eq!(sum, 45);
    }

    #[test]
    fn a_caller_takes_arguments_and_answers() {
        let lua = Lua::new();
        let call: Call = |arguments, text| {
            assert_eq!(arguments.len(), arguments.size_hint().0);
            for argument in arguments {
                match argument {
                    Argument::Text(b"no") => return Answer::False,
                    Argument::Text(bytes) => text.extend_from_slice(bytes),
                    Argument::Number(number) => return Answer::Number(2.0 * number),
                    Argument::Other => return Answer::Code(7),
                }
            }
            Answer::Text
        };
        lua.globals().set("caller", create_caller(&lua, call).unwrap()).unwrap();
        let checks = "local call = caller(function(code) return 'code ' .. code end)
            local fails = caller(function(code) error('failed') end)
            local ok, text = pcall(fails, {})
            return call('a', 'b\\0') == 'ab\\0' and call() == '' and call('x', 4.5) == 9
                and call('no') == false and call({}) == 'code 7' and call(nil) == 'code 7'
                and not ok and string.find(text, 'failed') ~= nil";
        assert!(lua.load(checks).eval::<bool>().unwrap());
    }

    /// Runs code with inputs, of which the first is a key: what the runner returns.
    fn run_with_inputs(lua: &Lua, code: &str) -> (Option<bool>, mlua::Value) {
        set_inputs(1, [&b"k"[..], b"", b"x\0y"].into_iter());
        let runner: Function = lua.globals().get("runner").unwrap();
        runner.call(lua.load(code).into_function().unwrap()).unwrap()
    }

    #[test]
    fn large_inputs_are_freed() {
        let capacity = || {
            let inputs = INPUTS.take();
            let capacity = inputs.capacity();
            INPUTS.set(inputs);
            capacity
        };
        let text = vec![0; 1 << 20];
        assert_eq!(set_inputs(0, [&text[..], &text[..]].into_iter()), (2 << 20) + 8);
        assert!(capacity() >= 2 << 20);
        free_inputs();
        assert!(capacity() <= KEPT_BYTES_MAX);
    }

    #[test]
    fn a_runner_gives_inputs_and_keeps_plain_results() {
        let lua = Lua::new();
        let globals = lua.globals();
        globals.set("create", create_runner(&lua).unwrap()).unwrap();
        lua.load("runner = create(function(e) return {e} end)").exec().unwrap();
        let kept = |code: &str| {
            let (succeeded, value) = run_with_inputs(&lua, code);
            assert!(succeeded.is_none() && value.is_nil(), "{code}");
            take_returned().unwrap()
        };
        assert_eq!(kept("local k, a = ... return k[1] .. #a .. a[1] .. a[2]"), Returned::Text);
        with_text(|text| assert_eq!(text, b"k2x\0y"));
        assert_eq!(kept("return 1.5"), Returned::Number(1.5));
        assert_eq!(kept("return false"), Returned::Boolean(false));
        assert_eq!(kept("return"), Returned::Nil);
        let (succeeded, value) = run_with_inputs(&lua, "return {}");
        assert!(succeeded == Some(true) && value.is_table());
        let (succeeded, value) = run_with_inputs(&lua, "return string.rep('x', 20000)");
        assert!(succeeded == Some(true) && value.is_string());
        let (succeeded, value) = run_with_inputs(&lua, "error('wrong')");
        assert!(succeeded == Some(false) && value.is_table());
        assert_eq!(take_returned(), None);
        lua.load("inputs = {} runner = create(print, inputs)").exec().unwrap();
        kept("return inputs.KEYS[1] .. inputs.ARGV[2]");
        with_text(|text| assert_eq!(text, b"kx\0y"));
    }
}
