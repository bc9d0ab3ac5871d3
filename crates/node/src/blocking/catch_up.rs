//! Catching up with work that a thread has deferred, as far as the shards are free now.

use engine::LockedShards;

use super::end::give_up;
use super::serve::serve_key_changed;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, ShardLocks};

/// Items of each kind that are looked at in one go, so that it takes no longer than some requests.
/// Items whose shards are still in use come after the rest.
const CAUGHT_UP_MAX: usize = 256;

impl Worker {
    /// Does a part of the deferred work, as far as that is possible now. Inside the gate.
    pub fn catch_up<L: ShardLocks>(&mut self, locks: &L, waker: &dyn ClientWaker) {
        let watched = take_first(&mut self.deferred.watched);
        let waiters = take_first(&mut self.deferred.waiters);
        let changed = take_first(&mut self.deferred.changed);
        for watched in watched {
            self.leave_watched(watched, &mut LockedShards::Each(locks));
        }
        for waiter in waiters {
            give_up(self, &waiter, locks);
        }
        for key in changed {
            serve_key_changed(self, key, locks);
        }
        self.deliver_wakes(waker);
    }
}

fn take_first<T>(list: &mut Vec<T>) -> Vec<T> {
    let rest = list.split_off(list.len().min(CAUGHT_UP_MAX));
    std::mem::replace(list, rest)
}
