//! XREAD and XREADGROUP that wait.

use crate::check::check;

#[test]
fn for_an_entry() {
    check(
        r#"
> XADD s 1-1 a 1
"1-1"
@client b
> XREAD BLOCK 0 STREAMS s $
@client c
> XREAD BLOCK 0 COUNT 1 STREAMS t s 0 $
@client a
> XADD s 1-2 a 2
"1-2"
@hears b
[["s", [["1-2", ["a", "2"]]]]]
@hears c
[["s", [["1-2", ["a", "2"]]]]]
> XADD s 1-3 a 3
"1-3"
@hears b

"#,
    );
}

#[test]
fn in_resp3_and_until_a_time() {
    check(
        r#"
@client b
> HELLO 3
~~ {*}
> XREAD BLOCK 100 STREAMS s 0
@client a
> XADD s 1-2 a 2
"1-2"
@hears b
{"s": [["1-2", ["a", "2"]]]}
"#,
    );
}

#[test]
fn for_what_is_behind_an_identifier() {
    check(
        r#"
@client b
> XREAD BLOCK 0 STREAMS s 5-0
@client c
> XREAD BLOCK 0 STREAMS s +
@client a
> XADD s 3-0 a 1
"3-0"
@hears b

@hears c
[["s", [["3-0", ["a", "1"]]]]]
> XADD s 5-0 a 2
"5-0"
@hears b

> XADD s 6-0 a 3
"6-0"
@hears b
[["s", [["6-0", ["a", "3"]]]]]
"#,
    );
}

#[test]
fn other_changes_of_the_key_do_not_end_the_wait() {
    check(
        r#"
> XADD s 1-1 a 1
"1-1"
@client b
> XREAD BLOCK 0 STREAMS s $
@client a
> XDEL s 1-1
1
> DEL s
1
> SET s v
OK
> DEL s
1
@hears b

> XADD s 1-1 a 1
"1-1"
@hears b

> XADD s 1-2 a 1
"1-2"
@hears b
[["s", [["1-2", ["a", "1"]]]]]
"#,
    );
}

#[test]
fn the_same_stream_twice() {
    check(
        r#"
@client b
> XREAD BLOCK 0 STREAMS s s $ 0
@client a
> XADD s 1-1 a 1
"1-1"
@hears b
[["s", [["1-1", ["a", "1"]]]], ["s", [["1-1", ["a", "1"]]]]]
"#,
    );
}

#[test]
fn as_consumers_of_a_group() {
    check(
        r#"
> XGROUP CREATE s g $ MKSTREAM
OK
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
! xgroup-createconsumer:s => XGROUP CREATECONSUMER s g c
@client c
> XREADGROUP GROUP g d BLOCK 0 COUNT 1 STREAMS s >
@client a
> XADD s 1-1 a 1
"1-1"
@hears b
[["s", [["1-1", ["a", "1"]]]]]
@hears c

> XADD s 1-2 a 2
"1-2"
@hears c
[["s", [["1-2", ["a", "2"]]]]]
> XPENDING s g
[2, "1-1", "1-2", [["c", "1"], ["d", "1"]]]
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s 0
[["s", [["1-1", ["a", "1"]]]]]
> XACK s g 1-1
1
> XREADGROUP GROUP g c BLOCK 0 STREAMS s 0
[["s", []]]
"#,
    );
}

#[test]
fn a_group_that_goes_ends_the_wait() {
    check(
        r#"
> XGROUP CREATE s g $ MKSTREAM
OK
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
@client a
> XGROUP DESTROY s g
1
@hears b
-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $
OK
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
@client a
> DEL s
1
@hears b
-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $ MKSTREAM
OK
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
@client a
> SET s v
OK
@hears b
-WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn a_stream_that_comes_from_elsewhere() {
    check(
        r#"
> XGROUP CREATE s g $ MKSTREAM
OK
> XADD t 1-1 a 1
"1-1"
> XGROUP CREATE t g 0
OK
@client b
> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
@client a
> RENAME t s
OK
@hears b
[["s", [["1-1", ["a", "1"]]]]]
"#,
    );
}
