//! A server started by a command line of `deploy/`, with its paths replaced by ones in a test's
//! folder.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use clients_test::{Folder, weft_program};

/// How long a server may take to start, to reply or to load its keys.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// How often a server is started, since another process may take its port.
const STARTS_MAX: usize = 5;

/// A running server; killed on drop.
pub struct Service {
    /// The port for clients.
    pub port: u16,
    child: Child,
}

impl Service {
    /// Starts Weft with the command line `words` on a free port. The first path of each pair in
    /// `moved` is replaced by the second.
    pub fn start(words: &[String], moved: &[(&str, &Path)], environment: &[(&str, &Path)]) -> Self {
        let to = |text: &str| {
            moved.iter().fold(text.to_owned(), |text, (from, to)| {
                text.replace(from, &to.display().to_string())
            })
        };
        for _ in 0..STARTS_MAX {
            let port = free_port();
            let mut command = Command::new(weft_program());
            command.args(words[1..].iter().map(|word| to(word)));
            command.args(["--port", &port.to_string()]);
            command.envs(environment.iter().copied());
            command.stdin(Stdio::null()).stdout(Stdio::null());
            let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            let mut service = Self { port, child };
            if service.connect().is_ok() {
                return service;
            }
        }
        panic!("{words:?} does not start");
    }

    /// Sends the lines on one connection, and returns the last reply: a whole bulk string, or the
    /// first line of another type.
    pub fn ask(&mut self, lines: &[&str]) -> String {
        let mut stream = self.connect().expect("the server runs");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a timeout can be set");
        let mut replies = BufReader::new(stream.try_clone().expect("a socket can be shared"));
        let mut reply = String::new();
        for line in lines {
            stream.write_all(format!("{line}\r\n").as_bytes()).expect("the server reads");
            reply.clear();
            replies.read_line(&mut reply).expect("the server answers");
            if let Some(length) = reply.strip_prefix('$').and_then(|text| text.trim().parse().ok())
            {
                let length: usize = length;
                let mut value = vec![0; length + 2];
                replies.read_exact(&mut value).expect("the server answers");
                reply = String::from_utf8_lossy(&value).into_owned();
            }
        }
        reply.trim_end().to_owned()
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
    fn connect(&mut self) -> Result<TcpStream, ExitStatus> {
        for _ in 0..WAIT_MAX.as_millis() / 10 {
            if let Ok(stream) = TcpStream::connect(("127.0.0.1", self.port)) {
                return Ok(stream);
            }
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return Err(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nothing listens on port {}", self.port);
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().expect("a child can be waited for")
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes `text` to a file in a folder, with the first path of each pair in `moved` replaced by the
/// second. Returns the file's path.
pub fn moved_copy(text: &str, moved: &[(&str, &Path)], folder: &Folder, name: &str) -> PathBuf {
    let text = moved
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, &to.display().to_string()));
    let path = PathBuf::from(folder.file(name));
    fs::write(&path, text).expect("the folder is writable");
    path
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be bound");
    listener.local_addr().expect("a bound listener has an address").port()
}
