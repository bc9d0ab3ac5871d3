//! Waiting readers of streams; readers of groups also get an error when the key is removed.

use crate::check::check;

#[test]
fn all_readers_of_a_stream_are_served() {
    check(
        r#"
a> XREAD BLOCK 0 STREAMS s t $ $
b> XREAD BLOCK 0 COUNT 1 STREAMS t s 0 0-5
c> SET t text -> OK
c> DEL t -> 1
c> XREAD BLOCK 100 STREAMS s $
w> XADD s 0-3 f v -> "0-3"
a< [["s", [["0-3", ["f", "v"]]]]]
b<
c< [["s", [["0-3", ["f", "v"]]]]]
w> XADD s 0-6 f w -> "0-6"
b< [["s", [["0-6", ["f", "w"]]]]]
w> INFO clients -> ~~ *blocked_clients:0*total_blocking_keys:0*
"#,
    );
}

#[test]
fn a_group_that_is_set_back_serves_readers_with_the_next_entry() {
    check(
        r#"
w> XADD s 0-1 f v -> "0-1"
w> XGROUP CREATE s g $ -> OK
a> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
w> XGROUP SETID s g 0 -> OK
a<
w> XADD s 0-2 f w -> "0-2"
a< [["s", [["0-1", ["f", "v"]], ["0-2", ["f", "w"]]]]]
"#,
    );
}

#[test]
fn a_group_reader_gets_an_error_when_its_stream_is_removed() {
    let gone = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let ends = [
        ("DEL s", "1", gone),
        ("SET s text", "OK", wrong),
        ("XGROUP DESTROY s g", "1", gone),
        ("RENAME s other", "OK", gone),
        ("FLUSHALL", "OK", gone),
        ("SWAPDB 0 1", "OK", gone),
        ("EVAL \"return redis.call('FLUSHALL')\" 0", "OK", gone),
        ("EVAL \"return redis.call('FLUSHDB', 'ASYNC')\" 0", "OK", gone),
        ("EVAL \"return redis.call('SWAPDB', 0, 1)\" 1 other", "OK", gone),
        ("GETDEL missing", "nil", ""),
        ("XADD s 7-7 f v", "\"7-7\"", "[[\"s\", [[\"7-7\", [\"f\", \"v\"]]]]]"),
    ];
    for (request, reply, heard) in ends {
        check(&format!(
            "
w> XGROUP CREATE s g $ MKSTREAM -> OK
a> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
w> INFO clients -> ~~ *blocked_clients:1*total_blocking_keys:1*_on_nokey:1*
w> {request} -> {reply}
a< {heard}
"
        ));
    }
}

#[test]
fn a_group_reader_gets_an_error_when_its_stream_expires() {
    check(
        r#"
w> XGROUP CREATE s g $ MKSTREAM -> OK
w> PEXPIRE s 100 -> 1
a> XREADGROUP GROUP g consumer BLOCK 0 STREAMS other s > >
a< -NOGROUP No such key 'other' or consumer group 'g' in XREADGROUP with GROUP option
a> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
@advance 101
# No command has found the expired key yet.
a<
w> EXISTS s -> 0
a< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
w> XGROUP CREATE s g $ MKSTREAM -> OK
w> PEXPIRE s 100 -> 1
a> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
@advance 101
w> SCAN 0 COUNT 1000 -> ~~ *
w> KEYS * -> []
w> RANDOMKEY -> nil
a< -NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
"#,
    );
}

/// As in Redis, which repeats the command.
#[test]
fn all_streams_with_entries_are_in_the_reply() {
    let both = "[[\"a\", [[\"1-1\", [\"f\", \"v\"]]]], [\"b\", [[\"1-1\", [\"f\", \"v\"]]]]]";
    let [wrong, gone] = [
        "-WRONGTYPE Operation against a key holding the wrong kind of value",
        "-NOGROUP No such key 'b' or consumer group 'g' in XREADGROUP with GROUP option",
    ];
    let ends = [
        ("XADD b 1-1 f v", "\"1-1\"", "XADD a 1-1 f v", "\"1-1\"", both, both),
        ("XADD a 1-1 f v", "\"1-1\"", "XADD b 1-1 f v", "\"1-1\"", both, both),
        ("XADD a 1-1 f v", "\"1-1\"", "SET b text", "OK", wrong, wrong),
        ("SET b text", "OK", "XADD a 1-1 f v", "\"1-1\"", wrong, wrong),
        ("XADD a 1-1 f v", "\"1-1\"", "DEL b", "1", "[[\"a\", [[\"1-1\", [\"f\", \"v\"]]]]]", gone),
    ];
    for (one, one_reply, other, other_reply, read, of_group) in ends {
        check(&format!(
            "
w> XGROUP CREATE a g $ MKSTREAM -> OK
w> XGROUP CREATE b g $ MKSTREAM -> OK
r> XREAD BLOCK 0 STREAMS a b $ $
s> XREADGROUP GROUP g consumer BLOCK 0 STREAMS a b > >
w> MULTI -> OK
w> {one} -> QUEUED
w> {other} -> QUEUED
w> EXEC -> [{one_reply}, {other_reply}]
r< {read}
s< {of_group}
"
        ));
    }
    check(&format!(
        "
r> XREAD BLOCK 0 STREAMS a b 0 0
w> SET b text -> OK
r<
w> XADD a 1-1 f v -> \"1-1\"
r< {wrong}
"
    ));
}

/// Entries that another reader of the group gets are pending, which counts for a waiter with CLAIM.
#[test]
fn entries_taken_from_several_streams_can_be_claimed() {
    check(
        r#"
w> XGROUP CREATE a g $ MKSTREAM -> OK
w> XGROUP CREATE b g $ MKSTREAM -> OK
r> XREADGROUP GROUP g taker BLOCK 0 STREAMS a b > >
s> XREADGROUP GROUP g claimer BLOCK 0 CLAIM 100 STREAMS b >
w> MULTI -> OK
w> XADD a 1-1 f v -> QUEUED
w> XADD b 1-1 f v -> QUEUED
w> EXEC -> ["1-1", "1-1"]
r< [["a", [["1-1", ["f", "v"]]]], ["b", [["1-1", ["f", "v"]]]]]
s<
@advance 101
@deadlines s
s< [["b", [["1-1", ["f", "v"], 100, 1]]]]
"#,
    );
}
