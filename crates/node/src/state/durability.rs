//! Up to where the append-only file is durable, and the waits of WAITAOF and WAIT.
//!
//! A client waits for its own writes: each thread knows the position in the log after its last
//! append, and a client's session the position after its own last write. The thread that syncs the
//! file publishes the durable position. A position in a log that has ended is reached with the
//! first base of the next one, which has all earlier writes.

use parking_lot::Mutex;
use store::LogPosition;

/// Up to where the append-only file is durable.
#[derive(Debug, Default)]
pub struct Durability(Mutex<Option<LogPosition>>);

impl Durability {
    /// Sets the durable position; `None` if there is no file, or no base of it yet.
    pub fn set(&self, place: Option<LogPosition>) {
        *self.0.lock() = place;
    }

    /// Whether there is a base, so that anything is durable.
    pub fn has_base(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Whether a client's writes up to `written` are durable; `None` if it has written nothing.
    pub fn has(&self, written: Option<LogPosition>) -> bool {
        match (*self.0.lock(), written) {
            (None, _) => false,
            (Some(reached), Some(written)) if reached.log == written.log => {
                written.position <= reached.position
            }
            (Some(_), _) => true,
        }
    }
}

/// A wait of WAITAOF or WAIT.
#[derive(Clone, Copy, Debug)]
pub struct LogWait {
    /// The position after the client's last write.
    pub written: Option<LogPosition>,
    /// The copies that it waits for.
    pub copies: AwaitedCopies,
}

/// The copies of its writes that a client waits for. There are no replicas, so only the timeout
/// ends a wait for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AwaitedCopies {
    /// WAITAOF: append-only files.
    Files {
        /// It waits for that of this server.
        local: bool,
        /// It waits for those of replicas.
        replicas: bool,
    },
    /// WAIT: the memory of so many replicas.
    Replicas(i64),
}

impl LogWait {
    /// Whether it waits for the append-only file of this server.
    pub fn is_local(&self) -> bool {
        matches!(self.copies, AwaitedCopies::Files { local: true, .. })
    }

    /// Whether there is nothing left to wait for.
    pub fn is_over(&self, durability: &Durability) -> bool {
        match self.copies {
            AwaitedCopies::Files { local, replicas } => {
                !replicas && (!local || durability.has(self.written))
            }
            AwaitedCopies::Replicas(count) => count <= 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_the_same_log_are_compared() {
        let place = |log, position| Some(LogPosition { log, position });
        let durability = Durability::default();
        for written in [None, place(1, 5)] {
            assert!(!durability.has(written), "there is no file");
        }
        durability.set(place(2, 7));
        for (written, is_durable) in [
            (None, true),
            (place(1, 9), true),
            (place(2, 6), true),
            (place(2, 7), true),
            (place(2, 8), false),
        ] {
            assert_eq!(durability.has(written), is_durable, "{written:?}");
        }
    }
}
