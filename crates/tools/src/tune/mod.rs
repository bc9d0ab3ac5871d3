//! `weft tune`: the settings of a host that a server depends on, what each is there for, and how to
//! change it.
//!
//! Each check looks at files of the kernel below one root folder (`host`) and says what it found
//! (`finding`). With `--apply` the settings that it asks for are written, kept for the next start
//! of the host (`apply`), and everything is looked at again.
//!
//! It deliberately changes nothing that belongs to somebody else: limits of control groups and of
//! service managers, and interrupts that a daemon moves, are told and left alone.

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
/// Ends with an error status while something is to be changed.
#[derive(Debug, Clone, Args)]
pub struct TuneArgs {
    /// Change what is to be changed, now and for the next start of the host
    #[arg(long)]
    apply: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "config")]
    json: bool,
    /// Look at the limits of this process instead of those of the shell
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Clients that are connected at once, `maxclients` of the server
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    clients: u32,
    /// Connections that wait to be accepted, `tcp-backlog` of the server
    #[arg(long, value_name = "N", default_value_t = 511)]
    backlog: u32,
    /// Print a configuration file for a server that has this host for itself, and check nothing
    #[arg(long, conflicts_with = "apply")]
    config: bool,
    /// The folder below which the files of the host are, such as /proc and /sys
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// What the server says of itself.
#[derive(Clone, Copy)]
pub struct ServerDefaults {
    /// The threads that `io-threads auto` starts on so many processors.
    pub threads: fn(usize) -> usize,
    /// The text of a configuration file for a machine; an error says why there is none.
    pub config: fn(HostMachine) -> Result<String, String>,
}

/// What a host is measured by.
pub(crate) struct HostNeeds {
    clients: u64,
    backlog: u64,
    threads: fn(usize) -> usize,
}

/// More than a server with the most threads opens beside clients.
const FILES_BESIDE_CLIENTS: u64 = 512;

impl HostNeeds {
    /// Descriptors that a server opens.
    fn files(&self) -> u64 {
        self.clients + FILES_BESIDE_CLIENTS
    }
}

/// One check.
struct HostCheck {
    name: &'static str,
    run: fn(&HostFiles, &HostNeeds) -> HostFinding,
}

/// Every check, in the order in which they are shown.
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

/// What a check of a name has found.
struct CheckedSetting {
    name: &'static str,
    finding: HostFinding,
}

impl CheckedSetting {
    fn is_to_change(&self) -> bool {
        matches!(self.finding.state, FindingState::Change | FindingState::ByHand)
    }
}

fn check_all(host: &HostFiles, needs: &HostNeeds) -> Vec<CheckedSetting> {
    let check =
        |check: &HostCheck| CheckedSetting { name: check.name, finding: (check.run)(host, needs) };
    CHECKS.iter().map(check).collect()
}

/// Checks a host, and changes it if that is wanted. Returns whether nothing is left to change.
///
/// # Errors
/// When there is no such process, the host does not tell what a configuration needs, or what was
/// found cannot be printed.
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
    Ok(!failed && !all.iter().any(CheckedSetting::is_to_change))
}
