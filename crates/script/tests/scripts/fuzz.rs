//! Random inputs: scripts, libraries, and the bytes that `cmsgpack`, `cjson` and `struct` read.
//!
//! Every input gets a reply, and the VM runs the next script. `SCRIPT_FUZZ_ROUNDS` in the
//! environment sets the number of rounds.

use base::random::Random;
use script::{LibraryDraft, Vm};

use crate::host::Server;
use crate::{Request, eval, eval_with, vm};

/// Rounds of each test, unless the environment sets another number.
const ROUNDS: u64 = 400;
/// The most ticks of a script.
const TICKS_MAX: u64 = 200;

fn rounds() -> u64 {
    let more = std::env::var("SCRIPT_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    more.unwrap_or(ROUNDS)
}

/// Runs a script on random arguments, and checks that it replies and the VM continues.
fn run(vm: &mut Vm, body: &[u8], argv: &[&[u8]]) -> String {
    let mut server = Server::default();
    server.kill_at = Some(TICKS_MAX);
    let reply = eval_with(vm, &mut server, body, &Request::new(&[], argv), false);
    assert!(!reply.is_empty(), "{:?} {argv:?}", String::from_utf8_lossy(body));
    reply
}

fn pick<'a>(random: &mut Random, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

const TOKENS: &[&str] = &[
    "and",
    "break",
    "do",
    "else",
    "elseif",
    "end",
    "false",
    "for",
    "function",
    "if",
    "in",
    "local",
    "nil",
    "not",
    "or",
    "repeat",
    "return",
    "then",
    "true",
    "until",
    "while",
    "continue",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "#",
    "==",
    "~=",
    "<=",
    ">=",
    "<",
    ">",
    "=",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ":",
    ",",
    ".",
    "..",
    "...",
    "'x'",
    "\"y\"",
    "[[z]]",
    "0",
    "1",
    "-1",
    "1e308",
    "0x7fffffff",
    "2^53",
    "x",
    "t",
    "KEYS",
    "ARGV",
    "_G",
    "redis",
    ".call",
    ".pcall",
    "string",
    ".rep",
    ".gsub",
    "table",
    ".sort",
    ".concat",
    "math",
    "cjson",
    ".encode",
    ".decode",
    "cmsgpack",
    "struct",
    "bit",
    "pcall",
    "error",
    "setmetatable",
    "getmetatable",
    "loadstring",
    "unpack",
    "select",
    "coroutine",
    ".wrap",
    ".yield",
    "tostring",
    "type",
    "pairs",
    "next",
    "--",
    "\n",
    "'",
    "\"",
    "[==[",
    "]==]",
    "\\",
    "\0",
    "\u{ff}",
    "+=",
    "//",
    "`x{1}`",
    "::",
    "goto",
    "type t =",
    "@native",
    "export",
];

#[test]
fn random_scripts_have_a_reply() {
    let (mut vm, mut random) = (vm(), Random::new(1));
    for _ in 0..rounds() {
        let count = 1 + random.below(30);
        let words: Vec<&str> = (0..count).map(|_| pick(&mut random, TOKENS)).collect();
        run(&mut vm, words.join(" ").as_bytes(), &[b"a", b"1"]);
    }
    assert_eq!(eval(&mut vm, "return 1"), ":1");
}

/// Statements that are valid on their own, so that their combinations run.
const STATEMENTS: &[&str] = &[
    "local t = {}",
    "t = {t, t}",
    "s = 'x'",
    "local s = string.rep('ab', 100)",
    "n = 1",
    "local n = #tostring(math.random())",
    "for i = 1, 10 do n = (n or 0) + i end",
    "local function f(...) return select('#', ...) end",
    "pcall(error, t)",
    "pcall(redis.call, 'get', s)",
    "redis.pcall('set', 'k', n or 1)",
    "while true do end",
    "repeat local x = 1 until x",
    "table.insert(t or {}, s)",
    "table.sort({3, 1, 2})",
    "string.gsub(s or '', '%w', '%0%0')",
    "cjson.decode(cjson.encode({a = {1, 2}}))",
    "cmsgpack.unpack(cmsgpack.pack({1, 'x', {y = 2}}))",
    "struct.unpack('>I2', struct.pack('>I2', 1))",
    "coroutine.wrap(function() coroutine.yield(1) end)()",
    "setmetatable(t or {}, {__index = t})",
    "loadstring('return 1')()",
    "x = 1",
    "rawset(_G, 'y', 1)",
    "collectgarbage()",
    "string.format('%s %d', s, n)",
    "unpack({}, 1, 100)",
    "error({err = 'X y'})",
    "redis.setresp(3)",
    "bit.bxor(n or 0, 255)",
    "redis.call('nosuch')",
    "return t",
    "return s",
    "return {n, s, t}",
];

#[test]
fn random_statements_leave_nothing_in_the_vm() {
    let (mut vm, mut random) = (vm(), Random::new(2));
    for _ in 0..rounds() {
        let count = 1 + random.below(12);
        let mut body = "local t, s, n ".to_owned();
        for _ in 0..count {
            body += pick(&mut random, STATEMENTS);
            body.push('\n');
        }
        // A `return` in the middle does not compile, so each statement has its own block.
        let body = body.lines().map(|line| format!("do {line} end\n")).collect::<String>();
        run(&mut vm, body.as_bytes(), &[]);
        assert_eq!(eval(&mut vm, "return {rawget(_G, 'x'), rawget(_G, 'y')}"), "*0", "{body}");
    }
}

#[test]
fn random_libraries_load_or_fail() {
    let (mut vm, mut random) = (vm(), Random::new(3));
    let heads = ["#!lua name=a\n", "#!lua name=a", "#!lua\n", "#!", "", "#!lua name=a name=b\n"];
    let parts = [
        "redis.register_function('f', function() end)\n",
        "redis.register_function{function_name='g', callback=print}\n",
        "redis.register_function{function_name='h', callback=error, flags={'no-writes'}}\n",
        "redis.register_function(unpack)\n",
        "local x = redis.log(1, 'x')\n",
        "while true do end\n",
        "error('x')\n",
        "pcall(1)\n",
        "(",
    ];
    for _ in 0..rounds() {
        let mut code = pick(&mut random, &heads).to_owned();
        (0..random.below(5)).for_each(|_| code += pick(&mut random, &parts));
        let Ok(draft) = LibraryDraft::new(code.as_bytes()) else { continue };
        let loaded = vm.load_library(&mut Server::default(), draft, true);
        assert_eq!(loaded.is_ok(), loaded.is_ok_and(|new| !new.library.functions().is_empty()));
    }
    assert_eq!(eval(&mut vm, "return 1"), ":1");
}

/// Random bytes, or a valid text with a few changes.
fn bytes(random: &mut Random, valid: &[&[u8]]) -> Vec<u8> {
    if random.below(3) == 0 {
        let len = random.below(64);
        return (0..len).map(|_| random.next_u64() as u8).collect();
    }
    let mut bytes = valid[random.below(valid.len() as u64) as usize].to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(3) {
            0 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
            1 if at < bytes.len() => drop(bytes.remove(at)),
            _ => bytes.insert(at, random.next_u64() as u8),
        }
    }
    bytes
}

#[test]
fn random_bytes_as_msgpack() {
    let (mut vm, mut random) = (vm(), Random::new(4));
    let valid: [&[u8]; 6] = [
        b"\x93\x01\xa3abc\xc0",
        b"\x82\xa1a\x01\xa1b\x92\xc3\xc2",
        b"\xdc\x00\x03\x01\x02\x03",
        b"\xde\x00\x01\xa1x\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00",
        b"\xdb\x00\x00\x00\x02xy\xd3\xff\xff\xff\xff\xff\xff\xff\x00",
        b"\x91\x91\x91\x91\x91\x91\x90",
    ];
    // Decoded values are equal after encoding and decoding again, except for the order of keys.
    let body = b"local v = {pcall(cmsgpack.unpack, ARGV[1])} \
                 if not v[1] then return v[2] end \
                 local once = cmsgpack.pack(v) \
                 return #cmsgpack.pack((cmsgpack.unpack(once))) == #once and 'same' or 'other'";
    for _ in 0..rounds() * 4 {
        let bytes = bytes(&mut random, &valid);
        let reply = run(&mut vm, body, &[&bytes]);
        assert_ne!(reply, "\"other\"", "{bytes:02x?}");
    }
}

#[test]
fn random_bytes_as_json() {
    let (mut vm, mut random) = (vm(), Random::new(5));
    let valid: [&[u8]; 6] = [
        b"[1,2.5e3,\"x\",null,true]",
        b"{\"a\":{\"b\":[{}]},\"c\":\"\\u0041\\ud83d\\ude00\"}",
        b"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        b"[[[[[[]]]]]]",
        b" { \"k\" : -0.5 , \"l\" : [ false ] } ",
        b"[0x1f,nan,inf,-infinity,007,+1]",
    ];
    let body = b"local ok, v = pcall(cjson.decode, ARGV[1]) \
                 if not ok then return v end \
                 local ok, once = pcall(cjson.encode, v) \
                 if not ok then return once end \
                 return #cjson.encode(cjson.decode(once)) == #once and 'same' or 'other'";
    for _ in 0..rounds() * 4 {
        let bytes = bytes(&mut random, &valid);
        let reply = run(&mut vm, body, &[&bytes]);
        assert_ne!(reply, "\"other\"", "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_formats_of_struct() {
    let (mut vm, mut random) = (vm(), Random::new(6));
    let options = [
        "b",
        "B",
        "h",
        "H",
        "l",
        "L",
        "T",
        "i",
        "I",
        "f",
        "d",
        "x",
        "s",
        "c0",
        "c",
        "i3",
        "I9",
        "i32",
        "i33",
        "c2147483648",
        ">",
        "<",
        "!",
        "!4",
        "!3",
        "!1073741824",
        " ",
        "y",
        "c5",
        "%",
    ];
    let body = b"local f, d = ARGV[1], ARGV[2] \
                 local packed = {pcall(struct.pack, f, 1, 2, d, 3, d, 4, 5)} \
                 local size = {pcall(struct.size, f)} \
                 local read = {pcall(struct.unpack, f, d, tonumber(ARGV[3]))} \
                 return #packed + #size + #read";
    for _ in 0..rounds() * 2 {
        let format: String = (0..random.below(8)).map(|_| pick(&mut random, &options)).collect();
        let data: Vec<u8> = (0..random.below(40)).map(|_| random.next_u64() as u8).collect();
        let start = pick(&mut random, &["1", "2", "0", "-1", "9007199254740993", "1e300"]);
        let reply = run(&mut vm, body, &[format.as_bytes(), &data, start.as_bytes()]);
        assert!(reply.starts_with(':'), "{format}: {reply}");
    }
}

#[test]
fn random_payloads_of_libraries() {
    let mut random = Random::new(7);
    let valid: [&[u8]; 3] = [
        b"\xf5\x09#!lua a\nx",
        b"\xf5\xc3\x0b\x40\x20\x01ab\xe0\x30\x01\x01ab",
        b"\xf5\x01x\xf5\x40\x02xx\xf5\x80\x00\x00\x00\x01x",
    ];
    for _ in 0..rounds() * 4 {
        let mut payload = bytes(&mut random, &valid);
        // Most are damaged before a valid footer, which must not hide the damage.
        if random.below(8) > 0 {
            persist::payload::seal(&mut payload);
        }
        let total = script::sources(&payload).map(|found| found.iter().map(Vec::len).sum());
        assert!(total.is_err() || total.is_ok_and(|bytes: usize| bytes < 1 << 20));
    }
}
