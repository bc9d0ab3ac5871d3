//! LCS.

use crate::check::check;

#[test]
fn text_length_and_matches() {
    check(
        r#"
> MSET a ohmytext b mynewtext -> OK
> LCS a b -> "mytext"
> LCS a b LEN -> 6
> LCS a b IDX -> ["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", 6]
> LCS a b IDX MINMATCHLEN 4 -> ["matches", [[[4, 7], [5, 8]]], "len", 6]
> LCS a b idx minmatchlen 4 withmatchlen -> ["matches", [[[4, 7], [5, 8], 4]], "len", 6]
> LCS a b IDX WITHMATCHLEN -> ["matches", [[[4, 7], [5, 8], 4], [[2, 3], [0, 1], 2]], "len", 6]
> LCS a b IDX MINMATCHLEN -5 -> ["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", 6]
> LCS a b IDX MINMATCHLEN 5 MINMATCHLEN 0
["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", 6]
> LCS a b IDX MINMATCHLEN 100 -> ["matches", [], "len", 6]
> LCS a b IDX IDX -> ["matches", [[[4, 7], [5, 8]], [[2, 3], [0, 1]]], "len", 6]
> LCS a b WITHMATCHLEN -> "mytext"
> LCS a b MINMATCHLEN 4 -> "mytext"
> LCS a b LEN MINMATCHLEN 4 WITHMATCHLEN -> 6
> LCS a a -> "ohmytext"
> LCS a a IDX -> ["matches", [[[0, 7], [0, 7]]], "len", 8]
> SET n1 123456 -> OK
> SET n2 923457 -> OK
> LCS n1 n2 -> "2345"
> LCS n1 n2 IDX -> ["matches", [[[1, 4], [1, 4]]], "len", 4]
"#,
    );
}

#[test]
fn of_several_longest_subsequences_the_one_of_redis() {
    check(
        r#"
> MSET a abcabcabdabcxyzabab b abababcabcxyxzabcd -> OK
> LCS a b -> "ababababcxyzab"
> LCS b a -> "ababababcxyzab"
> MSET a abcbdab b bdcaba -> OK
> LCS a b -> "bdab"
> LCS b a -> "bcba"
> LCS a b IDX -> ["matches", [[[5, 6], [3, 4]], [[3, 4], [0, 1]]], "len", 4]
> LCS b a IDX MINMATCHLEN 2 -> ["matches", [], "len", 4]
> MSET a xaxbyc b aybxxc -> OK
> LCS a b -> "ayc"
> LCS b a -> "xxc"
> LCS a b IDX -> ["matches", [[[5, 5], [5, 5]], [[4, 4], [1, 1]], [[1, 1], [0, 0]]], "len", 3]
> LCS b a IDX -> ["matches", [[[5, 5], [5, 5]], [[4, 4], [2, 2]], [[3, 3], [0, 0]]], "len", 3]
"#,
    );
}

#[test]
fn missing_keys_are_empty() {
    check(
        r#"
> SET a abc -> OK
> LCS a nokey -> ""
> LCS nokey a LEN -> 0
> LCS a nokey IDX -> ["matches", [], "len", 0]
> LCS nokey nokey2 IDX -> ["matches", [], "len", 0]
"#,
    );
}

#[test]
fn errors() {
    check(
        r#"
> MSET a abc b abd -> OK
> LCS a b IDX MINMATCHLEN abc -> -ERR value is not an integer or out of range
> LCS a b IDX MINMATCHLEN -> -ERR syntax error
> LCS a b BAD -> -ERR syntax error
> LCS a b LEN IDX -> -ERR If you want both the length and indexes, please just use IDX.
> LCS a b IDX LEN MINMATCHLEN abc -> -ERR value is not an integer or out of range
> LCS a -> -ERR wrong number of arguments for 'lcs' command
> SETRANGE a 11583 x -> 11584
> SETRANGE b 11585 x -> 11586
> LCS a b -> -ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len
> LCS a b LEN -> -ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len
> LCS a b LEN IDX -> -ERR If you want both the length and indexes, please just use IDX.
"#,
    );
}
