//! Clients that wait for members of sorted sets.

use crate::check::check;

#[test]
fn members_go_to_those_who_waited_longest() {
    check(
        r#"
@client a
> BZPOPMIN k 0
@client b
> BZPOPMAX other k 0
@client c
> BZMPOP 0 2 other k MIN COUNT 2
@client d
> BZPOPMIN k 0
@client w
> ZADD k 1 one 2 two 3 three 4 four
4
! zadd:k => ZADD k 1 one 2 two 3 three 4 four
! zpopmin:k => ZPOPMIN k
! zpopmax:k => ZPOPMAX k
! zpopmin:k del:k => ZPOPMIN k 2
@hears a
["k", "one", "1"]
@hears b
["k", "four", "4"]
@hears c
["k", [["two", "2"], ["three", "3"]]]
@hears d
> EXISTS k
0
> ZINCRBY k 2.5 late
"2.5"
! zincr:k => ZINCRBY k 2.5 late
! zpopmin:k del:k => ZPOPMIN k
@hears d
["k", "late", "2.5"]
"#,
    );
}

#[test]
fn replies_in_resp3() {
    check(
        r#"
@client a
> HELLO 3
~~ {*}
> BZPOPMAX k 0
@client b
> HELLO 3
~~ {*}
> BZMPOP 0 1 k MAX
@client w
> ZADD k 1 one 2.5 two
2
@hears a
["k", "two", ,2.5]
@hears b
["k", [["one", ,1]]]
"#,
    );
}

#[test]
fn every_way_to_make_a_set_serves() {
    check(
        r#"
@client a
> BZPOPMIN d 0
@client w
> ZADD src 1 x 2 y
2
> ZUNIONSTORE d 1 src
2
! zunionstore:d => ZUNIONSTORE d 1 src
! zpopmin:d => ZPOPMIN d
@hears a
["d", "x", "1"]
> DEL d
1
@client a
> BZPOPMIN d 0
@client w
> ZRANGESTORE d src 1 1
1
@hears a
["d", "y", "2"]
@client a
> BZPOPMIN d 0
@client w
> RENAME src d
OK
@hears a
["d", "x", "1"]
"#,
    );
}

#[test]
fn what_is_no_sorted_set_serves_nobody() {
    check(
        r#"
@client a
> BZPOPMIN k 1
@client w
> SET k text
OK
@hears a
> DEL k
1
> RPUSH k x
1
> DEL k
1
> SADD k x
1
> DEL k
1
@hears a
@advance 999
@hears a
@advance 1
@hears a
nil-array
"#,
    );
}
