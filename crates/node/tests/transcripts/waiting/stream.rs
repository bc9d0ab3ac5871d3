//! Readers of streams that wait; those of groups also hear of the end of a key.

use crate::check::check;

#[test]
fn all_readers_of_a_stream_are_served() {
    check(
        r#"
@client a
> XREAD BLOCK 0 STREAMS s t $ $
@client b
> XREAD BLOCK 0 COUNT 1 STREAMS t s 0 0-5
@client c
> SET t text
OK
> DEL t
1
> XREAD BLOCK 100 STREAMS s $
@client w
> XADD s 0-3 f v
"0-3"
@hears a
[["s", [["0-3", ["f", "v"]]]]]
@hears b
@hears c
[["s", [["0-3", ["f", "v"]]]]]
> XADD s 0-6 f w
"0-6"
@hears b
[["s", [["0-6", ["f", "w"]]]]]
> INFO clients
~~ *blocked_clients:0*total_blocking_keys:0*
"#,
    );
}

#[test]
fn a_group_s_reader_hears_of_the_end_of_its_stream() {
    let gone = "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    let ends = [
        ("DEL s", "1", gone),
        ("SET s text", "OK", wrong),
        ("XGROUP DESTROY s g", "1", gone),
        ("RENAME s other", "OK", gone),
        ("FLUSHALL", "OK", gone),
        ("SWAPDB 0 1", "OK", gone),
        ("GETDEL missing", "nil", ""),
        ("XADD s 7-7 f v", "\"7-7\"", "[[\"s\", [[\"7-7\", [\"f\", \"v\"]]]]]"),
    ];
    for (request, reply, heard) in ends {
        check(&format!(
            "
@client w
> XGROUP CREATE s g $ MKSTREAM
OK
@client a
> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
@client w
> INFO clients
~~ *blocked_clients:1*total_blocking_keys:1*_on_nokey:1*
> {request}
{reply}
@hears a
{heard}
"
        ));
    }
}

#[test]
fn a_group_s_reader_hears_of_an_expired_stream() {
    check(
        r#"
@client w
> XGROUP CREATE s g $ MKSTREAM
OK
> PEXPIRE s 100
1
@client a
> XREADGROUP GROUP g consumer BLOCK 0 STREAMS other s > >
-NOGROUP No such key 'other' or consumer group 'g' in XREADGROUP with GROUP option
> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
@advance 101
# Nobody has noticed yet.
@hears a
@client w
> EXISTS s
0
@hears a
-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
> XGROUP CREATE s g $ MKSTREAM
OK
> PEXPIRE s 100
1
@client a
> XREADGROUP GROUP g consumer BLOCK 0 STREAMS s >
@advance 101
@client w
> SCAN 0 COUNT 1000
~~ *
> KEYS *
[]
> RANDOMKEY
nil
@hears a
-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option
"#,
    );
}
