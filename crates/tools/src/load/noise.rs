//! Whether the machine was quiet while windows were measured: what other programs used, and how
//! much repeated windows scatter. Every measurement with ratios or means shows these warnings.

use super::outcome::WindowOutcome;
use crate::statistics::{median, spread};

/// Cores that other programs may use without a warning.
pub const OTHERS_MAX: f64 = 0.1;

/// The scatter of repeated windows without a warning.
const SPREAD_MAX: f64 = 0.05;

/// The findings about the machine so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineNoise {
    /// Cores that other programs used, window by window.
    others: Vec<f64>,
    /// The relative standard deviation of the rates of windows that repeat each other.
    scatter: Vec<f64>,
}

impl MachineNoise {
    /// Adds windows that repeat each other: their rates, and what other programs used where that
    /// is known.
    pub fn add(&mut self, rates: &[f64], others: impl IntoIterator<Item = f64>) {
        self.others.extend(others);
        if rates.len() > 1 {
            self.scatter.push(spread(rates));
        }
    }

    /// Adds the runs of one load on one server.
    pub fn add_runs(&mut self, runs: &[WindowOutcome]) {
        let rates: Vec<f64> = runs.iter().map(WindowOutcome::per_second).collect();
        self.add(&rates, runs.iter().filter_map(WindowOutcome::others));
    }

    /// The reasons to doubt the figures.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let others = median(self.others.clone());
        if others > OTHERS_MAX {
            warnings.push(format!(
                "Other programs used {others:.1} cores while this was measured (the median over \
                 all windows): the figures are too low by an unknown amount, and differences may \
                 come from them."
            ));
        }
        let scatter = median(self.scatter.clone());
        if scatter > SPREAD_MAX {
            warnings.push(format!(
                "Windows that repeat each other scatter by {:.0}% (the median of their standard \
                 deviations): the machine is noisy, and small differences mean nothing.",
                scatter * 100.0
            ));
        }
        warnings
    }
}
