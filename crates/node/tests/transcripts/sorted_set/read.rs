//! Single members, counts, members at random, and ZSCAN.

use super::check_both;
use crate::check::check;

#[test]
fn counts_scores_and_ranks() {
    check_both(
        r#"
> ZADD z 1 a 2 b 2 c 3.5 d -> 4
> ZCARD z -> 4
> ZCARD none -> 0
> ZSCORE z a -> "1"
> ZSCORE z d -> "3.5"
> ZSCORE z x -> nil
> ZSCORE none a -> nil
> ZMSCORE z a x d -> ["1", nil, "3.5"]
> ZMSCORE none a b -> [nil, nil]
> ZRANK z a -> 0
> ZRANK z c -> 2
> ZRANK z x -> nil
> ZRANK none a -> nil
> ZREVRANK z a -> 3
> ZREVRANK z d -> 0
> ZREVRANK z x -> nil
> ZRANK z d WITHSCORE -> [3, "3.5"]
> ZRANK z x withscore -> nil-array
> ZREVRANK z d withscore -> [0, "3.5"]
> ZREVRANK none x WITHSCORE -> nil-array
> ZCOUNT z -inf +inf -> 4
> ZCOUNT z 2 3 -> 2
> ZCOUNT z (2 (3.5 -> 0
> ZCOUNT z (1 3.5 -> 3
> ZCOUNT z 3 2 -> 0
> ZCOUNT z 2 2 -> 2
> ZCOUNT z (2 2 -> 0
> ZCOUNT none 0 1 -> 0
"#,
    );
}

#[test]
fn scores_and_ranks_in_resp3() {
    check_both(
        r#"
> ZADD z 1 a 2 b 2 c 3.5 d -> 4
> HELLO 3 -> ~~ {*}
> ZSCORE z d -> ,3.5
> ZSCORE z x -> nil
> ZMSCORE z a x -> [,1, nil]
> ZRANK z d WITHSCORE -> [3, ,3.5]
> ZRANK z x WITHSCORE -> nil
> ZRANK z x -> nil
> ZADD inf -inf low inf high 1e300 big 1e-7 tiny 123456789012345680 long -> 5
> ZMSCORE inf low high big tiny long -> [,-inf, ,inf, ,1e+300, ,1e-7, ,123456789012345680]
"#,
    );
}

#[test]
fn counts_of_members() {
    check_both(
        r#"
> ZADD z 0 a 0 b 0 c 0 d 0 10 0 9 -> 6
> ZLEXCOUNT z - + -> 6
> ZLEXCOUNT z + - -> 0
> ZLEXCOUNT z [a (c -> 2
> ZLEXCOUNT z (a [c -> 2
> ZLEXCOUNT z [10 [9 -> 2
> ZLEXCOUNT z (10 (9 -> 0
> ZLEXCOUNT z - - -> 0
> ZLEXCOUNT z + + -> 0
> ZLEXCOUNT z [c [a -> 0
> ZLEXCOUNT z [ (b -> 3
> ZLEXCOUNT none - + -> 0
"#,
    );
}

#[test]
fn errors_of_reads() {
    check(
        r#"
> SET s 1 -> OK
> ZCARD s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZSCORE s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZMSCORE s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANK s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREVRANK s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZCOUNT s 1 2 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZLEXCOUNT s - + -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZCARD -> -ERR wrong number of arguments for 'zcard' command
> ZCARD a b -> -ERR wrong number of arguments for 'zcard' command
> ZSCORE z -> -ERR wrong number of arguments for 'zscore' command
> ZMSCORE z -> -ERR wrong number of arguments for 'zmscore' command
> ZRANK z -> -ERR wrong number of arguments for 'zrank' command
> ZRANK z a x -> -ERR syntax error
> ZRANK z a WITHSCORE x -> -ERR wrong number of arguments for 'zrank' command
> ZREVRANK z a WITHSCORE x -> -ERR wrong number of arguments for 'zrevrank' command
> ZRANK s a x -> -ERR syntax error
> ZCOUNT z x 1 -> -ERR min or max is not a float
> ZCOUNT z 1 nan -> -ERR min or max is not a float
> ZCOUNT z ((1 2 -> -ERR min or max is not a float
> ZCOUNT s x 1 -> -ERR min or max is not a float
> ZLEXCOUNT z a b -> -ERR min or max not valid string range item
> ZLEXCOUNT z [a b -> -ERR min or max not valid string range item
> ZLEXCOUNT z -x + -> -ERR min or max not valid string range item
> ZLEXCOUNT z - ++ -> -ERR min or max not valid string range item
> ZLEXCOUNT z "" + -> -ERR min or max not valid string range item
> ZCOUNT z "" ( -> 0
"#,
    );
}

#[test]
fn members_at_random() {
    check_both(
        r#"
> ZADD z 1 a -> 1
> ZRANDMEMBER z -> "a"
> ZRANDMEMBER z 1 -> ["a"]
> ZRANDMEMBER z 5 -> ["a"]
> ZRANDMEMBER z 5 WITHSCORES -> ["a", "1"]
> ZRANDMEMBER z -3 -> ["a", "a", "a"]
> ZRANDMEMBER z -2 withscores -> ["a", "1", "a", "1"]
> ZRANDMEMBER z 0 -> []
> ZRANDMEMBER none -> nil
> ZRANDMEMBER none 3 -> []
> ZRANDMEMBER none -3 WITHSCORES -> []
> HELLO 3 -> ~~ {*}
> ZRANDMEMBER z 5 WITHSCORES -> [["a", ,1]]
> ZRANDMEMBER z -2 WITHSCORES -> [["a", ,1], ["a", ,1]]
> ZRANDMEMBER z -> "a"
> ZRANDMEMBER none -> nil
"#,
    );
}

#[test]
fn errors_of_zrandmember() {
    check(
        r#"
> ZRANDMEMBER -> -ERR wrong number of arguments for 'zrandmember' command
> ZRANDMEMBER z x -> -ERR value is not an integer or out of range
> ZRANDMEMBER z 1 x -> -ERR syntax error
> ZRANDMEMBER z 1 WITHSCORES x -> -ERR syntax error
> ZRANDMEMBER z -9223372036854775808
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> ZRANDMEMBER z -9223372036854775807 WITHSCORES -> -ERR value is out of range
> ZRANDMEMBER z 4611686018427387904 WITHSCORES -> -ERR value is out of range
> ZRANDMEMBER z 9223372036854775807 -> []
> SET s 1 -> OK
> ZRANDMEMBER s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANDMEMBER s 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZRANDMEMBER s x -> -ERR value is not an integer or out of range
"#,
    );
}

#[test]
fn zscan_of_a_small_set() {
    check(
        r#"
> ZADD z 1 a 2.5 b 3 10 -> 3
> ZSCAN z 0 -> ["0", ["a", "1", "b", "2.5", "10", "3"]]
> ZSCAN z 0 MATCH a* -> ["0", ["a", "1"]]
> ZSCAN z 0 MATCH 1* COUNT 1 -> ["0", ["10", "3"]]
> ZSCAN z 0 COUNT 100 -> ["0", ["a", "1", "b", "2.5", "10", "3"]]
> ZSCAN z 17 -> ["0", ["a", "1", "b", "2.5", "10", "3"]]
> ZSCAN none 0 -> ["0", []]
> ZSCAN none 5 foo -> ["0", []]
> HELLO 3 -> ~~ {*}
> ZSCAN z 0 MATCH b -> ["0", ["b", "2.5"]]
"#,
    );
}

#[test]
fn errors_of_zscan() {
    check(
        r#"
> ZADD z 1 a -> 1
> ZSCAN z -> -ERR wrong number of arguments for 'zscan' command
> ZSCAN z x -> -ERR invalid cursor
> ZSCAN none x -> -ERR invalid cursor
> ZSCAN z 0 COUNT -> -ERR syntax error
> ZSCAN z 0 COUNT 0 -> -ERR syntax error
> ZSCAN z 0 COUNT x -> -ERR value is not an integer or out of range
> ZSCAN z 0 MATCH -> -ERR syntax error
> ZSCAN z 0 NOVALUES -> -ERR NOVALUES option can only be used in HSCAN
> ZSCAN z 0 TYPE zset -> -ERR syntax error
> ZSCAN z 0 foo bar -> -ERR syntax error
> SET s 1 -> OK
> ZSCAN s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZSCAN s 0 foo -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}
