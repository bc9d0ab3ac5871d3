//! What a thread has to do in shards that others hold, and can do later: nothing of this is an
//! answer to a client, so nobody on this thread has to wait for whoever holds the shard.

use std::sync::Arc;

use engine::LockedShards;

use super::worker::Worker;
use crate::blocking::{self, Waiter};
use crate::host::{ClientWaker, ShardLocks};
use crate::transactions::WatchedKeys;

/// What of each kind is looked at in one go, so that it takes no longer than some requests. What is
/// still in use comes behind the rest.
const CAUGHT_UP_MAX: usize = 256;

/// What waits for shards that were in use.
#[derive(Debug, Default)]
pub(crate) struct PutOff {
    /// Keys that clients do not watch any more.
    pub(crate) watched: Vec<WatchedKeys>,
    /// Clients that are gone and stand in the queues of keys.
    pub(crate) waiters: Vec<Arc<Waiter>>,
    /// Keys that have changed, by database, whose blocked clients have to be served.
    pub(crate) changed: Vec<(usize, Vec<u8>)>,
}

impl Worker {
    /// Whether something was put off: [`catch_up`](Self::catch_up) from time to time.
    #[inline]
    pub fn has_put_off(&self) -> bool {
        let PutOff { watched, waiters, changed } = &self.put_off;
        !(watched.is_empty() && waiters.is_empty() && changed.is_empty())
    }

    /// Takes over what the thread has put off while it had no access to the keyspace.
    pub fn take_over(&mut self, busy: &mut Self) {
        let PutOff { watched, waiters, changed } = &mut busy.put_off;
        self.put_off.watched.append(watched);
        self.put_off.waiters.append(waiters);
        self.put_off.changed.append(changed);
    }

    /// Does a part of what was put off, as far as that is possible now. Inside the gate.
    pub fn catch_up<L: ShardLocks>(&mut self, locks: &L, waker: &dyn ClientWaker) {
        let PutOff { watched, waiters, changed } = &mut self.put_off;
        let (watched, waiters) = (take_first(watched), take_first(waiters));
        let changed = take_first(changed);
        for watched in watched {
            watched.leave(self, &mut LockedShards::Each(locks));
        }
        for waiter in waiters {
            blocking::give_up(self, &waiter, locks);
        }
        for (db, key) in changed {
            blocking::serve_key_changed(self, (db, key), locks);
        }
        blocking::deliver(self, waker);
    }
}

fn take_first<T>(list: &mut Vec<T>) -> Vec<T> {
    let rest = list.split_off(list.len().min(CAUGHT_UP_MAX));
    std::mem::replace(list, rest)
}
