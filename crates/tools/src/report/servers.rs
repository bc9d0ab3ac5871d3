//! The servers of a report: their command lines, their start for an experiment, and their versions
//! and settings.
//!
//! All servers of an experiment are alive at the same time, each paused outside its turns. They are
//! started again when an experiment needs another [`ServerSetup`]. A server that was running
//! before, and the canned-reply server, take part only in experiments without a setup.

use super::args::ReportArgs;
use super::experiments::{Persistence, ServerSetup};
use crate::Error;
use crate::client::session::{ServerEndpoint, ServerSession};
use crate::client::tls::TlsOptions;
use crate::load::drive::make_ready;
use crate::load::shape::RequestShape;
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::servers::certificates::SelfSigned;
use crate::servers::target::{
    Role, ServerTarget, TargetOrigin, TargetServer, named_address, named_command,
};

/// Settings that are shown.
const SETTINGS: &[&str] =
    &["io-threads", "io-threads-execute", "save", "appendonly", "appendfsync", "maxmemory"];

/// The fields of INFO with a version, the most specific first.
const VERSIONS: &[(&str, &str)] =
    &[("weft_version", "Weft"), ("valkey_version", "Valkey"), ("redis_version", "Redis")];

/// A server's version and settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerFacts {
    pub version: String,
    pub settings: String,
    /// Its command line or its address.
    pub origin: String,
}

/// The servers of the command line, the canned-reply server last.
pub(super) fn named(args: &ReportArgs) -> Result<Vec<ServerTarget>, Error> {
    let own = std::env::current_exe().map_err(Error::io("find this program's file"))?;
    let own = own.to_string_lossy().into_owned();
    let cpus = args.pin_servers.clone().unwrap_or_default();
    let target = |name: &str, origin| ServerTarget {
        name: name.to_owned(),
        role: Role::Subject,
        origin,
        cpus: cpus.clone(),
        tls: None,
    };
    let mut targets = Vec::new();
    for text in &args.servers {
        let (name, words) = named_command(text)?;
        targets.push(target(&name, TargetOrigin::Command(words)));
    }
    for text in &args.connect {
        let (name, host, port) = named_address(text)?;
        let (user, password) = (args.user.clone(), args.auth.clone());
        let endpoint = ServerEndpoint { user, password, ..ServerEndpoint::at(host, port) };
        targets.push(target(&name, TargetOrigin::Running(Box::new(endpoint), None)));
    }
    if targets.is_empty() {
        let rest = ["server", "--port", "{port}", "--dir", "{dir}", "--save", ""];
        let words = std::iter::once(own.as_str()).chain(rest).map(str::to_owned);
        targets.push(target("weft", TargetOrigin::Command(words.collect())));
    }
    if !args.no_floor {
        targets.push(ServerTarget::floor(&own, 256, cpus.clone()));
    }
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].iter().any(|other| other.name == target.name) {
            return Err(Error::Usage(format!("two servers are called '{}'", target.name)));
        }
    }
    Ok(targets)
}

/// A server in its setup.
#[derive(Debug)]
pub(super) enum ServerState {
    Runs(Box<Live>),
    /// It does not take part in this setup.
    LeftOut,
    /// The reason why it cannot be used.
    Failed(String),
}

/// A server that answers, and its data.
#[derive(Debug)]
pub(super) struct Live {
    pub server: TargetServer,
    /// Whether its data may be deleted.
    pub is_own: bool,
    filled: Option<(&'static str, RequestShape)>,
}

impl Live {
    /// Makes the data of a workload; with `replaces`, even if the server has it.
    pub fn fill(
        &mut self,
        row: &'static Workload,
        load: &LoadSpec,
        replaces: bool,
    ) -> Result<(), Error> {
        let wanted = row.fill.map(|fill| (fill, load.shape.clone()));
        let has_data = self.filled == wanted && wanted.is_some() && !replaces;
        if !has_data && self.is_own {
            let mut session = ServerSession::open(&self.server.endpoint)?;
            session.ask("FLUSHALL", &["FLUSHALL"])?;
        }
        make_ready(&self.server.endpoint, row, load, !has_data)?;
        self.filled = wanted;
        Ok(())
    }
}

/// All servers in one setup.
pub(super) struct Fleet<'a> {
    targets: &'a [ServerTarget],
    setup: Option<ServerSetup>,
    certificates: Option<SelfSigned>,
    pub states: Vec<ServerState>,
}

impl<'a> Fleet<'a> {
    /// Servers that are not started yet.
    pub fn new(targets: &'a [ServerTarget]) -> Fleet<'a> {
        Fleet { targets, setup: None, certificates: None, states: Vec::new() }
    }

    /// Starts the servers in this setup, unless they are in it.
    pub fn enter(&mut self, setup: ServerSetup) -> Result<(), Error> {
        if self.setup == Some(setup) {
            return Ok(());
        }
        self.states.clear();
        self.setup = Some(setup);
        if setup.tls && self.certificates.is_none() {
            self.certificates = Some(SelfSigned::create()?);
        }
        let certificates = self.certificates.as_ref();
        self.states =
            self.targets.iter().map(|target| start(target, setup, certificates)).collect();
        Ok(())
    }

    /// Asks the servers for their versions and settings.
    pub fn facts(&self) -> Result<Vec<ServerFacts>, Error> {
        let pairs = self.targets.iter().zip(&self.states);
        pairs.map(|(target, state)| facts(target, state)).collect()
    }
}

fn start(
    target: &ServerTarget,
    setup: ServerSetup,
    certificates: Option<&SelfSigned>,
) -> ServerState {
    let mut target = target.clone();
    let is_own = match (&mut target.origin, target.role) {
        (TargetOrigin::Command(words), Role::Subject | Role::Peer) => {
            words.extend(options(setup, certificates));
            true
        }
        _ if setup != ServerSetup::default() => return ServerState::LeftOut,
        _ => false,
    };
    if setup.tls {
        target.tls = Some(TlsOptions {
            cacert: certificates.map(|certificates| certificates.authority().into()),
            ..TlsOptions::default()
        });
    }
    match target.start() {
        Ok(server) => {
            server.pause();
            ServerState::Runs(Box::new(Live { server, is_own, filled: None }))
        }
        Err(error) => ServerState::Failed(error.to_string()),
    }
}

/// The options of a setup; of an option that is given twice, servers use the last.
fn options(setup: ServerSetup, certificates: Option<&SelfSigned>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    if let (true, Some(certificates)) = (setup.tls, certificates) {
        words.extend(certificates.server_options());
    }
    let mut add = |name: &str, value: &str| {
        words.extend([format!("--{name}"), value.to_owned()]);
    };
    if let Some(threads) = setup.io_threads {
        add("io-threads", &threads.to_string());
    }
    match setup.persistence {
        None => {}
        Some(Persistence::Off) => add("appendonly", "no"),
        Some(Persistence::EverySecond) => {
            add("appendonly", "yes");
            add("appendfsync", "everysec");
        }
        Some(Persistence::Always) => {
            add("appendonly", "yes");
            add("appendfsync", "always");
        }
    }
    words
}

fn facts(target: &ServerTarget, state: &ServerState) -> Result<ServerFacts, Error> {
    let origin = match &target.origin {
        TargetOrigin::Command(words) => {
            let words = words.iter().map(String::as_str);
            shlex::try_join(words)
                .unwrap_or_default()
                .replace("'{port}'", "{port}")
                .replace("'{dir}'", "{dir}")
        }
        TargetOrigin::Running(endpoint, _) => format!("runs at {}", endpoint.address),
    };
    let live = match state {
        ServerState::Runs(live) => live,
        ServerState::Failed(reason) => return Err(Error::Usage(reason.clone())),
        ServerState::LeftOut => {
            return Ok(ServerFacts { version: String::new(), settings: String::new(), origin });
        }
    };
    if target.role == Role::Floor {
        let version = "answers with canned bytes".to_owned();
        return Ok(ServerFacts { version, settings: String::new(), origin });
    }
    live.server.resume();
    let mut session = ServerSession::open(&live.server.endpoint)?;
    let info = session.info("server")?;
    let version = VERSIONS.iter().find_map(|(field, name)| {
        let number = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        Some(format!("{name} {}", number.trim()))
    });
    let version = version.unwrap_or_else(|| "unknown".to_owned());
    let mut settings = Vec::new();
    for name in SETTINGS {
        // A setting that a server does not have or does not reveal is not shown.
        let Ok(reply) = session.ask("CONFIG GET", &["CONFIG", "GET", name]) else { continue };
        let reply = String::from_utf8_lossy(reply).into_owned();
        // *2, $length, name, $length, value.
        if let Some(value) = reply.split("\r\n").nth(4) {
            settings.push(format!("{name} {}", if value.is_empty() { "\"\"" } else { value }));
        }
    }
    live.server.pause();
    Ok(ServerFacts { version, settings: settings.join(", "), origin })
}
