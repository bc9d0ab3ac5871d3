//! Servers that fail: the client prints one sentence and exits with a code, whatever it was doing.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::thread;

use test_support::weft;

use super::{ask, cli, run, texts};
use crate::Server;

/// A server that replies to each connection with some bytes and closes it.
fn fake(answers: Vec<&'static [u8]>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
            let _ = stream.shutdown(Shutdown::Write);
            // Requests that are left unread would reset the connection.
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    port
}

#[track_caller]
fn fails(answer: &'static [u8], args: &[&str], input: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let port = fake(vec![answer]);
    let mut command = cli(folder.path());
    command.args(["-p", &port.to_string()]).args(args);
    let (out, errors, code) = texts(&run(&mut command, input.as_bytes()));
    assert_eq!(code, Some(1), "{args:?}: {out}{errors}");
    assert!(errors.contains(expected), "{args:?}: {errors}");
}

#[test]
fn a_server_that_closes_is_reported() {
    let closed = "Error: Server closed the connection\n";
    fails(b"", &["ping"], "", closed);
    fails(b"$10\r\nabc", &["get", "k"], "", closed);
    fails(b"*2\r\n:1\r\n", &["get", "k"], "", closed);
    fails(b"", &[], "ping\n", closed);
    fails(b"", &["-n", "1", "ping"], "", closed);
    fails(b"", &["-a", "x", "ping"], "", closed);
    fails(b"", &["--json", "ping"], "", closed);
    fails(b"", &["--scan"], "", closed);
    fails(b"", &["--bigkeys"], "", closed);
    fails(b":1\r\n", &["--bigkeys"], "", closed);
    fails(b"", &["--hotkeys"], "", closed);
    fails(b"", &["--stat"], "", closed);
    fails(b"", &["--latency"], "", closed);
    fails(b"", &["--latency-dist"], "", closed);
    fails(b"+OK\r\n", &["monitor"], "", closed);
    fails(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", &["subscribe", "c"], "", closed);
    fails(b"+PONG\r\n", &["--pipe"], "PING\r\nPING\r\n", closed);
}

#[test]
fn a_server_with_another_protocol_is_reported() {
    let text = "Error: Protocol error, got \"H\" as reply type byte\n";
    fails(b"HTTP/1.1 400 Bad Request\r\n\r\n", &["ping"], "", text);
    fails(b"HTTP/1.1 400 Bad Request\r\n\r\n", &["--scan"], "", text);
    fails(b"+OK\r\n", &["--scan"], "", "The server's reply to SCAN");
    fails(b"-ERR no\r\n", &["--scan"], "", "SCAN error: ERR no\n");
    fails(b"-ERR no\r\n", &["--stat"], "", "ERROR: ERR no\n");
    fails(b"-NOAUTH x\r\n", &["--bigkeys"], "", "Couldn't determine DBSIZE: NOAUTH x\n");
}

#[test]
fn missing_options_of_redis_cli_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (args, said) in [
        (&["--cluster", "info", "127.0.0.1:6379"][..], "--cluster manages a Redis Cluster"),
        (&["--cluster", "create", "a:1", "--cluster-replicas", "1"], "--cluster manages"),
        (&["-p", "1", "--rdb", "dump.rdb"], "--rdb needs replication"),
        (&["--functions-rdb", "file"], "--functions-rdb needs replication"),
        (&["--replica"], "--replica needs replication"),
        (&["--ldb", "--eval", "script.lua"], "there is no debugger for scripts"),
        (&["--lru-test", "1000"], "--lru-test is not there; INFO stats"),
        (&["--keystats"], "--keystats is not there; --bigkeys"),
    ] {
        let (out, errors, code) = texts(&run(cli(folder.path()).args(args), b""));
        assert!(errors.starts_with(said) && errors.lines().count() == 1, "{args:?}: {errors}");
        assert_eq!((out.as_str(), code), ("", Some(1)), "{args:?}");
    }
}

#[test]
fn verbose_changes_nothing() {
    let server = Server::start(&["--io-threads", "1"]);
    assert_eq!(ask(&server, &["--verbose", "ping"], ""), ("PONG\n".into(), String::new(), Some(0)));
}

#[test]
fn a_wrong_password_is_reported() {
    let server = Server::start(&["--requirepass", "right", "--io-threads", "1"]);
    let wrong = ["--no-auth-warning", "-a", "wrong"];
    let (out, errors, code) = ask(&server, &[&wrong[..], &["get", "k"]].concat(), "");
    assert_eq!(out, "NOAUTH Authentication required.\n\n");
    assert!(errors.starts_with("AUTH failed: WRONGPASS "), "{errors}");
    assert_eq!(code, Some(1));
    let (_, errors, code) = ask(&server, &wrong, "get k\n");
    assert!(errors.starts_with("AUTH failed: WRONGPASS "), "{errors}");
    assert_eq!(code, Some(1));
    for mode in ["--scan", "--bigkeys", "--stat", "--pipe", "--latency"] {
        let (out, errors, code) = ask(&server, &[&wrong[..], &[mode]].concat(), "");
        assert_eq!((out.as_str(), code), ("", Some(1)), "{mode}");
        assert!(errors.starts_with("AUTH failed: WRONGPASS "), "{mode}: {errors}");
    }
    // A later login repairs that.
    let (out, _, code) = ask(&server, &wrong, "auth right\nget k\n");
    assert_eq!((out.as_str(), code), ("OK\n\n", Some(0)));
}

#[test]
fn passwords_come_from_the_environment_and_from_standard_input() {
    let server = Server::start(&["--requirepass", "right", "--io-threads", "1"]);
    let port = server.port.to_string();
    let mut command = cli(server.folder());
    command.args(["-p", &port, "ping"]).env("REDISCLI_AUTH", "right");
    assert_eq!(texts(&run(&mut command, b"")), ("PONG\n".into(), String::new(), Some(0)));
    // The command line wins.
    let mut command = cli(server.folder());
    command.args(["-p", &port, "-a", "right", "--no-auth-warning", "ping"]);
    command.env("REDISCLI_AUTH", "wrong");
    assert_eq!(texts(&run(&mut command, b"")), ("PONG\n".into(), String::new(), Some(0)));
    let (out, errors, code) = ask(&server, &["--askpass", "ping"], "right\n");
    assert_eq!((out.as_str(), errors.as_str(), code), ("PONG\n", "", Some(0)));
    let (_, errors, code) = ask(&server, &["--askpass", "ping"], "");
    assert_eq!((errors.as_str(), code), ("no password was given\n", Some(1)));
}

#[test]
fn shutdown_is_no_failure() {
    let mut server = Server::start(&["--io-threads", "1"]);
    assert_eq!(ask(&server, &["shutdown"], ""), (String::new(), String::new(), Some(0)));
    assert!(server.wait().success());
}

#[test]
fn a_pipe_goes_on_when_the_server_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let port = fake(vec![b"", b"+PONG\r\n"]).to_string();
    let mut command = cli(folder.path());
    let output = run(command.args(["-p", &port]), b"ping\nping\n");
    let (out, errors, code) = texts(&output);
    assert_eq!(out, "PONG\n");
    assert_eq!(errors, "Error: Server closed the connection\n");
    assert_eq!(code, Some(0));
}

#[test]
fn redirections_of_a_cluster_are_followed_where_asked() {
    let server = Server::start(&["--io-threads", "1"]);
    let (out, ..) = ask(&server, &["set", "k", "v"], "");
    assert_eq!(out, "OK\n");
    let follow = |answer: &'static [u8]| {
        let folder = tempfile::tempdir().unwrap();
        let port = fake(vec![answer]).to_string();
        texts(&run(cli(folder.path()).args(["-c", "-p", &port, "get", "k"]), b""))
    };
    let moved = &*format!("-MOVED 12182 127.0.0.1:{}\r\n", server.port).into_bytes().leak();
    assert_eq!(follow(moved), ("v\n".into(), String::new(), Some(0)));
    // A node that does not know its own address leaves it out.
    let nameless = format!("-MOVED 12182 :{}\r\n", server.port).into_bytes().leak();
    assert_eq!(follow(nameless), ("v\n".into(), String::new(), Some(0)));
    let other = fake(vec![b"+OK\r\n$3\r\nown\r\n"]);
    let asks = format!("-ASK 12182 127.0.0.1:{other}\r\n").into_bytes().leak();
    assert_eq!(follow(asks), ("own\n".into(), String::new(), Some(0)));
    let other = fake(vec![b"-ERR no cluster\r\n"]);
    let asks = format!("-ASK 12182 127.0.0.1:{other}\r\n").into_bytes().leak();
    let refused = "ASKING failed: ERR no cluster\n".to_owned();
    assert_eq!(follow(asks), (String::new(), refused, Some(1)));
    let folder = tempfile::tempdir().unwrap();
    let port = fake(vec![moved]).to_string();
    let output = run(cli(folder.path()).args(["-p", &port, "get", "k"]), b"");
    let expected = format!("MOVED 12182 127.0.0.1:{}\n\n", server.port);
    assert_eq!(texts(&output), (expected, String::new(), Some(0)));
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let server = Server::start(&["--io-threads", "1"]);
    let port = server.port.to_string();
    let program = weft().get_program().to_owned();
    let line = "\"$0\" cli -p \"$1\" -r -1 ping | head -n 2";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).arg(program).arg(port);
    let (out, errors, _) = texts(&run(&mut shell, b""));
    assert_eq!((out.as_str(), errors.as_str()), ("PONG\nPONG\n", ""));
}
