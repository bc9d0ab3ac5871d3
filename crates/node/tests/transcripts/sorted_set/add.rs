//! ZADD and ZINCRBY, and when a packed set becomes a big one.

use super::check_both;
use crate::check::check;

#[test]
fn zadd_adds_and_changes_scores() {
    check_both(
        r#"
> ZADD z 1 one -> 1
! zadd:z => ZADD z 1 one
> ZADD z 1 uno 2 two 3 three -> 3
! zadd:z => ZADD z 1 uno 2 two 3 three
> ZADD z 10 one 2 two -> 0
> ZADD z 10 one -> 0
> ZADD z CH 11 one 2 two 4 four -> 2
! zadd:z => ZADD z CH 11 one 2 two 4 four
> ZRANGE z 0 -1 WITHSCORES -> ["uno", "1", "two", "2", "three", "3", "four", "4", "one", "11"]
> ZADD z 1 dup 2 dup 3 dup -> 1
> ZSCORE z dup -> "3"
> ZADD z ch 1 dup 1 dup -> 1
> ZADD z -inf low +inf high 1e3 thousand .5 half 0x10 hex -> 5
> ZRANGE z 0 -1 WITHSCORES
["low", "-inf", "half", "0.5", "dup", "1", "uno", "1", "two", "2", "three", "3", "four", "4",
   "one", "11", "hex", "16", "thousand", "1000", "high", "inf"]
> TYPE z -> zset
> HELLO 3 -> ~~ {*}
> ZRANGE z 0 2 WITHSCORES -> [["low", ,-inf], ["half", ,0.5], ["dup", ,1]]
> ZSCORE z half -> ,0.5
"#,
    );
}

#[test]
fn zadd_under_conditions() {
    check_both(
        r#"
> ZADD z XX 1 a -> 0
> ZADD z XX INCR 1 a -> nil
> EXISTS z -> 0
> ZADD z NX 1 a 2 b -> 2
> ZADD z NX 5 a 3 c -> 1
! zadd:z => ZADD z NX 5 a 3 c
> ZADD z NX CH 5 a -> 0
> ZADD z XX 5 a 9 d -> 0
! zadd:z => ZADD z XX 5 a 9 d
> ZADD z xx ch 6 a 9 d -> 1
> ZADD z GT CH 5 a 7 b 1 e -> 2
> ZADD z LT CH 7 a 6 b 2 f -> 2
> ZADD z XX GT CH 100 nobody 100 a -> 1
> ZADD z XX LT CH 100 nobody 99 a 100 b -> 1
> ZRANGE z 0 -1 WITHSCORES -> ["e", "1", "f", "2", "c", "3", "b", "6", "a", "99"]
> ZADD z GT 99 a -> 0
> ZADD z LT 99 a -> 0
"#,
    );
}

#[test]
fn zadd_with_incr_and_zincrby() {
    check_both(
        r#"
> ZADD z INCR 1.5 a -> "1.5"
! zincr:z => ZADD z INCR 1.5 a
> ZADD z INCR 2 a -> "3.5"
> ZADD z INCR 0 a -> "3.5"
> ZADD z NX INCR 2 a -> nil
> ZADD z NX INCR 2 b -> "2"
> ZADD z XX INCR 2 c -> nil
> ZADD z XX INCR -0.5 b -> "1.5"
> ZADD z GT INCR -1 b -> nil
> ZADD z GT INCR 1 b -> "2.5"
> ZADD z LT INCR 1 b -> nil
> ZADD z LT CH INCR -1 b -> "1.5"
> ZINCRBY z 10 a -> "13.5"
! zincr:z => ZINCRBY z 10 a
> ZINCRBY z 1 new -> "1"
> ZINCRBY z 0 new -> "1"
> ZINCRBY z inf a -> "inf"
> ZINCRBY z -inf a -> -ERR resulting score is not a number (NaN)
> ZSCORE z a -> "inf"
> ZINCRBY z 1e308 b -> "1e+308"
> ZINCRBY z 1e308 b -> "inf"
> ZINCRBY z 0.1 new -> "1.1"
> ZINCRBY z 0.2 new -> "1.3"
> ZRANGE z 0 -1 WITHSCORES -> ["new", "1.3", "a", "inf", "b", "inf"]
> HELLO 3 -> ~~ {*}
> ZINCRBY z 1 new -> ,2.3
> ZADD z INCR 1 new -> ,3.3
> ZADD z NX INCR 1 new -> nil
"#,
    );
}

#[test]
fn errors_of_zadd() {
    check(
        r#"
> ZADD -> -ERR wrong number of arguments for 'zadd' command
> ZADD z 1 -> -ERR wrong number of arguments for 'zadd' command
> ZADD z NX 1 -> -ERR syntax error
> ZADD z 1 a 2 -> -ERR syntax error
> ZADD z NX XX -> -ERR syntax error
> ZADD z foo bar -> -ERR value is not a valid float
> ZADD z NX XX 1 a -> -ERR XX and NX options at the same time are not compatible
> ZADD z XX NX GT 1 a -> -ERR XX and NX options at the same time are not compatible
> ZADD z NX GT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z NX LT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z GT LT 1 a -> -ERR GT, LT, and/or NX options at the same time are not compatible
> ZADD z INCR 1 a 2 b -> -ERR INCR option supports a single increment-element pair
> ZADD z INCR x a -> -ERR value is not a valid float
> ZADD z nan a -> -ERR value is not a valid float
> ZADD z 1 a 1e400 b -> -ERR value is not a valid float
> ZADD z "" a -> -ERR value is not a valid float
> ZADD z " 1" a -> -ERR value is not a valid float
> ZADD z 1.0.0 a -> -ERR value is not a valid float
> EXISTS z -> 0
> ZINCRBY z nan a -> -ERR value is not a valid float
> ZINCRBY z -> -ERR wrong number of arguments for 'zincrby' command
> ZINCRBY z 1 a b -> -ERR wrong number of arguments for 'zincrby' command
> SET s 1 -> OK
> ZADD s 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZADD s XX 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZADD s x a -> -ERR value is not a valid float
> ZINCRBY s 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZADD nx nx 1 nx -> 1
> ZADD incr 1 incr 2 ch -> 2
> ZRANGE incr 0 -1 -> ["incr", "ch"]
"#,
    );
}

#[test]
fn negative_zero() {
    check(
        r#"
> ZADD z -0 a -> 1
> ZADD z 0 a -> 0
> ZSCORE z a -> "0"
> CONFIG SET zset-max-listpack-entries 0 -> OK
> ZADD big -0 a 0 b -> 2
> ZRANGE big 0 -1 WITHSCORES -> ["a", "-0", "b", "0"]
> ZADD big 0 a -> 0
> ZINCRBY big -0 a -> "-0"
"#,
    );
}

#[test]
fn encodings_and_limits() {
    check(
        r#"
> CONFIG SET zset-max-listpack-entries 3 zset-max-listpack-value 5 -> OK
> ZADD z 1 a 2 b 3 c -> 3
> OBJECT ENCODING z -> "listpack"
> ZADD z 1 a 2 b 3 c 4 a -> 0
> OBJECT ENCODING z -> "skiplist"
> ZADD y 1 a 2 b 3 c -> 3
> ZADD y 4 d -> 1
> OBJECT ENCODING y -> "skiplist"
> ZREM y a b c -> 3
> OBJECT ENCODING y -> "skiplist"
> ZADD x 1 12345 -> 1
> OBJECT ENCODING x -> "listpack"
> ZADD x 2 123456 -> 1
> OBJECT ENCODING x -> "skiplist"
> ZADD w 1 longer -> 1
> OBJECT ENCODING w -> "skiplist"
> ZADD v 1 a 2 longer -> 2
> OBJECT ENCODING v -> "skiplist"
> ZRANGE v 0 -1 WITHSCORES -> ["a", "1", "longer", "2"]
> COPY x copy -> 1
> ZRANGE copy 0 -1 WITHSCORES -> ["12345", "1", "123456", "2"]
> OBJECT ENCODING copy -> "skiplist"
> CONFIG SET zset-max-listpack-entries 128 zset-max-listpack-value 64 -> OK
> COPY w packed -> 1
> OBJECT ENCODING packed -> "skiplist"
"#,
    );
}
