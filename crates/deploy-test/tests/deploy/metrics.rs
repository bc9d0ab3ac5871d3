//! Monitoring: `/metrics` as Prometheus's own library reads it, the metrics that alert rules and
//! dashboard name, and the server's page in a browser.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clients_test::{Tool, install_step, prepare};
use deploy_test::{Service, file, linters, output, printed, repository};
use tempfile::TempDir;

const RULES: &str = "prometheus/weft.rules.yml";
const DASHBOARD: &str = "grafana/weft.json";

/// How long a page may take.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Starts a server with metrics, and returns the port of these.
fn start(folder: &TempDir) -> (Service, u16) {
    let words = ["weft", "server", "--save", "", "--io-threads", "3", "--dir"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.push(folder.path().display().to_string());
    let mut server = Service::start(&words, &[], &[]);
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        // Another process may have taken the port.
        if server.ask(&[&format!("CONFIG SET metrics-port {port}")]) == "+OK" {
            return (server, port);
        }
    }
}

fn metrics(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

fn script(name: &str) -> PathBuf {
    repository().join("crates/deploy-test/python").join(name)
}

/// The families and samples that Prometheus's library reads in a text, or its error.
fn read_exposition(bin: &Path, text: &str) -> Result<String, String> {
    let mut command = Command::new(bin.join("python"));
    command.arg("-B").arg(script("exposition.py"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(printed(&output)) } else { Err(printed(&output)) }
}

#[test]
fn prometheus_reads_the_metrics() {
    let Some(bin) = linters() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut server, port) = start(&folder);
    // An error code with every character that needs escaping.
    let evil = r#"EVAL "return redis.error_reply('A\"B\\\\C{}=, x')" 0"#;
    server.ask(&["SET k v", "GET k", "LPUSH k v", evil]);
    let text = metrics(port);
    let read = read_exposition(&bin, &text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    for line in [
        "family weft_commands_total counter",
        "family weft_keys gauge",
        "family weft_command_duration_seconds histogram",
        "sample weft_command_duration_seconds_count 1.0",
        "sample weft_loading 0.0",
    ] {
        assert!(read.lines().any(|read| read == line), "{line}:\n{read}");
    }
    assert!(text.contains(r#"code="A\"B\\C{}=,""#), "{text}");
}

/// The metrics that the expressions of a file name, or an error in it.
fn named(bin: &Path, path: &Path) -> Result<BTreeSet<String>, String> {
    let script = script("expressions.py");
    let output = output(Command::new(bin.join("python")).arg("-B").arg(script).arg(path));
    if !output.status.success() {
        return Err(printed(&output));
    }
    Ok(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

#[test]
fn rules_and_dashboard_name_exported_metrics() {
    let Some(bin) = linters() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut server, port) = start(&folder);
    // Some families have samples only after commands.
    server.ask(&["SET k v", "NONSENSE"]);
    let text = metrics(port);
    let samples: BTreeSet<&str> =
        text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    for name in [RULES, DASHBOARD] {
        let names = named(&bin, &file(name)).unwrap_or_else(|why| panic!("{why}"));
        assert!(names.len() > 15, "{name}: {names:?}");
        for metric in names {
            // Prometheus itself exports `up`.
            assert!(metric == "up" || samples.contains(metric.as_str()), "{name}: {metric}");
        }
    }
}

const NODE: [Tool; 2] = [
    Tool { version: &["node", "--version"], at_least: (20, 0) },
    Tool { version: &["npm", "--version"], at_least: (8, 0) },
];

/// The folder with Chromium, from an npm package, and the program that drives it.
fn browser() -> Option<PathBuf> {
    let sources = repository().join("crates/deploy-test/browser");
    let files = ["package.json", "package-lock.json", "page.js"].map(|name| sources.join(name));
    prepare("deploy-browser", &NODE, &files, |folder| {
        for file in &files {
            fs::copy(file, folder.join(file.file_name().unwrap())).unwrap();
        }
        let quiet = ["ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"];
        install_step(Command::new("npm").args(quiet).current_dir(folder));
    })
}

#[test]
fn the_page_in_a_browser_follows_the_server() {
    let Some(programs) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut server, port) = start(&folder);
    server.ask(&["SET a 1", "SET b 2", "SET c 3"]);
    let mut command = Command::new("node");
    command.arg(programs.join("page.js")).arg(format!("http://127.0.0.1:{port}/"));
    // Chromium is unpacked into the folder for temporary files.
    command.env("TMPDIR", folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut next = child.stdin.take().unwrap();
    let mut seen = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut errors = child.stderr.take().unwrap();
    let load = keep_busy(server.port);
    let mut server = Some(server);
    for step in ["serves", "commands", "threads", "no markup", "refused", "gone"] {
        match seen.next() {
            Some(Ok(line)) => assert_eq!(line, step),
            _ => {
                let mut text = String::new();
                let _ = errors.read_to_string(&mut text);
                let _ = child.kill();
                panic!("{step}: {text}");
            }
        }
        match step {
            "no markup" => {
                server.as_mut().unwrap().ask(&["CONFIG SET maxmemory 1"]);
            }
            "refused" => drop(server.take()),
            _ => {}
        }
        // If the program failed, its status says so.
        let _ = next.write_all(b"\n");
    }
    let mut text = String::new();
    errors.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success(), "{text}");
    load.join().unwrap();
}

/// Sends commands until the server ends. An unescaped error code would be markup.
fn keep_busy(port: u16) -> JoinHandle<()> {
    let evil = r#"EVAL "return redis.error_reply('<img/src=x> no')" 0"#;
    let requests = format!("SET a 1\r\nGET a\r\n{evil}\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    thread::spawn(move || {
        let mut replies = [0; 4096];
        while stream.write_all(requests.as_bytes()).is_ok() {
            match stream.read(&mut replies) {
                Ok(1..) => thread::sleep(Duration::from_millis(20)),
                _ => return,
            }
        }
    })
}
