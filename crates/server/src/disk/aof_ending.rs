//! The end of the process on the thread that writes the append-only file: the file gets everything
//! that was logged, or the rest stays in the ring for the next start.

use std::time::Duration;

use super::aof_requests::IsForced;
use super::aof_thread::{AofThread, RETRY_MS};
use super::aof_writer::AofWriter;
use crate::log::ring_reader::LogSource;
use crate::system::server_log::{notice, warning};

/// Tries to write the first base at the end of the server.
const FIRST_BASE_TRIES: usize = 20;

impl AofThread {
    /// Writes and syncs everything that the other threads, which have ended, have logged.
    pub(super) fn end(&mut self, is_forced: IsForced) {
        self.end_rewrite(is_forced);
        if self.writer.is_none() {
            return;
        }
        if !is_forced {
            self.write_first_base();
        }
        notice!("Calling fsync() on the AOF file.");
        if let Err(reason) = self.write_rest() {
            // As after a kill, the next start continues with the ring.
            warning!("The AOF file can't be written: {reason}");
            return;
        }
        match self.close() {
            Ok(()) => self.remove_ring(),
            // The bytes that the file lacks stay in the ring.
            Err(reason) => warning!("Fail to fsync the AOF file: {reason}"),
        }
    }

    /// Writes everything in the log, even after earlier failures.
    ///
    /// # Errors
    /// When the files do not have all of it. They are synced as far as they can be.
    pub(super) fn write_rest(&mut self) -> Result<(), String> {
        self.wait_for_sync();
        let until = self.source.readable_until();
        self.retry_ms = 0;
        self.write();
        self.wait_for_sync();
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if writer.has_all(until) {
            return Ok(());
        }
        if !writer.aof.needs_base() {
            writer.sync();
        }
        Err("what it lacks is left in the log".to_owned())
    }

    /// Ends a rewrite in progress: cancels it unless it writes the first base, without which the
    /// file has nothing. Rewrites that are due wait until the shutdown is cancelled: one that began
    /// now would prevent the last save.
    pub(super) fn end_rewrite(&mut self, is_forced: IsForced) {
        self.is_suspended = true;
        let is_first = self.writer.as_ref().is_some_and(AofWriter::is_first);
        if is_first && self.figures.is_enabled && is_forced {
            warning!("Writing initial AOF. Exit anyway.");
        }
        if is_first && self.figures.is_enabled && !is_forced {
            self.wait_until(|thread| thread.rewrite.is_none());
        } else {
            self.give_up_rewrite();
        }
    }

    /// Writes the first base of an append-only file if it has not begun. No other thread writes.
    fn write_first_base(&mut self) {
        let is_due = |thread: &Self| thread.writer.as_ref().is_some_and(AofWriter::is_first);
        for _ in 0..FIRST_BASE_TRIES {
            // The file from which keys are loaded has them all.
            if !self.figures.is_enabled || !is_due(self) || self.keyspace.node.is_loading() {
                return;
            }
            match self.begin_rewrite() {
                Ok(()) => self.wait_until(|thread| thread.rewrite.is_none()),
                // Another snapshot ends first.
                Err(None) => {}
                Err(Some(reason)) => self.rewrite_failed(&reason),
            }
            if is_due(self) {
                std::thread::sleep(Duration::from_millis(RETRY_MS as u64));
            }
        }
        warning!("The AOF file has no base: what was written is lost");
    }
}
