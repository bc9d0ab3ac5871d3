//! `weft top`: one report as text and JSON, the screen in a pseudo-terminal, and failures.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::Value;
use test_support::{Killed, encode, eventually, free_port, weft};

use super::terminal::Terminal;
use super::{run, texts};
use crate::{Client, Server};

fn top(args: &[&str]) -> Command {
    let mut command = weft();
    command.arg("top").args(args).env_remove("REDISCLI_AUTH");
    command
}

/// The output of `weft top`, and its exit code.
fn ask(args: &[&str]) -> (String, String, Option<i32>) {
    texts(&run(&mut top(args), b""))
}

/// A client that sends requests until this is dropped.
struct Load {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn begin(mut client: Client) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&ends);
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                client.ok("SET busy v");
                client.ask("GET busy");
                client.ask("GET none");
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A report of one second.
fn report(port: u16) -> Value {
    let (out, errors, code) = ask(&["-p", &port.to_string(), "--json"]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn a_report_shows_the_work_of_the_server() {
    let server = Server::start(&["--io-threads", "3", "--slowlog-log-slower-than", "0"]);
    server.client().ok("SET k\u{1b}[31m v");
    let load = Load::begin(server.client());
    let report = report(server.port);
    assert!(report["server"].as_str().unwrap().starts_with("Weft "), "{report}");
    assert_eq!(report["process"], server.process().0, "{report}");
    assert_eq!(report["is_local"], true, "{report}");
    assert_eq!(report["io_threads"], "3");
    assert!(report["commands_per_second"].as_f64().unwrap() > 10.0, "{report}");
    let threads = report["threads"].as_array().unwrap();
    let names: Vec<_> = threads.iter().map(|thread| thread["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["main", "1", "2"]);
    let sum =
        |field: &str| -> f64 { threads.iter().map(|thread| thread[field].as_f64().unwrap()).sum() };
    assert!(sum("cpu") > 0.0 && sum("busy") > 0.0 && sum("reads_per_second") > 0.0, "{report}");
    // The connections of the load and of `weft top`.
    assert_eq!(sum("clients"), 2.0, "{report}");
    let commands = report["commands"].as_array().unwrap();
    let get = commands.iter().find(|command| command["name"] == "get").unwrap();
    assert!(get["mean_us"].as_f64().unwrap() > 0.0 && get["p99_us_so_far"].is_f64(), "{get}");
    let hit_rate = report["keys"]["hit_rate"].as_f64().unwrap();
    assert!((0.3..0.7).contains(&hit_rate), "{report}");
    assert!(report["hot_keys"].is_array(), "{report}");
    assert!(!report["slow_log"].as_array().unwrap().is_empty(), "{report}");
    assert!(report["verdict"]["advice"].is_string(), "{report}");
    assert_eq!(report["replication"]["role"], "master");
    drop(load);

    let (text, errors, code) = ask(&["-p", &server.port.to_string(), "--once"]);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    for words in ["Weft ", "\nlimit   ", "\nadvice  ", "\nTHREADS\n", "\nCOMMANDS\n", "SLOW LOG"] {
        assert!(text.contains(words), "no {words:?} in:\n{text}");
    }
    // Bytes of a key that control the terminal do not reach it.
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_report_costs_the_server_hardly_anything() {
    let server = Server::start(&["--io-threads", "3"]);
    let (before, rounds) = (server.process().busy(), 5);
    for _ in 0..rounds {
        ask(&["-p", &server.port.to_string(), "--once", "-i", "0.1"]);
    }
    let ms = (server.process().busy() - before) / rounds / 1_000_000;
    // Part of the second that a report takes; this build is not optimised.
    assert!(ms < 200, "{ms} ms for each report");
}

#[test]
fn problems_are_reported_in_a_sentence() {
    let server = Server::start(&["--requirepass", "right"]);
    server.client().send("AUTH right");
    let port = server.port.to_string();
    let nothing = free_port().to_string();
    for (args, said) in [
        (&["-p", &nothing, "--once"][..], "Could not connect to Redis at 127.0.0.1:"),
        (&["-p", &nothing, "--json"], "Could not connect to Redis at 127.0.0.1:"),
        (&["-h", "host.invalid", "--once"], "Could not connect to Redis at host.invalid:6379"),
        (&["-p", &port, "-a", "wrong", "--once"], "AUTH failed: WRONGPASS"),
        (&["-p", &port, "--once"], "the server refused INFO: NOAUTH"),
        (&["-p", &port, "-a", "right"], "this is no terminal: --once prints one report"),
        (&["-p", &port, "--once", "-i", "0"], "the interval is between 0.1 and 3600 seconds"),
        (&["-p", &port, "--tls", "--insecure", "--once"], "Could not negotiate a TLS connection"),
    ] {
        let (out, errors, code) = ask(args);
        assert!(errors.starts_with(said), "{args:?}: {errors}");
        assert_eq!((out.as_str(), code, errors.lines().count()), ("", Some(1), 1), "{args:?}");
    }
    let (out, errors, code) = ask(&["-p", &port, "-a", "right", "--once"]);
    assert!(out.starts_with("Weft "), "{out}{errors}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_user_may_be_allowed_no_more_than_info() {
    let server = Server::start(&[]);
    server.client().ok("ACL SETUSER watcher on >pw +info +ping");
    let port = server.port.to_string();
    let args = ["-p", &port, "--user", "watcher", "-a", "pw", "--json"];
    let (out, errors, code) = ask(&args);
    assert_eq!((errors.as_str(), code), ("", Some(0)));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert!(report["slow_log"].is_null() && report["hot_keys"].is_null(), "{report}");
    assert!(report["io_threads"].is_null() && report["threads"].is_array(), "{report}");
}

#[test]
fn a_server_that_goes_away_ends_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mut command = top(&["-p", &port, "--once"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Killed(command.spawn().unwrap());
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = [0; 16];
    stream.read_exact(&mut request).unwrap();
    stream.write_all(b"+OK\r\n").unwrap();
    drop(stream);
    let mut errors = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(errors.starts_with("the server is gone: "), "{errors}");
    assert_eq!(child.0.wait().unwrap().code(), Some(1));
}

#[test]
fn a_malformed_info_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        // Each request arrives alone, since the client waits for its reply.
        while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
            stream.write_all(b"+OK\r\n").unwrap();
        }
    });
    let (out, errors, code) = ask(&["--once", "-p", &port]);
    assert_eq!((out.as_str(), code), ("", Some(1)), "{errors}");
    assert!(errors.contains("does not answer INFO as Redis does"), "{errors}");
    server.join().unwrap();
}

#[test]
fn the_screen_follows_the_server_until_a_key_ends_it() {
    let server = Server::start(&["--io-threads", "3"]);
    let load = Load::begin(server.client());
    let port = server.port.to_string();
    let program = top(&[]);
    let start = |args: &[&str]| {
        let args = [&["-p", &port, "-i", "0.3"], args].concat();
        Terminal::run(&program, server.folder(), &args)
    };
    let mut terminal = start(&[]);
    terminal.waits("the threads", |text| {
        ["Weft ", "limit ", "advice ", "THREADS", "COMMANDS", "HOT KEYS", "q ends"]
            .iter()
            .all(|words| text.contains(words))
    });
    terminal.waits("the commands", |text| {
        text.lines().any(|line| line.starts_with("set ")) && text.contains("\nmain ")
    });
    drop(load);
    terminal.waits("the end of the load", |text| text.contains("hardly any commands come"));
    terminal.type_keys("q");
    terminal.ends_with(0);
    for keys in ["\x03", "\x1b"] {
        let mut terminal = start(&[]);
        terminal.waits("a report", |text| text.contains("THREADS"));
        terminal.type_keys(keys);
        terminal.ends_with(0);
    }
}

#[test]
fn a_signal_ends_the_screen_as_a_key_does() {
    let server = Server::start(&[]);
    let port = server.port.to_string();
    for signal in ["INT", "TERM", "HUP"] {
        let args = ["-p", &port, "-i", "0.5"];
        let terminal = Terminal::run(&top(&[]), server.folder(), &args);
        terminal.waits("a report", |text| text.contains("THREADS"));
        terminal.ends_by(signal, 130);
    }
}

#[test]
fn the_screen_says_that_the_server_is_silent_or_gone() {
    let mut server = Server::start(&[]);
    let port = server.port.to_string();
    let args = ["-p", &port, "-i", "0.2"];
    let mut silent = Terminal::run(&top(&[]), server.folder(), &args);
    let gone = Terminal::run(&top(&[]), server.folder(), &args);
    for terminal in [&silent, &gone] {
        terminal.waits("a report", |text| text.contains("THREADS"));
    }
    server.signal("STOP");
    silent.waits("silence", |text| text.contains("no answer from the server for"));
    // Keys still work.
    silent.type_keys("q");
    silent.ends_with(0);
    server.signal("KILL");
    server.wait();
    gone.waits("the reason", |text| text.contains("the server is gone"));
    gone.ends_with(1);
}

#[test]
fn the_screen_stays_while_a_script_keeps_the_server_busy() {
    let options = ["--busy-reply-threshold", "100", "--io-threads", "1"];
    let server = Server::start(&options);
    let mut script = server.client();
    let mut other = server.client();
    let port = server.port.to_string();
    let mut terminal = Terminal::run(&top(&[]), server.folder(), &["-p", &port, "-i", "0.2"]);
    terminal.waits("a report", |text| text.contains("THREADS"));
    script.send_raw(&encode(&[b"EVAL", b"while true do end", b"0"]));
    terminal.waits("the reason", |text| text.contains("BUSY ") && text.contains("THREADS"));
    let (_, errors, code) = ask(&["-p", &port, "--once"]);
    assert!(errors.starts_with("the server refused INFO: BUSY "), "{errors}");
    assert_eq!(code, Some(1));
    other.ok("SCRIPT KILL");
    terminal.waits("the end of it", |text| text.contains("q ends"));
    terminal.type_keys("q");
    terminal.ends_with(0);
}

#[test]
fn top_ends_with_its_terminal() {
    let server = Server::start(&[]);
    let pair = native_pty_system().openpty(PtySize::default()).unwrap();
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" top -i 1 -p \"$1\""]);
    command.arg(weft().get_program());
    command.arg(server.port.to_string());
    command.env("TERM", "xterm");
    let mut child = pair.slave.spawn_command(command).unwrap();
    drop(pair.slave);
    let mut reader = pair.master.try_clone_reader().unwrap();
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains("THREADS") {
        let count = reader.read(&mut bytes).unwrap();
        assert_ne!(count, 0, "{shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    drop((reader, pair.master));
    let mut status = None;
    eventually("it ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().exit_code(), 129);
}

/// The available peers: `WEFT_PEERS` names their folder.
#[test]
fn the_peers_are_watched_as_well() {
    let Some(folder) = std::env::var_os("WEFT_PEERS").map(PathBuf::from) else {
        eprintln!("skipped: WEFT_PEERS names no folder");
        return;
    };
    let data = tempfile::tempdir().unwrap();
    for name in ["redis", "valkey"] {
        let program = folder.join(format!("{name}-server"));
        if !program.exists() {
            eprintln!("skipped: no {name}-server");
            continue;
        }
        let port = free_port();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--save", "", "--io-threads", "2"]);
        command.current_dir(data.path()).stdout(Stdio::null());
        let _peer = Killed(command.spawn().unwrap());
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        eventually("it listens", || Client::try_tcp(address).is_ok());
        let _load = Load::begin(Client::tcp(address));
        let report = report(port);
        let server = report["server"].as_str().unwrap().to_lowercase();
        assert!(server.starts_with(name), "{server}");
        let threads = report["threads"].as_array().unwrap();
        assert_eq!(threads.len(), 2, "{report}");
        assert!(threads[0]["cpu"].as_f64().unwrap() > 0.0, "{report}");
        assert!(report["commands_per_second"].as_f64().unwrap() > 10.0, "{report}");
    }
}
