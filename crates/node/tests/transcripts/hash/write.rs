//! Fields set, removed and counted: HSET, HMSET, HSETNX, HDEL, HINCRBY, HINCRBYFLOAT.

use crate::check::check;

#[test]
fn hset() {
    check(
        r#"
> HSET h a 1 -> 1
! hset:h => HSET h a 1
> HSET h a 2 b 3 a 4 -> 1
! hset:h => HSET h a 2 b 3 a 4
> HGETALL h -> ["a", "4", "b", "3"]
> HSET h a 4 -> 0
! hset:h => HSET h a 4
> HMSET h c x "" empty d "" -> OK
> hgetall h -> ["a", "4", "b", "3", "c", "x", "", "empty", "d", ""]
> HMSET new a 1 a 2 -> OK
> HGETALL new -> ["a", "2"]
> HSET h -> -ERR wrong number of arguments for 'hset' command
> HSET h a -> -ERR wrong number of arguments for 'hset' command
> HSET h a 1 b -> -ERR wrong number of arguments for 'hset' command
> HMSET h a -> -ERR wrong number of arguments for 'hmset' command
> HMSET h a 1 b -> -ERR wrong number of arguments for 'hmset' command
> SET s x -> OK
> HSET s a 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HMSET s a 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HSET s a -> -ERR wrong number of arguments for 'hset' command
"#,
    );
}

#[test]
fn hsetnx() {
    check(
        r#"
> HSETNX h f 1 -> 1
! hset:h => HSETNX h f 1
> HSETNX h f 2 -> 0
> HSETNX h g 3 -> 1
> HGETALL h -> ["f", "1", "g", "3"]
> HSETNX h f -> -ERR wrong number of arguments for 'hsetnx' command
> HSETNX h f 1 2 -> -ERR wrong number of arguments for 'hsetnx' command
> SET s x -> OK
> HSETNX s f 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn hdel() {
    check(
        r#"
> HSET h a 1 b 2 c 3 12 4 -> 4
> HDEL h nofield -> 0
> HDEL h a nofield a 12 -> 2
! hdel:h => HDEL h a nofield a 12
> HGETALL h -> ["b", "2", "c", "3"]
> HDEL h b c d -> 2
! hdel:h del:h => HDEL h b c d
> EXISTS h -> 0
> HDEL h a -> 0
> HDEL h -> -ERR wrong number of arguments for 'hdel' command
> SET s x -> OK
> HDEL s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn hincrby() {
    check(
        r#"
> HINCRBY h n 5 -> 5
! hincrby:h => HINCRBY h n 5
> HINCRBY h n -7 -> -2
> HGET h n -> "-2"
> HSET h t text big 9223372036854775807 small -9223372036854775808 padded " 1" -> 4
> HINCRBY h t 1 -> -ERR hash value is not an integer
> HINCRBY h padded 1 -> -ERR hash value is not an integer
> HINCRBY h big 1 -> -ERR increment or decrement would overflow
> HINCRBY h small -1 -> -ERR increment or decrement would overflow
> HINCRBY h big -1 -> 9223372036854775806
> HINCRBY h n x -> -ERR value is not an integer or out of range
> HINCRBY h n 9223372036854775808 -> -ERR value is not an integer or out of range
> HINCRBY h n -> -ERR wrong number of arguments for 'hincrby' command
> HINCRBY new n 9223372036854775807 -> 9223372036854775807
> SET s x -> OK
> HINCRBY s n 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HINCRBY s n x -> -ERR value is not an integer or out of range
# A value that became too long to stay packed.
> CONFIG SET hash-max-listpack-value 5 -> OK
> HSET p n 99999 -> 1
> OBJECT ENCODING p -> "listpack"
> HINCRBY p n 1 -> 100000
> OBJECT ENCODING p -> "hashtable"
> HINCRBY p n 1 -> 100001
> HGET p n -> "100001"
"#,
    );
}

#[test]
fn hincrbyfloat() {
    check(
        r#"
> HINCRBYFLOAT h f 1.5 -> "1.5"
! hincrbyfloat:h => HSET h f 1.5
> HINCRBYFLOAT h f 1.50 -> "3"
! hincrbyfloat:h => HSET h f 3
> HINCRBYFLOAT h f 5.0e3 -> "5003"
> HSET e f 1 g 2 -> 2
> HPEXPIRE e 100 FIELDS 1 f -> [1]
> HINCRBYFLOAT e f 1.5 -> "2.5"
! hincrbyfloat:e => HSET e f 2.5 | HPEXPIREAT e 1700000000100 FIELDS 1 f
> HINCRBYFLOAT e g 1.5 -> "3.5"
! hincrbyfloat:e => HSET e g 3.5
> HPTTL e FIELDS 2 f g -> [100, -1]
> HINCRBYFLOAT h f -0.1 -> "5002.89999999999999991"
> HSET h t text n 10 padded " 1" max 1e4932 -> 4
> HINCRBYFLOAT h n 0.1 -> "10.1"
> HINCRBYFLOAT h t 1 -> -ERR hash value is not a float
> HINCRBYFLOAT h padded 1 -> -ERR hash value is not a float
> HINCRBYFLOAT h max 1e4932 -> -ERR increment would produce NaN or Infinity
> HINCRBYFLOAT h f x -> -ERR value is not a valid float
> HINCRBYFLOAT h f inf -> -ERR value is NaN or Infinity
> HINCRBYFLOAT h f -inf -> -ERR value is NaN or Infinity
> HINCRBYFLOAT h f nan -> -ERR value is not a valid float
> HINCRBYFLOAT h f -> -ERR wrong number of arguments for 'hincrbyfloat' command
> HINCRBYFLOAT new n 2 -> "2"
> OBJECT ENCODING new -> "listpack"
> HGET new n -> "2"
> SET s x -> OK
> HINCRBYFLOAT s f 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HINCRBYFLOAT s f x -> -ERR value is not a valid float
"#,
    );
}

#[test]
fn limits() {
    check(
        r#"
> CONFIG SET hash-max-listpack-entries 3 hash-max-listpack-value 8 -> OK
> HSET h a 1 b 2 c 3 -> 3
> OBJECT ENCODING h -> "listpack"
> HSET h b 9 -> 0
> OBJECT ENCODING h -> "listpack"
> HSET h d 4 -> 1
> OBJECT ENCODING h -> "hashtable"
> HMGET h a b c d -> ["1", "9", "3", "4"]
> HDEL h a b -> 2
> OBJECT ENCODING h -> "hashtable"
# Many pairs make a table even if they are few fields.
> HSET same a 1 a 2 a 3 a 4 -> 1
> OBJECT ENCODING same -> "hashtable"
> HLEN same -> 1
> HSET h2 a 12345678 -> 1
> OBJECT ENCODING h2 -> "listpack"
> HSET h2 a 123456789 -> 0
> OBJECT ENCODING h2 -> "hashtable"
> HSETNX h3 ninebytes 1 -> 1
> OBJECT ENCODING h3 -> "hashtable"
> HSETNX h4 a 1 -> 1
> HSETNX h4 b ninebytes -> 1
> OBJECT ENCODING h4 -> "hashtable"
> HGETALL h3 -> ["ninebytes", "1"]
> TYPE h3 -> hash
"#,
    );
}
