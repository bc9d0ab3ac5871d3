//! Why commands that change keys are refused: their changes could not be kept on the disk.
//!
//! While nothing is refused, a command pays nothing: a bit of the worker's admission mask leads
//! commands that change keys to `Node::refusal`, and threads set it when they take over a change.

use engine::Error;
use engine::error::server::ServerError;
use parking_lot::Mutex;

/// The part that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Snapshots: `stop-writes-on-bgsave-error`.
    Snapshot,
    /// The append-only file.
    AppendOnly,
}

/// Why writes are refused at the moment.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<[Option<String>; 2]>);

impl Refusals {
    /// Sets or clears the error for a cause. Returns whether that changes something.
    pub(super) fn set(&self, cause: Cause, text: Option<String>) -> bool {
        let mut texts = self.0.lock();
        let changes = texts[cause as usize] != text;
        texts[cause as usize] = text;
        changes
    }

    /// The error that is replied, if writes are refused.
    pub(super) fn first(&self) -> Option<Error> {
        // Of two causes Redis names the snapshot.
        let text = self.0.lock().iter().flatten().next().cloned();
        text.map(|text| ServerError::NotKept(text).into())
    }

    pub(crate) fn any(&self) -> bool {
        self.0.lock().iter().any(Option::is_some)
    }
}
