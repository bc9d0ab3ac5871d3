//! The limits of processors and memory in the control groups of a process, in both versions.
//!
//! A limit of a group also limits the groups below it. The effective limit is therefore the lowest
//! one between the process's group and the mount point of the hierarchy.

use super::host::HostFiles;

/// From this value on, version 1 has no limit of memory.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// The limits of the groups of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Granted {
    /// CPU time in processors, if it is limited.
    pub processors: Option<f64>,
    /// Periods in which the CPU time was used up before the end.
    pub throttled: u64,
    /// Bytes of memory, if they are limited.
    pub memory_bytes: Option<u64>,
    /// Bytes above which the kernel slows the processes down, if limited.
    pub memory_high_bytes: Option<u64>,
}

impl Granted {
    /// Reads the limits of the process of a host.
    pub fn read(host: &HostFiles) -> Self {
        let mut granted = Self::default();
        for folder in folders(host) {
            granted.take(host, &folder);
        }
        granted
    }

    /// Takes the limits of one group that are lower.
    fn take(&mut self, host: &HostFiles, folder: &str) {
        let file = |name: &str| host.read(&format!("{folder}/{name}"));
        let number = |name: &str| file(name).and_then(|text| text.parse::<u64>().ok());
        // `max` and -1 mean no limit, and do not parse as such numbers.
        let second = file("cpu.max").and_then(|text| {
            let (quota, period) = text.split_once(' ')?;
            Some((quota.parse().ok()?, period.trim().parse().ok()?))
        });
        let first = number("cpu.cfs_quota_us").zip(number("cpu.cfs_period_us"));
        if let Some((quota, period)) = second.or(first)
            && period > 0
        {
            least(&mut self.processors, quota as f64 / period as f64);
        }
        let stat = file("cpu.stat").unwrap_or_default();
        let throttled = stat.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        let throttled = throttled.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        self.throttled = self.throttled.max(throttled);
        let limits = [number("memory.max"), number("memory.limit_in_bytes")];
        for limit in limits.into_iter().flatten().filter(|limit| *limit < NO_LIMIT_BYTES) {
            least(&mut self.memory_bytes, limit);
        }
        if let Some(high) = number("memory.high") {
            least(&mut self.memory_high_bytes, high);
        }
    }
}

fn least<T: PartialOrd>(limit: &mut Option<T>, value: T) {
    if limit.as_ref().is_none_or(|limit| value < *limit) {
        *limit = Some(value);
    }
}

/// The folders of all groups that limit the process.
fn folders(host: &HostFiles) -> Vec<String> {
    let (groups, mounts) = (host.of_process("cgroup"), host.of_process("mountinfo"));
    let (groups, mounts) = (groups.unwrap_or_default(), mounts.unwrap_or_default());
    let mut all = Vec::new();
    for mount in mounts.lines().filter_map(Mount::of) {
        let own = groups.lines().find_map(|line| mount.path_of(line));
        let Some(path) = own else { continue };
        // In a container the mount shows a part of the hierarchy as its top.
        let below = path.strip_prefix(mount.root).unwrap_or(path);
        let mut parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
        loop {
            all.push([&[mount.point], &*parts].concat().join("/"));
            if parts.pop().is_none() {
                break;
            }
        }
    }
    all
}

/// The mount of a hierarchy.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    is_second: bool,
    /// In version 1 they include the controllers.
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// A line of mountinfo: `36 35 98:0 /root /point rw,noatime master:1 - cgroup name rw,cpu`.
    fn of(line: &'a str) -> Option<Self> {
        let (front, behind) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, point) = (front.next()?, front.next()?);
        let mut behind = behind.split(' ');
        let (kind, options) = (behind.next()?, behind.nth(1).unwrap_or_default());
        let is_second = match kind {
            "cgroup2" => true,
            "cgroup" => false,
            _ => return None,
        };
        Some(Self { root: root.trim_end_matches('/'), point, is_second, options })
    }

    /// The group of the process in this hierarchy, if this line of its list is about it:
    /// `0::/path`, or `4:cpu,cpuacct:/path`.
    fn path_of(&self, line: &'a str) -> Option<&'a str> {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let is_it = match controllers {
            "" => self.is_second,
            names => {
                let has = |name: &str| self.options.split(',').any(|option| option == name);
                !self.is_second && names.split(',').all(has)
            }
        };
        is_it.then_some(path)
    }
}
