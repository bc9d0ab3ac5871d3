//! Whether active threads run slow commands.
//!
//! The length of a turn is not enough to know: a thread that waits for a processor stays in its
//! turn. So there are two ways to find out:
//!
//! ```text
//!     two looks see the same turn     it was on a processor for long between them
//!     one look sees a long turn       the time its thread waited for a processor is subtracted;
//!                                     the system counts a wait when it is over, so the next look
//!                                     decides
//! ```

/// A turn that lasts so long on a processor is due to a slow command: without one they end within
/// a few milliseconds.
const SLOW_MS: f64 = 20.0;
/// A check that is this late says nothing about turns: the process may have been stopped.
const LATE_MS: i64 = 300;

/// One observation of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObservedTurn {
    /// For how long it has been in its turn, 0 outside one, in milliseconds.
    pub turn_ms: f64,
    /// `None` where the system does not report it.
    pub schedule: Option<ThreadSchedule>,
}

/// Figures of the system about a thread since its start.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSchedule {
    /// Nanoseconds on a processor.
    pub cpu_ns: u64,
    /// Nanoseconds in which it waited for one.
    pub waited_ns: u64,
}

/// A long turn that was observed, and the earlier figures of its thread.
#[derive(Clone, Copy, Debug)]
struct LongTurn {
    turn_ms: f64,
    before: Option<ThreadSchedule>,
}

/// The last observation of each thread besides the main thread.
#[derive(Debug, Default)]
pub struct SlowTurns {
    last_ms: i64,
    last: Vec<(ObservedTurn, Option<LongTurn>)>,
}

impl SlowTurns {
    /// How many threads, from the first, the next check must observe so that each long turn is
    /// judged; 0 if there is none.
    pub fn not_judged(&self) -> usize {
        self.last.iter().rposition(|(_, long)| long.is_some()).map_or(0, |last| last + 1)
    }

    /// Observes all active threads. Returns whether one ran a slow command.
    pub fn look(&mut self, turns: &[ObservedTurn], now_ms: i64) -> bool {
        let since_ms = now_ms - self.last_ms;
        let is_late = !self.last.is_empty() && since_ms > LATE_MS;
        let since_ms = since_ms as f64;
        let is_slow = !is_late
            && self.last.iter().zip(turns).any(|((last, long), now)| {
                let was_slow = long.is_some_and(|long| long.is_slow(now.schedule));
                was_slow || now.turn_ms >= since_ms && ran_for_long(last.schedule, now.schedule)
            });
        let before = self.last.iter().map(|(turn, _)| Some(*turn)).chain(std::iter::repeat(None));
        let seen = turns.iter().zip(before).map(|(now, before)| {
            let long = (!is_late && now.turn_ms >= SLOW_MS).then(|| match before {
                // Its waits before the last check may belong to an earlier turn.
                Some(before) => {
                    LongTurn { turn_ms: now.turn_ms.min(since_ms), before: before.schedule }
                }
                None => LongTurn { turn_ms: now.turn_ms, before: now.schedule },
            });
            (*now, long)
        });
        self.last = seen.collect();
        self.last_ms = now_ms;
        is_slow
    }
}

impl LongTurn {
    /// By the figures of the next check.
    fn is_slow(self, now: Option<ThreadSchedule>) -> bool {
        let waited_ns = match (self.before, now) {
            (Some(before), Some(now)) => now.waited_ns.saturating_sub(before.waited_ns),
            (None, None) => 0,
            // The system has reported it once, so the process may be out of descriptors.
            _ => return false,
        };
        self.turn_ms - waited_ns as f64 / 1e6 >= SLOW_MS
    }
}

fn ran_for_long(before: Option<ThreadSchedule>, now: Option<ThreadSchedule>) -> bool {
    let both = before.zip(now);
    both.is_some_and(|(before, now)| {
        now.cpu_ns.saturating_sub(before.cpu_ns) as f64 / 1e6 >= SLOW_MS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(turn_ms: f64, cpu_ms: u64, waited_ms: u64) -> ObservedTurn {
        let schedule =
            ThreadSchedule { cpu_ns: cpu_ms * 1_000_000, waited_ns: waited_ms * 1_000_000 };
        ObservedTurn { turn_ms, schedule: Some(schedule) }
    }

    /// Whether one of these checks, 100 ms apart, finds a slow command: turns and waits of a thread
    /// that does nothing on a processor.
    fn is_slow(looks: &[(f64, u64)]) -> bool {
        let mut slow_turns = SlowTurns::default();
        let looks = looks.iter().zip((1000..).step_by(100));
        let found = looks.map(|((turn_ms, waited_ms), now_ms)| {
            slow_turns.look(&[turn(*turn_ms, 0, *waited_ms)], now_ms)
        });
        found.fold(false, |any, found| any | found)
    }

    #[test]
    fn a_slow_command_is_found_at_the_next_look() {
        let mut slow_turns = SlowTurns::default();
        let turns = |turn_ms| [turn(0.0, 0, 0), turn(turn_ms, 3, 7)];
        assert!(!slow_turns.look(&turns(0.0), 1000) && slow_turns.not_judged() == 0);
        assert!(!slow_turns.look(&turns(SLOW_MS), 1100) && slow_turns.not_judged() == 2);
        assert!(slow_turns.look(&turns(0.0), 1200) && slow_turns.not_judged() == 0);
        assert!(!slow_turns.look(&turns(0.0), 1300));
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_is_not_slow() {
        // Before the look, across it, and both.
        assert!(!is_slow(&[(0.1, 5), (25.0, 27), (0.1, 27)]));
        assert!(!is_slow(&[(0.1, 5), (25.0, 5), (0.1, 35)]));
        assert!(!is_slow(&[(0.1, 5), (60.0, 30), (0.1, 50)]));
        assert!(!is_slow(&[(25.0, 5), (0.1, 15)]));
        assert!(!is_slow(&[(1000.0, 5), (1100.0, 995), (0.1, 1090)]));
        // As long as it has waited for a part of that only.
        assert!(is_slow(&[(0.1, 5), (60.0, 30), (0.1, 40)]));
        assert!(is_slow(&[(25.0, 5), (0.1, 9)]));
    }

    /// Whatever part of the time it has a processor.
    #[test]
    fn a_command_of_seconds_is_slow() {
        for cpu_ms in [20, 25, 50, 60, 80, 100] {
            let mut slow_turns = SlowTurns::default();
            let found = (0..30).filter(|look| {
                let turn = turn(*look as f64 * 100.0 + 10.0, look * cpu_ms, look * (100 - cpu_ms));
                slow_turns.look(&[turn], 1000 + *look as i64 * 100)
            });
            assert!(found.count() >= 28, "{cpu_ms}");
        }
    }

    /// A thread that runs quick commands without a pause has as much of the processor.
    #[test]
    fn many_turns_are_not_one() {
        let mut slow_turns = SlowTurns::default();
        let is_slow = (0..30).any(|look| {
            slow_turns.look(&[turn(1.5, look * 95, look * 5)], 1000 + look as i64 * 100)
        });
        assert!(!is_slow);
    }

    #[test]
    fn a_thread_without_clients_is_looked_at_until_its_turn_is_judged() {
        let mut slow_turns = SlowTurns::default();
        slow_turns.look(&[turn(0.1, 0, 0), turn(60.0, 0, 0)], 1000);
        assert_eq!(slow_turns.not_judged(), 2);
        assert!(slow_turns.look(&[turn(0.1, 0, 0), turn(0.0, 90, 0)], 1100));
    }

    #[test]
    fn another_thread_in_its_place_has_waited_less() {
        assert!(is_slow(&[(0.1, 500), (30.0, 500), (0.1, 1)]));
        let mut slow_turns = SlowTurns::default();
        slow_turns.look(&[turn(30.0, 0, 0)], 1000);
        assert!(!slow_turns.look(&[], 1100), "it has ended");
    }

    #[test]
    fn nothing_is_found_where_the_system_or_the_process_stops_reporting() {
        let silent = |turn_ms| ObservedTurn { turn_ms, schedule: None };
        let looks = |second: ObservedTurn, third: ObservedTurn, third_ms| {
            let mut slow_turns = SlowTurns::default();
            slow_turns.look(&[turn(0.1, 0, 0)], 1000);
            slow_turns.look(&[second], 1100) || slow_turns.look(&[third], third_ms)
        };
        assert!(!looks(turn(50.0, 0, 0), silent(0.1), 1200));
        assert!(!looks(turn(50.0, 0, 0), turn(5000.0, 90, 0), 6000));
        assert!(looks(turn(50.0, 0, 0), turn(0.1, 0, 0), 1200));
        // Where the system never reports, turns alone decide.
        let mut slow_turns = SlowTurns::default();
        assert!(!slow_turns.look(&[silent(50.0)], 1000) && slow_turns.look(&[silent(0.1)], 1100));
    }
}
