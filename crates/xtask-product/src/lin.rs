//! `cargo xtask lin`: concurrent operations on Weft, and whether their history is linearizable.
//!
//! The crate `lin` does the work; this file has the command line and starts the server.

use std::path::Path;

use lin::{Checker, Verdict};

use xtask::Failure;

use crate::server::{self, Where};

/// The options of a run.
#[derive(clap::Args)]
pub struct Options {
    /// End after this many operations
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    operations: u64,
    /// End after this time, if it comes first
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seed of the random numbers; the order in which the server receives the operations still
    /// differs from run to run
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Connections at a time, a random number of them
    #[arg(long, default_value = "8..64", value_name = "MIN..MAX", value_parser = range)]
    connections: (u32, u32),
    /// Only these kinds of history [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    profiles: Vec<String>,
    /// Plant a fault between the connections and the server, which the checker must find
    #[arg(long, value_name = "NAME")]
    fault: Option<String>,
    /// The server under test [default: Weft, built from this source]
    #[arg(long, value_name = "HOST:PORT|PROGRAM")]
    server: Option<String>,
    /// Build Weft with the release profile, for more operations in the same time
    #[arg(long)]
    release: bool,
    /// Print the kinds of history and the faults, and end
    #[arg(long)]
    list: bool,
}

/// Tests the server, and prints the verdict.
///
/// # Errors
/// When a history is not linearizable, or the server cannot be tested.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let folder = server::target_folder()?;
    let checker = Checker::build(&folder).map_err(|e| format!("there is no checker: {e}"))?;
    if options.list {
        let names = checker.names().map_err(|e| format!("the checker did not start: {e}"))?;
        print!("{names}");
        return Ok(());
    }
    let build = || server::build(root, options.release);
    let origin = Where::named(options.server.as_deref(), &["--io-threads", "4"], build)?;
    // Stops the server when it is dropped.
    let (address, _started) = origin.start()?;
    let mut command = checker.command(&address);
    command.args(arguments(options)).arg("-folder").arg(folder.join("lin"));
    let status = command.status().map_err(|e| format!("the checker did not start: {e}"))?;
    match (Verdict::of(status), &options.fault) {
        (Verdict::Linearizable, None) | (Verdict::Violation, Some(_)) => Ok(()),
        (Verdict::Linearizable, Some(fault)) => Err(format!("{fault} was not found")),
        (Verdict::Violation, None) => Err("the server is not linearizable".to_owned()),
        (Verdict::NotTested, _) => Err(format!("the server could not be tested: {status}")),
    }
}

/// The options as arguments of the checker.
fn arguments(options: &Options) -> Vec<String> {
    let (fewest, most) = options.connections;
    let mut words = vec![
        format!("-operations={}", options.operations),
        format!("-seed={}", options.seed),
        format!("-connections-min={fewest}"),
        format!("-connections-max={most}"),
        format!("-profiles={}", options.profiles.join(",")),
    ];
    words.extend(options.seconds.map(|seconds| format!("-seconds={seconds}")));
    words.extend(options.fault.iter().map(|fault| format!("-fault={fault}")));
    words
}

/// `8..64`, or one number for both.
fn range(text: &str) -> Result<(u32, u32), String> {
    let (fewest, most) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.parse::<u32>().map_err(|e| format!("{text:?}: {e}"));
    match (number(fewest)?, number(most)?) {
        (fewest, most) if 1 <= fewest && fewest <= most => Ok((fewest, most)),
        _ => Err("the first number is at least 1 and not above the second".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn a_range_of_connections_is_read() {
        assert_eq!(range("8..64"), Ok((8, 64)));
        assert_eq!(range("16"), Ok((16, 16)));
        for wrong in ["", "0", "9..8", "8..", "a..b"] {
            assert!(range(wrong).is_err(), "{wrong:?}");
        }
    }
}
