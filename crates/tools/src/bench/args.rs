//! The command line of `weft bench`, and how it becomes the measuring library's own types.
//!
//! Letters follow the benchmark that users of Redis know where the meaning is the same. Nothing is
//! decided here beyond defaults: ranges are checked where the values are used.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use super::batch::Ratio;
use super::compare::Case;
use super::hits::HitsPlan;
use super::load::{Extent, Load};
use super::memory::Figure;
use super::pin::Cpus;
use super::session::{Endpoint, Resp};
use super::stall;
use super::stream::Address;
use super::template::Shape;
use super::tls::{Tls, TlsOptions};
use super::workload::{self, Row};
use crate::Error;

/// Load a Redis-compatible server and measure it.
///
/// Shows throughput, latency percentiles, errors, and for a server on this machine its CPU time per
/// request, thread by thread. Latency runs from the write of a batch (see --pipeline) to its last
/// reply. Ends with an error if the server answered any request with one.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// A measurement of another kind.
    #[command(subcommand)]
    pub command: Option<BenchCommand>,
    /// Where the server is.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// How it is loaded.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The server's process, when INFO does not tell it
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// Print one JSON object per workload
    #[arg(long)]
    pub json: bool,
}

/// Measurements of other kinds.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Start the canned-reply server: the cost that no real server can go below
    Floor(FloorArgs),
    /// Start several servers and measure them side by side, in interleaved rounds
    Compare(CompareArgs),
    /// Start several servers and measure memory per key and per connection, and idle CPU
    Memory(MemoryArgs),
    /// Start several servers and measure how long other clients wait beside slow commands
    Stall(StallArgs),
    /// Play a cache on a server with little memory, and see how many reads hit
    Hits(HitsArgs),
}

/// Options of `weft bench hits`.
#[derive(Debug, Clone, Args)]
pub struct HitsArgs {
    /// Where the server is; it is emptied.
    #[command(flatten)]
    pub connection: ConnectionArgs,
    /// maxmemory of the server, which keeps it
    #[arg(long, default_value = "100mb", value_name = "BYTES")]
    pub maxmemory: String,
    /// maxmemory-policy, which it keeps as well
    #[arg(long, default_value = "allkeys-lru", value_name = "POLICY")]
    pub policy: String,
    /// Keys that may be read
    #[arg(long, default_value_t = 1_000_000, value_name = "KEYS")]
    pub keys: usize,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 256, value_name = "BYTES")]
    pub data_size: usize,
    /// Reads, of which the first half is not counted
    #[arg(short = 'n', long, default_value_t = 5_000_000, value_name = "READS")]
    pub requests: u64,
    /// How unequal the keys are: the exponent of Zipf's law
    #[arg(long, default_value_t = 0.99, value_name = "EXPONENT")]
    pub skew: f64,
    /// Seed of the random keys
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub seed: u64,
}

impl HitsArgs {
    /// What is played.
    pub fn plan(&self) -> HitsPlan {
        HitsPlan {
            maxmemory: self.maxmemory.clone(),
            policy: self.policy.clone(),
            keys: self.keys,
            value_bytes: self.data_size,
            reads: self.requests,
            skew: self.skew,
            seed: self.seed,
        }
    }
}

/// Options of `weft bench floor`.
#[derive(Debug, Clone, Args)]
pub struct FloorArgs {
    /// Port on the loopback address; 0 picks a free one
    #[arg(short, long, default_value_t = 0)]
    pub port: u16,
    /// Bytes of the value that answers GET
    #[arg(short, long, default_value_t = 256, value_name = "BYTES")]
    pub data_size: usize,
    /// Cores to run on
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<Cpus>,
}

/// Where the server is and how to speak with it.
#[derive(Debug, Clone, Args)]
pub struct ConnectionArgs {
    /// Host name or address
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// Port
    #[arg(short, long, default_value_t = 6379)]
    pub port: u16,
    /// Unix socket, instead of host and port
    #[arg(short, long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Password
    #[arg(short = 'a', long, value_name = "PASSWORD")]
    pub auth: Option<String>,
    /// User that the password belongs to
    #[arg(long, requires = "auth")]
    pub user: Option<String>,
    /// Protocol version
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    pub resp: u8,
    /// Use TLS
    #[arg(long)]
    pub tls: bool,
    /// Certificates that sign the server's.
    #[command(flatten)]
    pub tls_files: TlsArgs,
}

/// The files of TLS.
#[derive(Debug, Clone, Default, Args)]
pub struct TlsArgs {
    /// Trust the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Show this client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// Accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// Server name to ask for and verify, if not the host
    #[arg(long, value_name = "NAME")]
    pub sni: Option<String>,
}

/// How the server is loaded.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Workloads, separated by commas
    #[arg(short = 't', long, value_delimiter = ',', default_value = "set,get",
          value_parser = PossibleValuesParser::new(workload::TABLE.iter().map(|row| row.name)))]
    pub workload: Vec<String>,
    /// Run every workload
    #[arg(long, conflicts_with = "workload")]
    pub all: bool,
    /// Load threads
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Connections, all threads together; 50 where neither this nor the workload says
    #[arg(short, long)]
    pub clients: Option<usize>,
    /// Requests sent at once on a connection; 1 where neither this nor the workload says
    #[arg(short = 'P', long)]
    pub pipeline: Option<usize>,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 256, value_name = "BYTES")]
    pub data_size: usize,
    /// Different keys, drawn uniformly
    #[arg(short, long, default_value_t = 100_000)]
    pub keys: u64,
    /// Bytes of a key name
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    pub key_size: usize,
    /// Reads to writes, for workloads that do both; 1:1 where neither this nor the workload says
    #[arg(long, value_name = "R:W")]
    pub ratio: Option<Ratio>,
    /// Seconds to measure
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Duration,
    /// Requests to measure, instead of a duration
    #[arg(short = 'n', long, conflicts_with = "duration")]
    pub requests: Option<u64>,
    /// Seconds of load before measuring
    #[arg(long, default_value = "0.5", value_name = "SECONDS", value_parser = seconds)]
    pub warm_up: Duration,
    /// Write every key of the range first
    #[arg(long)]
    pub prefill: bool,
    /// Cores for the load threads, one each in turn
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<Cpus>,
    /// Seed of the random keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// The servers of a comparison.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// A server as NAME=COMMAND; {port} and {dir} stand for a free port and an empty folder
    #[arg(long = "server", value_name = "NAME=COMMAND", required = true)]
    pub servers: Vec<String>,
    /// The server that is compared with the others; its ratio to the best of them is shown
    #[arg(long, value_name = "NAME")]
    pub subject: Option<String>,
    /// Leave the canned-reply server out
    #[arg(long)]
    pub no_floor: bool,
    /// Cores for the servers
    #[arg(long, value_name = "CPUS")]
    pub pin_servers: Option<Cpus>,
    /// Speak TLS with the servers; {port} is their TLS port then, and there is no floor
    #[arg(long)]
    pub tls: bool,
    /// Certificates that sign the servers'.
    #[command(flatten)]
    pub tls_files: TlsArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print a table in Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

/// Options of `weft bench compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// The load; the key range is always filled first.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Further pipeline depths to measure each workload at; one that has a depth of its own is
    /// measured at that alone, unless --pipeline says otherwise
    #[arg(long, value_delimiter = ',', value_name = "DEPTHS")]
    pub pipelines: Vec<usize>,
    /// Rounds over all servers; medians are shown
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
}

/// Options of `weft bench memory`.
#[derive(Debug, Clone, Args)]
pub struct MemoryArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Keys to load
    #[arg(short, long, default_value_t = 1_000_000)]
    pub keys: u64,
    /// Bytes of a key name
    #[arg(long, default_value_t = 16, value_name = "BYTES")]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 32, value_name = "BYTES")]
    pub data_size: usize,
    /// Connections whose memory is measured
    #[arg(long, default_value_t = 9_000)]
    pub connections: usize,
    /// Idle clients while idle CPU is measured
    #[arg(short, long, default_value_t = 1_000)]
    pub clients: usize,
    /// Seconds of idling that are measured
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Duration,
    /// What to measure, separated by commas; everything when nothing is said
    #[arg(long, value_delimiter = ',', value_enum)]
    pub figures: Vec<Figure>,
}

/// Options of `weft bench stall`.
#[derive(Debug, Clone, Args)]
pub struct StallArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Slow commands, separated by commas; all when nothing is said. The measurement without one
    /// always comes first
    #[arg(short = 't', long, value_delimiter = ',',
          value_parser = PossibleValuesParser::new(stall::table::TABLE.iter().map(|row| row.name)))]
    pub slow: Vec<String>,
    /// Elements of big values, and keys
    #[arg(short = 'n', long, default_value_t = 1_000_000)]
    pub size: u64,
    /// Requests each second of every client beside the slow command
    #[arg(long, default_value_t = 1000)]
    pub rate: u32,
    /// The most repetitions of a slow command
    #[arg(long, default_value_t = 5)]
    pub repeats: u32,
    /// Seconds after which a slow command is not repeated, its data included
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    pub duration: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "write seconds, as in 5 or 0.5".to_string())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

impl StallArgs {
    /// The rows that the options name, in the order of the table.
    pub fn rows(&self) -> Vec<&'static stall::Row> {
        let chosen = |row: &&stall::Row| {
            row.commands.is_empty()
                || self.slow.is_empty()
                || self.slow.iter().any(|n| n == row.name)
        };
        stall::table::TABLE.iter().filter(chosen).collect()
    }
}

impl TlsArgs {
    /// The same as the library's type.
    pub fn options(&self) -> TlsOptions {
        TlsOptions {
            cacert: self.cacert.clone(),
            cert: self.cert.clone(),
            key: self.key.clone(),
            insecure: self.insecure,
            sni: self.sni.clone(),
        }
    }
}

impl ConnectionArgs {
    /// The server that the options name.
    ///
    /// # Errors
    /// When the files of TLS cannot be used.
    pub fn endpoint(&self) -> Result<Endpoint, Error> {
        let address = match &self.socket {
            Some(path) => Address::Unix(path.clone()),
            None => Address::Tcp { host: self.host.clone(), port: self.port },
        };
        let options = self.tls_files.options();
        if !self.tls && options != TlsOptions::default() {
            return Err(Error::Usage("certificates are given, but --tls is not".into()));
        }
        Ok(Endpoint {
            address,
            tls: self.tls.then(|| Tls::new(&options, &self.host)).transpose()?,
            user: self.user.clone(),
            password: self.auth.clone(),
            resp: if self.resp == 3 { Resp::Three } else { Resp::Two },
        })
    }
}

impl LoadArgs {
    /// Keys and values.
    pub fn shape(&self) -> Shape {
        Shape { keys: self.keys, key_bytes: self.key_size, value_bytes: self.data_size }
    }

    /// The load that the options describe; what they leave open is the workload's.
    pub fn load(&self, row: &Row) -> Load {
        let (own, default) = (row.settings, Load::default());
        Load {
            clients: self.clients.or(own.clients).unwrap_or(default.clients),
            threads: self.threads,
            pipeline: self.pipeline.or(own.pipeline).unwrap_or(default.pipeline),
            shape: self.shape(),
            ratio: self.ratio.or(own.ratio).unwrap_or_default(),
            cpus: self.pin.clone().unwrap_or_default(),
            seed: self.seed,
            warm_up: self.warm_up,
            extent: self.requests.map_or(Extent::Time(self.duration), Extent::Requests),
        }
    }

    /// The workloads that the options name.
    pub fn rows(&self) -> Vec<&'static Row> {
        if self.all {
            return workload::TABLE.iter().collect();
        }
        self.workload.iter().filter_map(|name| workload::find(name)).collect()
    }
}

impl CompareArgs {
    /// What is measured: each workload at each of its depths.
    pub fn cases(&self) -> Vec<Case> {
        self.load.rows().into_iter().flat_map(|row| self.cases_of(row)).collect()
    }

    fn cases_of(&self, row: &'static Row) -> impl Iterator<Item = Case> {
        let load = self.load.load(row);
        let has_own = self.load.pipeline.is_none() && row.settings.pipeline.is_some();
        let further = if has_own { &[][..] } else { &self.pipelines };
        let depths = std::iter::once(load.pipeline).chain(further.iter().copied());
        depths.map(move |pipeline| Case { row, load: Load { pipeline, ..load.clone() } })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::bench::workload::Settings;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }

    /// Clients, pipeline depth and ratio of each case.
    fn cases(row: &'static Row, options: &str) -> Vec<(usize, usize, String)> {
        let words = "compare --server a=b".split(' ').chain(options.split_whitespace());
        let args = Line::try_parse_from(words).unwrap().args;
        let cases = args.cases_of(row);
        cases
            .map(|case| (case.load.clients, case.load.pipeline, case.load.ratio.to_string()))
            .collect()
    }

    #[test]
    fn a_row_decides_what_the_options_leave_open() {
        const PLAIN: Row = Row::new("plain");
        const OWN: Row = Row {
            settings: Settings {
                clients: Some(1),
                pipeline: Some(4),
                ratio: Some(Ratio { reads: 4, writes: 1 }),
            },
            ..Row::new("own")
        };
        let case = |clients, pipeline, ratio: &str| (clients, pipeline, ratio.to_owned());
        assert_eq!(cases(&PLAIN, ""), [case(50, 1, "1:1")]);
        assert_eq!(cases(&PLAIN, "--pipelines 16"), [case(50, 1, "1:1"), case(50, 16, "1:1")]);
        assert_eq!(cases(&OWN, "--pipelines 16"), [case(1, 4, "4:1")]);
        assert_eq!(cases(&OWN, "-c 9 --ratio 1:2"), [case(9, 4, "1:2")]);
        let both = "-P 2 --pipelines 16";
        assert_eq!(cases(&OWN, both), [case(1, 2, "4:1"), case(1, 16, "4:1")]);
    }
}
