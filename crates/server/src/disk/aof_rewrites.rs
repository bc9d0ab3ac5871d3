//! Rewrites on the thread that writes the append-only file: when one is due, how it begins, and how
//! it ends.

use std::sync::atomic::Ordering;

use persist::aof::{Aof, Cut, WholeBase};

use super::aof_files::names;
use super::aof_lock::AofLock;
use super::aof_requests::Request;
use super::aof_thread::{AofThread, RETRY_MS, now_ms};
use super::aof_writer::AofWriter;
use super::rewrite::{self, Rewrite, RewriteWatch, format_of};
use super::snapshot_job::{NotCut, SnapshotJob};
use crate::keyspace::shim::now_us;
use crate::log::places::Places;
use crate::system::real_disk::RealDisk;
use crate::system::server_log::{notice, warning};

/// Consecutive failures before the next automatic rewrite is deferred, and for how long: twice as
/// long after each further one, as in Redis.
const FAILURES_MAX: u64 = 3;
/// After the first failures.
const GROWN_RETRY_MS: i64 = 5000;
const DEFERRED_MINUTES_MAX: i64 = 60;

impl AofThread {
    /// Begins a rewrite that is due: asked for, or because the file has grown, or because nothing
    /// can be written before.
    pub(super) fn begin_due(&mut self) {
        let now_ms = now_ms();
        let waits = self.is_suspended || self.rewrite.is_some() || now_ms < self.deferred_until_ms;
        if waits || !(self.is_due || self.needs_base() || self.has_grown()) {
            self.slow_commands = None;
            return;
        }
        if self.writer.as_ref().is_some_and(|writer| writer.aof.is_syncing()) {
            // As soon as that is over.
            return;
        }
        if self.figures.is_enabled && !self.source.is_followed() {
            // Writes of a thread that does not log yet would be missing after the cut.
            return;
        }
        if let Some(wait) = &mut self.slow_commands {
            // No client is held while another snapshot is written.
            if self.keyspace.node.snapshots.figures.lock().running.is_none() {
                wait.go_on(now_us(), &self.keyspace.shards.stoppers);
            }
            if !wait.period.is_over() {
                return;
            }
        }
        match self.begin_rewrite() {
            Ok(()) | Err(None) => {}
            Err(Some(reason)) => self.rewrite_failed(&reason),
        }
    }

    pub(super) fn needs_base(&self) -> bool {
        self.writer.as_ref().is_some_and(|writer| writer.aof.needs_base())
    }

    fn has_grown(&self) -> bool {
        let Some(writer) = &self.writer else { return false };
        let config = &self.config.append_only;
        let (percent, least) =
            (config.auto_aof_rewrite_percentage, config.auto_aof_rewrite_min_size);
        let (current, base) = (writer.current_bytes(), writer.base_bytes().max(1));
        let growth = current.saturating_sub(base).saturating_mul(100) / base;
        percent > 0 && current > least && growth >= percent
    }

    /// Takes the cut and begins a base.
    ///
    /// # Errors
    /// The reason. `None` if another snapshot is being taken or keys are loaded; then it is tried
    /// again.
    pub(super) fn begin_rewrite(&mut self) -> Result<(), Option<String>> {
        if self.keyspace.node.is_loading() {
            return Err(None);
        }
        // BGREWRITEAOF writes a base also where no append-only file is written.
        let was_off = self.writer.is_none();
        // A rewrite that was not asked for, after one that has failed.
        let is_again = !self.is_due && self.rewrite_complaint.is_fresh(now_ms());
        let source = &self.source;
        let at_cut = || Cut { position: source.cut(), database: 0 };
        let mut pending = SnapshotJob::reserve(&self.keyspace).ok_or(None)?;
        pending.attempts = self.slow_commands.take().map_or(0, |wait| wait.attempts);
        let (job, cut) = pending.try_cut(&at_cut).map_err(|why| {
            if let NotCut::Later(pending) = why {
                self.slow_commands = pending.wait;
            }
            None
        })?;
        if was_off {
            let disk = RealDisk::of_working_directory();
            if self.rewrite_lock.is_none() {
                let lock = AofLock::take(&disk, &self.config).map_err(Some)?;
                self.rewrite_lock = Some((lock, Places::of(&disk, &self.config)));
            }
            let aof = Aof::open(disk, names(&self.config));
            let aof = aof.map_err(|error| Some(error.to_string()))?;
            self.writer = Some(AofWriter::without_base(aof, cut.position));
        }
        let writer = self.writer.as_mut().ok_or(None)?;
        let _ = writer.write(&mut self.source, cut.position, None);
        let format = format_of(self.config.append_only.aof_use_rdb_preamble);
        let base = match writer.begin_rewrite(cut, format) {
            Ok(base) => base,
            Err(error) => {
                if was_off {
                    self.writer = None;
                }
                return Err(Some(error.to_string()));
            }
        };
        let watch = RewriteWatch::default();
        let rewrite = Rewrite::new(job, base, &self.keyspace.node, &self.config);
        let caller = self.caller.clone();
        let done = move |result| caller.call(Request::Based(result));
        if let Err(error) = rewrite::start(rewrite, watch.clone(), done) {
            if let Some(writer) = &mut self.writer {
                writer.aof.abort_rewrite();
            }
            return Err(Some(error.to_string()));
        }
        if !is_again {
            notice!("Background append only file rewriting started");
        }
        self.is_due = false;
        self.rewrite = Some(watch);
        self.figures.rewrites += 1;
        self.figures.rewrite_began_ms = Some(now_ms());
        Ok(())
    }

    pub(super) fn rewrite_failed(&mut self, reason: &str) {
        let now_ms = now_ms();
        if self.rewrite_complaint.is_due(reason, now_ms) {
            warning!("Background AOF rewrite terminated with error: {reason}");
        }
        self.is_due = false;
        self.figures.has_last_rewrite_failed = true;
        self.figures.rewrites_failed_in_row += 1;
        let needs_base = self.needs_base();
        let failures = self.figures.rewrites_failed_in_row;
        self.deferred_until_ms = now_ms
            + match failures {
                _ if needs_base => RETRY_MS,
                ..FAILURES_MAX => GROWN_RETRY_MS,
                _ => {
                    let doublings = (failures - FAILURES_MAX).min(6);
                    (1 << doublings).min(DEFERRED_MINUTES_MAX) * 60_000
                }
            };
    }

    pub(super) fn based(&mut self, result: Result<WholeBase, String>) {
        let Some(watch) = self.rewrite.take() else { return };
        let began_ms = self.figures.rewrite_began_ms.take();
        let seconds = began_ms.map(|began| (now_ms() - began) / 1000);
        self.figures.last_rewrite_seconds = seconds;
        let saved = watch.progress.saved_bytes_peak.load(Ordering::Relaxed);
        self.figures.last_saved_bytes = saved;
        let Some(writer) = &mut self.writer else { return };
        let finished =
            result.and_then(|base| writer.finish_rewrite(base).map_err(|error| error.to_string()));
        match finished {
            Ok(()) => {
                notice!("Background AOF rewrite finished successfully");
                self.rewrite_complaint.end();
                self.figures.has_last_rewrite_failed = false;
                self.figures.rewrites_failed_in_row = 0;
                self.deferred_until_ms = 0;
                self.delete_history();
                // The log that an earlier process has left belongs to the former files.
                if let Some(places) = self.source.places() {
                    places.remove_previous();
                } else if let Some((_, places)) = &self.rewrite_lock {
                    places.remove_previous();
                    places.remove();
                }
                if !self.figures.is_enabled {
                    // It was asked for while no append-only file is written.
                    let _ = self.close();
                }
            }
            Err(reason) => {
                writer.aof.abort_rewrite();
                self.rewrite_failed(&reason);
                if !self.figures.is_enabled {
                    self.writer = None;
                }
            }
        }
    }

    pub(super) fn delete_history(&mut self) {
        if self.config.append_only.aof_disable_auto_gc {
            return;
        }
        if let Some(Err(error)) = self.writer.as_mut().map(|writer| writer.aof.delete_history()) {
            warning!("Files that the append-only file no longer needs remain: {error}");
        }
    }

    /// Gives up a rewrite while there is no append-only file otherwise.
    pub(super) fn end_rewrite_without_file(&mut self) {
        if self.writer.is_some() {
            self.give_up_rewrite();
            let _ = self.close();
        }
        self.rewrite_lock = None;
    }

    /// Ends a rewrite that is in progress, and waits until it has ended.
    pub(super) fn give_up_rewrite(&mut self) {
        let Some(watch) = &self.rewrite else { return };
        watch.cancel.store(true, Ordering::Relaxed);
        self.wait_until(|thread| thread.rewrite.is_none());
    }
}
