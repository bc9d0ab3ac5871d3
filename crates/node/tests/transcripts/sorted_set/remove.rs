//! Members removed by name and in ranges.

use super::check_both;
use crate::check::check;

#[test]
fn zrem() {
    check_both(
        r#"
> ZADD z 1 a 2 b 3 c -> 3
> ZREM z a x -> 1
! zrem:z => ZREM z a x
> ZREM z x y -> 0
> ZREM z b c d -> 2
! zrem:z del:z => ZREM z b c d
> EXISTS z -> 0
> ZREM z a -> 0
> SET s 1 -> OK
> ZREM s a -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREM z -> -ERR wrong number of arguments for 'zrem' command
"#,
    );
}

#[test]
fn ranges_removed() {
    check_both(
        r#"
> ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h -> 8
> ZREMRANGEBYRANK z 1 2 -> 2
! zremrangebyrank:z => ZREMRANGEBYRANK z 1 2
> ZRANGE z 0 -1 -> ["a", "d", "e", "f", "g", "h"]
> ZREMRANGEBYRANK z -1 -1 -> 1
> ZREMRANGEBYRANK z 9 10 -> 0
> ZREMRANGEBYRANK z 3 1 -> 0
> ZREMRANGEBYSCORE z (1 4 -> 1
! zremrangebyscore:z => ZREMRANGEBYSCORE z (1 4
> ZREMRANGEBYSCORE z 100 200 -> 0
> ZRANGE z 0 -1 -> ["a", "e", "f", "g"]
> ZREMRANGEBYLEX z (a (f -> 1
! zremrangebylex:z => ZREM z e
> ZRANGE z 0 -1 -> ["a", "f", "g"]
> ZREMRANGEBYLEX z + - -> 0
> ZREMRANGEBYSCORE z -inf inf -> 3
! zremrangebyscore:z del:z => ZREMRANGEBYSCORE z -inf inf
> EXISTS z -> 0
> ZADD z 0 a 0 b -> 2
> ZREMRANGEBYLEX z - + -> 2
! zremrangebylex:z del:z => ZREMRANGEBYLEX z - +
> ZADD z 0 a 0 b -> 2
> ZREMRANGEBYRANK z 0 -1 -> 2
! zremrangebyrank:z del:z => ZREMRANGEBYRANK z 0 -1
> ZREMRANGEBYRANK z 0 -1 -> 0
> ZREMRANGEBYSCORE z 0 1 -> 0
> ZREMRANGEBYLEX z - + -> 0
"#,
    );
}

#[test]
fn errors_of_removals() {
    check(
        r#"
> SET s 1 -> OK
> ZREMRANGEBYRANK s 0 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYSCORE s 0 1 -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYLEX s - + -> -WRONGTYPE Operation against a key holding the wrong kind of value
> ZREMRANGEBYRANK s x 1 -> -ERR value is not an integer or out of range
> ZREMRANGEBYSCORE s x 1 -> -ERR min or max is not a float
> ZREMRANGEBYLEX s x + -> -ERR min or max not valid string range item
> ZREMRANGEBYRANK z 0 x -> -ERR value is not an integer or out of range
> ZREMRANGEBYRANK z 0 -> -ERR wrong number of arguments for 'zremrangebyrank' command
> ZREMRANGEBYSCORE z 0 nan -> -ERR min or max is not a float
> ZREMRANGEBYLEX z - z -> -ERR min or max not valid string range item
"#,
    );
}
