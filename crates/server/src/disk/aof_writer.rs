//! The log on its way to the append-only file: which part is written and which is durable, and how
//! failures of the disk are handled.
//!
//! ```text
//!     kept         durable        written            readable
//!   ---+--------------+--------------+-------------------+----> position
//!      |              | not synced   | not written yet   |
//!      | up to here the log may be forgotten: a process that is killed finds it in the files
//! ```
//!
//! Mostly `kept` is `written`, because the files survive the end of the process. It lags while the
//! manifest does not name the file that is written: after a failed sync, until a new base is whole.
//!
//! This is a state machine over a [`Disk`], without threads and clocks.

use persist::aof::{
    Aof, AofBatch, AofError, BaseFormat, Cut, NewBase, PendingSync, TriedSync, WholeBase,
};
use persist::disk::{Disk, DiskError};

use crate::log::left_log::LeftCommands;
use crate::log::ring_reader::{LogProgress, LogSource};

pub struct AofWriter<D: Disk> {
    pub(super) aof: Aof<D>,
    written: u64,
    kept: u64,
    /// The error of the disk, while writing or syncing fails.
    failure: Option<DiskError>,
    /// There is no base yet, so written bytes are of no use.
    is_first: bool,
    /// The files lack loaded keys: until there is a base, the failure stays.
    lacks_base: bool,
    /// Bytes of the files before the one that is written.
    bytes_before: u64,
    /// Bytes of all files when the last rewrite was over.
    base_bytes: u64,
}

impl<D: Disk> AofWriter<D> {
    /// Continues files that were loaded up to this position, and have so many bytes before the last
    /// one.
    ///
    /// # Errors
    /// See [`Aof::resume`].
    pub fn resume(mut aof: Aof<D>, position: u64, bytes_before: u64) -> Result<Self, AofError> {
        aof.resume(position)?;
        Ok(Self::behind(aof, position, bytes_before))
    }

    /// The same if the files, of so many bytes, do not say that they end there.
    ///
    /// # Errors
    /// See [`Aof::resume_in_new_file`].
    pub fn resume_in_new_file(
        mut aof: Aof<D>,
        position: u64,
        bytes: u64,
    ) -> Result<Self, AofError> {
        aof.resume_in_new_file(position)?;
        Ok(Self::behind(aof, position, bytes))
    }

    fn behind(aof: Aof<D>, position: u64, bytes_before: u64) -> Self {
        let base_bytes = bytes_before + aof.segment_bytes();
        Self {
            aof,
            written: position,
            kept: position,
            failure: None,
            is_first: false,
            lacks_base: false,
            bytes_before,
            base_bytes,
        }
    }

    /// Begins where files, of so many bytes, were loaded that cannot be written: nothing is written
    /// before there is a base, and it has failed until then.
    pub fn without_files(aof: Aof<D>, position: u64, bytes: u64, failure: DiskError) -> Self {
        let failure = Some(failure);
        Self { failure, lacks_base: true, ..Self::behind(aof, position, bytes) }
    }

    /// Begins without a base: nothing is written before [`begin_rewrite`](Self::begin_rewrite).
    pub fn without_base(aof: Aof<D>, position: u64) -> Self {
        Self {
            aof,
            written: position,
            kept: position,
            failure: None,
            is_first: true,
            lacks_base: false,
            bytes_before: 0,
            base_bytes: 0,
        }
    }

    /// Writes the readable bytes, up to a position.
    ///
    /// # Errors
    /// The error of the disk; the next call tries again.
    pub fn write(
        &mut self,
        source: &mut impl LogSource,
        until: u64,
        unix_seconds: Option<i64>,
    ) -> Result<(), ()> {
        if self.is_first && self.aof.needs_base() {
            // The base will have it.
            self.written = self.written.max(until);
        }
        while self.written < until && !self.aof.needs_base() {
            let (aof, written) = (&mut self.aof, &mut self.written);
            let mut result = Ok(());
            source.with_bytes(*written, until, &mut |parts, end| {
                result = aof.append(&AofBatch { parts, end, unix_seconds });
                if result.is_ok() {
                    *written = end;
                }
            });
            self.note(result)?;
            if !self.lacks_base && self.failure.as_ref().is_some_and(is_of_write) {
                self.failure = None;
            }
        }
        self.keep();
        Ok(())
    }

    /// Written bytes may be forgotten, if a start finds them in the files.
    fn keep(&mut self) {
        if self.is_first || self.aof.is_found_again() {
            self.kept = self.written;
        }
    }

    /// Remembers an error of the disk. The other errors say what must be done first.
    fn note<T>(&mut self, result: Result<T, AofError>) -> Result<T, ()> {
        result.map_err(|error| {
            if let AofError::Disk(error) = error {
                self.failure = Some(error);
            }
        })
    }

    /// Syncs the bytes written so far.
    pub fn sync(&mut self) {
        let synced = self.aof.sync();
        if self.note(synced).is_ok() {
            self.is_synced();
        }
    }

    /// Begins a sync for another thread, if there is something to sync and no sync is in progress.
    pub fn begin_sync(&mut self) -> Option<PendingSync<D::File>> {
        if self.aof.needs_base() || self.aof.is_syncing() {
            return None;
        }
        let pending = self.aof.begin_sync();
        self.note(pending).ok()
    }

    /// Takes the result of that sync.
    pub fn finish_sync(&mut self, tried: TriedSync) {
        let synced = self.aof.finish_sync(tried);
        if self.note(synced).is_ok() {
            self.is_synced();
        }
    }

    /// A sync has succeeded, which ends a failure, unless a base is due.
    fn is_synced(&mut self) {
        let may_write = |failure: &DiskError| !is_of_write(failure);
        if !self.aof.needs_base()
            && self.aof.is_found_again()
            && self.failure.as_ref().is_some_and(may_write)
        {
            self.failure = None;
        }
    }

    /// Writes and syncs the commands that the log of a killed process had after the files.
    ///
    /// Each part without a gap is a batch of its own, so that positions and bytes of a batch agree:
    /// if this is interrupted, the next start continues in the log where the file ends then. For
    /// the same reason the log continues after the last command, and not after a gap that follows.
    ///
    /// # Errors
    /// The error of the disk.
    pub fn append_left(&mut self, left: &LeftCommands) -> Result<(), AofError> {
        let mut at = 0;
        for part in &left.parts {
            let bytes = &left.bytes[at..part.until];
            self.aof.append(&AofBatch {
                parts: [bytes, &[]],
                end: part.end,
                unix_seconds: None,
            })?;
            (at, self.written) = (part.until, part.end);
        }
        self.aof.sync()?;
        self.keep();
        Ok(())
    }

    /// Begins a rewrite; everything before the cut was written, or cannot be.
    ///
    /// # Errors
    /// Why it cannot begin. Everything is as before.
    pub fn begin_rewrite(
        &mut self,
        cut: Cut,
        format: BaseFormat,
    ) -> Result<NewBase<D::File>, AofError> {
        if self.written < cut.position && !self.aof.needs_base() {
            // The bytes before the cut could not be written: a new file would begin after a gap.
            return Err(AofError::NeedsBase);
        }
        let before = self.bytes_before + self.aof.segment_bytes();
        let base = self.aof.begin_rewrite(cut, format)?;
        self.bytes_before = before;
        self.written = cut.position;
        self.keep();
        Ok(base)
    }

    /// Ends a rewrite.
    ///
    /// # Errors
    /// Why it has failed. Everything is as before.
    pub fn finish_rewrite(&mut self, base: WholeBase) -> Result<(), AofError> {
        let bytes = base.bytes;
        self.aof.finish_rewrite(base)?;
        (self.is_first, self.lacks_base) = (false, false);
        self.bytes_before = bytes;
        self.base_bytes = self.current_bytes();
        self.keep();
        // The files that could not be synced are no longer needed.
        if !self.aof.needs_base() {
            self.failure = None;
        }
        Ok(())
    }

    /// Ends writing.
    ///
    /// # Errors
    /// When not everything could be made durable.
    pub fn close(mut self) -> Result<(), AofError> {
        self.aof.close()
    }

    /// Whether there is no base yet, and never was.
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Whether everything before a position is in the files, and nothing has failed.
    pub fn has_all(&self, until: u64) -> bool {
        let is_whole = self.is_first || !self.aof.needs_base();
        is_whole && self.failure.is_none() && self.written >= until
    }

    /// Everything before this position is written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Everything before this position may be forgotten.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// Whether something was written that is not synced.
    pub fn has_unsynced(&self) -> bool {
        self.aof.durable() < self.written
    }

    /// The error of the disk, while writing or syncing fails.
    pub fn failure(&self) -> Option<&DiskError> {
        self.failure.as_ref()
    }

    /// How far the log has reached the disk. Before there is a base, nothing can be durable. The
    /// caller adds whether replies wait for syncs.
    pub fn progress(&self) -> LogProgress {
        let synced = (!self.is_first).then(|| self.aof.durable());
        let has_failed = self.failure.is_some();
        LogProgress { written: self.kept, synced, waits: false, has_failed }
    }

    /// Bytes of all files.
    pub fn current_bytes(&self) -> u64 {
        self.bytes_before + self.aof.segment_bytes()
    }

    /// The same when the last rewrite was over, or at start.
    pub fn base_bytes(&self) -> u64 {
        self.base_bytes
    }
}

/// Whether writing failed, not syncing.
fn is_of_write(failure: &DiskError) -> bool {
    use persist::disk::DiskOperation;
    matches!(failure.operation, DiskOperation::Append | DiskOperation::Truncate)
}
