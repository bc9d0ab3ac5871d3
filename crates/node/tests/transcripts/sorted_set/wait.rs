//! Clients that wait for members of sorted sets.

use crate::check::check;

#[test]
fn the_longest_waiting_client_is_served_first() {
    check(
        r#"
a> BZPOPMIN k 0
b> BZPOPMAX other k 0
c> BZMPOP 0 2 other k MIN COUNT 2
d> BZPOPMIN k 0
w> ZADD k 1 one 2 two 3 three 4 four -> 4
! zadd:k => ZADD k 1 one 2 two 3 three 4 four
! zpopmin:k => ZPOPMIN k
! zpopmax:k => ZPOPMAX k
! zpopmin:k del:k => ZPOPMIN k 2
a< ["k", "one", "1"]
b< ["k", "four", "4"]
c< ["k", [["two", "2"], ["three", "3"]]]
d<
w> EXISTS k -> 0
w> ZINCRBY k 2.5 late -> "2.5"
! zincr:k => ZINCRBY k 2.5 late
! zpopmin:k del:k => ZPOPMIN k
d< ["k", "late", "2.5"]
"#,
    );
}

#[test]
fn replies_in_resp3() {
    check(
        r#"
a> HELLO 3 -> ~~ {*}
a> BZPOPMAX k 0
b> HELLO 3 -> ~~ {*}
b> BZMPOP 0 1 k MAX
w> ZADD k 1 one 2.5 two -> 2
a< ["k", "two", ,2.5]
b< ["k", [["one", ,1]]]
"#,
    );
}

#[test]
fn every_command_that_creates_a_sorted_set_serves_waiters() {
    check(
        r#"
a> BZPOPMIN d 0
w> ZADD src 1 x 2 y -> 2
w> ZUNIONSTORE d 1 src -> 2
! zunionstore:d => ZUNIONSTORE d 1 src
! zpopmin:d => ZPOPMIN d
a< ["d", "x", "1"]
w> DEL d -> 1
a> BZPOPMIN d 0
w> ZRANGESTORE d src 1 1 -> 1
a< ["d", "y", "2"]
a> BZPOPMIN d 0
w> RENAME src d -> OK
a< ["d", "x", "1"]
"#,
    );
}

#[test]
fn other_types_do_not_serve_waiters() {
    check(
        r#"
a> BZPOPMIN k 1
w> SET k text -> OK
a<
w> DEL k -> 1
w> RPUSH k x -> 1
w> DEL k -> 1
w> SADD k x -> 1
w> DEL k -> 1
a<
@advance 1000
a<
@advance 1
a< nil-array
"#,
    );
}
