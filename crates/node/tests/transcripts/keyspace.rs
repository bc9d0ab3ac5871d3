//! Commands on whole databases.

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn sizes_and_flushes() {
    check(
        r#"
> DBSIZE -> 0
> SET a 1 -> OK
> SET b 1 -> OK
> DBSIZE -> 2
> DBSIZE x -> -ERR wrong number of arguments for 'dbsize' command
> COPY a c DB 3 -> 1
> FLUSHDB foo -> -ERR syntax error
> FLUSHDB ASYNC SYNC -> -ERR syntax error
> FLUSHALL SYNC SYNC -> -ERR syntax error
> FLUSHALL now -> -ERR syntax error
> FLUSHDB async -> OK
!  => FLUSHDB async
> DBSIZE -> 0
> SWAPDB 0 3 -> OK
> DBSIZE -> 1
> SWAPDB 0 3 -> OK
> SET a 1 -> OK
> FLUSHALL SYNC -> OK
!  => FLUSHALL SYNC
> DBSIZE -> 0
> SWAPDB 0 3 -> OK
> DBSIZE -> 0
# An empty database is flushed too, because a replica may have keys.
> FLUSHALL -> OK
!  => FLUSHALL
> FLUSHDB SYNC -> OK
!  => FLUSHDB SYNC
"#,
    );
}

#[test]
fn swapdb() {
    check(
        r#"
> SWAPDB 0 -> -ERR wrong number of arguments for 'swapdb' command
> SWAPDB x 1 -> -ERR invalid first DB index
> SWAPDB 0 x -> -ERR invalid second DB index
> SWAPDB 99 x -> -ERR invalid second DB index
> SWAPDB 99 0 -> -ERR DB index is out of range
> SWAPDB 0 99 -> -ERR DB index is out of range
> SWAPDB -1 0 -> -ERR DB index is out of range
> SWAPDB 9999999999 0 -> -ERR invalid first DB index
> SWAPDB 0 99999999999 -> -ERR invalid second DB index
> SET a zero -> OK
> PEXPIRE a 100 -> 1
> SWAPDB 0 0 -> OK
!  => SWAPDB 0 0
> GET a -> "zero"
> SWAPDB 0 1 -> OK
!  => SWAPDB 0 1
> GET a -> nil
> SET a one -> OK
> SWAPDB 1 0 -> OK
> GET a -> "zero"
@advance 101
> SWAPDB 1 0 -> OK
> GET a -> "one"
> MOVE a 1 -> 1
! expired:a => DEL a
! move_from:a move_to:a@1 => MOVE a 1
"#,
    );
}

/// The numbers of keys that another thread sees each time the clock is read.
#[test]
fn keys_changed_by_one_command_are_counted_at_once() {
    let both = "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[2], 'v')
        return redis.call('DBSIZE')";
    let exec = "MULTI\nOK\n> DEL a\nQUEUED\n> SET b v\nQUEUED\n> DBSIZE\nQUEUED\n> EXEC\n\
                [1, OK, 3]\n";
    let cases = [
        (exec.to_owned(), vec![3]),
        (format!("EVAL \"{both}\" 2 a b\n3\n"), vec![3]),
        (format!("EVAL \"{both}\" 2 a new\n3\n"), vec![3]),
        (format!("MULTI\nOK\n> EVAL \"{both}\" 2 a b\nQUEUED\n> EXEC\n[3]\n"), vec![3]),
        ("MULTI\nOK\n> FLUSHALL\nQUEUED\n> SET x y\nQUEUED\n> EXEC\n[OK, OK]\n".into(), vec![3, 1]),
        ("EVAL \"redis.call('SWAPDB', 0, 1) redis.call('DEL', 'e')\" 0\nnil\n".into(), vec![3, 0]),
    ];
    for (requests, expected) in cases {
        for waits in [false, true] {
            let mut server = TestServer::new(1024);
            run(&mut server, "> MSET a 1 c 2 d 3\nOK\n> SELECT 1\nOK\n> SET e 1\nOK\n");
            run(&mut server, "> SELECT 0\nOK\n");
            if waits {
                run(&mut server, "q> BLPOP b q 0\n");
            }
            server.take_totals_seen();
            run(&mut server, &format!("> {requests}"));
            assert_eq!(server.take_totals_seen(), expected, "{requests}, waits: {waits}");
        }
    }
    let mut server = TestServer::new(1024);
    run(&mut server, "> SET a 1\nOK\nq> BLPOP q 0\n");
    server.take_totals_seen();
    run(&mut server, "> RPUSH q element\n1\nq< [\"q\", \"element\"]\n");
    assert_eq!(server.take_totals_seen(), [1], "another thread saw the list before it was served");
}
