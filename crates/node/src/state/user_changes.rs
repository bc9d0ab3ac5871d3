//! The effects on clients of changes of users in a transaction, until all of it has run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acl::User;

use super::node::Node;
use crate::clients::record::{ClientRecord, flag};

/// A change of users. As in Redis it concerns the clients that run as the user now, whatever their
/// user was when they subscribed.
#[derive(Debug)]
pub(crate) enum Changed {
    /// The rules of a user, and whether it was allowed channels before. A user without channels has
    /// none to lose.
    Rules(Arc<[u8]>, bool),
    /// The users of these names are gone.
    Gone(Vec<Vec<u8>>),
    /// Any user may have changed, or be gone.
    All,
}

impl Changed {
    /// Whether clients of a user may have subscriptions that are denied now.
    pub(crate) fn may_deny_channels(&self, user: &User) -> bool {
        match self {
            Self::Rules(name, had_channels) => *had_channels && name == user.name(),
            Self::Gone(_) => false,
            Self::All => true,
        }
    }
}

/// The effects of a transaction's changes on clients. Other clients do not change meanwhile: they
/// are looked up once, however many changes there are.
#[derive(Debug)]
pub(crate) struct UserChanges {
    pub(crate) me: u64,
    /// The own client has lost a channel, and is the default user since.
    pub(crate) has_lost_user: bool,
    /// The other clients, by the names of their users.
    pub(crate) clients: BTreeMap<Arc<[u8]>, Clients>,
    pub(crate) changed: BTreeSet<Arc<[u8]>>,
    /// The clients that are closed at the end.
    pub(crate) killed: Vec<Arc<ClientRecord>>,
}

/// The clients that run as one user.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    pub(crate) subscribed: Vec<Arc<ClientRecord>>,
    /// The clients without subscriptions.
    pub(crate) others: Vec<Arc<ClientRecord>>,
    /// The blocked clients of both lists.
    pub(crate) blocked: Vec<Arc<ClientRecord>>,
    /// The user whose rules allow all that they are subscribed to.
    pub(crate) allowed: Option<Arc<User>>,
}

impl UserChanges {
    /// Applies a change to the clients of the users that it concerns.
    pub(crate) fn apply(&mut self, node: &Node, changed: &Changed) {
        match changed {
            Changed::Rules(name, _) => {
                let user = node.users.read().find(name).cloned();
                user.iter().for_each(|user| self.follow(node, user, changed));
            }
            Changed::Gone(names) => names.iter().for_each(|name| self.kill_gone(node, name)),
            Changed::All => {
                let is_gone = |name: &&Arc<[u8]>| node.users.find_same(name).is_none();
                let gone: Vec<_> = self.clients.keys().filter(is_gone).cloned().collect();
                gone.iter().for_each(|name| self.kill_gone(node, name));
                let users: Vec<_> = self.clients.keys().cloned().collect();
                for user in users.iter().filter_map(|name| node.users.find_same(name)) {
                    self.follow(node, &user, changed);
                }
            }
        }
    }

    /// The blocked clients of the users whose rules have changed.
    pub(crate) fn blocked(&self) -> impl Iterator<Item = &Arc<ClientRecord>> {
        let changed = self.changed.iter().filter_map(|name| self.clients.get(name));
        changed.flat_map(|clients| &clients.blocked)
    }

    pub(crate) fn begin(node: &Node, me: u64) -> Box<Self> {
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
}
