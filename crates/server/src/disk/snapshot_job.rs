//! A snapshot of the keyspace: the cut behind the closed gate, and the walk that follows while
//! clients continue.
//!
//! ```text
//! begin    gate closed: all shards are marked, the caller notes its part of the moment
//! walk     a step in a shard, under its lock -> its result is passed on, without a lock -> ...
//! ```
//!
//! The walk is background work: it takes a shard that is free, and otherwise comes back a moment
//! later. A step covers about [`STEP_BYTES`] and takes some 20 us. Pre-images come first, so that
//! their memory is freed.
//!
//! There is at most one snapshot at a time. One that is dropped before its end is taken to it,
//! because the keyspace may hold parts of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use node::state::snapshots::SaveProgress;
use persist::rdb::reader::DatabaseSizes;
use script::Library;
use store::snapshot::{Budget, KeySink, Task};
use store::{Shard, Snapshot};
use sync::gate::Pass;

use crate::keyspace::gate_passes::SNAPSHOT_PASS;
use crate::keyspace::shard_locks::NoOtherClients;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::keyspace::thread_waits::{ThreadWaits, Waited};

/// Bytes that a step under a shard's lock may cover.
const STEP_BYTES: usize = 8 << 10;
/// Bytes that a step without a lock may cover before its result is passed on.
const UNLOCKED_STEP_BYTES: usize = 256 << 10;
/// After a visit of a shard in use, or of a closed gate.
const PAUSE: Duration = Duration::from_micros(50);
/// A shard that was in use so often is waited for.
const MISSES_MAX: u32 = 20;
/// The longest such wait. The lock is fair, and only a thread that closes the gate waits for this
/// thread.
const WAIT: Duration = Duration::from_millis(1);

/// Takes the entries of a snapshot, in turns with [`pass_on`](Self::pass_on).
pub trait SnapshotSink: KeySink {
    /// Why it cannot continue.
    type Error;

    /// Whether a shard is locked while the snapshot gives the next entries: then they are only
    /// collected.
    fn is_locked(&mut self, locked: bool);

    /// Passes on the collected entries, when no shard is locked. Returns how many keys have come
    /// since the last call.
    ///
    /// # Errors
    /// When the snapshot can no longer be completed.
    fn pass_on(&mut self) -> Result<u64, Self::Error>;
}

#[derive(Clone, Copy)]
pub struct Pacing<'a> {
    /// Set when the snapshot is no longer wanted.
    pub cancel: &'a AtomicBool,
    /// Where the walk shows its progress.
    pub progress: &'a SaveProgress,
    /// Microseconds to wait after each key, or one after so many keys when negative; for tests.
    pub key_delay_us: &'a dyn Fn() -> i64,
}

/// Why there is no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another one is being taken.
    Running,
    /// A busy script, for which all threads would wait; or a script was ended midway.
    BusyScript,
}

/// Why a snapshot is not whole.
#[derive(Debug)]
pub enum WalkError<E> {
    Sink(E),
    /// It was no longer wanted.
    Cancelled,
    /// A part of the keyspace was dropped before it was visited: a mistake of this program.
    Lost,
}

pub struct SnapshotJob {
    keyspace: Arc<SharedKeyspace>,
    snapshot: Snapshot,
    pass: Pass,
    waits: ThreadWaits,
    /// How many keys each database has at the cut; later databases have none.
    pub sizes: Vec<DatabaseSizes>,
    /// Whether fields of hashes expire.
    pub fields_expire: bool,
    /// The libraries of functions at the cut.
    pub libraries: Vec<Arc<Library>>,
}

impl SnapshotJob {
    /// Takes the cut. Runs `at_cut` in the same moment, in which nothing else is executed: it must
    /// not wait for anything. The caller is outside the gate.
    ///
    /// # Errors
    /// When no snapshot can begin now.
    pub fn begin<T>(
        keyspace: &Arc<SharedKeyspace>,
        at_cut: impl FnOnce() -> T,
    ) -> Result<(Self, T), Refusal> {
        let pass = keyspace.gate.register_as(SNAPSHOT_PASS).ok_or(Refusal::Running)?;
        let node = &keyspace.node;
        let busy = &node.scripting.busy;
        let mut snapshot = Snapshot::new(node.hasher);
        let (mut sizes, mut fields_expire) = (Vec::new(), false);
        let cut = pass.exclusively_unless(&|| busy.any(), || {
            if node.scripting.must_end() {
                return None;
            }
            for shard in 0..keyspace.shards.len() {
                let mut shard = keyspace.shards.lock(shard);
                snapshot.mark(&mut shard);
                shard.dbs().for_each(|db| {
                    let none = DatabaseSizes { keys: 0, expiring: 0 };
                    sizes.resize(sizes.len().max(db.number() + 1), none);
                    let sizes = &mut sizes[db.number()];
                    sizes.keys += db.len() as u64;
                    sizes.expiring += db.expiring_len() as u64;
                    fields_expire |= db.hashes_with_expiry() > 0;
                });
            }
            Some((node.scripting.libraries.read().iter().cloned().collect(), at_cut()))
        });
        let (libraries, at_cut) = cut.flatten().ok_or(Refusal::BusyScript)?;
        let (keyspace, waits) = (Arc::clone(keyspace), ThreadWaits::default());
        Ok((Self { keyspace, snapshot, pass, waits, sizes, fields_expire, libraries }, at_cut))
    }

    /// Keys at the cut.
    pub fn keys(&self) -> u64 {
        self.sizes.iter().map(|sizes| sizes.keys).sum()
    }

    /// Gives all keys to a sink, on a thread that has nothing else to do.
    ///
    /// # Errors
    /// When the snapshot is not whole.
    pub fn walk<S: SnapshotSink>(
        mut self,
        sink: &mut S,
        pacing: Pacing<'_>,
    ) -> Result<(), WalkError<S::Error>> {
        let Pacing { progress, key_delay_us, cancel } = pacing;
        progress.keys_total.store(self.keys(), Ordering::Relaxed);
        let mut left = 0;
        loop {
            let key_delay_us = key_delay_us();
            if !self.step(sink, key_delay_us == 0) {
                break;
            }
            let saved = self.snapshot.saved_bytes() as u64;
            progress.saved_bytes.store(saved, Ordering::Relaxed);
            progress.saved_bytes_peak.fetch_max(saved, Ordering::Relaxed);
            let keys = sink.pass_on().map_err(WalkError::Sink)?;
            progress.keys.fetch_add(keys, Ordering::Relaxed);
            if key_delay_us != 0 {
                let is_wanted =
                    || !cancel.load(Ordering::Relaxed) && (pacing.key_delay_us)() == key_delay_us;
                delay(key_delay_us, keys, &mut left, &is_wanted);
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(WalkError::Cancelled);
            }
        }
        match self.snapshot.is_damaged() {
            true => Err(WalkError::Lost),
            false => Ok(()),
        }
    }

    /// Makes a step. Returns false when there is nothing more to do.
    fn step<S: SnapshotSink>(&mut self, sink: &mut S, is_quick: bool) -> bool {
        let budget = |bytes| Budget::of_bytes(if is_quick { bytes } else { 1 });
        let shard = match self.snapshot.next() {
            Task::Done => return false,
            Task::Unlocked => {
                sink.is_locked(false);
                self.snapshot.step_unlocked(&mut budget(UNLOCKED_STEP_BYTES), sink);
                return true;
            }
            Task::Shard(shard) => shard,
            Task::Key(_, hash) => self.keyspace.node.map.shard_of(hash),
        };
        sink.is_locked(true);
        let Self { keyspace, snapshot, pass, waits, .. } = self;
        with_shard(keyspace, pass, waits, shard, |shard| {
            snapshot.step(shard, &mut budget(STEP_BYTES), sink);
        });
        true
    }
}

impl Drop for SnapshotJob {
    fn drop(&mut self) {
        if self.snapshot.next() == Task::Done {
            return;
        }
        self.snapshot.abort();
        while self.step(&mut Discard, true) {}
    }
}

/// Runs `work` with a shard, as soon as it is free.
fn with_shard(
    keyspace: &SharedKeyspace,
    pass: &Pass,
    waits: &ThreadWaits,
    shard: usize,
    mut work: impl FnMut(&mut Shard),
) {
    for misses in 0.. {
        let wait = if misses < MISSES_MAX { Duration::ZERO } else { WAIT };
        let locks = keyspace.enter(Some(pass), &NoOtherClients).waiting(waits, Waited::default());
        let done = locks.try_one_for(shard, wait, &mut work).is_some();
        drop(locks);
        keyspace.wake_called(waits);
        if done {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Waits for so many microseconds after each of some keys, or for one after so many keys when
/// negative, as long as that is wanted. `left` has the keys that no wait was for yet.
pub(super) fn delay(delay_us: i64, keys: u64, left: &mut u64, is_wanted: &dyn Fn() -> bool) {
    const PIECE_US: u64 = 10_000;
    let size = delay_us.unsigned_abs().max(1);
    let mut wait_us = match delay_us {
        0.. => keys.saturating_mul(size),
        _ => {
            let all = *left + keys;
            *left = all % size;
            all / size
        }
    };
    while wait_us > 0 && is_wanted() {
        let piece_us = wait_us.min(PIECE_US);
        std::thread::sleep(Duration::from_micros(piece_us));
        wait_us -= piece_us;
    }
}

/// Takes entries that are no longer wanted.
struct Discard;

impl KeySink for Discard {
    fn entry(&mut self, _: u32, _: store::Stored<'_>) {}

    fn begin(&mut self, _: &store::snapshot::CollectionHead) {}

    fn part(&mut self, _: store::snapshot::CollectionPart<'_>) {}

    fn end(&mut self) {}
}

impl SnapshotSink for Discard {
    type Error = std::convert::Infallible;

    fn is_locked(&mut self, _: bool) {}

    fn pass_on(&mut self) -> Result<u64, Self::Error> {
        Ok(0)
    }
}
