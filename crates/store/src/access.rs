//! The meaning of the 24 bits of a record's access clock: when its key was last used, or how often.
//!
//! ```text
//!   LRU:  seconds 24                        wraps after 194 days
//!   LFU:  minutes 16 | frequency 8          wraps after 45 days
//! ```
//!
//! Under an LFU policy the frequency is a logarithmic counter (Morris, "Counting large numbers of
//! events in small registers", 1978): the higher it is, the less likely an access adds one to it.
//! It loses one for each `lfu-decay-time` minutes that pass; this is computed when it is read. A
//! change of policy rewrites no records: as in Redis, bits written under one policy are read under
//! the other until the key is used again.

use base::random::Random;

/// The frequency of a new key: high enough that it can be used before it is evicted.
pub(crate) const FREQUENCY_AT_FIRST: u8 = 5;
/// A minute of the clock, in milliseconds.
pub(crate) const MINUTE_MS: i64 = 60_000;

/// How the frequency of a key rises and falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LfuTuning {
    /// `lfu-log-factor`: an access counts once in `(frequency - 5) * log_factor + 1`.
    pub log_factor: u32,
    /// `lfu-decay-time`: minutes in which the frequency falls by one; 0 disables decay.
    pub decay_minutes: u32,
}

/// How a thread updates access clocks.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    /// Keys may share values, because no policy needs an access clock for each key.
    pub shares_values: bool,
    /// Set when the policy counts how often keys are used, `None` when it records the last use.
    pub lfu: Option<LfuTuning>,
    pub(crate) random: Random,
}

impl Default for AccessPolicy {
    fn default() -> Self {
        Self { lfu: None, shares_values: true, random: Random::new(1) }
    }
}

impl LfuTuning {
    /// The frequency that a clock still has at this minute.
    pub(crate) fn frequency(self, clock: u32, minute: u16) -> u8 {
        let periods = match self.decay_minutes {
            0 => 0,
            minutes => u32::from(minutes_since(clock, minute)) / minutes,
        };
        (clock as u8).saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
    }
}

/// Minutes since an LFU clock was written.
pub(crate) fn minutes_since(clock: u32, minute: u16) -> u16 {
    minute.wrapping_sub((clock >> 8) as u16)
}

pub(crate) fn lfu_clock(minute: u16, frequency: u8) -> u32 {
    u32::from(minute) << 8 | u32::from(frequency)
}
