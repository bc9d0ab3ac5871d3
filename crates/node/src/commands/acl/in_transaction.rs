//! Changes of users in a transaction, during which no other command runs.
//!
//! As in Redis, each change takes effect immediately, whatever later commands do. A client whose
//! user was removed, or that lost a channel, receives nothing from then on, and is closed after the
//! transaction. The wait of a client that is blocked on a denied command ends before it is served.

use std::sync::Arc;

use super::change::{close_denied, end_denied_wait};
use crate::clients::record::flag;
use crate::execution::after_grace::AfterGrace;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::ClientWaker;
use crate::state::user_changes::{Changed, UserChanges};

/// Applies the immediate part of a change of users to clients.
pub(super) fn add(cx: &mut NodeCx<'_>, changed: &Changed) {
    let (node, me) = (Arc::clone(&cx.worker.node), Arc::clone(&cx.session.record));
    let known = cx.worker.user_changes.take();
    let mut changes = known.unwrap_or_else(|| UserChanges::begin(&node, me.id));
    changes.apply(&node, changed);
    let own = node.users.find_same(cx.session.user().name());
    let own = own.filter(|user| changed.may_deny_channels(user));
    changes.has_lost_user = me.has(flag::PUBSUB) && own.is_some_and(|user| me.exceeds(&user));
    if changes.has_lost_user {
        cx.session.lose_user(&node.users);
    }
    cx.worker.user_changes = Some(changes);
}

/// Ends the waits of blocked clients whose command is denied now, before they are served. The
/// outcome does the rest after the transaction.
pub(crate) fn end(changes: Box<UserChanges>, worker: &Worker, waker: &dyn ClientWaker) -> Outcome {
    for record in changes.blocked() {
        end_denied_wait(worker, waker, record);
    }
    AfterGrace::outcome(move |worker, host| {
        changes.killed.iter().for_each(|record| host.close_client(record));
        close_denied(worker, host, changes.me, None)
    })
}
