//! `weft bench hits`: how well a server under `maxmemory` chooses the keys that go.
//!
//! It plays a cache: a client reads keys, some far more often than others, and writes those that
//! are not there. The share of reads that hit, once the memory is full, tells how good the policy
//! is. Keys are drawn by Zipf's law: the key of rank r is read in proportion to `1 / r^skew`.
//!
//! One connection sends batches and waits for their replies, so that every server sees the same
//! reads in the same order. Time is not what is measured here.

use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;

use super::keys::{Keys, Law};
use super::session::{Endpoint, Session};
use super::shape::Shape;
use crate::Error;

/// Reads sent at once, fewer where their values are large.
const BATCH_MAX: usize = 64;
const BATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Keys have a number of this length.
const KEYS_MAX: usize = 10_000_000_000;

/// What is played.
#[derive(Debug, Clone, PartialEq)]
pub struct HitsPlan {
    /// `maxmemory`, as CONFIG SET takes it.
    pub maxmemory: String,
    /// `maxmemory-policy`.
    pub policy: String,
    /// Keys that may be read.
    pub keys: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Reads, of which the first half is not counted.
    pub reads: u64,
    /// The exponent of Zipf's law.
    pub skew: f64,
    /// The seed of the random keys.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hits {
    /// The share of the counted reads that hit; nothing if it ended before any was counted.
    pub share: Option<f64>,
    /// Keys at the end.
    pub keys: u64,
    /// Whether it ended early; the share is of the reads until then.
    pub interrupted: bool,
}

/// Plays the plan on a server, which it empties first, or a part of it if `stop` is set.
///
/// # Errors
/// When the connection fails or the server refuses.
pub fn measure(
    endpoint: &Endpoint,
    plan: &HitsPlan,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(f64),
) -> Result<Hits, Error> {
    if !(1..=KEYS_MAX).contains(&plan.keys) {
        return Err(Error::Usage(format!("there must be 1 to {KEYS_MAX} keys")));
    }
    if plan.reads == 0 {
        return Err(Error::Usage("there must be at least 1 read".into()));
    }
    let shape = Shape { keys: plan.keys as u64, value_bytes: plan.value_bytes, ..Shape::default() };
    shape.check()?;
    let batch = (BATCH_BYTES_MAX / plan.value_bytes.max(1)).clamp(1, BATCH_MAX);
    let mut session = Session::open(endpoint)?;
    session.ask("FLUSHALL", &["FLUSHALL"])?;
    let policy = ["CONFIG", "SET", "maxmemory-policy", &plan.policy];
    session.ask("CONFIG SET maxmemory-policy", &policy)?;
    session.ask("CONFIG SET maxmemory", &["CONFIG", "SET", "maxmemory", &plan.maxmemory])?;
    let mut zipf = Keys::new(Law::Zipf { exponent: plan.skew }, &shape, (0, 1))?;
    let mut rng = Rng::with_seed(plan.seed);
    let value = "x".repeat(plan.value_bytes);
    let (mut read, mut counted, mut hits) = (0, 0u64, 0u64);
    let (mut names, mut requests) = (Vec::new(), Vec::new());
    while read < plan.reads && !stop.load(Ordering::Relaxed) {
        names.clear();
        requests.clear();
        for _ in 0..batch {
            let name = format!("key:{:010}", zipf.draw(&mut rng));
            requests.extend(format!("*2\r\n$3\r\nGET\r\n$14\r\n{name}\r\n").bytes());
            names.push(name);
        }
        let found = found(session.exchange("GET", &requests, batch as u64)?);
        read += batch as u64;
        if read > plan.reads / 2 {
            counted += batch as u64;
            hits += found.iter().filter(|found| **found).count() as u64;
        }
        requests.clear();
        let missing: Vec<&String> =
            names.iter().zip(&found).filter(|(_, found)| !**found).map(|(name, _)| name).collect();
        for name in &missing {
            let len = value.len();
            requests.extend(
                format!("*3\r\n$3\r\nSET\r\n$14\r\n{name}\r\n${len}\r\n{value}\r\n").bytes(),
            );
        }
        session.exchange("SET", &requests, missing.len() as u64)?;
        observe(read as f64 / plan.reads.max(1) as f64);
    }
    let keys = String::from_utf8_lossy(session.ask("DBSIZE", &["DBSIZE"])?).into_owned();
    let keys = keys.trim_start_matches(':').trim_end().parse().unwrap_or(0);
    let share = (counted > 0).then(|| hits as f64 / counted as f64);
    Ok(Hits { share, keys, interrupted: read < plan.reads })
}

/// Which of these replies to GET are no nulls.
fn found(mut replies: &[u8]) -> Vec<bool> {
    let mut found = Vec::with_capacity(BATCH_MAX);
    while let Some(end) = replies.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(replies.get(1..end).unwrap_or_default());
        let head = head.trim_end().to_owned();
        let len: Option<usize> = head.parse().ok();
        found.push(len.is_some());
        let body = len.map_or(0, |len| len.saturating_add(2));
        let next = body.saturating_add(end + 1);
        replies = replies.get(next..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_say_what_was_found() {
        assert_eq!(found(b"$1\r\nx\r\n$-1\r\n$2\r\n$1\r\n_\r\n"), [true, false, true, false]);
        // What is no reply to GET ends nothing but itself.
        assert_eq!(found(b"*1\r\n$1\r\n\n\r\n"), [true, false, false, false]);
        assert_eq!(found(b"\n$18446744073709551615\r\nx\r\n"), [false, true]);
    }

    #[test]
    fn what_no_machine_can_do_is_refused() {
        let plan = HitsPlan {
            maxmemory: "1mb".into(),
            policy: "allkeys-lru".into(),
            keys: 1,
            value_bytes: 1,
            reads: 1,
            skew: 1.0,
            seed: 1,
        };
        for plan in [
            HitsPlan { value_bytes: usize::MAX, ..plan.clone() },
            HitsPlan { keys: usize::MAX, ..plan.clone() },
            HitsPlan { keys: 0, ..plan.clone() },
            HitsPlan { reads: 0, ..plan.clone() },
        ] {
            // No server is asked.
            let (endpoint, stop) = (Endpoint::local(1), AtomicBool::new(false));
            let refused = measure(&endpoint, &plan, &stop, &mut |_| {});
            assert!(matches!(refused, Err(Error::Usage(_))), "{plan:?}");
        }
    }
}
