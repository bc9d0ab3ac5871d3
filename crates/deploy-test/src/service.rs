//! A server started by a command line of `deploy/`, with its paths replaced by ones in a test's
//! folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use test_support::{Client, Killed, Value, WAIT_MAX, free_port, weft_program};

/// How often a server is started, since another process may take its port.
const STARTS_MAX: usize = 5;

/// A running server; killed on drop.
pub struct Service {
    /// The port for clients.
    pub port: u16,
    child: Killed,
}

impl Service {
    /// Starts Weft with the command line `words` on a free port. The first path of each pair in
    /// `moved` is replaced by the second.
    pub fn start(words: &[String], moved: &[(&str, &Path)], environment: &[(&str, &Path)]) -> Self {
        for _ in 0..STARTS_MAX {
            let port = free_port();
            let mut command = Command::new(weft_program());
            command.args(words[1..].iter().map(|word| move_paths(word, moved)));
            command.args(["--port", &port.to_string()]);
            command.envs(environment.iter().copied());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let mut service = Self { port, child: Killed(child) };
            if service.connect().is_ok() {
                return service;
            }
        }
        panic!("{words:?} does not start");
    }

    /// Sends the lines on one connection, and returns the last reply: the text of a bulk string, or
    /// the line of another type with its marker.
    pub fn ask(&mut self, lines: &[&str]) -> String {
        let mut client = self.connect().expect("the server runs");
        let mut reply = Value::NULL;
        for line in lines {
            client.send_raw(format!("{line}\r\n").as_bytes());
            reply = client.read();
        }
        match &reply {
            Value::Text(b'$', _) => reply.text().trim_end().to_owned(),
            Value::Text(marker, line) => {
                format!("{}{}", char::from(*marker), String::from_utf8_lossy(line))
            }
            Value::Null(marker) => format!("{}-1", char::from(*marker)),
            Value::Many(..) => reply.to_string(),
        }
    }

    /// The same after the keys are loaded: a starting server first looks for files.
    pub fn ask_loaded(&mut self, lines: &[&str]) -> String {
        for _ in 0..WAIT_MAX.as_millis() / 10 {
            let reply = self.ask(lines);
            if !reply.starts_with("-LOADING") {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the keys are not loaded");
    }

    /// Connects, or returns the status of a server that ended.
    fn connect(&mut self) -> Result<Client, ExitStatus> {
        for _ in 0..WAIT_MAX.as_millis() / 10 {
            if let Ok(client) = Client::connect(("127.0.0.1", self.port), WAIT_MAX) {
                return Ok(client);
            }
            if let Some(status) = self.child.0.try_wait().expect("a child can be waited for") {
                return Err(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nothing listens on port {}", self.port);
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.0.wait().expect("a child can be waited for")
    }
}

/// Writes `text` to a file in a folder, with the first path of each pair in `moved` replaced by the
/// second. Returns the file's path.
pub fn moved_copy(text: &str, moved: &[(&str, &Path)], folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, move_paths(text, moved)).expect("the folder is writable");
    path
}

fn move_paths(text: &str, moved: &[(&str, &Path)]) -> String {
    moved
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, &to.display().to_string()))
}
