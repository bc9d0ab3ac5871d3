//! How a turn writes and reads the access clocks of keys.

use ds::record::ACCESS_CLOCK_MASK;

use crate::access::{FREQUENCY_AT_FIRST, LfuTuning, MINUTE_MS, lfu_clock, minutes_since};
use crate::turn::Turn;
use crate::value::stored::Stored;

impl Turn {
    /// The 24-bit clock of the last use, in seconds.
    #[inline]
    pub fn access_clock(&self) -> u32 {
        (self.unix_ms / 1000) as u32 & ACCESS_CLOCK_MASK
    }

    /// The 16 bits of an LFU clock.
    fn minute(&self) -> u16 {
        (self.unix_ms / MINUTE_MS) as u16
    }

    /// The access clock of a new key.
    #[inline]
    pub fn new_clock(&self) -> u32 {
        match self.access.lfu {
            None => self.access_clock(),
            Some(_) => lfu_clock(self.minute(), FREQUENCY_AT_FIRST),
        }
    }

    /// The new access clock of a key that is used now and had this clock.
    #[inline]
    pub fn used_clock(&mut self, clock: u32) -> u32 {
        match self.access.lfu {
            None => self.access_clock(),
            Some(lfu) => self.count_use(lfu, clock),
        }
    }

    #[inline(never)]
    fn count_use(&mut self, lfu: LfuTuning, clock: u32) -> u32 {
        let minute = self.minute();
        let mut frequency = lfu.frequency(clock, minute);
        let base = frequency.saturating_sub(FREQUENCY_AT_FIRST);
        let one_in = u64::from(base) * u64::from(lfu.log_factor) + 1;
        if frequency < u8::MAX && self.access.random.below(one_in) == 0 {
            frequency += 1;
        }
        lfu_clock(minute, frequency)
    }

    /// The access clock of a restored key whose use is known: seconds since the last use, or its
    /// frequency. As in Redis, the value that the policy does not use is ignored.
    pub fn restored_clock(&self, idle_seconds: Option<u32>, frequency: Option<u8>) -> u32 {
        match (self.access.lfu, idle_seconds, frequency) {
            (None, Some(idle), _) => self.access_clock().wrapping_sub(idle) & ACCESS_CLOCK_MASK,
            (Some(_), _, Some(frequency)) => lfu_clock(self.minute(), frequency),
            _ => self.new_clock(),
        }
    }
}

impl Stored<'_> {
    /// Seconds since the key was last used, or `None` if the policy counts uses instead.
    pub fn idle_seconds(self, turn: &Turn) -> Option<u32> {
        turn.access.lfu.is_none().then(|| self.seconds_since_use(turn))
    }

    /// How often the key is used, on the logarithmic scale of OBJECT FREQ, or `None` if the policy
    /// records the last use instead.
    pub fn frequency(self, turn: &Turn) -> Option<u8> {
        Some(turn.access.lfu?.frequency(self.0.access_clock(), turn.minute()))
    }

    /// The 24 bits as stored.
    pub fn access_clock(self) -> u32 {
        self.0.access_clock()
    }

    /// Seconds since the key was last used, if the policy records that.
    pub fn seconds_since_use(self, turn: &Turn) -> u32 {
        turn.access_clock().wrapping_sub(self.0.access_clock()) & ACCESS_CLOCK_MASK
    }

    /// The eviction score of a key that has not been used recently.
    pub(crate) fn staleness(self, turn: &Turn) -> u64 {
        u64::from(self.seconds_since_use(turn))
    }

    /// The eviction score of a key that is used seldom. Among equally rare keys, the one unused for
    /// longest scores highest.
    pub(crate) fn rarity(self, turn: &Turn) -> u64 {
        let lfu = turn.access.lfu.unwrap_or(LfuTuning { log_factor: 0, decay_minutes: 0 });
        let (clock, minute) = (self.0.access_clock(), turn.minute());
        let frequency = lfu.frequency(clock, minute);
        u64::from(u8::MAX - frequency) << 16 | u64::from(minutes_since(clock, minute))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::hash::KeyHasher;

    const HOUR_MS: i64 = 60 * MINUTE_MS;

    fn turn(lfu: Option<LfuTuning>) -> Turn {
        let mut turn = Turn::alone(KeyHasher::new(1));
        turn.access.lfu = lfu;
        turn.set_time(1_700_000_000_000_000);
        turn
    }

    fn after(turn: &mut Turn, ms: i64) {
        turn.set_time((turn.unix_ms + ms) * 1000);
    }

    #[track_caller]
    fn frequency(turn: &Turn, clock: u32) -> u8 {
        turn.access.lfu.map_or(0, |lfu| lfu.frequency(clock, turn.minute()))
    }

    /// The mean frequency of a hundred keys after this many uses.
    fn mean_after(uses: u32, log_factor: u32) -> f64 {
        let mut turn = turn(Some(LfuTuning { log_factor, decay_minutes: 1 }));
        let mut sum = 0;
        for _ in 0..100 {
            let mut clock = turn.new_clock();
            assert_eq!(frequency(&turn, clock), FREQUENCY_AT_FIRST);
            (0..uses).for_each(|_| clock = turn.used_clock(clock));
            sum += u32::from(frequency(&turn, clock));
        }
        f64::from(sum) / 100.0
    }

    /// The expected frequency, computed from the probabilities of all frequencies.
    fn expected_after(uses: u32, log_factor: u32) -> f64 {
        let mut shares = [0.0; 256];
        shares[usize::from(FREQUENCY_AT_FIRST)] = 1.0;
        for _ in 0..uses {
            for frequency in (usize::from(FREQUENCY_AT_FIRST)..255).rev() {
                let base = (frequency - usize::from(FREQUENCY_AT_FIRST)) as f64;
                let rising = shares[frequency] / (base * f64::from(log_factor) + 1.0);
                shares[frequency] -= rising;
                shares[frequency + 1] += rising;
            }
        }
        shares.iter().enumerate().map(|(frequency, share)| frequency as f64 * share).sum()
    }

    #[test]
    fn the_counter_grows_with_the_logarithm_of_the_uses() {
        for log_factor in [0, 1, 10, 100] {
            for uses in [0, 1, 10, 100, 1000, 10_000] {
                let (mean, expected) =
                    (mean_after(uses, log_factor), expected_after(uses, log_factor));
                let off = (mean - expected).abs() / expected;
                assert!(off < 0.03, "{mean}, not {expected}, after {uses} with {log_factor}");
            }
        }
        assert_eq!(mean_after(300, 0), 255.0);
    }

    #[test]
    fn the_counter_decays_with_the_minutes() {
        let mut turn = turn(Some(LfuTuning { log_factor: 0, decay_minutes: 2 }));
        let clock = (0..95).fold(turn.new_clock(), |clock, _| turn.used_clock(clock));
        assert_eq!(frequency(&turn, clock), 100);
        for (ms, left) in [(MINUTE_MS, 100), (MINUTE_MS, 99), (HOUR_MS, 69), (3 * HOUR_MS, 0)] {
            after(&mut turn, ms);
            assert_eq!(frequency(&turn, clock), left);
        }
        // The next use counts from the decayed value.
        let clock = turn.used_clock(clock);
        assert_eq!(frequency(&turn, clock), 1);
        turn.access.lfu = Some(LfuTuning { log_factor: 0, decay_minutes: 0 });
        after(&mut turn, 1000 * HOUR_MS);
        assert_eq!(frequency(&turn, clock), 1);
    }

    #[test]
    fn restored_keys_keep_the_clock_of_the_policy() {
        let by_time = turn(None);
        let now = by_time.access_clock();
        assert_eq!(by_time.restored_clock(Some(100), None), now - 100);
        assert_eq!(by_time.restored_clock(None, Some(77)), now);
        let counts = turn(Some(LfuTuning { log_factor: 10, decay_minutes: 1 }));
        assert_eq!(frequency(&counts, counts.restored_clock(None, Some(77))), 77);
        assert_eq!(frequency(&counts, counts.restored_clock(Some(100), None)), 5);
    }
}
