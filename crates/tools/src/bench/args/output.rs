//! Options for the output.

use std::path::PathBuf;

use clap::Args;

/// The options about the form of the results.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print one JSON object per workload
    #[arg(long)]
    pub json: bool,
    /// Print lines of CSV, with the columns of redis-benchmark first
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Print one line per workload
    #[arg(short, long, conflicts_with_all = ["json", "csv"])]
    pub quiet: bool,
    /// Write JSON to a file as well: an array of the objects of --json
    #[arg(long, value_name = "FILE")]
    pub json_out_file: Option<PathBuf>,
    /// Write a page with plots to a file as well
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Leave the distribution of latencies out
    #[arg(long)]
    pub hide_histogram: bool,
    /// Accepted for the sake of redis-benchmark: errors are always shown
    #[arg(short = 'e', hide = true)]
    pub errors: bool,
}

impl OutputArgs {
    /// The files that are written.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.json_out_file, &self.html].into_iter().flatten()
    }
}
