//! Work that a thread has deferred because the shards were in use. None of it is an answer to a
//! client, so no client of this thread has to wait for the command that holds the shard.

use std::sync::Arc;

use engine::LockedShards;

use super::worker::Worker;
use crate::clients::session::Session;
use crate::clients::watched_keys::WatchedKeys;
use crate::state::waiter::{ChangedKey, Waiter};

/// Work that waits for shards that were in use.
#[derive(Debug, Default)]
pub(crate) struct DeferredWork {
    /// Keys that clients no longer watch.
    pub(crate) watched: Vec<WatchedKeys>,
    /// Clients that are gone and stand in the queues of keys.
    pub(crate) waiters: Vec<Arc<Waiter>>,
    /// Keys that have changed, whose blocked clients have to be served.
    pub(crate) changed: Vec<ChangedKey>,
}

impl Worker {
    /// Whether work was deferred: call `catch_up` from time to time.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        let DeferredWork { watched, waiters, changed } = &self.deferred;
        !(watched.is_empty() && waiters.is_empty() && changed.is_empty())
    }

    /// Takes over the work that the thread has deferred while it had no access to the keyspace.
    pub fn take_over(&mut self, busy: &mut Self) {
        let DeferredWork { watched, waiters, changed } = &mut busy.deferred;
        self.deferred.watched.append(watched);
        self.deferred.waiters.append(waiters);
        self.deferred.changed.append(changed);
    }

    /// Ends the watch of keys, one shard after another; later for those whose shards are in use.
    pub(crate) fn leave_watched(&mut self, watched: WatchedKeys, shards: &mut LockedShards<'_>) {
        self.deferred.watched.extend(watched.leave_free(self.node.map, shards));
    }

    /// Ends the watch of all keys of a client, one shard after another.
    pub(crate) fn unwatch(&mut self, session: &mut Session, shards: &mut LockedShards<'_>) {
        if let Some(watched) = session.watched.take() {
            self.leave_watched(*watched, shards);
            session.record.set_watch(None);
        }
    }

    /// Forgets the queued commands and the watched keys of a client.
    pub(crate) fn discard(&mut self, session: &mut Session, shards: &mut LockedShards<'_>) {
        if let Some(transaction) = session.transaction.take() {
            self.keep_for_next(transaction);
            session.record.set_transaction(None);
        }
        self.unwatch(session, shards);
    }
}
