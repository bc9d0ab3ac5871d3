//! A running server, killed on drop. Its log is printed when the test that owns it fails.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::launch::Folder;
use crate::log::Log;
use crate::{Client, Killed, Launch, Process, send_signal};

/// A running server.
pub struct Server {
    /// The port of plain connections; 0 when it accepts none.
    pub port: u16,
    /// The port of TLS connections; 0 when it accepts none.
    pub tls_port: u16,
    pub(crate) child: Killed,
    pub(crate) log: Arc<Log>,
    pub(crate) folder: Option<Folder>,
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

    /// The folder of a server that has ended.
    pub fn into_folder(mut self) -> TempDir {
        match self.folder.take() {
            Some(Folder::Owned(folder)) => folder,
            other => panic!("not the server's own folder: {other:?}"),
        }
    }

    /// The path of a file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Its working folder.
    pub fn folder(&self) -> &Path {
        self.folder.as_ref().map(Folder::path).expect("it has a folder")
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// A new client.
    #[track_caller]
    pub fn client(&self) -> Client {
        Client::tcp(self.address())
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Waits for words in the log.
    #[track_caller]
    pub fn wait_for_log(&self, words: &str) {
        assert!(self.log.wait_for(words), "no {words:?} in the log:\n{}", self.log());
    }

    /// Sends a signal by its name without SIG.
    pub fn signal(&self, name: &str) {
        send_signal(self.child.0.id(), name);
    }

    /// Kills it, and waits for its end. It may have ended by itself.
    pub fn kill(&mut self) {
        let _ = self.child.0.kill();
        let _ = self.child.0.wait();
    }

    /// Waits until the process ends by itself.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        assert!(self.log.wait_for_end(), "the server did not end:\n{}", self.log());
        self.child.0.wait().unwrap()
    }

    /// The process.
    pub fn process(&self) -> Process {
        Process(self.child.0.id())
    }

    /// A field of INFO.
    #[track_caller]
    pub fn info(&self, field: &str) -> String {
        let text = self.client().ask("INFO everything").text();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("log of the server:\n{}", self.log());
        }
    }
}
