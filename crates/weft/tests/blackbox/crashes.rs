//! The crash reports in the log of a server that ends by a bug or by a signal of the kernel.

use std::os::unix::process::ExitStatusExt;

use test_support::{Launch, READY, encode, eventually, in_shell, request};

use crate::Server;

const START: &str = "=== WEFT BUG REPORT START ===";
const END: &str = "=== WEFT BUG REPORT END";
const DEBUG: &[&str] = &["--enable-debug-command", "yes"];
/// The name of the function in the program that executes the command.
const FUNCTION: &str = "commands::debug::debug";
const ABORT: i32 = 6;
const SEGMENTATION_FAULT: i32 = 11;

fn start(options: &[&str]) -> Server {
    Server::start(&[options, DEBUG].concat())
}

/// Waits until a signal has ended the server, and checks its report.
#[track_caller]
fn check(server: &mut Server, signal: i32, report: impl FnOnce(&Server) -> String, words: &[&str]) {
    assert_eq!(server.wait().signal(), Some(signal), "{}", server.log());
    let report = report(server);
    for words in words.iter().chain(&[END]) {
        assert!(report.contains(words), "no {words:?}:\n{report}");
    }
    assert_eq!(report.matches(START).count(), 1, "{report}");
}

fn file(server: &Server) -> String {
    std::fs::read_to_string(server.path("log")).unwrap()
}

#[test]
fn a_fault_is_reported_and_loses_nothing() {
    let options = ["--appendonly", "yes"];
    let mut server = start(&options);
    let mut client = server.client();
    client.ok("SET kept 1");
    client.send("DEBUG SEGFAULT");
    let words = ["crashed by signal: 11 (SIGSEGV)", "Address: 0x1", "Thread: weft-main", FUNCTION];
    check(&mut server, SEGMENTATION_FAULT, Server::log, &words);
    assert!(!server.log().contains("has overflowed"));
    let server = Server::start_in(server.into_folder(), &options);
    assert_eq!(server.client().ask("EXISTS kept").int(), 1);
}

#[test]
fn reports_go_to_the_file_of_the_log() {
    for (command, signal) in [("SEGFAULT", SEGMENTATION_FAULT), ("PANIC", ABORT)] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log").to_str().unwrap().to_owned();
        let options = [&["--logfile", &log, "--daemonize", "no"], DEBUG].concat();
        let words = "";
        let mut server = Launch::weft().in_folder(folder).options(&options).until(words).start();
        eventually("it serves", || file_or_nothing(&server).contains(READY));
        server.client().send(&format!("DEBUG {command}"));
        check(&mut server, signal, file, &["Thread", "weft-main", FUNCTION]);
        // The report of a panic also goes to standard error.
        assert_eq!(server.log().contains(START), command == "PANIC", "{}", server.log());
    }
}

fn file_or_nothing(server: &Server) -> String {
    std::fs::read_to_string(server.path("log")).unwrap_or_default()
}

#[test]
fn a_panic_ends_the_server_and_says_where() {
    let mut server = start(&["--appendonly", "yes"]);
    let mut client = server.client();
    client.ok("SET kept 1");
    client.send_raw(&[request("MULTI"), request("DEBUG PANIC"), request("EXEC")].concat());
    let words = ["Thread weft-main panicked at ", "host.rs", "DEBUG PANIC has asked", FUNCTION];
    check(&mut server, ABORT, Server::log, &words);
    assert!(!server.log().contains("crashed by signal"), "{}", server.log());
    let options = ["--appendonly", "yes"];
    let server = Server::start_in(server.into_folder(), &options);
    assert_eq!(server.client().ask("EXISTS kept").int(), 1);
}

#[test]
fn an_abort_shows_what_a_stuck_server_does() {
    for (what, words) in [("DEBUG SLEEP 100", FUNCTION), ("script", "script::")] {
        let mut server = start(&["--io-threads", "1", "--busy-reply-threshold", "100000"]);
        let mut client = server.client();
        let request = match what {
            "script" => encode(&[b"EVAL", b"redis.call('PING') while true do end", b"0"]),
            command => request(command),
        };
        let now = [self::request("MULTI"), self::request("DEBUG LOG now")].concat();
        client.send_raw(&[now, request, self::request("EXEC")].concat());
        server.wait_for_log("DEBUG LOG: now");
        server.signal("ABRT");
        let said = [
            "crashed by signal: 6 (SIGABRT)",
            "The signal was sent by process",
            "weft-main",
            words,
        ];
        check(&mut server, ABORT, Server::log, &said);
    }
}

#[test]
fn crashes_are_not_reported_where_that_is_not_wanted() {
    let mut server = start(&["--crash-log-enabled", "no"]);
    server.client().send("DEBUG SEGFAULT");
    assert_eq!(server.wait().signal(), Some(SEGMENTATION_FAULT));
    assert!(!server.log().contains(START), "{}", server.log());
    let mut server = start(&[]);
    server.client().ok("CONFIG SET crash-log-enabled no");
    server.client().send("DEBUG PANIC");
    // The message is there, without frames.
    check(&mut server, ABORT, Server::log, &["panicked at"]);
    assert!(!server.log().contains(FUNCTION), "{}", server.log());
    let mut server = start(&["--crash-log-enabled", "no"]);
    server.client().ok("CONFIG SET crash-log-enabled yes");
    server.client().send("DEBUG SEGFAULT");
    check(&mut server, SEGMENTATION_FAULT, Server::log, &["crashed by signal: 11"]);
}

#[test]
fn a_stack_dump_does_not_disturb_the_server() {
    let mut server = start(&["--io-threads", "2"]);
    let mut client = server.client();
    for round in 1..=2 {
        server.signal("ALRM");
        eventually("the dump ends", || {
            server.log().matches("=== The server continues ===").count() == round
        });
        assert_eq!(client.ask("PING").text(), "PONG");
    }
    let log = server.log();
    assert!(log.contains("Received SIGALRM") && log.contains("epoll"), "{log}");
    assert!(!log.contains(START), "{log}");
    server.signal("TERM");
    assert!(server.wait().success());
}

#[test]
fn a_fault_that_a_signal_reports_ends_the_server_at_once() {
    let mut server = start(&["--crash-log-enabled", "no"]);
    server.signal("SEGV");
    assert_eq!(server.wait().signal(), Some(SEGMENTATION_FAULT));
    assert!(!server.log().contains(START), "{}", server.log());
    // Where reports cannot be prepared, no handler is installed. The limit is raised later.
    let mut server = Server::start_by(&[], |command| {
        in_shell(command, "ulimit -S -n 4; exec \"$0\" \"$@\"");
        command
    });
    assert!(server.log().contains("'crash-log-enabled' has no effect"), "{}", server.log());
    server.signal("SEGV");
    assert_eq!(server.wait().signal(), Some(SEGMENTATION_FAULT));
}
