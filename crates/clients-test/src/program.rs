//! Runs a program that tests the server with client libraries.
//!
//! A program gets a name as its only argument and the server's addresses in its environment. It
//! prints one line for each check, and ends with a nonzero status at the first check that fails.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use test_support::{Certificates, Launch, Ports, Server};

/// How long a program may run before it is killed.
const RUN_SECONDS_MAX: u64 = 120;
/// Several I/O threads, so that the connections of one program belong to different ones.
const THREADS: [&str; 2] = ["--io-threads", "3"];

/// The folder of the files that all languages read.
const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cases");
/// The kinds of connection on which a client library runs the cases of `clients.txt`: `tls` is
/// RESP3 over TLS.
pub const KINDS: [&str; 3] = ["resp2", "resp3", "tls"];
/// A program prints this before the name of a case that passed.
const CASE_PASSED: &str = "ok case ";

/// A user of the server. The libraries log in with it in the kinds `resp2` and `tls`.
pub struct TestUser {
    /// The user's name.
    pub name: &'static str,
    /// The user's only password.
    pub password: &'static str,
}

impl TestUser {
    /// The user of [`scenario_server`]. The characters show mistakes with URLs. There is no space
    /// and no quote, because fred sends HELLO as an inline command.
    pub const WORKER: TestUser = TestUser { name: "worker", password: "correct:horse@battery/#%" };
}

/// The contents of a file in `cases/`.
pub fn shared_file(name: &str) -> String {
    let path = Path::new(CASES).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names of the cases in `clients.txt`, in order.
pub fn case_names() -> Vec<String> {
    let text = shared_file("clients.txt");
    let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(str::to_owned).collect()
}

/// A server for the cases of `clients.txt`, with and without TLS, and its certificates.
pub fn scenario_server() -> (Server, Certificates) {
    let files = Certificates::new();
    let password = format!(">{}", TestUser::WORKER.password);
    let launch = Launch::weft().ports(Ports::Both).certified(&files, "no").options(&THREADS);
    let user = ["--user", TestUser::WORKER.name, "on", &password, "~*", "&*", "+@all"];
    (launch.options(&user).start(), files)
}

/// How to run a program.
pub struct Program {
    /// The command before the name.
    pub command: Vec<String>,
}

impl Program {
    /// Runs the program of a client library, and checks that it ran every case of `clients.txt` for
    /// these `kinds` of connection. The library has no methods for the cases in `without`.
    pub fn run_library(&self, library: &str, kinds: &[&str], without: &[&str]) {
        let (server, files) = scenario_server();
        let environment = [
            ("WEFT_PORT", server.port.to_string()),
            ("WEFT_TLS_PORT", server.tls_port.to_string()),
            ("WEFT_CA", files.file("ca.pem")),
            ("WEFT_CASES", CASES.to_owned()),
            ("WEFT_USER", TestUser::WORKER.name.to_owned()),
            ("WEFT_PASSWORD", TestUser::WORKER.password.to_owned()),
        ];
        let output = self.run(library, &environment);
        let passed: Vec<&str> =
            output.lines().filter_map(|line| line.strip_prefix(CASE_PASSED)).collect();
        let names = case_names();
        let wanted: Vec<String> = kinds
            .iter()
            .flat_map(|kind| names.iter().map(move |name| (kind, name)))
            // RESP2 has no invalidation messages.
            .filter(|(kind, name)| !(**kind == "resp2" && name.starts_with("tracking: ")))
            .filter(|(_, name)| !without.contains(&name.as_str()))
            .map(|(kind, name)| format!("{kind}: {name}"))
            .collect();
        assert_eq!(passed, wanted, "{library} ran the cases of the list");
    }

    /// Starts a server and runs the part `name` of a program that needs only its port.
    pub fn run_on_server(&self, name: &str) {
        let server = Server::start(&THREADS);
        self.run(name, &[("WEFT_PORT", server.port.to_string())]);
    }

    /// Runs the program with `name` and returns its output.
    fn run(&self, name: &str, environment: &[(&str, String)]) -> String {
        let (program, arguments) = self.command.split_first().expect("a program has a name");
        let (mut reader, writer) = std::io::pipe().expect("a pipe can be made");
        let mut command = Command::new(program);
        command.args(arguments).arg(name).stdin(Stdio::null());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdout(writer.try_clone().expect("a pipe can be shared")).stderr(writer);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The pipe ends with the program only if this process does not hold its writing end.
        drop(command);

        let (sender, output) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = reader.read_to_end(&mut bytes);
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        });
        let in_time = output.recv_timeout(Duration::from_secs(RUN_SECONDS_MAX));
        if in_time.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().expect("a child can be waited for");
        let text = in_time.or_else(|_| output.recv()).unwrap_or_default();
        println!("{text}");
        assert!(status.success(), "{name}: {program} ended with {status}");
        let checks = text.lines().filter(|line| line.starts_with("ok ")).count();
        assert!(checks > 0, "{name}: {program} checked nothing");
        text
    }
}
