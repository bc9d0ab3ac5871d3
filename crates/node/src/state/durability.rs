//! Up to where the append-only file is durable, and what a client waits for with WAITAOF.
//!
//! A client waits for its own writes: each thread knows the place in the log behind what it has
//! appended last, and a client's session the place behind what its last write has appended. That a
//! place is reached is told by whoever syncs the file. A place in a log that is no more is reached
//! with the first base of the next one, which has all that was written before.

use parking_lot::Mutex;
use store::LogPosition;

/// Up to where the append-only file is durable.
#[derive(Debug, Default)]
pub struct Durability(Mutex<Option<LogPosition>>);

impl Durability {
    /// It is durable up to a place of its log. None: there is no file, or no base of it yet.
    pub fn set(&self, place: Option<LogPosition>) {
        *self.0.lock() = place;
    }

    /// Whether what a client has written is durable; none if it has written nothing.
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

/// What a client waits for that has sent WAITAOF.
#[derive(Clone, Copy, Debug)]
pub struct LogWait {
    /// Behind what it has written.
    pub written: Option<LogPosition>,
    /// It waits for the append-only file of this server.
    pub local: bool,
    /// It waits for those of replicas. There are none, so only its time ends that.
    pub replicas: bool,
}

impl LogWait {
    /// Whether there is nothing left to wait for.
    pub fn is_over(&self, durability: &Durability) -> bool {
        !self.replicas && (!self.local || durability.has(self.written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_same_log_are_compared() {
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
