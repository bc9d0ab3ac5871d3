//! `cargo xtask chaos`: clients that check each reply, while clients are killed, paused and moved.
//!
//! The crate `chaos` does the work; this file has the command line and starts the server.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chaos::{Endpoint, Fault, Plan};
use tools::client::tls::{TlsConnector, TlsOptions};
use tools::servers::certificates::SelfSigned;
use tools::servers::target::ServerTarget;

use xtask::Failure;

use crate::server::{self, Where};

/// The options of a run.
#[derive(clap::Args)]
pub struct Options {
    /// How long clients act
    #[arg(long, default_value_t = 60, value_name = "S")]
    seconds: u64,
    /// Seed of the random numbers; the order of threads still differs from run to run
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Clients of each of the seven kinds
    #[arg(long, default_value_t = 4, value_name = "N")]
    clients: usize,
    /// Speak TLS with the server, which is started for it
    #[arg(long)]
    tls: bool,
    /// Plant a fault between the clients and the server, which the clients must find
    #[arg(long, value_name = "NAME", value_parser = fault)]
    fault: Option<Fault>,
    /// The server under test; the run deletes its data [default: Weft, built from this source]
    #[arg(long, value_name = "HOST:PORT|PROGRAM")]
    server: Option<String>,
    /// The server is not Weft: leave out the parameters that only Weft has
    #[arg(long, requires = "server")]
    peer: bool,
    /// Build Weft with the release profile
    #[arg(long)]
    release: bool,
}

/// Runs the clients, and prints their report.
///
/// # Errors
/// When a client saw a broken promise, or the server does not start.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let origin = match &options.server {
        Some(text) => server::origin(text),
        None => {
            let program = server::build(root, options.release)?;
            Where::Command(server::server_words(&[&program, "server", "--io-threads", "4"]))
        }
    };
    let certificates = options.tls.then(SelfSigned::create).transpose();
    let certificates = certificates.map_err(|e| e.to_string())?;
    let tls_options = certificates.as_ref().map(|files| {
        let cacert = Some(PathBuf::from(files.authority()));
        TlsOptions { cacert, ..TlsOptions::default() }
    });
    let tls = tls_options.as_ref().map(|options| TlsConnector::new(options, "127.0.0.1"));
    let tls = tls.transpose().map_err(|e| e.to_string())?;
    // Stops the server when it is dropped.
    let started;
    let address = match origin {
        Where::Address(address) => address,
        Where::Command(mut words) => {
            words.extend(certificates.iter().flat_map(SelfSigned::server_options));
            let target = ServerTarget { tls: tls_options.clone(), ..server::target("weft", words) };
            started = target.start().map_err(|e| e.to_string())?;
            started.endpoint.address.to_string()
        }
    };
    let report = chaos::run(&Plan {
        endpoint: Endpoint { address, tls },
        is_weft: !options.peer,
        length: Duration::from_secs(options.seconds),
        seed: options.seed,
        clients: options.clients,
        fault: options.fault,
    });
    print!("{report}");
    match (report.failures.is_empty(), options.fault) {
        (true, None) | (false, Some(_)) => Ok(()),
        (true, Some(fault)) => Err(format!("{fault:?} was not found")),
        (false, None) => Err("a client saw a broken promise".to_owned()),
    }
}

fn fault(name: &str) -> Result<Fault, String> {
    let found = Fault::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, fault)| *fault).ok_or_else(|| {
        let known: Vec<&str> = Fault::ALL.iter().map(|(name, _)| *name).collect();
        format!("the faults are {}", known.join(", "))
    })
}
