//! Connection commands except CLIENT.

use node::config::Config;

use crate::check::{check, run};
use crate::fake::TestServer;

#[test]
fn ping_and_echo() {
    check(
        r#"
> PING -> PONG
> PING "hello world" -> "hello world"
> PING a b -> -ERR wrong number of arguments for 'ping' command
> ECHO "a b" -> "a b"
> ECHO -> -ERR wrong number of arguments for 'echo' command
"#,
    );
}

#[test]
fn unknown_commands() {
    check(
        r#"
> NOSUCH a "b c" -> ~~ -ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b c'?
"#,
    );
}

/// A request whose error is compared as bytes.
#[track_caller]
fn fails(request: &[&[u8]], error: &[u8]) {
    let request: Vec<Vec<u8>> = request.iter().map(|arg| arg.to_vec()).collect();
    let (reply, _) = TestServer::new(4).request("a", &request);
    let expected = [b"-", error, b"\r\n"].concat();
    assert_eq!(reply.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn errors_repeat_bytes_up_to_a_zero() {
    let unknown = |name: &[u8], args: &[u8]| {
        [b"ERR unknown command '", name, b"', with args beginning with: ", args].concat()
    };
    fails(&[b"no\0such", b"a\0b", b"\xff\xfe", b"c"], &unknown(b"no", b"'a' '\xff\xfe' 'c' "));
    fails(&[b"a\r\nb", b"c\nd"], &unknown(b"a  b", b"'c d' "));
    let (name, arg) = (b"n\xc3".repeat(100), [0xff; 100]);
    let args = [b"'", &arg[..], b"' '", &arg[..25], b"' "].concat();
    fails(&[&name, &arg, &arg, b"c"], &unknown(&name[..128], &args));
    fails(&[b"CLIENT", b"\xff\0x"], b"ERR unknown subcommand '\xff'. Try CLIENT HELP.");
    fails(&[b"EXPIRE", b"k", b"1", b"\xff\0x"], b"ERR Unsupported option \xff");
    fails(&[b"HELLO", b"3", b"\xff"], b"ERR Syntax error in HELLO option '\xff'");
    let parameter = b"ERR Unknown option or number of arguments for CONFIG SET - '\xff  x'";
    fails(&[b"CONFIG", b"SET", b"\xff\r\nx\0y", b"1"], parameter);
    fails(
        &[b"HSETEX", b"h", b"\nx\ry\r\n", b"FIELDS", b"1", b"f", b"v"],
        b"ERR unknown argument:  x y",
    );
    let no_group =
        b"NOGROUP No such key 's' or consumer group '\xff' in XREADGROUP with GROUP option";
    fails(&[b"XREADGROUP", b"GROUP", b"\xff", b"c", b"STREAMS", b"s\0k", b">"], no_group);
}

#[test]
fn select() {
    check(
        r#"
> SELECT 15 -> OK
> SET k fifteen -> OK
> SELECT x -> -ERR value is not an integer or out of range
> SELECT " 1" -> -ERR value is not an integer or out of range
> SELECT 999999999999999999999 -> -ERR value is not an integer or out of range
> SELECT 99999999999 -> -ERR value is out of range, value must between -2147483648 and 2147483647
> SELECT -2147483649 -> -ERR value is out of range, value must between -2147483648 and 2147483647
> SELECT -1 -> -ERR DB index is out of range
> SELECT 16 -> -ERR DB index is out of range
# The failed request changed nothing.
> GET k -> "fifteen"
> SELECT 0 -> OK
> GET k -> nil
"#,
    );
}

#[test]
fn quit_closes_and_a_new_client_starts_fresh() {
    check(
        r#"
> CLIENT ID -> 1
> QUIT a b -> OK
> CLIENT ID -> 2
"#,
    );
}

#[test]
fn authentication_without_password() {
    check(
        r#"
> AUTH -> -ERR wrong number of arguments for 'auth' command
> AUTH a
~~ -ERR AUTH <password> called without any password configured for the default user. Are you *
> AUTH a b -> -WRONGPASS invalid username-password pair or user is disabled.
> AUTH default b -> OK
> AUTH DEFAULT b -> -WRONGPASS invalid username-password pair or user is disabled.
> AUTH a b c -> -ERR syntax error
"#,
    );
}

fn with_password(password: &str) -> Config {
    Config { requirepass: password.into(), ..Config::default() }
}

#[test]
fn authentication_with_password() {
    let mut server = TestServer::with_config(4, with_password("pw"));
    run(
        &mut server,
        r#"
a> PING -> -NOAUTH Authentication required.
a> CLIENT LIST -> -NOAUTH Authentication required.
a> CLIENT HELP -> -NOAUTH Authentication required.
# The form is checked first.
a> CLIENT FOO -> -ERR unknown subcommand 'FOO'. Try CLIENT HELP.
a> GET -> -ERR wrong number of arguments for 'get' command
a> NOSUCH -> ~~ -ERR unknown command 'NOSUCH', with args beginning with:?
a> AUTH bad -> -WRONGPASS invalid username-password pair or user is disabled.
a> AUTH pwpw -> -WRONGPASS invalid username-password pair or user is disabled.
a> HELLO 3
a< ~~ -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <pro*
a> HELLO 3 AUTH default bad -> -WRONGPASS invalid username-password pair or user is disabled.
a> HELLO 3 AUTH default pw SETNAME zz -> ~~ {"server": "redis", *
a> CLIENT GETNAME -> "zz"
# A failure does not log the client out.
a> AUTH bad -> -WRONGPASS invalid username-password pair or user is disabled.
a> PING -> PONG
# RESET logs it out.
a> RESET -> RESET
a> PING -> -NOAUTH Authentication required.
a> AUTH pw -> OK
a> AUTH default pw -> OK
a> AUTH x pw -> -WRONGPASS invalid username-password pair or user is disabled.
b> QUIT -> OK
b> RESET -> RESET
b> PING -> -NOAUTH Authentication required.
"#,
    );
    let failures: u64 = server.node.threads.read().iter().map(|t| t.auth_failures.value()).sum();
    assert_eq!(failures, 5, "only wrong passwords count");
}

#[test]
fn errors_of_auth_and_hello() {
    check(
        "> AUTH a\n\
         -ERR AUTH <password> called without any password configured for the default user. \
         Are you sure your configuration is correct?\n",
    );
    run(
        &mut TestServer::with_config(1, with_password("pw")),
        "> HELLO\n\
         -NOAUTH HELLO must be called with the client already authenticated, otherwise the \
         HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
         select the RESP protocol version at the same time\n",
    );
}

#[test]
fn a_new_password_affects_new_connections() {
    let mut server = TestServer::new(4);
    run(&mut server, "> PING\nPONG\n");
    server.node.set_config(with_password("pw"));
    run(&mut server, "> PING\nPONG\nb> PING\nb< -NOAUTH Authentication required.\n");
    server.node.set_config(with_password("other"));
    run(
        &mut server,
        r#"
b> AUTH pw -> -WRONGPASS invalid username-password pair or user is disabled.
b> AUTH other -> OK
b> PING -> PONG
c> PING -> -NOAUTH Authentication required.
"#,
    );
    // Without a password, AUTH is not needed, but HELLO AUTH requires an argument.
    server.node.set_config(with_password(""));
    run(
        &mut server,
        r#"
c> PING -> PONG
c> HELLO 3 -> ~~ -NOAUTH HELLO must be called with the client already authenticated*
c> HELLO 2 AUTH default whatever -> ~~ *"redis"*
c> RESET -> RESET
c> HELLO 2 -> ~~ *"redis"*
"#,
    );
}

#[test]
fn hello_describes_server_and_connection() {
    check(
        "> HELLO\n\
         [\"server\", \"redis\", \"version\", \"8.0.6\", \"proto\", 2, \"id\", 1, \
         \"mode\", \"standalone\", \"role\", \"master\", \"modules\", []]\n\
         > HELLO 3\n\
         {\"server\": \"redis\", \"version\": \"8.0.6\", \"proto\": 3, \"id\": 1, \
         \"mode\": \"standalone\", \"role\": \"master\", \"modules\": []}\n",
    );
}

#[test]
fn hello() {
    check(
        r#"
> HELLO x -> -ERR Protocol version is not an integer or out of range
> HELLO 1 -> -NOPROTO unsupported protocol version
> HELLO 4 -> -NOPROTO unsupported protocol version
> HELLO 3 AUTH default -> -ERR Syntax error in HELLO option 'AUTH'
> HELLO 3 SETNAME -> -ERR Syntax error in HELLO option 'SETNAME'
> HELLO 3 foo -> -ERR Syntax error in HELLO option 'foo'
> HELLO 3 AUTH foo x -> -WRONGPASS invalid username-password pair or user is disabled.
> HELLO 3 SETNAME "a b" -> -ERR Client names cannot contain spaces, newlines or special characters.
# None of these changed anything.
> CLIENT GETNAME -> nil
> CLIENT INFO -> ~~ "id=1 * resp=2 *"
> HELLO 3 setname n1 auth default anything SETNAME n2 -> ~~ {"server": "redis", * "proto": 3, *}
> CLIENT GETNAME -> "n2"
> CLIENT INFO -> ~~ =txt:id=1 * name=n2 * resp=3 *
> HELLO -> ~~ {"server": "redis", * "proto": 3, *}
> HELLO 3 SETNAME "" -> ~~ {*}
> CLIENT GETNAME -> nil
> HELLO 2 -> ~~ \["server", "redis", *
"#,
    );
}

#[test]
fn reset() {
    check(
        r#"
> HELLO 3 SETNAME me -> ~~ {*}
> SELECT 3 -> OK
> CLIENT SETINFO lib-name lib -> OK
> CLIENT NO-TOUCH on -> OK
> CLIENT NO-EVICT on -> OK
> CLIENT INFO -> ~~ =txt:*name=me *flags=eT db=3 *resp=3 lib-name=lib *
> RESET x -> -ERR wrong number of arguments for 'reset' command
> RESET -> RESET
> CLIENT INFO -> ~~ "*name= *flags=N db=0 *resp=2 lib-name=lib *"
"#,
    );
}
