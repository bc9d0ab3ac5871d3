//! CLIENT and its subcommands.

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn a_line_has_all_fields_in_order() {
    check(
        "> CLIENT INFO\n\
         ~~ \"id=1 addr=127.0.0.1:40001 laddr=127.0.0.1:6379 fd=10 name= age=0 idle=0 flags=N db=0 \
         sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 \
         rbp=0 obl=0 oll=0 omem=0 tot-mem=[1-9]* events=r cmd=client|info user=default redir=-1 \
         resp=2 lib-name= lib-ver= io-thread=0 tot-net-in=0 tot-net-out=0 tot-cmds=0\\\\n\"\n",
    );
}

#[test]
fn client_list_shows_state() {
    check(
        r#"
a> PING -> PONG
b> SELECT 7 -> OK
@advance 2500
b> GET -> -ERR wrong number of arguments for 'get' command
@advance 1600
# The last command is shown even if it was refused, unless it is unknown.
a> CLIENT LIST
a< ~~ "id=1 * age=4 idle=0 *cmd=client|list *\\nid=2 *age=4 idle=2 flags=N db=7 *cmd=get *\\n"
b> NOSUCH -> ~~ -ERR unknown*
a> CLIENT LIST -> ~~ "*\\nid=2 *cmd=NULL *"
a> HELLO 3 -> ~~ {*}
a> CLIENT LIST -> ~~ =txt:id=1 * resp=3 *
a> CLIENT LIST ID 2 1 99 -1 2 -> ~~ =txt:id=2 *\\nid=1 *\\nid=2 *\\n
a> CLIENT LIST ID 3 -> =txt:
"#,
    );
}

#[test]
fn list_filters() {
    check(
        r#"
> CLIENT LIST TYPE normal -> ~~ "id=1 *"
> CLIENT LIST type NORMAL -> ~~ "id=1 *"
> CLIENT LIST TYPE master -> ""
> CLIENT LIST TYPE replica -> ""
> CLIENT LIST TYPE slave -> ""
> CLIENT LIST TYPE pubsub -> ""
> CLIENT LIST TYPE foo -> -ERR Unknown client type 'foo'
> CLIENT LIST TYPE -> -ERR syntax error
> CLIENT LIST ID -> -ERR syntax error
> CLIENT LIST ID 1 x -> -ERR Invalid client ID
> CLIENT LIST TYPE normal ID 1 -> -ERR syntax error
> CLIENT LIST x -> -ERR syntax error
"#,
    );
}

#[test]
fn setname_and_getname() {
    check(
        r#"
> CLIENT GETNAME -> nil
> CLIENT SETNAME me -> OK
> CLIENT GETNAME -> "me"
> CLIENT SETNAME "a b" -> -ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "a\n" -> -ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT SETNAME "caf\xc3\xa9"
-ERR Client names cannot contain spaces, newlines or special characters.
> CLIENT INFO -> ~~ "* name=me *"
# Checked and listed up to a zero byte, stored whole.
> CLIENT SETNAME "z\x00 b" -> OK
> CLIENT GETNAME -> "z\x00 b"
> CLIENT INFO -> ~~ "* name=z age=*"
> CLIENT SETNAME "" -> OK
> CLIENT GETNAME -> nil
> HELLO 3 -> ~~ {*}
> CLIENT GETNAME -> nil
"#,
    );
}

#[test]
fn setinfo() {
    check(
        r#"
> CLIENT SETINFO foo x -> -ERR Unrecognized option 'foo'
> CLIENT SETINFO Lib-Name "x y"
-ERR Lib-Name cannot contain spaces, newlines or special characters.
> CLIENT SETINFO lib-ver "x\t"
-ERR lib-ver cannot contain spaces, newlines or special characters.
> CLIENT SETINFO LIB-NAME jedis(x) -> OK
> CLIENT SETINFO LIB-VER 1.0 -> OK
> CLIENT INFO -> ~~ "* lib-name=jedis(x) lib-ver=1.0 io-thread=0*"
> CLIENT SETINFO lib-ver "" -> OK
> CLIENT INFO -> ~~ "* lib-name=jedis(x) lib-ver= *"
> CLIENT SETINFO lib-ver -> -ERR wrong number of arguments for 'client|setinfo' command
"#,
    );
}

#[test]
fn no_evict_and_no_touch() {
    check(
        r#"
> CLIENT NO-EVICT x -> -ERR syntax error
> CLIENT NO-TOUCH x -> -ERR syntax error
> CLIENT NO-TOUCH -> -ERR wrong number of arguments for 'client|no-touch' command
> CLIENT NO-EVICT On -> OK
> CLIENT INFO -> ~~ "* flags=e *"
> CLIENT NO-TOUCH on -> OK
> CLIENT INFO -> ~~ "* flags=eT *"
> CLIENT NO-EVICT OFF -> OK
> CLIENT NO-TOUCH off -> OK
> CLIENT INFO -> ~~ "* flags=N *"
> CLIENT GETREDIR -> -1
"#,
    );
}

#[test]
fn forms_and_errors() {
    check(
        r#"
> CLIENT -> -ERR wrong number of arguments for 'client' command
> CLIENT foo -> -ERR unknown subcommand 'foo'. Try CLIENT HELP.
> CLIENT ID x -> -ERR wrong number of arguments for 'client|id' command
> CLIENT INFO x -> -ERR wrong number of arguments for 'client|info' command
> CLIENT HELP x -> -ERR wrong number of arguments for 'client|help' command
> CLIENT HELP
~~ \[CLIENT <subcommand> * ID,     Returns the ID of the connection., INFO, * HELP, *\]
> CLIENT HELP
~~ *, KILL (<ip:port>|(ID <client-id>|TYPE (NORMAL|MASTER|*|MAXAGE <maxage>) ...), *
> CLIENT HELP -> ~~ *, LIST \[TYPE (NORMAL|*)\] \[ID <client-id> ...\], *
> CLIENT HELP
~~ *, PAUSE <timeout> \[WRITE|ALL\], * SETINFO (LIB-NAME <libname>|LIB-VER <libver>), *
"#,
    );
}

#[test]
fn kill_by_address() {
    check(
        r#"
a> CLIENT ID -> 1
b> CLIENT ID -> 2
b> CLIENT KILL -> -ERR wrong number of arguments for 'client|kill' command
b> CLIENT KILL 1.2.3.4:5 -> -ERR No such client
b> CLIENT KILL 127.0.0.1:40001 -> OK
b> CLIENT KILL 127.0.0.1:40001 -> -ERR No such client
b> CLIENT LIST -> ~~ "id=2 *\\n"
a> CLIENT ID -> 3
# The old form may kill the sending client.
a> CLIENT KILL 127.0.0.1:40003 -> OK
a> CLIENT ID -> 4
"#,
    );
}

#[test]
fn kill_by_filters() {
    check(
        r#"
a> CLIENT ID -> 1
b> CLIENT ID -> 2
b> CLIENT KILL ID 2 -> 0
b> CLIENT KILL ID 1 USER default TYPE master -> 0
b> CLIENT KILL ID 1 ADDR 127.0.0.1:40001 LADDR 127.0.0.1:6380 -> 0
b> CLIENT KILL TYPE NORMAL id 1 ADDR 127.0.0.1:40001 laddr 127.0.0.1:6379 USER default -> 1
b> CLIENT KILL ID 1 -> 0
a> CLIENT ID -> 3
c> CLIENT ID -> 4
# The last filter of a kind counts.
b> CLIENT KILL ID 3 ID 4 -> 1
b> CLIENT LIST -> ~~ "id=2 *\\nid=3 *\\n"
@advance 1999
d> CLIENT ID -> 5
b> CLIENT KILL MAXAGE 2 -> 0
b> CLIENT KILL MAXAGE 1 -> 1
b> CLIENT LIST -> ~~ "id=2 *\\nid=5 *\\n"
b> CLIENT KILL SKIPME no SKIPME yes -> 1
b> CLIENT KILL ID 2 SKIPME no -> 1
b> CLIENT ID -> 6
"#,
    );
}

#[test]
fn kill_errors() {
    check(
        r#"
> CLIENT KILL ID 0 -> -ERR client-id should be greater than 0
> CLIENT KILL ID x -> -ERR client-id should be greater than 0
> CLIENT KILL ID 9223372036854775808 -> -ERR client-id should be greater than 0
> CLIENT KILL MAXAGE x -> -ERR maxage is not an integer or out of range
> CLIENT KILL MAXAGE 0 -> -ERR maxage should be greater than 0
> CLIENT KILL TYPE foo -> -ERR Unknown client type 'foo'
> CLIENT KILL USER foo -> -ERR No such user 'foo'
> CLIENT KILL SKIPME x -> -ERR syntax error
> CLIENT KILL ADDR a LADDR -> -ERR syntax error
> CLIENT KILL foo bar -> -ERR syntax error
"#,
    );
}

#[test]
fn unblock_ends_waits() {
    check(
        r#"
> CLIENT UNBLOCK 1 -> 0
> CLIENT UNBLOCK 99 error -> 0
> CLIENT UNBLOCK 1 TIMEOUT -> 0
> CLIENT UNBLOCK x -> -ERR value is not an integer or out of range
> CLIENT UNBLOCK x foo -> -ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
> CLIENT UNBLOCK 1 ERROR x
-ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.
"#,
    );
}

#[test]
fn reply_modes() {
    check(
        r#"
> CLIENT REPLY x -> -ERR syntax error
> CLIENT REPLY ON -> OK
# SKIP suppresses its own reply and the next one.
> CLIENT REPLY SKIP
> PING
> PING -> PONG
> CLIENT REPLY SKIP
> NOSUCH
> PING -> PONG
> CLIENT REPLY SKIP
> GET
> PING -> PONG
> CLIENT REPLY SKIP
> CLIENT REPLY x
> PING -> PONG
> CLIENT REPLY SKIP
> CLIENT REPLY SKIP
> PING
> PING -> PONG
> CLIENT REPLY SKIP
> CLIENT REPLY ON -> OK
> CLIENT REPLY SKIP
> RESET
> PING -> PONG
# OFF suppresses all replies except those of ON and RESET.
> CLIENT REPLY OFF
> PING
> SET k v
> CLIENT REPLY SKIP
> CLIENT REPLY x
> NOSUCH
> HELLO 3
> CLIENT REPLY ON -> OK
> GET k -> "v"
> CLIENT REPLY OFF
> RESET -> RESET
> PING -> PONG
> CLIENT REPLY SKIP
> CLIENT REPLY OFF
> PING
> PING
> CLIENT REPLY ON -> OK
> CLIENT REPLY OFF
> QUIT
> PING -> PONG
"#,
    );
}

#[test]
fn pause_and_its_errors() {
    check(
        r#"
> CLIENT PAUSE -> -ERR wrong number of arguments for 'client|pause' command
> CLIENT PAUSE x -> -ERR timeout is not an integer or out of range
> CLIENT PAUSE -1 -> -ERR timeout is negative
> CLIENT PAUSE 9223372036854775807 -> -ERR timeout is out of range
> CLIENT PAUSE x foo -> -ERR CLIENT PAUSE mode must be WRITE or ALL
> CLIENT PAUSE 1 write x
-ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
> CLIENT PAUSE 0 -> OK
> SET k v -> OK
"#,
    );
}

#[test]
fn a_pause_of_writes_suspends_commands_that_may_store_a_result() {
    check(
        r#"
a> CLIENT PAUSE 1000 write -> OK
b> PFCOUNT h
b<
@advance 1000
b> PFCOUNT h -> 0
"#,
    );
}

#[test]
fn a_pause_suspends_commands() {
    // A request without a reply waits.
    check(
        r#"
a> CLIENT PAUSE 1000 write -> OK
b> GET k -> nil
b> SET k 1
a> CLIENT LIST -> ~~ "* flags=N *\\n* flags=b *cmd=set *"
@advance 999
b> SET k 1
@advance 1
b> SET k 2 -> OK
b> CLIENT PAUSE 1000 -> OK
b> GET k
b> PING
# Even UNPAUSE waits for the end of the pause.
b> CLIENT UNPAUSE
@advance 1000
b> GET k -> "2"
b> CLIENT PAUSE 1000 WRITE -> OK
b> SET k 3
b> CLIENT UNPAUSE -> OK
b> SET k 3 -> OK
"#,
    );
}

#[test]
fn a_key_that_expires_in_a_pause_stays_until_its_end() {
    check(
        r#"
> SET k v PX 10 -> OK
> HSET h a 1 b 2 -> 2
> HPEXPIRE h 10 FIELDS 1 a -> [1]
> HSETEX e PX 10 FIELDS 1 a 1 -> 1
> CLIENT PAUSE 1000 WRITE -> OK
@advance 11
> GET k -> nil
> EXISTS k -> 0
> KEYS k* -> []
> HRANDFIELD e -3 -> []
> HRANDFIELD e -> nil
> HGET h a -> nil
> HMGET h a b -> [nil, "2"]
> HEXISTS h a -> 0
> HSTRLEN h a -> 0
> HTTL h FIELDS 1 a -> [-2]
> HGETALL h -> ["b", "2"]
> HSCAN h 0 -> ["0", ["b", "2"]]
> HRANDFIELD h 5 -> ["b"]
> HRANDFIELD h -2 -> ["b", "b"]
> HRANDFIELD h -> "b"
> HLEN h -> 2
> DBSIZE -> 3
> CLIENT UNPAUSE -> OK
> DBSIZE -> 3
> GET k -> nil
! expired:k => DEL k
> HGET h a -> nil
! hexpired:h => HDEL h a
> HGET e a -> nil
! hexpired:e del:e => HDEL e a
> RANDOMKEY -> "h"
> DBSIZE -> 1
"#,
    );
}

#[test]
fn keys_expire_after_a_pause() {
    check(
        r#"
> SET k v PX 10 -> OK
> CLIENT PAUSE 100 WRITE -> OK
@advance 50
> GET k -> nil
> SET k v NX
@advance 50
> SET k v NX -> OK
! expired:k => DEL k
! set:k => SET k v NX
> DBSIZE -> 1
"#,
    );
}

#[test]
fn the_longer_and_stricter_pause_stays() {
    check(
        r#"
# Mode and end of a pause are extended independently.
> CLIENT PAUSE 1000 WRITE -> OK
> CLIENT PAUSE 0 ALL -> OK
@advance 999
> GET k
@advance 1
> GET k -> nil
# A pause that has ended does not count.
> CLIENT PAUSE 10 ALL -> OK
@advance 10
> CLIENT PAUSE 1000 WRITE -> OK
> GET k -> nil
> SET k v
> CLIENT PAUSE 5000 WRITE -> OK
@advance 4999
> SET k v
@advance 1
> SET k v -> OK
"#,
    );
}

#[test]
fn a_killed_client_is_closed_by_its_owner_thread() {
    let mut server = TestServer::new(1);
    run(&mut server, "> CLIENT ID\n1\nb> CLIENT KILL TYPE normal\nb< 1\n");
    assert_eq!(*server.host.closed.borrow(), [1]);
}
