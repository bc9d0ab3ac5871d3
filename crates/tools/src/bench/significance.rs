//! Whether two servers of a comparison differ by more than chance.
//!
//! The subject, or else the first server, is compared with each other server except the floor, by
//! the values of all rounds.

use std::fmt;

use super::measured::{CONFIDENCE, RESAMPLING_SEED};
use crate::load::latency::percentile_us;
use crate::load::outcome::WindowOutcome;
use crate::servers::target::Role;
use crate::statistics::{MeanRatio, compare};

/// A figure of a round, if the server has it.
type ComparedFigure = fn(&WindowOutcome) -> Option<f64>;

/// The figures that are compared, with their names for people and programs.
const FIGURES: [(&str, &str, ComparedFigure); 3] = [
    ("requests/s", "requests_per_second", |outcome| Some(outcome.per_second())),
    ("p99", "p99_us", |outcome| Some(percentile_us(&outcome.latency, 99.0))),
    ("CPU/request", "cpu_us_per_request", WindowOutcome::server_us),
];

/// How one server differs from another in one case.
#[derive(Debug, Clone, PartialEq)]
pub struct PairVerdict {
    pub name: String,
    /// The other server.
    pub with: String,
    /// The differences by their names for people and programs.
    pub differences: Vec<(&'static str, &'static str, MeanRatio)>,
}

/// The verdicts of one case, from the rounds of each server; none with fewer than two rounds.
pub(super) fn verdicts(
    targets: &[(String, Role)],
    rounds: &[Option<&[WindowOutcome]>],
) -> Vec<PairVerdict> {
    let is_subject = |(_, role): &(String, Role)| *role == Role::Subject;
    let takes_part = |index: &usize| targets[*index].1 != Role::Floor;
    let subject = targets.iter().position(is_subject);
    let Some(subject) = subject.or_else(|| (0..targets.len()).find(takes_part)) else {
        return Vec::new();
    };
    let others = (0..targets.len()).filter(takes_part).filter(|other| *other != subject);
    let verdict = |other: usize| {
        let (own, its) = (rounds[subject]?, rounds[other]?);
        if own.len().min(its.len()) < 2 {
            return None;
        }
        let difference = |(label, key, of): (_, _, ComparedFigure)| {
            let samples =
                |outcomes: &[WindowOutcome]| outcomes.iter().map(of).collect::<Option<Vec<_>>>();
            let (own, its) = (samples(own)?, samples(its)?);
            Some((label, key, compare(&own, &its, CONFIDENCE, RESAMPLING_SEED)))
        };
        Some(PairVerdict {
            name: targets[subject].0.clone(),
            with: targets[other].0.clone(),
            differences: FIGURES.into_iter().filter_map(difference).collect(),
        })
    };
    others.filter_map(verdict).collect()
}

impl fmt::Display for PairVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {}:", self.name, self.with)?;
        for (index, (label, _, difference)) in self.differences.iter().enumerate() {
            let MeanRatio { ratio, low, high, is_significant } = difference;
            let said = if *is_significant { "significant" } else { "not significant" };
            let comma = if index > 0 { ";" } else { "" };
            write!(f, "{comma} {label} {ratio:.3} ({low:.3} to {high:.3}), {said}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::latency::latency_histogram;
    use crate::servers::account::CpuUse;

    /// A window of a second with so many requests.
    pub(in crate::bench) fn outcome(requests: u64) -> WindowOutcome {
        WindowOutcome {
            warm_up: 0,
            requests,
            wall: Duration::from_secs(1),
            latency: latency_histogram(),
            unsent: 0,
            errors: 0,
            first_error: String::new(),
            nulls_per_reply: 0.0,
            aborted_per_request: 0.0,
            server: None,
            load: CpuUse { wall: Duration::from_secs(1), threads: Vec::new() },
            machine: None,
            lateness: latency_histogram(),
            series: Vec::new(),
            interrupted: false,
        }
    }

    /// Rounds of a second with so many requests each.
    fn rounds(requests: &[u64]) -> Option<Vec<WindowOutcome>> {
        Some(requests.iter().copied().map(outcome).collect())
    }

    fn of(targets: &[(String, Role)], rounds: &[&Option<Vec<WindowOutcome>>]) -> Vec<PairVerdict> {
        verdicts(targets, &rounds.iter().map(|rounds| rounds.as_deref()).collect::<Vec<_>>())
    }

    #[test]
    fn the_subject_is_compared_with_every_other_server_except_the_floor() {
        let roles = [("a", Role::Peer), ("floor", Role::Floor), ("b", Role::Subject)];
        let targets: Vec<_> = roles.map(|(name, role)| (name.to_owned(), role)).into();
        let slow = rounds(&[100, 101, 99, 100, 102]);
        let fast = rounds(&[201, 199, 200, 202, 198]);
        let found = of(&targets, &[&slow, &rounds(&[9; 5]), &fast]);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].with.as_str()), ("b", "a"));
        let (label, _, rate) = found[0].differences[0];
        assert_eq!((label, rate.is_significant), ("requests/s", true));
        assert!(
            (rate.ratio - 1.992).abs() < 0.001 && rate.low > 1.9 && rate.high < 2.1,
            "{rate:?}"
        );
        assert!(found[0].to_string().starts_with("b / a: requests/s 1.992 ("), "{}", found[0]);
        // Noise is no difference.
        let [first, second] =
            [&[100, 180, 120, 90, 140], &[110, 150, 100, 170, 95]].map(|noise| rounds(noise));
        let found = of(&targets, &[&first, &None, &second]);
        assert!(!found[0].differences[0].2.is_significant, "{}", found[0]);
        // One round, or a server that does not know the command, is not enough.
        assert_eq!(of(&targets, &[&rounds(&[1]), &None, &fast]), []);
        assert_eq!(of(&targets, &[&slow, &None, &None]), []);
    }
}
