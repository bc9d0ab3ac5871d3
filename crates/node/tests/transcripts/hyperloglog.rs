//! PFADD, PFCOUNT, PFMERGE, PFDEBUG, PFSELFTEST.

use crate::check::check;

#[test]
fn pfadd() {
    check(
        r#"
> PFADD k -> 1
! pfadd:k => PFADD k
> GET k -> "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
> PFADD k -> 0
> PFADD k a b c -> 1
! pfadd:k => PFADD k a b c
> GET k -> "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80`\xf3\x80P\xb1\x84K\xfb\x80BZ"
> PFADD k a c -> 0
> PFADD k "" d -> 1
> PFCOUNT k -> 5
> OBJECT ENCODING k -> "raw"
> TYPE k -> string
> PFADD new x -> 1
! pfadd:new => PFADD new x
> PFCOUNT new -> 1
!  => PFCOUNT new
> PFCOUNT new -> 1
> GET new -> "HYLL\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x7f\xf5\x84\b"
> PFADD new x -> 0
> GET new -> "HYLL\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x7f\xf5\x84\b"
> PFADD new y -> 1
> GET new -> "HYLL\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x80zS\x88E\xa0\x84\b"
> PFCOUNT nokey -> 0
> SET s abc -> OK
> PFADD s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFADD s a -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFCOUNT s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> SET s 12 -> OK
> PFADD s a -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFCOUNT s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFADD -> -ERR wrong number of arguments for 'pfadd' command
> PFCOUNT -> -ERR wrong number of arguments for 'pfcount' command
"#,
    );
}

#[test]
fn sparse_hyperloglogs_become_dense() {
    check(
        r#"
> CONFIG SET hll-sparse-max-bytes 10 -> OK
> PFADD k a b c -> 1
> PFDEBUG ENCODING k -> dense
> PFADD k d e f g h i j k -> 1
> PFDEBUG ENCODING k -> dense
> STRLEN k -> 12304
> PFCOUNT k -> 11
> CONFIG SET hll-sparse-max-bytes 3000 -> OK
> PFADD r a b c -> 1
> PFDEBUG TODENSE r -> 1
!  => PFDEBUG TODENSE r
> PFDEBUG TODENSE r -> 0
> PFDEBUG ENCODING r -> dense
> PFCOUNT r -> 3
> PFADD r a -> 0
> PFADD r z -> 1
> PFCOUNT r -> 4
"#,
    );
}

#[test]
fn pfcount_of_several_keys() {
    check(
        r#"
> PFADD a 1 2 3 4 -> 1
> PFADD b 3 4 5 6 -> 1
> PFCOUNT a b -> 6
> PFCOUNT a b nokey a -> 6
> PFCOUNT nokey nokey2 -> 0
> PFDEBUG TODENSE b -> 1
> PFCOUNT a b -> 6
> SET s x -> OK
> PFCOUNT a s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFCOUNT s a -> -WRONGTYPE Key is not a valid HyperLogLog string value.
"#,
    );
}

#[test]
fn pfmerge() {
    check(
        r#"
> PFADD a 1 2 3 4 -> 1
> PFADD b 3 4 5 6 -> 1
> PFMERGE d a b -> OK
! pfadd:d => PFMERGE d a b
> PFCOUNT d -> 6
> PFDEBUG ENCODING d -> sparse
> GET d
"HYLL\x01\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00A\xee\x84H#\x80SQ\x80Mt\x80Q,\x8c@\xcf\x84C\"
  "
> PFMERGE d -> OK
! pfadd:d => PFMERGE d
> PFMERGE new -> OK
> GET new -> "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
> PFMERGE new nokey -> OK
> PFCOUNT new -> 0
> PFDEBUG TODENSE b -> 1
> PFMERGE d b -> OK
> PFDEBUG ENCODING d -> dense
> PFCOUNT d -> 6
> PFADD c 7 8 9 -> 1
> PFMERGE d c -> OK
> PFCOUNT d -> 9
> PFDEBUG ENCODING d -> dense
> PFDEBUG ENCODING c -> sparse
> SET s x -> OK
> PFMERGE d s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFMERGE s d -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFMERGE t s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> EXISTS t -> 0
> PFMERGE -> -ERR wrong number of arguments for 'pfmerge' command
"#,
    );
}

#[test]
fn corrupt_values() {
    check(
        r#"
> SET k "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80" -> OK
> PFADD k a -> -INVALIDOBJ Corrupted HLL object detected
> PFCOUNT k -> -INVALIDOBJ Corrupted HLL object detected
> PFMERGE d k -> -INVALIDOBJ Corrupted HLL object detected
> PFMERGE k d -> -INVALIDOBJ Corrupted HLL object detected
> SET s plain -> OK
> PFMERGE k s -> -INVALIDOBJ Corrupted HLL object detected
> PFMERGE s k -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFCOUNT k k -> -INVALIDOBJ Corrupted HLL object detected
> PFDEBUG TODENSE k -> -INVALIDOBJ Corrupted HLL object detected
> PFDEBUG GETREG k -> -INVALIDOBJ Corrupted HLL object detected
> SET k "HYLL\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x7f\xff\xff" -> OK
> PFCOUNT k -> 5
> PFCOUNT k k -> -INVALIDOBJ Corrupted HLL object detected
> SET k "HYLL\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x40" -> OK
> PFADD k a -> -INVALIDOBJ Corrupted HLL object detected
# Redis reads the byte after the end.
> PFDEBUG DECODE k -> -INVALIDOBJ Corrupted HLL object detected
> SET k "HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff" -> OK
> PFCOUNT k -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> SET k "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff" -> OK
> PFCOUNT k -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> SET k "HYLk\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x7f\xff" -> OK
> PFADD k -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> SET k "HYLL\x01\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x7f\xff" -> OK
> PFCOUNT k -> 5
"#,
    );
}

#[test]
fn pfdebug_and_pfselftest() {
    check(
        r#"
> PFADD k a b c -> 1
> PFDEBUG DECODE k -> "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"
> PFDEBUG encoding k -> sparse
> PFDEBUG SIMD ON -> enabled
> PFDEBUG simd off -> disabled
> PFDEBUG NO k -> -ERR Unknown PFDEBUG subcommand 'NO'
> PFDEBUG NO nokey -> -ERR The specified key does not exist
> PFDEBUG ENCODING nokey -> -ERR The specified key does not exist
> PFDEBUG TODENSE k -> 1
> PFDEBUG DECODE k -> -ERR HLL encoding is not sparse
> SET s x -> OK
> PFDEBUG GETREG s -> -WRONGTYPE Key is not a valid HyperLogLog string value.
> PFDEBUG GETREG -> -ERR wrong number of arguments for 'pfdebug' command
> PFSELFTEST -> OK
> PFSELFTEST x -> -ERR wrong number of arguments for 'pfselftest' command
"#,
    );
}
