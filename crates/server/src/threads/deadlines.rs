//! When a thread must act on its clients that wait for keys, soonest first: a client's time is
//! over, or a key is worth a retry.
//!
//! Each client remembers its time here. It is `None` for a client that waits only for a write, no
//! longer waits, or has left this thread.

use std::collections::BTreeMap;

/// Times, and the slots of the clients that are due then.
#[derive(Debug, Default)]
pub struct Deadlines(BTreeMap<(i64, u64), usize>);

impl Deadlines {
    /// Gives client number `id` in this slot another time, in milliseconds on the steady scale, or
    /// none. `kept_ms` is the time that the client remembers.
    pub fn move_to(&mut self, at_ms: Option<i64>, kept_ms: &mut Option<i64>, id: u64, slot: usize) {
        if *kept_ms == at_ms {
            return;
        }
        if let Some(old_ms) = std::mem::replace(kept_ms, at_ms) {
            self.0.remove(&(old_ms, id));
        }
        if let Some(at_ms) = at_ms {
            self.0.insert((at_ms, id), slot);
        }
    }

    /// Takes out a client that is due and returns its slot. The client must forget its time.
    pub fn pop_due(&mut self, steady_ms: i64) -> Option<usize> {
        let first = self.0.first_entry()?;
        (first.key().0 <= steady_ms).then(|| first.remove())
    }

    /// Milliseconds until the first client is due: 0 if it is now, `None` if no client waits.
    pub fn wait_ms(&self, steady_ms: i64) -> Option<i64> {
        let ((at_ms, _), _) = self.0.first_key_value()?;
        Some(at_ms.saturating_sub(steady_ms).max(0))
    }
}

#[cfg(test)]
mod tests {
    use sys::clock::ClockReading;

    use super::*;
    use crate::system::clock::SharedClock;
    use crate::threads::cron_schedule::Cron;

    const START_US: i64 = 1_700_000_000_000_000;

    #[test]
    fn the_soonest_is_due_first() {
        let mut deadlines = Deadlines::default();
        assert_eq!(deadlines.wait_ms(0), None);
        let mut kept = [None; 4];
        for (nth, at_ms) in [30, 10, 10, 5].into_iter().enumerate() {
            deadlines.move_to(Some(at_ms), &mut kept[nth], nth as u64, 11 + nth);
        }
        deadlines.move_to(Some(20), &mut kept[3], 3, 14);
        assert_eq!(deadlines.wait_ms(4), Some(6));
        assert_eq!(deadlines.pop_due(9), None);
        deadlines.move_to(None, &mut kept[3], 3, 14);
        deadlines.move_to(None, &mut kept[3], 3, 14);
        deadlines.move_to(Some(30), &mut kept[0], 0, 11);
        assert_eq!(kept, [Some(30), Some(10), Some(10), None]);
        let due: Vec<usize> = std::iter::from_fn(|| deadlines.pop_due(29)).collect();
        assert_eq!(due, [12, 13]);
        assert_eq!(deadlines.wait_ms(40), Some(0));
        assert_eq!(deadlines.pop_due(40), Some(11));
        assert_eq!(deadlines.pop_due(i64::MAX), None);
    }

    #[test]
    fn timers_go_on_when_the_system_clock_is_set_back() {
        let reading = |elapsed_us: i64, set_back_us: i64| ClockReading {
            tsc: elapsed_us.cast_unsigned(),
            unix_us: START_US + elapsed_us - set_back_us,
            steady_us: START_US + elapsed_us,
        };
        let clock = SharedClock::new(reading(0, 0), 1.0);
        let (mut cron, mut deadlines, mut kept) = (Cron::default(), Deadlines::default(), None);
        let (mut ticks, mut due_at) = (0, None);
        deadlines.move_to(Some(START_US / 1000 + 500), &mut kept, 1, 0);
        for ms in 0..=1000 {
            // After a tenth of a second the clock is set back by ten minutes.
            let set_back_us = if ms < 100 { 0 } else { 600_000_000 };
            let elapsed_us = ms * 1000;
            let read = || reading(elapsed_us, set_back_us);
            let tsc = elapsed_us.cast_unsigned();
            let now = clock.base_at(tsc, read).at(tsc);
            assert_eq!(now.steady_ms, START_US / 1000 + ms);
            assert!(ms < 200 || now.unix_us < START_US, "the jump is noticed");
            if cron.is_due(now.steady_ms, true) {
                cron.schedule(now.steady_ms, 100);
                ticks += 1;
            }
            assert!(cron.wait_ms(now.steady_ms, true, true) <= 100);
            if deadlines.pop_due(now.steady_ms).is_some() {
                due_at = Some(ms);
            }
        }
        assert_eq!((ticks, due_at), (11, Some(500)));
    }
}
