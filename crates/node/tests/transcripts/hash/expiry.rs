//! Expiry of fields: HEXPIRE and its variants, HTTL and its variants, HPERSIST.

use crate::check::check;

#[test]
fn hexpire() {
    check(
        r#"
> HSET h a 1 b 2 c 3 -> 3
> HEXPIRE h 10 FIELDS 2 a nofield -> [1, -2]
! hexpire:h => HPEXPIREAT h 1700000010000 FIELDS 1 a
> HTTL h FIELDS 3 a b nofield -> [10, -1, -2]
> HPEXPIRE h 1500 FIELDS 1 b -> [1]
! hexpire:h => HPEXPIREAT h 1700000001500 FIELDS 1 b
> HTTL h FIELDS 1 b -> [2]
> HPTTL h FIELDS 1 b -> [1500]
> HEXPIREAT h 1900000001 FIELDS 2 a b -> [1, 1]
! hexpire:h => HPEXPIREAT h 1900000001000 FIELDS 2 a b
> HEXPIRETIME h FIELDS 4 a b c d -> [1900000001, 1900000001, -1, -2]
> HPEXPIREAT h 1900000000123 fields 1 a -> [1]
! hexpire:h => HPEXPIREAT h 1900000000123 fields 1 a
> HPEXPIRETIME h FIELDS 2 a b -> [1900000000123, 1900000001000]
> HEXPIRETIME h FIELDS 2 a b -> [1900000001, 1900000001]
> HEXPIRE nokey 10 FIELDS 2 a b -> [-2, -2]
> HTTL nokey FIELDS 2 a b -> [-2, -2]
> HPTTL nokey FIELDS 1 a -> [-2]
> HEXPIRETIME nokey FIELDS 1 a -> [-2]
> HPEXPIRETIME nokey FIELDS 1 a -> [-2]
> HELLO 3 -> ~~ *
> HEXPIRE h 10 FIELDS 1 nofield -> [-2]
> HTTL h FIELDS 2 c nofield -> [-1, -2]
"#,
    );
}

#[test]
fn conditions() {
    check(
        r#"
> HSET h a 1 b 2 -> 2
> HPEXPIREAT h 1900000005000 XX FIELDS 1 a -> [0]
> HPEXPIREAT h 1900000005000 GT FIELDS 1 a -> [0]
> HPEXPIREAT h 1900000005000 LT FIELDS 1 a -> [1]
! hexpire:h => HPEXPIREAT h 1900000005000 LT FIELDS 1 a
> HPEXPIREAT h 1900000006000 NX FIELDS 3 a b c -> [0, 1, -2]
! hexpire:h => HPEXPIREAT h 1900000006000 NX FIELDS 1 b
> HPEXPIREAT h 1900000005000 GT FIELDS 1 a -> [0]
> HPEXPIREAT h 1900000005000 LT FIELDS 1 a -> [0]
> HPEXPIREAT h 1900000005001 gt FIELDS 1 a -> [1]
> HPEXPIREAT h 1900000005000 lt FIELDS 1 a -> [1]
> HPEXPIREAT h 1900000005009 xx FIELDS 2 a b -> [1, 1]
> HPEXPIRETIME h FIELDS 2 a b -> [1900000005009, 1900000005009]
> HPEXPIREAT h 0 NX FIELDS 2 a b -> [0, 0]
> HPEXPIREAT h 0 GT FIELDS 2 a b -> [0, 0]
> HPEXPIREAT h 0 LT FIELDS 2 a b -> [2, 2]
! hdel:h del:h => HDEL h a b
"#,
    );
}

#[test]
fn an_expiry_in_the_past_removes_the_field() {
    check(
        r#"
> HSET h a 1 b 2 c 3 -> 3
> HPEXPIRE h 0 FIELDS 3 a a nofield -> [2, -2, -2]
! hdel:h => HDEL h a
> HEXPIREAT h 1 FIELDS 2 b c -> [2, 2]
! hdel:h del:h => HDEL h b c
> EXISTS h -> 0
"#,
    );
}

#[test]
fn errors_of_expiries() {
    check(
        r#"
> HSET h a 1 -> 1
> HEXPIRE h -1 FIELDS 1 a -> -ERR invalid expire time, must be >= 0
> HEXPIRE h x FIELDS 1 a -> -ERR value is not an integer or out of range
> HEXPIRE h 10 FIELDS 0 a -> -ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS -1 a -> -ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS x a -> -ERR Parameter `numFields` should be greater than 0
> HEXPIRE h 10 FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 10 FIELDS 1 a b -> -ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 10 FIELD 1 a b -> -ERR Mandatory argument FIELDS is missing or not at the right position
> HEXPIRE h 10 NX XX FIELDS 1 a
-ERR Mandatory argument FIELDS is missing or not at the right position
> HEXPIRE h 10 NX FIELDS 1 -> -ERR The `numfields` parameter must match the number of arguments
> HEXPIRE h 10 FIELDS 1 -> -ERR wrong number of arguments for 'hexpire' command
> HEXPIRE h 70368744177664 FIELDS 1 a -> -ERR invalid expire time in 'hexpire' command
> HPEXPIRE h 70368744177664 FIELDS 1 a -> -ERR invalid expire time in 'hpexpire' command
> HEXPIREAT h 70368744178 FIELDS 1 a -> -ERR invalid expire time in 'hexpireat' command
> HPEXPIREAT h 70368744177664 FIELDS 1 a -> -ERR invalid expire time in 'hpexpireat' command
> HPEXPIRE h 9223372036854775807 FIELDS 1 a -> -ERR invalid expire time in 'hpexpire' command
> HPEXPIRE h 9223372036854775808 FIELDS 1 a -> -ERR value is not an integer or out of range
> HTTL h FIELDS 1 a -> [-1]
> HPEXPIREAT h 70368744177663 FIELDS 1 a -> [1]
"#,
    );
}

#[test]
fn errors_of_other_arguments() {
    check(
        r#"
> HSET h a 1 -> 1
> HTTL h FIELDS 0 a -> -ERR Number of fields must be a positive integer
> HTTL h FIELDS x a -> -ERR Number of fields must be a positive integer
> HTTL h FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
> HTTL h FIELD 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
> HTTL h FIELDS 1 -> -ERR wrong number of arguments for 'httl' command
> HPERSIST h FIELDS 0 a -> -ERR Number of fields must be a positive integer
> HPERSIST h FIELDS 2 a -> -ERR The `numfields` parameter must match the number of arguments
> HPERSIST h FIELD 1 a -> -ERR Mandatory argument FIELDS is missing or not at the right position
> HPERSIST h FIELDS 1 -> -ERR wrong number of arguments for 'hpersist' command
> SET s x -> OK
> HEXPIRE s 10 FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HPEXPIRE s x FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HTTL s FIELDS 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HPTTL s FOO 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HPERSIST s FOO 1 a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn hpersist() {
    check(
        r#"
> HSET h a 1 b 2 -> 2
> HPEXPIREAT h 1900000000000 FIELDS 1 a -> [1]
> HPERSIST h FIELDS 3 a b c -> [1, -1, -2]
! hpersist:h => HPERSIST h FIELDS 3 a b c
> HPERSIST h FIELDS 1 a -> [-1]
> HTTL h FIELDS 1 a -> [-1]
> HPERSIST nokey FIELDS 2 a b -> [-2, -2]
"#,
    );
}

#[test]
fn values_and_expiries() {
    check(
        r#"
> HSET h a 1 b 2 c 3 -> 3
> HPEXPIREAT h 1900000000000 FIELDS 3 a b c -> [1, 1, 1]
# Counters keep the expiry, a new value removes it.
> HINCRBY h a 1 -> 2
> HINCRBYFLOAT h b 1.5 -> "3.5"
> HSET h c 4 -> 0
> HPEXPIRETIME h FIELDS 3 a b c -> [1900000000000, 1900000000000, -1]
> CONFIG SET hash-max-listpack-entries 0 -> OK
> HSET h d 4 -> 1
> OBJECT ENCODING h -> "hashtable"
> HINCRBY h a 1 -> 3
> HINCRBYFLOAT h b 1.5 -> "5"
> HPEXPIRETIME h FIELDS 4 a b c d -> [1900000000000, 1900000000000, -1, -1]
> HSET h a 4 -> 0
> HPEXPIRETIME h FIELDS 1 a -> [-1]
> COPY h copy -> 1
> RENAME h renamed -> OK
> HPEXPIRETIME copy FIELDS 2 a b -> [-1, 1900000000000]
> HPEXPIRETIME renamed FIELDS 2 a b -> [-1, 1900000000000]
> MOVE copy 3 -> 1
> SELECT 3 -> OK
> HPEXPIRETIME copy FIELDS 2 a b -> [-1, 1900000000000]
> INFO keyspace
~~ *db0:keys=1,expires=0,avg_ttl=0,subexpiry=1\\r\\ndb3:keys=1,expires=0,avg_ttl=0,subexpiry=1*
> SWAPDB 0 3 -> OK
> HPEXPIRETIME renamed FIELDS 2 a b -> [-1, 1900000000000]
"#,
    );
}

#[test]
fn fields_are_ordered_by_expiry() {
    check(
        r#"
> HSET h a 1 b 2 c 3 d 4 -> 4
> HPEXPIREAT h 1900000000300 FIELDS 1 b -> [1]
> OBJECT ENCODING h -> "listpackex"
> HPEXPIREAT h 1900000000100 FIELDS 1 a -> [1]
> HPEXPIREAT h 1900000000200 FIELDS 1 c -> [1]
> HKEYS h -> ["a", "c", "b", "d"]
> HPEXPIREAT h 1900000000100 FIELDS 1 d -> [1]
> HSET h e 5 -> 1
> HSET h c 6 -> 0
> HGETALL h -> ["d", "4", "a", "1", "b", "2", "e", "5", "c", "6"]
> HPERSIST h FIELDS 1 d -> [1]
> HKEYS h -> ["a", "b", "e", "c", "d"]
# The command changes the encoding even if it changes nothing else.
> HSET new a 1 -> 1
> HEXPIRE new 10 FIELDS 1 nofield -> [-2]
> OBJECT ENCODING new -> "listpackex"
> HDEL h a b c d e -> 5
> EXISTS h -> 0
"#,
    );
}

#[test]
fn expired_fields_are_invisible() {
    check(
        r#"
> HSET h a 1 b 2 c 3 d 4 -> 4
> HPEXPIRE h 100 FIELDS 3 a b c -> [1, 1, 1]
@advance 100
> HGET h a -> "1"
@advance 1
> HGETALL h -> ["d", "4"]
> HKEYS h -> ["d"]
> HVALS h -> ["4"]
> HSCAN h 0 -> ["0", ["d", "4"]]
> HTTL h FIELDS 1 a -> [-2]
# Only HLEN counts them until they are removed.
> HLEN h -> 4
> HGET h a -> nil
! hexpired:h => HDEL h a
> HLEN h -> 3
> HMGET h d a b -> ["4", nil, nil]
! hexpired:h => HDEL h b
> HRANDFIELD h 5 -> ["d"]
! hexpired:h => HDEL h c
> HLEN h -> 1
> INFO stats -> ~~ *expired_subkeys:3*
"#,
    );
}

#[test]
fn commands_on_an_expired_field() {
    check(
        r#"
> HSET h a 1 b 2 c 3 d 4 e 5 f 6 i 8 -> 7
> HPEXPIRE h 10 FIELDS 7 a b c d e f i -> [1, 1, 1, 1, 1, 1, 1]
@advance 11
> HEXISTS h a -> 0
! hexpired:h => HDEL h a
> HSTRLEN h b -> 0
! hexpired:h => HDEL h b
> HSETNX h c 1 -> 1
! hexpired:h => HDEL h c
! hset:h => HSETNX h c 1
> HINCRBY h d 1 -> 1
! hexpired:h => HDEL h d
! hincrby:h => HINCRBY h d 1
> HINCRBYFLOAT h e 1 -> "1"
! hexpired:h => HDEL h e
! hincrbyfloat:h => HSET h e 1
# HSET overwrites the expired field, as in Redis.
> HSET h f 1 j 1 -> 1
! hset:h => HSET h f 1 j 1
# HDEL counts the expired field, as in Redis.
> HDEL h i -> 1
! hdel:h => HDEL h i
> HTTL h FIELDS 3 c d e -> [-1, -1, -1]
"#,
    );
}

#[test]
fn expired_fields_are_overwritten() {
    let transcript = |entries_max: u32| {
        format!(
            r#"
> CONFIG SET hash-max-listpack-entries {entries_max} -> OK
> HSET h a 1 b 2 c 3 d 4 e 5 -> 5
> HPEXPIRE h 10 FIELDS 5 a b c d e -> [1, 1, 1, 1, 1]
@advance 11
> HSET h a 6 -> 0
! hset:h => HSET h a 6
> HSETEX h FIELDS 1 b 7 -> 1
! hset:h => HSET h b 7
> HSETEX h PX 100 FIELDS 1 c 8 -> 1
! hset:h hexpire:h => HSET h c 8 | HPEXPIREAT h 1700000000111 FIELDS 1 c
# HEXISTS does not see the expired field.
> HSETEX h FNX FIELDS 1 d 9 -> 1
! hexpired:h => HDEL h d
! hset:h => HSET h d 9
# A field that keeps its expiry is still expired.
> HSETEX h KEEPTTL FIELDS 1 e 10 -> 1
! hset:h => HSET h e 10 | HPEXPIREAT h 1700000000010 FIELDS 1 e
> HMGET h a b c d e -> ["6", "7", "8", "9", nil]
> HPTTL h FIELDS 5 a b c d e -> [-1, -1, 100, -1, -2]
> INFO stats -> ~~ *expired_subkeys:2*
"#
        )
    };
    check(&transcript(128));
    check(&transcript(0));
}

#[test]
fn expired_fields_can_get_a_new_expiry_but_cannot_lose_it() {
    let transcript = |entries_max: u32| {
        format!(
            r#"
> CONFIG SET hash-max-listpack-entries {entries_max} -> OK
> HSET h a 1 b 2 c 3 d 4 e 5 -> 5
> HPEXPIRE h 10 FIELDS 5 a b c d e -> [1, 1, 1, 1, 1]
@advance 11
> HPERSIST h FIELDS 2 a b -> [-2, -2]
> HLEN h -> 5
> HPEXPIRE h 100 NX FIELDS 1 a -> [0]
> HPEXPIRE h 100 LT FIELDS 1 a -> [0]
> HPEXPIRE h 100 GT FIELDS 2 a b -> [1, 1]
! hexpire:h => HPEXPIREAT h 1700000000111 GT FIELDS 2 a b
> HPEXPIRE h 200 XX FIELDS 1 c -> [1]
! hexpire:h => HPEXPIREAT h 1700000000211 XX FIELDS 1 c
> HPEXPIREAT h 1 FIELDS 1 d -> [2]
! hdel:h => HDEL h d
> HMGET h a b c d -> ["1", "2", "3", nil]
> HPTTL h FIELDS 5 a b c d e -> [100, 100, 200, -2, -2]
> HGETEX h PX 100 FIELDS 1 e -> [nil]
! hexpired:h => HDEL h e
> HPERSIST h FIELDS 2 a e -> [1, -2]
! hpersist:h => HPERSIST h FIELDS 2 a e
> INFO stats -> ~~ *expired_subkeys:2*
"#
        )
    };
    check(&transcript(128));
    check(&transcript(0));
}

#[test]
fn the_last_expired_field_removes_the_key() {
    check(
        r#"
> HSET last a 1 -> 1
> HPEXPIRE last 10 FIELDS 1 a -> [1]
@advance 11
> EXISTS last -> 1
> HGET last a -> nil
! hexpired:last del:last => HDEL last a
> EXISTS last -> 0
> HSET last a 1 -> 1
> HPEXPIRE last 10 FIELDS 1 a -> [1]
@advance 11
> HSETNX last a 2 -> 1
! hexpired:last del:last => HDEL last a
! hset:last => HSETNX last a 2
> HPEXPIRE last 10 FIELDS 1 a -> [1]
@advance 11
> HRANDFIELD last -> nil
! hexpired:last del:last => HDEL last a
> HSET last a 1 -> 1
> HPEXPIRE last 10 FIELDS 1 a -> [1]
@advance 11
> HRANDFIELD last 3 WITHVALUES -> []
"#,
    );
}

#[test]
fn tables_with_expired_fields() {
    check(
        r#"
> CONFIG SET hash-max-listpack-entries 0 -> OK
> HSET h a 1 b 2 c 3 -> 3
> OBJECT ENCODING h -> "hashtable"
> HPEXPIRE h 100 FIELDS 2 a b -> [1, 1]
> HPEXPIRE h 50 FIELDS 1 b -> [1]
@advance 51
> HGETALL h -> ~~ \["[ac]", "[13]", "[ac]", "[13]"\]
> HPTTL h FIELDS 3 a b c -> [49, -2, -1]
> HRANDFIELD h 9 -> ~~ \["[ac]", "[ac]"\]
! hexpired:h => HDEL h b
@advance 50
> HSCAN h 0 NOVALUES -> ["0", ["c"]]
> HMGET h a c -> [nil, "3"]
! hexpired:h => HDEL h a
> HLEN h -> 1
"#,
    );
}
