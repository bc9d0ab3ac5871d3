//! Changes of users in a transaction, during which no other command runs.
//!
//! As in Redis each of them counts at once, whatever the later commands do. A client whose user is
//! gone, or that has lost a channel, receives nothing from then on, and is closed when all of the
//! transaction has run. A client that is blocked on a command that is denied now is not served
//! before its wait is ended.

use std::sync::Arc;

use super::change::{close_denied, end_denied_wait};
use crate::clients::record::flag;
use crate::execution::after_grace::AfterGrace;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::ClientWaker;
use crate::state::user_changes::{Changed, UserChanges};

/// Applies a change of users to clients, as far as that is done at once.
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

/// Ends the waits of blocked clients whose command is denied now, before they are served. Returns
/// what is left to do when the transaction has run.
pub(crate) fn end(changes: Box<UserChanges>, worker: &Worker, waker: &dyn ClientWaker) -> Outcome {
    for record in changes.blocked() {
        end_denied_wait(worker, waker, record);
    }
    AfterGrace::outcome(move |worker, host| {
        changes.killed.iter().for_each(|record| host.close_client(record));
        close_denied(worker, host, changes.me, None)
    })
}
