//! Why commands that change keys are refused: what they change could not be kept on the disk.
//!
//! While nothing is refused, a command pays nothing: a bit of the worker's `remote` leads those
//! that are concerned to `Node::refusal`, and threads set it when they take over what has
//! changed.

use engine::Error;
use engine::error::server::ServerError;
use parking_lot::Mutex;

use crate::node::Node;

/// What fails.
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

impl Node {
    /// Refuses commands that change keys, with this error, or does not any more for this cause.
    pub fn refuse_writes(&self, cause: Cause, text: Option<String>) {
        let mut texts = self.refusals.0.lock();
        let place = &mut texts[cause as usize];
        if *place != text {
            *place = text;
            self.follow_change();
        }
    }

    /// Why a command that changes keys is refused, if it is.
    pub(crate) fn refusal(&self) -> Option<Error> {
        // Of two causes Redis names the snapshot.
        let text = self.refusals.0.lock().iter().flatten().next().cloned();
        text.map(|text| ServerError::NotKept(text).into())
    }

    /// Whether commands that change keys are refused.
    pub(crate) fn refuses_writes(&self) -> bool {
        self.refusals.0.lock().iter().any(Option::is_some)
    }
}
