//! Writes settings into the files of the kernel, and keeps them for the next start of the host.
//!
//! Settings of `/proc/sys` are kept in a file in sysctl.d, those of `/sys` in one in tmpfiles.d.
//! Lines of other settings stay, so that a second run, which finds nothing to change, loses
//! nothing. Settings of interrupts are not kept, since their numbers change with each start.

use std::collections::BTreeMap;

use super::finding::KernelSetting;
use super::host::HostFiles;

/// Read by `systemd-sysctl` and `sysctl --system`.
const SYSCTL_FILE: &str = "/etc/sysctl.d/60-weft.conf";
/// Read by `systemd-tmpfiles`.
const TMPFILES_FILE: &str = "/etc/tmpfiles.d/weft.conf";
const OPENING: &str = "# Written by `weft tune --apply`.\n";

/// The result of applying settings.
#[derive(Debug, Default)]
pub struct AppliedSettings {
    /// Each setting, with the reason if it could not be written.
    pub set: Vec<(KernelSetting, Option<String>)>,
    /// Each file that keeps settings, with the reason if it could not be written.
    pub kept: Vec<(&'static str, Option<String>)>,
}

impl AppliedSettings {
    /// Whether something could not be written.
    pub fn has_failed(&self) -> bool {
        let mut reasons =
            self.set.iter().map(|(_, reason)| reason).chain(self.kept.iter().map(|(_, r)| r));
        reasons.any(Option::is_some)
    }
}

/// Writes all settings, and keeps those that the kernel accepted.
pub fn apply(host: &HostFiles, settings: Vec<KernelSetting>) -> AppliedSettings {
    let mut applied = AppliedSettings::default();
    let mut lines: BTreeMap<&'static str, BTreeMap<String, String>> = BTreeMap::new();
    for setting in settings {
        let reason = host.set(&setting.path, &setting.value).err().map(|error| error.to_string());
        if reason.is_none()
            && let Some((file, key, line)) = kept(&setting)
        {
            lines.entry(file).or_default().insert(key, line);
        }
        applied.set.push((setting, reason));
    }
    for (file, new) in lines {
        let reason = keep(host, file, new).err().map(|error| error.to_string());
        applied.kept.push((file, reason));
    }
    applied
}

/// The file that keeps a setting, with the beginning and the whole of its line.
fn kept(setting: &KernelSetting) -> Option<(&'static str, String, String)> {
    let KernelSetting { path, value } = setting;
    if let Some(name) = path.strip_prefix("/proc/sys/") {
        let key = format!("{} =", name.replace('/', "."));
        let line = format!("{key} {value}");
        return Some((SYSCTL_FILE, key, line));
    }
    path.starts_with("/sys/").then(|| {
        let key = format!("w {path} ");
        let line = format!("{key}- - - - {value}");
        (TMPFILES_FILE, key, line)
    })
}

/// Replaces the lines of a file that have the same beginnings.
fn keep(host: &HostFiles, file: &str, new: BTreeMap<String, String>) -> std::io::Result<()> {
    let old = host.read(file).unwrap_or_default();
    let is_other = |line: &&str| !new.keys().any(|key| line.starts_with(key.as_str()));
    let others = old.lines().filter(|line| !line.starts_with('#')).filter(is_other);
    let mut lines: Vec<&str> = others.chain(new.values().map(String::as_str)).collect();
    lines.sort_unstable();
    host.replace(file, &format!("{OPENING}{}\n", lines.join("\n")))
}
