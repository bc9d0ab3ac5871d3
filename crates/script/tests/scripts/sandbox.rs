//! Scripts leave nothing in the VM. Also inputs that have broken scripting servers before.

use crate::{eval, vm};

/// Runs one script, then another in the same VM, which must find everything as in a new one.
fn check_isolated(attack: &str, probe: &str, expected: &str) {
    let mut used = vm();
    eval(&mut used, attack);
    let found = eval(&mut used, probe);
    let fresh = eval(&mut vm(), probe);
    assert_eq!((found.as_str(), fresh.as_str()), (expected, expected), "after {attack}");
}

#[test]
fn a_script_leaves_nothing_in_the_vm() {
    let probe = "return tostring(rawget(_G, 'x'))";
    check_isolated("x = 1", probe, "\"nil\"");
    check_isolated("_G.x = 1", probe, "\"nil\"");
    check_isolated("pcall(rawset, _G, 'x', 1)", probe, "\"nil\"");
    check_isolated("pcall(function() _G['x'] = 1 end)", probe, "\"nil\"");
    check_isolated("loadstring('x = 1')()", probe, "\"nil\"");
    check_isolated("function x() end", probe, "\"nil\"");
    check_isolated("KEYS[1] = 'x' ARGV[1] = 'y'", "return #KEYS + #ARGV", ":0");
    check_isolated("KEYS.x = 1", "return tostring(KEYS.x)", "\"nil\"");
    check_isolated("rawset(KEYS, 'x', 1)", "return tostring(KEYS.x)", "\"nil\"");
    check_isolated("setmetatable(KEYS, {__index={'x'}})", "return #KEYS", ":0");
    check_isolated("getmetatable('').__index = {}", "return ('x'):upper()", "\"X\"");
    check_isolated(
        "getmetatable('').__add = error",
        "return tostring(getmetatable('').__add)",
        "\"nil\"",
    );
    check_isolated(
        "rawset(getmetatable(''), '__call', error)",
        "return tostring(getmetatable('').__call)",
        "\"nil\"",
    );
    check_isolated("rawset(string, 'upper', error)", "return string.upper('x')", "\"X\"");
    check_isolated("getmetatable('').__index.upper = error", "return ('x'):upper()", "\"X\"");
    check_isolated("redis.call = error", "return redis.call('ping')", "+PONG");
    check_isolated("setmetatable(redis, {})", "return tostring(getmetatable(redis))", "\"nil\"");
    check_isolated("cjson.decode = error", "return cjson.decode('1')", ":1");
    check_isolated("cjson.encode_max_depth(1)", "return cjson.encode({{1}})", "\"[[1]]\"");
    check_isolated(
        "cjson.encode_sparse_array(true, 1, 1)",
        "return {cjson.encode_sparse_array()}",
        "*3 nil :2 :10",
    );
    check_isolated("cjson.encode_number_precision(1)", "return cjson.encode(1.25)", "\"1.25\"");
    check_isolated("cjson.new().encode_max_depth(1)", "return cjson.encode({{1}})", "\"[[1]]\"");
    check_isolated("redis.setresp(3)", "return redis.call('debug', 'protocol', 'map')[1]", ":0");
    check_isolated("math.randomseed(7)", "math.randomseed(7) return math.random(1000)", ":267");
    check_isolated(
        "local f = coroutine.wrap(function() coroutine.yield() end) f()",
        "return 1",
        ":1",
    );
    check_isolated(
        "error(setmetatable({}, {__tostring=function() return 'x' end}))",
        "return 1",
        ":1",
    );
    check_isolated(
        "collectgarbage('stop') collectgarbage('setpause', 0)",
        "return collectgarbage('count') > 0",
        ":1",
    );
}

#[test]
fn functions_of_one_run_see_nothing_of_the_next() {
    let mut vm = vm();
    // The same script again: the values of its functions must be new each time.
    let body = "local t = {} local function add() t[#t + 1] = 1 return #t end add() return add()";
    assert_eq!((eval(&mut vm, body), eval(&mut vm, body)), (":2".to_owned(), ":2".to_owned()));
    let body = "local f = function(a, b) return a < b end \
                local n = #tostring(f) return n > 0 and rawequal(f, f)";
    assert_eq!((eval(&mut vm, body), eval(&mut vm, body)), (":1".to_owned(), ":1".to_owned()));
}

/// Runs a script that must fail with an error containing a text, or reply anything for "".
fn check(body: &str, expected: &str) {
    let mut vm = vm();
    let reply = eval(&mut vm, body);
    assert!(reply.contains(expected), "{body}: {reply}");
    assert_eq!(eval(&mut vm, "return cjson.encode({1, 'x'})"), "\"[1,\\\"x\\\"]\"", "after {body}");
}

#[test]
fn ranges_and_counts_beyond_the_integers() {
    // CVE-2025-46817: the count of a range that wraps around.
    check("return unpack({}, 0, 2147483647)", "too many results to unpack");
    check("return unpack({}, -2147483648, 2147483647)", "too many results to unpack");
    check("return unpack({}, 1, 2^53)", "");
    check("return select('#', unpack({}, 2147483647, 2147483647))", ":1");
    check("return select(2147483647, 1)", "");
    check("return select(-2147483648, 1)", "bad argument");
    check("return string.rep('x', 2^53)", "");
    check("return string.rep('x', -2^53)", "\"\"");
    check("return #string.rep('', 1e15)", ":0");
    check("return string.sub('abc', -2^53, 2^53)", "");
    check("return string.byte('abc', -2147483648, 2147483647)", ":97");
    check("return string.format('%99999d', 1)", "-ERR");
    check("return string.format('%.99999f', 1)", "-ERR");
    check("return string.format('%' .. string.rep('0', 1000) .. 'd', 1)", "-ERR");
    check("return table.concat({}, 'x', 1, 2^31)", "-ERR");
    check("return table.concat({}, 'x', -2^53, 2^53)", "-ERR");
    check("local t = {} table.insert(t, 2^53, 1) return 1", "");
    check("return math.random(2^53)", "");
    check("return math.random(-2^53, 2^53)", "");
    check("return table.maxn({[2^53]=1})", ":9007199254740992");
    // CVE-2024-31449.
    check("return bit.tohex(65535, -2147483648)", "\"0000FFFF\"");
    check("return bit.lshift(1, 2^31)", "");
    // Lengths of struct that overflow.
    check("return struct.pack('>I2147483647', 1)", "larger than limit");
    check("return struct.pack('I33', 1)", "larger than limit");
    check("return struct.unpack('c4294967295', 'x')", "integral size overflow");
    check("return struct.unpack('!2147483648 i', 'x')", "integral size overflow");
    check("return struct.unpack('i', 'abcd', 2^63)", "-ERR");
    check("return struct.unpack('!1073741824 i', 'abcd', 2)", "too short");
    check("return struct.size(string.rep('c2147483647', 100))", "");
    // Redis does not check letters that it does not know.
    check("return struct.size('z') + struct.size('qI2m')", ":2");
    check("return struct.pack('z')", "invalid format option 'z'");
}

#[test]
fn nesting_and_sizes_of_encoders() {
    // CVE-2018-11218, CVE-2022-24834 and the like: deep and announced sizes.
    check("return cmsgpack.unpack(string.rep('\\145', 1000000))", "stack overflow");
    check("return cmsgpack.unpack(string.rep('\\129\\1', 100000))", "stack overflow");
    check("return cmsgpack.unpack('\\221\\255\\255\\255\\255')", "Missing bytes");
    check("return cmsgpack.unpack('\\223\\255\\255\\255\\255')", "Missing bytes");
    check("return cmsgpack.unpack('\\219\\255\\255\\255\\255')", "Missing bytes");
    check("return cmsgpack.unpack(string.rep('\\1', 100000))", "stack overflow");
    check("return #cmsgpack.pack(unpack({}, 1, 5000))", ":5000");
    check("return cjson.decode(string.rep('[', 1000000))", "too many nested");
    check("return cjson.decode(string.rep('{\"a\":', 1000000))", "too many nested");
    check(
        "cjson.decode_max_depth(2147483647) return cjson.decode(string.rep('[', 1000000))",
        "too many nested",
    );
    check(
        "cjson.encode_max_depth(2147483647) local t = {} t[1] = t return cjson.encode(t)",
        "excessive nesting",
    );
    check(
        "local t = {} for i = 1, 100000 do t = {t} end return cjson.encode(t)",
        "excessive nesting",
    );
    check("local t = {} for i = 1, 100000 do t = {t} end return #cmsgpack.pack(t)", ":17");
    check("return cjson.encode({[2147483647]=1})", "excessively sparse");
    check("cjson.encode_sparse_array(false, 0) return cjson.encode({[2147483648]=1})", "{");
    check("return #cjson.encode(string.rep('\\0', 1000000))", ":6000002");
    check("local t = {} for i = 1, 100000 do t = {t} end return t", "stack limit");
}

#[test]
fn sources_that_confuse_the_compiler() {
    // CVE-2025-46819, CVE-2025-49844: long brackets, names of chunks and garbage while parsing.
    let brackets = |count: usize| format!("return [{}[", "=".repeat(count));
    (0..100).for_each(|count| check(&brackets(count), "-ERR Error compiling"));
    check(&format!("return [{0}[x]{0}]", "=".repeat(10_000)), "\"x\"");
    check(&format!("return loadstring('return 1', '{}')()", "n".repeat(100_000)), ":1");
    check(
        "for i = 1, 1000 do loadstring(string.rep('x', i), string.rep('y', i)) end return 1",
        ":1",
    );
    check(
        "for i = 1, 300 do local s = {} for j = 1, 100 do s[j] = 'local a' .. j .. '=\"' .. \
         i .. j .. '\"' end \
           assert(loadstring(table.concat(s, ' ')))() end return 1",
        ":1",
    );
    check("return loadstring('\\27Lua')", "nil");
    check("return loadstring(string.char(6, 3, 0, 0))", "nil");
    check("return tostring(string.dump)", "\"nil\"");
    check("\u{1b}LuaQ", "-ERR Error compiling");
    check("return '\\x'", "-ERR Error compiling");
    check("return \"\\u{110000}\"", "-ERR Error compiling");
    check("#!lua flags=no-writes,no-cluster\nreturn 1", ":1");
    check("#!lua flags=\nreturn 1", ":1");
    check("#!lua", "-ERR Invalid script shebang");
    check("#!\nreturn 1", "-ERR Unexpected engine in script shebang: #!");
    check("#!python\nreturn 1", "-ERR Unexpected engine in script shebang: #!python");
    check("#!lua name=x\nreturn 1", "-ERR Unknown lua shebang option: name=x");
    check("#!lua flags=none\nreturn 1", "-ERR Unexpected flag in script shebang: none");
    check("#!lua 'flags=no-writes\nreturn 1", "-ERR Invalid engine in script shebang");
    check("#!lua flags=no-writes\nreturn nope", "user_script:2: Script attempted");
}

#[test]
fn errors_cannot_inject_replies() {
    check("return {err='X\\r\\n+INJECTED\\r\\n'}", "-X  +INJECTED");
    check("return {ok='X\\r\\n+INJECTED\\r\\n'}", "+X  +INJECTED");
    check("error('X\\r\\n+INJECTED\\r\\n')", "X  +INJECTED");
    check("error({err='X\\r\\n+INJECTED\\r\\n'})", "-X  +INJECTED");
    check("return redis.error_reply('X\\r\\n+INJECTED\\r\\n')", "-ERR X  +INJECTED");
    check("return redis.status_reply('X\\r\\n+INJECTED\\r\\n')", "+X  +INJECTED");
    check("return {big_number='1\\r\\n+INJECTED'}", "\"1  +INJECTED\"");
    check("return redis.call('x\\r\\n+INJECTED')", "-ERR Unknown Redis command");
    check("x\r\n+INJECTED\r\n", "-ERR Error compiling");
}

#[test]
fn compiling_adds_no_functions_of_luau() {
    let is_absent = |call: &str| {
        let reply = eval(&mut vm(), &format!("return type({call})"));
        assert!(reply.starts_with("-ERR"), "{call}: {reply}");
        let nested = format!("local f = loadstring('return type({call})') return pcall(f)");
        assert_eq!(eval(&mut vm(), &nested), "nil", "{call}");
    };
    ["typeof(1)", "rawlen({})", "table.unpack({1})", "vector.create(1, 2, 3)"]
        .into_iter()
        .for_each(is_absent);
    let of_math = ["clamp", "sign", "round", "lerp", "isnan", "isinf", "isfinite"];
    let of_bits = [
        "arshift", "band", "bnot", "bor", "bxor", "btest", "extract", "lrotate", "lshift",
        "replace", "rrotate", "rshift", "countlz", "countrz", "byteswap",
    ];
    of_math.iter().for_each(|name| is_absent(&format!("math.{name}(1, 2, 3)")));
    of_bits.iter().for_each(|name| is_absent(&format!("bit32.{name}(1, 2, 3)")));
    // Scripts know this function under its other name.
    assert_eq!(eval(&mut vm(), "return #table .. unpack({'x'})"), "\"0x\"");
}

#[test]
fn nothing_of_the_host_language_is_reachable() {
    // Values that the prelude uses appear in no environment, stack or message.
    check("local ok, e = pcall(string.rep) return e", "");
    for name in ["debug", "native", "command", "inputs", "strict", "__redis__err__handler"] {
        check(&format!("return {name}"), "nonexistent global variable");
    }
    check("local ok, e = pcall(string.rep, 'x', {}) return e", "bad argument");
    check("return tostring(getmetatable(coroutine.create(function() end)))", "\"nil\"");
    check("return tostring(getmetatable(cjson.null))", "\"nil\"");
    check("cjson.null.x = 1", "-ERR");
    check("return cjson.null.x", "-ERR");
    check("return getmetatable(_G).__index(1, 2, 3)", "-ERR");
    check(
        "return tostring(getmetatable(setmetatable({}, getmetatable(_G))).__metatable)",
        "\"nil\"",
    );
    check(
        "local t = setmetatable({}, {__gc=function() error('x') end}) t = nil \
         collectgarbage() return 1",
        ":1",
    );
    check("local t = setmetatable({}, {__mode='kv'}) t[1] = {} collectgarbage() return 1", ":1");
}
