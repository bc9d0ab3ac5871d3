//! How a server is started: program, options, folder, ports, and the log line to wait for.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::log::Log;
use crate::server::WorkingFolder;
use crate::{Killed, Server, weft_program};

/// The log line of a server that serves clients.
pub const READY: &str = "Ready to accept connections";

/// Another process may take a port between the moment it was found free and the start.
const STARTS_MAX: usize = 20;

/// Options that a server gets unless it is given others.
const DEFAULTS: [[&str; 2]; 2] = [["--bind", "127.0.0.1"], ["--save", ""]];

/// The ports that a server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// A plain port.
    Plain,
    /// A TLS port.
    Tls,
    /// Both.
    Both,
}

/// A change of the command that starts a server.
type EditCommand<'a> = Box<dyn Fn(&mut Command) + 'a>;

/// A server that is about to start.
pub struct Launch<'a> {
    program: Vec<String>,
    /// Read before the options.
    file: Option<PathBuf>,
    options: Vec<String>,
    /// A new one if absent.
    folder: Option<WorkingFolder>,
    until: &'a str,
    ports: Ports,
    edit: Option<EditCommand<'a>>,
}

impl<'a> Launch<'a> {
    /// Weft, or the server that the environment variable WEFT_TEST_SERVER names, split at blanks.
    pub fn weft() -> Self {
        match std::env::var("WEFT_TEST_SERVER") {
            Ok(words) => Self::program(words.split_whitespace()),
            Err(_) => Self::program([weft_program().as_str(), "server"]),
        }
    }

    /// A program and its first arguments.
    pub fn program<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        Self {
            program: words.into_iter().map(str::to_owned).collect(),
            file: None,
            options: Vec::new(),
            folder: None,
            until: READY,
            ports: Ports::Plain,
            edit: None,
        }
    }

    /// Adds options in the style of redis-server. Without `--save`, nothing is saved.
    pub fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|option| (*option).to_owned()));
        self
    }

    /// Names a configuration file, which the server reads before the options.
    pub fn configured_by(self, file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    /// Starts on the files of a folder, which is removed with the server.
    pub fn in_folder(self, folder: TempDir) -> Self {
        Self { folder: Some(WorkingFolder::Owned(folder)), ..self }
    }

    /// Starts on the files of a folder that stays.
    pub fn at(self, folder: &Path) -> Self {
        Self { folder: Some(WorkingFolder::Borrowed(folder.to_owned())), ..self }
    }

    /// Waits for these words in the log instead of [`READY`].
    pub fn until(self, until: &'a str) -> Self {
        Self { until, ..self }
    }

    /// Chooses the ports; the default is a plain one.
    pub fn ports(self, ports: Ports) -> Self {
        Self { ports, ..self }
    }

    /// Gives the server its certificate; `auth_clients` is `yes`, `no` or `optional`.
    #[cfg(feature = "tls")]
    pub fn certified(self, files: &crate::Certificates, auth_clients: &str) -> Self {
        let options = files.server_options(auth_clients);
        self.options(&options.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Changes the command just before the start.
    pub fn edited_by(self, edit: impl Fn(&mut Command) + 'a) -> Self {
        Self { edit: Some(Box::new(edit)), ..self }
    }

    /// Starts the server and waits for its log line.
    ///
    /// # Panics
    /// When the server does not start.
    pub fn start(self) -> Server {
        self.try_start().unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// Starts the server and waits for its log line.
    ///
    /// # Errors
    /// The log of a server that ended or whose log has not that line in time.
    pub fn try_start(mut self) -> Result<Server, String> {
        let new = || WorkingFolder::Owned(tempfile::tempdir().unwrap());
        let folder = self.folder.take().unwrap_or_else(new);
        let mut log = String::new();
        for _ in 0..STARTS_MAX {
            let (port, tls_port) = match self.ports {
                Ports::Plain => (free_port(), 0),
                Ports::Tls => (0, free_port()),
                Ports::Both => (free_port(), free_port()),
            };
            let (child, output) = self.spawn(folder.path(), port, tls_port)?;
            if output.wait_for(self.until) {
                return Ok(Server { port, tls_port, child, log: output, folder: Some(folder) });
            }
            drop(child);
            log = output.text();
            if !log.contains("ddress already in use") {
                break;
            }
        }
        Err(log)
    }

    fn spawn(&self, folder: &Path, port: u16, tls_port: u16) -> Result<(Killed, Arc<Log>), String> {
        let (program, first) = self.program.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(first).args(&self.file).args(["--port", &port.to_string()]);
        for default in DEFAULTS {
            if !self.options.iter().any(|option| option == default[0]) {
                command.args(default);
            }
        }
        if tls_port != 0 {
            command.args(["--tls-port", &tls_port.to_string()]);
        }
        command.args(&self.options).current_dir(folder);
        if let Some(edit) = &self.edit {
            edit(&mut command);
        }
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        // The log ends with the server only if no other process can write to it.
        drop(command);
        let log = Arc::new(Log::default());
        let collected = Arc::clone(&log);
        thread::spawn(move || collected.collect(reader));
        Ok((Killed(child), log))
    }
}

impl Server {
    /// Starts Weft with options in the style of redis-server; returns when it is ready.
    pub fn start(options: &[&str]) -> Self {
        Launch::weft().options(options).start()
    }

    /// Starts Weft by a command that is changed before.
    pub fn start_by(options: &[&str], edit: impl Fn(&mut Command) -> &mut Command) -> Self {
        Launch::weft()
            .options(options)
            .edited_by(|command| {
                edit(command);
            })
            .start()
    }

    /// Starts Weft on the files of a folder.
    pub fn start_in(folder: TempDir, options: &[&str]) -> Self {
        Launch::weft().in_folder(folder).options(options).start()
    }

    /// Kills the server and starts Weft on its files.
    pub fn kill_and_start(mut self, options: &[&str]) -> Self {
        self.kill();
        Self::start_in(self.into_folder(), options)
    }

    /// Ends the server by SIGTERM, and starts Weft on its files.
    pub fn restart(self, options: &[&str]) -> Self {
        self.signal("TERM");
        self.wait_and_start(options)
    }

    /// Starts Weft on the files of this server when it has ended.
    pub fn wait_and_start(mut self, options: &[&str]) -> Self {
        assert!(self.wait().success(), "{}", self.log());
        Self::start_in(self.into_folder(), options)
    }
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
