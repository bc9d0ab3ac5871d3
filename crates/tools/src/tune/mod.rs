//! `weft tune`: the settings of a host that a server depends on, their purpose, and how to change
//! them.
//!
//! Each check reads files of the kernel below one root folder (`host`) and returns a `finding`.
//! With `--apply` the wanted settings are written and kept for the next start of the host
//! (`apply`), and all checks run again.
//!
//! It deliberately does not change settings with another owner: limits of control groups and of
//! service managers, and interrupts that a daemon moves, are only reported.

mod apply;
mod finding;
mod groups;
mod host;
mod kernel;
mod network;
mod processors;
mod show;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Args;

use crate::{Error, output};
use finding::{FindingState, HostFinding};
use host::HostFiles;
pub use processors::HostMachine;

/// Check the settings of this host that Weft depends on, and explain them.
///
/// Ends with an error status while a setting should change.
#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Change the settings that should change, now and for the next start of the host
    #[arg(long)]
    apply: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "config")]
    json: bool,
    /// Check the limits of this process instead of the shell's
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Clients connected at the same time, `maxclients` of the server
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    clients: u32,
    /// Connections that wait for accept, `tcp-backlog` of the server
    #[arg(long, value_name = "N", default_value_t = 511)]
    backlog: u32,
    /// Print a configuration file for a server that is alone on this host, without checks
    #[arg(long, conflicts_with = "apply")]
    config: bool,
    /// The folder with the files of the host, such as /proc and /sys
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// Facts about the server that the checks need.
#[derive(Clone, Copy)]
pub struct ServerDefaults {
    /// The threads that `io-threads auto` starts on this many processors.
    pub threads: fn(usize) -> usize,
    /// The text of a configuration file for a machine, or why there is none.
    pub config: fn(HostMachine) -> Result<String, String>,
}

/// The needs of a server.
pub(crate) struct HostNeeds {
    clients: u64,
    backlog: u64,
    threads: fn(usize) -> usize,
}

/// More files than a server with the most threads opens in addition to clients.
const FILES_BESIDE_CLIENTS: u64 = 512;

impl HostNeeds {
    /// The descriptors of a server.
    fn files(&self) -> u64 {
        self.clients + FILES_BESIDE_CLIENTS
    }
}

/// One check.
struct HostCheck {
    name: &'static str,
    run: fn(&HostFiles, &HostNeeds) -> HostFinding,
}

/// Every check, in the order of the output.
const CHECKS: &[HostCheck] = &[
    HostCheck { name: "threads", run: processors::threads },
    HostCheck { name: "cpu-quota", run: processors::quota },
    HostCheck { name: "cpu-governor", run: processors::governor },
    HostCheck { name: "interrupts", run: network::interrupts },
    HostCheck { name: "clock", run: kernel::clock },
    HostCheck { name: "memory", run: processors::memory },
    HostCheck { name: "overcommit", run: kernel::overcommit },
    HostCheck { name: "swap", run: kernel::swap },
    HostCheck { name: "huge-pages", run: kernel::huge_pages },
    HostCheck { name: "zone-reclaim", run: kernel::zone_reclaim },
    HostCheck { name: "somaxconn", run: kernel::somaxconn },
    HostCheck { name: "syn-backlog", run: kernel::syn_backlog },
    HostCheck { name: "open-files", run: kernel::open_files },
    HostCheck { name: "system-files", run: kernel::system_files },
];

/// The finding of a check.
struct CheckedSetting {
    name: &'static str,
    finding: HostFinding,
}

impl CheckedSetting {
    fn should_change(&self) -> bool {
        matches!(self.finding.state, FindingState::Change | FindingState::ByHand)
    }
}

fn check_all(host: &HostFiles, needs: &HostNeeds) -> Vec<CheckedSetting> {
    let check =
        |check: &HostCheck| CheckedSetting { name: check.name, finding: (check.run)(host, needs) };
    CHECKS.iter().map(check).collect()
}

/// Checks a host, and changes it with `--apply`. Returns whether nothing is left to change.
///
/// # Errors
/// The process does not exist, the host lacks files that a configuration needs, or the output
/// cannot be written.
pub fn run(args: &TuneArgs, server: ServerDefaults) -> Result<bool, Error> {
    let host = HostFiles::new(&args.root, args.pid);
    if let Some(pid) = args.pid
        && host.of_process("status").is_none()
    {
        return Err(Error::Usage(format!("there is no process {pid}")));
    }
    if args.config {
        let machine = HostMachine::of(&host);
        let machine = machine.ok_or_else(|| Error::Usage("the host has no /proc".to_owned()))?;
        output::print(&(server.config)(machine).map_err(Error::Usage)?)?;
        return Ok(true);
    }
    let needs = HostNeeds {
        clients: args.clients.into(),
        backlog: args.backlog.into(),
        threads: server.threads,
    };
    let mut all = check_all(&host, &needs);
    let mut applied = None;
    if args.apply {
        let settings = all.iter().flat_map(|checked| checked.finding.settings.iter());
        applied = Some(apply::apply(&host, settings.cloned().collect()));
        all = check_all(&host, &needs);
    }
    output::print(&match args.json {
        true => format!("{}\n", show::json(&all, applied.as_ref())),
        false => show::text(&all, applied.as_ref()),
    })?;
    let failed = applied.is_some_and(|applied| applied.has_failed());
    Ok(!failed && !all.iter().any(CheckedSetting::should_change))
}
