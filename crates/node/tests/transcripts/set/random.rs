//! SPOP and SRANDMEMBER.

use std::collections::BTreeSet;

use crate::check::check;
use crate::fake::TestServer;

#[test]
fn popping_and_drawing() {
    check(
        r#"
> SADD s a -> 1
> SPOP s -> "a"
> EXISTS s -> 0
> SPOP s -> nil
> SPOP s 3 -> []
> HELLO 3 -> ~~ *
> SPOP s -> nil
> SPOP s 3 -> ~[]
> HELLO 2 -> ~~ *
> SADD s 1 2 3 -> 3
> SPOP s 0 -> []
> SPOP s 3 -> ["1", "2", "3"]
> EXISTS s -> 0
> SADD s 1 2 3 -> 3
> SPOP s 9223372036854775807 -> ["1", "2", "3"]
> EXISTS s -> 0
> SADD s 1 1 1 -> 1
> HELLO 3 -> ~~ *
> SPOP s 1 -> ~["1"]
> SADD s a b -> 2
> SPOP s 5 -> ~["a", "b"]
"#,
    );
}

#[test]
fn drawing() {
    check(
        r#"
> SADD s a -> 1
> SRANDMEMBER s -> "a"
> SRANDMEMBER s 0 -> []
> SRANDMEMBER s 1 -> ["a"]
> SRANDMEMBER s 5 -> ["a"]
> SRANDMEMBER s -3 -> ["a", "a", "a"]
> SRANDMEMBER nokey -> nil
> SRANDMEMBER nokey 3 -> []
> HELLO 2 -> ~~ *
> SRANDMEMBER nokey -> nil
> SRANDMEMBER nokey -3 -> []
> SRANDMEMBER s -2 -> ["a", "a"]
> SADD i 1 -> 1
> SRANDMEMBER i -2 -> ["1", "1"]
> SADD i 2 3 -> 2
> SRANDMEMBER i 3 -> ["1", "2", "3"]
> SRANDMEMBER i 10 -> ["1", "2", "3"]
"#,
    );
}

#[test]
fn pops_are_replayed_by_member() {
    check(
        r#"
> SADD s a -> 1
> SPOP s -> "a"
! spop:s del:s => SREM s a
> SPOP s -> nil
> SPOP s 1 -> []
> SADD s a 1 -> 2
> SPOP s 0 -> []
> SPOP s 2 -> ["a", "1"]
! spop:s del:s => DEL s
> SADD s a -> 1
> SPOP s 1 -> ["a"]
! spop:s del:s => DEL s
> CONFIG SET lazyfree-lazy-server-del yes -> OK
> SADD s a -> 1
> SPOP s 1 -> ["a"]
! spop:s del:s => UNLINK s
> SADD s a -> 1
> SPOP s -> "a"
! spop:s del:s => SREM s a
> SADD s a -> 1
> SRANDMEMBER s -9223372036854775807
-ERR value is out of range, value must between -67108864 and 9223372036854775807
> SRANDMEMBER s 9223372036854775807 -> ["a"]
> DEL s -> 1
> SADD s 1 2 3 -> 3
> SPOP s -> ~~ "?"
> SPOP s 1 -> ~~ \["?"]
> SCARD s -> 1
> SADD t a b c d e -> 5
> SPOP t 3 -> ~~ \["?", "?", "?"]
> OBJECT ENCODING t -> "listpack"
> SCARD t -> 2
"#,
    );
}

#[test]
fn many_members_popped_are_replayed() {
    for (shards, first, count) in [(1, 1000, 300), (4, 1000, 990), (1, 100, 30), (1, 100, 95)] {
        let mut server = TestServer::new(shards);
        for kind in ["", "x"] {
            let members: Vec<String> = (first..2 * first).map(|i| format!("{kind}{i}")).collect();
            let request = |server: &mut TestServer, line: String| {
                let words = line.split(' ').map(|word| word.as_bytes().to_vec());
                server.request("a", &words.collect::<Vec<_>>())
            };
            request(&mut server, "DEL s".to_owned());
            request(&mut server, format!("SADD s {}", members.join(" ")));
            let (reply, effects) = request(&mut server, format!("SPOP s {count}"));
            let popped: BTreeSet<String> = texts(&reply).into_iter().collect();
            assert_eq!(popped.len(), count);
            let [effect] = effects.as_slice() else { panic!("one effect") };
            let args = &effect.commands[0].args;
            assert_eq!(args[..2], [b"SREM".to_vec(), b"s".to_vec()]);
            let replayed = args[2..].iter();
            let replayed: BTreeSet<String> =
                replayed.map(|member| String::from_utf8(member.clone()).unwrap()).collect();
            assert_eq!(replayed, popped);
            let (reply, _) = request(&mut server, "SMEMBERS s".to_owned());
            let left: BTreeSet<String> = texts(&reply).into_iter().collect();
            assert!(left.is_disjoint(&popped) && left.len() + count == first);
            assert!(left.union(&popped).eq(&members.iter().cloned().collect::<BTreeSet<_>>()));
        }
    }
}

/// The bulk strings of an array.
fn texts(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8(reply.to_vec()).unwrap();
    text.split("\r\n").skip(2).step_by(2).map(str::to_owned).collect()
}

#[test]
fn a_set_is_small_again_after_a_large_pop() {
    check(
        r#"
> CONFIG SET set-max-listpack-entries 5 set-max-intset-entries 6 -> OK
> SADD s a b c d e f g h i j k l m n o p q r s t u v w x y -> 25
> OBJECT ENCODING s -> "hashtable"
> SPOP s 19 -> ~~ \["?"*]
> OBJECT ENCODING s -> "hashtable"
> SADD s a b c d e f g h i j k l m n o p q r s t u v w x y -> 19
> SPOP s 22 -> ~~ \["?"*]
> OBJECT ENCODING s -> "listpack"
> SCARD s -> 3
> SADD i 1 2 3 4 5 6 -> 6
> SPOP i 5 -> ~~ \["?"*]
> OBJECT ENCODING i -> "intset"
> SADD n 1 2 3 4 5 6 7 8 9 10 11 -> 11
> OBJECT ENCODING n -> "hashtable"
> SPOP n 10 -> ~~ \["?"*]
> OBJECT ENCODING n -> "listpack"
"#,
    );
}
