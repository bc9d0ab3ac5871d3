//! Keeping to `maxmemory` outside commands, before large input is received and between turns, and
//! to `maxmemory-clients`.

use node::{Host, client_line};

use crate::system::server_log::{notice, warning};
use crate::threads::io_thread::IoThread;
use crate::threads::message::Message;
use crate::threads::shared::SharedState;

impl IoThread {
    /// Whether a client's input may take so many bytes now. If not, it is received in a later turn,
    /// when enough has been evicted. A large value arrives before its command, so the limit must be
    /// checked here.
    pub(crate) fn has_room_for(&mut self, bytes: usize) -> bool {
        let Self { shared, access, worker, .. } = self;
        if !worker.is_limited() {
            return true;
        }
        let locks = shared.enter(access.as_deref());
        let has_room = worker.expect_input(&locks, &**shared, bytes);
        if !has_room {
            worker.received(sys::allocator::thread_bytes());
        }
        has_room
    }

    /// Closes the largest clients if all together take more than `maxmemory-clients`.
    #[inline]
    pub(crate) fn keep_clients_small(&mut self) {
        if self.worker.has_too_large_clients() {
            self.evict_clients();
        }
    }

    #[cold]
    fn evict_clients(&mut self) {
        let Self { shared, worker, .. } = self;
        let none_left = worker.evict_clients(|record| {
            notice!(
                "Evicting client: {}",
                client_line(record, &worker.node, worker.turn.steady_ms)
            );
            shared.close_client(record);
        });
        if none_left {
            warning!("Over client maxmemory after evicting all evictable clients");
        }
    }

    /// Continues to evict, if there was no time for more before the commands.
    pub(crate) fn evict_on(&mut self) {
        let Self { shared, access, worker, .. } = self;
        if worker.take_limit_changed() {
            // Sleeping threads wake and publish the memory that they have taken.
            let threads = shared.threads.handles.read().len();
            (1..threads).for_each(|thread| shared.send(thread, Message::Resume));
            warn_of_limit(shared, worker.config.eviction.maxmemory);
        }
        let locks = shared.enter(access.as_deref());
        worker.go_on_evicting(&locks, &**shared);
    }
}

fn warn_of_limit(shared: &SharedState, limit: u64) {
    let used = &shared.node.used_memory;
    let used = used.sum(&used.of_thread(0), sys::allocator::thread_bytes());
    if used > limit {
        warning!(
            "The limit of memory, {limit} bytes, is below the {used} in use: keys are evicted, or \
             commands that may take memory refused, as 'maxmemory-policy' says"
        );
    }
}
