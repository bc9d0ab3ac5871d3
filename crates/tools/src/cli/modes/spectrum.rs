//! `--latency-dist`: the distribution of round trips, one line of coloured cells for each second.
//!
//! A cell stands for a range of latencies; its colour is the share of the samples in it.

use std::io::IsTerminal;
use std::thread;
use std::time::{Duration, Instant};

use super::ask_again;
use super::latency::SAMPLE_PAUSE;
use crate::cli::options::Options;
use crate::cli::output::{CliEnd, print};
use crate::cli::session::CliSession;

/// How long a line is sampled.
const LINE_TIME: Duration = Duration::from_secs(1);

/// The lines between two legends.
const LEGEND_LINES: usize = 20;

/// The letter of a cell and the longest latency in it, in microseconds.
const CELLS: [(char, u64); 31] = [
    ('.', 10),
    ('-', 125),
    ('*', 250),
    ('#', 500),
    ('1', 1_000),
    ('2', 2_000),
    ('3', 3_000),
    ('4', 4_000),
    ('5', 5_000),
    ('6', 6_000),
    ('7', 7_000),
    ('8', 8_000),
    ('9', 9_000),
    ('A', 10_000),
    ('B', 20_000),
    ('C', 30_000),
    ('D', 40_000),
    ('E', 50_000),
    ('F', 100_000),
    ('G', 200_000),
    ('H', 300_000),
    ('I', 400_000),
    ('J', 500_000),
    ('K', 1_000_000),
    ('L', 2_000_000),
    ('M', 4_000_000),
    ('N', 8_000_000),
    ('O', 16_000_000),
    ('P', 30_000_000),
    ('Q', 60_000_000),
    ('?', u64::MAX),
];

/// Colours of a terminal with 256 colours, from none of the samples to all.
const COLOURS: [u8; 19] =
    [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];

/// The same in grey.
const GREYS: [u8; 13] = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253];

/// Samples forever.
pub fn sample(options: &Options, session: &mut CliSession) -> Result<(), CliEnd> {
    let is_terminal = std::io::stdout().is_terminal();
    let time = options.interval.filter(|time| !time.is_zero()).unwrap_or(LINE_TIME);
    let palette: &[u8] = if options.modes.mono { &GREYS } else { &COLOURS };
    let mut lines = 0;
    let (mut counts, mut start) = ([0_u64; CELLS.len()], Instant::now());
    loop {
        let sent = Instant::now();
        ask_again(session, &["PING"], is_terminal)?;
        let latency = u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX);
        counts[CELLS.partition_point(|(_, most)| *most < latency)] += 1;
        if start.elapsed() > time {
            if lines % LEGEND_LINES == 0 {
                print(legend(palette).as_bytes())?;
            }
            print(line(&counts, palette).as_bytes())?;
            lines += 1;
            (counts, start) = ([0; CELLS.len()], Instant::now());
        }
        thread::sleep(SAMPLE_PAUSE);
    }
}

fn line(counts: &[u64; CELLS.len()], palette: &[u8]) -> String {
    let total: u64 = counts.iter().sum();
    let brightest = palette.len() - 1;
    let mut text = String::from("\x1b[38;5;0m");
    for (count, (letter, _)) in counts.iter().zip(CELLS) {
        let share = (*count as f64 / total as f64 * brightest as f64).ceil() as usize;
        let colour = palette[share.min(brightest)];
        text.push_str(&format!("\x1b[48;5;{colour}m{letter}"));
    }
    text + "\x1b[0m\n"
}

fn legend(palette: &[u8]) -> String {
    let rule = "-".repeat(50);
    let colours: String = palette.iter().map(|colour| format!("\x1b[48;5;{colour}m ")).collect();
    format!(
        "{rule}\n. - * #              up to .01 .125 .25 .5 ms\n\
         1 2 3 4 5 6 7 8 9    up to so many ms\n\
         A B C D E            up to 10 20 30 40 50 ms\n\
         F G H I J            up to .1 .2 .3 .4 .5 s\n\
         K L M N O P Q ?      up to 1 2 4 8 16 30 60 s, longer\n\
         from none to all: {colours}\x1b[0m\n{rule}\n"
    )
}
