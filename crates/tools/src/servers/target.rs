//! A server to measure: started on chosen cores, or already running.
//!
//! A started server gets a free port and an empty folder. Its output is kept to explain a failed
//! start. It is stopped when dropped, and can be paused with SIGSTOP between its turns, so that its
//! idle work does not disturb the server that is measured.
//!
//! A started server never outlives this process or the thread that started it. It has its own
//! process group, so an interrupt from the terminal does not reach it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::account::find_pid;
use super::pin::Cpus;
use crate::Error;
use crate::client::session::{ServerEndpoint, ServerSession};
use crate::client::tls::{TlsConnector, TlsOptions};
use crate::temporary::TemporaryFolder;

/// How long a server may take to answer the first PING.
const START_TIME_MAX: Duration = Duration::from_secs(20);

/// How long a server may take to exit after SIGTERM; then it is killed.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);

/// How often a starting or stopping server is polled.
const LOOK_PERIOD: Duration = Duration::from_millis(10);

/// The end of a failed server's output that is shown.
const OUTPUT_BYTES_MAX: u64 = 1000;

/// The role of a server in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The server under test.
    Subject,
    /// The canned-reply server.
    Floor,
    /// A server that the subject is compared with.
    Peer,
}

/// Where a server comes from.
#[derive(Debug, Clone)]
pub enum TargetOrigin {
    /// A program and its arguments, in which `{port}` and `{dir}` are replaced.
    Command(Vec<String>),
    /// A running server, and its process if it is local and INFO does not name it.
    Running(Box<ServerEndpoint>, Option<u32>),
}

/// One server of a comparison.
#[derive(Debug, Clone)]
pub struct ServerTarget {
    /// The heading of its column.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Where it comes from.
    pub origin: TargetOrigin,
    /// The cores of a started server.
    pub cpus: Cpus,
    /// Set when a started server's `{port}` speaks TLS.
    pub tls: Option<TlsOptions>,
}

/// The name and the command line of `NAME=COMMAND`.
///
/// # Errors
/// The text has no name, or its command cannot be split into words.
pub(crate) fn named_command(text: &str) -> Result<(String, Vec<String>), Error> {
    let parts = text.split_once('=').and_then(|(name, command)| {
        let words = shlex::split(command)?;
        (!name.is_empty() && !words.is_empty()).then(|| (name.to_owned(), words))
    });
    parts.ok_or_else(|| Error::Usage(format!("'{text}' is not NAME=COMMAND")))
}

/// The name, the host and the port of `NAME=HOST:PORT`.
///
/// # Errors
/// The text has another form.
pub(crate) fn named_address(text: &str) -> Result<(String, String, u16), Error> {
    let parts = text.split_once('=').and_then(|(name, address)| {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_matches(['[', ']']).to_owned();
        Some((name.to_owned(), host, port.parse().ok()?))
    });
    let parts = parts.filter(|(name, ..)| !name.is_empty());
    parts.ok_or_else(|| Error::Usage(format!("'{text}' is not NAME=HOST:PORT")))
}

impl ServerTarget {
    /// The floor, served by `program bench floor`.
    pub fn floor(program: &str, value_bytes: usize, cpus: Cpus) -> ServerTarget {
        let size = value_bytes.to_string();
        let words = [program, "bench", "floor", "--port", "{port}", "--data-size", &size];
        ServerTarget {
            name: "floor".into(),
            role: Role::Floor,
            origin: TargetOrigin::Command(words.map(str::to_owned).into()),
            cpus,
            tls: None,
        }
    }

    /// Starts or finds the server, and waits until it answers PING.
    ///
    /// # Errors
    /// It cannot be started or does not answer in time; the text has the end of its output.
    pub fn start(&self) -> Result<TargetServer, Error> {
        match &self.origin {
            TargetOrigin::Running(endpoint, pid) => {
                let pid = match pid {
                    Some(pid) => Some(*pid),
                    None => find_pid(endpoint)?,
                };
                Ok(TargetServer { endpoint: (**endpoint).clone(), pid, child: None })
            }
            TargetOrigin::Command(words) => self.launch(words),
        }
    }

    fn launch(&self, words: &[String]) -> Result<TargetServer, Error> {
        let folder = TemporaryFolder::create()?;
        let port = free_port()?;
        let fill_in = |word: &String| {
            let dir = folder.path().to_string_lossy();
            word.replace("{port}", &port.to_string()).replace("{dir}", &dir)
        };
        let words: Vec<String> = words.iter().map(fill_in).collect();
        let (program, arguments) = words.split_first().ok_or_else(|| Error::Start {
            name: self.name.clone(),
            reason: "its command is empty".into(),
        })?;
        let failed = |source| Error::Start { name: self.name.clone(), reason: format!("{source}") };
        let output = tempfile::tempfile().map_err(failed)?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(failed)?)
            .stderr(output.try_clone().map_err(failed)?);
        let spawn = || sys::child::tie_to_thread(&mut command).spawn();
        // A child inherits the cores of the thread that starts it.
        let process = self.cpus.while_pinned(spawn)?.map_err(failed)?;
        let mut endpoint = ServerEndpoint::local(port);
        let mut child = Started { process, output, _folder: folder };
        if let Some(options) = &self.tls {
            endpoint.tls = Some(TlsConnector::new(options, "127.0.0.1")?);
        }
        child.await_ready(&self.name, &endpoint)?;
        Ok(TargetServer { endpoint, pid: Some(child.process.id()), child: Some(child) })
    }
}

fn free_port() -> Result<u16, Error> {
    let probe = TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr());
    Ok(probe.map_err(Error::io("find a free port"))?.port())
}

/// A server that answers.
#[derive(Debug)]
pub struct TargetServer {
    /// How to reach it.
    pub endpoint: ServerEndpoint,
    /// Its process, if known.
    pub pid: Option<u32>,
    child: Option<Started>,
}

impl TargetServer {
    /// Pauses a started server until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets a paused server run again.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        self.child.iter().for_each(|child| child.signal(signal));
    }
}

/// A process that ends when dropped.
#[derive(Debug)]
struct Started {
    process: Child,
    output: File,
    _folder: TemporaryFolder,
}

impl Started {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) {
            // The group includes the children of the process, in case its command is a script. A
            // process that has ended needs no signal.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Sends PING until the server answers: a starting server needs time for its port and its data.
    fn await_ready(&mut self, name: &str, endpoint: &ServerEndpoint) -> Result<(), Error> {
        let start = Instant::now();
        loop {
            let answer = ServerSession::open(endpoint)
                .and_then(|mut session| session.ask("PING", &["PING"]).map(drop));
            let Err(error) = answer else { return Ok(()) };
            let ended = matches!(self.process.try_wait(), Ok(Some(_)));
            // A certificate does not become acceptable by another try.
            let hopeless = matches!(&error, Error::Connect { source, .. }
                if source.kind() == std::io::ErrorKind::InvalidData);
            if ended || hopeless || start.elapsed() > START_TIME_MAX {
                let state = if ended { "it ended".to_string() } else { error.to_string() };
                let reason = format!("{state}; the end of its output: {}", self.output_end());
                return Err(Error::Start { name: name.into(), reason });
            }
            std::thread::sleep(LOOK_PERIOD);
        }
    }

    fn output_end(&mut self) -> String {
        let mut words = Vec::new();
        let end = self.output.seek(SeekFrom::End(0)).unwrap_or(0);
        let start = SeekFrom::Start(end.saturating_sub(OUTPUT_BYTES_MAX));
        let read = self.output.seek(start).and_then(|_| self.output.read_to_end(&mut words));
        match read {
            Ok(_) => String::from_utf8_lossy(&words).trim().to_owned(),
            Err(error) => format!("(unreadable: {error})"),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
        self.signal(Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < STOP_TIME_MAX {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_PERIOD);
        }
        self.signal(Signal::KILL);
        let _ = self.process.wait();
    }
}
