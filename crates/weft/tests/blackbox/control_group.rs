//! A control group that limits the processors of a server, if the system lets the test create one:
//! `cpu.max` of version 2, the quota of version 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{process, thread};

use test_support::Process;

/// The period of a quota in microseconds.
const PERIOD_US: u32 = 100_000;
const ROOT: &str = "/sys/fs/cgroup";

/// A control group. It is removed after its processes.
pub struct ControlGroup {
    folder: PathBuf,
    /// The file of the limit, and the suffix after the quota.
    file: &'static str,
    behind: String,
}

impl ControlGroup {
    /// A new group; `None` if the system does not allow it.
    pub fn new() -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let path_of = |line: &str| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            Some((controllers.to_owned(), path.trim_start_matches('/').to_owned()))
        };
        own.lines().filter_map(path_of).find_map(|(controllers, path)| {
            let is_first = controllers.split(',').any(|controller| controller == "cpu");
            let (parent, file, behind) = match (is_first, controllers.is_empty()) {
                (true, _) => {
                    (Path::new(ROOT).join(&controllers), "cpu.cfs_quota_us", String::new())
                }
                (_, true) => (ROOT.into(), "cpu.max", format!(" {PERIOD_US}")),
                _ => return None,
            };
            let folder = parent.join(path).join(format!("weft-test-{}", process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Self { folder, file, behind };
            group.folder.join(file).exists().then_some(group)
        })
    }

    /// Moves all threads of a process into the group.
    pub fn add(&self, process: Process) {
        fs::write(self.folder.join("cgroup.procs"), process.0.to_string()).unwrap();
    }

    /// Limits the group to this many processors.
    pub fn limit(&self, processors: u32) {
        let limit = format!("{}{}", processors * PERIOD_US, self.behind);
        fs::write(self.folder.join(self.file), limit).unwrap();
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Killed processes leave the group a moment later.
        let removed = (0..500).any(|_| {
            thread::sleep(Duration::from_millis(2));
            fs::remove_dir(&self.folder).is_ok()
        });
        if !removed {
            eprintln!("{} stays", self.folder.display());
        }
    }
}
