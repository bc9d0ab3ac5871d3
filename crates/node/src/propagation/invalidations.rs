//! Client-side caching: which clients track keys, and how they are notified of changes.
//!
//! A read is remembered, and clients are notified of a change, before the shards of the command are
//! released (`Worker::publish_changes`). Both happen in the order of the changes of the key, and a
//! notification is written after the replies that its client's thread has made by then. So no
//! client keeps a value that is older than its last notification.
//!
//! ```text
//!   a change --> KeyTables::take --> the record of each client --+
//!            +-> Audience::note ---> its threads take the keys --+--> Delivery::Look, once
//!                                                                          |
//!                            the client's output <-- server <-- its thread-+
//! ```
//!
//! Once clients have tracked keys, all threads look into their inboxes.

use std::sync::Arc;

use engine::Error;
use resp::Out;
use resp::out::SharedMessage;
use tracking::audience::{ChangedKeys, NO_CLIENT};
use tracking::{Conflict, Options, TrackingState};

use crate::clients::client_tracking::{Invalidation, Mode, invalidation_of, write, write_messages};
use crate::clients::record::{ClientRecord, flag};
use crate::clients::session::Session;
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;
use crate::execution::executor::Executor;
use crate::execution::outcome::Outcome;
use crate::execution::worker::Worker;
use crate::host::ShardLocks;
use crate::state::inboxes::Delivery;

/// Keys forgotten in one go.
const FORGOTTEN_MAX: usize = 256;
/// Room that is kept for changed prefixes of a thread.
const CHANGED_KEPT: usize = 64;

/// Begins tracking for a client.
///
/// # Errors
/// The options contradict each other, or earlier ones.
pub(crate) fn begin(
    worker: &mut Worker,
    session: &mut Session,
    options: &Options<'_>,
) -> Result<(), Conflict> {
    let added = TrackingState::begin(&mut session.tracking, options)?;
    let Some(state) = &session.tracking else { return Ok(()) };
    let node = Arc::clone(&worker.node);
    let record = &session.record;
    // Before the first notification.
    node.inboxes.activate_all();
    record.tracking.set_mode(Some(Mode::of(state)));
    record.tracking.set_prefix_bytes(state.prefix_bytes());
    node.trackers.add(record);
    node.trackers.join(&added, record, record.location.place().0 as usize);
    Ok(())
}

/// Ends tracking for a client. Its waiting notifications are dropped.
pub(crate) fn end(worker: &Worker, session: &mut Session) {
    if let Some(state) = session.tracking.take() {
        let (trackers, record) = (&worker.node.trackers, &session.record);
        trackers.leave(&state, record.id);
        trackers.remove(record.id);
        record.tracking.set_mode(None);
        record.tracking.set_prefix_bytes(0);
    }
}

/// Forgets a client that is closed. For its owner.
pub fn forget(worker: &Worker, session: &mut Session) {
    end(worker, session);
    session.record.tracking.forget();
}

/// A client has arrived on this thread, and is notified here from now on. For its new owner.
pub fn arrived(worker: &mut Worker, session: &Session) {
    let Some(state) = session.tracking.as_deref().filter(|state| state.broadcasts()) else {
        return;
    };
    let record = Arc::clone(&session.record);
    for audience in worker.node.trackers.audiences(state) {
        if let Some(changed) = audience.relocate(record.id, worker.index) {
            worker.notify_changed(&record, &changed, &mut None);
        }
    }
}

impl Worker {
    /// Prepares for requests of a client that tracks keys: it is notified of changes before they
    /// came.
    #[cold]
    pub(crate) fn prepare_tracking(&mut self, session: &Session, out: &mut Out) {
        self.limit_tracked_keys();
        if let Some(state) = session.tracking.as_deref().filter(|state| state.broadcasts()) {
            let record = &session.record;
            let home = record.location.place().0 as usize;
            for audience in self.node.trackers.changed(state, home) {
                if let Some(changed) = audience.catch_up(record.id, home) {
                    self.notify_changed(record, &changed, &mut None);
                }
            }
        }
        write_messages(session, out);
    }

    /// Notifies clients of the keys that have changed. The shards of these keys are locked, or a
    /// turn ends in which they were.
    pub(crate) fn notify_touched(&mut self) {
        let Some(touched) = self.turn.effects.take_touched() else { return };
        let node = Arc::clone(&self.node);
        for (name, by_command) in touched.keys() {
            let hash = self.turn.hasher.hash(name);
            let source = if by_command { self.own_notifications.client } else { NO_CLIENT };
            if let Some(readers) = node.trackers.keys.take(name, hash) {
                readers.iter().for_each(|client| self.notify_reader(client, name, source));
            }
            if node.trackers.prefixes() > 0 {
                // As in Redis, a script is another client than its caller.
                self.note_changed(name, if self.turn.in_script { NO_CLIENT } else { source });
            }
        }
        if touched.are_all() {
            node.trackers.keys.clear();
            let clients: Vec<_> = node.trackers.clients.read().values().cloned().collect();
            clients.iter().for_each(|record| self.notify(record, Invalidation::All));
        }
        self.turn.effects.reuse_touched(touched);
    }

    /// Notes a change of a key for the clients that track its prefixes.
    fn note_changed(&mut self, name: &[u8], source: u64) {
        let Self { node, receivers, .. } = self;
        let prefixes = node.trackers.prefixes.read();
        prefixes.matching(name, |audience| {
            audience.note(name, source, |thread| {
                let mut changed = node.trackers.changed[thread].lock();
                changed.push(Arc::clone(audience));
                if changed.len() == 1 {
                    node.inboxes.push(thread, Delivery::Changed);
                    receivers.threads |= 1 << thread;
                }
            });
        });
    }

    /// Notifies a client that has read a key of its change.
    fn notify_reader(&mut self, client: u64, name: &[u8], source: u64) {
        let Some(record) = self.node.trackers.find(client) else { return };
        let mode = record.tracking.mode().filter(|mode| !mode.broadcasts);
        let is_notified = mode.is_some_and(|mode| !(mode.no_loop && source == client));
        if is_notified {
            self.notify(&record, Invalidation::Key(name.into()));
        }
    }

    /// Notifies a client, or the client that it redirects to. Notifications of its own command
    /// follow the reply.
    fn notify(&mut self, record: &Arc<ClientRecord>, invalidation: Invalidation) {
        if record.id == self.own_notifications.client {
            self.own_notifications.waiting.push(invalidation);
        } else {
            self.notify_now(record, invalidation);
        }
    }

    fn notify_now(&mut self, record: &Arc<ClientRecord>, invalidation: Invalidation) {
        let Some(mode) = record.tracking.mode() else { return };
        if mode.redirect == 0 {
            return self.leave_for(record, invalidation, false);
        }
        let target = self.node.clients.find(mode.redirect);
        let is_here =
            |target: &Arc<ClientRecord>| !target.has(flag::CLOSING) && !target.location.is_killed();
        match target.filter(is_here) {
            Some(target) => self.leave_for(&target, invalidation, true),
            None => {
                record.tracking.set_broken();
                self.leave_for(record, Invalidation::Broken(mode.redirect), false);
            }
        }
    }

    fn leave_for(
        &mut self,
        record: &Arc<ClientRecord>,
        invalidation: Invalidation,
        redirected: bool,
    ) {
        if record.location.is_killed() {
            return;
        }
        if record.tracking.push(invalidation, redirected) {
            // Otherwise the thread that receives the client next looks for itself.
            let thread = record.location.place_after().0 as usize;
            if thread == self.index {
                return self.deliveries.look_at(record);
            }
            self.node.inboxes.push(thread, Delivery::Look(Arc::clone(record)));
            self.receivers.threads |= 1 << thread;
        }
    }

    /// Notifies the clients of this thread of changed keys with their prefixes, if a round is due.
    /// As in Redis, in the order of the prefixes.
    pub fn notify_rounds(&mut self) {
        if !self.deliveries.begins_round() {
            return;
        }
        let (node, thread) = (Arc::clone(&self.node), self.index);
        let mut changed = node.trackers.changed[thread].lock().clone();
        let count = changed.len();
        changed.sort_by(|one, other| one.prefix().cmp(other.prefix()));
        for audience in changed {
            let Some(round) = audience.take(thread) else { continue };
            let mut encoded = None;
            for member in &round.members {
                self.notify_changed(member, &round.changed, &mut encoded);
            }
        }
        // Only now, because the main thread may look for a client that was moved to it.
        let mut changed = node.trackers.changed[thread].lock();
        changed.drain(..count);
        changed.shrink_to(CHANGED_KEPT);
        if !changed.is_empty() {
            self.deliveries.note_changed();
        }
    }

    fn notify_changed(
        &mut self,
        record: &Arc<ClientRecord>,
        changed: &ChangedKeys,
        encoded: &mut Option<Arc<SharedMessage>>,
    ) {
        let Some(mode) = record.tracking.mode().filter(|mode| mode.broadcasts) else { return };
        if let Some(invalidation) =
            invalidation_of(changed, mode.no_loop.then_some(record.id), encoded)
        {
            self.notify_now(record, invalidation);
        }
    }

    /// Writes the notifications of a tracking client's own command, which has replied.
    fn write_own_invalidations(&mut self, session: &Session, out: &mut Out) {
        self.own_notifications.client = NO_CLIENT;
        let record = &session.record;
        let redirects = session.tracking.as_ref().is_some_and(|state| state.redirect != 0);
        for invalidation in std::mem::take(&mut self.own_notifications.waiting) {
            match redirects {
                true => self.notify_now(&Arc::clone(record), invalidation),
                false => write(&invalidation, false, session, out),
            }
        }
    }

    /// Forgets keys that clients have read while there are more than `tracking-table-max-keys`, and
    /// all if no client tracks keys. Returns whether there are still too many.
    pub fn limit_tracked_keys(&mut self) -> bool {
        let node = Arc::clone(&self.node);
        let len = node.trackers.keys.len();
        let max = match self.config.tracking_table_max_keys {
            _ if len > 0 && !node.shard_sets.are_tracked() => 0,
            0 => return false,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        };
        for _ in 0..FORGOTTEN_MAX {
            if node.trackers.keys.len() <= max {
                return false;
            }
            let start = self.random.next_u64() as usize;
            if let Some((name, readers)) = node.trackers.keys.forget_one(start) {
                readers.iter().for_each(|client| self.notify_reader(client, &name, NO_CLIENT));
            }
        }
        node.trackers.keys.len() > max
    }
}

impl<L: ShardLocks> Executor<'_, L> {
    /// Prepares for requests that have come together.
    #[inline]
    pub fn begin_batch(&mut self) {
        if self.session.tracking.is_some() {
            self.worker.prepare_tracking(self.session, self.out);
        }
    }
}

/// Performs a command of a client that tracks keys.
#[inline(never)]
pub(crate) fn perform_tracked<L: ShardLocks>(
    executor: &mut Executor<'_, L>,
    entry: &'static Entry,
    request: &Request<'_>,
) -> Outcome {
    // As in Redis, the client is notified of keys that were evicted for the command before it runs.
    if executor.worker.is_limited() {
        write_messages(executor.session, executor.out);
    }
    executor.worker.will_remember(executor.session, entry, &request.args);
    if matches!(entry.call, Call::Node) && executor.worker.turn.effects.is_remembered() {
        // It visits the shards of its keys, and releases them.
        executor.worker.remember_reads();
    }
    executor.worker.own_notifications.client = executor.session.record.id;
    let outcome = executor.perform_counted(entry, request);
    executor.worker.turn.effects.set_remembered(false);
    executor.worker.write_own_invalidations(executor.session, executor.out);
    let stays = outcome.is_later() || entry.name.starts_with("client|");
    if !stays && executor.session.transaction.is_none() {
        executor.session.end_announced();
    }
    outcome
}

/// The reply for a conflict of tracking options.
pub(crate) fn refusal(conflict: Conflict) -> Error {
    use engine::TrackingError as E;
    let text = |bytes: &[u8]| engine::echo(bytes);
    let error = match conflict {
        Conflict::PrefixWithoutBroadcast => E::PrefixWithoutBroadcast,
        Conflict::BroadcastSwitched => E::BroadcastSwitched,
        Conflict::ChoiceWithBroadcast => E::ChoiceWithBroadcast,
        Conflict::InAndOut => E::InAndOut,
        Conflict::ChoiceSwitched => E::ChoiceSwitched,
        Conflict::OverlapsOwn(prefix, own) => E::OverlapsOwn(text(&prefix), text(&own)),
        Conflict::OverlapsOther(prefix, other) => E::OverlapsOther(text(&prefix), text(&other)),
        Conflict::NotTracking => E::NotTracking,
        Conflict::DoesNotOptIn => E::DoesNotOptIn,
        Conflict::DoesNotOptOut => E::DoesNotOptOut,
    };
    error.into()
}
