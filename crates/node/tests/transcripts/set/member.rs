//! Members of one set, and moved to another.

use crate::check::check;

#[test]
fn members() {
    check(
        r#"
> SADD s a b a -> 2
> SADD s b c -> 1
> SADD s a -> 0
> SMEMBERS s -> ["a", "b", "c"]
> SCARD s -> 3
> SISMEMBER s a -> 1
> SISMEMBER s x -> 0
> SISMEMBER nokey x -> 0
> SCARD nokey -> 0
> SMEMBERS nokey -> []
> SMISMEMBER s a x c a -> [1, 0, 1, 1]
> SMISMEMBER nokey a b -> [0, 0]
> SREM s x y -> 0
> SREM s a x -> 1
> SREM s b b c d -> 2
> EXISTS s -> 0
> SREM s a -> 0
> SADD s 1 "" 01 -0 -> 4
> SMEMBERS s -> ["1", "", "01", "-0"]
> SISMEMBER s "" -> 1
> SISMEMBER s +1 -> 0
> HELLO 3 -> ~~ *
> SMEMBERS s -> ~["1", "", "01", "-0"]
> SMEMBERS nokey -> ~[]
> SMISMEMBER s 1 2 -> [1, 0]
> SISMEMBER s 1 -> 1
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> SET text v -> OK
> SADD text a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SREM text a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SISMEMBER text a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMISMEMBER text a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SCARD text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMEMBERS text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SPOP text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SPOP text 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SRANDMEMBER text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SRANDMEMBER text 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SSCAN text 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE text s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SADD s a -> 1
> SMOVE s text a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE s text b -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SMOVE nokey text a -> 0
> SADD -> -ERR wrong number of arguments for 'sadd' command
> SADD s -> -ERR wrong number of arguments for 'sadd' command
> SREM s -> -ERR wrong number of arguments for 'srem' command
> SISMEMBER s -> -ERR wrong number of arguments for 'sismember' command
> SISMEMBER s a b -> -ERR wrong number of arguments for 'sismember' command
> SMISMEMBER s -> -ERR wrong number of arguments for 'smismember' command
> SCARD -> -ERR wrong number of arguments for 'scard' command
> SCARD s s -> -ERR wrong number of arguments for 'scard' command
> SMEMBERS -> -ERR wrong number of arguments for 'smembers' command
> SMEMBERS s s -> -ERR wrong number of arguments for 'smembers' command
> SMOVE s t -> -ERR wrong number of arguments for 'smove' command
"#,
    );
}

#[test]
fn errors_of_drawing() {
    check(
        r#"
> SET text v -> OK
> SADD s a -> 1
> SPOP -> -ERR wrong number of arguments for 'spop' command
> SPOP s 1 2 -> -ERR syntax error
> SPOP text 1 2 -> -ERR syntax error
> SPOP s -1 -> -ERR value is out of range, must be positive
> SPOP text -1 -> -ERR value is out of range, must be positive
> SPOP nokey -1 -> -ERR value is out of range, must be positive
> SPOP s x -> -ERR value is out of range, must be positive
> SPOP s 9223372036854775808 -> -ERR value is out of range, must be positive
> SRANDMEMBER -> -ERR wrong number of arguments for 'srandmember' command
> SRANDMEMBER s 1 2 -> -ERR syntax error
> SRANDMEMBER s x -> -ERR value is not an integer or out of range
> SRANDMEMBER nokey x -> -ERR value is not an integer or out of range
> SRANDMEMBER s -9223372036854775808
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> SRANDMEMBER nokey -9223372036854775808
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> SRANDMEMBER s 9223372036854775808 -> -ERR value is not an integer or out of range
> SRANDMEMBER nokey -9223372036854775807 -> []
"#,
    );
}

#[test]
fn errors_of_several_sets() {
    check(
        r#"
> SET text v -> OK
> SADD s a -> 1
> SINTER -> -ERR wrong number of arguments for 'sinter' command
> SINTER text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SINTER text nokey -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SUNION -> -ERR wrong number of arguments for 'sunion' command
> SUNION nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF -> -ERR wrong number of arguments for 'sdiff' command
> SDIFF nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF s text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFF text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERSTORE -> -ERR wrong number of arguments for 'sinterstore' command
> SINTERSTORE d -> -ERR wrong number of arguments for 'sinterstore' command
> SINTERSTORE d nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SUNIONSTORE d -> -ERR wrong number of arguments for 'sunionstore' command
> SUNIONSTORE d s text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFFSTORE d -> -ERR wrong number of arguments for 'sdiffstore' command
> SDIFFSTORE d s text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SDIFFSTORE d nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> EXISTS d -> 0
"#,
    );
}

#[test]
fn errors_of_sintercard() {
    check(
        r#"
> SET text v -> OK
> SADD s a -> 1
> SINTERCARD -> -ERR wrong number of arguments for 'sintercard' command
> SINTERCARD 1 -> -ERR wrong number of arguments for 'sintercard' command
> SINTERCARD 0 s -> -ERR numkeys should be greater than 0
> SINTERCARD -1 s -> -ERR numkeys should be greater than 0
> SINTERCARD x s -> -ERR numkeys should be greater than 0
> SINTERCARD 9223372036854775807 s -> -ERR Number of keys can't be greater than number of args
> SINTERCARD 9223372036854775808 s -> -ERR numkeys should be greater than 0
> SINTERCARD 2 s -> -ERR Number of keys can't be greater than number of args
> SINTERCARD 1 s t -> -ERR syntax error
> SINTERCARD 1 s LIMIT -> -ERR syntax error
> SINTERCARD 1 s LIMIT -1 -> -ERR LIMIT can't be negative
> SINTERCARD 1 s LIMIT x -> -ERR LIMIT can't be negative
> SINTERCARD 1 s LIMIT 1 x -> -ERR syntax error
> SINTERCARD 1 text LIMIT -1 -> -ERR LIMIT can't be negative
> SINTERCARD 1 text -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SINTERCARD 2 nokey text -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn errors_of_sscan() {
    check(
        r#"
> SET text v -> OK
> SADD s a -> 1
> SSCAN -> -ERR wrong number of arguments for 'sscan' command
> SSCAN s -> -ERR wrong number of arguments for 'sscan' command
> SSCAN s x -> -ERR invalid cursor
> SSCAN nokey x -> -ERR invalid cursor
> SSCAN text x -> -ERR invalid cursor
> SSCAN nokey 0 FOO -> ["0", []]
> SSCAN s 0 FOO -> -ERR syntax error
> SSCAN s 0 COUNT -> -ERR syntax error
> SSCAN s 0 COUNT 0 -> -ERR syntax error
> SSCAN s 0 COUNT x -> -ERR value is not an integer or out of range
> SSCAN s 0 MATCH -> -ERR syntax error
> SSCAN s 0 TYPE string -> -ERR syntax error
> SSCAN s 0 NOVALUES -> -ERR NOVALUES option can only be used in HSCAN
> SSCAN text 0 FOO -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn smove() {
    check(
        r#"
> SADD a 1 2 x -> 3
> SADD b 3 4 -> 2
> SMOVE a b 1 -> 1
> SMOVE a b 1 -> 0
> SMOVE a b x -> 1
> OBJECT ENCODING b -> "listpack"
> SMEMBERS b -> ["1", "3", "4", "x"]
> SADD b 2 -> 1
> SMOVE a b 2 -> 1
> EXISTS a -> 0
> SMOVE a b 2 -> 0
> SMOVE b b 2 -> 1
> SMOVE b b 9 -> 0
> SMOVE b c 2 -> 1
> OBJECT ENCODING c -> "intset"
> SMOVE b d x -> 1
> OBJECT ENCODING d -> "listpack"
> SMEMBERS b -> ["1", "3", "4"]
> SMOVE nokey b 2 -> 0
> SMOVE b nokey y -> 0
> EXISTS nokey -> 0
"#,
    );
}

#[test]
fn effects_of_writes() {
    check(
        r#"
> SADD s b a b -> 2
! sadd:s => SADD s b a b
> SADD s a b -> 0
> SREM s x a -> 1
! srem:s => SREM s x a
> SREM s a x -> 0
> SREM s x b a -> 1
! srem:s del:s => SREM s x b a
> SREM s x -> 0
> SADD a 1 2 -> 2
> SMOVE a b 1 -> 1
! srem:a sadd:b => SMOVE a b 1
> SMOVE a b 2 -> 1
! srem:a del:a sadd:b => SMOVE a b 2
> SADD a 1 3 -> 2
> SMOVE a b 1 -> 1
! srem:a => SMOVE a b 1
> SMOVE a a 3 -> 1
> SMOVE a b x -> 0
> EXPIRE a 100 -> 1
> SADD a 4 -> 1
> TTL a -> 100
> PEXPIRE a 5 -> 1
@advance 6
> SADD a 5 -> 1
! expired:a => DEL a
! sadd:a => SADD a 5
> SMEMBERS a -> ["5"]
> PEXPIRE a 5 -> 1
@advance 6
> SMOVE a b 5 -> 0
! expired:a => DEL a
"#,
    );
}
