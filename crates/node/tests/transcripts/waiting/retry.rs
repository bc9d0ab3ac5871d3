//! XREADGROUP CLAIM that waits, also until pending entries are old enough.

use crate::check::check;

/// Entry 1-1 of stream `s` is pending for consumer `dead` of group `g` from the start.
const PENDING: &str = r#"
w> XADD s 1-1 a 1 -> "1-1"
w> XGROUP CREATE s g 0 -> OK
w> XREADGROUP GROUP g dead STREAMS s > -> [["s", [["1-1", ["a", "1"]]]]]
"#;

#[track_caller]
fn check_pending(transcript: &str) {
    check(&format!("{PENDING}{transcript}"));
}

#[test]
fn an_entry_becomes_old_enough_meanwhile() {
    check_pending(
        r#"
@advance 300
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g alice
@advance 699
a<
@deadlines
@advance 5000
@deadlines a
a< [["s", [["1-1", ["a", "1"], 1000, 1]]]]
w> XPENDING s g - + 10 -> [["1-1", "alice", 4999, 2]]
w> INFO clients -> ~~ *blocked_clients:0*total_blocking_keys:0*
"#,
    );
}

#[test]
fn the_wait_times_out_before() {
    check_pending(
        r#"
a> XREADGROUP GROUP g alice BLOCK 600 CLAIM 1000 STREAMS s >
@advance 601
a< nil-array
b> XREADGROUP GROUP g bob BLOCK 400 CLAIM 1000 STREAMS s >
@advance 1000
b< [["s", [["1-1", ["a", "1"], 1000, 1]]]]
"#,
    );
}

#[test]
fn first_come_first_served() {
    check_pending(
        r#"
plain> XREADGROUP GROUP g plain BLOCK 0 STREAMS s >
patient> XREADGROUP GROUP g patient BLOCK 0 CLAIM 3000 STREAMS s >
first> XREADGROUP GROUP g first BLOCK 0 CLAIM 1000 COUNT 5 STREAMS s >
second> XREADGROUP GROUP g second BLOCK 0 CLAIM 1000 STREAMS s >
@advance 1000
first< [["s", [["1-1", ["a", "1"], 1000, 1]]]]
@deadlines first second
# The other clients have later deadlines since then.
@advance 1999
patient<
second< [["s", [["1-1", ["a", "1"], 1000, 2]]]]
@deadlines second
@advance 2000
# Each of its deadlines was correct when it was set.
@deadlines patient patient
@advance 10000
patient< [["s", [["1-1", ["a", "1"], 3000, 3]]]]
plain<
@deadlines patient
"#,
    );
}

#[test]
fn other_clients_change_the_entry_meanwhile() {
    let meanwhile = [
        // Claimed, which resets its idle time.
        ("XCLAIM s g other 0 1-1 JUSTID", r#"["1-1"]"#, 1),
        ("XAUTOCLAIM s g other 0 - JUSTID", r#"["0-0", ["1-1"], []]"#, 1),
        // The last owner asks for it again.
        ("XREADGROUP GROUP g dead STREAMS s 0", r#"[["s", [["1-1", ["a", "1"]]]]]"#, 2),
        (
            "XREADGROUP GROUP g x CLAIM 1 STREAMS s >",
            r#"[["s", [["1-1", ["a", "1"], 500, 1]]]]"#,
            2,
        ),
    ];
    for (request, reply, deliveries) in meanwhile {
        check_pending(&format!(
            r#"
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
@advance 500
w> {request} -> {reply}
@advance 999
a<
@advance 1
a< [["s", [["1-1", ["a", "1"], 1000, {deliveries}]]]]
"#
        ));
    }
}

#[test]
fn the_entry_is_removed_meanwhile() {
    let ends = [
        ("XACK s g 1-1", "1"),
        ("XDEL s 1-1", "1"),
        ("XTRIM s MAXLEN 0", "1"),
        ("XGROUP DELCONSUMER s g dead", "1"),
        ("XACKDEL s g IDS 1 1-1", "[1]"),
    ];
    for (request, reply) in ends {
        check_pending(&format!(
            r#"
a> XREADGROUP GROUP g alice BLOCK 5000 CLAIM 1000 STREAMS s >
@advance 500
w> {request} -> {reply}
@advance 4500
a<
@advance 1
a< nil-array
"#
        ));
    }
}

#[test]
fn a_wait_for_an_acknowledged_entry_checks_once_in_vain() {
    check_pending(
        r#"
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
@advance 500
w> XACK s g 1-1 -> 1
@advance 60000
@deadlines a
w> XADD s 2-2 f v -> "2-2"
a< [["s", [["2-2", ["f", "v"], 0, 0]]]]
"#,
    );
}

#[test]
fn an_entry_is_delivered_while_nothing_is_pending() {
    check(
        r#"
w> XGROUP CREATE s g 0 MKSTREAM -> OK
plain> XREADGROUP GROUP g plain BLOCK 0 STREAMS s >
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 100 STREAMS s >
@advance 1000
@deadlines
w> XADD s 1-1 a 1 -> "1-1"
plain< [["s", [["1-1", ["a", "1"]]]]]
@advance 99
a<
@advance 1
a< [["s", [["1-1", ["a", "1"], 100, 1]]]]
@deadlines a
"#,
    );
}

#[test]
fn an_entry_is_made_older() {
    check_pending(
        r#"
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
w> XCLAIM s g other 0 1-1 IDLE 400 JUSTID -> ["1-1"]
@advance 599
a<
@advance 1
a< [["s", [["1-1", ["a", "1"], 1000, 1]]]]
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
w> XCLAIM s g other 0 1-1 IDLE 1000 JUSTID -> ["1-1"]
a< [["s", [["1-1", ["a", "1"], 1000, 2]]]]
"#,
    );
}

#[test]
fn entries_of_any_age_are_claimed() {
    check(
        r#"
w> XGROUP CREATE s g 0 MKSTREAM -> OK
plain> XREADGROUP GROUP g plain BLOCK 0 STREAMS s >
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 0 STREAMS s >
w> XADD s 1-1 a 1 -> "1-1"
plain< [["s", [["1-1", ["a", "1"]]]]]
a< [["s", [["1-1", ["a", "1"], 0, 1]]]]
never> XREADGROUP GROUP g never BLOCK 2000 CLAIM 9223372036854775807 STREAMS s >
@advance 2000
@deadlines
@advance 1
@deadlines never
never< nil-array
"#,
    );
}

#[test]
fn the_earliest_of_several_streams_counts() {
    check_pending(
        r#"
@advance 100
w> XADD t 2-2 b 2 -> "2-2"
w> XGROUP CREATE t g 0 -> OK
w> XREADGROUP GROUP g dead STREAMS t > -> [["t", [["2-2", ["b", "2"]]]]]
@advance 100
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS t s > >
w> XCLAIM s g other 0 1-1 -> [["1-1", ["a", "1"]]]
@advance 899
a<
@advance 1
a< [["t", [["2-2", ["b", "2"], 1000, 1]]]]
@deadlines a a
"#,
    );
}

#[test]
fn the_group_or_the_stream_is_removed() {
    let gone = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    for (request, reply) in [("DEL s", "1"), ("XGROUP DESTROY s g", "1"), ("FLUSHALL", "OK")] {
        check_pending(&format!(
            "
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
w> {request} -> {reply}
a< {gone}
@advance 2000
@deadlines
"
        ));
    }
    check_pending(&format!(
        "
w> PEXPIRE s 900 -> 1
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
@advance 1000
a< {gone}
"
    ));
}

#[test]
fn a_swapped_or_renamed_stream_keeps_its_pending_entries() {
    check_pending(
        r#"
w> XGROUP CREATE t g 0 MKSTREAM -> OK
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS t >
w> RENAME s t -> OK
@advance 1000
a< [["t", [["1-1", ["a", "1"], 1000, 1]]]]
w> SELECT 1 -> OK
w> XGROUP CREATE t g 0 MKSTREAM -> OK
b> SELECT 1 -> OK
b> XREADGROUP GROUP g bob BLOCK 0 CLAIM 500 STREAMS t >
w> SWAPDB 0 1 -> OK
@advance 500
b< [["t", [["1-1", ["a", "1"], 500, 2]]]]
"#,
    );
}

#[test]
fn clients_that_are_unblocked_killed_or_disconnected() {
    check_pending(
        r#"
a> CLIENT ID -> 2
a> XREADGROUP GROUP g alice BLOCK 0 CLAIM 1000 STREAMS s >
b> CLIENT ID -> 3
b> XREADGROUP GROUP g bob BLOCK 0 CLAIM 1000 STREAMS s >
c> XREADGROUP GROUP g carol BLOCK 0 CLAIM 1000 STREAMS s >
@close c
d> XREADGROUP GROUP g dave BLOCK 0 CLAIM 1000 STREAMS s >
w> CLIENT UNBLOCK 2 ERROR -> 1
a< -UNBLOCKED client unblocked via CLIENT UNBLOCK
w> CLIENT KILL ID 3 -> 1
@advance 1000
d< [["s", [["1-1", ["a", "1"], 1000, 1]]]]
"#,
    );
}

#[test]
fn no_entry_is_claimed_during_a_pause() {
    check_pending(
        r#"
a> XREADGROUP GROUP g alice BLOCK 2500 CLAIM 1000 STREAMS s >
w> CLIENT PAUSE 2000 WRITE -> OK
@advance 1500
a<
w> XPENDING s g -> [1, "1-1", "1-1", [["dead", "1"]]]
@advance 500
a< [["s", [["1-1", ["a", "1"], 2000, 1]]]]
a> XREADGROUP GROUP g alice BLOCK 1500 CLAIM 1000 STREAMS s >
w> CLIENT PAUSE 2000 WRITE -> OK
@advance 1501
a< nil-array
"#,
    );
}
