//! Changes of users in a transaction, beside which no other command runs.
//!
//! As in Redis each of them counts at once, whatever the commands behind it do. Nothing reaches a
//! client any more whose user is gone or that has lost a channel. They are closed when all of the
//! transaction has run. Who is blocked on a command that is denied then is not served before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acl::User;

use super::change::{Changed, close_denied, end_denied_wait};
use crate::clients::record::{ClientRecord, flag};
use crate::execution::after_grace::AfterGrace;
use crate::execution::node_cx::NodeCx;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::ClientWaker;
use crate::node::Node;

/// What the changes of a transaction have done to clients. All but its own stay as they are
/// meanwhile: they are looked up once, however many changes there are.
#[derive(Debug)]
pub(crate) struct UserChanges {
    /// The own client.
    me: u64,
    /// The own client has lost a channel, and is the default user since.
    has_lost_user: bool,
    /// The other clients, by the name of whom they run as.
    clients: BTreeMap<Arc<[u8]>, Clients>,
    /// The users whose rules have changed.
    changed: BTreeSet<Arc<[u8]>>,
    /// Those of the clients that are closed at the end.
    killed: Vec<Arc<ClientRecord>>,
}

/// The clients that run as one user.
#[derive(Debug, Default)]
struct Clients {
    subscribed: Vec<Arc<ClientRecord>>,
    /// Those without subscriptions.
    others: Vec<Arc<ClientRecord>>,
    /// Those of both that are blocked.
    blocked: Vec<Arc<ClientRecord>>,
    /// The user whose rules allow all that they are subscribed to.
    allowed: Option<Arc<User>>,
}

impl UserChanges {
    /// Brings a change to bear on clients, as far as that is done at once.
    pub(super) fn add(cx: &mut NodeCx<'_>, changed: &Changed) {
        let (node, me) = (Arc::clone(&cx.worker.node), Arc::clone(&cx.session.record));
        let known = cx.worker.user_changes.take();
        let mut changes = known.unwrap_or_else(|| Self::begin(&node, me.id));
        match changed {
            Changed::Rules(name, _) => {
                let user = node.users.read().find(name).cloned();
                user.iter().for_each(|user| changes.follow(&node, user, changed));
            }
            Changed::Gone(names) => names.iter().for_each(|name| changes.kill_gone(&node, name)),
            Changed::All => {
                let is_gone = |name: &&Arc<[u8]>| node.users.find_same(name).is_none();
                let gone: Vec<_> = changes.clients.keys().filter(is_gone).cloned().collect();
                gone.iter().for_each(|name| changes.kill_gone(&node, name));
                let users: Vec<_> = changes.clients.keys().cloned().collect();
                for user in users.iter().filter_map(|name| node.users.find_same(name)) {
                    changes.follow(&node, &user, changed);
                }
            }
        }
        let own = node.users.find_same(cx.session.user().name());
        let own = own.filter(|user| changed.may_deny_channels(user));
        changes.has_lost_user = me.has(flag::PUBSUB) && own.is_some_and(|user| me.exceeds(&user));
        if changes.has_lost_user {
            cx.session.lose_user(&node.users);
        }
        cx.worker.user_changes = Some(changes);
    }

    fn begin(node: &Node, me: u64) -> Box<Self> {
        let mut clients: BTreeMap<_, Clients> = BTreeMap::new();
        for record in node.clients.all().into_iter().filter(|record| record.id != me) {
            let of_user = clients.entry(record.user()).or_default();
            if node.waits.find(record.id).is_some() {
                of_user.blocked.push(Arc::clone(&record));
            }
            let is_subscribed = record.has(flag::PUBSUB);
            let list = if is_subscribed { &mut of_user.subscribed } else { &mut of_user.others };
            list.push(record);
        }
        let (changed, killed) = (BTreeSet::new(), Vec::new());
        Box::new(Self { me, has_lost_user: false, clients, changed, killed })
    }

    /// Kills those clients of a user that have subscriptions which its rules deny now.
    fn follow(&mut self, node: &Node, user: &Arc<User>, changed: &Changed) {
        let Some(clients) = self.clients.get_mut(user.name()) else { return };
        self.changed.insert(Arc::clone(user.name()));
        // Most changes are not about channels.
        let allowed = clients.allowed.as_ref();
        if !changed.may_deny_channels(user)
            || allowed.is_some_and(|allowed| allowed.has_same_channels(user))
        {
            return;
        }
        for record in clients.subscribed.extract_if(.., |record| record.exceeds(user)) {
            node.kill(&record);
            self.killed.push(record);
        }
        clients.allowed = Some(Arc::clone(user));
    }

    /// Kills the clients of a user that is gone.
    fn kill_gone(&mut self, node: &Node, name: &[u8]) {
        let Some(Clients { subscribed, others, .. }) = self.clients.remove(name) else { return };
        for record in subscribed.into_iter().chain(others) {
            node.kill(&record);
            self.killed.push(record);
        }
    }

    /// Whether the own client is not any more who it was, since this was asked last.
    pub(crate) fn take_lost_user(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_user)
    }

    /// Ends the waits of blocked clients whose command is denied now, before they are served.
    pub(crate) fn end_denied_waits(&self, worker: &Worker, waker: &dyn ClientWaker) {
        let changed = self.changed.iter().filter_map(|name| self.clients.get(name));
        for record in changed.flat_map(|clients| &clients.blocked) {
            end_denied_wait(worker, waker, record);
        }
    }

    /// What is left to do when the transaction has run.
    pub(crate) fn outcome(self) -> Outcome {
        AfterGrace::outcome(move |worker, host| {
            self.killed.iter().for_each(|record| host.close_client(record));
            close_denied(worker, host, self.me, None)
        })
    }
}
