//! The most used keys: sampled all the time, and measured in sessions of HOTKEYS.
//!
//! Each thread samples about one of 1,024 requests and counts its keys in a small table of
//! its own ([`HotKeys`]), in which weights halve every ten seconds. HOTKEYS START begins a session
//! ([`HotkeysSession`]), in which threads measure the time and the network bytes of requests with
//! keys.
//!
//! Each table has a mutex, which only its thread and reports take. A thread drops a sample if its
//! table is locked.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use store::Time;

use super::top_keys::{TopKey, TopKeys, merge};

/// One of this many requests is sampled on average.
pub const SAMPLE_PERIOD: u64 = 1024;
/// Milliseconds in which weights halve.
const HALF_LIFE_MS: i64 = 10_000;
/// Keys in the table of a thread: 40 KB with the longest names.
const KEYS_MAX: usize = 128;

/// The most used keys of one thread.
#[derive(Clone, Debug)]
pub struct HotKeys {
    keys: TopKeys,
    /// When the weights were last halved, on the steady clock.
    halved_ms: i64,
}

impl Default for HotKeys {
    fn default() -> Self {
        Self { keys: TopKeys::new(KEYS_MAX), halved_ms: 0 }
    }
}

impl HotKeys {
    /// Counts a key of a sampled request.
    pub(crate) fn add(&mut self, db: u32, key: &[u8], hash: u64, steady_ms: i64) {
        self.age(steady_ms);
        self.keys.add(db, key, hash, 1);
    }

    /// Halves the weights once for each elapsed half-life.
    fn age(&mut self, steady_ms: i64) {
        let halvings = steady_ms.saturating_sub(self.halved_ms) / HALF_LIFE_MS;
        // After 64 halvings all weights are 0.
        for _ in 0..halvings.clamp(0, 64) {
            self.keys.halve();
        }
        self.halved_ms = self.halved_ms.saturating_add(halvings.max(0) * HALF_LIFE_MS);
    }
}

/// A key and how often it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotKey {
    /// The key.
    pub key: TopKey,
    /// Estimated requests per second.
    pub requests_per_second: u64,
}

/// The most used keys of all threads.
pub fn hottest(threads: &[HotKeys], count: usize, steady_ms: i64) -> Vec<HotKey> {
    let tables = threads.iter().cloned().map(|mut thread| {
        thread.age(steady_ms);
        thread
    });
    let tables: Vec<HotKeys> = tables.collect();
    // Right after a halving, a steady stream has the weight of one half-life.
    let since_ms = tables.iter().map(|table| steady_ms - table.halved_ms).max().unwrap_or(0);
    let window_ms = HALF_LIFE_MS.saturating_add(since_ms.max(0)).unsigned_abs();
    let tables: Vec<TopKeys> = tables.into_iter().map(|table| table.keys).collect();
    let keys = merge(&tables, count).into_iter();
    keys.map(|key| {
        let requests = u128::from(key.weight()) * u128::from(SAMPLE_PERIOD) * 1000;
        let per_second = requests / u128::from(window_ms);
        HotKey { key, requests_per_second: u64::try_from(per_second).unwrap_or(u64::MAX) }
    })
    .collect()
}

/// The options of HOTKEYS START.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Measure time.
    pub cpu: bool,
    /// Measure bytes received and sent.
    pub net: bool,
    /// Keys to report.
    pub count: usize,
    /// Milliseconds after which the session ends by itself.
    pub duration_ms: Option<i64>,
    /// One of this many requests is measured.
    pub sample_ratio: u32,
}

/// A session of HOTKEYS, with the measurements of all threads.
#[derive(Debug)]
pub struct HotkeysSession {
    /// The options of HOTKEYS START.
    pub options: SessionOptions,
    /// Start, as Unix time in milliseconds.
    pub began_unix_ms: i64,
    began_ms: i64,
    /// User and system seconds of the process at the start.
    pub cpu_before: (f64, f64),
    /// Duration in milliseconds; [`ACTIVE`] until HOTKEYS STOP.
    stopped_after_ms: AtomicI64,
    threads: Mutex<Vec<Arc<Mutex<Measured>>>>,
}

const ACTIVE: i64 = -1;
/// Keys in a table for each reported key: more keys improve the accuracy.
const KEYS_PER_REPORTED: usize = 16;

/// The measurements of one thread.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Keys by the TSC cycles of their requests.
    pub cpu: TopKeys,
    /// Keys by the bytes of their requests and replies.
    pub net: TopKeys,
    /// TSC cycles of all requests with keys.
    pub tsc: u64,
    /// Bytes of all requests with keys and of their replies.
    pub bytes: u64,
}

/// A thread in a session.
#[derive(Debug)]
pub(crate) struct Participant {
    pub session: Arc<HotkeysSession>,
    /// Its measurements; `None` before the first.
    measured: Option<Arc<Mutex<Measured>>>,
}

impl Participant {
    /// Creates a participant without measurements.
    pub fn new(session: Arc<HotkeysSession>) -> Self {
        Self { session, measured: None }
    }

    /// The table of its measurements.
    pub fn measured(&mut self) -> Arc<Mutex<Measured>> {
        Arc::clone(self.measured.get_or_insert_with(|| self.session.join()))
    }
}

impl HotkeysSession {
    /// Starts a session at this time.
    pub fn new(options: SessionOptions, now: Time, cpu_before: (f64, f64)) -> Self {
        Self {
            options,
            began_unix_ms: now.unix_us.div_euclid(1000),
            began_ms: now.steady_ms,
            cpu_before,
            stopped_after_ms: AtomicI64::new(ACTIVE),
            threads: Mutex::default(),
        }
    }

    /// Creates a table for the measurements of one thread.
    fn join(&self) -> Arc<Mutex<Measured>> {
        let keys = |wanted: bool| if wanted { self.options.count * KEYS_PER_REPORTED } else { 0 };
        let measured = Measured {
            cpu: TopKeys::new(keys(self.options.cpu)),
            net: TopKeys::new(keys(self.options.net)),
            tsc: 0,
            bytes: 0,
        };
        let measured = Arc::new(Mutex::new(measured));
        self.threads.lock().push(Arc::clone(&measured));
        measured
    }

    /// Whether it still measures.
    pub fn is_active(&self, steady_ms: i64) -> bool {
        let elapsed_ms = steady_ms.saturating_sub(self.began_ms);
        self.stopped_after_ms.load(Ordering::Relaxed) == ACTIVE
            && self.options.duration_ms.is_none_or(|limit_ms| elapsed_ms < limit_ms)
    }

    /// Ends the session.
    pub fn stop(&self, steady_ms: i64) {
        let elapsed_ms = self.elapsed_ms(steady_ms);
        self.stopped_after_ms.store(elapsed_ms, Ordering::Relaxed);
    }

    /// Milliseconds for which the session has measured.
    pub fn elapsed_ms(&self, steady_ms: i64) -> i64 {
        match self.stopped_after_ms.load(Ordering::Relaxed) {
            ACTIVE => {
                let elapsed_ms = steady_ms.saturating_sub(self.began_ms).max(0);
                elapsed_ms.min(self.options.duration_ms.unwrap_or(i64::MAX))
            }
            stopped_after_ms => stopped_after_ms,
        }
    }

    /// The bytes of memory of all tables.
    pub fn bytes(&self) -> usize {
        let threads: Vec<_> = self.threads.lock().clone();
        let tables = threads.iter().map(|thread| {
            let measured = thread.lock();
            size_of::<Measured>() + measured.cpu.bytes() + measured.net.bytes()
        });
        size_of::<Self>() + tables.sum::<usize>()
    }

    /// The measurements of each thread.
    pub fn measured(&self) -> Vec<Measured> {
        let threads: Vec<_> = self.threads.lock().clone();
        threads.iter().map(|thread| thread.lock().clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_per_second_are_estimated_from_samples() {
        let mut threads = [HotKeys::default(), HotKeys::default()];
        // One sample of each key in a hundredth of a second is 102,400 requests in a second.
        for ms in (0..60_000).step_by(10) {
            for (thread, keys) in threads.iter_mut().enumerate() {
                keys.add(0, b"hot", 1, ms);
                keys.add(0, [b"a", b"b"][thread], 2 + thread as u64, ms);
            }
        }
        for at_ms in [60_000, 69_999] {
            let keys = hottest(&threads, 2, at_ms).into_iter().map(|hot| hot.key.key);
            assert_eq!(keys.collect::<Vec<_>>(), [b"hot".to_vec(), b"a".to_vec()]);
        }
        let per_second = hottest(&threads, 1, 60_000)[0].requests_per_second;
        assert!((195_000..=210_000).contains(&per_second), "{per_second}");
        assert!(hottest(&threads, 9, 1_000_000).is_empty(), "unused keys are still listed");
    }

    #[test]
    fn a_session_ends_after_its_duration_or_by_stop() {
        let options = SessionOptions {
            cpu: true,
            net: false,
            count: 10,
            duration_ms: Some(1000),
            sample_ratio: 1,
        };
        let session = HotkeysSession::new(
            options.clone(),
            Time { unix_us: 5000, steady_ms: 100 },
            (0.0, 0.0),
        );
        assert!(session.is_active(1099) && !session.is_active(1100));
        assert_eq!((session.elapsed_ms(150), session.elapsed_ms(5000)), (50, 1000));
        session.stop(400);
        assert!(!session.is_active(401));
        assert_eq!(session.elapsed_ms(5000), 300);
        let start = Time { unix_us: 0, steady_ms: 0 };
        let endless =
            HotkeysSession::new(SessionOptions { duration_ms: None, ..options }, start, (0.0, 0.0));
        assert!(endless.is_active(i64::MAX));
    }
}
