//! Expiry of keys. The clock stands at Unix time 1700000000.

use node::config::{Config, LazyFreeing};

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn expiry_conditions() {
    check(
        r#"
> SET b 1 -> OK
> EXPIRE b 10 NX XX -> -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE b 10 nx gt -> -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE b 10 NX LT -> -ERR NX and XX, GT or LT options at the same time are not compatible
> EXPIRE b 10 GT LT -> -ERR GT and LT options at the same time are not compatible
> EXPIRE b x GT LT XX -> -ERR GT and LT options at the same time are not compatible
> EXPIRE b x foo -> -ERR Unsupported option foo
> EXPIRE nokey 10 Foo -> -ERR Unsupported option Foo
> EXPIRE b x -> -ERR value is not an integer or out of range
> EXPIRE b -> -ERR wrong number of arguments for 'expire' command
> EXPIRE nokey 10 -> 0
> EXPIRE b 10 XX -> 0
> EXPIRE b 10 XX GT -> 0
> EXPIRE b 10 GT -> 0
> EXPIRE b 10 LT -> 1
! expire:b => PEXPIREAT b 1700000010000
> EXPIRE b 10 NX -> 0
> EXPIRE b 10 GT -> 0
> EXPIRE b 10 LT -> 0
> EXPIRE b 20 xx gt -> 1
! expire:b => PEXPIREAT b 1700000020000
> EXPIRE b 30 LT -> 0
> EXPIRE b 30 XX LT -> 0
> EXPIRE b 15 LT LT -> 1
! expire:b => PEXPIREAT b 1700000015000
> EXPIRE b 5 XX -> 1
> TTL b -> 5
> PERSIST b -> 1
! persist:b => PERSIST b
> PERSIST b -> 0
> PERSIST nokey -> 0
> EXPIRE b 7 NX -> 1
> TTL b -> 7
"#,
    );
}

#[test]
fn expiry_units() {
    check(
        r#"
> SET b 1 -> OK
> EXPIRE b 100 -> 1
> EXPIRETIME b -> 1700000100
> PEXPIRETIME b -> 1700000100000
> PEXPIRE b 1499 -> 1
! expire:b => PEXPIREAT b 1700000001499
> TTL b -> 1
> PEXPIRE b 1500 -> 1
> TTL b -> 2
> PTTL b -> 1500
> EXPIRETIME b -> 1700000002
> EXPIREAT b 1700000060 -> 1
! expire:b => PEXPIREAT b 1700000060000
> TTL b -> 60
> PEXPIREAT b 1700000000123 -> 1
! expire:b => PEXPIREAT b 1700000000123
> PTTL b -> 123
> TTL b -> 0
@advance 123
> GET b -> "1"
> PTTL b -> 0
@advance 1
> GET b -> nil
! expired:b => DEL b
> TTL b -> -2
> PTTL b -> -2
> EXPIRETIME b -> -2
> PEXPIRETIME b -> -2
> SET b 1 -> OK
> TTL b -> -1
> PTTL b -> -1
> EXPIRETIME b -> -1
> PEXPIRETIME b -> -1
> TTL -> -ERR wrong number of arguments for 'ttl' command
"#,
    );
}

#[test]
fn expiry_limits() {
    check(
        r#"
> SET b 1 -> OK
> EXPIRE b 9223372036854775807 -> -ERR invalid expire time in 'expire' command
> EXPIRE b 9223372036854775808 -> -ERR value is not an integer or out of range
> EXPIRE b 9223372036854776 -> -ERR invalid expire time in 'expire' command
> EXPIRE b 9223372036854775 -> -ERR invalid expire time in 'expire' command
> EXPIRE b -9223372036854776 -> -ERR invalid expire time in 'expire' command
> EXPIRE nokey 9223372036854775807 -> -ERR invalid expire time in 'expire' command
> PEXPIRE b 9223372036854775807 -> -ERR invalid expire time in 'pexpire' command
> EXPIREAT b 9223372036854776 -> -ERR invalid expire time in 'expireat' command
> EXPIREAT b 9223372036854775 -> 1
! expire:b => PEXPIREAT b 9223372036854775000
> PEXPIREAT b 9223372036854775807 -> 1
> PEXPIRETIME b -> 9223372036854775807
> EXPIRETIME b -> 9223372036854776
> PTTL b -> 9223370336854775807
> TTL b -> 9223370336854776
> EXPIRE b -9223372036854775 -> 1
! del:b => DEL b
> SET b 1 -> OK
> PEXPIREAT b -9223372036854775808 -> 1
! del:b => DEL b
> SET b 1 -> OK
> PEXPIRE b -9223372036854775808 -> 1
! del:b => DEL b
"#,
    );
}

#[test]
fn an_expiry_in_the_past_removes_the_key() {
    const REQUESTS: &str = r#"
> SET b 1 -> OK
> EXPIRE b 0 -> 1
! del:b => DEL b
> EXISTS b -> 0
> SET b 1 -> OK
> PEXPIREAT b 1700000000000 -> 1
! del:b => DEL b
> SET b 1 -> OK
> EXPIREAT b 0 XX -> 0
> EXPIREAT b 0 GT -> 0
> EXPIREAT b 0 LT -> 1
! del:b => DEL b
> SET b 1 -> OK
> PEXPIRE b 1 -> 1
@advance 2
> EXPIRE b 100 -> 0
! expired:b => DEL b
"#;
    check(REQUESTS);
    for shards in [1, 1024] {
        let config = Config {
            lazyfree: LazyFreeing { lazy_expire: true, ..LazyFreeing::default() },
            ..Config::default()
        };
        let mut server = TestServer::with_config(shards, config);
        run(&mut server, &REQUESTS.replace("=> DEL", "=> UNLINK"));
    }
}

#[test]
fn commands_on_several_keys_ignore_keys_that_expired_in_a_pause() {
    check(
        r#"
> SADD s a -> 1
> ZADD z 1 b -> 1
> PEXPIRE s 10 -> 1
> PEXPIRE z 10 -> 1
> CLIENT PAUSE 1000 WRITE -> OK
@advance 11
> SUNION s s -> []
> ZUNION 2 s z -> []
> DBSIZE -> 2
"#,
    );
}
