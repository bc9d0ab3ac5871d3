//! How many threads run, and how that number changes: a state machine that answers each event with
//! the steps to take. No thread is started or joined here.
//!
//! ```text
//!     set(wanted), fewer: Publish, Leave ...      the leaving threads move their clients and end
//!     set(wanted), more:  (Start, Publish) ..., Rebalance
//!     set(wanted) while threads leave: kept until the last of them has ended
//!     ended(thread): Unlink when it was the last that left, then what was kept
//! ```
//!
//! Invariants, with models in `tests/models`: a thread number is started only when the thread that
//! had it has ended, and is reachable as long as anyone may send to it.

/// One step of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// From now on threads below this number take clients.
    Publish(usize),
    /// Tell this thread to move its clients to others and end.
    Leave(usize),
    /// Start this thread. If that fails, call [`ThreadCount::start_failed`] and drop the rest.
    Start(usize),
    /// Nobody sends to threads from this number on any more.
    Unlink(usize),
    /// The first so many threads move their surplus of clients to those that are new.
    Rebalance(usize),
}

/// The number of threads, the main thread included.
#[derive(Debug)]
pub struct ThreadCount {
    /// Threads that take clients.
    active: usize,
    /// Threads that have been started and have not ended.
    running: usize,
    /// What was asked for while threads were leaving.
    wanted: Option<usize>,
}

impl Default for ThreadCount {
    fn default() -> Self {
        Self { active: 1, running: 1, wanted: None }
    }
}

impl ThreadCount {
    /// Threads that have not ended, without the main thread.
    pub fn others_running(&self) -> usize {
        self.running - 1
    }

    /// Changes the number of threads to `wanted`.
    pub fn set(&mut self, wanted: usize) -> Vec<Step> {
        if self.running > self.active {
            self.wanted = Some(wanted);
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.active, wanted);
        let mut steps = Vec::new();
        if wanted < before {
            steps.push(Step::Publish(wanted));
            steps.extend((wanted..before).map(Step::Leave));
        }
        if wanted > before {
            self.running = wanted;
            for thread in before..wanted {
                steps.extend([Step::Start(thread), Step::Publish(thread + 1)]);
            }
            steps.push(Step::Rebalance(before));
        }
        steps
    }

    /// A thread could not be started: it and those behind it do not exist.
    pub fn start_failed(&mut self, thread: usize) {
        (self.active, self.running) = (thread, thread);
    }

    /// A thread has ended.
    pub fn ended(&mut self) -> Vec<Step> {
        self.running -= 1;
        if self.running > self.active {
            return Vec::new();
        }
        let mut steps = vec![Step::Unlink(self.active)];
        if let Some(wanted) = self.wanted.take() {
            steps.extend(self.set(wanted));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_waits_for_threads_that_leave() {
        let mut count = ThreadCount::default();
        let grown = [
            Step::Start(1),
            Step::Publish(2),
            Step::Start(2),
            Step::Publish(3),
            Step::Rebalance(1),
        ];
        assert_eq!(count.set(3), grown);
        assert_eq!(count.set(1), [Step::Publish(1), Step::Leave(1), Step::Leave(2)]);
        assert_eq!((count.set(4), count.set(2)), (vec![], vec![]));
        assert_eq!((count.others_running(), count.ended()), (2, vec![]));
        let rest = [Step::Unlink(1), Step::Start(1), Step::Publish(2), Step::Rebalance(1)];
        assert_eq!(count.ended(), rest);
        assert_eq!(count.set(2), []);
        assert_eq!(count.set(5).len(), 7);
        count.start_failed(3);
        assert_eq!(count.others_running(), 2);
        assert_eq!(count.set(2), [Step::Publish(2), Step::Leave(2)]);
    }
}
