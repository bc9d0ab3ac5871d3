//! Several sets: intersections, unions and differences.

use crate::check::check;

#[test]
fn intersections() {
    check(
        r#"
> SADD a 1 2 3 4 -> 4
> SADD b 2 3 4 5 -> 4
> SADD c x 3 4 y -> 4
> SINTER a b -> ["2", "3", "4"]
> SINTER b a -> ["2", "3", "4"]
> SINTER a c -> ["3", "4"]
> SINTER c a b -> ["3", "4"]
> SINTER a a -> ["1", "2", "3", "4"]
> SINTER a -> ["1", "2", "3", "4"]
> SINTER a nokey -> []
> SINTER nokey -> []
> HELLO 3 -> ~~ *
> SINTER a b -> ~["2", "3", "4"]
> SINTER a nokey -> ~[]
> HELLO 2 -> ~~ *
> SINTERCARD 2 a b -> 3
> SINTERCARD 2 a b LIMIT 0 -> 3
> SINTERCARD 2 a b limit 2 -> 2
> SINTERCARD 2 a b LIMIT 5 LIMIT 1 -> 1
> SINTERCARD 3 a b nokey -> 0
> SINTERCARD 1 a -> 4
> SINTERCARD 2 a a LIMIT 9223372036854775807 -> 4
"#,
    );
}

#[test]
fn stored_intersections() {
    check(
        r#"
> SADD a 1 2 3 4 -> 4
> SADD b 2 3 4 5 -> 4
> SADD c x 3 4 y -> 4
> SINTERSTORE d a b -> 3
> SMEMBERS d -> ["2", "3", "4"]
> SINTERSTORE d a c -> 2
> OBJECT ENCODING d -> "intset"
> SMEMBERS d -> ["3", "4"]
> SADD c2 x y 3 -> 3
> SINTERSTORE d c c2 -> 3
> OBJECT ENCODING d -> "listpack"
> SMEMBERS d -> ["x", "y", "3"]
> SINTERSTORE a a b -> 3
> SMEMBERS a -> ["2", "3", "4"]
> SINTERSTORE d a nokey -> 0
> EXISTS d -> 0
> SINTERSTORE d a nokey -> 0
> SADD e 100 -> 1
> SINTERSTORE d a e -> 0
> SET d text EX 100 -> OK
> SINTERSTORE d a b -> 3
> TYPE d -> set
> TTL d -> -1
> SET d text -> OK
> SINTERSTORE d a e -> 0
> EXISTS d -> 0
> SINTERSTORE d nokey -> 0
"#,
    );
}

#[test]
fn unions() {
    check(
        r#"
> SADD a 1 2 -> 2
> SADD b 2 3 -> 2
> SADD c x 2 y -> 3
> SUNION a b -> ["1", "2", "3"]
> SUNION a -> ["1", "2"]
> SUNION nokey -> []
> SUNION a a -> ["1", "2"]
> SUNION nokey b -> ["2", "3"]
> SUNION c a -> ~~ \["*", "*", "*", "*"]
> HELLO 3 -> ~~ *
> SUNION a b -> ~["1", "2", "3"]
> SUNION nokey nokey -> ~[]
> HELLO 2 -> ~~ *
> SUNIONSTORE d a b -> 3
> SMEMBERS d -> ["1", "2", "3"]
> OBJECT ENCODING d -> "intset"
> SUNIONSTORE d a b c -> 5
> OBJECT ENCODING d -> "listpack"
> SMEMBERS d -> ["1", "2", "3", "x", "y"]
> SUNIONSTORE d c -> 3
> SMEMBERS d -> ["x", "2", "y"]
> SUNIONSTORE d nokey -> 0
> EXISTS d -> 0
> SUNIONSTORE d nokey -> 0
> SUNIONSTORE a a b -> 3
> SMEMBERS a -> ["1", "2", "3"]
> SET t text EX 100 -> OK
> SUNIONSTORE t a nokey -> 3
> TTL t -> -1
> SMEMBERS t -> ["1", "2", "3"]
"#,
    );
}

#[test]
fn differences() {
    check(
        r#"
> SADD a 1 2 3 4 -> 4
> SADD b 2 -> 1
> SADD c 4 x -> 2
> SDIFF a b c -> ["1", "3"]
> SDIFF a -> ["1", "2", "3", "4"]
> SDIFF nokey a -> []
> SDIFF a nokey -> ["1", "2", "3", "4"]
> SDIFF a a -> []
> SDIFF a b a -> []
> SDIFF c a -> ["x"]
> HELLO 3 -> ~~ *
> SDIFF a b -> ~["1", "3", "4"]
> SDIFF nokey a -> ~[]
> SDIFF a a -> ~[]
> HELLO 2 -> ~~ *
> SDIFFSTORE d a b c -> 2
> SMEMBERS d -> ["1", "3"]
> OBJECT ENCODING d -> "intset"
> SDIFFSTORE d c a -> 1
> OBJECT ENCODING d -> "listpack"
> SMEMBERS d -> ["x"]
> SDIFFSTORE d a a -> 0
> EXISTS d -> 0
> SDIFFSTORE d a a -> 0
> SDIFFSTORE a a b -> 3
> SMEMBERS a -> ["1", "3", "4"]
> SDIFFSTORE d nokey a -> 0
> SET t text EX 100 -> OK
> SDIFFSTORE t a b -> 3
> TTL t -> -1
"#,
    );
}

#[test]
fn effects_of_stored_results() {
    check(
        r#"
> SADD a 1 2 3 -> 3
> SADD b 2 3 4 -> 3
> SINTERSTORE d a b -> 2
! sinterstore:d => SINTERSTORE d a b
> SUNIONSTORE d a b -> 4
! sunionstore:d => SUNIONSTORE d a b
> SDIFFSTORE d a b -> 1
! sdiffstore:d => SDIFFSTORE d a b
> SDIFFSTORE d a a -> 0
! del:d => SDIFFSTORE d a a
> SDIFFSTORE d a a -> 0
> SUNIONSTORE d a -> 3
> SINTERSTORE d a nokey -> 0
! del:d => SINTERSTORE d a nokey
> SET d text -> OK
> SUNIONSTORE d nokey -> 0
! del:d => SUNIONSTORE d nokey
> PEXPIRE b 5 -> 1
@advance 6
> SINTERSTORE d a b -> 0
! expired:b => DEL b
> SUNIONSTORE d a b b -> 3
! sunionstore:d => SUNIONSTORE d a b b
"#,
    );
}

#[test]
fn many_sets_and_large_sets() {
    check(
        r#"
> SADD a 1 2 -> 2
> SADD b 2 3 -> 2
> SADD c 3 x -> 2
> SADD d x y -> 2
> SADD e y z -> 2
> SADD f z 1 w -> 3
> SUNIONSTORE r a b c d e f -> 7
> SADD check 1 2 3 w x y z -> 7
> SDIFF r check -> []
> SDIFF check r -> []
> SUNION f a -> ["z", "1", "w", "2"]
> SUNION a b c d e f -> ["z", "1", "w", "2", "3", "x", "y"]
> SUNION nokey a b c d e f nokey -> ["z", "1", "w", "2", "3", "x", "y"]
> CONFIG SET set-max-listpack-entries 2 set-max-intset-entries 2 -> OK
> SADD big a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 -> 29
> SINTERCARD 2 big r -> 7
> SADD big2 r s t u v w x y z 1 2 3 4 5 6 -> 15
> SINTERCARD 2 big big2 -> 12
> SINTERCARD 3 big2 big a -> 2
> SINTER big a big2 -> ["1", "2"]
> SUNIONSTORE all big big2 -> 32
> SDIFFSTORE rest all big -> 3
> SDIFFSTORE rest all big2 -> 17
> SADD q a b c d -> 4
> SDIFFSTORE rest all big2 q q q q q q -> 13
> SCARD rest -> 13
"#,
    );
}
