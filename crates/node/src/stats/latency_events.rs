//! Events that took longer than `latency-monitor-threshold`: the last samples of each kind.
//!
//! All threads share one list behind a mutex, which is cheap because each event has taken
//! milliseconds. The names of events are those of Redis, so that tools know them. Each event keeps
//! its longest time in each of the last [`SAMPLES_MAX`] seconds in which it happened.

use std::collections::{BTreeMap, VecDeque};

/// Samples of one event at most.
pub const SAMPLES_MAX: usize = 160;

/// The longest time of an event within one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Unix time in seconds.
    pub unix_seconds: i64,
    /// Duration in milliseconds.
    pub ms: u64,
}

/// The samples of one kind of event.
#[derive(Clone, Debug, Default)]
pub struct EventSamples {
    /// Oldest first; never empty outside this module.
    pub samples: VecDeque<Sample>,
    /// The longest time ever, including dropped samples.
    pub ms_max: u64,
}

/// The events by their names.
#[derive(Clone, Debug, Default)]
pub struct LatencyEvents(BTreeMap<&'static str, EventSamples>);

impl LatencyEvents {
    /// Adds an event.
    pub(crate) fn add(&mut self, event: &'static str, unix_seconds: i64, ms: u64) {
        let event = self.0.entry(event).or_default();
        event.ms_max = event.ms_max.max(ms);
        match event.samples.back_mut() {
            Some(last) if last.unix_seconds == unix_seconds => last.ms = last.ms.max(ms),
            _ => event.samples.push_back(Sample { unix_seconds, ms }),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    /// All kinds of events that happened, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, &EventSamples)> {
        self.0.iter().map(|(name, samples)| (*name, samples))
    }

    /// Finds a kind of event by its exact name.
    pub fn find(&self, event: &[u8]) -> Option<(&'static str, &EventSamples)> {
        self.iter().find(|(name, _)| name.as_bytes() == event)
    }

    /// Removes one kind of event, by its name in any case, or all. Returns the number of removed
    /// kinds.
    pub fn forget(&mut self, event: Option<&[u8]>) -> usize {
        let before = self.0.len();
        let goes = |name: &str| event.is_none_or(|e| name.as_bytes().eq_ignore_ascii_case(e));
        self.0.retain(|name, _| !goes(name));
        before - self.0.len()
    }
}

/// Statistics of the samples of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventSummary {
    /// Number of samples.
    pub samples: usize,
    /// The mean, rounded down.
    pub mean_ms: u64,
    /// The mean absolute deviation, rounded down.
    pub deviation_ms: u64,
    /// Mean seconds between two samples.
    pub period_seconds: f64,
}

impl EventSamples {
    /// Computes the statistics.
    pub fn summary(&self, now_unix_seconds: i64) -> EventSummary {
        let count = self.samples.len().max(1);
        let mean = |of: &dyn Fn(u64) -> u64| {
            let sum = self.samples.iter().map(|sample| u128::from(of(sample.ms))).sum::<u128>();
            u64::try_from(sum / count as u128).unwrap_or(u64::MAX)
        };
        let mean_ms = mean(&|ms| ms);
        let first = self.samples.front().map_or(now_unix_seconds, |sample| sample.unix_seconds);
        let seconds = now_unix_seconds.saturating_sub(first).max(1);
        EventSummary {
            samples: self.samples.len(),
            mean_ms,
            deviation_ms: mean(&|ms| ms.abs_diff(mean_ms)),
            period_seconds: seconds as f64 / count as f64,
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn a_second_keeps_its_longest_event() {
        let mut events = LatencyEvents::default();
        for (second, ms) in [(10, 5), (10, 7), (10, 6), (14, 1)] {
            events.add("command", second, ms);
        }
        let (_, command) = events.find(b"command").expect("it happened");
        let samples: Vec<_> = command.samples.iter().map(|s| (s.unix_seconds, s.ms)).collect();
        assert_eq!((samples, command.ms_max), (vec![(10, 7), (14, 1)], 7));
        let summary = command.summary(20);
        let expected =
            EventSummary { samples: 2, mean_ms: 4, deviation_ms: 3, period_seconds: 5.0 };
        assert_eq!(summary, expected);
    }

    #[test]
    fn old_samples_are_dropped_but_the_maximum_stays() {
        let mut events = LatencyEvents::default();
        for second in 0..500 {
            events.add("fast-command", second, if second == 0 { 99 } else { 1 });
        }
        let (_, samples) = events.find(b"fast-command").expect("it happened");
        assert_eq!((samples.samples.len(), samples.ms_max), (SAMPLES_MAX, 99));
        assert_eq!(samples.samples[0].unix_seconds, 340);
        assert_eq!(events.forget(Some(b"none")), 0);
        assert_eq!(events.forget(Some(b"FAST-command")), 1);
        assert_eq!(events.forget(None), 0);
    }
}
