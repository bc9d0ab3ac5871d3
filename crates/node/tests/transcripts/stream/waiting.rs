//! XREAD and XREADGROUP that wait.

use crate::check::check;

#[test]
fn waits_for_an_entry() {
    check(
        r#"
a> XADD s 1-1 a 1 -> "1-1"
b> XREAD BLOCK 0 STREAMS s $
c> XREAD BLOCK 0 COUNT 1 STREAMS t s 0 $
a> XADD s 1-2 a 2 -> "1-2"
b< [["s", [["1-2", ["a", "2"]]]]]
c< [["s", [["1-2", ["a", "2"]]]]]
a> XADD s 1-3 a 3 -> "1-3"
b<

"#,
    );
}

#[test]
fn in_resp3_and_with_timeout() {
    check(
        r#"
b> HELLO 3 -> ~~ {*}
b> XREAD BLOCK 100 STREAMS s 0
a> XADD s 1-2 a 2 -> "1-2"
b< {"s": [["1-2", ["a", "2"]]]}
"#,
    );
}

#[test]
fn waits_for_entries_after_an_identifier() {
    check(
        r#"
b> XREAD BLOCK 0 STREAMS s 5-0
c> XREAD BLOCK 0 STREAMS s +
a> XADD s 3-0 a 1 -> "3-0"
b<

c< [["s", [["3-0", ["a", "1"]]]]]
a> XADD s 5-0 a 2 -> "5-0"
b<

a> XADD s 6-0 a 3 -> "6-0"
b< [["s", [["6-0", ["a", "3"]]]]]
"#,
    );
}

#[test]
fn other_changes_of_the_key_do_not_end_the_wait() {
    check(
        r#"
a> XADD s 1-1 a 1 -> "1-1"
b> XREAD BLOCK 0 STREAMS s $
a> XDEL s 1-1 -> 1
a> DEL s -> 1
a> SET s v -> OK
a> DEL s -> 1
b<

a> XADD s 1-1 a 1 -> "1-1"
b<

a> XADD s 1-2 a 1 -> "1-2"
b< [["s", [["1-2", ["a", "1"]]]]]
"#,
    );
}

#[test]
fn the_same_stream_twice() {
    check(
        r#"
b> XREAD BLOCK 0 STREAMS s s $ 0
a> XADD s 1-1 a 1 -> "1-1"
b< [["s", [["1-1", ["a", "1"]]]], ["s", [["1-1", ["a", "1"]]]]]
"#,
    );
}

#[test]
fn as_consumers_of_a_group() {
    check(
        r#"
a> XGROUP CREATE s g $ MKSTREAM -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g c
c> XREADGROUP GROUP g d BLOCK 0 COUNT 1 STREAMS s >
a> XADD s 1-1 a 1 -> "1-1"
b< [["s", [["1-1", ["a", "1"]]]]]
c<

a> XADD s 1-2 a 2 -> "1-2"
c< [["s", [["1-2", ["a", "2"]]]]]
a> XPENDING s g -> [2, "1-1", "1-2", [["c", "1"], ["d", "1"]]]
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s 0 -> [["s", [["1-1", ["a", "1"]]]]]
b> XACK s g 1-1 -> 1
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s 0 -> [["s", []]]
"#,
    );
}

#[test]
fn a_destroyed_group_ends_the_wait() {
    check(
        r#"
a> XGROUP CREATE s g $ MKSTREAM -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
a> XGROUP DESTROY s g -> 1
b< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
a> XGROUP CREATE s g $ -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
a> DEL s -> 1
b< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
a> XGROUP CREATE s g $ MKSTREAM -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
a> SET s v -> OK
b< -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn a_renamed_stream_serves_waiters() {
    check(
        r#"
a> XGROUP CREATE s g $ MKSTREAM -> OK
a> XADD t 1-1 a 1 -> "1-1"
a> XGROUP CREATE t g 0 -> OK
b> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
a> RENAME t s -> OK
b< [["s", [["1-1", ["a", "1"]]]]]
"#,
    );
}
