//! Reading hashes: HGET, HMGET, HGETALL, HKEYS, HVALS, HLEN, HEXISTS, HSTRLEN, HSCAN,
//! HRANDFIELD.

use crate::check::check;

#[test]
fn hget_and_hmget() {
    check(
        r#"
> HSET h a 1 b text 12 -3 -> 3
> HGET h a -> "1"
> HGET h 12 -> "-3"
> HGET h c -> nil
> HGET nokey a -> nil
> HGET h -> -ERR wrong number of arguments for 'hget' command
> HGET h a b -> -ERR wrong number of arguments for 'hget' command
> HMGET h a c b a -> ["1", nil, "text", "1"]
> HMGET nokey a b -> [nil, nil]
> HMGET h -> -ERR wrong number of arguments for 'hmget' command
> HELLO 3 -> ~~ *
> HGET h c -> nil
> HMGET h a c -> ["1", nil]
> SET s x -> OK
> HGET s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HMGET s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn whole_hashes() {
    check(
        r#"
> HSET h a 1 b text -> 2
> HGETALL h -> ["a", "1", "b", "text"]
> HKEYS h -> ["a", "b"]
> HVALS h -> ["1", "text"]
> HGETALL nokey -> []
> HKEYS nokey -> []
> HVALS nokey -> []
> HLEN h -> 2
> HLEN nokey -> 0
> HELLO 3 -> ~~ *
> HGETALL h -> {"a": "1", "b": "text"}
> HKEYS h -> ["a", "b"]
> HVALS h -> ["1", "text"]
> HGETALL nokey -> {}
> HKEYS nokey -> []
> HVALS nokey -> []
> SET s x -> OK
> HGETALL s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HKEYS s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HVALS s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HLEN s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HGETALL -> -ERR wrong number of arguments for 'hgetall' command
> HGETALL h x -> -ERR wrong number of arguments for 'hgetall' command
> HLEN -> -ERR wrong number of arguments for 'hlen' command
"#,
    );
}

#[test]
fn one_property() {
    check(
        r#"
> HSET h a "" b text n -125 -> 3
> HEXISTS h a -> 1
> HEXISTS h c -> 0
> HEXISTS nokey c -> 0
> HSTRLEN h a -> 0
> HSTRLEN h b -> 4
> HSTRLEN h n -> 4
> HSTRLEN h c -> 0
> HSTRLEN nokey c -> 0
> HEXISTS h -> -ERR wrong number of arguments for 'hexists' command
> HSTRLEN h -> -ERR wrong number of arguments for 'hstrlen' command
> SET s x -> OK
> HEXISTS s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HSTRLEN s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
"#,
    );
}

#[test]
fn tables_read_alike() {
    check(
        r#"
> CONFIG SET hash-max-listpack-entries 0 -> OK
> HSET h a 1 -> 1
> OBJECT ENCODING h -> "hashtable"
> HGET h a -> "1"
> HGET h b -> nil
> HMGET h a b -> ["1", nil]
> HGETALL h -> ["a", "1"]
> HKEYS h -> ["a"]
> HVALS h -> ["1"]
> HLEN h -> 1
> HEXISTS h a -> 1
> HSTRLEN h a -> 1
> HSCAN h 0 -> ["0", ["a", "1"]]
> HSCAN h 0 NOVALUES -> ["0", ["a"]]
> HSCAN h 0 MATCH b* -> ["0", []]
> HRANDFIELD h -> "a"
> HRANDFIELD h 5 WITHVALUES -> ["a", "1"]
> HRANDFIELD h -2 -> ["a", "a"]
> HINCRBY h a 1 -> 2
> HINCRBYFLOAT h a 0.5 -> "2.5"
> HDEL h a -> 1
! hdel:h del:h => HDEL h a
"#,
    );
}

#[test]
fn hscan() {
    check(
        r#"
> HSET h a 1 b 2 12 3 -> 3
> HSCAN h 0 -> ["0", ["a", "1", "b", "2", "12", "3"]]
> HSCAN h 0 NOVALUES -> ["0", ["a", "b", "12"]]
> HSCAN h 0 MATCH b -> ["0", ["b", "2"]]
> HSCAN h 0 COUNT 1 MATCH * -> ["0", ["a", "1", "b", "2", "12", "3"]]
> HSCAN h 0 MATCH 1? novalues -> ["0", ["12"]]
> HSCAN h 17 -> ["0", ["a", "1", "b", "2", "12", "3"]]
> HSCAN h 0 COUNT 0 -> -ERR syntax error
> HSCAN h 0 COUNT x -> -ERR value is not an integer or out of range
> HSCAN h 0 MATCH -> -ERR syntax error
> HSCAN h 0 TYPE hash -> -ERR syntax error
> HSCAN h 0 FOO -> -ERR syntax error
> HSCAN h abc -> -ERR invalid cursor
> HSCAN h -> -ERR wrong number of arguments for 'hscan' command
> HSCAN nokey 0 -> ["0", []]
> HSCAN nokey 0 FOO -> ["0", []]
> HSCAN nokey abc -> -ERR invalid cursor
> SET s x -> OK
> HSCAN s 0 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HSCAN s abc -> -ERR invalid cursor
> HELLO 3 -> ~~ *
> HSCAN h 0 MATCH a -> ["0", ["a", "1"]]
"#,
    );
}

#[test]
fn hrandfield() {
    check(
        r#"
> HRANDFIELD nokey -> nil
> HRANDFIELD nokey 3 -> []
> HRANDFIELD nokey 3 WITHVALUES -> []
> HSET one f v -> 1
> HRANDFIELD one -> "f"
> HRANDFIELD one 0 -> []
> HRANDFIELD one 1 -> ["f"]
> HRANDFIELD one 5 withvalues -> ["f", "v"]
> HRANDFIELD one -3 -> ["f", "f", "f"]
> HRANDFIELD one -2 WITHVALUES -> ["f", "v", "f", "v"]
> HSET two a 1 b 2 -> 2
> HRANDFIELD two 2 -> ["a", "b"]
> HRANDFIELD two 9 WITHVALUES -> ["a", "1", "b", "2"]
> HRANDFIELD two -> ~~ "[ab]"
> HRANDFIELD two 1 -> ~~ \["[ab]"\]
> HRANDFIELD two -3 -> ~~ \["[ab]", "[ab]", "[ab]"\]
"#,
    );
}

#[test]
fn hrandfield_in_resp3_and_its_errors() {
    check(
        r#"
> HSET one f v -> 1
> HSET two a 1 b 2 -> 2
> HELLO 3 -> ~~ *
> HRANDFIELD nokey -> nil
> HRANDFIELD one -> "f"
> HRANDFIELD one 1 WITHVALUES -> [["f", "v"]]
> HRANDFIELD one -2 WITHVALUES -> [["f", "v"], ["f", "v"]]
> HRANDFIELD two 9 WITHVALUES -> [["a", "1"], ["b", "2"]]
> HRANDFIELD -> -ERR wrong number of arguments for 'hrandfield' command
> HRANDFIELD one x -> -ERR value is not an integer or out of range
> HRANDFIELD one 1 foo -> -ERR syntax error
> HRANDFIELD one x foo -> -ERR value is not an integer or out of range
> HRANDFIELD one 1 WITHVALUES x -> -ERR syntax error
> HRANDFIELD one -9223372036854775808
-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
> HRANDFIELD one -9223372036854770000 WITHVALUES -> -ERR value is out of range
> HRANDFIELD one 9223372036854775807 WITHVALUES -> -ERR value is out of range
> HRANDFIELD one 9223372036854775808 -> -ERR value is not an integer or out of range
> SET s x -> OK
> HRANDFIELD s -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HRANDFIELD s 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> HRANDFIELD s x -> -ERR value is not an integer or out of range
"#,
    );
}
