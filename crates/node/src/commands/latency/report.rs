//! The texts of LATENCY GRAPH and LATENCY DOCTOR.
//!
//! A graph has a column for each sample, with twelve steps in four rows. Below each column is its
//! age, from top to bottom.
//!
//! ```text
//!   #
//!   |
//! o |
//! |_|
//!
//! 321
//! mms
//! ```

use crate::config::Config;
use crate::stats::latency_events::{EventSamples, LatencyEvents};

/// Columns of a block; further samples follow in blocks below.
const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// The top of a column, by its height within the row.
const TOPS: [char; 3] = ['_', 'o', '#'];

/// The graph of an event, with a heading.
pub(super) fn graph(name: &str, event: &EventSamples, now_unix_seconds: i64) -> String {
    let times = || event.samples.iter().map(|sample| sample.ms);
    let (high, low) = (times().max().unwrap_or(0), times().min().unwrap_or(0));
    let mut text =
        format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", event.ms_max);
    text.push_str(&"-".repeat(COLUMNS));
    text.push('\n');
    let columns: Vec<Column> = event
        .samples
        .iter()
        .map(|sample| Column {
            step: step(sample.ms - low, high - low),
            label: age(now_unix_seconds.saturating_sub(sample.unix_seconds)),
        })
        .collect();
    let blocks: Vec<String> = columns.chunks(COLUMNS).map(block).collect();
    text + &blocks.join("\n")
}

struct Column {
    /// Its height, from 0.
    step: usize,
    label: String,
}

/// The height of a value's column if the highest value is `highest`.
fn step(value: u64, highest: u64) -> usize {
    let steps = ROWS * TOPS.len();
    let step = u128::from(value) * steps as u128 / u128::from(highest.max(1));
    usize::try_from(step).unwrap_or(steps).min(steps - 1)
}

/// An age in the largest unit in which it is at least 1.
fn age(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        86_400.. => format!("{}d", seconds / 86_400),
    }
}

fn block(columns: &[Column]) -> String {
    let mut text = String::new();
    let mut line = |of: &dyn Fn(&Column) -> char| {
        text.extend(columns.iter().map(of));
        text.push('\n');
    };
    for row in (0..ROWS).rev() {
        line(&|column| match column.step.checked_sub(row * TOPS.len()) {
            None => ' ',
            Some(above) => TOPS.get(above).copied().unwrap_or('|'),
        });
    }
    line(&|_| ' ');
    let longest = columns.iter().map(|column| column.label.len()).max().unwrap_or(0);
    for at in 0..longest {
        line(&|column| column.label.as_bytes().get(at).map_or(' ', |byte| char::from(*byte)));
    }
    text
}

/// Statistics of the events, and advice.
pub(super) fn diagnosis(events: &LatencyEvents, config: &Config, now_unix_seconds: i64) -> String {
    let threshold_ms = config.latency.monitor_threshold_ms;
    if events.iter().len() == 0 {
        return match threshold_ms {
            0 => "Latency events are not recorded. `CONFIG SET latency-monitor-threshold \
                  <milliseconds>` records events that take at least that long.\n"
                .to_owned(),
            _ => format!(
                "No event has taken {threshold_ms} ms or longer since the start or the last \
                  LATENCY RESET.\n"
            ),
        };
    }
    let mut text = String::new();
    for (name, event) in events.iter() {
        let summary = event.summary(now_unix_seconds);
        text.push_str(&format!(
            "{name}: {} events, mean {} ms, mean deviation {} ms, one every {:.2} s, longest {} \
             ms.\n",
            summary.samples,
            summary.mean_ms,
            summary.deviation_ms,
            summary.period_seconds,
            event.ms_max
        ));
    }
    let advice: Vec<String> = advice(events, config);
    if !advice.is_empty() {
        text.push_str("\nAdvice:\n");
    }
    for line in advice {
        text.push_str(&format!("- {line}\n"));
    }
    text
}

fn advice(events: &LatencyEvents, config: &Config) -> Vec<String> {
    let mut advice = Vec::new();
    let happened = |name: &str| events.find(name.as_bytes()).is_some();
    let threshold_us = config.latency.monitor_threshold_ms.saturating_mul(1000);
    let logs_slow = u64::try_from(config.slowlog_log_slower_than)
        .is_ok_and(|micros| micros <= threshold_us.max(1));
    if happened("command") || happened("fast-command") {
        if !logs_slow && threshold_us > 0 {
            advice.push(format!(
                "The slow log does not keep some of these commands. `CONFIG SET \
                 slowlog-log-slower-than {threshold_us}` makes it keep them."
            ));
        }
        advice.push(
            "SLOWLOG GET shows slow commands and their arguments. LATENCY HISTOGRAM shows which \
             commands are often slow."
                .to_owned(),
        );
    }
    if happened("fast-command") {
        advice.push(
            "A fast command is slow only if its thread does not get the processor, or if its shard \
             is in use: look for other processes on this machine, swapping, noisy virtual \
             machines, and slow commands at the same time."
                .to_owned(),
        );
    }
    if happened("expire-cycle") {
        advice.push(
            "Many keys expire at the same time: spread their expiry times, lower \
             active-expire-effort, or raise hz, which makes the walks shorter."
                .to_owned(),
        );
    }
    if happened("eviction-cycle") || happened("evict-del") {
        advice.push(
            "Many keys are evicted at once: keep further below maxmemory, and write large values \
             in smaller parts."
                .to_owned(),
        );
    }
    advice
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    fn events(samples: &[(i64, u64)]) -> LatencyEvents {
        let mut events = LatencyEvents::default();
        for (unix_seconds, ms) in samples {
            events.add("command", *unix_seconds, *ms);
        }
        events
    }

    #[test]
    fn a_graph_has_twelve_steps_above_the_lowest_sample() {
        let events = events(&[(0, 10), (4000, 100), (90_000, 55), (90_100, 11), (90_119, 25)]);
        let (name, event) = events.find(b"command").expect("it happened");
        let text = graph(name, event, 90_120);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "command - high 100 ms, low 10 ms (all time high 100 ms)");
        assert_eq!(lines[1], "-".repeat(80));
        let rows = [" #   ", " |_  ", " ||  ", "_||_#", "     ", "12221", "d3m0s", " h s "];
        assert_eq!(lines[2..], rows);
    }

    #[test]
    fn further_samples_follow_in_blocks_below() {
        let events = events(&(0..100).map(|second| (second, 5)).collect::<Vec<_>>());
        let (name, event) = events.find(b"command").expect("it happened");
        let text = graph(name, event, 100);
        let widths: Vec<usize> = text.lines().skip(2).map(str::len).collect();
        assert_eq!(widths, [[80; 8].as_slice(), &[0], &[20; 8]].concat());
    }

    #[test]
    fn the_doctor_gives_advice() {
        let mut config = Config::default();
        let none = LatencyEvents::default();
        assert!(diagnosis(&none, &config, 0).starts_with("Latency events are not recorded."));
        config.latency.monitor_threshold_ms = 5;
        assert!(diagnosis(&none, &config, 0).starts_with("No event has taken 5 ms"));
        let text = diagnosis(&events(&[(1, 5), (2, 7)]), &config, 3);
        let line = "command: 2 events, mean 6 ms, mean deviation 1 ms, one every 1.00 s, longest 7 \
                    ms.\n";
        assert!(text.starts_with(line), "{text}");
        assert!(text.contains("slowlog-log-slower-than 5000"), "{text}");
        config.slowlog_log_slower_than = 100;
        let text = diagnosis(&events(&[(1, 5)]), &config, 3);
        assert!(!text.contains("slowlog-log-slower-than"), "{text}");
        for event in ["eviction-cycle", "evict-del"] {
            let mut events = LatencyEvents::default();
            events.add(event, 1, 5);
            let text = diagnosis(&events, &config, 3);
            assert!(text.contains("below maxmemory"), "{text}");
        }
    }
}
