//! SLOWLOG.

use crate::check::run;
use crate::fake::TestServer;

#[test]
fn slow_commands_are_logged() {
    let mut server = TestServer::new(4);
    run(&mut server, "> SLOWLOG LEN\n0\n> SLOWLOG GET\n[]\n");
    server.host.ticks.set(12_345);
    let arity = "-ERR wrong number of arguments for 'get' command";
    run(&mut server, &format!("> CLIENT SETNAME me\nOK\n> SET k v\nOK\n> GET\n{arity}\n"));
    server.host.ticks.set(9_999);
    run(
        &mut server,
        r#"
> SLOWLOG GET
[[1, 1700000000, 12345, ["SET", "k", "v"], "127.0.0.1:40001", "me"], [0, 1700000000, 12345,
   ["CLIENT", "SETNAME", "me"], "127.0.0.1:40001", "me"]]
> SLOWLOG GET 1 -> [[1, 1700000000, 12345, ["SET", "k", "v"], "127.0.0.1:40001", "me"]]
> SLOWLOG GET 0 -> []
> SLOWLOG LEN -> 2
> SLOWLOG RESET -> OK
> SLOWLOG LEN -> 0
"#,
    );
}

#[test]
fn threshold_and_length_are_configured() {
    run(
        &mut TestServer::new(1),
        r#"
> CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 2 -> OK
> PING -> PONG
> SLOWLOG GET
[[1, 1700000000, 0, ["PING"], "127.0.0.1:40001", ""], [0, 1700000000, 0, ["CONFIG", "SET",
   "slowlog-log-slower-than", "0", "slowlog-max-len", "2"], "127.0.0.1:40001", ""]]
> SLOWLOG LEN -> 2
> CONFIG SET slowlog-max-len 0 -> OK
> SLOWLOG GET -1
[[3, 1700000000, 0, ["SLOWLOG", "LEN"], "127.0.0.1:40001", ""], [2, 1700000000, 0, ["SLOWLOG",
   "GET"], "127.0.0.1:40001", ""]]
> CONFIG SET slowlog-log-slower-than -1 slowlog-max-len 10 -> OK
> SLOWLOG RESET -> OK
> SLOWLOG LEN -> 0
"#,
    );
}

#[test]
fn long_arguments_are_shortened_and_secrets_omitted() {
    let mut server = TestServer::new(1);
    let many = (1..=40).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let long = "x".repeat(130);
    let transcript = format!(
        r#"
> CONFIG SET slowlog-log-slower-than 0 -> OK
> SET k {long} -> OK
> COMMAND INFO {many} -> ~~ \[nil, *
> CONFIG SET hz 10 requirepass secret -> OK
> CONFIG SET masterauth secret -> OK
> AUTH secret -> OK
> HELLO 2 AUTH default secret SETNAME n -> ~~ \[*
> ACL SETUSER u >secret -> OK
> ACL GETUSER u -> ~~ \[*
> ACL DELUSER u -> 1
> CONFIG SET slowlog-log-slower-than -1 -> OK
"#
    );
    run(&mut server, &transcript);
    let kept = "x".repeat(128);
    let shown = (1..=29).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
    let transcript = format!(
        r#"
> SLOWLOG GET
~~ \[\[9, 1700000000, 0, \["ACL", "DELUSER", "(redacted)"\], *],
   *\["ACL", "GETUSER", "(redacted)"\], *\["ACL", "SETUSER", "(redacted)", "(redacted)"\], *],
   *\[6, 1700000000, 0, \["HELLO", "2", "AUTH", "(redacted)", "(redacted)", "SETNAME", "n"\], *],
   *\["AUTH", "(redacted)"\], *\["CONFIG", "SET", "masterauth", "(redacted)"\], *],
   *\["CONFIG", "SET", "hz", "10", "requirepass", "(redacted)"\],
   *\["COMMAND", "INFO", {shown}, "... (11 more arguments)"\], *\["SET", "k",
   "{kept}... (2 more bytes)"\], *
"#
    );
    run(&mut server, &transcript);
}

#[test]
fn errors() {
    run(
        &mut TestServer::new(1),
        r#"
> SLOWLOG -> -ERR wrong number of arguments for 'slowlog' command
> SLOWLOG GET -2 -> -ERR count should be greater than or equal to -1
> SLOWLOG GET x -> -ERR count should be greater than or equal to -1
> SLOWLOG GET 1 2
-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
> SLOWLOG LEN x -> -ERR wrong number of arguments for 'slowlog|len' command
> SLOWLOG NOSUCH -> -ERR unknown subcommand 'NOSUCH'. Try SLOWLOG HELP.
> SLOWLOG HELP -> ~~ \[SLOWLOG <subcommand> *, LEN, *
"#,
    );
}
