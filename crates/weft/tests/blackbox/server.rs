//! One server process, killed at the end of the test that owns it, and what /proc tells of it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tempfile::TempDir;

use crate::Client;
use crate::client::PATIENCE;

/// The line that tools wait for.
pub const READY: &str = "Ready to accept connections";
/// How often another process may take the port that was found free.
const STARTS_MAX: usize = 20;

/// The ways in which threads may share the work: each must behave the same.
pub const MODELS: [&[&str]; 4] = [
    &["--io-threads", "1"],
    &["--io-threads", "3", "--io-threads-execute", "all"],
    &["--io-threads", "3", "--io-threads-execute", "simple"],
    &["--io-threads", "3", "--io-threads-execute", "none"],
];

/// A process that does not outlive its test.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server.
pub struct Server {
    pub port: u16,
    child: Child,
    log: Arc<Log>,
    folder: Option<TempDir>,
}

/// What the server has printed so far.
#[derive(Default)]
struct Log {
    text: Mutex<(String, bool)>,
    grown: Condvar,
}

impl Log {
    fn read(&self, source: impl std::io::Read) {
        for line in BufReader::new(source).split(b'\n') {
            let Ok(line) = line else { break };
            let mut text = self.text.lock().unwrap();
            text.0.push_str(&String::from_utf8_lossy(&line));
            text.0.push('\n');
            self.grown.notify_all();
        }
        self.text.lock().unwrap().1 = true;
        self.grown.notify_all();
    }

    /// Whether the words appear before the server ends or patience does.
    fn wait_for(&self, words: &str) -> bool {
        let text = self.text.lock().unwrap();
        let waits = |text: &mut (String, bool)| !text.0.contains(words) && !text.1;
        let (text, _) = self.grown.wait_timeout_while(text, PATIENCE, waits).unwrap();
        text.0.contains(words)
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().0.clone()
    }
}

impl Server {
    /// Starts a server with options in the style of redis-server; returns when it is ready.
    pub fn start(options: &[&str]) -> Self {
        Self::start_by(options, |command| command)
    }

    /// The same, with a last word on how the process is started.
    pub fn start_by(options: &[&str], edit: impl Fn(&mut Command) -> &mut Command) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), options, READY, edit)
    }

    /// The same, in a folder with files of another one, and only until its log has these words.
    /// Nothing is saved by itself unless the options say so.
    pub fn start_in(
        folder: TempDir,
        options: &[&str],
        words: &str,
        edit: impl Fn(&mut Command) -> &mut Command,
    ) -> Self {
        let (mut folder, mut last) = (Some(folder), String::new());
        for _ in 0..STARTS_MAX {
            let port = free_port();
            let mut command = weft();
            command.arg("server").args(["--port", &port.to_string()]);
            for default in [["--bind", "127.0.0.1"], ["--save", ""]] {
                if !options.contains(&default[0]) {
                    command.args(default);
                }
            }
            command.args(options).current_dir(folder.as_ref().unwrap().path());
            edit(&mut command);
            let (reader, writer) = std::io::pipe().unwrap();
            command.stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
            let child = command.spawn().unwrap();
            drop(command);
            let log = Arc::new(Log::default());
            let other = Arc::clone(&log);
            thread::spawn(move || other.read(reader));
            let mut server = Self { port, child, log, folder };
            if server.log.wait_for(words) {
                return server;
            }
            last = server.log.text();
            if !last.contains("Address already in use") {
                break;
            }
            folder = server.folder.take();
        }
        panic!("the server did not start:\n{last}");
    }

    /// Kills the server and starts another one on its files.
    pub fn kill_and_start(mut self, options: &[&str]) -> Self {
        self.signal("KILL");
        self.wait();
        let folder = self.folder.take().unwrap();
        Self::start_in(folder, options, READY, |command| command)
    }

    /// Ends the server as a signal does, and starts another one on its files.
    pub fn restart(self, options: &[&str]) -> Self {
        self.signal("TERM");
        self.wait_and_start(options)
    }

    /// Starts another server on the files of this one, when it has ended.
    pub fn wait_and_start(mut self, options: &[&str]) -> Self {
        assert!(self.wait().success(), "{}", self.log());
        let folder = self.folder.take().unwrap();
        Self::start_in(folder, options, READY, |command| command)
    }

    /// The folder of a server that has ended.
    pub fn into_folder(mut self) -> TempDir {
        self.folder.take().unwrap()
    }

    pub fn folder(&self) -> &TempDir {
        self.folder.as_ref().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    pub fn client(&self) -> Client {
        Client::tcp(self.address())
    }

    pub fn log(&self) -> String {
        self.log.text()
    }

    #[track_caller]
    pub fn wait_for_log(&self, words: &str) {
        assert!(self.log.wait_for(words), "no {words:?} in the log:\n{}", self.log());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().path().join(name)
    }

    pub fn signal(&self, name: &str) {
        send_signal(self.child.id(), name);
    }

    /// Waits until the process ends by itself.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        let log = Arc::clone(&self.log);
        // The process closes its log when it ends.
        let text = log.text.lock().unwrap();
        let (text, timeout) = log.grown.wait_timeout_while(text, PATIENCE, |text| !text.1).unwrap();
        assert!(!timeout.timed_out(), "the server did not end:\n{}", text.0);
        drop(text);
        self.child.wait().unwrap()
    }

    pub fn process(&self) -> Process {
        Process(self.child.id())
    }

    /// A line of INFO.
    pub fn info(&self, field: &str) -> String {
        let text = self.client().ask("INFO everything").text();
        let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("log of the server:\n{}", self.log());
        }
    }
}

/// A process as /proc shows it.
#[derive(Clone, Copy)]
pub struct Process(pub u32);

impl Process {
    /// The text of one of its files there.
    pub fn file(self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap_or_default()
    }

    /// The threads of this moment.
    pub fn thread_ids(self) -> Vec<Pid> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).unwrap();
        let ids = tasks.map(|task| task.unwrap().file_name().to_string_lossy().parse().unwrap());
        ids.filter_map(Pid::from_raw).collect()
    }

    /// Open descriptors.
    pub fn files(self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.0)).unwrap().count()
    }

    /// A field of /proc/PID/status in bytes: `VmRSS`, `VmHWM`.
    pub fn memory(self, field: &str) -> u64 {
        let status = self.file("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// A field of the status of each thread, such as `Cpus_allowed_list`.
    pub fn status_of_threads(self, field: &str) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).unwrap().flatten();
        let status = tasks.map(|task| fs::read_to_string(task.path().join("status")));
        let value = |status: String| {
            let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
            line.map(|value| value.trim().to_owned())
        };
        status.flatten().filter_map(value).collect()
    }

    /// Names of the threads with their time on a processor in nanoseconds.
    pub fn threads(self) -> BTreeMap<String, u64> {
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{}/task", self.0)).unwrap().flatten() {
            let read = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let busy = read("schedstat").split(' ').next().unwrap().parse().unwrap_or(0);
            *threads.entry(read("comm").trim().to_owned()).or_default() += busy;
        }
        threads
    }

    /// Time of all threads on a processor in nanoseconds.
    pub fn busy(self) -> u64 {
        self.threads().values().sum()
    }
}

pub fn weft() -> Command {
    Command::new(env!("CARGO_BIN_EXE_weft"))
}

pub fn send_signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Runs a server that is expected to refuse to start.
pub fn run_to_end(folder: &Path, args: &[&str]) -> Output {
    output_of(weft().arg("server").args(args).current_dir(folder))
}

/// What a process says that ends by itself.
pub fn output_of(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > PATIENCE {
            let _ = child.kill();
            panic!("it does not end: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}

/// Waits until something that no event reports is so.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it never is so: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
