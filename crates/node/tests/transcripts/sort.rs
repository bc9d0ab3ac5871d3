//! SORT and SORT_RO: orders, weights and values from other keys, stored results.

use crate::check::check;

#[test]
fn orders_and_limits() {
    check(
        r#"
> RPUSH list 3 10 -1 2.5 10 -> 5
> SORT list -> ["-1", "2.5", "3", "10", "10"]
> SORT list DESC -> ["10", "10", "3", "2.5", "-1"]
> SORT list ALPHA -> ["-1", "10", "10", "2.5", "3"]
> SORT list LIMIT 1 2 -> ["2.5", "3"]
> SORT list LIMIT -3 2 -> ["-1", "2.5"]
> SORT list LIMIT 3 -1 -> ["10", "10"]
> SORT list LIMIT 9 1 -> []
> SORT list LIMIT 0 0 -> []
> SORT list DESC LIMIT 0 2 -> ["10", "10"]
> SORT list ASC DESC ASC -> ["-1", "2.5", "3", "10", "10"]
> SORT_RO list DESC ALPHA -> ["3", "2.5", "10", "10", "-1"]
> SORT missing -> []
> SORT missing STORE d -> 0
> SORT list BY nosort -> ["3", "10", "-1", "2.5", "10"]
> SORT list BY nosort DESC LIMIT 0 2 -> ["10", "2.5"]
> SORT list BY nosort DESC -> ["10", "2.5", "-1", "10", "3"]
> SORT list BY nosort GET # -> ["3", "10", "-1", "2.5", "10"]
"#,
    );
}

#[test]
fn weights_and_values_of_other_keys() {
    check(
        r#"
# Weights and values of other keys; a missing weight counts as 0, a missing value is null.
> RPUSH ids 1 2 3 -> 3
> MSET w_1 30 w_2 10 name_1 one name_3 three -> OK
> SORT ids BY w_* -> ["3", "2", "1"]
> SORT ids BY w_* DESC GET name_* GET # GET w_*
["one", "1", "30", nil, "2", "10", "three", "3", nil]
> SORT ids BY name_* ALPHA GET name_* -> [nil, "one", "three"]
> SORT ids BY name_* ALPHA DESC -> ["3", "1", "2"]
> SORT ids BY name_* -> -ERR One or more scores can't be converted into double
> SORT ids GET name -> [nil, nil, nil]
> SORT ids GET n*_x -> [nil, nil, nil]
> HSET h_1 w 5 n uno -> 2
> HSET h_2 w 4 n dos -> 2
> HSET h_3 n tres -> 1
> SORT ids BY h_*->w GET h_*->n -> ["tres", "dos", "uno"]
> SORT ids BY h_*->w DESC GET # -> ["1", "2", "3"]
> SORT ids GET h_*-> -> [nil, nil, nil]
> SORT ids GET h_*->none GET name_*->n -> [nil, nil, nil, nil, nil, nil]
"#,
    );
}

#[test]
fn expired_fields_are_removed_on_access() {
    check(
        r#"
> RPUSH ids 1 2 -> 2
> HSET h_1 w 5 n uno -> 2
> HSET h_2 w 4 n dos -> 2
> HPEXPIRE h_1 10 FIELDS 1 w -> [1]
> HPEXPIRE h_2 10 FIELDS 2 w n -> [1, 1]
@advance 11
> SORT_RO ids BY h_*->w GET h_*->w -> [nil, nil]
! hexpired:h_1 => HDEL h_1 w
! hexpired:h_2 => HDEL h_2 w
> HLEN h_1 -> 1
> SORT ids GET h_*->n -> ["uno", nil]
! hexpired:h_2 del:h_2 => HDEL h_2 n
> EXISTS h_2 -> 0
"#,
    );
}

#[test]
fn a_stored_result_is_a_list() {
    check(
        r#"
# The result may be stored, as a list.
> RPUSH ids 1 2 3 -> 3
> MSET w_1 30 w_2 10 name_1 one name_3 three -> OK
> SORT ids BY w_* GET name_* STORE out -> 3
! sortstore:out => SORT ids BY w_* GET name_* STORE out
> LRANGE out 0 -1 -> ["three", "", "one"]
> TYPE out -> list
> SORT ids DESC STORE ids -> 3
> LRANGE ids 0 -1 -> ["3", "2", "1"]
> SORT missing STORE out -> 0
! del:out => SORT missing STORE out
> EXISTS out -> 0
> SET plain x -> OK
> SORT ids STORE plain -> 3
> TYPE plain -> list
> SORT ids STORE a STORE b -> 3
> EXISTS a b -> 1
"#,
    );
}

#[test]
fn sets_and_sorted_sets() {
    check(
        r#"
# Sets and sorted sets.
> SADD set b a c -> 3
> SORT set ALPHA -> ["a", "b", "c"]
> SORT set BY nosort STORE sorted -> 3
> LRANGE sorted 0 -1 -> ["a", "b", "c"]
> ZADD zset 3 a 1 b 2 c -> 3
> SORT zset BY nosort -> ["b", "c", "a"]
> SORT zset BY nosort DESC -> ["a", "c", "b"]
> SORT zset BY nosort DESC LIMIT 1 1 -> ["c"]
> SORT zset ALPHA DESC -> ["c", "b", "a"]
> SORT zset -> -ERR One or more scores can't be converted into double
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
# Errors.
> RPUSH list 3 10 -1 -> 3
> SADD set b a c -> 3
> SORT set -> -ERR One or more scores can't be converted into double
> SORT list LIMIT a 1 -> -ERR value is not an integer or out of range
> SORT list LIMIT 1 -> -ERR syntax error
> SORT list BY -> -ERR syntax error
> SORT list GET -> -ERR syntax error
> SORT list STORE -> -ERR syntax error
> SORT list SIDEWAYS -> -ERR syntax error
> SORT_RO list STORE x -> -ERR syntax error
> HSET hash f v -> 1
> SORT hash -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SET string x -> OK
> SORT string -> -WRONGTYPE Operation against a key holding the wrong kind of value
> SORT hash LIMIT x y -> -ERR value is not an integer or out of range
> SORT -> -ERR wrong number of arguments for 'sort' command
> COMMAND GETKEYS SORT list BY w_* STORE d -> ["list", "d"]
> COMMAND GETKEYS SORT list BY store GET get STORE d STORE e -> ["list", "e"]
> RPUSH inf inf -inf 1e308 0 -> 4
> SORT inf -> ["-inf", "0", "1e308", "inf"]
> RPUSH far 1 1e400 1e-400 -1e400 -> 4
> SORT far -> ["-1e400", "1e-400", "1", "1e400"]
> RPUSH hexadecimal 1 0x10 -> 2
> SORT hexadecimal -> -ERR One or more scores can't be converted into double
> RPUSH zero "-1" "\x00x" "2\x00x" 1 -> 4
> SORT zero -> ["-1", "\x00x", "1", "2\x00x"]
> RPUSH bad 1 nan -> 2
> SORT bad -> -ERR One or more scores can't be converted into double
> RPUSH empty "" 1 -1 -> 3
> SORT empty -> ["-1", "", "1"]
"#,
    );
}
