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

use super::inboxes::{Delivery, Inboxes, Subscription};
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
        let relief = Box::new(move |bytes_max| state.lock().relieve(bytes_max));
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
    /// until half of them are left. Then the clients are given up for which so many bytes or more
    /// wait.
    fn relieve(&mut self, bytes_max: Option<usize>) -> Vec<u64> {
        let mut deliveries = 0;
        while deliveries < DELIVERIES_MAX
            && (bytes_max.is_none() || self.inboxes.is_half_full(self.thread))
            && let Some(delivery) = self.inbox.as_ref().and_then(Mailbox::pop)
        {
            deliveries += 1 + self.take_in(delivery);
        }
        self.is_relieved = true;
        bytes_max.map_or_else(Vec::new, |bytes_max| self.subscribers.give_up(bytes_max))
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::hash::KeyHasher;
    use base::uncounted::thread_bytes;
    use pubsub::{ChannelKind, ChannelRegistry};
    use resp::Out;

    use super::*;

    /// Events are left out of the count until they are written, or no client waits for them.
    #[test]
    fn messages_in_delivery_are_uncounted() {
        let inboxes = Arc::new(Inboxes::new());
        let deliveries = Deliveries::new(1, Arc::clone(&inboxes));
        deliveries.open(Arc::new(|| {}));
        let registry = ChannelRegistry::new(KeyHasher::new(1));
        let name =
            ChannelId { kind: ChannelKind::Channel, name: &b"c"[..], hash: registry.hash(b"c") };
        let follow = |client| {
            let begun = registry.subscribe(name, 1, |_| {});
            deliveries.subscribers().add(
                client,
                None,
                ChannelId { kind: name.kind, name: begun.name, hash: name.hash },
                begun.since,
            );
        };
        let payload = (&b"c"[..], &[b'x'; 1000][..]);
        let publish_event = || {
            registry.publish_event(payload.0, payload.1, &mut |thread, message| {
                inboxes.push(thread, Delivery::Published(message));
            });
        };
        let write = || {
            let (mut ready, mut out) = (Vec::new(), Out::default());
            deliveries.receive(&mut ready);
            for pending in ready {
                deliveries.subscribers().write(pending, &mut out, false, usize::MAX);
            }
            out.notification_bytes() == out.bytes.len()
        };
        follow(7);
        registry.publish(ChannelKind::Channel, payload.0, payload.1, &mut |thread, message| {
            inboxes.push(thread, Delivery::Published(message));
        });
        assert_eq!((thread_bytes(), write()), (0, false), "what clients publish is no event");
        publish_event();
        assert!((1000..2000).contains(&thread_bytes()), "{}", thread_bytes());
        assert_eq!((write(), thread_bytes()), (true, 0));
        // One client is on the main thread, and is written to when it returns.
        publish_event();
        let mut ready = Vec::new();
        deliveries.receive(&mut ready);
        assert!(ready.iter().all(|pending| deliveries.subscribers().keep(*pending) > 1000));
        assert!((1000..2000).contains(&thread_bytes()), "{}", thread_bytes());
        assert_eq!((write(), thread_bytes()), (true, 0));
        // One client goes to another thread with the messages that were taken in for it.
        publish_event();
        deliveries.receive_all();
        let mut out = Out::default();
        deliveries.subscribers().write_of(7, &mut out, false);
        deliveries.subscribers().remove(7, name);
        assert_eq!(out.notification_bytes(), out.bytes.len());
        out.clear();
        assert_eq!(thread_bytes(), 0);
        // A thread ends.
        follow(8);
        (0..3).for_each(|_| publish_event());
        deliveries.receive(&mut ready);
        publish_event();
        drop(deliveries);
        assert_eq!(thread_bytes(), 0);
    }

    /// A long event is shared by all receivers, and left out of the count as long as one of them
    /// has it.
    #[test]
    fn the_message_of_the_last_receiver_is_uncounted_in_full() {
        const LONG: i64 = 128 << 10;
        let inboxes = Arc::new(Inboxes::new());
        let registry = ChannelRegistry::new(KeyHasher::new(1));
        let name =
            ChannelId { kind: ChannelKind::Channel, name: &b"c"[..], hash: registry.hash(b"c") };
        let threads = [1, 2].map(|thread| {
            let deliveries = Deliveries::new(thread, Arc::clone(&inboxes));
            deliveries.open(Arc::new(|| {}));
            for client in 0..3 {
                let begun = registry.subscribe(name, thread, |_| {});
                let client = (thread as u64 * 10 + client, None);
                deliveries.subscribers().add(
                    client.0,
                    client.1,
                    ChannelId { kind: name.kind, name: begun.name, hash: name.hash },
                    begun.since,
                );
            }
            deliveries
        });
        registry.publish_event(b"c", &[b'x'; LONG as usize - 100], &mut |thread, message| {
            inboxes.push(thread, Delivery::Published(message));
        });
        let (mut ready, mut outs) = (Vec::new(), Vec::new());
        for deliveries in threads {
            deliveries.receive(&mut ready);
            // One of them is on the main thread, and goes to another thread with its messages.
            assert!(deliveries.subscribers().keep(ready[0]) as i64 > LONG - 100);
            for pending in &ready {
                let mut out = Out::default();
                deliveries.subscribers().write(*pending, &mut out, true, usize::MAX);
                outs.push(out);
            }
        }
        while !outs.is_empty() {
            assert!((LONG..LONG + 1000).contains(&thread_bytes()), "{}", thread_bytes());
            outs.pop();
        }
        assert_eq!(thread_bytes(), 0);
    }

    /// A thread that is busy with a slow command takes nothing in.
    #[test]
    fn another_thread_takes_messages_in() {
        let inboxes = Arc::new(Inboxes::new());
        let deliveries = Deliveries::new(1, Arc::clone(&inboxes));
        deliveries.open(Arc::new(|| {}));
        deliveries.activate();
        assert!(deliveries.begins_round());
        let registry = ChannelRegistry::new(KeyHasher::new(1));
        let follow = |client, name: &[u8]| {
            let (kind, hash) = (ChannelKind::Channel, registry.hash(name));
            let begun = registry.subscribe(ChannelId { kind, name, hash }, 1, |_| {});
            let channel = ChannelId { kind, name: begun.name, hash };
            deliveries.subscribers().add(client, None, channel, begun.since);
        };
        (1..=100).for_each(|client| follow(client, b"c"));
        follow(101, b"quiet");
        let publish = |channel: &[u8], number: usize| {
            let payload = format!("{number:01000}");
            registry.publish(
                ChannelKind::Channel,
                channel,
                payload.as_bytes(),
                &mut |thread, message| inboxes.push(thread, Delivery::Published(message)),
            );
        };
        publish(b"quiet", 0);
        let mut published = 0;
        let mut fill = || {
            while !inboxes.are_some_full() {
                publish(b"c", published);
                published += 1;
            }
            published
        };
        let first = fill();
        let mut rounds = 0;
        while inboxes.are_some_full() {
            assert!(inboxes.relieve(1, 64 << 20).is_empty());
            rounds += 1;
        }
        assert!(rounds < 10 && inboxes.relieved() == 1, "{rounds}");
        assert!(!deliveries.prepare_sleep(), "the thread has to write them");
        let all = fill();
        assert!(all > first);
        let mut ready = Vec::new();
        while deliveries.receive(&mut ready) {
            for pending in ready.drain(..) {
                deliveries.subscribers().keep(pending);
            }
        }
        for pending in ready {
            let mut out = Out::default();
            // In parts, as for a client with much to write.
            while deliveries.subscribers().write(pending, &mut out, false, 10_000).has_more {}
            let text = String::from_utf8_lossy(&out.bytes);
            let numbers = text.split("\r\n").filter(|line| line.len() == 1000);
            let numbers: Vec<usize> = numbers.map(|number| number.parse().unwrap()).collect();
            let count = if pending.id > 100 { 1 } else { all };
            assert_eq!(numbers, (0..count).collect::<Vec<_>>());
        }
        assert!(deliveries.prepare_sleep());
        deliveries.awake();
        // At their limit, clients are given up.
        publish(b"quiet", 1);
        fill();
        let given_up = inboxes.relieve(1, 50_000);
        assert_eq!(given_up, (1..=100).collect::<Vec<u64>>());
        drop(deliveries);
        assert!(inboxes.relieve(1, 0).is_empty() && !inboxes.are_some_full());
    }

    /// Clients that have read keys which change all the time do not delay rounds of prefixes.
    #[test]
    fn a_round_follows_earlier_clients() {
        let inboxes = Arc::new(Inboxes::new());
        let deliveries = Deliveries::new(1, Arc::clone(&inboxes));
        inboxes.activate_all();
        deliveries.open(Arc::new(|| {}));
        assert!(deliveries.begins_round(), "another thread may have left something");
        let record = |id| Arc::new(ClientRecord::new(id, ("a".into(), "b".into()), 1, 0, 0));
        let next = || deliveries.next_look().map(|record| record.id);
        (1..3).for_each(|id| deliveries.look_at(&record(id)));
        for _ in 0..2 {
            inboxes.push(1, Delivery::Changed);
            deliveries.receive(&mut Vec::new());
            deliveries.look_at(&record(9));
        }
        assert!(!deliveries.prepare_sleep());
        for id in 1..3 {
            assert!(!deliveries.begins_round());
            assert_eq!(next(), Some(id));
        }
        assert!(deliveries.begins_round() && !deliveries.begins_round());
        deliveries.note_changed();
        // Clients of the previous round come first, so that rounds come together.
        assert_eq!((next(), deliveries.begins_round()), (Some(9), false));
        assert_eq!((next(), deliveries.begins_round()), (Some(9), true));
        assert!(deliveries.prepare_sleep());
    }
}
