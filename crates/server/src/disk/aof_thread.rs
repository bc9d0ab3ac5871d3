//! The thread that writes the log to the append-only file.
//!
//! ```text
//!   clients' threads -> ring -> [write -> sync, by the policy] -> progress -> replies that wait
//!                                  ^          |
//!           requests --------------+          +--> weft-fsync, under everysec
//!           weft-rewrite (a base) -+
//! ```
//!
//! This thread does not wait for clients, and clients' threads wait for it only for room in the
//! ring and, under `appendfsync always`, for durable writes. A failed operation is tried again
//! several times a second, and until it succeeds commands that change keys are refused.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use node::config::{Config, Fsync};
use node::state::append_only_figures::AppendOnlyFigures;
use node::state::refusals::Cause;
use persist::aof::{Aof, PendingSync, TriedSync};
use persist::disk::Disk;

use super::aof_files::names;
use super::aof_lock::AofLock;
use super::aof_requests::{Caller, Request};
use super::aof_writer::AofWriter;
use super::complaint::Complaint;
use super::fsync_thread;
use super::rewrite::RewriteWatch;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::keyspace::stop_waits::{AttemptWait, GRACE_LOOK};
use crate::log::log_slot::LogSlot;
use crate::log::places::Places;
use crate::log::ring::LogRing;
use crate::log::ring_reader::{BATCH_BYTES, LogProgress, LogSource, RingSource};
use crate::system::counted_thread::CountedThread;
use crate::system::files::reason;
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::warning;

/// Between two syncs under everysec.
const SYNC_MS: i64 = 1000;
/// Between two reads of the log while it grows.
const LOOK: Duration = Duration::from_millis(20);
/// While nothing happens.
const IDLE: Duration = Duration::from_secs(1);
/// Between two attempts of a failed operation.
pub(super) const RETRY_MS: i64 = 100;

pub struct AofThread {
    pub(super) keyspace: Arc<SharedKeyspace>,
    pub(super) config: Arc<Config>,
    generation: u64,
    pub(super) source: RingSource,
    pub(super) writer: Option<AofWriter<RealDisk>>,
    requests: Receiver<Request>,
    pub(super) caller: Caller,
    syncer: Sender<PendingSync<RealFile>>,
    pub(super) figures: AppendOnlyFigures,
    /// The progress that was reported last.
    reported: Option<LogProgress>,
    pub(super) rewrite: Option<RewriteWatch>,
    /// While a base is written without an append-only file, with where logs may have been left.
    pub(super) rewrite_lock: Option<(AofLock, Places)>,
    /// The wait for the commands that prevented the cut of a rewrite, which is tried again when
    /// they are over.
    pub(super) slow_commands: Option<AttemptWait>,
    /// A rewrite should begin as soon as it can.
    pub(super) is_due: bool,
    /// The process ends: nothing that is due begins until that is called off.
    pub(super) is_suspended: bool,
    last_sync_ms: i64,
    pub(super) retry_ms: i64,
    pub(super) deferred_until_ms: i64,
    complaint: Complaint,
    /// Of rewrites: a base that is needed is tried several times a second.
    pub(super) rewrite_complaint: Complaint,
    /// When something was last written.
    busy_ms: i64,
    /// Requests for rewrites that have arrived.
    answered: u64,
}

impl AofThread {
    /// A thread that continues with a writer, or has none yet.
    ///
    /// # Errors
    /// When the system refuses the thread that syncs.
    pub fn new(
        keyspace: &Arc<SharedKeyspace>,
        log: &Arc<LogSlot>,
        writer: Option<AofWriter<RealDisk>>,
        caller: Caller,
        requests: Receiver<Request>,
    ) -> io::Result<Self> {
        let syncer = fsync_thread::start(&keyspace.node, caller.clone())?;
        let is_enabled = writer.is_some();
        let mut thread = Self {
            config: keyspace.node.config(),
            generation: keyspace.node.generation(),
            keyspace: Arc::clone(keyspace),
            source: RingSource::new(log),
            writer,
            requests,
            caller,
            syncer,
            figures: AppendOnlyFigures { is_enabled, ..AppendOnlyFigures::default() },
            reported: None,
            rewrite: None,
            rewrite_lock: None,
            slow_commands: None,
            is_due: false,
            is_suspended: false,
            last_sync_ms: now_ms(),
            retry_ms: 0,
            deferred_until_ms: 0,
            complaint: Complaint::default(),
            rewrite_complaint: Complaint::default(),
            busy_ms: now_ms(),
            answered: 0,
        };
        thread.publish();
        Ok(thread)
    }

    /// Runs until the process ends. `ring` is the ring that the threads append to, if there is one.
    pub fn run(mut self, ring: Option<Arc<LogRing>>, memory: &CountedThread<'_>) {
        self.source.count_as(memory.own());
        self.source.replace(ring);
        // A report without a ring reaches no client.
        self.reported = None;
        self.report_progress();
        // The former process may not have got to it.
        self.delete_history();
        loop {
            let (mut time, wake_at) = self.sleep();
            if self.slow_commands.is_some() {
                time = time.min(GRACE_LOOK);
            }
            self.source.wait(time, wake_at);
            if self.config.append_only.appendfsync == Fsync::Always {
                self.source.gather_turns();
            }
            self.follow_config();
            while let Ok(request) = self.requests.try_recv() {
                if let Request::End(is_forced, done) = request {
                    self.end(is_forced);
                    let _ = done.send(());
                    return;
                }
                self.handle(request);
            }
            self.write();
            self.begin_due();
            if self.writer.is_none() && !self.is_due {
                self.rewrite_lock = None;
            }
            self.publish();
            memory.publish();
        }
    }

    /// How long to sleep, and the position at which the log ends the sleep earlier.
    fn sleep(&self) -> (Duration, u64) {
        let Some(writer) = &self.writer else { return (IDLE, u64::MAX) };
        if writer.failure().is_some() || writer.aof.needs_base() || self.is_due {
            return (Duration::from_millis(RETRY_MS as u64), u64::MAX);
        }
        let next = writer.written() + 1;
        if self.config.append_only.appendfsync == Fsync::Always {
            return (IDLE, next);
        }
        // Without syncs, what is not synced stays so.
        let syncs = self.config.append_only.appendfsync != Fsync::No && !self.rests();
        let is_busy = now_ms() - self.busy_ms < SYNC_MS;
        match is_busy || syncs && writer.has_unsynced() {
            // Writers wake it seldom.
            true => (LOOK, writer.written() + BATCH_BYTES),
            false => (IDLE, next),
        }
    }

    fn follow_config(&mut self) {
        let generation = self.keyspace.node.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.keyspace.node.config();
            // It may be allowed by now.
            self.delete_history();
        }
    }

    fn handle(&mut self, request: Request) {
        match request {
            Request::Prepare(done) => {
                if !self.figures.is_enabled {
                    self.end_rewrite_without_file();
                }
                // The append-only file that begins writes a base as well.
                self.is_due = false;
                let _ = done.send(AofLock::take(&RealDisk::of_working_directory(), &self.config));
            }
            Request::Start(ring, done) => {
                let started = self.start(ring);
                self.publish();
                let _ = done.send(started);
            }
            Request::Stop(done) => {
                let stopped = self.stop();
                self.publish();
                let _ = done.send(stopped);
            }
            Request::Flush(done) => {
                self.write();
                let failure = self.writer.as_ref().and_then(AofWriter::failure);
                let _ = done.send(failure.map_or(Ok(()), |failure| Err(failure.to_string())));
            }
            Request::Rewrite(lock) => {
                self.answered += 1;
                self.is_due = true;
                if let Some(lock) = lock {
                    let places = Places::of(&RealDisk::of_working_directory(), &self.config);
                    self.rewrite_lock = Some((lock, places));
                }
                self.deferred_until_ms = 0;
                self.figures.rewrites_failed_in_row = 0;
            }
            Request::EndRewrite(is_forced, done) => {
                self.end_rewrite(is_forced);
                let _ = done.send(());
            }
            Request::GoOn => self.is_suspended = false,
            Request::Synced(tried) => self.synced(tried),
            Request::Based(result) => self.based(result),
            Request::Configured => {}
            // `run` has seen to it.
            Request::End(..) => {}
        }
    }

    /// Writes new bytes of the log, and syncs them as the policy asks.
    pub(super) fn write(&mut self) {
        let until = self.source.readable_until();
        let Some(writer) = &mut self.writer else { return };
        let now_ms = now_ms();
        let is_new = until > writer.written();
        let timestamps = self.config.append_only.aof_timestamp_enabled;
        let unix_seconds = timestamps.then(|| sys::clock::unix_micros().div_euclid(1_000_000));
        let may_try = writer.failure().is_none() || now_ms >= self.retry_ms;
        if !may_try {
            return;
        }
        if is_new {
            self.busy_ms = now_ms;
            let delay_us = self.keyspace.node.log_delay_us.load(Ordering::Relaxed);
            if delay_us > 0 {
                std::thread::sleep(Duration::from_micros(delay_us));
            }
        }
        let _ = writer.write(&mut self.source, until, unix_seconds);
        self.source.release(writer.kept());
        self.sync(now_ms);
        let failed = self.writer.as_ref().is_some_and(|writer| writer.failure().is_some());
        if failed {
            self.retry_ms = now_ms + RETRY_MS;
        }
    }

    fn rests(&self) -> bool {
        self.config.append_only.no_appendfsync_on_rewrite && self.rewrite.is_some()
    }

    fn sync(&mut self, now_ms: i64) {
        let rests = self.rests();
        let Some(writer) = &mut self.writer else { return };
        if rests || !writer.has_unsynced() || writer.aof.needs_base() {
            return;
        }
        let fsync = self.config.append_only.appendfsync;
        let has_failed = writer.failure().is_some();
        match fsync {
            Fsync::Always if !writer.aof.is_syncing() => writer.sync(),
            Fsync::EverySecond if has_failed || now_ms - self.last_sync_ms >= SYNC_MS => {
                if writer.aof.is_syncing() {
                    self.figures.delayed_syncs += u64::from(!has_failed);
                    self.last_sync_ms = now_ms;
                } else if let Some(pending) = writer.begin_sync() {
                    self.last_sync_ms = now_ms;
                    let _ = self.syncer.send(pending);
                }
            }
            // A failure is over when something succeeds.
            Fsync::No if has_failed && !writer.aof.is_syncing() => writer.sync(),
            _ => {}
        }
    }

    fn synced(&mut self, tried: TriedSync) {
        if let Some(writer) = &mut self.writer {
            writer.finish_sync(tried);
        }
    }

    /// Begins an append-only file with a ring into which threads begin to log. Its base begins when
    /// all of them do.
    fn start(&mut self, ring: Arc<LogRing>) -> Result<(), String> {
        self.config = self.keyspace.node.config();
        // A base that BGREWRITEAOF has asked for does not belong to the log that begins.
        self.end_rewrite_without_file();
        let (disk, names) = (RealDisk::of_working_directory(), names(&self.config));
        disk.create_directory(&names.directory).map_err(|error| error.to_string())?;
        let mut aof = Aof::open(disk, names).map_err(|error| error.to_string())?;
        aof.set_log(ring.id()).map_err(|error| error.to_string())?;
        let position = ring.end();
        self.source.replace(Some(ring));
        self.reported = None;
        self.writer = Some(AofWriter::without_base(aof, position));
        self.figures.is_enabled = true;
        self.is_due = true;
        self.deferred_until_ms = 0;
        Ok(())
    }

    fn stop(&mut self) -> Result<(), String> {
        if !self.figures.is_enabled {
            return Ok(());
        }
        self.is_due = false;
        // Without the rewrite the files are as before it, and get the rest of the log.
        self.give_up_rewrite();
        let ended = self.write_rest().and_then(|()| self.close());
        self.writer = None;
        match ended.is_ok() {
            true => {
                self.remove_ring();
                self.source.replace(None);
            }
            // The manifest still names it: the next start of the file continues with it.
            false => self.source.leave(),
        }
        self.figures = AppendOnlyFigures {
            rewrites: self.figures.rewrites,
            last_rewrite_seconds: self.figures.last_rewrite_seconds,
            ..AppendOnlyFigures::default()
        };
        ended
    }

    /// Removes the file of the ring: the append-only file has its bytes, or they are not needed.
    pub(super) fn remove_ring(&self) {
        if let Some(places) = self.source.places() {
            places.remove_own();
        }
    }

    pub(super) fn close(&mut self) -> Result<(), String> {
        self.wait_for_sync();
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.close().map_err(|error| error.to_string())
    }

    pub(super) fn wait_for_sync(&mut self) {
        self.wait_until(|thread| {
            !thread.writer.as_ref().is_some_and(|writer| writer.aof.is_syncing())
        });
    }

    pub(super) fn wait_until(&mut self, is_over: impl Fn(&Self) -> bool) {
        let mut later = Vec::new();
        while !is_over(self) {
            match self.requests.recv() {
                Ok(Request::Synced(tried)) => self.synced(tried),
                Ok(Request::Based(result)) => self.based(result),
                Ok(request) => later.push(request),
                Err(_) => return,
            }
        }
        later.into_iter().for_each(|request| self.caller.call(request));
    }

    /// Publishes how far the log is, and failures.
    fn publish(&mut self) {
        let mut failure = None;
        self.figures.is_rewrite_scheduled = self.is_due;
        let is_first = self.writer.as_ref().is_some_and(AofWriter::is_first);
        let has_failed = self.figures.rewrites_failed_in_row > 0;
        self.figures.awaits_first_base = self.figures.is_enabled && is_first && !has_failed;
        if let Some(writer) = &self.writer {
            failure = writer.failure().map(|failure| reason(&failure.error));
            self.figures.current_bytes = writer.current_bytes();
            self.figures.base_bytes = writer.base_bytes();
            let buffered = self.source.readable_until().saturating_sub(writer.written());
            self.figures.buffered_bytes = buffered;
            self.figures.pending_syncs = u64::from(writer.aof.is_syncing());
        }
        self.complain(failure.as_deref());
        self.figures.has_last_write_failed = failure.is_some();
        if failure.is_some() {
            // Before any client is refused, since it may ask for the reason.
            self.keyspace.node.append_only.lock().has_last_write_failed = true;
        }
        let refusal = failure.map(|text| format!("MISCONF Errors writing to the AOF file: {text}"));
        self.keyspace.node.refuse_writes(Cause::AppendOnly, refusal);
        self.report_progress();
        let mut shown = self.keyspace.node.append_only.lock();
        self.figures.asked = shown.asked;
        if shown.asked == self.answered {
            *shown = self.figures.clone();
        }
    }

    fn report_progress(&mut self) {
        let Some(writer) = &self.writer else { return };
        let mut progress = writer.progress();
        let has_base = progress.synced.is_some();
        progress.waits = self.source.replies_wait(has_base, self.rewrite.is_some());
        if self.reported != Some(progress) {
            self.reported = Some(progress);
            self.source.progress(progress);
        }
    }

    fn complain(&mut self, failure: Option<&str>) {
        match failure {
            None if self.complaint.end() => {
                warning!("AOF write error looks solved. The server can write again.");
            }
            Some(why) if self.complaint.is_due(why, now_ms()) => {
                warning!("Error writing to the AOF file: {why}");
            }
            _ => {}
        }
    }
}

pub(super) fn now_ms() -> i64 {
    sys::clock::steady_micros() / 1000
}
