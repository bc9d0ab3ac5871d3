//! Ranges of ranks, scores and members, and ZRANGESTORE.

use super::check_both;
use crate::check::check;

#[test]
fn ranges_of_ranks() {
    check_both(
        r#"
> ZADD z 1 a 2 b 3 c 4 d -> 4
> ZRANGE z 0 -1 -> ["a", "b", "c", "d"]
> ZRANGE z 0 0 -> ["a"]
> ZRANGE z 1 2 -> ["b", "c"]
> ZRANGE z -2 -1 -> ["c", "d"]
> ZRANGE z -100 1 -> ["a", "b"]
> ZRANGE z 2 100 -> ["c", "d"]
> ZRANGE z 2 1 -> []
> ZRANGE z 4 9 -> []
> ZRANGE z 0 -5 -> []
> ZRANGE z 0 -1 WITHSCORES -> ["a", "1", "b", "2", "c", "3", "d", "4"]
> ZRANGE z 0 1 REV -> ["d", "c"]
> ZRANGE z -1 -1 rev withscores -> ["a", "1"]
> ZRANGE z 1 -2 REV -> ["c", "b"]
> ZREVRANGE z 0 -1 -> ["d", "c", "b", "a"]
> ZREVRANGE z 0 1 WITHSCORES -> ["d", "4", "c", "3"]
> ZREVRANGE z -2 -1 -> ["b", "a"]
> ZREVRANGE z 5 9 -> []
> ZRANGE none 0 -1 -> []
> ZREVRANGE none 0 -1 WITHSCORES -> []
> HELLO 3 -> ~~ {*}
> ZRANGE z 0 1 WITHSCORES -> [["a", ,1], ["b", ,2]]
> ZREVRANGE z 0 0 WITHSCORES -> [["d", ,4]]
> ZRANGE none 0 -1 -> []
"#,
    );
}

#[test]
fn ranges_of_scores() {
    check_both(
        r#"
> ZADD z -inf low 1 a 2 b 2 c 3.5 d inf high -> 6
> ZRANGEBYSCORE z -inf +inf -> ["low", "a", "b", "c", "d", "high"]
> ZRANGEBYSCORE z (-inf (+inf WITHSCORES -> ["a", "1", "b", "2", "c", "2", "d", "3.5"]
> ZRANGEBYSCORE z 2 2 -> ["b", "c"]
> ZRANGEBYSCORE z (1 (3.5 -> ["b", "c"]
> ZRANGEBYSCORE z (2 2 -> []
> ZRANGEBYSCORE z 3 1 -> []
> ZRANGEBYSCORE z 4 9 -> []
> ZRANGEBYSCORE z -inf inf LIMIT 1 2 -> ["a", "b"]
> ZRANGEBYSCORE z -inf inf LIMIT 1 2 WITHSCORES -> ["a", "1", "b", "2"]
> ZRANGEBYSCORE z -inf inf WITHSCORES LIMIT 4 -1 -> ["d", "3.5", "high", "inf"]
> ZRANGEBYSCORE z -inf inf LIMIT 0 0 -> []
> ZRANGEBYSCORE z -inf inf LIMIT 9 1 -> []
> ZRANGEBYSCORE z -inf inf LIMIT 9223372036854775807 9223372036854775807 -> []
> ZRANGEBYSCORE z -inf inf LIMIT 0 1 LIMIT 1 1 -> ["a"]
> ZREVRANGEBYSCORE z +inf -inf -> ["high", "d", "c", "b", "a", "low"]
> ZREVRANGEBYSCORE z (3.5 1 WITHSCORES -> ["c", "2", "b", "2", "a", "1"]
> ZREVRANGEBYSCORE z inf -inf LIMIT 1 3 -> ["d", "c", "b"]
> ZREVRANGEBYSCORE z 1 2 -> []
> ZRANGE z 1 2 BYSCORE -> ["a", "b", "c"]
> ZRANGE z (1 +inf byscore limit 1 2 withscores -> ["c", "2", "d", "3.5"]
> ZRANGE z 3.5 (1 BYSCORE REV -> ["d", "c", "b"]
> ZRANGE z 1 3.5 BYSCORE REV -> []
> ZRANGE z inf 2 REV BYSCORE LIMIT 1 2 -> ["d", "c"]
> ZRANGEBYSCORE none -inf inf -> []
"#,
    );
}

#[test]
fn ranges_of_members() {
    check_both(
        r#"
> ZADD z 0 alpha 0 bar 0 cool 0 down 0 elephant 0 foo 0 great 0 hill 0 omega -> 9
> ZRANGEBYLEX z - [cool -> ["alpha", "bar", "cool"]
> ZRANGEBYLEX z [bar [down -> ["bar", "cool", "down"]
> ZRANGEBYLEX z (bar (down -> ["cool"]
> ZRANGEBYLEX z [g + -> ["great", "hill", "omega"]
> ZRANGEBYLEX z + - -> []
> ZRANGEBYLEX z - + -> ["alpha", "bar", "cool", "down", "elephant", "foo", "great", "hill", "omega"]
> ZRANGEBYLEX z - + LIMIT 2 2 -> ["cool", "down"]
> ZRANGEBYLEX z - [cool LIMIT 0 -1 -> ["alpha", "bar", "cool"]
> ZRANGEBYLEX z [bar (bar -> []
> ZRANGEBYLEX z [zz + -> []
> ZREVRANGEBYLEX z + [great -> ["omega", "hill", "great"]
> ZREVRANGEBYLEX z (hill (elephant -> ["great", "foo"]
> ZREVRANGEBYLEX z + - LIMIT 1 2 -> ["hill", "great"]
> ZREVRANGEBYLEX z - + -> []
> ZRANGE z [bar [down BYLEX -> ["bar", "cool", "down"]
> ZRANGE z [down [bar BYLEX REV -> ["down", "cool", "bar"]
> ZRANGE z + - bylex rev limit 0 2 -> ["omega", "hill"]
> ZRANGEBYLEX none - + -> []
"#,
    );
}

#[test]
fn offsets_below_zero_of_a_small_set() {
    check(
        r#"
> ZADD z 1 a 2 b 3 c -> 3
> ZRANGEBYSCORE z -inf inf LIMIT -1 2 -> []
> ZREVRANGEBYSCORE z inf -inf LIMIT -1 2 -> []
> ZRANGEBYLEX z - + LIMIT -1 2 -> []
"#,
    );
}

#[test]
fn offsets_below_zero_of_a_big_set() {
    check(
        r#"
> CONFIG SET zset-max-listpack-entries 0 -> OK
> ZADD z 1 a 2 b 3 c 4 d -> 4
> ZRANGEBYSCORE z -inf inf LIMIT -1 2 -> ["d"]
> ZRANGEBYSCORE z -inf inf LIMIT -3 2 -> ["b", "c"]
> ZRANGEBYSCORE z -inf inf LIMIT -5 2 -> []
> ZRANGEBYSCORE z 2 inf LIMIT -3 -1 -> ["b", "c", "d"]
> ZREVRANGEBYSCORE z inf -inf LIMIT -1 2 -> ["a"]
> ZREVRANGEBYSCORE z inf -inf LIMIT -3 2 -> ["c", "b"]
> ZREVRANGEBYSCORE z 3 -inf LIMIT -2 9 -> ["b", "a"]
"#,
    );
}

#[test]
fn zrangestore_of_each_kind() {
    check_both(
        r#"
> ZADD src 1 a 2 b 3 c 4 d -> 4
> ZRANGESTORE dst src 0 1 -> 2
! zrangestore:dst => ZRANGESTORE dst src 0 1
> ZRANGE dst 0 -1 WITHSCORES -> ["a", "1", "b", "2"]
> ZRANGESTORE dst src 0 1 REV -> 2
> ZRANGE dst 0 -1 WITHSCORES -> ["c", "3", "d", "4"]
> ZRANGESTORE dst src (1 3 BYSCORE -> 2
> ZRANGE dst 0 -1 -> ["b", "c"]
> ZRANGESTORE dst src inf 2 BYSCORE REV LIMIT 0 2 -> 2
> ZRANGE dst 0 -1 -> ["c", "d"]
> ZRANGESTORE dst src [a [c BYLEX LIMIT 1 9 -> 2
! zrangestore:dst => DEL dst | ZADD dst 2 b 3 c
> ZRANGE dst 0 -1 -> ["b", "c"]
> ZADD same 0 a 0 b 0 c -> 3
> ZRANGESTORE dst2 same [a [b BYLEX -> 2
! zrangestore:dst2 => ZRANGESTORE dst2 same [a [b BYLEX
> ZRANGESTORE src src 1 2 -> 2
> ZRANGE src 0 -1 WITHSCORES -> ["b", "2", "c", "3"]
> SET dst text EX 100 -> OK
> ZRANGESTORE dst src 0 -1 -> 2
> TTL dst -> -1
> TYPE dst -> zset
> ZRANGESTORE dst src 5 9 -> 0
! del:dst => ZRANGESTORE dst src 5 9
> EXISTS dst -> 0
> ZRANGESTORE dst src 5 9 -> 0
> ZRANGESTORE dst src [x [z BYLEX -> 0
> ZRANGESTORE dst none 0 -1 -> 0
> SET s text -> OK
> ZRANGESTORE dst s 0 -1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGESTORE s none 0 -1 -> 0
> EXISTS s -> 0
"#,
    );
}

#[test]
fn errors_of_ranges() {
    check(
        r#"
> SET s 1 -> OK
> ZRANGE s 0 -1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANGE s 0 -1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGEBYSCORE s 0 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGEBYLEX s - + -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANGE s x y -> -ERR value is not an integer or out of range
> ZRANGE z -> -ERR wrong number of arguments for 'zrange' command
> ZRANGE z 0 -> -ERR wrong number of arguments for 'zrange' command
> ZRANGE z x 1 -> -ERR value is not an integer or out of range
> ZRANGE z 0 1.5 -> -ERR value is not an integer or out of range
> ZRANGE z 0 1 foo -> -ERR syntax error
> ZRANGE z 0 1 LIMIT 0 1
-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGE z 0 1 LIMIT 0 -1 -> []
> ZRANGE z 0 1 LIMIT 0 -> -ERR syntax error
> ZRANGE z 0 1 LIMIT x 1 -> -ERR value is not an integer or out of range
> ZRANGE z 0 1 BYSCORE LIMIT 0 x -> -ERR value is not an integer or out of range
> ZRANGE z - + BYLEX WITHSCORES
-ERR syntax error, WITHSCORES not supported in combination with BYLEX
> ZRANGE z 0 1 BYSCORE BYLEX -> -ERR syntax error
> ZRANGE z 0 1 BYSCORE BYSCORE -> -ERR syntax error
> ZRANGE z 0 1 REV REV -> -ERR syntax error
> ZRANGE z x 1 BYSCORE -> -ERR min or max is not a float
> ZRANGE z a b BYLEX -> -ERR min or max not valid string range item
> ZRANGE z a b BYLEX LIMIT 0 1 WITHSCORES
-ERR syntax error, WITHSCORES not supported in combination with BYLEX
"#,
    );
}

#[test]
fn errors_of_older_ranges_and_zrangestore() {
    check(
        r#"
> ZREVRANGE z 0 1 REV -> -ERR syntax error
> ZREVRANGE z 0 1 BYSCORE -> -ERR syntax error
> ZREVRANGE z 0 1 LIMIT 0 1
-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGEBYSCORE z 0 1 REV -> -ERR syntax error
> ZRANGEBYSCORE z 0 1 BYLEX -> -ERR syntax error
> ZRANGEBYSCORE z 0 x -> -ERR min or max is not a float
> ZRANGEBYSCORE z (x 1 -> -ERR min or max is not a float
> ZRANGEBYSCORE z 0 1 LIMIT 1 -> -ERR syntax error
> ZRANGEBYLEX z - + WITHSCORES
-ERR syntax error, WITHSCORES not supported in combination with BYLEX
> ZRANGEBYLEX z 0 1 -> -ERR min or max not valid string range item
> ZREVRANGEBYLEX z + x -> -ERR min or max not valid string range item
> ZREVRANGEBYSCORE z 1 nan -> -ERR min or max is not a float
> ZRANGESTORE d -> -ERR wrong number of arguments for 'zrangestore' command
> ZRANGESTORE d z 0 1 WITHSCORES -> -ERR syntax error
> ZRANGESTORE d z 0 1 LIMIT 0 1
-ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
> ZRANGESTORE d z 0 x -> -ERR value is not an integer or out of range
"#,
    );
}
