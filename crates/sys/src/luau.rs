//! The most frequent operations of scripts, without mlua, whose call of a Rust function with two
//! arguments costs some 1500 instructions, and each safepoint 180.
//!
//! - **Safepoints**, at which a script can be ended: calls, returns, jumps, steps of a pattern.
//!   Most of them only count.
//! - **Searches** for patterns, which have such points too: see [`create_string_functions`].
//! - **Natives**, which create no references to values: [`create_caller`] makes functions that pass
//!   texts and numbers to Rust and back.
//! - **Runs** of scripts: see [`Runner`].
//!
//! Errors of Luau are long jumps. When a function here may raise one, no value with a destructor is
//! alive: its data is in thread-local variables.

mod pattern;
mod runner;
mod strings;

use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::marker::PhantomData;
use std::ops::Range;
use std::slice;

use mlua::{Function, Lua, ffi};

pub use self::runner::{Pinned, Plain, PreparedRun, Ran, Runner, create_asker};
pub use self::strings::create_string_functions;

/// If the used memory changes by so much between two safepoints, the interrupt is called at once: a
/// step that takes long usually takes memory.
const MEMORY_STEP_BYTES: usize = 1 << 20;

type Interrupt = unsafe extern "C-unwind" fn(state: *mut ffi::lua_State, gc: c_int);

thread_local! {
    /// Safepoints until the next interrupt.
    static LEFT: Cell<u32> = const { Cell::new(0) };
    /// Bytes that were used at the last safepoint.
    static USED_BYTES: Cell<usize> = const { Cell::new(0) };
    /// The interrupt of mlua, which is the same in every VM.
    static INTERRUPT: Cell<Option<Interrupt>> = const { Cell::new(None) };
}

/// Makes a VM call `interrupt` at some safepoints: after the number that [`set_safepoints`] grants,
/// and when one step allocates or frees much memory.
pub fn set_interrupt(lua: &Lua, interrupt: impl Fn(&Lua) -> mlua::Result<()> + 'static) {
    lua.set_interrupt(move |lua| interrupt(lua).map(|()| mlua::VmState::Continue));
    // SAFETY: the state belongs to `lua`, which is borrowed, and nothing is pushed or popped.
    let replaced = unsafe {
        lua.exec_raw::<()>((), |state| {
            let callbacks = ffi::lua_callbacks(state);
            let installed = (*callbacks).interrupt.replace(at_safepoint);
            INTERRUPT.set(installed);
        })
    };
    debug_assert!(replaced.is_ok(), "an exchange of pointers fails");
}

/// Sets the number of safepoints of this thread's VMs until the next interrupt.
#[inline]
pub fn set_safepoints(count: u32) {
    LEFT.set(count);
}

/// The number of safepoints of this thread's VMs until the next interrupt. In an interrupt it is
/// more than 1 if that has come before its time.
#[inline]
pub fn safepoints_left() -> u32 {
    LEFT.get()
}

/// Luau calls it at each safepoint, and before steps of its garbage collector (`gc` >= 0).
unsafe extern "C-unwind" fn at_safepoint(state: *mut ffi::lua_State, gc: c_int) {
    if gc >= 0 {
        return;
    }
    // SAFETY: the state is the running one.
    let used = unsafe { ffi::lua_totalbytes(state, -1) };
    let step = used.abs_diff(USED_BYTES.replace(used));
    let left = LEFT.get();
    if left > 1 && step < MEMORY_STEP_BYTES {
        LEFT.set(left - 1);
        return;
    }
    if let Some(interrupt) = INTERRUPT.get() {
        // SAFETY: it is mlua's function, with the arguments of Luau. It may leave by a long jump;
        // no value of this frame has a destructor.
        unsafe { interrupt(state, gc) };
    }
}

/// A safepoint after a step that takes as long as those between so many safepoints.
///
/// # Safety
///
/// The state is the running one. No value of the callers has a destructor.
unsafe fn pass_safepoints(state: *mut ffi::lua_State, count: usize) {
    let further = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX);
    LEFT.set(LEFT.get().saturating_sub(further));
    // SAFETY: by the caller's promise.
    unsafe { at_safepoint(state, -1) };
}

/// Calls `f`. The memory that the VM's main thread and coroutines that begin meanwhile allocate
/// counts for a category, besides the total. Otherwise it counts for category 0.
pub fn in_memory_category<R>(lua: &Lua, category: u8, f: impl FnOnce() -> R) -> R {
    let state = runner::main_state(lua);
    // SAFETY: the VM lives. No error is raised.
    unsafe { ffi::lua_setmemcat(state, c_int::from(category)) };
    let result = f();
    // SAFETY: as above.
    unsafe { ffi::lua_setmemcat(state, 0) };
    result
}

/// Bytes that belong to a category of memory.
pub fn category_bytes(lua: &Lua, category: u8) -> usize {
    // SAFETY: the VM lives. No error is raised.
    unsafe { ffi::lua_totalbytes(runner::main_state(lua), c_int::from(category)) }
}

/// An argument of a native.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NativeArgument<'a> {
    /// The bytes of a string.
    Text(&'a [u8]),
    /// A number.
    Number(f64),
    /// A value of another type.
    Other,
}

/// The arguments of a native.
pub struct StackArguments<'a> {
    state: *mut ffi::lua_State,
    next: c_int,
    end: c_int,
    stack: PhantomData<&'a ()>,
}

impl<'a> Iterator for StackArguments<'a> {
    type Item = NativeArgument<'a>;

    fn next(&mut self) -> Option<NativeArgument<'a>> {
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

impl ExactSizeIterator for StackArguments<'_> {}

/// The value at an index of the stack.
///
/// # Safety
///
/// There is a value at the index, and it stays there for `'a`.
unsafe fn argument<'a>(state: *mut ffi::lua_State, index: c_int) -> NativeArgument<'a> {
    // SAFETY: by the caller's promise. A string is not converted, so its bytes do not move.
    unsafe {
        match ffi::lua_type(state, index) {
            ffi::LUA_TSTRING => {
                let mut len = 0;
                let bytes = ffi::lua_tolstring(state, index, &mut len);
                NativeArgument::Text(slice::from_raw_parts(bytes.cast(), len))
            }
            ffi::LUA_TNUMBER => NativeArgument::Number(ffi::lua_tonumber(state, index)),
            _ => NativeArgument::Other,
        }
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallResult {
    /// A part of the text that the call wrote.
    Text(Range<usize>),
    /// A number.
    Number(f64),
    /// False.
    False,
    /// The result of the caller's `settle`, with this number as argument.
    Code(u8),
}

/// A call. It gets the arguments, and may write a text to an empty buffer, whose memory is reused.
/// The call bounds that memory.
pub type NativeCall = fn(arguments: StackArguments<'_>, text: &mut Vec<u8>) -> CallResult;

thread_local! {
    /// The call of all callers.
    static CALL: Cell<Option<NativeCall>> = const { Cell::new(None) };
    /// The text of an answer: see [`CallResult::Text`].
    static TEXT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Creates a Lua function that takes a function `settle` and returns a caller: a function that runs
/// `call` with its arguments and returns one value. `settle` turns an [`CallResult::Code`] into
/// that value. All VMs of a thread have the same call.
///
/// # Errors
///
/// If there is not enough memory.
pub fn create_caller(lua: &Lua, call: NativeCall) -> mlua::Result<Function> {
    CALL.set(Some(call));
    // SAFETY: the function follows the rules of Lua for C functions.
    unsafe { lua.create_c_function(push_caller) }
}

unsafe extern "C-unwind" fn push_caller(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one; a missing argument becomes nil.
    unsafe {
        ffi::lua_settop(state, 1);
        ffi::lua_pushcclosurek(state, answer_call, c"call".as_ptr(), 1, None);
    }
    1
}

unsafe extern "C-unwind" fn answer_call(state: *mut ffi::lua_State) -> c_int {
    let Some(call) = CALL.get() else { return 0 };
    // SAFETY: the state is the running one, whose arguments start at 1.
    let end = unsafe { ffi::lua_gettop(state) } + 1;
    let mut text = TEXT.take();
    text.clear();
    let answer = call(StackArguments { state, next: 1, end, stack: PhantomData }, &mut text);
    let part = match &answer {
        CallResult::Text(part) => text.get(part.clone()).unwrap_or_default(),
        _ => &[],
    };
    let (bytes, len) = (part.as_ptr(), part.len());
    TEXT.set(text);
    // SAFETY: the stack of a C function has room for two values. The bytes stay until the next
    // native or run. If memory runs out, no value with a destructor is alive.
    unsafe {
        match answer {
            CallResult::Text(_) => ffi::lua_pushlstring_(state, bytes.cast::<c_char>(), len),
            CallResult::Number(number) => ffi::lua_pushnumber(state, number),
            CallResult::False => ffi::lua_pushboolean(state, 0),
            CallResult::Code(code) => {
                ffi::lua_pushvalue(state, ffi::lua_upvalueindex(1));
                ffi::lua_pushnumber(state, f64::from(code));
                ffi::lua_call(state, 1, 1);
            }
        }
    }
    1
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[test]
    fn safepoints_are_counted_and_large_steps_of_memory_noticed() {
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
    fn a_caller_takes_arguments_and_returns_results() {
        let lua = Lua::new();
        let call: NativeCall = |arguments, text| {
            assert_eq!(arguments.len(), arguments.size_hint().0);
            for argument in arguments {
                match argument {
                    NativeArgument::Text(b"no") => return CallResult::False,
                    NativeArgument::Text(bytes) => text.extend_from_slice(bytes),
                    NativeArgument::Number(number) => return CallResult::Number(2.0 * number),
                    NativeArgument::Other => return CallResult::Code(7),
                }
            }
            CallResult::Text(0..text.len())
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
}
