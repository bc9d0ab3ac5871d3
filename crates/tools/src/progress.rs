//! The bar that shows on a terminal how far a measurement has come.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::printable::printable_line;

/// The bar's length: it shows shares of the whole.
const STEPS: f64 = 1000.0;

/// A bar, hidden where standard error is no terminal.
pub(crate) fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::stderr_with_hz(5);
    let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
    match ProgressStyle::with_template("{bar:30} {percent:>3}% {elapsed} {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Shows a share of the whole and what is being done.
pub(crate) fn show(bar: &ProgressBar, share: f64, text: &str) {
    bar.set_position((share * STEPS) as u64);
    bar.set_message(printable_line(text));
}

/// How long the rest takes at this pace, in words.
fn time_left(bar: &ProgressBar, share: f64) -> String {
    let left = bar.elapsed().as_secs_f64() * (1.0 - share) / share;
    if left.is_finite() { format!(", {:.0} s left", left.ceil()) } else { String::new() }
}

/// Shows a share of the whole with what is being done and how long the rest takes.
pub(crate) fn show_step(bar: &ProgressBar, text: &str, share: f64) {
    show(bar, share, &format!("{text}{}", time_left(bar, share)));
}

/// Shows the steps of a measurement in a bar, which disappears with the observer.
pub(crate) fn observer() -> impl FnMut(&str, f64) {
    let bar = bar();
    move |text, share| show_step(&bar, text, share)
}
