//! The functions against those of Luau, which are right except for zero bytes, numbers and the
//! class `%g`, and their safepoints.

use std::cell::Cell;
use std::rc::Rc;

use super::*;
use crate::luau::{USED_BYTES, set_interrupt, set_safepoints};

const ROUNDS: u64 = 20_000;

/// The results of Luau and of these functions for a text, a pattern, a position and a replacement,
/// if they differ. Texts of errors are not compared.
const COMPARE: &str = r##"
    local ours, theirs = ...
    local function shown(ok, ...)
        if not ok then
            return "error"
        end
        local parts = {}
        for index = 1, select("#", ...) do
            parts[index] = tostring((select(index, ...)))
        end
        return table.concat(parts, "|")
    end
    local function all(gmatch, s, p)
        local parts = {}
        for a, b in gmatch(s, p) do
            parts[#parts + 1] = tostring(a) .. tostring(b)
        end
        return table.concat(parts, "|")
    end
    local seen = setmetatable({}, { __index = function(_, key)
        return if key == "a" then nil else key .. "!"
    end })
    return function(s, p, init, replacement, max)
        local calls = {
            function(lib) return pcall(lib.find, s, p, init) end,
            function(lib) return pcall(lib.find, s, p, init, true) end,
            function(lib) return pcall(lib.match, s, p, init) end,
            function(lib) return pcall(all, lib.gmatch, s, p) end,
            function(lib) return pcall(lib.gsub, s, p, replacement) end,
            function(lib) return pcall(lib.gsub, s, p, replacement, max) end,
            function(lib) return pcall(lib.gsub, s, p, seen) end,
            function(lib) return pcall(lib.gsub, s, p, function(a, b) return b or false end) end,
            function(lib) return pcall(lib.gsub, s, p, function(a) return s end, max) end,
        }
        for index, call in calls do
            local found, expected = shown(call(ours)), shown(call(theirs))
            if found ~= expected then
                return "call " .. index .. ": " .. found .. " instead of " .. expected
            end
        end
        return nil
    end
"##;

fn functions(lua: &Lua) -> (Table, Table) {
    let theirs: Table = lua.globals().get("string").unwrap();
    (create_string_functions(lua, &theirs).unwrap(), theirs)
}

/// Random numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn text(&mut self, parts: &[&str], len_max: u64) -> String {
        let len = self.below(len_max + 1);
        (0..len).map(|_| parts[self.below(parts.len() as u64) as usize]).collect()
    }
}

#[test]
fn searches_find_what_those_of_luau_find() {
    const SUBJECT: [&str; 9] = ["a", "a", "b", "c", "A", "1", " ", "(", ")"];
    const PATTERN: [&str; 40] = [
        "a", "b", "c", "A", "1", ".", ".", "*", "*", "+", "-", "-", "?", "^", "$", "(", "(", ")",
        ")", "()", "%1", "%2", "%0", "%b()", "%bab", "%f[a]", "%f[^ab]", "[ab]", "[^a]", "[a-c]",
        "[%a]", "[]a]", "[a-]", "[", "%", "%a", "%D", "%s", "%w", "%.",
    ];
    const REPLACEMENT: [&str; 8] = ["x", "", "%0", "%1", "%1", "%2", "%%", "-"];
    let lua = Lua::new();
    let compare: Function = lua.load(COMPARE).call(functions(&lua)).unwrap();
    let mut numbers = Numbers(1);
    for _ in 0..ROUNDS {
        let (subject, pattern) = (numbers.text(&SUBJECT, 12), numbers.text(&PATTERN, 6));
        let replacement = numbers.text(&REPLACEMENT, 3);
        let len = subject.len() as i64;
        let init = numbers.below(2 * len as u64 + 2) as i64 - len;
        let max = numbers.below(4) as i64 - 1;
        let args = (&*subject, &*pattern, init, &*replacement, max);
        let differs: Option<String> = compare.call(args).unwrap();
        assert_eq!(differs, None, "{subject:?} {pattern:?} {init} {replacement:?} {max}");
    }
}

/// How many safepoints a call passes.
fn safepoints(code: &str) -> usize {
    interrupts(code, 1)
}

/// How many interrupts a call has if so many safepoints lie between two of them.
fn interrupts(code: &str, between: u32) -> usize {
    let (lua, count) = (Lua::new(), Rc::new(Cell::new(0)));
    lua.globals().set("ours", functions(&lua).0).unwrap();
    let function = lua.load(code).into_function().unwrap();
    let counter = Rc::clone(&count);
    set_interrupt(&lua, move |_| {
        counter.set(counter.get() + 1);
        set_safepoints(between);
        Ok(())
    });
    USED_BYTES.set(lua.used_memory());
    set_safepoints(between);
    function.call::<()>(()).unwrap();
    set_safepoints(u32::MAX);
    count.get()
}

/// Checks that a call with so many steps passes a safepoint at least every [`POLL_STEPS`] of them.
#[track_caller]
fn check_safepoints(texts: &str, call: &str, steps: usize) {
    let without = safepoints(texts);
    let with = safepoints(&format!("{texts} {call}"));
    let least = steps / POLL_STEPS;
    assert!(
        with >= without + least,
        "{call}: {with} safepoints, {without} without, {least} needed"
    );
}

#[test]
fn a_search_passes_safepoints_within_each_of_its_steps() {
    let set = "local s, set = string.rep('b', 1000), '[' .. string.rep('a', 1000) .. 'b]'";
    check_safepoints(set, "ours.find(s, '^' .. set .. '*x')", 1000 * 1000);
    check_safepoints(set, "ours.find(s, '^' .. set .. '+x')", 1000 * 1000);
    check_safepoints(set, "ours.find(s, '^' .. set .. '-x')", 1000 * 1000);
    check_safepoints(set, "ours.match(s, set .. 'x')", 1000 * 1000);
    check_safepoints(set, "ours.gsub(s, set, 'x')", 1000 * 1000);
    check_safepoints(set, "ours.gsub(s, set .. 'x', 'x')", 1000 * 1000);
    check_safepoints(set, "for w in ours.gmatch(s, set .. 'x') do end", 1000 * 1000);
    check_safepoints(set, "ours.find(s, '%f' .. set .. 'x')", 1000 * 1000);
    check_safepoints("local s = string.rep('(', 2000)", "ours.find(s, '%b()')", 2000 * 2000 / 2);
    check_safepoints("local s = string.rep('a', 2000)", "ours.find(s, '.-b')", 2000 * 2000 / 2);
    check_safepoints("local s = string.rep('a', 2000)", "ours.find(s, '%a*b')", 2000 * 2000);
    let repeated = "local s = string.rep('a', 1000) .. '%'";
    check_safepoints(repeated, "ours.gsub(s, '()', string.rep('%1', 2000))", 1000 * 2000);
    check_safepoints(repeated, "ours.gsub(s, '', string.rep('%0', 2000))", 1000 * 2000);
    check_safepoints(repeated, "ours.gsub(s, '', string.rep('%%', 20))", 1000 * 20);
    let optional = "local s, p = string.rep('a', 24), string.rep('a?', 12) .. string.rep('a', 12)";
    check_safepoints(optional, "ours.find(s, p .. 'b')", 12 << 12);
}

#[test]
fn work_on_long_texts_counts_as_many_steps() {
    let texts = "local s = string.rep('a', 8000000)
        local p = string.rep('(', 32) .. '.*' .. string.rep(')', 32)";
    // Work on eight million bytes counts for more safepoints.
    let interrupts = |call: &str| interrupts(&format!("{texts} {call}"), 8);
    let without = interrupts("ours.find('', 'b')");
    for (call, least) in [
        ("ours.find(s, p)", 32),
        ("ours.match(s, p)", 32),
        ("ours.gmatch(s, p)()", 32),
        ("ours.gsub(s, p, function() end)", 32),
        ("ours.gsub(s, '.+', {})", 1),
        ("ours.find(s, 'b', 1, true)", 1),
        // Each block is followed by a safepoint.
        ("ours.find('', s)", 1 + 3),
        ("ours.match('', s)", 1),
        ("ours.gmatch('', s)", 1),
        ("ours.gsub('', s, '')", 1),
    ] {
        let with = interrupts(call);
        assert!(with >= without + least, "{call}: {with} interrupts, {without} without");
    }
    // A text longer than its subject is not read, nor is the rest after a text that was found.
    for call in ["ours.find('', s, 1, true)", "ours.find(s, 'a', 1, true)"] {
        let with = interrupts(call);
        assert_eq!(with, without, "{call}");
    }
}

#[test]
fn an_error_of_a_safepoint_ends_the_search() {
    let lua = Lua::new();
    lua.globals().set("ours", functions(&lua).0).unwrap();
    set_interrupt(&lua, |_| Err(mlua::Error::runtime("enough")));
    for call in [
        "return ours.find(string.rep('a', 100000), '.-b')",
        "return ours.gsub(string.rep('a', 100000), 'a', 'xyz')",
        "return ours.gsub(string.rep('a', 100000), 'a', function() while true do end end)",
    ] {
        set_safepoints(2);
        let error = lua.load(call).exec().unwrap_err();
        assert!(error.to_string().contains("enough"), "{call}: {error}");
    }
    set_safepoints(u32::MAX);
    let found: usize = lua.load("return ours.find('xxa', 'a')").eval().unwrap();
    assert_eq!(found, 3);
}

#[test]
fn a_search_within_a_replacement_leaves_the_other_one_alone() {
    let lua = Lua::new();
    lua.globals().set("ours", functions(&lua).0).unwrap();
    let code = "return (ours.gsub('k1=v1,k2=v2', '(%w+)=(%w+)', function(k, v)
        return ours.gsub(v, '(%a)(%d)', '%2%1') .. ours.match(k, '(%d)()') end))";
    assert_eq!(lua.load(code).eval::<String>().unwrap(), "1v1,2v2");
}

#[test]
fn numbers_are_texts_of_fourteen_digits() {
    let lua = Lua::new();
    lua.globals().set("ours", functions(&lua).0).unwrap();
    let code = "return table.concat({ours.len(1e15), ours.upper(1e15), ours.sub(1/3, 1, 99),
        ours.reverse(12), ours.byte(1e15, 3), ours.match(-1e100, '.*'), ours.lower('X'),
        (ours.gsub('a', 'a', 1e15)), (ours.gsub('a', 'a', function() return 0.1 end)),
        (ours.gsub(1e15, '%d', 'd'))}, ' ')";
    let expected = "5 1E+15 0.33333333333333 21 43 -1e+100 x 1e+15 0.1 de+dd";
    assert_eq!(lua.load(code).eval::<String>().unwrap(), expected);
}

#[test]
fn a_zero_byte_ends_a_pattern() {
    let lua = Lua::new();
    lua.globals().set("ours", functions(&lua).0).unwrap();
    let code = r"return table.concat({ours.match('aXbXc', 'a\0b'), (ours.gsub('abc', 'b\0c', 'x')),
        ours.find('a\0b', 'a\0b'), tostring(ours.find('xa.c', 'a\0.')),
        ours.find('axb', 'x.\0b')}, ' ')";
    assert_eq!(lua.load(code).eval::<String>().unwrap(), "a axc 1 nil 2 3");
}
