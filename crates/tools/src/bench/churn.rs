//! Fragmentation: the memory of a server after all values were rewritten many times, each time in
//! other sizes and another order, divided by that of the same data freshly loaded.
//!
//! A server with active defragmentation has it on, with low thresholds, and gets time for it.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::Error;
use crate::client::session::ServerSession;
use crate::interrupt;
use crate::load::fill::fill;
use crate::load::shape::RequestShape;

/// How often all values are rewritten.
const REWRITES: u64 = 50;
/// Keys with values of one size, written one after another.
const CHUNK_KEYS: u64 = 20;
/// Sizes of values, in bytes.
const VALUE_BYTES: (u64, u64) = (16, 1000);
/// How long a server may take to defragment its memory.
const DEFRAG_TIME_MAX: Duration = Duration::from_secs(60);
/// The time between two checks whether it still does.
const DEFRAG_LOOK: Duration = Duration::from_millis(500);

/// Loads so many keys, rewrites them, and returns the memory afterwards over the memory before.
/// `memory` returns the bytes beyond those of the empty server, once they are stable.
pub(super) fn measure(
    session: &mut ServerSession,
    keys: u64,
    stop: &AtomicBool,
    memory: &mut dyn FnMut() -> Result<f64, Error>,
) -> Result<f64, Error> {
    let chunks = (keys / CHUNK_KEYS).max(1);
    for (name, value) in [
        ("active-defrag-ignore-bytes", "1mb"),
        ("active-defrag-threshold-lower", "5"),
        ("activedefrag", "yes"),
    ] {
        // A server without it refuses.
        let _ = session.ask("CONFIG SET", &["CONFIG", "SET", name, value]);
    }
    let mut random = Rng::with_seed(1);
    let size = |random: &mut Rng| random.u64(VALUE_BYTES.0..VALUE_BYTES.1);
    let last: Vec<u64> = (0..chunks).map(|_| size(&mut random)).collect();
    for (chunk, bytes) in (0..).zip(&last) {
        interrupt::check(stop)?;
        write(session, chunk, *bytes)?;
    }
    let fresh = memory()?;
    let mut order: Vec<usize> = (0..last.len()).collect();
    for round in 1..=REWRITES {
        for at in (1..order.len()).rev() {
            order.swap(at, random.usize(..=at));
        }
        for chunk in &order {
            interrupt::check(stop)?;
            let bytes = if round == REWRITES { last[*chunk] } else { size(&mut random) };
            write(session, *chunk as u64, bytes)?;
        }
    }
    await_defragmentation(session, stop)?;
    Ok(memory()? / fresh)
}

fn write(session: &mut ServerSession, chunk: u64, value_bytes: u64) -> Result<(), Error> {
    let shape = RequestShape {
        keys: CHUNK_KEYS,
        value_bytes: value_bytes as usize,
        ..RequestShape::default()
    };
    fill(session, &format!("SET c{chunk}:{{key}} {{value}}"), &shape, chunk)
}

/// Waits until active defragmentation has stopped.
fn await_defragmentation(session: &mut ServerSession, stop: &AtomicBool) -> Result<(), Error> {
    let start = Instant::now();
    let mut idle = 0;
    while idle < 4 && start.elapsed() < DEFRAG_TIME_MAX {
        interrupt::sleep(DEFRAG_LOOK, stop)?;
        let info = session.info("memory")?;
        let runs = info.lines().any(|line| {
            let share = line.strip_prefix("active_defrag_running:");
            share.is_some_and(|share| share.trim() != "0")
        });
        idle = if runs { 0 } else { idle + 1 };
    }
    Ok(())
}
