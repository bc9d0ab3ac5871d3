//! `--latency` and `--latency-history`: the round trip of PING. `--intrinsic-latency`: the longest
//! pauses of this machine in a program that only computes.

use std::hint::black_box;
use std::io::IsTerminal;
use std::thread;
use std::time::{Duration, Instant};

use super::{ask_again, catch_interrupt};
use crate::cli::format::Output;
use crate::cli::options::Options;
use crate::cli::output::{CliEnd, print};
use crate::cli::session::CliSession;

/// The time between two samples.
pub const SAMPLE_PAUSE: Duration = Duration::from_millis(10);

/// How long a result is sampled without a terminal.
const SAMPLE_TIME: Duration = Duration::from_secs(1);

/// How long a round of the history is.
const ROUND_TIME: Duration = Duration::from_secs(15);

/// Steps of computation between two readings of the clock: about a microsecond.
const COMPUTE_STEPS: u64 = 1000;

/// The samples of a round, in milliseconds.
#[derive(Default)]
struct Samples {
    least: u128,
    most: u128,
    total: u128,
    count: u64,
}

impl Samples {
    fn add(&mut self, latency: u128) {
        self.least = if self.count == 0 { latency } else { self.least.min(latency) };
        self.most = self.most.max(latency);
        self.total += latency;
        self.count += 1;
    }

    fn text(&self, output: Output) -> String {
        let Samples { least, most, count, .. } = self;
        let average = self.total as f64 / self.count as f64;
        match output {
            Output::Standard => {
                format!("min: {least}, max: {most}, avg: {average:.2} ({count} samples)")
            }
            Output::Csv => format!("{least},{most},{average:.2},{count}\n"),
            Output::Raw => format!("{least} {most} {average:.2} {count}\n"),
            Output::Json | Output::QuotedJson => format!(
                "{{\"min\": {least}, \"max\": {most}, \"avg\": {average:.2}, \"count\": {count}}}\n"
            ),
        }
    }
}
pub fn sample(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let is_terminal = std::io::stdout().is_terminal();
    let output = session.terms.style.output;
    let history = options.modes.latency_history;
    let given = options.interval.filter(|time| !time.is_zero());
    let time = given.unwrap_or(if history { ROUND_TIME } else { SAMPLE_TIME });
    let (mut samples, mut start) = (Samples::default(), Instant::now());
    loop {
        let sent = Instant::now();
        ask_again(session, &["PING"], is_terminal)?;
        samples.add(sent.elapsed().as_millis());
        let is_over = start.elapsed() > time;
        if output == Output::Standard {
            print(format!("\x1b[0G\x1b[2K{}", samples.text(output)).as_bytes())?;
        } else if history || is_over {
            print(samples.text(output).as_bytes())?;
            if !history {
                return Ok(());
            }
        }
        if history && is_over {
            let seconds = start.elapsed().as_secs_f64();
            print(format!(" -- {seconds:.2} seconds range\n").as_bytes())?;
            (samples, start) = (Samples::default(), Instant::now());
        }
        thread::sleep(SAMPLE_PAUSE);
    }
}

/// Computes for some seconds, and prints each pause that is longer than all before.
pub fn intrinsic(seconds: u64) -> Result<(), CliEnd> {
    let interrupt = catch_interrupt()?;
    let time = Duration::from_secs(seconds);
    let (start, mut runs, mut longest) = (Instant::now(), 0_u64, 0);
    loop {
        let begin = Instant::now();
        compute();
        let latency = begin.elapsed().as_micros();
        runs += 1;
        if latency > longest {
            longest = latency;
            print(format!("Max latency so far: {longest} microseconds.\n").as_bytes())?;
        }
        if start.elapsed() > time || (runs.is_multiple_of(1000) && interrupt.take()) {
            break;
        }
    }
    let average = start.elapsed().as_secs_f64() * 1e6 / runs as f64;
    let text = format!(
        "\n{runs} total runs (avg latency: {average:.4} microseconds / {:.2} nanoseconds per \
         run).\nWorst run took {:.0}x longer than the average latency.\n",
        average * 1e3,
        longest as f64 / average,
    );
    print(text.as_bytes())
}

fn compute() {
    let mut state = black_box(1_u64);
    for _ in 0..COMPUTE_STEPS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}
