//! The checks on hosts that are folders of files.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;

use tempfile::TempDir;

use super::*;

/// A host with nothing to change: 4 processors, 8 GB, no limits.
const GOOD: &[(&str, &str)] = &[
    ("proc/self/status", "Name:\tweft\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n"),
    ("proc/self/limits", "Limit  Soft  Hard  Units\nMax open files   1024   524288   files\n"),
    ("proc/self/cgroup", "0::/app/weft\n"),
    ("proc/self/mountinfo", "30 20 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n"),
    ("proc/meminfo", "MemTotal:        8388608 kB\nMemFree: 1 kB\n"),
    ("proc/swaps", "Filename  Type  Size  Used  Priority\n"),
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/overcommit_memory", "0\n"),
    ("proc/sys/vm/zone_reclaim_mode", "0\n"),
    ("proc/sys/net/core/somaxconn", "4096\n"),
    ("proc/sys/net/ipv4/tcp_max_syn_backlog", "1024\n"),
    ("proc/sys/fs/nr_open", "1048576\n"),
    ("proc/sys/fs/file-max", "9223372036854775807\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
    ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
    ("sys/fs/cgroup/app/cpu.max", "max 100000\n"),
    ("sys/fs/cgroup/app/weft/memory.max", "max\n"),
    ("sys/class/net/lo/queues/rx-0/rps_cpus", "0\n"),
];

/// A device with two queues, whose interrupts two processors take.
const TWO_QUEUES: &[(&str, &str)] = &[
    ("sys/class/net/eth0/device/msi_irqs/40", "msix\n"),
    ("sys/class/net/eth0/device/msi_irqs/41", "msix\n"),
    ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
    ("sys/class/net/eth0/queues/rx-1/rps_cpus", "0\n"),
    ("proc/irq/40/smp_affinity_list", "0-3\n"),
    ("proc/irq/40/effective_affinity_list", "0\n"),
    ("proc/irq/41/smp_affinity_list", "0-3\n"),
    ("proc/irq/41/effective_affinity_list", "1\n"),
];

/// Files by their paths, with their texts.
type Files<'a> = &'a [(&'a str, &'a str)];

struct FakeHost {
    root: TempDir,
}

impl FakeHost {
    /// The good host with these files on top.
    fn new(files: &[(&str, &str)]) -> Self {
        let host = Self { root: TempDir::new().unwrap() };
        GOOD.iter().chain(files).for_each(|(path, text)| host.write(path, text));
        host
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
    }

    fn host(&self) -> HostFiles {
        HostFiles::new(self.root.path(), None)
    }

    fn check(&self) -> Vec<CheckedSetting> {
        let threads = |processors| processors + 1;
        check_all(&self.host(), &HostNeeds { clients: 10_000, backlog: 511, threads })
    }

    /// The finding of one check.
    fn finding(&self, name: &str) -> HostFinding {
        let mut all = self.check().into_iter();
        all.find(|checked| checked.name == name).map(|checked| checked.finding).unwrap()
    }

    /// Applies the settings that should change.
    fn apply(&self) -> apply::AppliedSettings {
        let settings = self.check().into_iter().flat_map(|checked| checked.finding.settings);
        apply::apply(&self.host(), settings.collect())
    }
}

/// The check `name` of the good host with `files` on top finds `found` in this state, and no other
/// setting should change. If `--apply` changes it, nothing is left to change.
fn check(name: &str, files: &[(&str, &str)], state: FindingState, found: &str) {
    let host = FakeHost::new(files);
    let finding = host.finding(name);
    assert_eq!(finding.state, state, "{name}: {finding:?}");
    assert!(finding.found.contains(found), "{name}: {finding:?}");
    assert_eq!(finding.settings.is_empty(), state != FindingState::Change, "{name}: {finding:?}");
    for other in host.check().iter().filter(|other| other.name != name) {
        assert_eq!(other.finding.state, FindingState::Good, "{}: {:?}", other.name, other.finding);
    }
    if state == FindingState::Change {
        assert!(!host.apply().has_failed(), "{name}");
        assert_eq!(
            host.finding(name).state,
            FindingState::Good,
            "{name}: {:?}",
            host.finding(name)
        );
    }
}

#[test]
fn a_host_without_faults_is_left_alone() {
    let host = FakeHost::new(&[]);
    for CheckedSetting { name, finding } in host.check() {
        assert_eq!(finding.state, FindingState::Good, "{name}: {finding:?}");
        assert!(!finding.why.is_empty() && finding.wanted.is_empty(), "{name}: {finding:?}");
    }
    let applied = host.apply();
    assert!(applied.set.is_empty() && applied.kept.is_empty());
    assert!(!host.root.path().join("etc").exists());
}

#[test]
fn settings_of_the_kernel() {
    use FindingState::{ByHand, Change, Good, Unknown};
    let clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    let clocks = "sys/devices/system/clocksource/clocksource0/available_clocksource";
    let swap = ("proc/swaps", "Filename Type Size Used Priority\n/dev/vdb partition 1 0 -2\n");
    let thp = "sys/kernel/mm/transparent_hugepage/enabled";
    let governor = "sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
    let cases: &[(&str, Files<'_>, FindingState, &str)] = &[
        ("somaxconn", &[("proc/sys/net/core/somaxconn", "128")], Change, "128"),
        ("somaxconn", &[("proc/sys/net/core/somaxconn", "511")], Good, "511"),
        ("somaxconn", &[("proc/sys/net/core/somaxconn", "?")], Unknown, "cannot be read"),
        ("syn-backlog", &[("proc/sys/net/ipv4/tcp_max_syn_backlog", "128")], Change, "128"),
        ("overcommit", &[("proc/sys/vm/overcommit_memory", "2")], Change, "2"),
        ("overcommit", &[("proc/sys/vm/overcommit_memory", "1")], Good, "1"),
        ("swap", &[swap], Change, "swappiness 60"),
        ("swap", &[swap, ("proc/sys/vm/swappiness", "1")], Good, "swappiness 1"),
        ("huge-pages", &[(thp, "[always] madvise never")], Change, "always"),
        ("huge-pages", &[(thp, "always madvise [never]")], Good, "never"),
        ("zone-reclaim", &[("proc/sys/vm/zone_reclaim_mode", "1")], Change, "1"),
        ("system-files", &[("proc/sys/fs/nr_open", "4096")], Change, "4096 for a process"),
        ("clock", &[(clock, "xen"), (clocks, "xen tsc hpet")], Change, "xen"),
        ("clock", &[(clock, "hpet"), (clocks, "hpet acpi_pm")], ByHand, "hpet"),
        ("cpu-governor", &[(governor, "powersave")], Change, "powersave"),
        ("cpu-governor", &[(governor, "performance")], Good, "performance"),
    ];
    for (name, files, state, found) in cases {
        check(name, files, *state, found);
    }
}

#[test]
fn limits_of_the_process() {
    let limits = |hard: &str| format!("Max open files            1024  {hard}  files\n");
    let few = limits("4096");
    check("open-files", &[("proc/self/limits", &few)], FindingState::ByHand, "4096");
    assert!(
        FakeHost::new(&[("proc/self/limits", &few)])
            .finding("open-files")
            .wanted
            .contains("10512 for 10000 clients")
    );
    check(
        "open-files",
        &[("proc/self/limits", &limits("unlimited"))],
        FindingState::Good,
        "no limit",
    );
    check("open-files", &[("proc/self/limits", "")], FindingState::Unknown, "cannot be read");
}

#[test]
fn quotas_and_affinity_decide_the_threads() {
    use FindingState::{ByHand, Good};
    let cpu_max = "sys/fs/cgroup/app/cpu.max";
    check("threads", &[], Good, "4 of 4 processors by affinity: io-threads auto is 5");
    let two = ("proc/self/status", "Cpus_allowed_list:\t1,3\n");
    check("threads", &[two], Good, "2 of 4 processors by affinity: io-threads auto is 3");
    check("threads", &[(cpu_max, "300000 100000")], Good, "3 by the quota: io-threads auto is 4");
    check("cpu-quota", &[(cpu_max, "300000 100000")], Good, "3.00 processors");
    check("cpu-quota", &[(cpu_max, "250000 100000")], ByHand, "2.50 processors");
    let used = ("sys/fs/cgroup/app/cpu.stat", "nr_periods 9\nnr_throttled 7\n");
    check("cpu-quota", &[(cpu_max, "200000 100000"), used], ByHand, "used up in 7 periods");
    // A limit of a group further up counts too, and the lowest one decides.
    let own = ("sys/fs/cgroup/app/weft/cpu.max", "400000 100000");
    check("cpu-quota", &[(cpu_max, "100000 100000"), own], Good, "1.00 processors");
}

#[test]
fn groups_of_the_first_version_count_alike() {
    let first = [
        ("proc/self/cgroup", "4:memory:/pod/one\n2:cpu,cpuacct:/pod/one\n0::/\n"),
        (
            "proc/self/mountinfo",
            "30 20 0:26 /pod/one /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             31 20 0:27 /pod/one /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        ),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "4294967296\n"),
    ];
    check("cpu-quota", &first, FindingState::Good, "2.00 processors");
    check("memory", &first, FindingState::Good, "4096 MB by the control group, of 8192 MB");
    let machine = HostMachine::of(&FakeHost::new(&first).host()).unwrap();
    assert_eq!(machine, HostMachine { processors: 2, memory_bytes: 4 << 30 });
    let without = [
        first[0],
        first[1],
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    check("cpu-quota", &without, FindingState::Good, "none");
    check("memory", &without, FindingState::Good, "8192 MB: maxmemory 6144mb");
}

#[test]
fn memory_that_a_group_grants() {
    let (max, high) = ("sys/fs/cgroup/app/memory.max", "sys/fs/cgroup/app/memory.high");
    check("memory", &[(max, "2147483648")], FindingState::Good, "2048 MB by the control group");
    let both = [(max, "2147483648"), (high, "1073741824")];
    check("memory", &both, FindingState::ByHand, "memory.high is 1024 MB");
    assert!(FakeHost::new(&both).finding("memory").wanted.contains("maxmemory 768mb"));
}

#[test]
fn interrupts_of_network_devices() {
    use FindingState::{ByHand, Change, Good};
    check("interrupts", &[], Good, "no network device");
    check("interrupts", TWO_QUEUES, Good, "eth0: 2 queues, interrupts on 2 processors");
    let one = [("proc/irq/41/effective_affinity_list", "0\n")];
    let on_one = [TWO_QUEUES, &one].concat();
    let balanced = [&on_one[..], &[("proc/77/comm", "irqbalance\n")]].concat();
    check("interrupts", &balanced, ByHand, "interrupts on processor 0");
    let host = FakeHost::new(&on_one);
    assert_eq!(host.finding("interrupts").state, Change);
    assert!(!host.apply().has_failed());
    assert_eq!(host.read("proc/irq/40/smp_affinity_list"), "0");
    assert_eq!(host.read("proc/irq/41/smp_affinity_list"), "1");
    // Numbers of interrupts differ after the next start.
    assert!(!host.root.path().join("etc").exists());

    let single = [
        ("sys/class/net/ens5/device/vendor", "0x1af4\n"),
        ("sys/class/net/ens5/queues/rx-0/rps_cpus", "00000000\n"),
    ];
    check("interrupts", &single, Change, "ens5: 1 queue, interrupts on unknown processors");
    let host = FakeHost::new(&single);
    host.apply();
    assert_eq!(host.read("sys/class/net/ens5/queues/rx-0/rps_cpus"), "0000000f");
    let few = [&single[..], &[("sys/devices/system/cpu/online", "0-1\n")]].concat();
    check("interrupts", &few, Good, "ens5: 1 queue");
}

#[test]
fn new_settings_are_kept_with_earlier_ones() {
    let host = FakeHost::new(&[
        ("proc/sys/net/core/somaxconn", "128"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never"),
    ]);
    let kept = ["etc/sysctl.d/60-weft.conf", "etc/tmpfiles.d/weft.conf"];
    host.write(kept[0], "# Written before.\nvm.swappiness = 1\nnet.core.somaxconn = 7\n");
    let applied = host.apply();
    assert!(!applied.has_failed());
    assert_eq!(applied.kept.len(), 2);
    let opening = "# Written by `weft tune --apply`.\n";
    let sysctl = format!("{opening}net.core.somaxconn = 4096\nvm.swappiness = 1\n");
    assert_eq!(host.read(kept[0]), sysctl);
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    assert_eq!(host.read(kept[1]), format!("{opening}w {path} - - - - madvise\n"));
    assert!(host.apply().set.is_empty());
    assert_eq!(host.read(kept[0]), sysctl);
}

#[test]
fn a_failed_setting_is_reported() {
    let host = FakeHost::new(&[("proc/sys/vm/overcommit_memory", "2")]);
    let mut settings = host.finding("overcommit").settings;
    settings[0].path.push_str("/missing");
    let applied = apply::apply(&host.host(), settings);
    assert!(applied.has_failed() && applied.kept.is_empty());
    let text = show::text(&host.check(), Some(&applied));
    assert!(text.contains("failed   /proc/sys/vm/overcommit_memory/missing = 0: "), "{text}");
    assert!(text.ends_with("To change: 1; `weft tune --apply` as root does it.\n"), "{text}");
}

#[test]
fn both_outputs_have_the_same_facts() {
    let host = FakeHost::new(&[("proc/sys/vm/overcommit_memory", "2")]);
    let all = host.check();
    let json = show::json(&all, None);
    let checks = json["checks"].as_array().unwrap();
    assert_eq!(checks.len(), CHECKS.len());
    let text = show::text(&all, None);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for check in checks {
        let first = format!(
            "{:<8} {:<13}",
            check["state"].as_str().unwrap(),
            check["name"].as_str().unwrap()
        );
        assert!(text.contains(&first), "{first}\n{text}");
    }
    let overcommit = checks.iter().find(|check| check["name"] == "overcommit").unwrap();
    assert_eq!(overcommit["state"], "change");
    assert_eq!(overcommit["settings"][0]["path"], "/proc/sys/vm/overcommit_memory");
    assert_eq!(overcommit["settings"][0]["value"], "0");
}
