//! A snapshot of the keyspace: the cut behind the closed gate, and the walk that follows while
//! clients continue.
//!
//! ```text
//! reserve  no other snapshot begins
//! cut      gate closed: all shards are marked, the caller notes its part of the moment
//! walk     a step in a shard, under its lock -> its result is passed on, without a lock -> ...
//! ```
//!
//! The walk is background work: it takes a shard that is free, and otherwise comes back a moment
//! later. A step covers about [`STEP_BYTES`] and takes some 20 us. Pre-images come first, so that
//! their memory is freed.
//!
//! The cut makes way for commands that run on: the gate is closed for a bounded time only, and the
//! next attempt follows when these commands are over, which stops no thread.
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
use crate::keyspace::shim::now_us;
use crate::keyspace::stop_waits::{AttemptWait, GRACE_LOOK, closed_until_us};
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
    /// Publishes the memory that the thread has taken or freed.
    pub publish: &'a dyn Fn(),
}

/// A snapshot that has no cut yet. While it exists, no other can begin.
pub struct PendingSnapshot {
    keyspace: Arc<SharedKeyspace>,
    pass: Pass,
    /// The wait for the commands that prevented the last attempt.
    pub wait: Option<AttemptWait>,
    /// How often it was tried.
    pub attempts: u32,
}

/// Why there is no cut.
pub enum NotCut {
    /// Commands run on: it can be tried again.
    Later(PendingSnapshot),
    /// A busy script runs: likewise.
    BusyScript(PendingSnapshot),
    /// A script was ended midway, because the server shuts down.
    ScriptEnded,
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

impl PendingSnapshot {
    /// Takes the cut, unless commands run on. Runs `at_cut` in the same moment, in which nothing
    /// else is executed: it must not wait for anything. The caller is outside the gate.
    ///
    /// # Errors
    /// When there is no cut now.
    pub fn try_cut<T>(mut self, at_cut: &dyn Fn() -> T) -> Result<(SnapshotJob, T), NotCut> {
        let busy = &self.keyspace.node.scripting.busy;
        if busy.any() {
            return Err(NotCut::BusyScript(self));
        }
        let stoppers = &self.keyspace.shards.stoppers;
        if let Some(wait) = &mut self.wait {
            wait.go_on(now_us(), stoppers);
            if !wait.period.is_over() {
                return Err(NotCut::Later(self));
            }
        }
        self.attempts += 1;
        let until_us = closed_until_us(self.attempts);
        let gives_up = || busy.any() || now_us() >= until_us;
        let cut = self.pass.exclusively_unless(&gives_up, || self.cut(at_cut));
        match cut {
            Some(Some((parts, at_cut))) => Ok((parts.job(self.keyspace, self.pass), at_cut)),
            Some(None) => Err(NotCut::ScriptEnded),
            None => {
                let begin = || self.pass.grace_period();
                self.wait = Some(AttemptWait::begin(self.attempts, now_us(), stoppers, begin));
                Err(NotCut::Later(self))
            }
        }
    }

    /// Takes the cut as soon as the commands let it, as long as `is_wanted` says so. It waits for
    /// busy scripts as well. `None` if there is no cut.
    pub fn cut_when_possible<T>(
        mut self,
        at_cut: &dyn Fn() -> T,
        is_wanted: &dyn Fn() -> bool,
    ) -> Option<(SnapshotJob, T)> {
        while is_wanted() {
            self = match self.try_cut(at_cut) {
                Ok(cut) => return Some(cut),
                Err(NotCut::Later(pending) | NotCut::BusyScript(pending)) => pending,
                Err(NotCut::ScriptEnded) => return None,
            };
            std::thread::sleep(GRACE_LOOK);
        }
        // No client is held for it any longer. Threads that wait as well say so again.
        self.keyspace.shards.stoppers.end_wait();
        None
    }

    /// Marks all shards, behind the closed gate.
    fn cut<T>(&self, at_cut: &dyn Fn() -> T) -> Option<(CutParts, T)> {
        let node = &self.keyspace.node;
        self.keyspace.shards.stoppers.end_wait();
        if node.scripting.must_end() {
            return None;
        }
        let mut snapshot = Snapshot::new(node.hasher);
        let (mut sizes, mut fields_expire) = (Vec::new(), false);
        for shard in 0..self.keyspace.shards.len() {
            let mut shard = self.keyspace.shards.lock(shard);
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
        let libraries = node.scripting.libraries.read().iter().cloned().collect();
        Some((CutParts { snapshot, sizes, fields_expire, libraries }, at_cut()))
    }
}

/// A snapshot's parts of the moment of its cut.
struct CutParts {
    snapshot: Snapshot,
    sizes: Vec<DatabaseSizes>,
    fields_expire: bool,
    libraries: Vec<Arc<Library>>,
}

impl CutParts {
    fn job(self, keyspace: Arc<SharedKeyspace>, pass: Pass) -> SnapshotJob {
        let Self { snapshot, sizes, fields_expire, libraries } = self;
        let waits = ThreadWaits::default();
        SnapshotJob { keyspace, snapshot, pass, waits, sizes, fields_expire, libraries }
    }
}

impl SnapshotJob {
    /// Prepares a snapshot; `None` if another one is being taken.
    pub fn reserve(keyspace: &Arc<SharedKeyspace>) -> Option<PendingSnapshot> {
        let pass = keyspace.gate.register_as(SNAPSHOT_PASS)?;
        Some(PendingSnapshot { keyspace: Arc::clone(keyspace), pass, wait: None, attempts: 0 })
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
        let Pacing { progress, key_delay_us, cancel, publish } = pacing;
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
            // The limit of memory counts what the step has freed and what no longer only the
            // snapshot needs at the same moment.
            publish();
            progress.keys.fetch_add(keys, Ordering::Relaxed);
            if key_delay_us != 0 {
                let is_wanted = || {
                    self.snapshot.look_again();
                    publish();
                    !cancel.load(Ordering::Relaxed) && (pacing.key_delay_us)() == key_delay_us
                };
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
