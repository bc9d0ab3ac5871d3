//! Transactions: the crate's atomic pipelines, and `redis::transaction` with its retry.

use std::sync::atomic::{AtomicUsize, Ordering};

use redis::{Commands, Connection, RedisResult, Value, pipe};

use crate::check::{ask, equal, holds, refused, try_ask};
use crate::combined::{Case, Session};

const NOT_INTEGER: &str = "ERR value is not an integer or out of range";
const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

pub const CASES: &[Case] = &[
    ("transaction: replies in order", replies),
    ("transaction: an error inside", error_inside),
    ("transaction: a refused command aborts", refused_inside),
    ("transaction: discarded", discarded),
    ("transaction: seen whole", seen_whole),
    ("watch: a change aborts", change_aborts),
    ("watch: unwatched", unwatched),
    ("watch: retried until it holds", retried),
];

fn replies(s: &mut Session) {
    let mut pipe = pipe();
    pipe.atomic().set("n", 41).incr("n", 1).get("n").lpush("l", &["a", "b"]);
    pipe.lrange("l", 0, -1).get("none");
    type Answers = (String, i64, String, i64, Vec<String>, Option<String>);
    let answers: Answers = pipe.query(s.r).unwrap();
    let list = vec!["b".to_owned(), "a".to_owned()];
    equal("replies", answers, ("OK".to_owned(), 42, "42".to_owned(), 2, list, None));
}

fn error_inside(s: &mut Session) {
    let mut all = pipe();
    all.atomic().ignore_errors().set("text", "abc").incr("text", 1).append("text", "d");
    let mut answers: Vec<RedisResult<Value>> = all.query(s.r).unwrap();
    let (after, wrong) = (answers.pop().unwrap(), answers.pop().unwrap());
    refused("the error", NOT_INTEGER, wrong);
    equal("its neighbour", after.unwrap(), Value::Int(4));
    equal("they ran", s.r.get::<_, String>("text").unwrap().as_str(), "abcd");
    let failed: RedisResult<Value> = pipe().atomic().incr("text", 1).append("text", "e").query(s.r);
    let text = failed.unwrap_err().to_string();
    holds("without ignore_errors", text.contains("Index 0") && text.contains("integer"), &text);
    equal("what follows the error ran", s.r.get::<_, String>("text").unwrap().as_str(), "abcde");
}

fn refused_inside(s: &mut Session) {
    s.r.set::<_, _, ()>("k", "old").unwrap();
    let failed: RedisResult<Value> =
        pipe().atomic().set("k", "new").cmd("NOSUCH").arg("a").query(s.r);
    let error = failed.unwrap_err();
    equal("the code", error.code(), Some("EXECABORT"));
    let unknown = "unknown command 'NOSUCH', with args beginning with: 'a' ";
    holds("the refused command", error.to_string().contains(unknown), &error);
    ask::<()>(s.r, "MULTI");
    equal("INCR is queued", ask::<String>(s.r, "INCR k").as_str(), "QUEUED");
    let arity = "ERR wrong number of arguments for 'get' command";
    refused("an arity", arity, try_ask::<Value>(s.r, "GET"));
    refused("EXEC", ABORTED, try_ask::<Value>(s.r, "EXEC"));
    equal("nothing ran", s.r.get::<_, String>("k").unwrap().as_str(), "old");
}

fn discarded(s: &mut Session) {
    ask::<()>(s.r, "MULTI");
    equal("INCR is queued", ask::<String>(s.r, "INCR n").as_str(), "QUEUED");
    equal("DISCARD", ask::<String>(s.r, "DISCARD").as_str(), "OK");
    refused("EXEC after it", "ERR EXEC without MULTI", try_ask::<Value>(s.r, "EXEC"));
    equal("nothing ran", s.r.exists("n").unwrap(), false);
    equal("the next one", pipe().atomic().incr("n", 1).query(s.r).unwrap(), vec![1]);
}

fn seen_whole(s: &mut Session) {
    let keys: Vec<String> = (0..16).map(|i| format!("whole:{i}")).collect();
    for key in &keys {
        s.r.set::<_, _, ()>(key, "0").unwrap();
    }
    let writing = AtomicUsize::new(3);
    s.together(5, |number, own| {
        if number < 3 {
            for i in 0..100 {
                let mut pipe = pipe();
                pipe.atomic();
                for key in &keys {
                    pipe.set(key, format!("{number}:{i}")).ignore();
                }
                pipe.exec(own).unwrap();
            }
            writing.fetch_sub(1, Ordering::Relaxed);
        }
        while writing.load(Ordering::Relaxed) > 0 {
            let seen: Vec<String> = own.mget(&keys).unwrap();
            assert!(seen.iter().all(|value| value == &seen[0]), "two transactions: {seen:?}");
        }
    });
}

fn change_aborts(s: &mut Session) {
    let mut own = s.another();
    own.set::<_, _, ()>("k", "1").unwrap();
    ask::<()>(&mut own, "WATCH k");
    equal("GET while watching", own.get::<_, String>("k").unwrap().as_str(), "1");
    s.r.set::<_, _, ()>("k", "other").unwrap();
    let mut pipe = pipe();
    pipe.atomic().set("k", "mine").ignore().set("k2", "mine").ignore();
    equal("EXEC", pipe.query::<Option<()>>(&mut own).unwrap(), None);
    let left: Vec<Option<String>> = own.mget(&["k", "k2"]).unwrap();
    equal("nothing ran", left, vec![Some("other".to_owned()), None]);
}

fn unwatched(s: &mut Session) {
    let mut own = s.another();
    ask::<()>(&mut own, "WATCH k k2");
    s.r.set::<_, _, ()>("k", "other").unwrap();
    equal("UNWATCH", ask::<String>(&mut own, "UNWATCH").as_str(), "OK");
    let answer: Option<Vec<i64>> = pipe().atomic().append("k", "+mine").query(&mut own).unwrap();
    equal("EXEC", answer, Some(vec![10]));
}

fn retried(s: &mut Session) {
    let mut seen = Vec::new();
    let mut own = s.another();
    increment(&mut own, |value| {
        seen.push(value);
        if seen.len() == 1 {
            s.r.set::<_, _, ()>("n", 10).unwrap();
        }
    });
    equal("it ran twice", seen, vec![None, Some(10)]);
    equal("what it left", s.r.get("n").unwrap(), 11);
    s.r.set::<_, _, ()>("n", 0).unwrap();
    s.together(5, |_, own| {
        for _ in 0..20 {
            increment(own, |_| {});
        }
    });
    equal("5 clients count to 100", s.r.get("n").unwrap(), 100);
}

/// Counts `n` up by GET and SET; `between` sees what each try read.
fn increment(own: &mut Connection, mut between: impl FnMut(Option<i64>)) {
    let () = redis::transaction(own, &["n"], |own, pipe| {
        let value: Option<i64> = own.get("n")?;
        between(value);
        pipe.set("n", value.unwrap_or(0) + 1).ignore().query(own)
    })
    .unwrap();
}
