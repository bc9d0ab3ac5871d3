//! Values as payloads: DUMP and RESTORE.

use node::config::{Config, Permit};

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn payloads_of_each_encoding() {
    check(
        r#"
> DUMP -> -ERR wrong number of arguments for 'dump' command
> DUMP a b -> -ERR wrong number of arguments for 'dump' command
> DUMP nokey -> nil
> SET string text -> OK
> SET int 10 -> OK
> SET run aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa -> OK
> RPUSH list a 1 b -> 3
> SADD ints 1 2 300 -> 3
> SADD words a -> 1
> ZADD zset 1 a 2.5 b -> 2
> HSET hash f v -> 1
> HSET ending f v -> 1
> HPEXPIREAT ending 2000000000000 FIELDS 1 f -> [1]
> XADD stream 1-1 f v -> "1-1"
> XGROUP CREATE stream g 0 -> OK
> DUMP string -> "\x00\x04text\x0c\x00\xb7\x85\x12\xad0\x9f;x"
> DUMP int -> "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2"
> DUMP run -> "\x00\xc3\t(\x01aa\xe0\x1b\x00\x01aa\x0c\x00\x04\x7f\x1bjT\x0f\x1dT"
> DUMP list
"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x01\x01\x81b\x02\xff\x0c\x00[5\x97\x8c\x11\xa4\x8
  5U"
> DUMP ints
"\x0b\x0e\x02\x00\x00\x00\x03\x00\x00\x00\x01\x00\x02\x00,\x01\x0c\x00.f\x86N\x81\xbf\xb7\xe3"
> DUMP words -> "\x14\n\n\x00\x00\x00\x01\x00\x81a\x02\xff\x0c\x00Uv\xf6h\x9eZ\x0c\xb4"
> DUMP zset
"\x11\x14\x14\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x832.5\x04\xff\x0c\x00\x1f:Zd\x0cnG\x9e"
> DUMP hash
"\x10\r\r\x00\x00\x00\x02\x00\x81f\x02\x81v\x02\xff\x0c\x00\xeb\x87\t\x84\xd9~\x96\xd4"
> DUMP ending
"\x19\x00 J\xa9\xd1\x01\x00\x00\x17\x17\x00\x00\x00\x03\x00\x81f\x02\x81v\x02\xf4\x00 J\xa9\xd1\x01\
  x00\x00\t\xff\x0c\x00C\x86\xf4=\x95\xfat\xe6"
> DUMP stream
"\x15\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x1d\x1d\x00\x00\x00\n\
  x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\x04\x01\xff\x01\x01\
  x01\x01\x01\x00\x00\x01\x01\x01g\x00\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x0c\x00\x17ts
  q\x1cU\x86\x13"
"#,
    );
}

#[test]
fn options_and_errors() {
    check(
        r#"
> RESTORE k -> -ERR wrong number of arguments for 'restore' command
> RESTORE k 0 -> -ERR wrong number of arguments for 'restore' command
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" -> OK
! ~~ restore:k => RESTORE k 0 *
> GET k -> "10"
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2"
-BUSYKEY Target key name already exists.
> RESTORE k x nothing -> -BUSYKEY Target key name already exists.
> RESTORE k x nothing REPLACE -> -ERR value is not an integer or out of range
> RESTORE k -1 nothing REPLACE -> -ERR Invalid TTL value, must be >= 0
> RESTORE k 0 nothing REPLACE -> -ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "" REPLACE -> -ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf3" REPLACE
-ERR DUMP payload version or checksum are wrong
> RESTORE k 0 "\x00\xc0\n\x0d\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" REPLACE
-ERR DUMP payload version or checksum are wrong
> RESTORE k 0 nothing REPLACE nosuch -> -ERR syntax error
> RESTORE k 0 nothing IDLETIME -> -ERR syntax error
> RESTORE k 0 nothing IDLETIME x -> -ERR value is not an integer or out of range
> RESTORE k 0 nothing IDLETIME -1 -> -ERR Invalid IDLETIME value, must be >= 0
> RESTORE k 0 nothing FREQ -> -ERR syntax error
> RESTORE k 0 nothing FREQ x -> -ERR value is not an integer or out of range
> RESTORE k 0 nothing FREQ -1 -> -ERR Invalid FREQ value, must be >= 0 and <= 255
> RESTORE k 0 nothing FREQ 256 -> -ERR Invalid FREQ value, must be >= 0 and <= 255
> RESTORE k 0 nothing IDLETIME 1 FREQ 1 -> -ERR syntax error
> RESTORE k 0 nothing FREQ 1 IDLETIME 1 -> -ERR syntax error
> RESTORE k 0 nothing IDLETIME 1 IDLETIME -2 -> -ERR Invalid IDLETIME value, must be >= 0
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" replace idletime 100 -> OK
> OBJECT IDLETIME k -> 100
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" REPLACE FREQ 255 -> OK
> OBJECT IDLETIME k -> 0
> GET k -> "10"
"#,
    );
}

#[test]
fn expiries() {
    check(
        r#"
> RESTORE k 1000 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" -> OK
> PTTL k -> 1000
> RESTORE k 5000 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" REPLACE IDLETIME 5 -> OK
! ~~ restore:k => RESTORE k 1700000005000 * REPLACE IDLETIME 5 ABSTTL
> PTTL k -> 5000
> RESTORE k 9000000000000 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" REPLACE ABSTTL -> OK
! ~~ restore:k => RESTORE k 9000000000000 * REPLACE ABSTTL
> PEXPIRETIME k -> 9000000000000
> RESTORE k 0 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" REPLACE ABSTTL -> OK
> PTTL k -> -1
> RESTORE nokey 1 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" ABSTTL -> OK
> EXISTS nokey -> 0
> RESTORE k 1 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" ABSTTL REPLACE -> OK
! del:k => DEL k
> EXISTS k -> 0
> RESTORE far 9223372036854775807 "\x00\xc0\n\x0c\x00\xa5\xe9c\x85\xf4\x84\xfd\xf2" -> OK
! ~~ restore:far => RESTORE far 9223372036854775807 * ABSTTL
> GET far -> "10"
"#,
    );
}

#[test]
fn contents_are_validated() {
    check(
        r#"
> CONFIG GET sanitize-dump-payload -> ["sanitize-dump-payload", "no"]
> CONFIG SET sanitize-dump-payload yes -> OK
> CONFIG GET sanitize-dump-payload -> ["sanitize-dump-payload", "yes"]
> CONFIG SET sanitize-dump-payload maybe
-ERR CONFIG SET failed (possibly related to argument 'sanitize-dump-payload') - argument(s) must be
   one of the following: no, yes, clients
# No content; an unknown type; a module; a set with a member twice; a list of no elements.
> RESTORE r 0 "\x0c\x00\x96\xedh\x80\xf5U<\x93" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\xff\x0c\x00\x02>\xb1\xdc\x88\r\xa2^" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x1a\x0c\x00\xa2IVN\xee^f\xc0" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\a\x00\x0c\x009q\xbe\xcc*&qH" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x06\x00\x0c\x00?\x12\xc7@IN\x90\xc4" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x02\x02\x01a\x01a\x0c\x00\x9c\xc8B\xef8\xfc\xccs" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x01\x00\x0c\x00\x90\x8e\x11\x0c\x96=\xdd\x1f" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x02\x00\x0c\x00\xf1\xb8\r\xc0a\xa3\xa7\xa1" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x00\x00trailing\x0c\x00\x13\xdd3\xe5\x01jO\xca" REPLACE -> OK
> RESTORE r 0 "\x12\x01\x03\x01a\x0c\x00\xbc7qA(\x91bU" REPLACE -> -ERR Bad data format
> RESTORE r 0 "\x04\x02\x01a\x01x\x01a\x01y\x0c\x00\x96\xb0\xeapL\x02\xd6K" REPLACE
-ERR Bad data format
"#,
    );
}

#[test]
fn a_restored_list_serves_waiters() {
    check(
        r#"
b> BLPOP list 0
> RPUSH other x -> 1
> DUMP other -> "\x12\x01\x02\n\n\x00\x00\x00\x01\x00\x81x\x02\xff\x0c\x00\x1a\r\x0bx\xa6)\x98G"
> RESTORE list 0 "\x12\x01\x02\n\n\x00\x00\x00\x01\x00\x81x\x02\xff\x0c\x00\x1a\r\x0bx\xa6)\x98G"
OK
b< ["list", "x"]
> EXISTS list -> 0
"#,
    );
}

#[test]
fn the_length_of_a_serialized_value() {
    let config = Config { enable_debug_command: Permit::Local, ..Config::default() };
    run(
        &mut TestServer::with_config(4, config),
        r#"
> SET k 10 -> OK
> DEBUG OBJECT k
~~ Value at:* refcount:* encoding:int serializedlength:2 lru:* lru_seconds_idle:0
"#,
    );
}

/// The content is checked anyway.
#[test]
fn payloads_with_a_wrong_checksum_are_restored_for_tests() {
    let config = Config { enable_debug_command: Permit::Yes, ..Config::default() };
    run(
        &mut TestServer::with_config(4, config),
        r#"
> RESTORE k 0 "\x00\x01x\x0c\x00--------" -> -ERR DUMP payload version or checksum are wrong
> DEBUG SET-SKIP-CHECKSUM-VALIDATION 1 -> OK
> RESTORE k 0 "\x00\x01x\x0c\x00--------" -> OK
> GET k -> "x"
> RESTORE l 0 "\x00\x09x\x0c\x00--------" -> -ERR Bad data format
> RESTORE l 0 "\x00\x01x\x0d\x00--------" -> -ERR DUMP payload version or checksum are wrong
> DEBUG SET-SKIP-CHECKSUM-VALIDATION 0 -> OK
> RESTORE l 0 "\x00\x01x\x0c\x00--------" -> -ERR DUMP payload version or checksum are wrong
"#,
    );
}

/// Redis and Valkey refuse each other's payloads of hashes whose fields expire.
#[test]
fn hashes_whose_fields_expire_are_restored_in_the_log_by_commands() {
    let mut server = TestServer::new(4);
    let mut send = |line: &[&[u8]]| {
        let args: Vec<Vec<u8>> = line.iter().map(|arg| arg.to_vec()).collect();
        server.request("a", &args)
    };
    send(&[b"HSET", b"h", b"a", b"1", b"b", b"2"]);
    send(&[b"HPEXPIRE", b"h", b"100", b"FIELDS", b"1", b"b"]);
    let (reply, _) = send(&[b"DUMP", b"h"]);
    let start = reply.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
    let payload = &reply[start..reply.len() - 2];
    let (_, effects) = send(&[b"RESTORE", b"copy", b"5000", payload]);
    let commands: Vec<String> = effects[0]
        .commands
        .iter()
        .map(|command| String::from_utf8_lossy(&command.args.join(&b' ')).into_owned())
        .collect();
    let expected = [
        "DEL copy",
        "HSET copy b 2 a 1",
        "HPEXPIREAT copy 1700000000100 FIELDS 1 b",
        "PEXPIREAT copy 1700000005000",
    ];
    assert_eq!(commands, expected);
}
