//! Commands whose key positions depend on other arguments: the row must find exactly the keys that
//! the handler uses, whatever names and values the arguments have.
//!
//! Requests are random, and their keys, groups and patterns have the names of options. The idle
//! times of keys show which keys a handler used.

use std::collections::BTreeSet;

use base::quote::split_args;
use base::random::Random;
use command::{Flags, Group};
use node::table;
use resp::{Args, Span};

use crate::fake::TestServer;

/// Idle time of the keys before a request.
const IDLE_MS: i64 = 100_000;
/// Requests of each form.
const REQUESTS: usize = 100;

/// A name of a value that is not an option.
const WORDS: &[&str] = &["k", "1", "2"];

/// Requests of one form: words are literal, except that `k` is a key, `w` another name, and `i` a
/// small number.
struct Form {
    head: &'static str,
    /// Optional parts that follow in any order.
    options: &'static [&'static str],
    tail: &'static str,
    /// Makes a value under the key `k`.
    value: &'static str,
    /// The command stops at the first existing key, and all keys exist.
    stops_at_first: bool,
    /// The command writes to its last key, and reads the first.
    writes_last: bool,
}

const fn form(head: &'static str, options: &'static [&'static str], value: &'static str) -> Form {
    Form { head, options, tail: "", value, stops_at_first: false, writes_last: false }
}

const fn pop(head: &'static str, value: &'static str) -> Form {
    Form { stops_at_first: true, ..form(head, &["COUNT i"], value) }
}

const fn streams(head: &'static str, options: &'static [&'static str]) -> Form {
    Form { tail: "STREAMS k k 0 0", ..form(head, options, "XADD k 1-1 f v") }
}

const GEO: &[&str] = &["COUNT i", "COUNT i ANY", "ASC", "DESC", "STORE k", "STOREDIST k"];
const GEO_VALUE: &str = "GEOADD k 0 0 m";
const SORT: &[&str] = &["BY w", "GET w", "LIMIT 0 i", "ALPHA", "DESC", "STORE k"];
const WEIGHTS: &[&str] = &["WEIGHTS 1 i", "AGGREGATE MAX"];
const ZSET: &str = "ZADD k 1 m";
const LIST: &str = "RPUSH k 1 2 3 4 5 6";

const FORMS: &[Form] = &[
    streams("XREAD", &["COUNT i", "BLOCK i"]),
    streams("XREADGROUP", &["GROUP w w", "COUNT i", "BLOCK i", "CLAIM i", "NOACK"]),
    Form { writes_last: true, ..form("GEORADIUS k 0 0 9 km", GEO, GEO_VALUE) },
    Form { writes_last: true, ..form("GEORADIUSBYMEMBER k m 9 km", GEO, GEO_VALUE) },
    form("SORT k", SORT, LIST),
    form("SORT_RO k", &["BY w", "GET w", "LIMIT 0 i", "ALPHA", "DESC"], LIST),
    form("MSETEX 2 k w k w", &["XX", "EX i"], "SET k v"),
    form("ZUNION 2 k k", WEIGHTS, ZSET),
    form("ZINTER 2 k k", WEIGHTS, ZSET),
    form("ZDIFF 2 k k", &["WITHSCORES"], ZSET),
    form("ZUNIONSTORE k 2 k k", WEIGHTS, ZSET),
    form("ZINTERSTORE k 2 k k", WEIGHTS, ZSET),
    form("ZDIFFSTORE k 2 k k", &[], ZSET),
    form("ZINTERCARD 2 k k", &["LIMIT i"], ZSET),
    form("SINTERCARD 2 k k", &["LIMIT i"], "SADD k m"),
    pop("ZMPOP 2 k k MIN", ZSET),
    pop("BZMPOP 0 2 k k MIN", ZSET),
    pop("LMPOP 2 k k LEFT", LIST),
    pop("BLMPOP 0 2 k k LEFT", LIST),
];

#[test]
fn every_command_with_movable_keys_has_a_form() {
    let movable = table().entries().iter().filter(|e| e.spec.flags.has(Flags::MOVABLE_KEYS));
    // The text of a script determines which of its keys it uses.
    let movable = movable.filter(|entry| entry.spec.group != Group::Scripting);
    let movable: BTreeSet<String> = movable.map(|entry| entry.name.to_uppercase()).collect();
    let name = |form: &Form| form.head.split(' ').next().unwrap_or_default().to_owned();
    let tested: BTreeSet<String> = FORMS.iter().map(name).collect();
    assert_eq!(movable, tested);
}

#[test]
fn rows_find_the_keys_that_handlers_use() {
    let mut random = Random::new(13);
    for form in FORMS {
        for _ in 0..REQUESTS {
            let names = names_of(form);
            let request = request_of(form, &names, &mut random);
            let mut server = TestServer::new(64);
            populate(&mut server, form, &names);
            server.advance(IDLE_MS);
            let (reply, _) = server.request("a", &request);
            let (request_text, reply) = (show(&request), String::from_utf8_lossy(&reply));
            assert!(!reply.starts_with('-'), "{request_text}: {reply}");
            let mut found = found_keys(&request);
            if form.writes_last {
                let last = found.iter().max().cloned();
                found.truncate(1);
                found.extend(last);
            }
            if form.stops_at_first {
                found.truncate(1);
            }
            let found = found.into_iter().map(|(_, key)| key).collect();
            assert_eq!(used_keys(&mut server, &names), found, "{request_text}");
        }
    }
}

/// The names of keys and values: all words of the form.
fn names_of(form: &Form) -> Vec<String> {
    let words = [form.head, form.tail].into_iter().chain(form.options.iter().copied());
    let words = words.flat_map(|text| text.split(' ')).filter(|word| word.len() > 1);
    let names = words.chain(WORDS.iter().copied()).map(str::to_ascii_lowercase);
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

fn request_of(form: &Form, names: &[String], random: &mut Random) -> Vec<Vec<u8>> {
    let mut below = |end: usize| random.below(end as u64) as usize;
    let mut options: Vec<&str> = form.options.to_vec();
    for at in (1..options.len()).rev() {
        options.swap(at, below(at + 1));
    }
    // XREADGROUP fails without a group.
    let is_needed = |option: &&str| option.starts_with("GROUP");
    options.retain(|option| is_needed(option) || below(2) == 0);
    let texts = [form.head].into_iter().chain(options).chain([form.tail]);
    let words = texts.flat_map(|text| text.split(' ')).filter(|word| !word.is_empty());
    let request = words.map(|word| match word {
        "k" | "w" => names[below(names.len())].clone(),
        "i" => (1 + below(2)).to_string(),
        _ => word.to_owned(),
    });
    request.map(String::into_bytes).collect()
}

/// Makes a value under every name; for streams, a group of every name too.
fn populate(server: &mut TestServer, form: &Form, names: &[String]) {
    let mut send = |line: String| {
        let request = split_args(line.as_bytes()).unwrap();
        let (reply, _) = server.request("a", &request);
        assert!(!reply.starts_with(b"-"), "{line}: {}", String::from_utf8_lossy(&reply));
    };
    for name in names {
        send(form.value.replacen(" k ", &format!(" {name} "), 1));
        if form.head == "XREADGROUP" {
            for group in names {
                send(format!("XGROUP CREATE {name} {group} 0"));
            }
        }
    }
}

/// The keys that were used or removed.
fn used_keys(server: &mut TestServer, names: &[String]) -> BTreeSet<String> {
    let untouched = format!(":{}\r\n", IDLE_MS / 1000).into_bytes();
    let mut idle = |name: &&String| {
        let request = [b"OBJECT".to_vec(), b"IDLETIME".to_vec(), name.as_bytes().to_vec()];
        server.request("b", &request).0 != untouched
    };
    names.iter().filter(|name| idle(name)).cloned().collect()
}

/// The keys that the command's row finds, in its order, with their positions in the request.
fn found_keys(request: &[Vec<u8>]) -> Vec<(usize, String)> {
    let mut buffer = Vec::new();
    let mut spans = Vec::new();
    for word in request {
        spans.push(Span::new(buffer.len(), word.len()));
        buffer.extend_from_slice(word);
    }
    let args = Args::new(&buffer, &spans, &[]);
    let entry = table().resolve(&args).unwrap();
    let positions = entry.spec.keys.iter().flat_map(|spec| spec.positions(&args));
    positions.map(|at| (at, String::from_utf8_lossy(args.text(at)).into_owned())).collect()
}

fn show(request: &[Vec<u8>]) -> String {
    request.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
}
