//! The servers that the command line of a comparison names.

use super::args::TargetArgs;
use crate::Error;
use crate::client::session::ServerEndpoint;
use crate::client::tls::TlsConnector;
use crate::servers::pin::Cpus;
use crate::servers::target::{Role, ServerTarget, TargetOrigin, named_address, named_command};

/// The servers to measure. The floor comes first if it can take part: it stores nothing and does
/// not speak TLS.
pub(super) fn targets(
    args: &TargetArgs,
    running: &[String],
    floor_bytes: Option<usize>,
) -> Result<Vec<ServerTarget>, Error> {
    let cpus: Cpus = args.pin_servers.clone().unwrap_or_default();
    let mut targets = Vec::new();
    if let (Some(bytes), false, false) = (floor_bytes, args.no_floor, args.tls) {
        let program = std::env::current_exe().map_err(Error::io("find this program's file"))?;
        targets.push(ServerTarget::floor(&program.to_string_lossy(), bytes, cpus.clone()));
    }
    let role = |name: &str| match args.subject.as_deref() == Some(name) {
        true => Role::Subject,
        false => Role::Peer,
    };
    for text in &args.servers {
        let (name, words) = named_command(text)?;
        let tls = args.tls.then(|| args.tls_options.clone());
        let origin = TargetOrigin::Command(words);
        targets.push(ServerTarget { role: role(&name), name, origin, cpus: cpus.clone(), tls });
    }
    for text in running {
        let (name, host, port) = named_address(text)?;
        let connector = || TlsConnector::new(&args.tls_options, &host);
        let tls = args.tls.then(connector).transpose()?;
        let endpoint = ServerEndpoint { tls, ..ServerEndpoint::at(host, port) };
        let origin = TargetOrigin::Running(Box::new(endpoint), None);
        targets.push(ServerTarget {
            role: role(&name),
            name,
            origin,
            cpus: Cpus::default(),
            tls: None,
        });
    }
    match &args.subject {
        _ if targets.iter().all(|target| target.role == Role::Floor) => {
            Err(Error::Usage("name the servers: --server NAME=COMMAND".into()))
        }
        Some(name) if targets.iter().all(|target| target.role != Role::Subject) => {
            Err(Error::Usage(format!("no --server is called '{name}'")))
        }
        _ => Ok(targets),
    }
}
