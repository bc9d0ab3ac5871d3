//! How many threads run, how many of them are active, and how these numbers change: a state machine
//! that answers each event with the steps to take. It neither starts nor joins threads.
//!
//! ```text
//!     set(wanted), fewer: Publish, Park ..., Leave ...    these move their clients and end
//!     set(wanted), more:  (Start, Publish) ..., Rebalance
//!     set(wanted) while threads leave: kept until the last of them has ended
//!     ended(thread): Unlink after the last that left, then the kept change
//!     end(): from now on threads only end
//!     set_active(fewer): Publish, Park ...               these move their clients and sleep
//!     set_active(more):  Resume ..., Publish, Rebalance
//! ```
//!
//! Invariants, with models in `tests/models`: a thread number is started only when the thread that
//! had it has ended, and is reachable as long as any thread may send to it. The main thread gives
//! clients only to active threads.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadStep {
    /// From now on threads below this number take clients.
    Publish(usize),
    /// Order this thread to move its clients to other threads, and to continue without any.
    Park(usize),
    /// Notify this thread that it takes clients again.
    Resume(usize),
    /// Order this thread to move its clients to other threads and to end.
    Leave(usize),
    /// Start this thread. If that fails, take the steps of [`ThreadCount::start_failed`] instead of
    /// the rest.
    Start(usize),
    /// From now on no thread sends to threads from this number on.
    Unlink(usize),
    /// The active threads, and the main thread, move the clients beyond their share.
    Rebalance,
}

/// The number of threads, the main thread included.
#[derive(Debug)]
pub struct ThreadCount {
    /// Threads that have no order to leave.
    started: usize,
    /// Of those, threads that take clients.
    active: usize,
    /// Threads that have been started and have not ended.
    running: usize,
    /// Threads that took clients before the last change to more.
    active_before: usize,
    /// The numbers requested while threads were leaving: started and active threads.
    wanted: Option<(usize, usize)>,
    /// The server shuts down: the threads that run end, and no other is started.
    ending: bool,
}

impl Default for ThreadCount {
    fn default() -> Self {
        Self { started: 1, active: 1, running: 1, active_before: 1, wanted: None, ending: false }
    }
}

impl ThreadCount {
    /// Threads that have not ended, without the main thread.
    pub fn others_running(&self) -> usize {
        self.running - 1
    }

    /// Threads that have no order to leave.
    pub fn started(&self) -> usize {
        self.started
    }

    /// Threads that take clients, including the main thread, although that does so only as the only
    /// thread.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Changes the number of threads to `wanted`, of which `active` take clients.
    pub fn set(&mut self, wanted: usize, active: usize) -> Vec<ThreadStep> {
        if self.ending {
            return Vec::new();
        }
        if self.running > self.started {
            self.wanted = Some((wanted, active));
            return Vec::new();
        }
        let before = self.started;
        self.active_before = self.active;
        if wanted <= before {
            self.started = wanted;
            let mut steps = self.set_active(active);
            steps.extend((wanted..before).map(ThreadStep::Leave));
            return steps;
        }
        let mut steps = self.set_active(active);
        steps.retain(|step| *step != ThreadStep::Rebalance);
        (self.started, self.running) = (wanted, wanted);
        for thread in before..wanted {
            steps.push(ThreadStep::Start(thread));
            if thread < active.max(2) {
                self.active = thread + 1;
                steps.push(ThreadStep::Publish(thread + 1));
            }
        }
        if self.active > self.active_before {
            steps.push(ThreadStep::Rebalance);
        }
        steps
    }

    /// Changes the number of active threads, as far as there are so many. The main thread does not
    /// suffice when there are others.
    pub fn set_active(&mut self, active: usize) -> Vec<ThreadStep> {
        if self.ending {
            return Vec::new();
        }
        let active = active.clamp(self.started.min(2), self.started);
        let before = std::mem::replace(&mut self.active, active);
        let mut steps = Vec::new();
        if active < before {
            steps.push(ThreadStep::Publish(active));
            steps.extend((active..before.min(self.started)).map(ThreadStep::Park));
        }
        if active > before {
            steps.extend((before..active).map(ThreadStep::Resume));
            steps.extend([ThreadStep::Publish(active), ThreadStep::Rebalance]);
        }
        steps
    }

    /// The server shuts down. From now on the number of threads only falls, even if a change to
    /// more of them waits for threads that leave.
    pub fn end(&mut self) {
        self.ending = true;
        self.wanted = None;
    }

    /// A thread could not be started: it and those after it do not exist. Those before it may have
    /// been started just now.
    pub fn start_failed(&mut self, thread: usize) -> Vec<ThreadStep> {
        (self.started, self.running) = (thread, thread);
        self.active = self.active.min(thread);
        if self.active > self.active_before { vec![ThreadStep::Rebalance] } else { Vec::new() }
    }

    /// Whether fewer threads run than `wanted` and no change is on its way: the system has refused
    /// some.
    pub fn lacks(&self, wanted: usize) -> bool {
        self.started < wanted && self.running == self.started && !self.ending
    }

    pub fn ended(&mut self) -> Vec<ThreadStep> {
        self.running -= 1;
        if self.running > self.started {
            return Vec::new();
        }
        let mut steps = vec![ThreadStep::Unlink(self.started)];
        if let Some((wanted, active)) = self.wanted.take() {
            steps.extend(self.set(wanted, active));
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ThreadStep::{Leave, Park, Publish, Rebalance, Resume, Start, Unlink};

    #[test]
    fn a_change_waits_for_threads_that_leave() {
        let mut count = ThreadCount::default();
        let grown = [Start(1), Publish(2), Start(2), Publish(3), Rebalance];
        assert_eq!(count.set(3, 3), grown);
        assert_eq!(count.set(1, 1), [Publish(1), Leave(1), Leave(2)]);
        assert_eq!((count.set(4, 4), count.set(2, 2)), (vec![], vec![]));
        assert_eq!((count.others_running(), count.ended()), (2, vec![]));
        assert_eq!(count.ended(), [Unlink(1), Start(1), Publish(2), Rebalance]);
        assert_eq!(count.set(2, 2), []);
        assert_eq!(count.set(5, 5).len(), 7);
        assert_eq!(count.start_failed(3), [Rebalance]);
        assert_eq!((count.others_running(), count.active()), (2, 3));
        assert_eq!(count.set(2, 2), [Publish(2), Leave(2)]);
    }

    /// Clients of the main thread go to the threads that were started, and the others are tried
    /// again.
    #[test]
    fn threads_that_are_refused_when_others_have_left_are_lacking() {
        let mut count = ThreadCount::default();
        assert!(count.lacks(4) && !count.lacks(1));
        count.set(3, 3);
        count.set(1, 1);
        assert_eq!(count.set(4, 4), []);
        assert!(!count.lacks(4), "threads leave");
        count.ended();
        assert_eq!(count.ended().len(), 1 + 6 + 1);
        assert_eq!(count.start_failed(3), [Rebalance]);
        assert!(count.lacks(4));
        // Another attempt moves no clients.
        assert_eq!(count.set(4, count.active()), [Start(3)]);
        assert_eq!((count.start_failed(3), count.lacks(4)), (vec![], true));
        assert_eq!(count.set(4, 4), [Start(3), Publish(4), Rebalance]);
        assert!(!count.lacks(4));
        count.set(1, 1);
        (0..3).for_each(|_| drop(count.ended()));
        count.set(4, 4);
        assert_eq!((count.start_failed(1), count.lacks(4)), (vec![], true), "none was started");
        count.end();
        assert!(!count.lacks(4));
    }

    #[test]
    fn no_thread_is_started_while_the_server_shuts_down() {
        let mut count = ThreadCount::default();
        count.set(3, 3);
        count.set(1, 1);
        assert_eq!(count.set(3, 3), [], "it waits for threads that leave");
        count.end();
        assert_eq!((count.ended(), count.ended()), (vec![], vec![Unlink(1)]));
        assert_eq!((count.set(4, 4), count.set_active(2)), (vec![], vec![]));
        assert_eq!(count.others_running(), 0);
    }

    #[test]
    fn threads_that_are_not_active_are_parked() {
        let mut count = ThreadCount::default();
        let started = [Start(1), Publish(2), Start(2), Publish(3), Start(3), Start(4), Rebalance];
        assert_eq!(count.set(5, 3), started);
        assert_eq!(count.set_active(9), [Resume(3), Resume(4), Publish(5), Rebalance]);
        assert_eq!(count.set_active(3), [Publish(3), Park(3), Park(4)]);
        assert_eq!(count.set_active(3), []);
        // The main thread is not active while there are others.
        assert_eq!(count.set_active(1), [Publish(2), Park(2)]);
        assert_eq!(count.set(4, 3), [Resume(2), Publish(3), Rebalance, Leave(4)]);
        // Threads that leave do not prevent others from being parked.
        assert_eq!(count.set_active(2), [Publish(2), Park(2)]);
        assert_eq!(count.ended(), [Unlink(4)]);
        let more = [Resume(2), Resume(3), Publish(4), Start(4), Publish(5), Start(5), Rebalance];
        assert_eq!(count.set(6, 5), more);
        assert_eq!(count.set(1, 1).len(), 1 + 5);
        (0..5).for_each(|_| drop(count.ended()));
        // At least two are active: the main thread and the next one.
        assert_eq!(count.set(2, 1), [Start(1), Publish(2), Rebalance]);
        assert_eq!((count.started(), count.active()), (2, 2));
    }
}
