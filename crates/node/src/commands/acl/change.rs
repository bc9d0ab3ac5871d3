//! ACL SETUSER (<https://redis.io/docs/latest/commands/acl-setuser/>) and ACL DELUSER, and the
//! effect of every change of users on their clients.
//!
//! When a change is replied to, no command runs or will run that only the old rules allowed:
//!
//! ```text
//!   1. the users change      commands that start now check the new rules
//!   2. grace period          earlier commands have ended, or left the gate and check again
//!   3. clients of removed users, and those with a subscription that is denied now, are marked
//!      as killed and closed
//!   4. blocked clients get an error if their command is denied now
//! ```
//!
//! In a transaction, clients must not see effects of later commands either: see `UserChanges`.

use std::sync::Arc;

use acl::log::DenialOrigin;
use acl::{DEFAULT_USER, EditError};
use engine::{AclError, Error, echo};
use resp::{Args, Reply};

use super::in_transaction;
use crate::clients::record::{ClientRecord, flag};
use crate::execution::access;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::{ClientWaker, Host};
use crate::state::user_changes::Changed;

pub(super) fn set(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let name = args.text(2);
    if acl::has_blanks(name) {
        return Err(AclError::UserName.into());
    }
    let words: Vec<&[u8]> = args.iter().skip(3).collect();
    let node = Arc::clone(&cx.worker.node);
    let context = node.users.context_of(&node.config());
    // Very many words take long, which must not delay the gate.
    let mut had_channels = false;
    let set = cx.outside(|_| {
        let user = node.users.edited(name, &words, context)?;
        let name = Arc::clone(user.name());
        let is_set = cx.commit(|| {
            had_channels = node.users.put(user).is_some_and(|before| before.has_channels());
        });
        Ok(is_set.then_some(name))
    });
    let set = set.map_err(|error| match error {
        EditError::Unmatched(word) => AclError::Unmatched(echo(&word)),
        EditError::Word(word, reason) => AclError::Word(echo(&word), reason.to_string()),
    })?;
    let Some(name) = set else {
        cx.outcome = Outcome::Close;
        return Ok(());
    };
    settle(cx, Changed::Rules(name, had_channels));
    reply.ok();
    Ok(())
}

pub(super) fn delete(
    cx: &mut NodeCx<'_>,
    args: &mut Args<'_>,
    reply: &mut Reply<'_>,
) -> Result<(), Error> {
    let names: Vec<&[u8]> = args.iter().skip(2).collect();
    if names.contains(&DEFAULT_USER) {
        return Err(AclError::DefaultUser.into());
    }
    let deleted = cx.worker.node.users.remove(&names);
    settle(cx, Changed::Gone(names.into_iter().map(<[u8]>::to_vec).collect()));
    reply.len(deleted);
    Ok(())
}

/// Applies a change of users to their clients, and ends the command; see the head of this file.
pub(super) fn settle(cx: &mut NodeCx<'_>, changed: Changed) {
    // Changes in a script are applied immediately.
    if cx.is_nested && !cx.worker.turn.in_script {
        return in_transaction::add(cx, &changed);
    }
    let me = cx.session.record.id;
    cx.after_grace(move |worker, host| close_denied(worker, host, me, Some(&changed)));
}

/// Closes the clients of removed users, and those with a subscription that is denied now. Ends the
/// waits of blocked clients whose command is denied.
pub(super) fn close_denied(
    worker: &Worker,
    host: &dyn Host,
    me: u64,
    changed: Option<&Changed>,
) -> Outcome {
    let node = &worker.node;
    let (gone, others): (Vec<_>, Vec<_>) = {
        let users = node.users.read();
        let is_denied = |record: &Arc<ClientRecord>| match users.find_same(&record.user()) {
            Some(user) => {
                changed.is_some_and(|changed| changed.may_deny_channels(user))
                    && record.has(flag::PUBSUB)
                    && record.exceeds(user)
            }
            None => true,
        };
        node.clients.all().into_iter().partition(is_denied)
    };
    let mut outcome = Outcome::Done;
    for record in gone {
        if record.id == me {
            // The client's own connection is closed after the reply.
            outcome = Outcome::Close;
            continue;
        }
        node.kill(&record);
        host.close_client(&record);
    }
    others.iter().for_each(|record| end_denied_wait(worker, host, record));
    outcome
}

/// Ends the wait of a blocked client whose command is denied now.
pub(super) fn end_denied_wait(
    worker: &Worker,
    waker: &dyn ClientWaker,
    record: &Arc<ClientRecord>,
) {
    let node = &worker.node;
    let Some(waiter) = node.waits.find(record.id) else { return };
    let Some(user) = node.users.find_same(&record.user()) else { return };
    let entry = &worker.table.entries()[usize::from(waiter.command())];
    let Err(denied) = access::check(&user, entry, &waiter.args()) else { return };
    let args = waiter.args();
    let error =
        access::note_denied(worker, record, &user, entry, &args, denied, DenialOrigin::TopLevel);
    if waiter.deny(error) {
        waker.wake_client(record);
    }
}
