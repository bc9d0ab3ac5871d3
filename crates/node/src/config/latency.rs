//! `latency-monitor-threshold` and `latency-tracking`: what is noticed of how long things take.

use super::Config;
use super::parameter::{Reason, Special};

/// What is noticed of how long things take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latency {
    /// Milliseconds from which on an event is remembered; 0 remembers none.
    pub monitor_threshold_ms: u64,
    /// Whether it is recorded how long commands take.
    pub tracking: bool,
    /// What INFO shows of that, in millionths of a per cent.
    pub tracking_info_percentiles: Vec<u32>,
}

impl Default for Latency {
    fn default() -> Self {
        let tracking_info_percentiles = vec![50_000_000, 99_000_000, 99_900_000];
        Self { monitor_threshold_ms: 0, tracking: true, tracking_info_percentiles }
    }
}

/// `latency-tracking-info-percentiles`. A single empty argument, or none, means none.
pub(super) const PERCENTILES: Special = Special {
    print: print_percentiles,
    read: read_percentiles,
    lines: |config| {
        let list = print_percentiles(config);
        vec![if list.is_empty() { "\"\"".to_owned() } else { list }]
    },
    form: "number ...",
};

/// Millionths in one.
const MILLIONTHS: f64 = 1e6;

fn print_percentiles(config: &Config) -> String {
    let percentiles = config.latency.tracking_info_percentiles.iter();
    percentiles.map(|millionths| percentile_text(*millionths)).collect::<Vec<_>>().join(" ")
}

/// A percentile in millionths of a per cent as Redis writes it: `99.9`.
pub fn percentile_text(millionths: u32) -> String {
    let text = format!("{:.6}", f64::from(millionths) / MILLIONTHS);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn read_percentiles(config: &mut Config, args: &[Vec<u8>]) -> Result<(), Reason> {
    let args = if matches!(args, [only] if only.is_empty()) { &[] } else { args };
    let mut percentiles = Vec::with_capacity(args.len());
    for arg in args {
        let Some(percent) = base::number::parse_f64(arg) else {
            return Err("Invalid latency-tracking-info-percentiles parameters".into());
        };
        if !(0.0..=100.0).contains(&percent) {
            return Err(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"
                    .into(),
            );
        }
        percentiles.push((percent * MILLIONTHS).round() as u32);
    }
    config.latency.tracking_info_percentiles = percentiles;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(args: &[&str], expected: Result<&str, &str>) {
        let mut config = Config::default();
        let args: Vec<_> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        let result = read_percentiles(&mut config, &args).map(|()| print_percentiles(&config));
        assert_eq!(result.as_deref(), expected.map_err(|reason| reason.into()).as_deref());
    }

    #[test]
    fn percentiles_are_numbers_up_to_a_hundred() {
        check(&[], Ok(""));
        check(&[""], Ok(""));
        check(&["0", "50.0", "99.99", "1e2"], Ok("0 50 99.99 100"));
        check(&["0.0000001"], Ok("0"));
        let invalid = Err("Invalid latency-tracking-info-percentiles parameters");
        check(&["50", "x"], invalid);
        check(&["nan"], invalid);
        check(&["50", ""], invalid);
        let range =
            Err("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
        check(&["100.1"], range);
        check(&["-1"], range);
        check(&["inf"], range);
    }
}
