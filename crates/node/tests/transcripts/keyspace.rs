//! Whole databases.

use crate::check::check;

#[test]
fn sizes_and_flushes() {
    check(
        r#"
> DBSIZE
0
> SET a 1
OK
> SET b 1
OK
> DBSIZE
2
> DBSIZE x
-ERR wrong number of arguments for 'dbsize' command
> COPY a c DB 3
1
> FLUSHDB foo
-ERR syntax error
> FLUSHDB ASYNC SYNC
-ERR syntax error
> FLUSHALL SYNC SYNC
-ERR syntax error
> FLUSHALL now
-ERR syntax error
> FLUSHDB async
OK
!  => FLUSHDB async
> DBSIZE
0
> SWAPDB 0 3
OK
> DBSIZE
1
> SWAPDB 0 3
OK
> SET a 1
OK
> FLUSHALL SYNC
OK
!  => FLUSHALL SYNC
> DBSIZE
0
> SWAPDB 0 3
OK
> DBSIZE
0
# Nothing was there, but a replica may have something.
> FLUSHALL
OK
!  => FLUSHALL
> FLUSHDB SYNC
OK
!  => FLUSHDB SYNC
"#,
    );
}

#[test]
fn swaps() {
    check(
        r#"
> SWAPDB 0
-ERR wrong number of arguments for 'swapdb' command
> SWAPDB x 1
-ERR invalid first DB index
> SWAPDB 0 x
-ERR invalid second DB index
> SWAPDB 99 x
-ERR invalid second DB index
> SWAPDB 99 0
-ERR DB index is out of range
> SWAPDB 0 99
-ERR DB index is out of range
> SWAPDB -1 0
-ERR DB index is out of range
> SWAPDB 9999999999 0
-ERR invalid first DB index
> SWAPDB 0 99999999999
-ERR invalid second DB index
> SET a zero
OK
> PEXPIRE a 100
1
> SWAPDB 0 0
OK
!  => SWAPDB 0 0
> GET a
"zero"
> SWAPDB 0 1
OK
!  => SWAPDB 0 1
> GET a
nil
> SET a one
OK
> SWAPDB 1 0
OK
> GET a
"zero"
@advance 101
> SWAPDB 1 0
OK
> GET a
"one"
> MOVE a 1
1
! expired:a => DEL a
! move_from:a move_to:a@1 => MOVE a 1
"#,
    );
}
