//! The threads on which a channel or pattern has subscribers, and how many on each.

/// The share of a thread in a channel or pattern: one of the numbers is not 0.
#[derive(Clone, Copy, Debug)]
struct ThreadShare {
    thread: u16,
    /// Clients that are about to move there. They are counted on another thread.
    arriving: u16,
    /// Clients that are counted there.
    clients: u32,
}

/// Threads with their numbers of subscribers, in no order.
#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<ThreadShare>);

impl Threads {
    /// Adds a subscriber on a thread.
    pub(crate) fn add(&mut self, thread: usize) {
        self.share(thread).clients += 1;
    }

    /// Sends messages to a thread, too, because a subscriber is about to move there.
    pub(crate) fn follow(&mut self, thread: usize) {
        self.share(thread).arriving += 1;
    }

    /// Moves the count of a subscriber to the thread that it [follows](Self::follow) on.
    pub(crate) fn transfer(&mut self, from: usize, to: usize) {
        let share = self.share(to);
        share.clients += 1;
        share.arriving = share.arriving.saturating_sub(1);
        self.remove(from);
    }

    fn share(&mut self, thread: usize) -> &mut ThreadShare {
        let at = self.0.iter().position(|share| usize::from(share.thread) == thread);
        let at = at.unwrap_or_else(|| {
            // Nearly always there is one thread.
            self.0.reserve_exact(1);
            self.0.push(ThreadShare { thread: thread as u16, arriving: 0, clients: 0 });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// Removes a subscriber on a thread.
    pub(crate) fn remove(&mut self, thread: usize) {
        let at = self.0.iter().position(|share| usize::from(share.thread) == thread);
        let Some(at) = at.filter(|at| self.0[*at].clients > 0) else {
            debug_assert!(false, "only a subscribed client unsubscribes");
            return;
        };
        let share = &mut self.0[at];
        share.clients -= 1;
        if share.clients == 0 && share.arriving == 0 {
            self.0.swap_remove(at);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Subscribers on all threads.
    pub(crate) fn clients(&self) -> usize {
        self.0.iter().map(|share| share.clients as usize).sum()
    }

    /// The threads, each with its number of subscribers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.0.iter().map(|share| (usize::from(share.thread), share.clients as usize))
    }
}
