//! The threads on which a channel or pattern has subscribers, and how many on each.

/// Threads with their numbers of subscribers, none of them 0, in no order.
#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<(u32, u32)>);

impl Threads {
    /// Adds a subscriber on a thread.
    pub(crate) fn add(&mut self, thread: usize) {
        match self.0.iter_mut().find(|(at, _)| *at as usize == thread) {
            Some((_, clients)) => *clients += 1,
            None => {
                // Nearly always there is one thread.
                self.0.reserve_exact(1);
                self.0.push((thread as u32, 1));
            }
        }
    }

    /// Removes a subscriber on a thread.
    pub(crate) fn remove(&mut self, thread: usize) {
        let Some(at) = self.0.iter().position(|(at, _)| *at as usize == thread) else {
            debug_assert!(false, "only a subscribed client unsubscribes");
            return;
        };
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.swap_remove(at);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Subscribers on all threads.
    pub(crate) fn clients(&self) -> usize {
        self.0.iter().map(|(_, clients)| *clients as usize).sum()
    }

    /// The threads, each with its number of subscribers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().map(|(thread, clients)| (*thread as usize, *clients as usize))
    }
}
