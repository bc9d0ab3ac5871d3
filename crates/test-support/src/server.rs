//! A running server, killed on drop. Its log is printed when the test that owns it fails.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::thread;

use tempfile::TempDir;

use crate::log::Log;
use crate::{Client, Killed, Process, send_signal};

/// A running server.
pub struct Server {
    /// The port of plain connections; 0 when it accepts none.
    pub port: u16,
    /// The port of TLS connections; 0 when it accepts none.
    pub tls_port: u16,
    pub(crate) child: Killed,
    pub(crate) log: Arc<Log>,
    pub(crate) folder: Option<WorkingFolder>,
}

/// The working folder of a server.
#[derive(Debug)]
pub(crate) enum WorkingFolder {
    /// Removed with the server.
    Owned(TempDir),
    /// The caller's.
    Borrowed(PathBuf),
}

impl WorkingFolder {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Owned(folder) => folder.path(),
            Self::Borrowed(path) => path,
        }
    }
}

impl Server {
    /// The folder of a server that has ended.
    pub fn into_folder(mut self) -> TempDir {
        match self.folder.take() {
            Some(WorkingFolder::Owned(folder)) => folder,
            other => panic!("not the server's own folder: {other:?}"),
        }
    }

    /// The path of a file in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Its working folder.
    pub fn folder(&self) -> &Path {
        self.folder.as_ref().map(WorkingFolder::path).expect("it has a folder")
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

    /// Its output so far.
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
