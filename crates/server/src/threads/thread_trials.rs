//! Whether fewer active threads do as much where processors are short.
//!
//! A further active thread helps if there is a processor for it. Where other programs want the
//! processors too, such as a load generator on the same machine, it may only add turns and thread
//! switches, or it may win the process a greater share of the processors. That depends on the other
//! programs, so it is tried:
//!
//! ```text
//!     watch    for a second the active threads are full and wait for processors, and fewer
//!              threads could have done their work
//!     settle   fewer are active: clients move
//!     measure  fewer do as much            --> no more than these for some seconds, up to half a
//!                                              minute if that is found repeatedly
//!              they do less                --> as before, and no trial for half a minute
//! ```
//!
//! The result no longer holds when the load changes. The process cannot see that the other programs
//! have ended, so the result is soon tried again.

/// Between two samples of the work of active threads, with which a trial is compared.
const LOOK_MS: i64 = 1000;
/// The time for clients to move and for requests to come evenly again.
const SETTLE_MS: i64 = 300;
/// How long a trial is measured.
const MEASURE_MS: i64 = 700;
/// A look or a trial whose end is so late counts for nothing: there was no load meanwhile, or the
/// process was stopped.
const LATE_MS: i64 = 2000;
/// Processors are short where active threads wait for them for this fraction of the time that they
/// run.
const SHORT_SHARE: f64 = 0.2;
/// The processors that fewer threads need, as a fraction of those used before.
const FEWER_SHARE: f64 = 0.9;
/// Fewer threads stay if they do at least this fraction of the work done before: the same work then
/// takes less processor time.
const AS_MUCH_SHARE: f64 = 0.97;
/// Active threads are full that run, or wait for a processor, for this part of the time.
const FULL_SHARE: f64 = 0.6;
/// For how long an outcome holds at most: that fewer do less, or do as much as so often before.
const HOLD_MS: i64 = 30_000;
/// For how long it holds that fewer do as much when that was not found lately; then twice as long
/// each time.
const HOLD_FIRST_MS: i64 = 3000;
/// The load is another if a processor does so many times as much or as little of it.
const OTHER_LOAD: f64 = 1.5;

/// The work that all active threads have done since they were started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadWork {
    /// Nanoseconds on a processor.
    pub cpu_ns: u64,
    /// Nanoseconds in which they waited for one.
    pub waited_ns: u64,
    /// Bytes of requests that were executed.
    pub in_bytes: u64,
}

/// The same in a second, in processors.
#[derive(Clone, Copy, Debug)]
struct WorkRate {
    cpu: f64,
    waited: f64,
    in_bytes: f64,
}

impl WorkRate {
    fn in_bytes_by_processor(&self) -> f64 {
        self.in_bytes / self.cpu.max(f64::MIN_POSITIVE)
    }
}

/// The work at a time, and how many threads were active.
#[derive(Clone, Copy, Debug)]
struct WorkSample {
    at_ms: i64,
    active: usize,
    work: ThreadWork,
}

impl WorkSample {
    /// `None` if a thread has ended since, whose work is no longer counted.
    fn rate_until(&self, at_ms: i64, work: ThreadWork) -> Option<WorkRate> {
        let seconds = (at_ms - self.at_ms).max(1) as f64 / 1000.0;
        let a_second = |now: u64, then: u64| Some(now.checked_sub(then)? as f64 / seconds);
        Some(WorkRate {
            cpu: a_second(work.cpu_ns, self.work.cpu_ns)? / 1e9,
            waited: a_second(work.waited_ns, self.work.waited_ns)? / 1e9,
            in_bytes: a_second(work.in_bytes, self.work.in_bytes)?,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct ThreadTrial {
    active: usize,
    began_ms: i64,
    /// The bytes a second before the trial.
    in_bytes: f64,
    /// When it has settled.
    settled: Option<WorkSample>,
}

#[derive(Debug, Default)]
pub struct ThreadTrials {
    last: Option<WorkSample>,
    trial: Option<ThreadTrial>,
    /// The result of the last trial.
    outcome: Option<TrialOutcome>,
    /// If that was that fewer do as much: for how long it holds, and until when.
    held: Option<(i64, i64)>,
}

#[derive(Clone, Copy, Debug)]
struct TrialOutcome {
    /// The number of threads that did as much, with the bytes that a processor did in a second;
    /// `None` if they did less.
    limit: Option<(usize, f64)>,
    until_ms: i64,
}

impl ThreadTrials {
    /// The most threads that may be active from now on. `active` is how many are. `work` is
    /// called about once in a second while it matters; it returns `None` where the system does not
    /// report it.
    pub fn limit(
        &mut self,
        active: usize,
        now_ms: i64,
        work: impl FnOnce() -> Option<ThreadWork>,
    ) -> usize {
        if let Some(trial) = self.trial {
            return self.go_on(trial, active, now_ms, work);
        }
        let held = self.outcome.filter(|outcome| now_ms < outcome.until_ms);
        if held.is_none() && self.outcome.take().is_some() {
            // The next trial is compared with the work of more threads.
            self.last = None;
            return usize::MAX;
        }
        let limit = held.and_then(|outcome| outcome.limit);
        let most = limit.map_or(usize::MAX, |(limit, _)| limit);
        if limit.is_none() && (held.is_some() || active < 2) {
            self.last = None;
            return most;
        }
        if let Some(last) = &self.last
            && last.active == active
            && now_ms - last.at_ms < LOOK_MS
        {
            return most;
        }
        let Some(work) = work() else { return most };
        let last = self.last.replace(WorkSample { at_ms: now_ms, active, work });
        let last = last.filter(|it| it.active == active && now_ms - it.at_ms < LATE_MS);
        let Some(rate) = last.and_then(|last| last.rate_until(now_ms, work)) else {
            return most;
        };
        if let Some((_, by_processor)) = limit {
            let times = rate.in_bytes_by_processor() / by_processor;
            if !(1.0 / OTHER_LOAD..=OTHER_LOAD).contains(&times) {
                // A load that changes all the time moves no clients all the time.
                self.end_trial(None, now_ms);
                return usize::MAX;
            }
            return most;
        }
        let fewer = (rate.cpu * FEWER_SHARE).ceil().max(1.0) as usize;
        let is_full = rate.cpu + rate.waited >= FULL_SHARE * active as f64 && rate.in_bytes > 0.0;
        if fewer >= active || !is_full || rate.waited < SHORT_SHARE * rate.cpu {
            return most;
        }
        self.last = None;
        let (in_bytes, settled) = (rate.in_bytes, None);
        self.trial = Some(ThreadTrial { active: fewer, began_ms: now_ms, in_bytes, settled });
        fewer
    }

    fn go_on(
        &mut self,
        trial: ThreadTrial,
        active: usize,
        now_ms: i64,
        work: impl FnOnce() -> Option<ThreadWork>,
    ) -> usize {
        if now_ms - trial.began_ms >= LATE_MS {
            self.trial = None;
            return usize::MAX;
        }
        let Some(settled) = trial.settled else {
            if now_ms - trial.began_ms >= SETTLE_MS {
                let look = work().map(|work| WorkSample { at_ms: now_ms, active, work });
                self.trial = look.map(|look| ThreadTrial { settled: Some(look), ..trial });
            }
            return trial.active;
        };
        if now_ms - settled.at_ms < MEASURE_MS {
            return trial.active;
        }
        self.trial = None;
        let rate = work().and_then(|work| settled.rate_until(now_ms, work));
        let as_much = rate.filter(|it| it.in_bytes >= AS_MUCH_SHARE * trial.in_bytes);
        let limit = as_much.map(|rate| (trial.active, rate.in_bytes_by_processor()));
        self.end_trial(limit, now_ms);
        limit.map_or(usize::MAX, |(limit, _)| limit)
    }

    fn end_trial(&mut self, limit: Option<(usize, f64)>, now_ms: i64) {
        self.last = None;
        let lately = self.held.filter(|(_, until_ms)| now_ms - until_ms <= HOLD_MS);
        let again_ms = lately.map_or(HOLD_FIRST_MS, |(held_ms, _)| (2 * held_ms).min(HOLD_MS));
        let hold_ms = if limit.is_some() { again_ms } else { HOLD_MS };
        let until_ms = now_ms + hold_ms;
        self.held = limit.map(|_| (hold_ms, until_ms));
        self.outcome = Some(TrialOutcome { limit, until_ms });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples a second for `seconds` of active threads whose number is the limit, or `most`.
    /// `rate` has processors used and waited for, and bytes a second, for a number of threads.
    /// Returns the limits when they changed, with their milliseconds.
    fn limits(
        (most, seconds): (usize, i64),
        rate: impl Fn(usize) -> (f64, f64, f64),
    ) -> Vec<(i64, usize)> {
        let (mut active, mut work, mut named) = (most, ThreadWork::default(), Vec::new());
        let mut trials = ThreadTrials::default();
        for now_ms in (0..seconds * 1000).step_by(100) {
            let limit = trials.limit(active, now_ms, || Some(work)).min(most);
            if limit != active {
                active = limit;
                named.push((now_ms, active));
            }
            let (cpu, waited, bytes) = rate(active);
            work.cpu_ns += (cpu * 1e8) as u64;
            work.waited_ns += (waited * 1e8) as u64;
            work.in_bytes += (bytes / 10.0) as u64;
        }
        named
    }

    /// One load thread on two processors.
    fn one_does_more(active: usize) -> (f64, f64, f64) {
        if active == 1 { (0.98, 0.02, 200e6) } else { (0.95, 0.47, 150e6) }
    }

    /// Two load threads on two processors.
    fn one_does_less(active: usize) -> (f64, f64, f64) {
        if active == 1 { (0.88, 0.12, 140e6) } else { (0.95, 0.92, 180e6) }
    }

    #[test]
    fn fewer_stay_that_do_as_much() {
        let named = limits((2, 1330), one_does_more);
        assert_eq!(named[0], (1000, 1));
        // It is tried again after a while, and less and less often.
        let held = named.windows(2).filter(|pair| pair[0].1 == 1);
        let held: Vec<i64> = held.map(|pair| pair[1].0 - pair[0].0 - SETTLE_MS).collect();
        assert!(held.len() >= 30, "{named:?}");
        let least = [3000, 6000, 12_000, 24_000].into_iter().chain(std::iter::repeat(HOLD_MS));
        assert!(held.iter().zip(least).all(|(held, least)| *held >= least), "{named:?}");
        assert!(held[0] < 2 * HOLD_FIRST_MS && held[4] < 2 * HOLD_MS, "{named:?}");
        let more = named.windows(2).filter(|pair| pair[0].1 == 2);
        assert!(more.into_iter().all(|pair| pair[1].0 - pair[0].0 <= LOOK_MS + 100), "{named:?}");
    }

    #[test]
    fn those_that_do_less_are_given_up() {
        let named = limits((2, 1330), one_does_less);
        assert_eq!(named[..2], [(1000, 1), (2000, 2)]);
        assert!(named[2].0 > 2000 + HOLD_MS, "{named:?}");
        let tried = named.iter().filter(|(_, to)| *to == 1).count();
        assert!((30..45).contains(&tried), "{named:?}");
    }

    /// A trial during which other programs end is soon repeated.
    #[test]
    fn what_was_found_by_chance_is_tried_again_soon() {
        let mut trials = ThreadTrials::default();
        let (mut work, mut active, mut fewest) = (ThreadWork::default(), 2, 0);
        for now_ms in (0..20_000).step_by(100) {
            active = trials.limit(active, now_ms, || Some(work)).min(2);
            fewest += i64::from(active == 1) * 100;
            let is_beside_others = now_ms < 1200;
            let (cpu, waited) = if is_beside_others { (0.9, 0.9) } else { (1.0, 0.0) };
            work.cpu_ns += (cpu * 1e8) as u64 * if is_beside_others { 1 } else { active as u64 };
            work.waited_ns += (waited * 1e8) as u64;
            work.in_bytes = work.cpu_ns;
        }
        assert!((HOLD_FIRST_MS..=HOLD_FIRST_MS + 1500).contains(&fewest), "{fewest}");
    }

    /// The number that is tried differs from one time to the next.
    #[test]
    fn a_load_that_varies_is_tried_less_and_less_often() {
        let uses = std::cell::Cell::new(0u32);
        let shared = |active: usize| {
            uses.set(uses.get() + 1);
            let cpu = 5.5 + f64::from(uses.get() / 7 % 5) / 20.0;
            (cpu, if active > 6 { 5.0 } else { 0.1 }, 100e6)
        };
        let named = limits((16, 600), shared);
        let fewer: std::collections::BTreeSet<usize> = named.iter().map(|(_, to)| *to).collect();
        assert!(fewer.len() > 2 && named.len() < 60, "{named:?}");
    }

    /// A result that was found repeatedly, but long ago, counts as found for the first time.
    #[test]
    fn an_old_outcome_does_not_prolong_another() {
        let mut trials = ThreadTrials::default();
        let hold = |trials: &mut ThreadTrials, now_ms| {
            trials.end_trial(Some((1, 1e6)), now_ms);
            trials.outcome.map_or(0, |outcome| outcome.until_ms - now_ms)
        };
        assert_eq!(hold(&mut trials, 0), HOLD_FIRST_MS);
        assert_eq!(hold(&mut trials, 5000), 2 * HOLD_FIRST_MS);
        assert_eq!(hold(&mut trials, 60_000), HOLD_FIRST_MS);
        trials.end_trial(None, 65_000);
        assert_eq!(hold(&mut trials, 66_000), HOLD_FIRST_MS);
    }

    #[test]
    fn nothing_is_tried_where_each_thread_has_its_processor() {
        for used in [0.3, 0.95, 1.4, 1.98] {
            let alone = |_| (used, 0.05 * used, 100e6);
            let named = limits((2, 100), alone);
            assert_eq!(named, [], "{used}");
        }
        // Fewer threads could not have done this work.
        let full = |_| (1.9, 1.0, 100e6);
        assert_eq!(limits((2, 100), full), []);
    }

    /// Fewer do as much of any load that comes at a fixed rate.
    #[test]
    fn nothing_is_tried_where_threads_are_not_full() {
        let fixed = |_| (0.7, 0.3, 100e6);
        assert_eq!(limits((2, 100), fixed), []);
    }

    #[test]
    fn another_load_is_not_limited() {
        let mut trials = ThreadTrials::default();
        let mut work = ThreadWork::default();
        let mut look = |now_ms, active, bytes: u64| {
            work.cpu_ns += 95_000_000;
            work.waited_ns += 45_000_000;
            work.in_bytes += bytes;
            trials.limit(active, now_ms, || Some(work))
        };
        let mut limits: Vec<usize> = (0..30).map(|at| look(at * 100, 2, 1000)).collect();
        assert!(limits.contains(&1), "{limits:?}");
        limits = (30..35).map(|at| look(at * 100, 1, 900)).collect();
        assert!(limits.iter().all(|limit| *limit == 1), "{limits:?}");
        limits = (35..45).map(|at| look(at * 100, 1, 100)).collect();
        assert_eq!(limits[9], usize::MAX, "{limits:?}");
        // It is not tried again and again either.
        limits = (45..300).map(|at| look(at * 100, 2, at as u64 / 10 % 2 * 1000)).collect();
        assert!(limits.iter().all(|limit| *limit == usize::MAX), "{limits:?}");
    }

    #[test]
    fn many_threads_become_as_many_as_they_use_processors() {
        let shared = |active: usize| {
            let waited = if active > 6 { 5.0 } else { 0.1 };
            (5.9, waited, 100e6)
        };
        let named = limits((16, 100), shared);
        assert_eq!(named[0], (1000, 6));
        // All are for a second between two trials.
        let all = named.windows(2).filter(|pair| pair[0].1 == 16).map(|pair| pair[1].0 - pair[0].0);
        assert!(all.clone().all(|ms| ms <= LOOK_MS + 100) && all.count() < 6, "{named:?}");
    }

    #[test]
    fn a_thread_that_ends_and_a_system_that_does_not_tell_end_a_trial() {
        let mut trials = ThreadTrials::default();
        assert_eq!(trials.limit(2, 0, || None), usize::MAX);
        let work = ThreadWork { cpu_ns: 950_000_000, waited_ns: 470_000_000, in_bytes: 1 << 20 };
        assert_eq!(trials.limit(2, 0, || Some(ThreadWork::default())), usize::MAX);
        assert_eq!(trials.limit(2, 1000, || Some(work)), 1);
        assert_eq!(trials.limit(1, 1300, || Some(work)), 1);
        // Less than before, so the work done is unknown.
        assert_eq!(trials.limit(1, 2000, || Some(ThreadWork::default())), usize::MAX);
        assert_eq!(trials.limit(2, 2100, || unreachable!()), usize::MAX);
        let mut trials = ThreadTrials::default();
        assert_eq!(trials.limit(2, 2200, || Some(ThreadWork::default())), usize::MAX);
        assert_eq!(trials.limit(2, 3200, || Some(work)), 1);
        assert_eq!(trials.limit(1, 3500, || None), 1);
        assert_eq!(trials.limit(1, 3600, || None), usize::MAX);
    }

    #[test]
    fn what_is_looked_at_late_counts_for_nothing() {
        let mut trials = ThreadTrials::default();
        let after = |cpu_ns| Some(ThreadWork { cpu_ns, waited_ns: cpu_ns, in_bytes: cpu_ns });
        assert_eq!(trials.limit(2, 0, || after(0)), usize::MAX);
        assert_eq!(trials.limit(2, LATE_MS, || after(900_000_000)), usize::MAX);
        assert_eq!(trials.limit(2, LATE_MS + LOOK_MS, || after(1_800_000_000)), 1);
        let late_ms = LATE_MS + LOOK_MS + LATE_MS;
        assert_eq!(trials.limit(1, late_ms, || unreachable!()), usize::MAX);
        // It has not failed: another one may follow at once.
        assert_eq!(trials.limit(2, late_ms + 100, || after(2_700_000_000)), usize::MAX);
        assert_eq!(trials.limit(2, late_ms + 1100, || after(3_600_000_000)), 1);
    }
}
