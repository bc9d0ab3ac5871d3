//! Scripts that run too long or take too much: each ends, and the VM runs the next one.

use script::Vm;

use crate::host::Server;
use crate::{Request, cpu_seconds, eval, eval_with, vm};

/// The most processor time between two checks of the host, in seconds, with a wide margin for a
/// build without optimisation.
const STEP_SECONDS_MAX: f64 = 5.0;

/// The memory of a VM that scripts soon use up.
const SMALL_BYTES_MAX: usize = 16 << 20;

/// Runs an endless script, kills it after some ticks, and checks that it ends at once and the VM is
/// unchanged.
fn check_killed(body: &str) {
    let mut vm = vm();
    let mut server = Server::default();
    server.kill_at = Some(20);
    let none = Request::new(&[], &[]);
    let start = cpu_seconds();
    let reply = eval_with(&mut vm, &mut server, body.as_bytes(), &none, false);
    assert!(
        reply.starts_with("-ERR Script killed by user with SCRIPT KILL... script: "),
        "{body}: {reply}"
    );
    assert!(reply.contains(", on "), "{body}: {reply}");
    let took = cpu_seconds() - start;
    assert!(took < STEP_SECONDS_MAX, "{body} took {took} s");
    assert_eq!(eval(&mut vm, "return 1"), ":1", "after {body}");
}

#[test]
fn loops_of_every_kind_can_be_killed() {
    check_killed("while true do end");
    check_killed("repeat until false");
    check_killed("for i = 1, math.huge do end");
    check_killed("for i = 1, 1e18 do local x = i * 2 end");
    check_killed("local t = setmetatable({}, {__index=function(t) return 1 end}) while t.x do end");
    check_killed("for k in function() return 1 end do end");
    check_killed("local function f() return f() end while true do pcall(f) end");
    check_killed(
        "local co = coroutine.wrap(function() while true do coroutine.yield() end end) \
                  while true do co() end",
    );
    check_killed("coroutine.wrap(function() while true do end end)()");
    check_killed("while true do redis.call('ping') end");
    check_killed("while true do redis.pcall('nosuch') end");
    check_killed("loadstring('while true do end')()");
    check_killed("while true do loadstring('return 1') end");
}

#[test]
fn a_killed_script_cannot_go_on() {
    check_killed("while true do pcall(function() while true do end end) end");
    check_killed(
        "while true do xpcall(function() while true do end end, function() while true do \
         end end) end",
    );
    check_killed("local function f() pcall(f) while true do end end f()");
    check_killed(
        "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
    );
    check_killed("pcall(string.gsub, string.rep('a', 1e6), '.', function() while true do end end)");
    check_killed(
        "setmetatable({}, {__index=function() while true do end end}).x = nil \
                  return setmetatable({}, {__index=function() while true do end end}).x",
    );
    check_killed("tostring(setmetatable({}, {__tostring=function() while true do end end}))");
    check_killed("error(setmetatable({}, {__index=function() while true do end end}))");
}

#[test]
fn long_functions_of_the_libraries_can_be_killed() {
    check_killed("while true do string.rep('x', 1e7) end");
    check_killed("while true do string.rep('ab', 5e6) end");
    check_killed("local s = string.rep('a', 30000) while true do string.find(s, '.-.-.-b') end");
    check_killed("string.find(string.rep('a', 1e6), string.rep('a?', 50) .. 'b')");
    check_killed(
        "local s = string.rep('a', 1e6) while true do string.find(s, string.rep('a', 5e5) \
         .. 'b', 1, true) end",
    );
    check_killed(
        "local s = string.rep('a', 1e6) while true do string.find(s, string.rep('a', 5e5) \
         .. 'b') end",
    );
    check_killed("string.find(string.rep('b', 100000), '^[' .. string.rep('a', 60000) .. 'b]*x')");
    check_killed("local s = string.rep('(', 30000) while true do string.match(s, '%b()') end");
    check_killed("local s = string.rep('a', 1e6) while true do string.gsub(s, 'a', 'b') end");
    check_killed(
        "local s = string.rep('a', 1e6) while true do for w in string.gmatch(s, 'a') do end end",
    );
    check_killed(
        "local t = {} for i = 1, 5e5 do t[i] = i * 7919 % 1e6 end while true do table.sort(t) end",
    );
    check_killed(
        "local t = {} for i = 1, 1e5 do t[i] = i end \
                  while true do table.sort(t, function(a, b) return a > b end) end",
    );
    check_killed("local t = {} for i = 1, 3e5 do t[i] = 'x' end while true do table.concat(t) end");
    check_killed(
        "local t = {} for i = 1, 3e5 do t[i] = i end while true do table.insert(t, 1, 0) \
         table.remove(t, 1) end",
    );
    check_killed("local t = {} for i = 1, 1e5 do t[i] = i end while true do cjson.encode(t) end");
    check_killed(
        "local s = '[' .. string.rep('1,', 1e5) .. '1]' while true do cjson.decode(s) end",
    );
    check_killed("local t = {} for i = 1, 1e5 do t[i] = i end while true do cmsgpack.pack(t) end");
    check_killed(
        "local s = cmsgpack.pack(loadstring('local t = {} for i = 1, 1e5 do t[i] = i end \
         return t')()) \
                  while true do cmsgpack.unpack(s) end",
    );
    check_killed("local f = string.rep('b', 1e5) while true do pcall(struct.size, f) end");
    check_killed(
        "local s = string.rep('x', 1e6) while true do string.upper(s) string.reverse(s) end",
    );
    check_killed("while true do string.format('%s%s', string.rep('x', 1e6), 'y') end");
    check_killed(
        "local t = {} for i = 1, 5000 do t[i] = i end while true do select('#', unpack(t)) end",
    );
    check_killed("while true do redis.sha1hex(string.rep('x', 1e5)) end");
    check_killed("while true do tostring(1/3) string.format('%d', 5) bit.band(1, 2) end");
}

/// How often a script on a text `s` polls the host.
fn ticks(text: &str, code: &str) -> u64 {
    let (mut server, none) = (Server::default(), Request::new(&[], &[]));
    let body = format!("local s = {text} {code} return 1");
    let mut vm = vm();
    // The memory is compared with that of the last run on this thread.
    eval(&mut vm, "return 1");
    let reply = eval_with(&mut vm, &mut server, body.as_bytes(), &none, false);
    assert_eq!(reply, ":1", "{body}");
    server.ticks
}

/// Checks that one call of a function on `s` polls the host.
fn check_looks(text: &str, call: &str) {
    let (without, with) = (ticks(text, ""), ticks(text, call));
    assert!(with >= without + 8, "{call}: {with} ticks, {without} without");
}

#[test]
fn long_texts_are_read_and_written_in_steps() {
    check_looks("string.rep('\\1', 2e6)", "cjson.encode(s)");
    check_looks("{[string.rep('\\1', 2e6)] = 1}", "cjson.encode(s)");
    check_looks("'\"' .. string.rep('\\\\n', 1e6) .. '\"'", "cjson.decode(s)");
    check_looks("string.rep(' ', 1e6) .. '1'", "cjson.decode(s)");
    check_looks("string.rep(' ', 1e6)", "struct.size(s)");
    check_looks("string.rep('<', 1e6)", "struct.pack(s)");
    check_looks("string.rep('!', 1e6)", "struct.unpack(s, s)");
    check_looks("string.rep('x', 2e7)", "redis.sha1hex(s)");
    check_looks("string.rep('b', 2000)", "s:find('^[' .. string.rep('a', 2000) .. 'b]*x')");
    check_looks("string.rep('a', 3e6)", "s:match('^a*b')");
    check_looks("string.rep('x', 100)", "s:gsub('()', string.rep('%1', 50000))");
    check_looks("string.rep('a', 1e7)", "s:find(('('):rep(32) .. '.*' .. (')'):rep(32))");
    check_looks("string.rep('a', 1e6)", "for i = 1, 200 do (''):find(s) end");
}

/// Each may take long, and changes no memory.
#[test]
fn the_first_steps_on_a_long_text_are_looked_at() {
    for code in ["tonumber(s)", "local x = s + 1", "local x = s < 'x'"] {
        let code = format!("for i = 1, 16 do {code} end");
        let (short, long) = (ticks("('1'):rep(10)", &code), ticks("('1'):rep(2e6)", &code));
        assert!(long >= short + 4, "{code}: {long} ticks, {short} for a short text");
    }
}

#[test]
fn outputs_count_towards_the_memory_as_they_grow() {
    let none = Request::new(&[], &[]);
    for body in [
        "cjson.encode_sparse_array(true, 0) return cjson.encode({[2^31 - 1] = 1})",
        "local t = {} for i = 1, 10 do t[i] = t end return cmsgpack.pack(t)",
        "local t = {} for i = 1, 10 do t[i] = t end t.x = t return cmsgpack.pack(t)",
        "return struct.pack(string.rep('x', 2500000))",
        "local s = string.rep('x', 2500000) return cjson.encode(s)",
        "local s = string.rep('x', 2500000) return cmsgpack.pack(s)",
    ] {
        let (mut vm, mut server) = (Vm::new(4 << 20).unwrap(), Server::default());
        // The memory ends before.
        server.kill_at = Some(100_000);
        let reply = eval_with(&mut vm, &mut server, body.as_bytes(), &none, false);
        assert!(reply.contains("not enough memory"), "{body}: {reply}");
        assert_eq!(eval(&mut vm, "return #cjson.encode(string.rep('x', 1000000))"), ":1000002");
    }
}

#[test]
fn replies_count_towards_the_memory_as_they_become_values() {
    let mut vm = Vm::new(4 << 20).unwrap();
    let mut server = Server::default();
    let none = Request::new(&[], &[]);
    let mut run = |body: &str| eval_with(&mut vm, &mut server, body.as_bytes(), &none, false);
    let fill = "local t = {} for i = 1, 3000 do t[i] = 'x' end \
                for i = 1, 100 do redis.call('rpush', 'l', unpack(t)) end return 1";
    assert_eq!(run(fill), ":1");
    let read = "local ok, e = pcall(redis.call, 'lrange', 'l', 0, -1) \
                return {tostring(ok), e, collectgarbage('count') < 4096 and 1 or 0}";
    assert_eq!(run(read), "*3 \"false\" \"ERR not enough memory\" :1");
    for key in 1..=9 {
        let set = format!("redis.call('set', '{key}', string.rep('{key}', 700000)) return 1");
        assert_eq!(run(&set), ":1");
    }
    let long = "local t = {} for i = 1, 9 do local ok, e = pcall(redis.call, 'get', i) \
                if not ok then return {e, collectgarbage('count') < 4096 and 1 or 0} end \
                t[i] = e end";
    assert_eq!(run(long), "*2 \"ERR not enough memory\" :1");
}

#[test]
fn an_output_ends_at_the_limit_of_memory() {
    let mut vm = vm();
    let start = cpu_seconds();
    let reply = eval(&mut vm, "return cjson.encode(string.rep('\\1', 2e7))");
    assert!(reply.contains("not enough memory"), "{reply}");
    let took = cpu_seconds() - start;
    assert!(took < STEP_SECONDS_MAX, "took {took} s");
}

/// Runs a script that takes all memory it can get, and checks that it fails and the next one runs.
fn check_memory(body: &str) {
    let mut vm = Vm::new(SMALL_BYTES_MAX).unwrap();
    let reply = eval(&mut vm, body);
    assert!(reply.contains("not enough memory"), "{body}: {reply}");
    assert_eq!(eval(&mut vm, "local t = {} for i = 1, 1e5 do t[i] = i end return #t"), ":100000");
    assert!(vm.used_memory() < SMALL_BYTES_MAX / 2, "{body}: {}", vm.used_memory());
}

#[test]
fn memory_is_limited() {
    check_memory("local t = {} for i = 1, 1e9 do t[i] = i end");
    check_memory("local s = 'x' while true do s = s .. s end");
    check_memory("return string.rep('x', 5e8)");
    check_memory("local t = {} while true do t = {t} end");
    check_memory("local t = {} for i = 1, 1e9 do t[i] = function() return i end end");
    check_memory("local t = {} for i = 1, 1e9 do t[i] = coroutine.create(function() end) end");
    check_memory("local t = {} for i = 1, 1e9 do t[i] = tostring(i) end");
    check_memory("local t = {} for i = 1, 1e9 do t[i] = redis.call('echo', i) end");
    check_memory(
        "local s = string.rep('[', 900) .. string.rep(']', 900) \
                  local t = {} for i = 1, 1e9 do t[i] = cjson.decode(s) end",
    );
    check_memory(
        "return cmsgpack.unpack('\\221\\0\\255\\255\\255' .. string.rep('\\144', 16777215))",
    );
    check_memory("return cjson.decode('[' .. string.rep('[],', 5000000) .. '1]')");
    check_memory("local t = {} for i = 1, 1e7 do t[i] = 'abcdefgh' end return table.concat(t)");
}

#[test]
fn a_script_that_catches_memory_errors_stays_within_the_limit() {
    let mut vm = vm();
    let body = "local ok, e = pcall(function() local t = {} for i = 1, 1e9 do t[i] = i end end) \
                return {tostring(ok), e}";
    assert_eq!(eval(&mut vm, body), "*2 \"false\" \"not enough memory\"");
    assert_eq!(eval(&mut vm, "return 'fine'"), "\"fine\"");
}

#[test]
fn deep_nesting_is_refused() {
    let mut vm = vm();
    let check = |vm: &mut Vm, body: String, expected: &str| {
        let reply = eval(vm, &body);
        assert!(reply.contains(expected), "{}: {reply}", &body[..body.len().min(60)]);
        assert_eq!(eval(vm, "return 1"), ":1");
    };
    check(&mut vm, "local t = {} t[1] = t return t".to_owned(), "-ERR reached lua stack limit");
    check(
        &mut vm,
        "local t = {} t.map = {t = t} return t".to_owned(),
        "-ERR reached lua stack limit",
    );
    check(
        &mut vm,
        format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        "Error compiling",
    );
    check(
        &mut vm,
        format!("return {}{}", "{".repeat(100_000), "}".repeat(100_000)),
        "Error compiling",
    );
    check(
        &mut vm,
        format!("{}{}", "do ".repeat(100_000), "end ".repeat(100_000)),
        "Error compiling",
    );
    check(&mut vm, format!("return {}1", "- ".repeat(100_000)), "Error compiling");
    check(&mut vm, format!("return {}1", "not ".repeat(100_000)), "Error compiling");
    check(&mut vm, format!("local x = 1 return x{}", "^x".repeat(100_000)), "Error compiling");
    check(&mut vm, format!("local x = 'a' return x{}", "..x".repeat(100_000)), "Error compiling");
    check(&mut vm, format!("f{}", "()".repeat(100_000)), "Error compiling");
    check(&mut vm, format!("return [{}[", "=".repeat(100_000)), "Error compiling");
    let locals: String = (0..300).map(|number| format!("local x{number} = {number} ")).collect();
    check(&mut vm, locals, "");
    check(&mut vm, "local function f() return pcall(f) end return f()".to_owned(), "");
    check(
        &mut vm,
        "local function f() return (string.gsub('a', 'a', f)) end return f()".to_owned(),
        "-ERR",
    );
    check(
        &mut vm,
        "local t = setmetatable({}, {}) getmetatable(t).__index = t return t.x".to_owned(),
        "-ERR",
    );
    check(
        &mut vm,
        "local t = {} for i = 1, 20000 do t = setmetatable({}, {__index = t}) end return t.x"
            .to_owned(),
        "",
    );
}

#[test]
fn a_long_string_repeated_in_a_reply_is_bounded() {
    let mut vm = vm();
    let check = |vm: &mut Vm, code: &str, expected: &str| {
        let body = format!(
            "local s = string.rep('x', 1e7) local t = {{}} \
                            for i = 1, 900 do t[i] = s end {code}"
        );
        let reply = eval(vm, &body);
        assert!(reply.contains(expected), "{code}: {reply}");
    };
    check(&mut vm, "redis.call('rpush', 'l', unpack(t))", "arguments are longer than 512 MiB");
    check(&mut vm, "return cjson.encode(t)", "not enough memory");
    check(&mut vm, "return cmsgpack.pack(t)", "not enough memory");
    check(&mut vm, "return struct.pack(string.rep('s', 900), unpack(t))", "not enough memory");
    check(&mut vm, "return table.concat(t)", "not enough memory");
    check(&mut vm, "return t", "reply longer than 536870912 bytes");
    // The elements that are read count, not those that remain in the reply.
    let of_each = |kind: &str| {
        format!("local s = string.rep('\\n', 1e7) for i = 1, 900 do t[i] = {{{kind}}} end return t")
    };
    check(&mut vm, &of_each("err = s"), "reply longer than 536870912 bytes");
    check(&mut vm, &of_each("ok = s"), "reply longer than 536870912 bytes");
    check(&mut vm, &of_each("big_number = s"), "reply longer than 536870912 bytes");
    let format = "verbatim_string = {format = s, string = ''}";
    check(&mut vm, &of_each(format), "reply longer than 536870912 bytes");
}

/// Scripts whose replies have endless elements: each ends soon.
#[test]
fn a_reply_that_contains_itself_is_bounded() {
    let mut vm = vm();
    let mut check = |body: &str| {
        let reply = eval(&mut vm, body);
        assert!(reply.contains("reply of more than 16777216 elements"), "{body}: {reply}");
        assert_eq!(eval(&mut vm, "return 1"), ":1", "after {body}");
    };
    check("local t = {} for i = 1, 3 do t[i] = t end return t");
    check("local m = {map = {}} m.map[m] = m return m");
    check("local s = {set = {}} s.set[s] = 1 s.set[{s, s}] = 1 return s");
    check("local t = {} for i = 1, 1e6 do t[i] = i end t.map = t return t");
}

#[test]
fn a_reply_may_nest_deeply_around_a_long_text() {
    let body = "local t = string.rep('x', 2e7) for i = 1, 7900 do t = {t} end return t";
    let start = cpu_seconds();
    assert!(eval(&mut vm(), body).starts_with("*1 *1 *1"));
    let took = cpu_seconds() - start;
    assert!(took < STEP_SECONDS_MAX, "took {took} s");
}

#[test]
fn a_reply_is_written_without_calling_the_script() {
    let mut vm = vm();
    let mut check = |metamethods: &str, expected: &str| {
        let body = format!(
            "local function f() redis.call('ping') while true do end end \
             local m = {{{metamethods}}} local function t(t) return setmetatable(t, m) end \
             return {{t({{err = 'x'}}), t({{ok = 'x'}}), t({{1, 2}}), t({{double = 1}}), \
             t({{map = t({{a = 1}})}}), t({{set = t({{a = 1}})}}), \
             t({{verbatim_string = t({{format = 'txt', string = 'x'}})}}), \
             t({{big_number = '1'}})}}"
        );
        assert_eq!(eval(&mut vm, &body), expected, "{metamethods}");
    };
    let expected = "*8 -x +x *2 :1 :2 \"1\" *2 \"a\" :1 *1 \"a\" \"x\" \"1\"";
    check("", expected);
    check("__index = f, __newindex = f", expected);
    check("__len = f, __iter = f, __call = f, __pairs = f, __ipairs = f", expected);
    check("__tostring = f, __eq = f, __gc = f, __mode = 'kv', __namecall = f", expected);
}

#[test]
fn maps_of_more_pairs_than_an_interpreter_has_references() {
    let mut vm = Vm::new(256 << 20).unwrap();
    let table = "local t = {} for i = 1, 600000 do t['k' .. i] = 'v' .. i end ";
    let mut check = |code: &str, expected: &str| {
        let reply = eval(&mut vm, &format!("{table} {code}"));
        assert!(reply.starts_with(expected), "{code}: {:?}", reply.get(..200));
    };
    check("return #cjson.encode(t)", ":11777791");
    check("return #cmsgpack.pack(t)", ":9377795");
    check("return {map = t}", "*1200000 \"k");
    check("return {set = t}", "*600000 \"k");
}

#[test]
fn compiled_scripts_leave_memory_for_runs() {
    let mut vm = Vm::new(SMALL_BYTES_MAX).unwrap();
    for number in 0..100 {
        let body = format!("local s = '{number}{}' return #s:rep(4)", "x".repeat(500_000));
        assert!(eval(&mut vm, &body).starts_with(":20000"), "script {number}");
        assert_eq!(eval(&mut vm, &body), eval(&mut vm, &body));
    }
    assert!(vm.used_memory() < SMALL_BYTES_MAX, "{}", vm.used_memory());
}

/// Runs a script with one argument of this many bytes.
fn eval_with_bytes(vm: &mut Vm, body: &str, bytes: usize) -> String {
    let argument = vec![b'x'; bytes];
    let request = Request::new(&[], &[&argument]);
    eval_with(vm, &mut Server::default(), body.as_bytes(), &request, false)
}

#[test]
fn large_arguments_are_freed() {
    let bytes = SMALL_BYTES_MAX * 3 / 4;
    let check = |body: &str, expected: &str| {
        let mut vm = Vm::new(SMALL_BYTES_MAX).unwrap();
        assert_eq!(eval(&mut vm, "return 1"), ":1");
        let before = vm.used_memory();
        let reply = eval_with_bytes(&mut vm, body, bytes);
        assert!(reply.starts_with(expected), "{body}: {reply:.200}");
        let after = vm.used_memory();
        assert!(after < before + (1 << 20), "{body}: {before} bytes, then {after}");
    };
    check("return #ARGV[1]", &format!(":{bytes}"));
    check("return ARGV[1]", "\"xxx");
    check("error('wrong')", "-ERR user_script:1: wrong");
    check("return {err = ARGV[1]}", "-xxx");
    check("return #(ARGV[1] .. ARGV[1])", "-ERR not enough memory");
    check("while true do local t = {ARGV[1] .. 'y'} end", "-ERR not enough memory");
}

#[test]
fn garbage_leaves_room_for_large_arguments() {
    let mut vm = Vm::new(SMALL_BYTES_MAX).unwrap();
    for _ in 0..3 {
        // Less than the amount that triggers a collection while the script runs.
        let garbage = "local t = {} for i = 1, 140 do t[i] = string.rep(i, 2e4) end return 1";
        assert_eq!(eval(&mut vm, garbage), ":1");
        assert!(vm.used_memory() > 6_000_000, "it is garbage yet: {}", vm.used_memory());
        let reply = eval_with_bytes(&mut vm, "return #ARGV[1]", SMALL_BYTES_MAX * 3 / 4);
        assert_eq!(reply, format!(":{}", SMALL_BYTES_MAX * 3 / 4));
    }
}

#[test]
fn errors_of_too_many_arguments_have_one_line() {
    let check = |body: &str| {
        let arguments = "local t = {} for i = 1, 999990 do t[i] = 's' end";
        let reply = eval(&mut vm(), &format!("{arguments} {body}"));
        let text = reply.strip_prefix("-ERR ").unwrap_or(&reply).trim_matches('"');
        assert!(text.starts_with("out of Lua stack, too many arguments"), "{body}: {text}");
        assert!(!text.contains("traceback") && !text.contains("weft:"), "{body}: {text}");
    };
    for call in ["redis.sha1hex(unpack(t))", "cjson.encode(unpack(t))", "redis.log(2, unpack(t))"] {
        check(&format!("return {call}"));
        check(&format!("local ok, text = pcall(function() {call} end) return text"));
        check(&format!(
            "local co = coroutine.create(function() {call} end)
             local ok, err = coroutine.resume(co) return tostring(err)"
        ));
        check(&format!("return select(2, xpcall(function() {call} end, tostring))"));
    }
}
