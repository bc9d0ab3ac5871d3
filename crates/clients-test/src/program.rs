//! A client program in another language, and the parts of the tests that it runs.
//!
//! A program gets the name of one part as its only argument and the addresses in its environment
//! (see [`Part`]), prints one line for each check, and ends with a non-zero status at the first
//! answer that is not the expected one.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::{Certificates, Server};

/// How long one part may take before the program is killed.
const PART_SECONDS_MAX: u64 = 120;
/// More than one I/O thread, so that connections of one program land on different ones.
const THREADS: [&str; 2] = ["--io-threads", "3"];
/// With a space and a quote in it, so that quoting mistakes show.
const PASSWORD: &str = "correct horse \"battery\"";

/// The folder of what all languages read: requests with their replies, the names of cases, scripts.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
/// The requests that all clients send alike, with their replies.
pub const REPLIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases/replies.txt");
/// The kinds of connection on which a client library runs the cases of `clients.txt`.
pub const KINDS: [&str; 3] = ["resp2", "resp3", "tls"];
/// What a program prints before the name of a case that held.
const CASE_HELD: &str = "ok case ";

/// The contents of a file that all languages read.
pub fn shared_file(name: &str) -> String {
    let path = Path::new(CASES).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of cases that the file `list` has, in its order.
pub fn case_names(list: &str) -> Vec<String> {
    let text = shared_file(list);
    let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(str::to_owned).collect()
}

/// A part of the tests. Every part finds `WEFT_PORT`, `WEFT_REPLIES`, the path of [`REPLIES`], and
/// `WEFT_CASES`, the folder it is in, in its environment.
#[derive(Clone, Copy)]
pub enum Part {
    /// All commands, and all cases of `combined.txt`, in RESP2.
    Resp2,
    /// The same in RESP3.
    Resp3,
    /// A server that wants a password: `WEFT_PASSWORD`.
    Auth,
    /// `WEFT_PORT` and `WEFT_MUTUAL_PORT` speak TLS, the second wants a client certificate:
    /// `WEFT_CA`, `WEFT_CERT`, `WEFT_KEY` are PEM files.
    Tls,
    /// The server also listens on `WEFT_SOCKET`.
    Unix,
}

/// How to run a client program.
pub struct Program {
    /// The program and the arguments before the part's name.
    pub words: Vec<String>,
}

impl Program {
    /// Starts the servers that `part` needs and runs the part.
    pub fn run(&self, part: Part) {
        match part {
            Part::Resp2 | Part::Resp3 => {
                let server = Server::start(&THREADS);
                let name = if matches!(part, Part::Resp2) { "resp2" } else { "resp3" };
                let said = self.run_part(name, &[("WEFT_PORT", server.port.to_string())]);
                let list = case_names("combined.txt");
                assert_eq!(cases_held(&said), list, "the cases of {name} are those of the list");
            }
            Part::Auth => {
                let server = Server::start(&["--requirepass", PASSWORD]);
                let password = ("WEFT_PASSWORD", PASSWORD.to_owned());
                self.run_part("auth", &[("WEFT_PORT", server.port.to_string()), password]);
            }
            Part::Tls => {
                let files = Certificates::new();
                let (server, mutual) = tls_servers(&files, &THREADS);
                let environment = [
                    ("WEFT_PORT", server.tls_port.to_string()),
                    ("WEFT_MUTUAL_PORT", mutual.tls_port.to_string()),
                    ("WEFT_CA", files.file("ca.pem")),
                    ("WEFT_CERT", files.file("client.pem")),
                    ("WEFT_KEY", files.file("client.key")),
                ];
                self.run_part("tls", &environment);
            }
            Part::Unix => {
                let server = Server::start(&THREADS);
                let socket = ("WEFT_SOCKET", server.socket.clone());
                self.run_part("unix", &[("WEFT_PORT", server.port.to_string()), socket]);
            }
        }
    }

    /// Runs the cases of `clients.txt` with a client library, on each of the kinds of connection
    /// that it has, but those `without` which it has no methods for. The program finds the server
    /// at `WEFT_PORT`, with TLS at `WEFT_TLS_PORT`, and its authority in `WEFT_CA`.
    pub fn run_client(&self, library: &str, kinds: &[&str], without: &[&str]) {
        let files = Certificates::new();
        let server = both_server(&files, &THREADS);
        let environment = [
            ("WEFT_PORT", server.port.to_string()),
            ("WEFT_TLS_PORT", server.tls_port.to_string()),
            ("WEFT_CA", files.file("ca.pem")),
        ];
        let said = self.run_part(library, &environment);
        let list = case_names("clients.txt");
        let due: Vec<String> = kinds
            .iter()
            .flat_map(|kind| list.iter().map(move |name| format!("{kind}: {name}")))
            // The server tells in RESP3 alone that a cached value changed.
            .filter(|case| !case.starts_with("resp2: caching: "))
            .filter(|case| !without.iter().any(|name| case.ends_with(&format!(": {name}"))))
            .collect();
        assert_eq!(cases_held(&said), due, "the cases of {library} are those of the list");
    }

    /// Starts a server and runs the part `name` of a program that needs `WEFT_PORT` alone.
    pub fn drive(&self, name: &str) {
        let server = Server::start(&THREADS);
        self.run_part(name, &[("WEFT_PORT", server.port.to_string())]);
    }

    /// Runs one part, and gives back what it printed.
    fn run_part(&self, part: &str, environment: &[(&str, String)]) -> String {
        let (program, arguments) = self.words.split_first().expect("a program has a name");
        let (mut reader, writer) = std::io::pipe().expect("a pipe can be made");
        let mut command = Command::new(program);
        command.args(arguments).arg(part).stdin(Stdio::null());
        command.env("WEFT_REPLIES", REPLIES).env("WEFT_CASES", CASES);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdout(writer.try_clone().expect("a pipe can be shared")).stderr(writer);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The pipe ends when the program does, provided that nobody else holds its writing end.
        drop(command);

        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = reader.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        let in_time = output.recv_timeout(Duration::from_secs(PART_SECONDS_MAX));
        if in_time.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().expect("a child can be waited for");
        let said = in_time.or_else(|_| output.recv()).unwrap_or_default();
        println!("{said}");
        assert!(status.success(), "{part}: {program} ended with {status}");
        let checks = said.lines().filter(|line| line.starts_with("ok ")).count();
        assert!(checks > 0, "{part}: {program} checked nothing");
        said
    }
}

/// The names of the cases of which a program said that they held.
fn cases_held(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix(CASE_HELD)).collect()
}

/// A server that asks no certificate of its clients, and one that insists on it.
pub fn tls_servers(files: &Certificates, options: &[&str]) -> (Server, Server) {
    let start = |auth| with_tls(files, options, auth, Server::start_tls);
    (start("no"), start("yes"))
}

/// A server with and without TLS, which asks no certificate of its clients.
pub fn both_server(files: &Certificates, options: &[&str]) -> Server {
    with_tls(files, options, "no", Server::start_both)
}

fn with_tls(
    files: &Certificates,
    options: &[&str],
    auth_clients: &str,
    start: fn(&[&str]) -> Server,
) -> Server {
    let (cert, key) = (files.file("server.pem"), files.file("server.key"));
    let authority = files.file("ca.pem");
    let mut all = vec!["--tls-cert-file", &cert, "--tls-key-file", &key];
    all.extend(["--tls-ca-cert-file", &authority, "--tls-auth-clients", auth_clients]);
    all.extend(options);
    start(&all)
}
