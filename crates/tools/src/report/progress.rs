//! How far a report has come: a bar on a terminal, a line for each experiment elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The bar's length: it shows shares of the whole.
const STEPS: f64 = 1000.0;

/// What is shown on the way.
pub(super) struct Progress {
    /// Nothing where there is no terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Nothing done yet.
    pub fn new() -> Progress {
        if !std::io::stderr().is_terminal() {
            return Progress { bar: None };
        }
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3}% {msg}");
        Progress { bar: Some(style.map_or(bar.clone(), |style| bar.with_style(style))) }
    }

    /// An experiment begins.
    pub fn begin(&mut self, title: &str, index: usize, count: usize) {
        if self.bar.is_none() {
            say!("{index} of {count}: {title}");
        }
    }

    /// A window begins.
    pub fn show(&mut self, place: &str, share: f64, left: Duration) {
        if let Some(bar) = &self.bar {
            let seconds = left.as_secs();
            bar.set_position((share * STEPS) as u64);
            bar.set_message(format!("{}:{:02} left, {place}", seconds / 60, seconds % 60));
        }
    }

    /// Over.
    pub fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
