//! The command line of `weft report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use super::experiments::TABLE;
use crate::servers::pin::Cpus;

/// Measure servers in a series of experiments and write a page about them.
///
/// Without --server and --connect, this program is measured as a server. Writes one self-contained
/// HTML page, and the same as Markdown; a file that the command line does not name is replaced only
/// if it is a report. Ctrl-C ends with the results so far.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// A server to start, as NAME=COMMAND; {port} and {dir} stand for a free port and an empty
    /// folder. Some experiments start it with further options
    #[arg(long = "server", value_name = "NAME=COMMAND")]
    pub servers: Vec<String>,
    /// A running server, as NAME=HOST:PORT; keys are written to it, and experiments that start
    /// servers leave it out
    #[arg(long, value_name = "NAME=HOST:PORT")]
    pub connect: Vec<String>,
    /// Password for the running servers
    #[arg(short = 'a', long, value_name = "PASSWORD")]
    pub auth: Option<String>,
    /// User that the password belongs to
    #[arg(long, requires = "auth")]
    pub user: Option<String>,
    /// How long to measure
    #[arg(long, value_enum, default_value_t = ReportPreset::Short)]
    pub preset: ReportPreset,
    /// Experiments, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "EXPERIMENTS",
          value_parser = PossibleValuesParser::new(TABLE.iter().map(|row| row.name)))]
    pub only: Vec<String>,
    /// Windows of each measurement, instead of the preset's
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub iterations: Option<u16>,
    /// Seconds of each window, instead of the preset's
    #[arg(long, value_name = "SECONDS", value_parser = window)]
    pub duration: Option<Duration>,
    /// Keys, instead of the preset's
    #[arg(long, value_name = "KEYS", value_parser = clap::value_parser!(u64).range(1..))]
    pub keys: Option<u64>,
    /// Load threads [default: half of the processors]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Cores for the load threads, one each in turn
    #[arg(long, value_name = "CPUS")]
    pub pin: Option<Cpus>,
    /// Cores for the servers that are started
    #[arg(long, value_name = "CPUS")]
    pub pin_servers: Option<Cpus>,
    /// Leave the canned-reply server out
    #[arg(long)]
    pub no_floor: bool,
    /// The page [default: weft-report.html]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The Markdown [default: beside the page, with .md]
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportPreset {
    /// Three minutes; with several servers, fewer and shorter windows
    Short,
    /// 10 windows of 2 seconds for each measurement, 3 million keys: about 40 minutes a server
    Full,
}

/// The numbers of a preset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReportExtent {
    pub iterations: usize,
    /// The longest window, and the shortest.
    pub window: Duration,
    pub window_min: Duration,
    /// Windows shrink so that the report ends within this time.
    pub budget: Option<Duration>,
    pub keys: u64,
    pub many_keys: u64,
    /// A point with more data than this has fewer keys.
    pub data_bytes_max: u64,
}

impl ReportArgs {
    /// The preset with the changes of the options.
    pub(super) fn extent(&self) -> ReportExtent {
        let mut extent = match self.preset {
            ReportPreset::Short => ReportExtent {
                iterations: 5,
                window: Duration::from_millis(500),
                window_min: Duration::from_millis(100),
                budget: Some(Duration::from_secs(170)),
                keys: 50_000,
                many_keys: 100_000,
                data_bytes_max: 200_000_000,
            },
            ReportPreset::Full => ReportExtent {
                iterations: 10,
                window: Duration::from_secs(2),
                window_min: Duration::from_secs(2),
                budget: None,
                keys: 100_000,
                many_keys: 3_000_000,
                data_bytes_max: u64::MAX,
            },
        };
        if let Some(iterations) = self.iterations {
            extent.iterations = iterations.into();
        }
        if let Some(window) = self.duration {
            (extent.window, extent.window_min, extent.budget) = (window, window, None);
        }
        if let Some(keys) = self.keys {
            (extent.keys, extent.many_keys) = (keys, keys);
        }
        extent
    }
}

fn window(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "write seconds, as in 5 or 0.5".to_string())?;
    match Duration::try_from_secs_f64(number) {
        Ok(window) if window.as_millis() > 0 => Ok(window),
        _ => Err("a window has at least 0.001 seconds".into()),
    }
}
