//! A server process for one test, on free ports and in its own folder, killed on drop. If the test
//! fails, the server's log is printed.

use std::io::{BufRead, BufReader, PipeReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::{Folder, binary};

/// How long a server may take to log that it is ready.
const START_SECONDS_MAX: u64 = 30;
/// How often a server is started, since another process may take its port.
const STARTS_MAX: usize = 5;
/// The server logs this when it accepts connections.
const READY: &str = "Ready to accept connections";

/// A running server.
pub struct Server {
    /// The port for plain connections; 0 if there is none.
    pub port: u16,
    /// The port for TLS connections; 0 if there is none.
    pub tls_port: u16,
    /// The path of its unix socket.
    pub socket: String,
    child: Child,
    log: Log,
    _folder: Folder,
}

/// Which ports a server listens on.
#[derive(Clone, Copy)]
enum Ports {
    Plain,
    Tls,
    Both,
}

type Log = Arc<Mutex<Vec<String>>>;

impl Server {
    /// Starts a server with a plain port, a unix socket, and `options` in the style of
    /// `redis-server`; returns when it accepts connections.
    pub fn start(options: &[&str]) -> Server {
        Server::start_retrying(options, Ports::Plain)
    }

    /// The same with a TLS port instead of the plain one.
    pub fn start_tls(options: &[&str]) -> Server {
        Server::start_retrying(options, Ports::Tls)
    }

    /// The same with both ports.
    pub fn start_both(options: &[&str]) -> Server {
        Server::start_retrying(options, Ports::Both)
    }

    fn start_retrying(options: &[&str], ports: Ports) -> Server {
        for _ in 1..STARTS_MAX {
            if let Ok(server) = Server::try_start(options, ports) {
                return server;
            }
        }
        match Server::try_start(options, ports) {
            Ok(server) => server,
            Err(log) => panic!("the server did not start:\n{log}"),
        }
    }

    /// Starts once. The error is the log of a server that ended or did not become ready.
    fn try_start(options: &[&str], ports: Ports) -> Result<Server, String> {
        let folder = Folder::new();
        let (port, tls_port) = match ports {
            Ports::Plain => (free_port(), 0),
            Ports::Tls => (0, free_port()),
            Ports::Both => (free_port(), free_port()),
        };
        let socket = folder.file("socket");
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        let mut command = command();
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--unixsocket", &socket, "--save", ""]);
        if tls_port != 0 {
            command.args(["--tls-port", &tls_port.to_string()]);
        }
        command.args(options).current_dir(folder.path()).stdin(Stdio::null());
        command.stdout(writer.try_clone().expect("a pipe can be shared")).stderr(writer);
        let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        // The pipe ends with the server only if this process does not hold its writing end.
        let words = format!("{command:?}");
        drop(command);

        let log = Log::default();
        let ready = follow(reader, Arc::clone(&log));
        let outcome = ready.recv_timeout(Duration::from_secs(START_SECONDS_MAX));
        let mut server = Server { port, tls_port, socket, child, log, _folder: folder };
        match outcome {
            Ok(()) => Ok(server),
            Err(RecvTimeoutError::Disconnected) => {
                let status = server.child.wait().expect("a child can be waited for");
                Err(format!("{}\n{words}: {status}", server.take_log()))
            }
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("{}\nno \"{READY}\" in {START_SECONDS_MAX} s", server.take_log()))
            }
        }
    }

    fn take_log(&mut self) -> String {
        self.log.lock().map(|mut lines| std::mem::take(&mut *lines).join("\n")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- the server's log\n{}\n---", self.take_log());
        }
    }
}

/// The command that starts a server: `weft server`, or the words of `WEFT_TEST_SERVER`.
fn command() -> Command {
    let Ok(words) = std::env::var("WEFT_TEST_SERVER") else {
        let mut command = Command::new(binary::weft());
        command.arg("server");
        return command;
    };
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().expect("WEFT_TEST_SERVER names a command"));
    command.args(words);
    command
}

/// Reads the log to its end in a thread, so that the server never waits for a reader. The receiver
/// gets one message when the server is ready, and disconnects if the server ends first.
fn follow(reader: PipeReader, log: Log) -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut sender = Some(sender);
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            let ready = line.contains(READY);
            if let Ok(mut lines) = log.lock() {
                lines.push(line);
            }
            if let Some(sender) = sender.take_if(|_| ready) {
                let _ = sender.send(());
            }
        }
    });
    receiver
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port can be bound");
    listener.local_addr().expect("a bound listener has an address").port()
}
