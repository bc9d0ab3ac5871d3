//! The progress of a report: a bar on a terminal, otherwise a line for each experiment.

use std::time::Duration;

use indicatif::ProgressBar;

use crate::progress;

/// The progress bar of a report, or its lines.
pub(super) struct ReportProgress {
    bar: ProgressBar,
}

impl ReportProgress {
    pub fn new() -> ReportProgress {
        ReportProgress { bar: progress::bar() }
    }

    pub fn begin_experiment(&mut self, title: &str, index: usize, count: usize) {
        if self.bar.is_hidden() {
            say!("{index} of {count}: {title}");
        }
    }

    pub fn begin_window(&mut self, place: &str, share: f64, left: Duration) {
        let seconds = left.as_secs();
        let text = format!("{}:{:02} left, {place}", seconds / 60, seconds % 60);
        progress::show(&self.bar, share, &text);
    }

    pub fn finish(self) {
        self.bar.finish_and_clear();
    }
}
