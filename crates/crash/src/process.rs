//! The server's process.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Connection, Reply};

/// How long a start may take.
const START_MAX: Duration = Duration::from_secs(60);
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(10);
/// How often another process may take the port.
const STARTS_MAX: u32 = 10;

/// A server that is killed in the end.
pub struct Process {
    child: Child,
    port: u16,
}

impl Process {
    /// Starts a server on the files of a folder, and waits until it has loaded them.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(
        program: &[String],
        folder: &Path,
        always: bool,
        threads: usize,
    ) -> Result<Self, String> {
        let mut log = String::new();
        for _ in 0..STARTS_MAX {
            match Self::try_start(program, folder, always, threads) {
                Ok(server) => return Ok(server),
                Err(text) => log = text,
            }
            if !log.contains("Address already in use") {
                break;
            }
        }
        Err(format!("the server does not start: {log}"))
    }

    fn try_start(
        program: &[String],
        folder: &Path,
        always: bool,
        threads: usize,
    ) -> Result<Self, String> {
        let port = free_port()?;
        let log = folder.join("log");
        let output = std::fs::File::create(&log).map_err(|error| error.to_string())?;
        let [first, rest @ ..] = program else { return Err("no program".to_owned()) };
        let policy = if always { "always" } else { "everysec" };
        let child = Command::new(first)
            .args(rest)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", policy])
            .args(["--io-threads", &threads.to_string()])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(|error| error.to_string())?)
            .stderr(output)
            .spawn()
            .map_err(|error| format!("{first}: {error}"))?;
        let mut server = Self { child, port };
        let begun = Instant::now();
        let is_ready = loop {
            // It answers with LOADING before.
            let pong = server.connect().ok().and_then(|mut it| it.ask(&[b"PING"]).ok());
            if pong == Some(Reply::Line("PONG".to_owned())) {
                break true;
            }
            let has_ended = !matches!(server.child.try_wait(), Ok(None));
            if has_ended || begun.elapsed() > START_MAX {
                break false;
            }
            thread::sleep(PAUSE);
        };
        match is_ready {
            true => Ok(server),
            false => Err(std::fs::read_to_string(log).unwrap_or_default()),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A new client.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub fn connect(&self) -> Result<Connection, String> {
        Connection::open(self.address()).map_err(|error| error.to_string())
    }

    /// Kills it, and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended by itself, which the next start tells of.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> Result<u16, String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
