//! `cargo xtask chaos`: clients that check each reply, while clients are killed, paused and moved.
//!
//! The crate `chaos` does the work; this file has the command line and starts the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chaos::{Endpoint, Fault, Plan};
use test_support::{Certificates, Ports};

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
    #[arg(long, value_name = "NAME",
        value_parser = |name: &str| server::fault(Fault::ALL, name))]
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
    let build = || server::build(root, options.release);
    let origin = Where::named(options.server.as_deref(), &["--io-threads", "4"], build)?;
    let certificates = options.tls.then(|| Arc::new(Certificates::new()));
    // Stops the server when it is dropped.
    let _started;
    let (address, tls) = match (&origin, certificates) {
        (Where::Program(words), Some(files)) => {
            let launch = server::launch(words).ports(Ports::Tls).certified(&files, "no");
            let server = launch.try_start()?;
            let address = format!("127.0.0.1:{}", server.tls_port);
            _started = Some(server);
            (address, Some(files))
        }
        (_, tls) => {
            let (address, server) = origin.start()?;
            _started = server;
            (address, tls)
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
    server::verdict(report.failures.is_empty(), options.fault, "a client saw a broken promise")
}
