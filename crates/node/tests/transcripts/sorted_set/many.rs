//! Sorted sets that are too large for a transcript: ZSCAN, ZRANDMEMBER, ranks and ranges.

use std::collections::BTreeSet;

use base::quote::split_args;

use crate::fake::TestServer;
use crate::reply::render;

const MEMBERS: usize = 1000;

/// A server with a sorted set `z` of members `m0`, `m1` ... with their numbers as scores.
fn server() -> TestServer {
    let mut server = TestServer::new(4);
    for first in (0..MEMBERS).step_by(100) {
        let pairs: Vec<String> = (first..first + 100).map(|i| format!("{i} m{i}")).collect();
        assert_eq!(ask(&mut server, &format!("ZADD z {}", pairs.join(" "))), ["100"]);
    }
    server
}

/// The words of the reply to a request.
fn ask(server: &mut TestServer, request: &str) -> Vec<String> {
    let (reply, _) = server.request("a", &split_args(request.as_bytes()).unwrap());
    let reply = render(&reply).replace(['[', ']', '"', ','], " ");
    reply.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_scan_returns_every_lasting_member() {
    let mut server = server();
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let reply = ask(&mut server, &format!("ZSCAN z {cursor} COUNT 20"));
        for pair in reply[1..].chunks(2) {
            assert!(pair[0].starts_with('x') || pair[0][1..] == pair[1]);
            seen.insert(pair[0].clone());
        }
        cursor = reply[0].clone();
        if cursor == "0" {
            break;
        }
        calls += 1;
        assert!(calls < 200);
        ask(&mut server, &format!("ZADD z 1 x{calls} 2 x{}", calls + 1));
        ask(&mut server, &format!("ZREM z x{}", calls / 2));
    }
    assert!(calls > 20);
    assert!((0..MEMBERS).all(|i| seen.contains(&format!("m{i}"))));
}

#[test]
fn random_members_differ_and_each_can_be_drawn() {
    let mut server = server();
    for count in [1, 7, 250, 700, 999, 1000, 2000] {
        let reply = ask(&mut server, &format!("ZRANDMEMBER z {count}"));
        let different: BTreeSet<&String> = reply.iter().collect();
        assert_eq!((reply.len(), different.len()), (count.min(MEMBERS), count.min(MEMBERS)));
    }
    let reply = ask(&mut server, "ZRANDMEMBER z -5000");
    assert_eq!(reply.len(), 5000);
    let different: BTreeSet<&String> = reply.iter().collect();
    // Five thousand draws from a thousand members miss about seven.
    assert!(different.len() > 950, "{}", different.len());
    let reply = ask(&mut server, "ZRANDMEMBER z 300 WITHSCORES");
    assert!(reply.len() == 600 && reply.chunks(2).all(|pair| pair[0][1..] == pair[1]));
    ask(&mut server, "ZREMRANGEBYRANK z 3 -1");
    for form in ["big", "packed"] {
        let mut met = BTreeSet::new();
        for _ in 0..200 {
            let mut pair = ask(&mut server, "ZRANDMEMBER z 2");
            pair.sort();
            met.insert(pair);
        }
        assert_eq!(met.len(), 3, "every pair of the three, {form}");
        assert_eq!(ask(&mut server, "DEL z"), ["1"]);
        assert_eq!(ask(&mut server, "ZADD z 0 m0 1 m1 2 m2"), ["3"]);
    }
}

#[test]
fn ranks_and_ranges_of_many_members() {
    let mut server = server();
    assert_eq!(ask(&mut server, "ZRANK z m617"), ["617"]);
    assert_eq!(ask(&mut server, "ZREVRANK z m617"), ["382"]);
    assert_eq!(ask(&mut server, "ZRANGE z 500 502"), ["m500", "m501", "m502"]);
    assert_eq!(ask(&mut server, "ZREVRANGE z 500 501 WITHSCORES"), ["m499", "499", "m498", "498"]);
    assert_eq!(ask(&mut server, "ZRANGEBYSCORE z (300 inf LIMIT 40 2"), ["m341", "m342"]);
    assert_eq!(ask(&mut server, "ZCOUNT z (100 900"), ["800"]);
    assert_eq!(ask(&mut server, "ZREMRANGEBYSCORE z 100 (900"), ["800"]);
    assert_eq!(ask(&mut server, "ZRANGE z 99 100"), ["m99", "m900"]);
    assert_eq!(ask(&mut server, "ZPOPMAX z 2"), ["m999", "999", "m998", "998"]);
    assert_eq!(ask(&mut server, "ZINCRBY z 5.5 m0"), ["5.5"]);
    assert_eq!(ask(&mut server, "ZRANK z m0"), ["5"]);
    assert_eq!(ask(&mut server, "ZCARD z"), ["198"]);
}
