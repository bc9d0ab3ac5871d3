//! The end of a file: where it may be, where it is, and the repair that moves it there.

use super::damage::AofTail;
use crate::disk::{DiskError, DiskFile};

/// Whether a file may end as a crash leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOrder {
    /// Another file follows, so this one was complete once.
    Earlier,
    /// This is the last file.
    Last,
}

/// The end of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AofEnd {
    /// How many bytes are complete commands and transactions.
    pub valid_to: u64,
    /// The position in the log after these bytes, where a batch gives it.
    pub log_end: Option<u64>,
    /// The last of these bytes are a batch: the process that wrote `log_end` wrote nothing after
    /// it.
    pub ends_with_batch: bool,
    /// How many commands are in these bytes.
    pub commands: u64,
    /// How many of these bytes have no checksum.
    pub unsealed: u64,
    /// The tail that is dropped after them.
    pub tail: Option<AofTail>,
    /// Moves the end of the file there. Apply it before anything is appended.
    pub repair: Option<Repair>,
}

/// Makes a file end after its last complete command or transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The new length.
    pub truncate_to: u64,
    /// The bytes to append then: the early end of a batch, or nothing.
    pub annotation: Vec<u8>,
}

impl Repair {
    /// Repairs the file.
    ///
    /// # Errors
    /// When the disk fails. The same repair can be applied again then.
    pub fn apply<F: DiskFile>(&self, file: &F) -> Result<(), DiskError> {
        file.truncate(self.truncate_to)?;
        if !self.annotation.is_empty() {
            file.append(&[&self.annotation])?;
        }
        file.sync()
    }
}
