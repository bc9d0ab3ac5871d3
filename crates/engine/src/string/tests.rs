//! Properties that replies do not show: encodings as OBJECT ENCODING names them, values shared
//! instead of copied, and the table of rows as a whole.

use std::sync::Arc;

use base::hash::KeyHasher;
use base::quote::split_args;
use base::random::Random;
use resp::out::{Piece, SharedBytes};
use resp::{Args, Out, Reply, Span};
use store::{EncodingLimits, Lookup, Shard, Turn};

use super::*;
use crate::cx::{Cx, CxParts};
use crate::exec;
use crate::locked_shards::LockedShards;
use crate::shard_map::ShardMap;

/// One shard, and the replies of the last request.
struct TestDb {
    shard: Shard,
    turn: Turn,
    out: Out,
    resp3: bool,
}

impl TestDb {
    fn new() -> Self {
        let turn = Turn::alone(KeyHasher::new(3));
        Self { shard: Shard::default(), turn, out: Out::default(), resp3: false }
    }

    /// Runs a request. Its last argument has its own buffer if `own` is given.
    fn run(&mut self, request: &str, own: Option<&Arc<Vec<u8>>>) -> bool {
        let words = split_args(request.as_bytes()).unwrap();
        let mut buffer = Vec::new();
        let mut spans: Vec<Span> = Vec::new();
        for word in &words {
            spans.push(Span::new(buffer.len(), word.len()));
            buffer.extend_from_slice(word);
        }
        spans.extend(own.map(|_| Span::own(0)));
        let mut args = Args::new(&buffer, &spans, own.map_or(&[], std::slice::from_ref));
        let row = ROWS.iter().find(|row| row.spec.name.as_bytes() == args.name()).unwrap();
        assert!(row.spec.accepts(args.len()), "{request}");
        let keys = row.spec.keys.iter().flat_map(|keys| keys.positions(&args));
        let hashes: Vec<u64> = keys.map(|at| self.turn.hasher.hash(args.text(at))).collect();
        let mut parts = CxParts {
            turn: &mut self.turn,
            random: &mut Random::new(0),
            map: ShardMap::new(1),
            db: 0,
            databases: 1,
            bulk_bytes_max: 1 << 20,
            limits: &EncodingLimits::default(),
        };
        let mut cx = Cx::new(&mut parts, LockedShards::One(0, &mut self.shard), &hashes);
        self.out.clear();
        let mut reply = Reply::new(&mut self.out, self.resp3);
        let result = row.run.unwrap()(&mut cx, &mut args, &mut reply);
        exec::seal(&mut cx, &args);
        let succeeded = result.is_ok();
        if let Err(error) = result {
            self.out.clear();
            Reply::new(&mut self.out, self.resp3).error(error.to_string().as_bytes());
        }
        succeeded
    }

    fn encoding(&mut self, key: &str) -> &'static str {
        let key = self.turn.key(key.as_bytes());
        self.shard
            .db(0)
            .lookup(&mut self.turn, key, Lookup::Quiet)
            .map_or("none", |stored| stored.encoding())
    }

    /// The buffer of a long string that the last reply shares with the keyspace.
    fn shared(&self) -> Option<&Arc<Vec<u8>>> {
        let pieces = self.out.pieces(resp::out::Mark::default(), self.out.mark());
        pieces.into_iter().find_map(|piece| match piece {
            Piece::Shared(SharedBytes::Value(text)) => Some(text),
            _ => None,
        })
    }
}

/// Runs requests separated by semicolons and compares the encoding of `k`.
#[track_caller]
fn check(requests: &str, encoding: &str) {
    let mut bench = TestDb::new();
    for request in requests.split(';') {
        assert!(bench.run(request.trim(), None), "{request}");
    }
    assert_eq!(bench.encoding("k"), encoding, "{requests}");
}

#[test]
fn encodings_are_those_of_redis() {
    let (x44, x45) = ("x".repeat(44), "x".repeat(45));
    for (requests, encoding) in [
        ("set k 12", "int"),
        ("set k 9223372036854775807", "int"),
        ("set k -9223372036854775808", "int"),
        ("set k -9223372036854775809", "embstr"),
        ("set k -0", "embstr"),
        ("set k 010", "embstr"),
        ("set k ''", "embstr"),
        ("set k 11111111111111111111111111111111111111111111", "embstr"),
        (&format!("set k {x44}"), "embstr"),
        (&format!("set k {x45}"), "raw"),
        ("setnx k 12", "int"),
        ("setex k 10 12", "int"),
        ("psetex k 10 abc", "embstr"),
        ("getset k 12", "int"),
        ("mset k 5 k2 a", "int"),
        ("msetnx k2 5 k abc", "embstr"),
        ("append k ''", "embstr"),
        ("append k ''; append k ''", "raw"),
        ("append k 12", "int"),
        ("append k 12; append k 34", "raw"),
        ("append k abc", "embstr"),
        ("append k abc; append k ''", "raw"),
        ("set k 12; append k ''", "raw"),
        ("setrange k 3 ab", "raw"),
        ("setrange k 0 12", "raw"),
        ("set k 12345; setrange k 1 9", "raw"),
        ("set k 12345; setrange k 10 ''", "int"),
        ("setrange k 20000 x", "raw"),
        ("setrange k 20000 x; set k 1", "int"),
        ("setrange k 20000 x; set k a", "embstr"),
        ("incr k", "int"),
        ("set k 1; append k 2; incr k", "int"),
        ("setrange k 0 12; decrby k 2", "int"),
        ("incrbyfloat k 1.5", "embstr"),
        ("incrbyfloat k 1.5; incrbyfloat k 1.5", "embstr"),
        ("incrbyfloat k 1.5; incrbyfloat k 1.5; incr k", "int"),
        ("set k 1; append k 2; incrbyfloat k 1", "embstr"),
        ("incrbyfloat k 1e100", "raw"),
        ("set k 1; getex k ex 10", "int"),
        ("set k 1; append k 2; getex k persist", "raw"),
        ("set k 1; getdel k", "none"),
    ] {
        check(requests, encoding);
    }
}

#[test]
fn long_strings_are_shared_from_request_to_reply() {
    let mut bench = TestDb::new();
    let own = Arc::new(vec![b'x'; 20_000]);
    assert!(bench.run("set k", Some(&own)));
    for request in ["get k", "mget k", "getrange k 0 -1", "getex k", "set k 1 get"] {
        assert!(bench.run(request, None));
        assert!(Arc::ptr_eq(bench.shared().unwrap(), &own), "{request}");
    }
    // The overwritten value waits to be dropped without a lock.
    let before = Arc::strong_count(&own);
    bench.turn.lazy_free.clear();
    assert_eq!(Arc::strong_count(&own), before - 1);
    assert!(bench.run("append k2", Some(&own)));
    assert!(bench.run("getdel k2", None));
    assert!(Arc::ptr_eq(bench.shared().unwrap(), &own));
    assert!(bench.run("mset k3", Some(&own)));
    assert!(bench.run("getset k3 1", None));
    assert!(Arc::ptr_eq(bench.shared().unwrap(), &own));
}

#[test]
fn a_reply_being_sent_keeps_the_old_bytes() {
    let mut bench = TestDb::new();
    assert!(bench.run("setrange k 19999 x", None));
    assert!(bench.run("get k", None));
    let sent = Arc::clone(bench.shared().unwrap());
    assert!(bench.run("append k y", None));
    assert!(bench.run("setrange k 0 z", None));
    assert_eq!((sent.len(), sent[0], sent[19_999]), (20_000, 0, b'x'));
}

#[test]
fn replies_that_differ_in_resp3() {
    let mut bench = TestDb { resp3: true, ..TestDb::new() };
    for (request, reply) in [
        ("mset a ohmytext b mynewtext", "+OK|"),
        ("get k", "_|"),
        ("mget a k", "*2|$8|ohmytext|_|"),
        ("getdel k", "_|"),
        ("getex k", "_|"),
        ("set k v xx", "_|"),
        ("set k v get", "_|"),
        ("set k v nx", "_|"),
        ("getset k2 v", "_|"),
        ("incrbyfloat f 1.5", "$3|1.5|"),
        ("lcs a b len", ":6|"),
        (
            "lcs a b idx withmatchlen minmatchlen 3",
            "%2|$7|matches|*1|*3|*2|:4|:7|*2|:5|:8|:4|$3|len|:6|",
        ),
        ("lcs a nokey idx", "%2|$7|matches|*0|$3|len|:0|"),
    ] {
        bench.run(request, None);
        let text = String::from_utf8_lossy(&bench.out.bytes).replace("\r\n", "|");
        assert_eq!(text, reply, "{request}");
    }
}

#[test]
fn reads_count_hits_and_misses_and_writes_count_changes() {
    let mut bench = TestDb::new();
    bench.run("mset a x b y n 12", None);
    for (request, hits, misses, changes) in [
        ("get a", 1, 0, 0),
        ("get none", 0, 1, 0),
        ("set a v get", 1, 0, 1),
        ("set new v get", 0, 1, 1),
        ("set none v xx", 0, 0, 0),
        ("set a v nx", 0, 0, 0),
        ("incr n", 0, 0, 1),
        ("setnx a v", 0, 0, 0),
        ("getset a v", 1, 0, 1),
        ("getdel a", 1, 0, 1),
        ("getdel a", 0, 1, 0),
        ("getex b", 1, 0, 0),
        ("getex b persist", 1, 0, 0),
        ("getex b ex 10", 1, 0, 1),
        ("getex b persist", 1, 0, 1),
        ("getex b exat 1 xx", 0, 0, 0),
        ("getex none", 0, 1, 0),
        ("strlen b", 1, 0, 0),
        ("strlen none", 0, 1, 0),
        ("getrange b 0 1", 1, 0, 0),
        ("mget b none", 1, 1, 0),
        ("lcs b none", 1, 1, 0),
        ("append b x", 0, 0, 1),
        ("append b ''", 0, 0, 1),
        ("setrange b 0 x", 0, 0, 1),
        ("setrange b 0 ''", 0, 0, 0),
        ("setrange made 5 x", 0, 0, 1),
        ("msetnx b 1", 0, 0, 0),
        ("mset b 1 n 2", 0, 0, 2),
        ("incrbyfloat f 1", 0, 0, 1),
        ("incrby f x", 0, 0, 0),
        ("setrange b 1048576 x", 0, 0, 0),
    ] {
        bench.turn.counters = store::KeyspaceCounters::default();
        bench.run(request, None);
        let counters = bench.turn.counters;
        assert_eq!(
            (counters.hits, counters.misses, counters.changes),
            (hits, misses, changes),
            "{request}"
        );
    }
}

#[test]
fn no_string_grows_past_the_limit() {
    let mut bench = TestDb::new();
    assert!(bench.run("setrange k 1048574 x", None));
    assert!(bench.run("append k y", None));
    for request in ["append k z", "setrange k 1048576 z", "setrange k 1048575 zz"] {
        assert!(!bench.run(request, None), "{request}");
        assert!(bench.out.bytes.starts_with(b"-ERR string exceeds maximum allowed size"));
    }
    assert!(bench.run("append k ''", None));
    assert_eq!(bench.out.bytes, b":1048576\r\n");
}

#[test]
fn each_command_is_listed_once_in_order() {
    assert_eq!(ROWS.len(), 26);
    assert!(ROWS.is_sorted_by(|a, b| a.spec.name < b.spec.name));
}
