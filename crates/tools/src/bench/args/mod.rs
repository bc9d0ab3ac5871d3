//! The command line of `weft bench`, and its translation to the types of the measurements.
//!
//! It decides defaults only: ranges are checked where the values are used.

mod commands;
mod connection;
mod load;
mod output;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Subcommand, ValueEnum};

use super::compare::ComparedCase;
use super::memory::MemoryFigure;
use super::server_table::TableForm;
use super::stall;
use crate::Error;
use crate::client::tls::TlsOptions;
use crate::load::spec::LoadSpec;
use crate::load::workload::Workload;
use crate::servers::pin::Cpus;

pub use self::connection::ConnectionArgs;
pub use self::load::LoadArgs;
pub use self::output::OutputArgs;

/// The most rounds: the latencies of all are kept in memory.
const ROUNDS_MAX: i64 = 1000;

/// Load a Redis-compatible server and measure it.
///
/// Shows throughput, latency percentiles, errors, and for a server on this machine its CPU time per
/// request, thread by thread. Latency runs from the write of a batch (see --pipeline) to its last
/// reply; with a limit of the rate, from when the batch was due. Ends with an error if any reply
/// was an error. SIGINT, SIGTERM and SIGHUP end it with the results so far.
#[derive(Debug, Clone, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_flag = true)]
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
    /// The server's process, if INFO does not name it
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
    /// How often each workload is measured; with more than one, means with their 95% intervals are
    /// shown
    #[arg(long, default_value_t = 1, value_name = "TIMES",
          value_parser = clap::value_parser!(u32).range(1..=ROUNDS_MAX))]
    pub run_count: u32,
    /// Measure again and again, until a signal
    #[arg(short = 'l')]
    pub forever: bool,
    /// Only open the connections and hold them, until a signal
    #[arg(short = 'I', conflicts_with_all = ["forever", "run_count"])]
    pub idle: bool,
    /// Connect, ask PING and disconnect: how many connections the server takes each second
    #[arg(long, conflicts_with_all = ["workload", "all", "command", "ratio", "words"])]
    pub storm: bool,
    /// The form of the results.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Read the last argument of the command from standard input
    #[arg(short = 'x', requires = "words")]
    pub last_from_stdin: bool,
    /// A command to send instead of workloads; __rand_int__ stands for a number of the range,
    /// __key__ for a key, __data__ for a value. A command named like a subcommand goes after --
    #[arg(trailing_var_arg = true, value_name = "COMMAND",
          conflicts_with_all = ["workload", "all", "command", "ratio"])]
    pub words: Vec<OsString>,
    /// Print help
    #[arg(long, global = true, action = ArgAction::Help)]
    pub help: Option<bool>,
}

/// Measurements of other kinds.
#[derive(Debug, Clone, Subcommand)]
pub enum BenchCommand {
    /// Start the canned-reply server: the cost that no real server can go below
    Floor(FloorArgs),
    /// Start several servers and measure them side by side, in interleaved rounds
    Compare(Box<CompareArgs>),
    /// Start several servers and measure memory per key and per connection, and idle CPU
    Memory(MemoryArgs),
    /// Start several servers and measure how long other clients wait during slow commands
    Stall(StallArgs),
    /// Compare Weft with Redis and Valkey in one of the ways that its documentation shows
    Preset(PresetArgs),
}

/// The tables of docs/benchmarks.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchPreset {
    /// GET and SET on one core
    GetSet,
    /// Every workload on one core
    All,
    /// Transactions, scripts, functions and the rights of a user, on one core
    Transactions,
    /// GET, SET, and GET beside EVALSHA with I/O threads, all cores shared with the load
    Threads,
    /// GET and SET over TLS, on one core
    Tls,
    /// Bytes per key, per element and per connection, and CPU when idle
    Memory,
    /// SET without an append-only file and with one under two policies, all cores shared with the
    /// load
    AppendOnly,
    /// Memory after many rewrites, with active defragmentation where there is one
    Fragmentation,
    /// The longest reply beside each slow command, with I/O threads
    Stall,
}

/// Options of `weft bench preset`.
#[derive(Debug, Clone, Args)]
pub struct PresetArgs {
    /// The measurements, in this order
    #[arg(value_enum, default_value = "get-set", value_name = "PRESET")]
    pub presets: Vec<BenchPreset>,
    /// Folder whose bin/redis-server and bin/valkey-server are compared; default: $WEFT_PEERS
    #[arg(long, value_name = "DIR")]
    pub peers: Option<PathBuf>,
    /// Rounds over all servers, of which the mean is taken, or of `stall` the median [default: 5,
    /// of all 1]
    #[arg(long, value_name = "ROUNDS",
          value_parser = clap::value_parser!(u16).range(1..=ROUNDS_MAX))]
    pub rounds: Option<u16>,
    /// Seconds of each round [default: 5, of all 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub duration: Option<Duration>,
    /// Print the command lines that a preset stands for, and measure nothing
    #[arg(long)]
    pub show: bool,
}

/// Options of `weft bench floor`.
#[derive(Debug, Clone, Args)]
pub struct FloorArgs {
    /// Port on the loopback address; 0 picks a free one
    #[arg(short, long, default_value_t = 0, allow_negative_numbers = true)]
    pub port: u16,
    /// Bytes of the value that answers GET
    #[arg(short, long, default_value_t = 256, allow_negative_numbers = true, value_name = "BYTES")]
    pub data_size: usize,
    /// Cores to run on
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<Cpus>,
}

/// The servers of a comparison.
#[derive(Debug, Clone, Args)]
pub struct TargetArgs {
    /// A server as NAME=COMMAND; {port} and {dir} stand for a free port and an empty folder
    #[arg(long = "server", value_name = "NAME=COMMAND")]
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
    /// Speak TLS with the servers; {port} is then their TLS port, and there is no floor
    #[arg(long)]
    pub tls: bool,
    #[command(flatten)]
    pub tls_options: TlsOptions,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Print a table in Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
}

impl TargetArgs {
    /// The form of the table.
    pub fn form(&self) -> TableForm {
        match (self.json, self.markdown) {
            (true, _) => TableForm::Json,
            (_, true) => TableForm::Markdown,
            _ => TableForm::Text,
        }
    }
}

/// Options of `weft bench compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// A running server, as NAME=HOST:PORT; it is not paused between its turns
    #[arg(long = "at", value_name = "NAME=HOST:PORT")]
    pub running: Vec<String>,
    /// The load; the key range is always filled first.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Further pipeline depths to measure each workload at; a workload with its own depth is
    /// measured at that depth only, unless --pipeline is given
    #[arg(long, value_delimiter = ',', value_name = "DEPTHS")]
    pub pipelines: Vec<usize>,
    /// Write a page with plots to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Rounds over all servers; means are shown, and whether differences are significant
    #[arg(long, default_value_t = 5, allow_negative_numbers = true, visible_alias = "run-count",
          value_parser = clap::value_parser!(u16).range(1..=ROUNDS_MAX))]
    pub rounds: u16,
}

/// Options of `weft bench memory`.
#[derive(Debug, Clone, Args)]
pub struct MemoryArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Keys to load
    #[arg(short, long, default_value_t = 1_000_000, allow_negative_numbers = true)]
    pub keys: u64,
    /// Bytes of a key name
    #[arg(long, default_value_t = 16, allow_negative_numbers = true, value_name = "BYTES")]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(short, long, default_value_t = 32, allow_negative_numbers = true, value_name = "BYTES")]
    pub data_size: usize,
    /// Connections whose memory is measured
    #[arg(long, default_value_t = 9_000, allow_negative_numbers = true)]
    pub connections: usize,
    /// Idle clients while idle CPU is measured
    #[arg(short, long, default_value_t = 1_000, allow_negative_numbers = true)]
    pub clients: usize,
    /// Seconds of idling that are measured
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds,
          allow_negative_numbers = true)]
    pub duration: Duration,
    /// Figures to measure, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_enum)]
    pub figures: Vec<MemoryFigure>,
}

/// Options of `weft bench stall`.
#[derive(Debug, Clone, Args)]
pub struct StallArgs {
    /// The servers.
    #[command(flatten)]
    pub targets: TargetArgs,
    /// Slow commands, separated by commas [default: all]. The measurement without one always comes
    /// first
    #[arg(short = 't', long, value_delimiter = ',',
          value_parser = PossibleValuesParser::new(stall::table::TABLE.iter().map(|row| row.name)))]
    pub slow: Vec<String>,
    /// Elements of big values, and keys
    #[arg(short = 'n', long, default_value_t = 1_000_000, allow_negative_numbers = true)]
    pub size: u64,
    /// Requests each second of every other client
    #[arg(long, default_value_t = 1000, allow_negative_numbers = true,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// The most repetitions of a slow command
    #[arg(long, default_value_t = 5, allow_negative_numbers = true)]
    pub repeats: u32,
    /// Seconds after which a slow command is not repeated, its data included
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds,
          allow_negative_numbers = true)]
    pub duration: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "write seconds, as in 5 or 0.5".to_string())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

impl StallArgs {
    /// The rows that the options name, in the order of the table.
    pub fn rows(&self) -> Vec<&'static stall::SlowCommand> {
        let chosen = |row: &&stall::SlowCommand| {
            row.commands.is_empty()
                || self.slow.is_empty()
                || self.slow.iter().any(|n| n == row.name)
        };
        stall::table::TABLE.iter().filter(chosen).collect()
    }
}

impl CompareArgs {
    /// The measured cases: each workload at each of its depths.
    pub fn cases(&self) -> Result<Vec<ComparedCase>, Error> {
        Ok(self.load.rows()?.into_iter().flat_map(|row| self.cases_of(row)).collect())
    }

    fn cases_of(&self, row: &'static Workload) -> impl Iterator<Item = ComparedCase> {
        let load = self.load.load(row);
        let has_own = self.load.pipeline.is_none() && row.settings.pipeline.is_some();
        let further = if has_own { &[][..] } else { &self.pipelines };
        let depths = std::iter::once(load.pipeline).chain(further.iter().copied());
        depths
            .map(move |pipeline| ComparedCase { row, load: LoadSpec { pipeline, ..load.clone() } })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::load::workload::Ratio;
    use crate::load::workload::WorkloadSettings;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }

    #[derive(Debug, Parser)]
    struct Whole {
        #[command(flatten)]
        args: BenchArgs,
    }

    fn whole(line: &str) -> Result<BenchArgs, clap::Error> {
        Whole::try_parse_from(line.split(' ')).map(|whole| whole.args)
    }

    #[test]
    fn a_command_may_follow_the_options() {
        let words = |line: &str| {
            let words = whole(line).unwrap().words;
            words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("bench -n 10 lrange mylist 0 -1"), "lrange mylist 0 -1");
        assert_eq!(words("bench -r 10 eval return 0 -n x"), "eval return 0 -n x");
        assert_eq!(words("bench -c 3 -- memory usage key"), "memory usage key");
        assert_eq!(words("bench -h there -p 7"), "");
        for line in ["bench --nonsense", "bench -t get ping", "bench --storm ping", "bench -x"] {
            assert!(whole(line).is_err(), "{line}");
        }
    }

    #[test]
    fn the_rate_of_other_clients_has_limits() {
        let rate = |rate: &str| whole(&format!("bench stall --rate {rate}"));
        assert!(rate("1").is_ok() && rate("10000").is_ok());
        assert!(rate("0").is_err() && rate("4294967295").is_err());
    }

    #[test]
    fn a_number_below_0_is_a_wrong_value() {
        for line in [
            "memory -k -1",
            "memory --duration -1",
            "memory -c -1",
            "stall -n -1",
            "stall --rate -1",
            "stall --duration -1",
            "compare --rounds -1",
            "floor -d -1",
        ] {
            let error = whole(&format!("bench {line}")).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::ValueValidation, "{line}: {error}");
        }
    }

    #[test]
    fn rounds_have_a_limit() {
        for line in ["bench compare --rounds", "bench preset --rounds", "bench --run-count"] {
            let is_taken = |rounds: &str| whole(&format!("{line} {rounds}")).is_ok();
            assert!(is_taken("1") && is_taken("1000"), "{line}");
            assert!(!is_taken("0") && !is_taken("1001"), "{line}");
        }
    }

    #[test]
    fn subcommands_are_distinguished_from_commands() {
        assert!(matches!(whole("bench floor -d 5").unwrap().command, Some(BenchCommand::Floor(_))));
        for line in ["bench --help", "bench compare --help"] {
            assert_eq!(
                whole(line).unwrap_err().kind(),
                clap::error::ErrorKind::DisplayHelp,
                "{line}"
            );
        }
    }

    /// Clients, pipeline depth and ratio of each case.
    fn cases(row: &'static Workload, options: &str) -> Vec<(usize, usize, String)> {
        let words = "compare --server a=b".split(' ').chain(options.split_whitespace());
        let args = Line::try_parse_from(words).unwrap().args;
        let cases = args.cases_of(row);
        cases
            .map(|case| (case.load.clients, case.load.pipeline, case.load.ratio.to_string()))
            .collect()
    }

    #[test]
    fn a_workload_decides_what_the_options_leave_open() {
        const PLAIN: Workload = Workload::new("plain");
        const OWN: Workload = Workload {
            settings: WorkloadSettings {
                clients: Some(1),
                pipeline: Some(4),
                ratio: Some(Ratio { writes: 1, reads: 4 }),
            },
            ..Workload::new("own")
        };
        let case = |clients, pipeline, ratio: &str| (clients, pipeline, ratio.to_owned());
        assert_eq!(cases(&PLAIN, ""), [case(50, 1, "1:1")]);
        assert_eq!(cases(&PLAIN, "--pipelines 16"), [case(50, 1, "1:1"), case(50, 16, "1:1")]);
        assert_eq!(cases(&OWN, "--pipelines 16"), [case(1, 4, "1:4")]);
        assert_eq!(cases(&OWN, "-c 9 --ratio 1:2"), [case(9, 4, "1:2")]);
        let both = "-P 2 --pipelines 16";
        assert_eq!(cases(&OWN, both), [case(1, 2, "1:4"), case(1, 16, "1:4")]);
    }
}
