//! Checking a command's admission again when it holds its shards.
//!
//! A thread that kills a client, changes users or pauses commands waits until the threads inside
//! the gate have left it. A command that leaves the gate before it begins, to close it, therefore
//! has to look again when it holds its shards.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use acl::User;
use engine::LockedShards;

use super::outcome::Outcome;
use super::worker::Worker;
use crate::clients::record::ClientRecord;
use crate::clients::session::Session;
use crate::state::node::{Node, PAUSE_NONE};

/// The work of a command on its shards, given those and the hashes of its keys. Called at most
/// once.
pub(crate) type Work<'a> = &'a mut dyn FnMut(&mut Worker, LockedShards<'_>, &[u64]) -> Outcome;

/// The conditions under which a client's command, or a later attempt to answer it, was admitted.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) record: &'a ClientRecord,
    pub(crate) may_write: bool,
    pub(crate) steady_ms: i64,
    /// The generation of users.
    pub(crate) users: u64,
    /// The user of the command. `None`: any change of users counts.
    pub(crate) user: Option<&'a Arc<User>>,
}

impl<'a> Admission<'a> {
    /// That of a command of a client.
    pub(crate) fn of(session: &'a Session, may_write: bool, steady_ms: i64) -> Self {
        let (record, user) = (&*session.record, Some(session.user()));
        Self { record, may_write, steady_ms, users: session.users_generation(), user }
    }

    /// The outcome of a command that is no longer allowed to begin.
    fn withdrawn(&self, node: &Node) -> Option<Outcome> {
        if self.record.location.is_killed() {
            return Some(Outcome::Close);
        }
        if self.is_outdated(node) {
            return Some(Outcome::Paused);
        }
        let pauses = node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        (pauses && node.is_paused(self.may_write, self.steady_ms)).then_some(Outcome::Paused)
    }

    /// Whether the command must leave expired keys in place: a pause has begun since, during which
    /// the keyspace does not change.
    fn keeps_expired(&self, node: &Node) -> bool {
        let pauses = node.pause.load(Ordering::Relaxed) != PAUSE_NONE;
        pauses && !self.may_write && node.pause_left_ms(self.steady_ms) > 0
    }

    /// Whether the user has changed since. The executor asks for the new rules when the outcome
    /// says that the command is paused.
    pub(super) fn is_outdated(&self, node: &Node) -> bool {
        node.users.generation() != self.users && !self.user.is_some_and(|user| is_same(node, user))
    }
}

#[cold]
fn is_same(node: &Node, user: &Arc<User>) -> bool {
    node.users.find(user.name()).is_some_and(|now| Arc::ptr_eq(&now, user))
}

/// The outcome of a command that is no longer allowed to begin.
pub(crate) fn withdrawn(admission: Option<Admission<'_>>, node: &Node) -> Option<Outcome> {
    admission.and_then(|admission| admission.withdrawn(node))
}

/// Does `work`, unless the command's admission has been withdrawn.
pub(crate) fn if_admitted(
    admission: Option<Admission<'_>>,
    worker: &mut Worker,
    locked: LockedShards<'_>,
    hashes: &[u64],
    work: Work<'_>,
) -> Outcome {
    let kept_expired = match begin_admitted(admission, worker) {
        Ok(kept_expired) => kept_expired,
        Err(outcome) => return outcome,
    };
    let outcome = work(worker, locked, hashes);
    worker.turn.keep_expired = kept_expired;
    outcome
}

/// Begins an admitted command. Returns the value to restore in the turn's `keep_expired` after it.
///
/// # Errors
/// The command's outcome, if its admission has been withdrawn.
#[inline]
pub(crate) fn begin_admitted(
    admission: Option<Admission<'_>>,
    worker: &mut Worker,
) -> Result<bool, Outcome> {
    if let Some(outcome) = withdrawn(admission, &worker.node) {
        return Err(outcome);
    }
    let kept_expired = worker.turn.keep_expired;
    worker.turn.keep_expired |= admission.is_some_and(|it| it.keeps_expired(&worker.node));
    Ok(kept_expired)
}
