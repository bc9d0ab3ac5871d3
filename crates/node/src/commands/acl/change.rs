//! ACL SETUSER (<https://redis.io/docs/latest/commands/acl-setuser/>) and ACL DELUSER, and what
//! every change of users does to their clients.
//!
//! When a change is answered, no command runs or will run that the rules before it allowed and
//! those behind it deny:
//!
//! ```text
//!   the users are changed     what begins now asks for the new rules
//!   grace period              what began before is over, or leaves the gate and asks again
//!   clients of users that     are marked as killed, and closed
//!     are gone, and with sub-
//!     scriptions that are
//!     denied now
//!   blocked clients           get an error if their command is denied now
//! ```
//!
//! In a transaction, beside which no other command runs, each change marks those with subscriptions
//! that it denies, at once. The rest follows when all of it has run.

use std::collections::BTreeMap;
use std::sync::Arc;

use acl::log::Origin;
use acl::{DEFAULT_USER, EditError, User};
use engine::{AclError, Error, echo};
use resp::{Args, Reply};

use crate::clients::record::{ClientRecord, flag};
use crate::clients::users::context_of;
use crate::execution::access;
use crate::execution::after_grace::AfterGrace;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::Host;
use crate::node::Node;

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
    let context = context_of(&node.config());
    // Very many words take long, and the gate must not be held up by them.
    let mut changed = Changed::Nobody;
    let set = cx.outside(|_| {
        let user = node.users.edited(name, &words, context)?;
        Ok(cx.commit(|| {
            // As in Redis, who was allowed no channel before has none to lose.
            let before = node.users.put(user).filter(|before| before.has_channels());
            changed = before.map_or(Changed::Nobody, |user| Changed::User(Arc::clone(user.name())));
        }))
    });
    let is_set = set.map_err(|error| match error {
        EditError::Unmatched(word) => AclError::Unmatched(echo(&word)),
        EditError::Word(word, reason) => AclError::Word(echo(&word), reason.to_string()),
    })?;
    if !is_set {
        cx.outcome = Outcome::Close;
        return Ok(());
    }
    settle(cx, changed);
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
    settle(cx, Changed::Nobody);
    reply.len(deleted);
    Ok(())
}

/// Whose clients may have subscriptions that a change denies. As in Redis a client is looked at
/// when the rules change of the user that it runs as now, whoever it was when it subscribed.
#[derive(Debug)]
pub(super) enum Changed {
    /// Nobody's.
    Nobody,
    /// Those of the user of this name.
    User(Arc<[u8]>),
    /// Everyone's.
    All,
}

impl Changed {
    fn has(&self, user: &User) -> bool {
        match self {
            Self::Nobody => false,
            Self::User(name) => name == user.name(),
            Self::All => true,
        }
    }
}

/// Brings a change of users to bear on their clients, which ends the command; see the head of this
/// file.
pub(super) fn settle(cx: &mut NodeCx<'_>, changed: Changed) {
    // What a script leaves is done at once.
    if cx.is_nested && !cx.worker.turn.in_script {
        return settle_in_transaction(cx, &changed);
    }
    let me = cx.session.record.id;
    cx.after_grace(move |worker, host| close_denied(worker, host, me, &changed));
}

/// Closes the clients of users that are gone, and those that have subscriptions which the change
/// denies. Ends the waits of blocked clients whose command is denied.
fn close_denied(worker: &Worker, host: &dyn Host, me: u64, changed: &Changed) -> Outcome {
    let node = &worker.node;
    let (gone, others): (Vec<_>, Vec<_>) = {
        let users = node.users.read();
        let is_denied = |record: &Arc<ClientRecord>| match users.find_same(&record.user()) {
            Some(user) => changed.has(user) && record.has(flag::PUBSUB) && record.exceeds(user),
            None => true,
        };
        node.clients.all().into_iter().partition(is_denied)
    };
    let mut outcome = Outcome::Done;
    for record in gone {
        if record.id == me {
            // Its reply is sent first.
            outcome = Outcome::Close;
            continue;
        }
        node.kill(&record);
        host.close_client(&record);
    }
    others.iter().for_each(|record| end_denied_wait(worker, host, record));
    outcome
}

/// What the commands of a transaction that change users do to clients. No other command runs
/// meanwhile, so that all clients but the own one stay as they are: those with subscriptions are
/// looked up once, however many of these commands there are, and the rest is done once at the end.
#[derive(Debug)]
pub(crate) struct UserChanges {
    /// The own client.
    me: u64,
    /// The own client has lost a channel, and is the default user since.
    has_lost_user: bool,
    /// The other clients that have subscriptions, by the name of whom they run as.
    subscribed: BTreeMap<Arc<[u8]>, Subscribed>,
    /// Those of them that have lost a channel: they are closed, whatever the commands behind do.
    killed: Vec<Arc<ClientRecord>>,
}

/// The clients with subscriptions that run as one user.
#[derive(Debug, Default)]
struct Subscribed {
    clients: Vec<Arc<ClientRecord>>,
    /// The user whose rules allow all that they are subscribed to.
    allowed: Option<Arc<User>>,
}

impl UserChanges {
    fn begin(node: &Node, me: u64) -> Box<Self> {
        let mut subscribed: BTreeMap<_, Subscribed> = BTreeMap::new();
        let is_other = |record: &Arc<ClientRecord>| record.id != me && record.has(flag::PUBSUB);
        for record in node.clients.all().into_iter().filter(is_other) {
            subscribed.entry(record.user()).or_default().clients.push(record);
        }
        Box::new(Self { me, has_lost_user: false, subscribed, killed: Vec::new() })
    }

    /// Kills those clients of a user that have subscriptions which its rules deny now.
    fn kill_denied(&mut self, node: &Node, user: &Arc<User>) {
        let Some(Subscribed { clients, allowed }) = self.subscribed.get_mut(user.name()) else {
            return;
        };
        // Most changes are not about channels.
        if allowed.as_ref().is_some_and(|allowed| allowed.has_same_channels(user)) {
            return;
        }
        for record in clients.extract_if(.., |record| record.exceeds(user)) {
            node.kill(&record);
            self.killed.push(record);
        }
        *allowed = Some(Arc::clone(user));
    }

    /// Whether the own client is not any more who it was, since this was asked last.
    pub(crate) fn take_lost_user(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_user)
    }

    /// What is left to do when the transaction has run.
    pub(crate) fn outcome(self) -> Outcome {
        AfterGrace::outcome(move |worker, host| {
            self.killed.iter().for_each(|record| host.close_client(record));
            close_denied(worker, host, self.me, &Changed::Nobody)
        })
    }
}

/// The same as [`settle`] in a transaction, as far as it is done at once: what the next command
/// changes does not count for those who lose a channel by this one.
fn settle_in_transaction(cx: &mut NodeCx<'_>, changed: &Changed) {
    let (node, me) = (Arc::clone(&cx.worker.node), Arc::clone(&cx.session.record));
    let begin = || UserChanges::begin(&node, me.id);
    let changes = cx.worker.user_changes.get_or_insert_with(begin);
    let users = node.users.read();
    match changed {
        Changed::Nobody => {}
        Changed::User(name) => {
            users.find(name).inspect(|user| changes.kill_denied(&node, user));
        }
        Changed::All => users.iter().for_each(|user| changes.kill_denied(&node, user)),
    }
    let own = users.find_same(cx.session.user().name()).filter(|user| changed.has(user));
    changes.has_lost_user = me.has(flag::PUBSUB) && own.is_some_and(|user| me.exceeds(user));
    drop(users);
    if changes.has_lost_user {
        cx.session.lose_user(&node.users);
    }
}

/// Ends the wait of a blocked client that would not be allowed to begin now.
fn end_denied_wait(worker: &Worker, host: &dyn Host, record: &Arc<ClientRecord>) {
    let node = &worker.node;
    let Some(waiter) = node.waits.find(record.id) else { return };
    let Some(user) = node.users.find_same(&record.user()) else { return };
    let entry = &worker.table.entries()[usize::from(waiter.command())];
    let Err(denied) = access::check(&user, entry, &waiter.args()) else { return };
    let request = (entry, &waiter.args());
    let error = access::note_denied(worker, (record, &user), request, denied, Origin::TopLevel);
    if waiter.deny(error) {
        host.wake_client(record);
    }
}
