//! Libraries: the replies of FUNCTION LOAD and of their functions.
//!
//! The cases have the form of the others, with `call NAME` for a call without arguments; the reply
//! is that of the call, or else that of FUNCTION LOAD.

use std::sync::Arc;

use resp::{Out, Reply};
use script::{
    FunctionInfo, Libraries, Library, LibraryDraft, RestorePolicy, ScriptFailure, ScriptFlags, Vm,
    dump, sources,
};

use crate::host::Server;
use crate::{Request, cases, cpu_seconds, eval, line_of, vm};

/// Loads a library as FUNCTION LOAD does.
fn load(
    vm: &mut Vm,
    libraries: &mut Libraries,
    code: &str,
    replace: bool,
) -> Result<Arc<Library>, ScriptFailure> {
    let draft = libraries.draft(code.as_bytes(), replace)?;
    let new = vm.load_library(&mut Server::default(), draft, true)?;
    let library = Arc::clone(&new.library);
    libraries.insert(&library, replace)?;
    vm.add_library(new);
    Ok(library)
}

/// Calls a function as FCALL does, and returns its reply on one line.
fn fcall(vm: &mut Vm, libraries: &Libraries, name: &str, server: &mut Server) -> String {
    let mut out = Out::default();
    let mut run = |reply: &mut Reply<'_>| -> Result<(), ScriptFailure> {
        let loaded = match vm.function(name.as_bytes()) {
            Some(loaded) => loaded,
            None => {
                let found = libraries.function(name.as_bytes());
                let Some((library, _)) = found else {
                    reply.error(b"ERR Function not found");
                    return Ok(());
                };
                vm.load_again(server, library)?;
                vm.function(name.as_bytes()).expect("it is loaded now")
            }
        };
        vm.invoke_function(server, &loaded, Request::new(&[], &[]).input(), reply)
    };
    let result = run(&mut Reply::new(&mut out, false));
    if let Err(failure) = result {
        out.clear();
        Reply::new(&mut out, false).error(&failure.text);
    }
    line_of(&out)
}

fn code(name: &str, functions: &[&str]) -> String {
    let register = |function: &&str| {
        format!("redis.register_function('{function}', function() return '{name}.{function}' end)")
    };
    format!("#!lua name={name}\n{}", functions.iter().map(register).collect::<String>())
}

#[test]
fn libraries() {
    let mut vm = vm();
    let mut wrong = String::new();
    for case in cases(include_str!("cases/libraries.txt")) {
        let mut libraries = Libraries::default();
        let loaded = load(&mut vm, &mut libraries, &case.body, false);
        let found = match (loaded, &case.call) {
            (Err(failure), _) => format!("-{}", String::from_utf8_lossy(&failure.text)),
            (Ok(library), None) => format!("\"{}\"", String::from_utf8_lossy(library.name())),
            (Ok(_), Some(name)) => fcall(&mut vm, &libraries, name, &mut Server::default()),
        };
        libraries.flush();
        if found != case.expected {
            let (line, body, expected) = (case.line, case.body, case.expected);
            wrong += &format!("line {line}: {body}\n  expected {expected}\n  found    {found}\n");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn a_library_is_replaced_completely_or_not_at_all() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    load(&mut vm, &mut libraries, &code("a", &["f", "g"]), false).unwrap();
    load(&mut vm, &mut libraries, &code("b", &["h"]), false).unwrap();
    let again = load(&mut vm, &mut libraries, &code("a", &["x"]), false).unwrap_err();
    assert_eq!(again.text, b"ERR Library 'a' already exists");
    let taken = load(&mut vm, &mut libraries, &code("a", &["x", "H"]), true).unwrap_err();
    assert_eq!(taken.text, b"ERR Function H already exists");
    let mut server = Server::default();
    assert_eq!(fcall(&mut vm, &libraries, "f", &mut server), "\"a.f\"");
    load(&mut vm, &mut libraries, &code("a", &["g", "i"]), true).unwrap();
    assert_eq!(fcall(&mut vm, &libraries, "f", &mut server), "-ERR Function not found");
    assert_eq!(fcall(&mut vm, &libraries, "G", &mut server), "\"a.g\"");
    assert_eq!((libraries.len(), libraries.function_count()), (2, 3));
    assert!(libraries.remove(b"a") && !libraries.remove(b"a"));
    assert_eq!(fcall(&mut vm, &libraries, "g", &mut server), "-ERR Function not found");
    assert_eq!(fcall(&mut vm, &libraries, "h", &mut server), "\"b.h\"");
    libraries.flush();
    assert_eq!(fcall(&mut vm, &libraries, "h", &mut server), "-ERR Function not found");
    assert!(libraries.is_empty() && libraries.function_count() == 0);
}

#[test]
fn another_vm_loads_a_library_when_it_needs_it() {
    let (mut one, mut two, mut libraries) = (vm(), vm(), Libraries::default());
    load(&mut one, &mut libraries, &code("a", &["f"]), false).unwrap();
    let mut server = Server::default();
    assert_eq!(fcall(&mut two, &libraries, "f", &mut server), "\"a.f\"");
    load(&mut one, &mut libraries, &code("a", &["f", "g"]), true).unwrap();
    assert_eq!(fcall(&mut two, &libraries, "g", &mut server), "\"a.g\"");
}

#[test]
fn each_load_and_run_sees_only_its_own_globals() {
    let calls = |name: &str| {
        format!(
            "#!lua name={name}\nlocal function ping() return redis.call('ping').ok end \
             redis.register_function('{name}', function() \
             return ping() .. type(redis.breakpoint) end)"
        )
    };
    let at_load = "#!lua name=l\nlocal function f() return redis.call end f()\
                   redis.register_function('l', f)";
    let unsuccessful = [
        at_load,
        "#!lua name=l\nlocal function f() return redis.call end redis.nosuch()",
        "#!lua name=l\nlocal function f() return redis.call end while true do end",
        "#!lua name=l\nlocal s = 'xxxxxxxxxxxxxxxx' while true do s = s .. s end",
        "#!lua name=l\nlocal function f() return redis.call end return (",
        "#!lua name=l\nreturn 1",
    ];
    let (mut one, mut two, mut libraries) = (vm(), vm(), Libraries::default());
    let mut server = Server::default();
    let mut check = |one: &mut Vm, libraries: &Libraries, after: &str| {
        assert_eq!(fcall(one, libraries, "a", &mut server), "\"PONGnil\"", "{after}");
        assert_eq!(fcall(&mut two, libraries, "a", &mut server), "\"PONGnil\"", "{after}");
        let seen = crate::eval(
            one,
            &format!("return type(redis.breakpoint) -- {}", after.replace('\n', " ")),
        );
        assert_eq!(seen, "\"function\"", "{after}");
    };
    load(&mut one, &mut libraries, &calls("a"), false).unwrap();
    for code in unsuccessful {
        assert!(load(&mut one, &mut libraries, code, false).is_err(), "{code}");
        check(&mut one, &libraries, code);
        let failure = load(&mut one, &mut libraries, at_load, false).unwrap_err();
        let text = String::from_utf8_lossy(&failure.text).into_owned();
        assert!(text.ends_with("nonexistent global variable 'call'"), "{text}");
        load(&mut one, &mut libraries, &calls("a"), true).unwrap();
        check(&mut one, &libraries, "a replacement");
    }
    let killed = LibraryDraft::new(unsuccessful[2].as_bytes()).unwrap();
    let mut killer = Server::default();
    killer.kill_at = Some(20);
    one.load_library(&mut killer, killed, true).unwrap_err();
    check(&mut one, &libraries, "a kill");
    libraries.flush();
    one.sweep();
    load(&mut one, &mut libraries, &calls("a"), false).unwrap();
    check(&mut one, &libraries, "a flush");
}

#[test]
fn a_load_has_half_a_second() {
    let mut vm = vm();
    let draft = LibraryDraft::new(b"#!lua name=a\nwhile true do end").unwrap();
    let failure = vm.load_library(&mut Server::default(), draft, true).unwrap_err();
    assert_eq!(failure.text, b"ERR Error registering functions: ERR FUNCTION LOAD timeout");
    let draft =
        LibraryDraft::new(b"#!lua name=a\npcall(function() while true do end end)").unwrap();
    let failure = vm.load_library(&mut Server::default(), draft, true).unwrap_err();
    assert!(failure.text.starts_with(b"ERR Error registering functions: ERR "), "{failure:?}");
    assert!(load(&mut vm, &mut Libraries::default(), &code("a", &["f"]), false).is_ok());
}

/// A library as another VM loaded it, with functions of these names.
fn loaded_elsewhere(text: &str, names: &[&str]) -> Arc<Library> {
    let function = |name: &&str| FunctionInfo {
        name: name.as_bytes().to_vec(),
        description: None,
        flags: ScriptFlags::default(),
    };
    let draft = LibraryDraft::new(text.as_bytes()).unwrap();
    Arc::new(draft.with_functions(names.iter().map(function).collect()))
}

#[test]
fn another_load_may_take_longer_and_be_killed() {
    let endless = loaded_elsewhere("#!lua name=a\nwhile true do end", &["f"]);
    let failure = vm().load_again(&mut Server::default(), &endless).unwrap_err();
    assert_eq!(failure.text, b"ERR Error registering functions: ERR FUNCTION LOAD timeout");
    let mut server = Server::default();
    server.kill_at = Some(20);
    let failure = vm().load_again(&mut server, &endless).unwrap_err();
    assert_eq!(failure.text, b"ERR Script killed by user with SCRIPT KILL...");
    // Longer than the time limit of a new library.
    let code = "#!lua name=a\nfor i = 1, 5e6 do end
                redis.register_function('f', function() end)";
    let new = vm().load_library(
        &mut Server::default(),
        LibraryDraft::new(code.as_bytes()).unwrap(),
        true,
    );
    let failure = new.unwrap_err();
    assert_eq!(failure.text, b"ERR Error registering functions: ERR FUNCTION LOAD timeout");
    let slow = loaded_elsewhere(code, &["f"]);
    assert_eq!(vm().load_again(&mut Server::default(), &slow), Ok(()));
}

#[test]
fn another_load_may_register_in_another_order() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    let library = loaded_elsewhere(&code("a", &["f", "g", "h"]), &["h", "f", "g"]);
    libraries.insert(&library, false).unwrap();
    let mut server = Server::default();
    for name in ["f", "g", "h"] {
        assert_eq!(fcall(&mut vm, &libraries, name, &mut server), format!("\"a.{name}\""));
    }
    let other = loaded_elsewhere(&code("b", &["i"]), &["i", "j"]);
    let failure = vm.load_again(&mut server, &other).unwrap_err();
    assert_eq!(failure.text, b"ERR Library registers other functions than when loaded");
    let other = loaded_elsewhere(&code("b", &["i", "j"]), &["i"]);
    assert!(vm.load_again(&mut server, &other).is_err());
}

/// Comparing each function with all others would never end.
#[test]
fn a_library_may_have_very_many_functions() {
    const COUNT: usize = 100_000;
    let code = format!(
        "#!lua name=a\nlocal function f() end
         for i = 1, {COUNT} do redis.register_function('f' .. i, f) end"
    );
    let draft = LibraryDraft::new(code.as_bytes()).unwrap();
    let new = vm().load_library(&mut Server::default(), draft, false).unwrap();
    assert_eq!(new.library.functions().len(), COUNT);
    assert_eq!(vm().load_again(&mut Server::default(), &new.library), Ok(()));
}

#[test]
fn a_refused_load_registers_no_function() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    load(&mut vm, &mut libraries, &code("a", &["f1"]), false).unwrap();
    let refused = load(&mut vm, &mut libraries, &code("b", &["f1", "f2"]), false).unwrap_err();
    assert_eq!(refused.text, b"ERR Function f1 already exists");
    let refused = load(&mut vm, &mut libraries, &code("d", &["f2", "f1"]), false).unwrap_err();
    assert_eq!(refused.text, b"ERR Function f1 already exists");
    let mut server = Server::default();
    assert_eq!(fcall(&mut vm, &libraries, "f2", &mut server), "-ERR Function not found");
    assert_eq!(fcall(&mut vm, &libraries, "f1", &mut server), "\"a.f1\"");
    load(&mut vm, &mut libraries, &code("c", &["f2"]), false).unwrap();
    assert_eq!(fcall(&mut vm, &libraries, "f2", &mut server), "\"c.f2\"");
    libraries.flush();
    assert_eq!(fcall(&mut vm, &libraries, "f2", &mut server), "-ERR Function not found");
}

#[test]
fn a_refused_load_keeps_the_variables_of_other_libraries() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    let counter = "#!lua name=a\nlocal n = 0
        redis.register_function('up', function() n = n + 1 return n end)
        redis.register_function('value', function() return n end)";
    load(&mut vm, &mut libraries, counter, false).unwrap();
    let mut server = Server::default();
    for expected in [":1", ":2"] {
        assert_eq!(fcall(&mut vm, &libraries, "up", &mut server), expected);
    }
    load(&mut vm, &mut libraries, &code("b", &["up"]), false).unwrap_err();
    assert_eq!(fcall(&mut vm, &libraries, "up", &mut server), ":3");
    assert_eq!(fcall(&mut vm, &libraries, "value", &mut server), ":3");
}

#[test]
fn the_last_of_names_that_differ_in_case_is_found() {
    let (mut one, mut two, mut libraries) = (vm(), vm(), Libraries::default());
    load(&mut one, &mut libraries, &code("a", &["Foo", "foo"]), false).unwrap();
    let mut server = Server::default();
    assert_eq!(fcall(&mut one, &libraries, "FOO", &mut server), "\"a.foo\"");
    assert_eq!(fcall(&mut two, &libraries, "Foo", &mut server), "\"a.foo\"");
}

#[test]
fn restored_libraries_join_by_policy() {
    let mut vm = vm();
    let check = |vm: &mut Vm, policy, expected: Result<&[&str], &str>| {
        let (mut current, mut restored) = (Libraries::default(), Libraries::default());
        load(vm, &mut current, &code("a", &["f"]), false).unwrap();
        load(vm, &mut current, &code("b", &["g"]), false).unwrap();
        load(vm, &mut restored, &code("a", &["f2"]), false).unwrap();
        load(vm, &mut restored, &code("c", &["h"]), false).unwrap();
        let result = current.restore(restored, policy);
        let mut names: Vec<String> = current
            .iter()
            .flat_map(|library| library.functions())
            .map(|function| String::from_utf8_lossy(&function.name).into_owned())
            .collect();
        names.sort();
        match expected {
            Ok(functions) => assert_eq!((result, names), (Ok(()), strings(functions))),
            Err(text) => {
                assert_eq!(result.unwrap_err().text, text.as_bytes());
                assert_eq!(names, strings(&["f", "g"]));
            }
        }
    };
    check(&mut vm, RestorePolicy::Flush, Ok(&["f2", "h"]));
    check(&mut vm, RestorePolicy::Replace, Ok(&["f2", "g", "h"]));
    check(&mut vm, RestorePolicy::Append, Err("ERR Library a already exists"));
}

#[test]
fn functions_may_move_between_replaced_libraries() {
    // The order of libraries in the register varies.
    for _ in 0..20 {
        let (mut vm, mut current, mut restored) =
            (vm(), Libraries::default(), Libraries::default());
        for (name, functions) in [("a", ["f", "x"]), ("b", ["g", "y"]), ("c", ["h", "z"])] {
            load(&mut vm, &mut current, &code(name, &functions), false).unwrap();
        }
        for (name, functions) in [("a", ["g", "y"]), ("b", ["h", "z"]), ("c", ["f", "x"])] {
            load(&mut vm, &mut restored, &code(name, &functions), false).unwrap();
        }
        current.restore(restored, RestorePolicy::Replace).unwrap();
        assert_eq!((current.len(), current.function_count()), (3, 6));
        let mut server = Server::default();
        for (function, library) in ["g", "y", "h", "z", "f", "x"].iter().zip("aabbcc".chars()) {
            let found = fcall(&mut vm, &current, function, &mut server);
            assert_eq!(found, format!("\"{library}.{function}\""));
        }
    }
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_dump_restores_the_sources() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    assert_eq!(sources(&dump(&libraries)), Ok(Vec::new()));
    let long = code("b", &["g", "h", "i", "j"]);
    load(&mut vm, &mut libraries, &code("a", &["f"]), false).unwrap();
    load(&mut vm, &mut libraries, &long, false).unwrap();
    let payload = dump(&libraries);
    let expected = vec![code("a", &["f"]).into_bytes(), long.into_bytes()];
    assert_eq!(sources(&payload), Ok(expected));
    for at in 0..payload.len() {
        let mut changed = payload.clone();
        changed[at] ^= 1;
        let failure = sources(&changed).unwrap_err();
        assert_eq!(failure.text, b"ERR DUMP payload version or checksum are wrong", "byte {at}");
    }
}

/// A payload with a valid footer.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut payload = content.to_vec();
    persist::payload::seal(&mut payload);
    payload
}

#[test]
fn a_payload_of_something_else_is_refused() {
    let check = |content: &[u8], expected: &str| {
        let failure = sources(&sealed(content)).unwrap_err();
        assert_eq!(String::from_utf8_lossy(&failure.text), expected, "{content:02x?}");
    };
    check(b"\x00\x01x", "ERR given type is not a function");
    check(b"\xf6\x01x", "ERR Pre-GA function format not supported");
    check(b"\xf5", "ERR Failed loading library payload");
    check(b"\xf5\x05ab", "ERR Failed loading library payload");
    check(b"\xf5\x81\xff\xff\xff\xff\xff\xff\xff\xff", "ERR Failed loading library payload");
    check(b"\xf5\x01x\xf5", "ERR Failed loading library payload");
    assert!(sources(b"").is_err() && sources(b"0123456789").is_err());
}

/// The reply of Redis 8.0.6 to FUNCTION DUMP for one short and one compressed library.
const OF_REDIS: &[u8] = include_bytes!("cases/functions.dump");

#[test]
fn a_dump_of_redis_is_restored() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    for source in sources(OF_REDIS).unwrap() {
        load(&mut vm, &mut libraries, std::str::from_utf8(&source).unwrap(), false).unwrap();
    }
    let mut server = Server::default();
    assert_eq!(fcall(&mut vm, &libraries, "f", &mut server), "\"short\"");
    assert_eq!(fcall(&mut vm, &libraries, "g9", &mut server), "\"long 9\"");
}

/// The least processor time of several attempts to load libraries, in seconds.
fn quickest(vm: &mut Vm, libraries: &mut Libraries, numbers: std::ops::Range<usize>) -> f64 {
    let numbers: Vec<usize> = numbers.collect();
    let times = numbers.chunks(100).map(|some| {
        let begin = cpu_seconds();
        for number in some {
            let code = format!(
                "#!lua name=l{number}\nredis.register_function('f{number}', function() end)"
            );
            load(vm, libraries, &code, false).unwrap();
        }
        cpu_seconds() - begin
    });
    times.fold(f64::INFINITY, f64::min)
}

#[test]
fn one_of_many_libraries_loads_as_quickly_as_the_first() {
    let (mut vm, mut libraries) = (vm(), Libraries::default());
    let first = quickest(&mut vm, &mut libraries, 0..500);
    quickest(&mut vm, &mut libraries, 500..10_000);
    let last = quickest(&mut vm, &mut libraries, 10_000..10_500);
    // Visiting all of them each time took twenty times as long. Some clocks of processor time have
    // steps of ten milliseconds.
    assert!(last < 4.0 * first.max(0.01), "{last:?} after {first:?}");
}

/// A library with the function `name`, which keeps some memory from its load on, and needs `run`
/// bytes for a call.
fn keeper(name: &str, kept: usize, run: usize) -> String {
    format!(
        "#!lua name={name}
        local kept = {{}}
        for n = 1, {kept} / 1e5 do kept[n] = ('x'):rep(1e5) .. '{name}' .. n end
        redis.register_function('{name}', function() return #('y'):rep({run}) + #kept end)"
    )
}

#[test]
fn libraries_make_room_for_the_one_that_runs() {
    let (mut vm, mut libraries) = (Vm::new(16 << 20).unwrap(), Libraries::default());
    for code in [keeper("a", 6_000_000, 4_000_000), keeper("b", 6_700_000, 4_000_000)] {
        load(&mut vm, &mut libraries, &code, false).unwrap();
        vm.relieve();
    }
    let mut server = Server::default();
    for round in 0..3 {
        for (name, reply) in [("b", ":4000067"), ("a", ":4000060"), ("a", ":4000060")] {
            let replied = fcall(&mut vm, &libraries, name, &mut server);
            assert_eq!(replied, reply, "{name} in round {round}");
            vm.relieve();
        }
    }
}

#[test]
fn a_new_library_that_keeps_much_takes_no_memory_from_the_next_script() {
    let (mut vm, mut libraries) = (Vm::new(16 << 20).unwrap(), Libraries::default());
    let script = "return #string.rep('y', 4e6)";
    assert_eq!(eval(&mut vm, script), ":4000000");
    load(&mut vm, &mut libraries, &keeper("a", 12_000_000, 1), false).unwrap();
    vm.relieve();
    assert_eq!(eval(&mut vm, script), ":4000000");
}

#[test]
fn a_library_keeps_its_variables_while_another_is_loaded_again_and_again() {
    let (mut vm, mut libraries) = (Vm::new(8 << 20).unwrap(), Libraries::default());
    let counts = "#!lua name=counts
        local n = 0
        redis.register_function('count', function() n = n + 1 return n end)";
    load(&mut vm, &mut libraries, counts, false).unwrap();
    load(&mut vm, &mut libraries, &keeper("a", 5_000_000, 1), false).unwrap();
    let mut server = Server::default();
    for round in 1..=300 {
        vm.relieve();
        assert_eq!(fcall(&mut vm, &libraries, "count", &mut server), format!(":{round}"));
        assert_eq!(fcall(&mut vm, &libraries, "a", &mut server), ":51");
    }
}

#[test]
fn a_library_that_keeps_much_takes_no_memory_from_others() {
    let (mut vm, mut libraries) = (Vm::new(16 << 20).unwrap(), Libraries::default());
    let keeps = "#!lua name=keeps
        local kept = {}
        local function keep() kept[#kept + 1] = string.rep('x', 1e6) .. #kept return #kept end
        redis.register_function('keep', keep)
        redis.register_function('keep_all', function() while true do keep() end end)";
    let counts = "#!lua name=counts
        local n = 0
        redis.register_function('count', function() n = n + 1 return n end)";
    load(&mut vm, &mut libraries, counts, false).unwrap();
    load(&mut vm, &mut libraries, keeps, false).unwrap();
    let mut server = Server::default();
    for round in 1..=40 {
        let name = if round % 10 == 0 { "keep_all" } else { "keep" };
        let reply = fcall(&mut vm, &libraries, name, &mut server);
        match name {
            "keep" => assert!(reply.starts_with(':'), "call {round}: {reply}"),
            _ => assert!(reply.contains("not enough memory"), "call {round}: {reply}"),
        }
        vm.relieve();
        assert!(vm.used_memory() <= 8 << 20, "after call {round}: {}", vm.used_memory());
        // The other library keeps its variable.
        let reply = fcall(&mut vm, &libraries, "count", &mut server);
        assert_eq!(reply, format!(":{round}"));
        assert_eq!(eval(&mut vm, "return #string.rep('y', 2e6)"), ":2000000");
        vm.relieve();
    }
}
