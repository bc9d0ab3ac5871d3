//! Processes: their end, signals to them, and what /proc shows of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{WAIT_MAX, weft};

/// A process that is killed on drop.
#[derive(Debug)]
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process as /proc shows it.
#[derive(Clone, Copy, Debug)]
pub struct Process(pub u32);

impl Process {
    /// The text of one of its files; nothing of a process that has ended.
    pub fn file(self, name: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{name}", self.0)).unwrap_or_default()
    }

    /// The threads of this moment.
    pub fn thread_ids(self) -> Vec<i32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0)).unwrap();
        tasks.map(|task| task.unwrap().file_name().to_string_lossy().parse().unwrap()).collect()
    }

    /// How many descriptors are open.
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

/// Has a shell script start a command; the script gets its words as `"$0" "$@"`.
pub fn in_shell(command: &mut Command, script: &str) {
    let args: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    let folder = command.get_current_dir().map(ToOwned::to_owned);
    let program = command.get_program().to_owned();
    *command = Command::new("sh");
    command.arg("-c").arg(script).arg(program).args(args);
    command.current_dir(folder.expect("the command has a folder"));
}

/// Sends a signal by its name without SIG.
pub fn send_signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status();
    assert!(status.unwrap().success());
}

/// The output of a server that is expected to refuse to start.
pub fn output_of_server(folder: &Path, args: &[&str]) -> Output {
    output_of(weft().arg("server").args(args).current_dir(folder))
}

/// The text that a process has printed: its output, and then its errors.
pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// The output of a process that ends by itself.
pub fn output_of(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > WAIT_MAX {
            let _ = child.kill();
            panic!("it does not end: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().unwrap()
}
