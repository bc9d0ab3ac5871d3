//! The functions of `string` that search for patterns, as Lua 5.1 has them: `find`, `match`,
//! `gmatch` and `gsub`. Those of Luau search without safepoints while a class repeats, and read
//! zero bytes in patterns. The other functions of `string` get numbers as text of 14 digits.
//!
//! A search uses the [`SearchScratch`] of its thread until its captures are on the stack. A script
//! that `gsub` calls searches with the same one.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::slice;

use mlua::{Function, Lua, Table, ffi};

use super::pass_safepoints;
use super::pattern::{
    CAPTURES_MAX, Captured, POLL_STEPS, PatternError, STEP_BYTES, Search, SearchScratch,
    count_steps, has_specials, split_anchor, until_zero,
};

/// A function of Lua in Rust.
type Native = unsafe extern "C-unwind" fn(*mut ffi::lua_State) -> c_int;

/// Room for a number as text.
const NUMBER_BYTES_MAX: usize = 32;

/// Functions whose first argument is a text and that know no patterns.
const TEXT_FUNCTIONS: [&CStr; 6] = [c"byte", c"len", c"lower", c"reverse", c"sub", c"upper"];

thread_local! {
    static SCRATCH: UnsafeCell<SearchScratch> = const { UnsafeCell::new(SearchScratch::new()) };
}

/// The functions by name: those that search, and others of `originals`, the library of Luau, that
/// take texts.
///
/// # Errors
///
/// If there is not enough memory.
pub fn create_string_functions(lua: &Lua, originals: &Table) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let searching: [(&str, Native); 4] =
        [("find", find), ("match", match_once), ("gmatch", gmatch), ("gsub", gsub)];
    for (name, native) in searching {
        // SAFETY: the functions follow the rules of Lua for C functions.
        table.raw_set(name, unsafe { lua.create_c_function(native)? })?;
    }
    for name in TEXT_FUNCTIONS {
        let key = lua.create_string(name.to_bytes())?;
        let original: Function = originals.raw_get(key.clone())?;
        // SAFETY: the function follows these rules too. Its upvalue is at the top of the stack.
        let function: Function = unsafe {
            lua.exec_raw(original, |state| {
                ffi::lua_pushcclosurek(state, on_text, name.as_ptr(), 1, None);
            })?
        };
        table.raw_set(key, function)?;
    }
    Ok(table)
}

/// Calls the function of Luau in the upvalue, with a number in the first argument as text.
unsafe extern "C-unwind" fn on_text(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one. The upvalue is a C function without upvalues, which
    // finds its arguments where this one got them.
    unsafe {
        if ffi::lua_type(state, 1) == ffi::LUA_TNUMBER {
            replace_number(state, 1);
        }
        match ffi::lua_tocfunction(state, ffi::lua_upvalueindex(1)) {
            Some(original) => original(state),
            None => 0,
        }
    }
}

unsafe extern "C-unwind" fn find(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one, whose arguments start at 1.
    unsafe { search_once(state, c"find", true) }
}

unsafe extern "C-unwind" fn match_once(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: as above.
    unsafe { search_once(state, c"match", false) }
}

/// `find` and `match`: subject, pattern, position from which to search, and for `find` whether the
/// pattern is plain text.
///
/// # Safety
///
/// The state is the running one, and its arguments start at 1.
unsafe fn search_once(state: *mut ffi::lua_State, name: &CStr, is_find: bool) -> c_int {
    // SAFETY: by the caller's promise. The texts stay on the stack, and no value here has a
    // destructor when an error is raised.
    unsafe {
        let subject = text_argument(state, 1, name);
        let text = text_argument(state, 2, name);
        let start = start_of(integer_argument(state, 3, name).unwrap_or(1), subject.len());
        let mut left = POLL_STEPS;
        let is_text = is_find && ffi::lua_toboolean(state, 4) != 0;
        let pattern = if is_text { text } else { pattern_of(state, text, &mut left) };
        if is_text || is_find && is_plain(state, pattern, &mut left) {
            let Some(at) = find_plain(state, &subject[start..], text, &mut left) else {
                ffi::lua_pushnil(state);
                return 1;
            };
            return push_range(state, &(start + at..start + at + text.len()));
        }
        let (is_anchored, pattern) = split_anchor(pattern);
        let Some(found) = search(state, subject, pattern, start, is_anchored, &mut left) else {
            ffi::lua_pushnil(state);
            return 1;
        };
        if !is_find {
            return push_captures(state, subject, &found, true, &mut left);
        }
        let pushed = push_range(state, &found);
        pushed + push_captures(state, subject, &found, false, &mut left)
    }
}

/// The part of a text that counts as a pattern.
///
/// # Safety
///
/// As [`spend`].
unsafe fn pattern_of<'a>(state: *mut ffi::lua_State, text: &'a [u8], left: &mut usize) -> &'a [u8] {
    let pattern = until_zero(text);
    // SAFETY: by the caller's promise.
    unsafe { spend(state, left, pattern.len() / STEP_BYTES) };
    pattern
}

/// Whether a pattern has no meaning besides itself.
///
/// # Safety
///
/// As [`spend`].
unsafe fn is_plain(state: *mut ffi::lua_State, pattern: &[u8], left: &mut usize) -> bool {
    pattern.chunks(POLL_STEPS * STEP_BYTES).all(|block| {
        // SAFETY: by the caller's promise.
        unsafe { spend(state, left, block.len() / STEP_BYTES) };
        !has_specials(block)
    })
}

/// Where the text `needle` begins in `subject`.
///
/// # Safety
///
/// As [`spend`].
unsafe fn find_plain(
    state: *mut ffi::lua_State,
    subject: &[u8],
    needle: &[u8],
    left: &mut usize,
) -> Option<usize> {
    // The search would read the needle first.
    if needle.len() > subject.len() {
        return None;
    }
    let found = memchr::memmem::find(subject, needle);
    let bytes = needle.len() + found.unwrap_or(subject.len());
    // SAFETY: by the caller's promise.
    unsafe { spend(state, left, bytes / STEP_BYTES) };
    found
}

/// `gmatch`: an iterator whose upvalues are subject, pattern, position, and the length of the
/// pattern up to its first zero byte.
unsafe extern "C-unwind" fn gmatch(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one, whose arguments start at 1.
    unsafe {
        text_argument(state, 1, c"gmatch");
        let mut left = POLL_STEPS;
        let pattern = pattern_of(state, text_argument(state, 2, c"gmatch"), &mut left);
        ffi::lua_settop(state, 2);
        ffi::lua_pushnumber(state, 0.0);
        ffi::lua_pushnumber(state, pattern.len() as f64);
        ffi::lua_pushcclosurek(state, next_match, c"gmatch".as_ptr(), 4, None);
    }
    1
}

unsafe extern "C-unwind" fn next_match(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one, with the upvalues of `gmatch`, which keep the texts.
    unsafe {
        let subject = text_at(state, ffi::lua_upvalueindex(1));
        let pattern_bytes = ffi::lua_tonumber(state, ffi::lua_upvalueindex(4)) as usize;
        let pattern = &text_at(state, ffi::lua_upvalueindex(2))[..pattern_bytes];
        let start = ffi::lua_tonumber(state, ffi::lua_upvalueindex(3)) as usize;
        if start > subject.len() {
            return 0;
        }
        let mut left = POLL_STEPS;
        let Some(found) = search(state, subject, pattern, start, false, &mut left) else {
            return 0;
        };
        let next = found.end + usize::from(found.is_empty());
        ffi::lua_pushnumber(state, next as f64);
        ffi::lua_replace(state, ffi::lua_upvalueindex(3));
        push_captures(state, subject, &found, true, &mut left)
    }
}

/// `gsub`: subject, pattern, replacement, and the most replacements.
unsafe extern "C-unwind" fn gsub(state: *mut ffi::lua_State) -> c_int {
    // SAFETY: the state is the running one, whose arguments start at 1. The texts stay on the
    // stack. No value here has a destructor when an error is raised.
    unsafe {
        let subject = text_argument(state, 1, c"gsub");
        let pattern = text_argument(state, 2, c"gsub");
        let max = integer_argument(state, 4, c"gsub");
        // Of 32 bits, as in C.
        let max = max.map_or(i64::MAX, |max| i64::from(max as i32));
        let kind = match ffi::lua_type(state, 3) {
            ffi::LUA_TNUMBER => {
                replace_number(state, 3);
                ffi::LUA_TSTRING
            }
            kind @ (ffi::LUA_TSTRING | ffi::LUA_TFUNCTION | ffi::LUA_TTABLE) => kind,
            _ => argument_error(state, 3, c"gsub", c"string/function/table expected"),
        };
        ffi::lua_settop(state, 3);
        let mut left = POLL_STEPS;
        let (is_anchored, pattern) = split_anchor(pattern_of(state, pattern, &mut left));
        let mut buffer = MaybeUninit::uninit();
        let buffer = buffer.as_mut_ptr();
        ffi::luaL_buffinit(state, buffer);
        let (mut count, mut at, mut copied) = (0i64, 0, 0);
        while count < max && at <= subject.len() {
            let found = search(state, subject, pattern, at, is_anchored, &mut left);
            let Some(found) = found else { break };
            count += 1;
            add(buffer, &subject[copied..found.start]);
            copied = found.end;
            at = found.end + usize::from(found.is_empty());
            if kind == ffi::LUA_TSTRING {
                add_replacement(state, buffer, subject, &found, &mut left);
            } else {
                add_value(state, buffer, subject, &found, kind, &mut left);
            }
            if is_anchored {
                break;
            }
        }
        add(buffer, &subject[copied..]);
        ffi::luaL_pushresult(buffer);
        ffi::lua_pushnumber(state, count as f64);
    }
    2
}

/// Adds the text at stack index 3, in which `%0` to `%9` stand for the match and its captures, and
/// `%` before another character for that one; at the end it is a zero byte.
///
/// # Safety
///
/// The state is the running one, the buffer is its own, and the captures are those of the match.
unsafe fn add_replacement(
    state: *mut ffi::lua_State,
    buffer: *mut ffi::luaL_Strbuf,
    subject: &[u8],
    found: &Range<usize>,
    left: &mut usize,
) {
    // SAFETY: by the caller's promise.
    unsafe {
        let mut rest = text_at(state, 3);
        while let Some(escape) = memchr::memchr(b'%', rest) {
            spend(state, left, 1);
            add(buffer, &rest[..escape]);
            let byte = rest.get(escape + 1).copied().unwrap_or(0);
            rest = rest.get(escape + 2..).unwrap_or_default();
            let number = match byte {
                b'0' => {
                    add(buffer, &subject[found.clone()]);
                    continue;
                }
                b'1'..=b'9' => usize::from(byte - b'1'),
                other => {
                    add(buffer, &[other]);
                    continue;
                }
            };
            let scratch = SCRATCH.with(|scratch| &*scratch.get());
            match scratch.capture(number, found) {
                Ok(Captured::Text(start, end)) => add(buffer, &subject[start..end]),
                Ok(Captured::Position(at)) => {
                    let (text, len) = number_text((at + 1) as f64);
                    add(buffer, &text[..len]);
                }
                Err(text) => raise(state, text),
            }
        }
        add(buffer, rest);
    }
}

/// Adds what the function or table at stack index 3 has for a match, or the match itself for nil
/// and false.
///
/// # Safety
///
/// As [`add_replacement`].
unsafe fn add_value(
    state: *mut ffi::lua_State,
    buffer: *mut ffi::luaL_Strbuf,
    subject: &[u8],
    found: &Range<usize>,
    kind: c_int,
    left: &mut usize,
) {
    // SAFETY: by the caller's promise. The buffer's own value is below those that are pushed here.
    unsafe {
        if kind == ffi::LUA_TFUNCTION {
            reserve(state, CAPTURES_MAX as c_int + 2);
            ffi::lua_pushvalue(state, 3);
            let count = push_captures(state, subject, found, true, left);
            ffi::lua_call(state, count, 1);
        } else {
            reserve(state, 2);
            push_capture(state, subject, 0, found, left);
            ffi::lua_gettable(state, 3);
        }
        match ffi::lua_type(state, -1) {
            ffi::LUA_TSTRING => ffi::luaL_addvalue(buffer),
            ffi::LUA_TNUMBER => {
                let (text, len) = number_text(ffi::lua_tonumber(state, -1));
                ffi::lua_settop(state, -2);
                add(buffer, &text[..len]);
            }
            _ if ffi::lua_toboolean(state, -1) == 0 => {
                ffi::lua_settop(state, -2);
                add(buffer, &subject[found.clone()]);
            }
            _ => {
                let kind = ffi::luaL_typename(state, -1);
                let text = c"invalid replacement value (a %s)";
                ffi::luaL_error(state, text.as_ptr(), kind);
            }
        }
    }
}

/// # Safety
///
/// The buffer is that of the running state, whose topmost value is the buffer's.
unsafe fn add(buffer: *mut ffi::luaL_Strbuf, bytes: &[u8]) {
    // SAFETY: by the caller's promise.
    unsafe { ffi::luaL_addlstring(buffer, bytes.as_ptr().cast(), bytes.len()) };
}

/// Counts steps outside of a search, with safepoints. `left` counts the steps to the next one.
/// No other search begins there.
///
/// # Safety
///
/// The state is the running one. No value of the callers has a destructor.
#[inline(always)]
unsafe fn spend(state: *mut ffi::lua_State, left: &mut usize, steps: usize) {
    let polls = count_steps(left, steps);
    if polls > 0 {
        // SAFETY: by the caller's promise.
        unsafe { pass_safepoints(state, polls) };
    }
}

/// Searches, with safepoints. `left` counts the steps to the next one.
///
/// # Safety
///
/// The state is the running one. No value of the caller has a destructor.
unsafe fn search(
    state: *mut ffi::lua_State,
    subject: &[u8],
    pattern: &[u8],
    start: usize,
    is_anchored: bool,
    left: &mut usize,
) -> Option<Range<usize>> {
    // SAFETY: only searches use the scratch, one at a time: no script runs in a safepoint.
    let scratch = SCRATCH.with(|scratch| unsafe { &mut *scratch.get() });
    // SAFETY: by the caller's promise. The frames of the search have no values with destructors.
    let poll = |polls| unsafe { pass_safepoints(state, polls) };
    let mut search = Search { subject, pattern, scratch, left: *left, poll };
    let found = search.find(start, is_anchored);
    *left = search.left;
    match found {
        Ok(found) => found,
        // SAFETY: by the caller's promise.
        Err(text) => unsafe { raise(state, text) },
    }
}

/// Pushes the first and the last position.
///
/// # Safety
///
/// The stack has room for two values.
unsafe fn push_range(state: *mut ffi::lua_State, range: &Range<usize>) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        ffi::lua_pushnumber(state, (range.start + 1) as f64);
        ffi::lua_pushnumber(state, range.end as f64);
    }
    2
}

/// Pushes all captures of the last search, or the whole match if it has none and `or_whole`. Each
/// costs time by its length, as the interpreter hashes it, but memory only once.
///
/// # Safety
///
/// As [`spend`]. `found` is the match.
unsafe fn push_captures(
    state: *mut ffi::lua_State,
    subject: &[u8],
    found: &Range<usize>,
    or_whole: bool,
    left: &mut usize,
) -> c_int {
    // SAFETY: as in `search`.
    let captures = SCRATCH.with(|scratch| unsafe { (*scratch.get()).captures() });
    let count = if captures == 0 && or_whole { 1 } else { captures };
    // SAFETY: by the caller's promise.
    unsafe {
        if count > 1 {
            reserve(state, count as c_int);
        }
        (0..count).for_each(|number| push_capture(state, subject, number, found, left));
    }
    count as c_int
}

/// # Safety
///
/// As [`push_captures`], and the stack has room for the value.
unsafe fn push_capture(
    state: *mut ffi::lua_State,
    subject: &[u8],
    number: usize,
    found: &Range<usize>,
    left: &mut usize,
) {
    // SAFETY: as in `search`. The text of the capture is copied.
    unsafe {
        let captured = SCRATCH.with(|scratch| (*scratch.get()).capture(number, found));
        match captured {
            Ok(Captured::Text(start, end)) => {
                let text = &subject[start..end];
                ffi::lua_pushlstring_(state, text.as_ptr().cast(), text.len());
                spend(state, left, text.len() / STEP_BYTES);
            }
            Ok(Captured::Position(at)) => ffi::lua_pushnumber(state, (at + 1) as f64),
            Err(text) => raise(state, text),
        }
    }
}

/// # Safety
///
/// The state is the running one.
unsafe fn reserve(state: *mut ffi::lua_State, values: c_int) {
    // SAFETY: by the caller's promise.
    unsafe { ffi::luaL_checkstack_(state, values, c"too many captures".as_ptr()) };
}

/// The text in an argument. A number there becomes its text.
///
/// # Safety
///
/// The state is the running one, and the argument stays on its stack for `'a`.
unsafe fn text_argument<'a>(state: *mut ffi::lua_State, index: c_int, name: &CStr) -> &'a [u8] {
    // SAFETY: by the caller's promise.
    unsafe {
        match ffi::lua_type(state, index) {
            ffi::LUA_TSTRING => {}
            ffi::LUA_TNUMBER => replace_number(state, index),
            _ => type_error(state, index, name, c"string"),
        }
        text_at(state, index)
    }
}

/// # Safety
///
/// There is a string at the index, and it stays there for `'a`.
unsafe fn text_at<'a>(state: *mut ffi::lua_State, index: c_int) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: by the caller's promise.
    unsafe {
        let bytes = ffi::lua_tolstring(state, index, &mut len);
        slice::from_raw_parts(bytes.cast(), len)
    }
}

/// An integer in an argument, without its fraction. A number that no integer holds is the least
/// one, as on x86-64.
///
/// # Safety
///
/// The state is the running one.
unsafe fn integer_argument(state: *mut ffi::lua_State, index: c_int, name: &CStr) -> Option<i64> {
    // SAFETY: by the caller's promise.
    unsafe {
        if ffi::lua_type(state, index) <= ffi::LUA_TNIL {
            return None;
        }
        let mut is_number = 0;
        let number = ffi::lua_tonumberx(state, index, &mut is_number);
        if is_number == 0 {
            type_error(state, index, name, c"number");
        }
        let fits = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number);
        Some(if fits { number as i64 } else { i64::MIN })
    }
}

/// Where a search begins: from 0, at most at the end of the subject.
fn start_of(init: i64, len: usize) -> usize {
    let from_end = if init < 0 { init.saturating_add(len as i64 + 1) } else { init };
    usize::try_from(from_end - 1).unwrap_or(0).min(len)
}

/// Replaces a number on the stack by its text.
///
/// # Safety
///
/// The state is the running one, with a number at the index.
unsafe fn replace_number(state: *mut ffi::lua_State, index: c_int) {
    // SAFETY: by the caller's promise; the text is copied.
    unsafe {
        let (text, len) = number_text(ffi::lua_tonumber(state, index));
        ffi::lua_pushlstring_(state, text.as_ptr().cast(), len);
        ffi::lua_replace(state, index);
    }
}

/// A number as Lua 5.1 prints it.
fn number_text(number: f64) -> ([u8; NUMBER_BYTES_MAX], usize) {
    let mut text = [0; NUMBER_BYTES_MAX];
    let start = text.as_mut_ptr().cast::<c_char>();
    // SAFETY: the buffer has room for so many bytes.
    let len = unsafe { libc::snprintf(start, NUMBER_BYTES_MAX, c"%.14g".as_ptr(), number) };
    (text, usize::try_from(len).unwrap_or(0).min(NUMBER_BYTES_MAX))
}

/// # Safety
///
/// The state is the running one. No value of the callers has a destructor.
unsafe fn raise(state: *mut ffi::lua_State, text: PatternError) -> ! {
    // SAFETY: by the caller's promise.
    unsafe { ffi::luaL_error(state, c"%s".as_ptr(), text.as_ptr()) }
}

/// # Safety
///
/// As [`raise`].
unsafe fn type_error(state: *mut ffi::lua_State, index: c_int, name: &CStr, expected: &CStr) -> ! {
    let form = c"bad argument #%d to '%s' (%s expected, got %s)";
    // SAFETY: by the caller's promise.
    unsafe {
        let found = ffi::luaL_typename(state, index);
        ffi::luaL_error(state, form.as_ptr(), index, name.as_ptr(), expected.as_ptr(), found)
    }
}

/// # Safety
///
/// As [`raise`].
unsafe fn argument_error(state: *mut ffi::lua_State, index: c_int, name: &CStr, why: &CStr) -> ! {
    let form = c"bad argument #%d to '%s' (%s)";
    // SAFETY: by the caller's promise.
    unsafe { ffi::luaL_error(state, form.as_ptr(), index, name.as_ptr(), why.as_ptr()) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
