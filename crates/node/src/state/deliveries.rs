//! One thread's inbox, and its clients that have messages.
//!
//! A thread whose clients have no subscriptions does not look into its inbox, and nothing arrives
//! there. It begins to look with the first subscription of one of its clients. It stops when none
//! has one and the inbox is empty: all subscriptions were removed from the registry before, so no
//! message is on its way. Once a client has tracked keys, all threads look.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use pubsub::{ChannelId, PendingClient, Subscribers};
use sync::mailbox::{Mailbox, Wake};

use super::inboxes::{Delivery, Inboxes, RELIEVED_BYTES_MAX, ReliefCause, Subscription};
use crate::clients::record::ClientRecord;

/// Messages taken in at once, and the deliveries that they cause: later ones are written in the
/// next turn.
const MESSAGES_MAX: usize = 1024;
const DELIVERIES_MAX: usize = 16 * 1024;
/// The weight of these messages for one receiver, in bytes: no more is sent to a client in a turn.
const ROUND_BYTES_MAX: usize = 256 * 1024;
/// Room that is kept for closed clients.
const GONE_KEPT: usize = 64;

/// Messages for the clients of one thread. The worker that serves them during a busy script shares
/// this, so that messages are delivered meanwhile.
#[derive(Debug)]
pub struct Deliveries {
    /// Clients have subscriptions, or had some and the inbox may not be empty.
    is_active: AtomicBool,
    thread: usize,
    inboxes: Arc<Inboxes>,
    /// Its thread waits for it only while another thread takes some messages in.
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    thread: usize,
    inboxes: Arc<Inboxes>,
    /// `None` if the thread has not opened it.
    inbox: Option<Mailbox<Delivery>>,
    /// Those of its clients that have subscriptions.
    subscribers: Subscribers,
    /// Clients in whose records notifications wait.
    looks: VecDeque<Arc<ClientRecord>>,
    /// Prefixes that clients of this thread track may have changed.
    changed: bool,
    /// The number of clients in `looks` that were there before that.
    before_changed: usize,
    /// Closed clients for whose subscriptions this thread may still get events.
    gone: HashSet<u64>,
    /// Another thread has taken messages in since this one last looked.
    is_relieved: bool,
}

impl Deliveries {
    /// Those of a thread that does not look into its inbox.
    pub(crate) fn new(thread: usize, inboxes: Arc<Inboxes>) -> Self {
        let state = State {
            thread,
            inboxes: Arc::clone(&inboxes),
            inbox: None,
            subscribers: Subscribers::default(),
            looks: VecDeque::new(),
            // An earlier thread with this number may have left some.
            changed: true,
            before_changed: 0,
            gone: HashSet::new(),
            is_relieved: false,
        };
        let (is_active, state) = (AtomicBool::new(false), Arc::new(Mutex::new(state)));
        Self { is_active, thread, inboxes, state }
    }

    /// Opens the thread's inbox. `wake` ends the sleep of the thread.
    pub fn open(&self, wake: Arc<dyn Wake>) {
        let inbox = self.inboxes.open(self.thread, wake);
        debug_assert!(inbox.is_some(), "one thread has a number");
        if inbox.is_none() {
            return;
        }
        self.state.lock().inbox = inbox;
        let state = Arc::clone(&self.state);
        let relief = Box::new(move |cause| state.lock().relieve(cause));
        self.inboxes.set_relief(self.thread, Some(relief));
    }

    /// Whether the thread has to look.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed) || self.inboxes.are_all_active()
    }

    /// The thread has to look from now on.
    pub(crate) fn activate(&self) {
        self.is_active.store(true, Ordering::Relaxed);
    }

    /// Announces that the thread is about to wait. Returns false if it must not, because there is
    /// work.
    pub fn prepare_sleep(&self) -> bool {
        if !self.is_active() {
            return true;
        }
        let state = self.state.lock();
        let is_idle = state.looks.is_empty() && !state.changed && !state.is_relieved;
        is_idle && state.inbox.as_ref().is_none_or(Mailbox::prepare_sleep)
    }

    /// The wait is over.
    pub fn awake(&self) {
        if self.is_active()
            && let Some(inbox) = &self.state.lock().inbox
        {
            inbox.awake();
        }
    }

    /// Takes in messages, up to a limit, and lists the clients that have output to write. For each
    /// of them call either [`write`](Subscribers::write) or [`keep`](Subscribers::keep). Returns
    /// whether more is there.
    pub fn receive(&self, ready: &mut Vec<PendingClient>) -> bool {
        let state = &mut *self.state.lock();
        self.inboxes.begin_round(self.thread);
        state.is_relieved = false;
        let (mut messages, mut deliveries, mut bytes) = (0, 0, 0);
        let has_more = loop {
            let is_full = messages == MESSAGES_MAX || bytes >= ROUND_BYTES_MAX;
            if is_full || deliveries >= DELIVERIES_MAX {
                break true;
            }
            let Some(delivery) = state.inbox.as_ref().and_then(Mailbox::pop) else { break false };
            messages += 1;
            bytes += delivery.body_bytes();
            deliveries += state.take_in(delivery);
        };
        state.subscribers.take_ready(ready);
        let is_active = has_more || !state.subscribers.is_empty();
        self.is_active.store(is_active, Ordering::Relaxed);
        has_more
    }

    /// Lists the clients that have output to write, as [`receive`](Self::receive) does, without
    /// taking in more.
    pub fn receive_nothing(&self, ready: &mut Vec<PendingClient>) {
        let state = &mut *self.state.lock();
        self.inboxes.begin_round(self.thread);
        state.is_relieved = false;
        state.subscribers.take_ready(ready);
    }

    /// Notifications wait in the record of a client of this thread.
    pub fn look_at(&self, record: &Arc<ClientRecord>) {
        self.state.lock().looks.push_back(Arc::clone(record));
    }

    /// The next client in whose record notifications wait.
    pub fn next_look(&self) -> Option<Arc<ClientRecord>> {
        let state = &mut *self.state.lock();
        state.before_changed = state.before_changed.saturating_sub(1);
        state.looks.pop_front()
    }

    /// Whether the caller must now notify clients of this thread of changed prefixes. Clients that
    /// were listed before come first, so that rounds come together; those that were listed since do
    /// not, so that the round is not delayed for ever.
    pub(crate) fn begins_round(&self) -> bool {
        let state = &mut *self.state.lock();
        state.before_changed == 0 && std::mem::take(&mut state.changed)
    }

    /// Prefixes that clients of this thread track have changed.
    pub(crate) fn note_changed(&self) {
        self.state.lock().note_changed();
    }

    /// The clients of this thread that have subscriptions.
    pub fn subscribers(&self) -> MappedMutexGuard<'_, Subscribers> {
        MutexGuard::map(self.state.lock(), |state| &mut state.subscribers)
    }

    /// Takes in all that has been pushed until now.
    pub(crate) fn receive_all(&self) {
        let state = &mut *self.state.lock();
        if state.inbox.is_none() {
            return;
        }
        // Other threads may go on pushing without end.
        state.inboxes.push(state.thread, Delivery::Mark);
        while let Some(delivery) = state.inbox.as_ref().and_then(Mailbox::pop) {
            if matches!(delivery, Delivery::Mark) {
                return;
            }
            state.take_in(delivery);
        }
    }

    /// Notes that a client of this thread is closed, whose subscriptions have been removed. Events
    /// of them that are not taken in yet will be ignored. Nothing is taken in here, so that closing
    /// a client takes no longer when there are many messages for others.
    pub(crate) fn forget(&self, client: u64) {
        let state = &mut *self.state.lock();
        state.subscribers.forget(client);
        if state.inbox.is_some() {
            state.gone.insert(client);
            state.inboxes.push(state.thread, Delivery::Gone(client));
            self.activate();
        }
    }

    /// A client has arrived on this thread, in this slot, after the events of its subscriptions.
    pub fn arrived(&self, client: u64, slot: usize) {
        self.activate();
        self.receive_all();
        self.subscribers().place(client, slot);
    }

    /// A client has returned from the main thread: its subscriptions may have changed meanwhile.
    pub fn returned(&self) {
        self.activate();
    }
}

impl Drop for Deliveries {
    fn drop(&mut self) {
        // A worker for a busy script has none before it gets those of its thread.
        if self.state.lock().inbox.is_some() {
            self.inboxes.set_relief(self.thread, None);
        }
    }
}

impl State {
    /// Takes in messages for the thread, up to a limit: for one that has not done so for too long
    /// until half of them are left.
    fn relieve(&mut self, cause: ReliefCause) {
        if let ReliefCause::Stall(limit)
        | ReliefCause::LongStall(limit)
        | ReliefCause::Command(limit) = cause
        {
            self.subscribers.set_limit(limit);
        }
        let mut deliveries = 0;
        while deliveries < DELIVERIES_MAX
            && self.may_relieve(cause)
            && let Some(delivery) = self.inbox.as_ref().and_then(Mailbox::pop)
        {
            deliveries += 1 + self.take_in(delivery);
        }
        self.is_relieved = true;
        if let ReliefCause::LongStall(_) | ReliefCause::Command(_) = cause {
            self.subscribers.give_up();
            self.subscribers.give_up_watchers(RELIEVED_BYTES_MAX);
        }
    }

    fn may_relieve(&mut self, cause: ReliefCause) -> bool {
        if cause == ReliefCause::Move {
            return true;
        }
        let has_room = match cause {
            ReliefCause::Stall(_) | ReliefCause::LongStall(_) => {
                self.subscribers.pending_bytes() < RELIEVED_BYTES_MAX
            }
            ReliefCause::Move | ReliefCause::Command(_) => true,
        };
        let spares = matches!(cause, ReliefCause::Stall(_));
        has_room
            && self.inboxes.is_half_full(self.thread)
            && !(spares && self.subscribers.is_some_behind())
    }

    fn note_changed(&mut self) {
        if !std::mem::replace(&mut self.changed, true) {
            self.before_changed = self.looks.len();
        }
    }

    /// Returns the number of subscriptions that a delivery goes to.
    fn take_in(&mut self, delivery: Delivery) -> usize {
        match delivery {
            Delivery::Published(message) => {
                self.inboxes.taken(self.thread, &message);
                return self.subscribers.receive(message);
            }
            Delivery::Begin(begin) => {
                let Subscription { client, slot, kind, name, hash, moment } = *begin;
                if !self.gone.contains(&client) {
                    self.subscribers.add(client, slot, ChannelId { kind, name, hash }, moment);
                }
            }
            Delivery::Follow(follow) => {
                let Subscription { client, kind, name, hash, moment, .. } = *follow;
                if !self.gone.contains(&client) {
                    self.subscribers.follow(client, ChannelId { kind, name, hash }, moment);
                }
            }
            Delivery::BeginAt(client, epoch) => self.subscribers.begin_at(client, epoch),
            Delivery::End(end) => {
                // The messages before it have been taken in.
                self.subscribers.remove(
                    end.client,
                    ChannelId { kind: end.kind, name: &end.name, hash: end.hash },
                );
            }
            Delivery::Look(record) => self.looks.push_back(record),
            Delivery::Changed => self.note_changed(),
            Delivery::Mark => {}
            Delivery::Cut => {
                self.subscribers.give_up_watchers(0);
                self.inboxes.end_cut(self.thread);
            }
            Delivery::Gone(client) => {
                self.gone.remove(&client);
                self.gone.shrink_to(GONE_KEPT);
                self.subscribers.forget(client);
            }
        }
        0
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(inbox) = self.inbox.take() {
            while let Some(delivery) = inbox.pop() {
                if let Delivery::Published(message) = delivery {
                    self.inboxes.taken(self.thread, &message);
                }
            }
            self.inboxes.close(self.thread, inbox);
        }
    }
}
