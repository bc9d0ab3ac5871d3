//! SSCAN.

use std::collections::BTreeMap;

use crate::check::check;
use crate::fake::TestServer;

#[test]
fn small_sets_are_returned_at_once() {
    check(
        r#"
> SADD s a b 3 -> 3
> SSCAN s 0 -> ["0", ["a", "b", "3"]]
> SSCAN s 17 -> ["0", ["a", "b", "3"]]
> SSCAN s 0 MATCH b -> ["0", ["b"]]
> SSCAN s 0 match ? COUNT 1 -> ["0", ["a", "b", "3"]]
> SSCAN s 0 COUNT 1 COUNT 2 -> ["0", ["a", "b", "3"]]
> SSCAN s 0 MATCH x -> ["0", []]
> SSCAN s 0 MATCH * -> ["0", ["a", "b", "3"]]
> SSCAN s " 0" -> ["0", ["a", "b", "3"]]
> SADD i 1 2 30 -> 3
> SSCAN i 0 -> ["0", ["1", "2", "30"]]
> SSCAN i 0 MATCH ? -> ["0", ["1", "2"]]
> SSCAN i 18446744073709551615 -> ["0", ["1", "2", "30"]]
> SSCAN i 18446744073709551616 -> -ERR invalid cursor
> SSCAN nokey 0 -> ["0", []]
> SSCAN nokey 5 -> ["0", []]
> HELLO 3 -> ~~ *
> SSCAN s 0 -> ["0", ["a", "b", "3"]]
> SSCAN nokey 0 -> ["0", []]
"#,
    );
}

#[test]
fn a_scan_returns_each_lasting_member_once() {
    for (stay, count) in [(300, 10), (3000, 7), (3000, 100), (20_000, 1000)] {
        let mut server = TestServer::new(1);
        let mut request = |line: String| {
            let words = line.split(' ').map(|word| word.as_bytes().to_vec());
            server.request("a", &words.collect::<Vec<_>>()).0
        };
        let members: Vec<String> = (0..stay).map(|i| format!("stay{i}")).collect();
        request(format!("SADD s {}", members.join(" ")));
        let (mut seen, mut cursor, mut calls) = (BTreeMap::new(), "0".to_owned(), 0);
        loop {
            let reply = request(format!("SSCAN s {cursor} COUNT {count} MATCH st*"));
            let text = String::from_utf8(reply).unwrap();
            let mut lines = text.split("\r\n");
            cursor = lines.nth(2).unwrap().to_owned();
            for member in lines.skip(2).step_by(2) {
                *seen.entry(member.to_owned()).or_insert(0) += 1;
            }
            calls += 1;
            if cursor == "0" {
                break;
            }
            // The table grows and shrinks during the scan.
            let verb = if calls % 80 < 40 { "SADD" } else { "SREM" };
            let churn: Vec<String> =
                (0..100).map(|i| format!("churn{}", calls % 40 * 100 + i)).collect();
            request(format!("{verb} s {}", churn.join(" ")));
        }
        assert!(members.iter().all(|member| seen.get(member) == Some(&1)), "{stay}/{count}");
        seen.retain(|member, _| !member.starts_with("stay"));
        assert!(seen.is_empty());
    }
}
