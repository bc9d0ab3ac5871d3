//! Whether carriers run slow commands.
//!
//! How long a turn has lasted does not tell it alone: a thread that waits for a processor stays in
//! its turn. So what it has waited for one is taken off. The system counts a wait when it is over,
//! so a long turn is judged at the look after the one that has seen it.

/// A turn that lasts so long on a processor is due to a slow command: without one they end within
/// a few milliseconds.
pub const SLOW_MS: f64 = 20.0;

/// What is seen of a carrier, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// For how long it has been in its turn, 0 outside one.
    pub turn_ms: f64,
    /// What it has waited for processors since it was started; 0 where the system does not tell.
    pub waited_ms: f64,
}

/// A long turn that was seen, and what its thread had waited when it was last seen before.
#[derive(Clone, Copy, Debug)]
struct LongTurn {
    turn_ms: f64,
    waited_ms: f64,
}

/// What the last look has seen of each carrier.
#[derive(Debug, Default)]
pub struct SlowTurns {
    last_ms: i64,
    last: Vec<(Turn, Option<LongTurn>)>,
}

impl SlowTurns {
    /// Whether the last look has seen a turn that is not judged yet.
    pub fn has_seen_one(&self) -> bool {
        self.last.iter().any(|(_, long)| long.is_some())
    }

    /// Looks at all carriers. Returns whether the last look has seen a slow command.
    pub fn look(&mut self, turns: &[Turn], now_ms: i64) -> bool {
        let since_ms = (now_ms - self.last_ms) as f64;
        let was_slow = self.last.iter().zip(turns).any(|((_, long), now)| {
            long.is_some_and(|long| {
                long.turn_ms - (now.waited_ms - long.waited_ms).max(0.0) >= SLOW_MS
            })
        });
        let before = self.last.iter().map(|(turn, _)| Some(*turn)).chain(std::iter::repeat(None));
        let seen = turns.iter().zip(before).map(|(now, before)| {
            let long = (now.turn_ms >= SLOW_MS).then(|| match before {
                // What it waited before the last look is not known to be of this turn.
                Some(before) => {
                    let turn_ms = now.turn_ms.min(since_ms);
                    LongTurn { turn_ms, waited_ms: before.waited_ms }
                }
                None => LongTurn { turn_ms: now.turn_ms, waited_ms: now.waited_ms },
            });
            (*now, long)
        });
        self.last = seen.collect();
        self.last_ms = now_ms;
        was_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one of these looks, 100 ms apart, tells of a slow command: turns and waits.
    fn is_slow(looks: &[(f64, f64)]) -> bool {
        let mut slow_turns = SlowTurns::default();
        let looks = looks.iter().zip((1000..).step_by(100));
        let told = looks.map(|((turn_ms, waited_ms), now_ms)| {
            slow_turns.look(&[Turn { turn_ms: *turn_ms, waited_ms: *waited_ms }], now_ms)
        });
        told.fold(false, |any, told| any | told)
    }

    #[test]
    fn a_slow_command_is_told_at_the_next_look() {
        let mut slow_turns = SlowTurns::default();
        let turns = |turn_ms| [Turn::default(), Turn { turn_ms, waited_ms: 7.0 }];
        assert!(!slow_turns.look(&turns(0.0), 1000) && !slow_turns.has_seen_one());
        assert!(!slow_turns.look(&turns(SLOW_MS), 1100) && slow_turns.has_seen_one());
        assert!(slow_turns.look(&turns(0.0), 1200) && !slow_turns.has_seen_one());
        assert!(!slow_turns.look(&turns(0.0), 1300));
    }

    #[test]
    fn a_thread_that_waits_for_a_processor_is_not_slow() {
        // Before the look, across it, and both.
        assert!(!is_slow(&[(0.1, 5.0), (25.0, 27.0), (0.1, 27.0)]));
        assert!(!is_slow(&[(0.1, 5.0), (25.0, 5.0), (0.1, 35.0)]));
        assert!(!is_slow(&[(0.1, 5.0), (60.0, 30.0), (0.1, 50.0)]));
        assert!(!is_slow(&[(25.0, 5.0), (0.1, 15.0)]));
        // As long as it has waited for a part of that only.
        assert!(is_slow(&[(0.1, 5.0), (60.0, 30.0), (0.1, 40.0)]));
        assert!(is_slow(&[(25.0, 5.0), (0.1, 9.0)]));
    }

    #[test]
    fn a_command_of_seconds_is_slow_whatever_it_waited_before() {
        assert!(is_slow(&[(0.1, 5.0), (90.0, 60.0), (190.0, 70.0), (290.0, 80.0)]));
        assert!(!is_slow(&[(1000.0, 5.0), (1100.0, 995.0), (0.1, 1090.0)]));
    }

    #[test]
    fn another_thread_in_its_place_has_waited_less() {
        assert!(is_slow(&[(0.1, 500.0), (30.0, 500.0), (0.1, 1.0)]));
        let mut slow_turns = SlowTurns::default();
        slow_turns.look(&[Turn { turn_ms: 30.0, waited_ms: 0.0 }], 1000);
        assert!(!slow_turns.look(&[], 1100), "it has ended");
    }
}
