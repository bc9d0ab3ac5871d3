//! Unions, intersections and differences.

use super::check_both;
use crate::check::check;

#[test]
fn unions() {
    check_both(
        r#"
> ZADD a 1 x 2 y 3 z -> 3
> ZADD b 10 y 20 z 30 w -> 3
> ZUNION 2 a b -> ["x", "y", "z", "w"]
> ZUNION 2 a b WITHSCORES -> ["x", "1", "y", "12", "z", "23", "w", "30"]
> ZUNION 2 a b WEIGHTS 2 0.5 WITHSCORES -> ["x", "2", "y", "9", "w", "15", "z", "16"]
> ZUNION 2 a b AGGREGATE MIN WITHSCORES -> ["x", "1", "y", "2", "z", "3", "w", "30"]
> ZUNION 2 a b withscores aggregate max weights 1 -1 -> ["w", "-30", "x", "1", "y", "2", "z", "3"]
> ZUNION 2 a a WITHSCORES -> ["x", "2", "y", "4", "z", "6"]
> ZUNION 3 a none b -> ["x", "y", "z", "w"]
> ZUNION 1 none -> []
> ZUNION 1 a -> ["x", "y", "z"]
> ZUNIONSTORE d 2 a b -> 4
! zunionstore:d => ZUNIONSTORE d 2 a b
> ZRANGE d 0 -1 WITHSCORES -> ["x", "1", "y", "12", "z", "23", "w", "30"]
> ZUNIONSTORE d 2 a b WEIGHTS 1 10 AGGREGATE MAX -> 4
> ZRANGE d 0 -1 WITHSCORES -> ["x", "1", "y", "100", "z", "200", "w", "300"]
> ZUNIONSTORE a 2 a b AGGREGATE SUM -> 4
> ZRANGE a 0 -1 WITHSCORES -> ["x", "1", "y", "12", "z", "23", "w", "30"]
> SET d text EX 100 -> OK
> ZUNIONSTORE d 1 b -> 3
> TTL d -> -1
> ZUNIONSTORE d 1 none -> 0
! del:d => ZUNIONSTORE d 1 none
> EXISTS d -> 0
> ZUNIONSTORE d 1 none -> 0
> HELLO 3 -> ~~ {*}
> ZUNION 1 b WITHSCORES -> [["y", ,10], ["z", ,20], ["w", ,30]]
> ZUNION 1 b -> ["y", "z", "w"]
> ZUNION 1 none WITHSCORES -> []
"#,
    );
}

#[test]
fn intersections() {
    check_both(
        r#"
> ZADD a 1 x 2 y 3 z -> 3
> ZADD b 10 y 20 z 30 w -> 3
> ZINTER 2 a b -> ["y", "z"]
> ZINTER 2 a b WITHSCORES -> ["y", "12", "z", "23"]
> ZINTER 2 a b WEIGHTS 2 0.5 WITHSCORES -> ["y", "9", "z", "16"]
> ZINTER 2 a b AGGREGATE MIN WITHSCORES -> ["y", "2", "z", "3"]
> ZINTER 2 b a AGGREGATE MAX WITHSCORES -> ["y", "10", "z", "20"]
> ZINTER 2 a a WITHSCORES -> ["x", "2", "y", "4", "z", "6"]
> ZINTER 2 a none -> []
> ZINTER 1 a -> ["x", "y", "z"]
> ZINTERCARD 2 a b -> 2
> ZINTERCARD 2 a b LIMIT 1 -> 1
> ZINTERCARD 2 a b LIMIT 0 -> 2
> ZINTERCARD 2 a b limit 9 -> 2
> ZINTERCARD 2 a none -> 0
> ZINTERCARD 1 a -> 3
> ZINTERSTORE d 2 a b -> 2
! zinterstore:d => ZINTERSTORE d 2 a b
> ZRANGE d 0 -1 WITHSCORES -> ["y", "12", "z", "23"]
> ZINTERSTORE d 2 a b WEIGHTS 1 10 AGGREGATE MIN -> 2
> ZRANGE d 0 -1 WITHSCORES -> ["y", "2", "z", "3"]
> ZINTERSTORE d 2 a none -> 0
! del:d => ZINTERSTORE d 2 a none
> ZINTERSTORE a 2 a b -> 2
> ZRANGE a 0 -1 WITHSCORES -> ["y", "12", "z", "23"]
"#,
    );
}

#[test]
fn differences() {
    check_both(
        r#"
> ZADD a 1 x 2 y 3 z -> 3
> ZADD b 10 y -> 1
> ZADD c 5 z 6 w -> 2
> ZDIFF 2 a b -> ["x", "z"]
> ZDIFF 3 a b c WITHSCORES -> ["x", "1"]
> ZDIFF 2 a none WITHSCORES -> ["x", "1", "y", "2", "z", "3"]
> ZDIFF 2 none a -> []
> ZDIFF 2 a a -> []
> ZDIFF 1 a -> ["x", "y", "z"]
> ZDIFFSTORE d 2 a b -> 2
! zdiffstore:d => ZDIFFSTORE d 2 a b
> ZRANGE d 0 -1 WITHSCORES -> ["x", "1", "z", "3"]
> ZDIFFSTORE d 2 a a -> 0
! del:d => ZDIFFSTORE d 2 a a
> ZDIFFSTORE d 2 a a -> 0
> ZDIFFSTORE a 3 a b c -> 1
> ZRANGE a 0 -1 WITHSCORES -> ["x", "1"]
"#,
    );
}

#[test]
fn infinities_give_no_nan() {
    check_both(
        r#"
> ZADD a inf x 1 y -> 2
> ZADD b -inf x 2 y -> 2
> ZUNION 2 a b WITHSCORES -> ["x", "0", "y", "3"]
> ZINTER 2 a b WITHSCORES -> ["x", "0", "y", "3"]
> ZUNION 2 a b WEIGHTS 0 0 WITHSCORES -> ["x", "0", "y", "0"]
> ZINTER 2 a b WEIGHTS inf 0 WITHSCORES -> ["x", "0", "y", "inf"]
> ZUNIONSTORE d 2 a b WEIGHTS inf -inf -> 2
> ZRANGE d 0 -1 WITHSCORES -> ["y", "0", "x", "inf"]
"#,
    );
}

#[test]
fn results_have_the_encoding_of_their_size() {
    check(
        r#"
> CONFIG SET zset-max-listpack-entries 3 zset-max-listpack-value 5 -> OK
> ZADD a 1 x 2 y 3 z 4 u -> 4
> ZADD b 1 x 2 y 3 z 4 longer -> 4
> OBJECT ENCODING a -> "skiplist"
> ZINTERSTORE d 2 a b -> 3
> OBJECT ENCODING d -> "listpack"
> ZUNIONSTORE d 2 a b -> 5
> OBJECT ENCODING d -> "skiplist"
> ZDIFFSTORE d 2 b a -> 1
> OBJECT ENCODING d -> "skiplist"
> ZRANGESTORE d a 0 2 -> 3
> OBJECT ENCODING d -> "listpack"
> ZRANGESTORE d a 0 3 -> 4
> OBJECT ENCODING d -> "skiplist"
> ZRANGESTORE d b -1 -1 -> 1
> OBJECT ENCODING d -> "skiplist"
"#,
    );
}

#[test]
fn errors_of_combinations() {
    check(
        r#"
> SET s 1 -> OK
> ZADD z 1 a -> 1
> ZUNION 1 s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZINTER 2 none s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZDIFF 2 z s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZINTERCARD 1 s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNIONSTORE d 1 s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNION 1 s foo -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZUNION 0 z -> -ERR at least 1 input key is needed for 'zunion' command
> ZINTER 0 z -> -ERR at least 1 input key is needed for 'zinter' command
> ZDIFF 0 z -> -ERR at least 1 input key is needed for 'zdiff' command
> ZINTERCARD 0 z -> -ERR at least 1 input key is needed for 'zintercard' command
> ZUNIONSTORE d 0 z -> -ERR at least 1 input key is needed for 'zunionstore' command
> ZINTERSTORE d 0 z -> -ERR at least 1 input key is needed for 'zinterstore' command
> ZDIFFSTORE d 0 z -> -ERR at least 1 input key is needed for 'zdiffstore' command
> ZUNION -1 z -> -ERR at least 1 input key is needed for 'zunion' command
> ZUNION x z -> -ERR value is not an integer or out of range
> ZUNION 2 z -> -ERR syntax error
> ZUNION 9223372036854775807 z -> -ERR syntax error
> ZUNIONSTORE d 2 z -> -ERR syntax error
> ZUNION 1 -> -ERR wrong number of arguments for 'zunion' command
> ZUNIONSTORE d 1 -> -ERR wrong number of arguments for 'zunionstore' command
"#,
    );
}

#[test]
fn syntax_errors_of_combinations() {
    check(
        r#"
> ZADD z 1 a -> 1
> ZUNION 1 z WEIGHTS -> -ERR syntax error
> ZUNION 1 z WEIGHTS x -> -ERR weight value is not a float
> ZUNION 1 z WEIGHTS nan -> -ERR weight value is not a float
> ZUNION 1 z WEIGHTS 1 2 -> -ERR syntax error
> ZUNION 1 z AGGREGATE -> -ERR syntax error
> ZUNION 1 z AGGREGATE foo -> -ERR syntax error
> ZUNION 1 z LIMIT 1 -> -ERR syntax error
> ZUNION 1 z foo -> -ERR syntax error
> ZDIFF 1 z WEIGHTS 1 -> -ERR syntax error
> ZDIFF 1 z AGGREGATE SUM -> -ERR syntax error
> ZINTERCARD 1 z WITHSCORES -> -ERR syntax error
> ZINTERCARD 1 z LIMIT -> -ERR syntax error
> ZINTERCARD 1 z LIMIT -1 -> -ERR LIMIT can't be negative
> ZINTERCARD 1 z LIMIT x -> -ERR LIMIT can't be negative
> ZINTERCARD 1 z WEIGHTS 1 -> -ERR syntax error
> ZUNIONSTORE d 1 z WITHSCORES -> -ERR syntax error
> ZDIFFSTORE d 1 z WEIGHTS 1 -> -ERR syntax error
> ZUNION 1 z WITHSCORES WEIGHTS 2 WEIGHTS 3 -> ["a", "3"]
"#,
    );
}

#[test]
fn members_of_plain_sets_have_score_one() {
    check_both(
        r#"
> ZADD z 1 a 2 b 3 7 -> 3
> SADD ints 7 8 9 -> 3
> SADD names a c -> 2
> ZUNION 3 z ints names WITHSCORES -> ["8", "1", "9", "1", "c", "1", "a", "2", "b", "2", "7", "4"]
> ZINTER 2 z names WITHSCORES -> ["a", "2"]
> ZINTER 2 ints z WEIGHTS 10 100 WITHSCORES -> ["7", "310"]
> ZDIFF 3 z names ints WITHSCORES -> ["b", "2"]
> ZDIFF 2 names z WITHSCORES -> ["c", "1"]
> ZUNION 1 ints WITHSCORES -> ["7", "1", "8", "1", "9", "1"]
> ZUNIONSTORE d 2 z names WEIGHTS 2 0.5 AGGREGATE MAX -> 4
> ZRANGE d 0 -1 WITHSCORES -> ["c", "0.5", "a", "2", "b", "4", "7", "6"]
> ZINTERSTORE d 2 ints z -> 1
> ZRANGE d 0 -1 WITHSCORES -> ["7", "4"]
> ZDIFFSTORE d 2 ints z -> 2
> ZRANGE d 0 -1 WITHSCORES -> ["8", "1", "9", "1"]
> ZINTERCARD 2 names z -> 1
> CONFIG SET set-max-listpack-entries 0 set-max-intset-entries 0 -> OK
> SADD table a b x 7 -> 4
> ZINTER 2 z table WITHSCORES -> ["a", "2", "b", "3", "7", "4"]
> ZINTERCARD 3 z table ints -> 1
> ZDIFF 2 table z -> ["x"]
"#,
    );
}
