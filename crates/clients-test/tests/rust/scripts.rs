//! Scripts and functions: the crate's `Script`. It has no methods for functions, so those go as
//! commands.

use std::sync::atomic::{AtomicUsize, Ordering};

use clients_test::shared_file;
use redis::{Commands, Connection, RedisResult, Script, Value, cmd, pipe};

use crate::check::{ask, equal, holds, refused, try_ask};
use crate::combined::{Case, Session};

pub const CASES: &[Case] = &[
    ("script: EVALSHA falls back to EVAL", falls_back),
    ("script: types of replies", types),
    ("script: errors", errors),
    ("script: read only", read_only),
    ("script: in a transaction", in_transaction),
    ("script: seen whole", seen_whole),
    ("function: loaded and called", loaded),
    ("function: dumped and restored", dumped),
    ("function: read only", function_read_only),
];

fn transfer() -> Script {
    Script::new(&shared_file("transfer.lua"))
}

fn falls_back(s: &mut Session) {
    let script = transfer();
    ask::<()>(s.r, "MSET a 100 b 1");
    let run = |r: &mut Connection, from, to, amount| -> Vec<i64> {
        script.key(from).key(to).arg(amount).invoke(r).unwrap()
    };
    equal("the first run", run(s.r, "a", "b", 10), vec![90, 11]);
    let exists = format!("SCRIPT EXISTS {} {}", script.get_hash(), "0".repeat(40));
    equal("SCRIPT EXISTS", ask::<Vec<bool>>(s.r, &exists), vec![true, false]);
    let again = ask(s.r, &format!("EVALSHA {} 2 a b 1", script.get_hash()));
    equal("EVALSHA", again, vec![89, 12]);
    equal("SCRIPT FLUSH", ask::<String>(s.r, "SCRIPT FLUSH").as_str(), "OK");
    equal("SCRIPT EXISTS after it", ask::<Vec<bool>>(s.r, &exists), vec![false, false]);
    equal("the run after it", run(s.r, "b", "a", 2), vec![10, 91]);
    equal("SCRIPT LOAD", script.load(s.r).unwrap().as_str(), script.get_hash());
}

fn types(s: &mut Session) {
    let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
    let nested = Value::Array(vec![text("nested"), text("k")]);
    let want = vec![
        Value::Int(42),
        Value::Int(2),
        Value::Int(-7),
        text("text"),
        Value::SimpleString("FINE".to_owned()),
        Value::Array(vec![Value::Int(1), nested]),
        Value::Nil,
        Value::Int(1),
        text("{\"a\":[1,2]}"),
        text("2"),
    ];
    let script = Script::new(&shared_file("replies.lua"));
    let got: Value = script.key("k").arg("x").arg("y").invoke(s.r).unwrap();
    equal("replies", got, Value::Array(want));
}

fn errors(s: &mut Session) {
    ask::<()>(s.r, "MSET text abc a 3");
    let increment = Script::new("return redis.call('INCR', KEYS[1])");
    let text = format!(
        "ERR value is not an integer or out of range script: {}, on @user_script:1.",
        increment.get_hash()
    );
    refused("of a command", &text, increment.key("text").invoke::<Value>(s.r));
    let poor = transfer().key("a").key("b").arg(4).invoke::<Value>(s.r);
    refused("of the script", "POOR a has 3", poor);
    let missing = try_ask::<Value>(s.r, &format!("EVALSHA {} 0", "0".repeat(40)));
    refused("NOSCRIPT", "NOSCRIPT No matching script. Please use EVAL.", missing);
    let error = Script::new("return (").invoke::<Value>(s.r).unwrap_err();
    let detail = error.detail().unwrap_or_default();
    let compiling = "Error compiling script (new function): user_script:1: ";
    holds("of the compiler", detail.starts_with(compiling), detail);
}

fn read_only(s: &mut Session) {
    s.r.set::<_, _, ()>("k", "v").unwrap();
    let run = |r: &mut Connection, source: &str| -> RedisResult<String> {
        cmd("EVAL_RO").arg(source).arg(1).arg("k").query(r)
    };
    let get = run(s.r, "return redis.call('GET', KEYS[1])").unwrap();
    equal("EVAL_RO", get.as_str(), "v");
    let source = "return redis.call('SET', KEYS[1], 'w')";
    let text = format!(
        "ERR Write commands are not allowed from read-only scripts. script: {}, on @user_script:1.",
        Script::new(source).get_hash()
    );
    refused("a write", &text, run(s.r, source));
    equal("nothing was written", s.r.get::<_, String>("k").unwrap().as_str(), "v");
}

fn in_transaction(s: &mut Session) {
    ask::<()>(s.r, "SCRIPT FLUSH");
    let script = transfer();
    let mut pipe = pipe();
    pipe.atomic().load_script(&script).ignore().set("a", 5);
    pipe.invoke_script(script.key("a").key("b").arg(2)).get("a");
    let answers: (String, Vec<i64>, i64) = pipe.query(s.r).unwrap();
    equal("EXEC", answers, ("OK".to_owned(), vec![3, 2], 3));
}

fn seen_whole(s: &mut Session) {
    ask::<()>(s.r, "MSET a 1000 b 1000");
    let script = transfer();
    let working = AtomicUsize::new(4);
    s.together(5, |number, own| {
        if number < 4 {
            let (from, to) = if number % 2 == 0 { ("a", "b") } else { ("b", "a") };
            for _ in 0..100 {
                let run = script.key(from).key(to).arg(number / 2 + 1).invoke::<Value>(own);
                run.unwrap();
            }
            working.fetch_sub(1, Ordering::Relaxed);
        }
        while working.load(Ordering::Relaxed) > 0 {
            let seen: Vec<i64> = own.mget(&["a", "b"]).unwrap();
            assert_eq!(seen.iter().sum::<i64>(), 2000, "the sum of a and b: {seen:?}");
        }
    });
    equal("what is left", s.r.mget(&["a", "b"]).unwrap(), vec![1000, 1000]);
}

/// FUNCTION LOAD of the library, in place of what is there.
fn load(r: &mut Connection, replace: bool) -> RedisResult<String> {
    let mut load = cmd("FUNCTION");
    load.arg("LOAD");
    if replace {
        load.arg("REPLACE");
    }
    load.arg(shared_file("library.lua")).query(r)
}

fn loaded(s: &mut Session) {
    ask::<()>(s.r, "FUNCTION FLUSH");
    equal("FUNCTION LOAD", load(s.r, false).unwrap().as_str(), "accounts");
    let exists = "ERR Library 'accounts' already exists";
    refused("FUNCTION LOAD again", exists, load(s.r, false));
    equal("FUNCTION LOAD REPLACE", load(s.r, true).unwrap().as_str(), "accounts");
    let listed = format!("{:?}", ask::<Value>(s.r, "FUNCTION LIST LIBRARYNAME acc*"));
    for name in ["accounts", "balance", "transfer", "no-writes"] {
        holds("FUNCTION LIST", listed.contains(name), &listed);
    }
    s.r.set::<_, _, ()>("a", 10).unwrap();
    equal("FCALL", ask(s.r, "FCALL transfer 2 a b 3"), 3);
    equal("what FCALL left", s.r.mget(&["a", "b"]).unwrap(), vec![7, 3]);
    equal("FUNCTION DELETE", ask::<String>(s.r, "FUNCTION DELETE accounts").as_str(), "OK");
    let gone = try_ask::<Value>(s.r, "FCALL transfer 2 a b 3");
    refused("FCALL after it", "ERR Function not found", gone);
    let gone = try_ask::<Value>(s.r, "FUNCTION DELETE accounts");
    refused("FUNCTION DELETE again", "ERR Library not found", gone);
}

fn dumped(s: &mut Session) {
    load(s.r, true).unwrap();
    let mut dump: Vec<u8> = ask(s.r, "FUNCTION DUMP");
    equal("FUNCTION FLUSH", ask::<String>(s.r, "FUNCTION FLUSH SYNC").as_str(), "OK");
    let listed: Vec<Value> = ask(s.r, "FUNCTION LIST");
    equal("FUNCTION LIST after it", listed, vec![]);
    let restore = |r: &mut Connection, dump: &[u8], policy| -> RedisResult<String> {
        cmd("FUNCTION").arg("RESTORE").arg(dump).arg(policy).query(r)
    };
    equal("FUNCTION RESTORE", restore(s.r, &dump, "APPEND").unwrap().as_str(), "OK");
    s.r.set::<_, _, ()>("a", 7).unwrap();
    equal("FCALL", ask(s.r, "FCALL balance 1 a"), 7);
    let exists = "ERR Library accounts already exists";
    refused("FUNCTION RESTORE again", exists, restore(s.r, &dump, "APPEND"));
    *dump.last_mut().unwrap() ^= 1;
    let wrong = "ERR DUMP payload version or checksum are wrong";
    refused("FUNCTION RESTORE of another", wrong, restore(s.r, &dump, "REPLACE"));
    ask::<()>(s.r, "FUNCTION FLUSH");
}

fn function_read_only(s: &mut Session) {
    load(s.r, true).unwrap();
    s.r.set::<_, _, ()>("a", 7).unwrap();
    equal("FCALL_RO", ask(s.r, "FCALL_RO balance 1 a"), 7);
    let text = "ERR Can not execute a script with write flag using *_ro command.";
    let write = try_ask::<Value>(s.r, "FCALL_RO transfer 2 a b 1");
    refused("FCALL_RO that writes", text, write);
    ask::<()>(s.r, "FUNCTION FLUSH");
}
