//! Options for the load: what is sent, with which keys and values, how fast and how long.
//!
//! Options have the names of redis-benchmark and memtier_benchmark; where the two differ, that of
//! redis-benchmark.

use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use super::commands::CommandArgs;
use super::seconds;
use crate::Error;
use crate::load::keys::{KeyPatterns, Law, Letter, Letters};
use crate::load::shape::{RequestShape, ValueSizes};
use crate::load::spec::LoadCommand;
use crate::load::spec::{LoadSpec, WindowExtent};
use crate::load::workload::Ratio;
use crate::load::workload::Workload;
use crate::load::workload::names;
use crate::load::workload::table::TABLE;
use crate::servers::pin::Cpus;

/// The workloads without an option, and with a ratio only.
const DEFAULT_WORKLOADS: [&str; 2] = ["set", "get"];
const MIXED: &str = "mixed";

/// How the server is loaded.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Workloads, separated by commas [default: set,get, or mixed with a --ratio]
    #[arg(short = 't', long, value_delimiter = ',', ignore_case = true, hide_possible_values = true,
          value_parser = PossibleValuesParser::new(workload_names()))]
    pub workload: Vec<String>,
    /// Run every workload
    #[arg(long, conflicts_with = "workload")]
    pub all: bool,
    /// Commands instead of workloads.
    #[command(flatten)]
    pub commands: CommandArgs,
    /// Load threads
    #[arg(long, default_value_t = 1, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: u16,
    /// Connections, all threads together [default: the workload's, or 50]
    #[arg(short, long, allow_negative_numbers = true)]
    pub clients: Option<usize>,
    /// Requests sent at once on a connection [default: the workload's, or 1]
    #[arg(short = 'P', long)]
    pub pipeline: Option<usize>,
    /// Keys and values.
    #[command(flatten)]
    pub sizes: SizeArgs,
    /// Writes to reads, for workloads that do both [default: the workload's, or 1:1]
    #[arg(long, value_name = "SET:GET")]
    pub ratio: Option<Ratio>,
    /// How keys are chosen.
    #[command(flatten)]
    pub patterns: PatternArgs,
    /// Seconds to measure
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds,
          visible_alias = "test-time", allow_negative_numbers = true)]
    pub duration: Duration,
    /// Requests to measure, instead of a duration; allkeys for as many as there are keys
    #[arg(short = 'n', long, conflicts_with = "duration", allow_negative_numbers = true)]
    pub requests: Option<Requests>,
    /// Seconds of load before measuring [default: 0.5, and 0 with --requests]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, visible_alias = "warmup")]
    pub warm_up: Option<Duration>,
    /// Write every key of the range first
    #[arg(long)]
    pub prefill: bool,
    /// The most requests each second, all connections together; latency then runs from when a
    /// request is due
    #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u32).range(1..),
          allow_negative_numbers = true)]
    pub rps: Option<u32>,
    /// The same for each connection
    #[arg(long, value_name = "REQUESTS", conflicts_with = "rps",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rate_limiting: Option<u32>,
    /// 0 opens a new connection for each request (or each --pipeline of them), as part of its
    /// latency
    #[arg(short = 'k', long, default_value_t = 1, value_name = "0|1",
          value_parser = clap::value_parser!(u8).range(0..=1))]
    pub keep_alive: u8,
    /// Send CLIENT TRACKING ON first on each connection
    #[arg(long)]
    pub enable_tracking: bool,
    /// The server is a node of a cluster: load all nodes, each with its own keys
    #[arg(long)]
    pub cluster: bool,
    /// Cores for the load threads, one each in turn
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<Cpus>,
    /// Seed of the random keys
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Accepted for memtier_benchmark's sake: load threads always have seeds of their own
    #[arg(long, hide = true)]
    pub distinct_client_seed: bool,
}

/// How many requests are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// So many.
    Count(u64),
    /// One for each key.
    AllKeys,
}

impl FromStr for Requests {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "allkeys" => Ok(Requests::AllKeys),
            _ => text.parse().map(Requests::Count).map_err(|_| {
                format!("'{text}' is no number of requests; write a number, or allkeys")
            }),
        }
    }
}

/// Keys and values.
#[derive(Debug, Clone, Args)]
pub struct SizeArgs {
    /// Bytes of a value
    #[arg(short, long, default_value_t = 256, value_name = "BYTES", allow_negative_numbers = true)]
    pub data_size: usize,
    /// Values of random sizes within a range, as 32-1024
    #[arg(long, value_name = "MIN-MAX", value_parser = ValueSizes::range)]
    #[arg(conflicts_with = "data_size")]
    pub data_size_range: Option<ValueSizes>,
    /// Values of these sizes by their weights, as 32:9,1024:1
    #[arg(long, value_name = "SIZE:WEIGHT,...", value_parser = ValueSizes::list,
          conflicts_with_all = ["data_size", "data_size_range"])]
    pub data_size_list: Option<ValueSizes>,
    /// Different keys
    #[arg(short = 'r', long, default_value_t = 100_000, allow_negative_numbers = true)]
    pub keys: u64,
    /// The number of the first key
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub key_minimum: u64,
    /// The number of the last key, instead of how many there are
    #[arg(long, value_name = "NUMBER", conflicts_with = "keys")]
    pub key_maximum: Option<u64>,
    /// The text before the number in the name of a key
    #[arg(long, default_value = "key:", value_name = "TEXT")]
    pub key_prefix: String,
    /// Bytes of a key name, prefix included [default: 16, or more if needed]
    #[arg(long, value_name = "BYTES")]
    pub key_size: Option<usize>,
}

/// How keys are chosen.
#[derive(Debug, Clone, Args)]
pub struct PatternArgs {
    /// How keys are chosen, by a letter for writes and one for reads: R at random, S in order, P in
    /// order with a part of the range for each load thread, G Gaussian, Z by Zipf's law
    #[arg(long, value_name = "P:P")]
    pub key_pattern: Option<Letters>,
    /// The same as --key-pattern S:S
    #[arg(long, conflicts_with = "key_pattern")]
    pub sequential: bool,
    /// Zipf's law with this exponent, for all keys or those of pattern Z
    #[arg(long, value_name = "EXPONENT", visible_alias = "key-zipf-exp")]
    pub zipf_exponent: Option<f64>,
    /// The key in the middle of pattern G
    #[arg(long, value_name = "NUMBER")]
    pub key_median: Option<f64>,
    /// The standard deviation of pattern G
    #[arg(long, value_name = "KEYS")]
    pub key_stddev: Option<f64>,
    /// How many keys are used more than the others, when keys are random
    #[arg(long, value_name = "KEYS", conflicts_with = "zipf_exponent")]
    pub hot_keys: Option<u64>,
    /// The percentage of requests for one of the hot keys
    #[arg(long, default_value_t = 90.0, value_name = "PERCENT", requires = "hot_keys")]
    pub hot_share: f64,
}

fn workload_names() -> impl Iterator<Item = PossibleValue> {
    TABLE.iter().map(|row| PossibleValue::new(row.name).aliases(names::aliases(row.name)))
}

impl SizeArgs {
    /// Keys and values.
    pub fn shape(&self) -> RequestShape {
        let first = self.key_minimum;
        let keys = self.key_maximum.map_or(self.keys, |last| {
            last.checked_sub(first).and_then(|count| count.checked_add(1)).unwrap_or(0)
        });
        let default = RequestShape::default();
        let mut shape = RequestShape {
            keys,
            first,
            prefix: self.key_prefix.clone().into(),
            key_bytes: 0,
            value_bytes: self.data_size,
            sizes: self.data_size_range.clone().or_else(|| self.data_size_list.clone()),
        };
        let needed = shape.prefix.len() + shape.moving_digits();
        shape.key_bytes = self.key_size.unwrap_or(default.key_bytes.max(needed));
        shape
    }
}

impl PatternArgs {
    /// The laws of writes and of reads.
    pub fn patterns(&self) -> KeyPatterns {
        match self.key_pattern {
            Some(Letters { writes, reads }) => {
                KeyPatterns { writes: self.law(Some(writes)), reads: self.law(Some(reads)) }
            }
            None => KeyPatterns { writes: self.law(None), reads: self.law(None) },
        }
    }

    /// The law of a letter, or else of the other options.
    fn law(&self, letter: Option<Letter>) -> Law {
        let zipf = Law::Zipf { exponent: self.zipf_exponent.unwrap_or(1.0) };
        let gaussian = Law::Gaussian { median: self.key_median, deviation: self.key_stddev };
        let hot = self.hot_keys.map(|keys| Law::Hot { keys, share: self.hot_share / 100.0 });
        match letter {
            Some(Letter::Sequential) => Law::Sequential,
            Some(Letter::Parallel) => Law::Parallel,
            Some(Letter::Gaussian) => gaussian,
            Some(Letter::Zipf) => zipf,
            Some(Letter::Random) => hot.unwrap_or_default(),
            None if self.sequential => Law::Sequential,
            None if self.zipf_exponent.is_some() => zipf,
            None if self.key_median.is_some() || self.key_stddev.is_some() => gaussian,
            None => hot.unwrap_or_default(),
        }
    }
}

impl LoadArgs {
    /// The load that the options describe; the workload decides what they leave open.
    pub fn load(&self, row: &Workload) -> LoadSpec {
        let (own, default) = (row.settings, LoadSpec::default());
        let clients = self.clients.or(own.clients).unwrap_or(default.clients);
        let per_connection = self.rate_limiting.map(|rate| f64::from(rate) * clients as f64);
        LoadSpec {
            clients,
            threads: self.threads.into(),
            pipeline: self.pipeline.or(own.pipeline).unwrap_or(default.pipeline),
            shape: self.sizes.shape(),
            ratio: self.ratio.or(own.ratio).unwrap_or_default(),
            patterns: self.patterns.patterns(),
            commands: self.given_commands(),
            rate: self.rps.map(f64::from).or(per_connection),
            reconnects: self.keep_alive == 0,
            greeting: self.enable_tracking.then_some("CLIENT TRACKING ON"),
            cluster: self.cluster,
            cpus: self.pin.clone().unwrap_or_default(),
            seed: self.seed,
            // With a number of requests, no more than those are sent.
            warm_up: self.warm_up.unwrap_or(match self.requests {
                None => default.warm_up,
                Some(_) => Duration::ZERO,
            }),
            extent: match self.requests {
                None => WindowExtent::Time(self.duration),
                Some(Requests::Count(count)) => WindowExtent::Requests(count),
                Some(Requests::AllKeys) => WindowExtent::Requests(self.sizes.shape().keys),
            },
            stall_time_max: default.stall_time_max,
        }
    }

    fn given_commands(&self) -> Vec<LoadCommand> {
        let command = |given: &super::commands::Given| LoadCommand {
            words: given.words.iter().map(|word| word.clone().into_bytes()).collect(),
            weight: given.ratio,
            law: self.patterns.law(given.pattern),
        };
        self.commands.0.iter().map(command).collect()
    }

    /// One command with keys as the options say.
    pub fn command(&self, words: Vec<Vec<u8>>) -> LoadCommand {
        LoadCommand { words, weight: 1, law: self.patterns.patterns().writes }
    }

    /// The workloads that the options name.
    pub fn rows(&self) -> Result<Vec<&'static Workload>, Error> {
        self.sizes.shape().check()?;
        if !self.commands.0.is_empty() {
            return Ok(vec![&names::COMMAND]);
        }
        if self.all {
            return Ok(TABLE.iter().collect());
        }
        let names: Vec<&str> = match &self.workload[..] {
            [] if self.ratio.is_some() => vec![MIXED],
            [] => DEFAULT_WORKLOADS.to_vec(),
            chosen => chosen.iter().map(String::as_str).collect(),
        };
        Ok(names.into_iter().filter_map(names::find).collect())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;
    use clap::error::ErrorKind;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: LoadArgs,
    }

    fn parsed(options: &str) -> Result<LoadArgs, clap::Error> {
        let words = std::iter::once("bench").chain(options.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args)
    }

    fn load(options: &str) -> LoadSpec {
        parsed(options).unwrap().load(names::find("mixed").unwrap())
    }

    #[test]
    fn workloads_have_the_names_of_redis_benchmark_too() {
        let rows = |options: &str| {
            let rows = parsed(options).unwrap().rows().unwrap();
            rows.iter().map(|row| row.name).collect::<Vec<_>>().join(",")
        };
        let cases = [
            ("", "set,get"),
            ("-t GET,Set", "get,set"),
            ("-t ping_mbulk,MSET,lrange_100", "ping,mset10,lrange_100"),
            ("--ratio 1:10", "mixed"),
            ("--ratio 1:10 -t get", "get"),
            ("--command PING", "command"),
        ];
        cases.iter().for_each(|(options, expected)| assert_eq!(rows(options), *expected));
        assert!(parsed("-t get,nothing").is_err());
        assert!(parsed("-t get --command PING").is_err());
    }

    #[test]
    fn keys_are_a_range_with_names_as_long_as_needed() {
        let shape = |options: &str| {
            let shape = load(options).shape;
            (shape.first, shape.keys, shape.prefix.to_string(), shape.key_bytes)
        };
        assert_eq!(shape(""), (0, 100_000, "key:".into(), 16));
        assert_eq!(shape("-r 5 --key-size 9"), (0, 5, "key:".into(), 9));
        let long = "--key-minimum 10 --key-maximum 999 --key-prefix memtier-benchmark-";
        assert_eq!(shape(long), (10, 990, "memtier-benchmark-".into(), 21));
        assert!(parsed("--key-minimum 9 --key-maximum 8").unwrap().rows().is_err());
        assert!(parsed("-r 5 --key-maximum 8").is_err());
        assert_eq!(load("--data-size-range 1-9").shape.sizes, Some(ValueSizes::Range(1, 9)));
        assert!(parsed("--data-size-range 1-9 -d 5").is_err());
    }

    #[test]
    fn patterns_are_letters_or_options() {
        let cases = [
            ("", "uniform uniform"),
            ("--key-pattern P:R", "in order, in parts uniform"),
            ("--key-pattern S:Z", "in order Zipf 1"),
            ("--key-pattern Z:G --zipf-exponent 0.5", "Zipf 0.5 Gaussian"),
            ("--zipf-exponent 0.99", "Zipf 0.99 Zipf 0.99"),
            ("--sequential", "in order in order"),
            ("--key-stddev 9", "Gaussian Gaussian"),
            ("--hot-keys 7 --hot-share 50", "50% of 7 hot keys 50% of 7 hot keys"),
            ("--hot-keys 7 --key-pattern S:R", "in order 90% of 7 hot keys"),
        ];
        for (options, expected) in cases {
            let KeyPatterns { writes, reads } = load(options).patterns;
            assert_eq!(format!("{writes} {reads}"), expected, "{options}");
        }
    }

    #[test]
    fn rates_are_of_all_connections_or_of_each() {
        assert_eq!(load("").rate, None);
        assert_eq!(load("--rps 700").rate, Some(700.0));
        assert_eq!(load("--rate-limiting 10 -c 7").rate, Some(70.0));
        // A number below 0 is a wrong value, and not an option.
        for line in ["-d -1", "-n -1", "-c -1", "--duration -1", "--rps -1", "-r -1"] {
            assert_eq!(parsed(line).unwrap_err().kind(), ErrorKind::ValueValidation, "{line}");
        }
        assert!(parsed("--rps 0").is_err() && parsed("--rps 1 --rate-limiting 1").is_err());
    }

    #[test]
    fn options_of_peers_have_their_meaning() {
        let options = "-n 10 -c 3 -P 4 -d 5 -r 6 --threads 2 -k 0 --ratio 1:10 --enable-tracking";
        let load = load(options);
        assert_eq!((load.extent, load.clients, load.pipeline), (WindowExtent::Requests(10), 3, 4));
        assert_eq!((load.shape.value_bytes, load.shape.keys, load.threads), (5, 6, 2));
        assert_eq!((load.reconnects, load.ratio), (true, Ratio { writes: 1, reads: 10 }));
        assert_eq!(load.greeting, Some("CLIENT TRACKING ON"));
        assert_eq!(self::load("-n allkeys -r 77").extent, WindowExtent::Requests(77));
        assert!(parsed("-n x").is_err() && parsed("-n -1").is_err());
        let load = self::load("--test-time 3 --warmup 1");
        let seconds = Duration::from_secs;
        assert_eq!((load.extent, load.warm_up), (WindowExtent::Time(seconds(3)), seconds(1)));
        // A number of requests has no warm-up unless one is asked for.
        let warm_up = |options: &str| self::load(options).warm_up;
        assert_eq!(warm_up(""), Duration::from_millis(500));
        assert_eq!(warm_up("-n 10"), Duration::ZERO);
        assert_eq!(warm_up("-n 10 --warm-up 2"), seconds(2));
    }
}
