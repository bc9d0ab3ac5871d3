//! Three threads with clients that act at random, and the properties of the messages they receive.
//!
//! Around the product's registry and subscribers, this models as much of `node` and `server` as
//! carries messages between them: an inbox for each thread, and clients whose output is a list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use base::hash::KeyHasher;
use resp::Out;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Mutex, MutexGuard};
use shuttle::thread;

use crate::message::{ChannelId, ChannelKind, PublishedMessage, SharedName};
use crate::registry::ChannelRegistry;
use crate::subscribers::Subscribers;

const THREADS: usize = 3;
/// The number of steps of each thread.
const STEPS: usize = 7;
const CHANNELS: [&[u8]; 2] = [b"c", b"d"];
const SUBJECTS: [(ChannelKind, &[u8]); 3] = [
    (ChannelKind::Channel, CHANNELS[0]),
    (ChannelKind::Channel, CHANNELS[1]),
    (ChannelKind::Pattern, b"c*"),
];

/// The channel to which a message is published.
fn channel_of(number: u64) -> usize {
    // Mostly the first one, which the pattern matches.
    usize::from(number % 3 == 2)
}

/// Faults planted in a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    /// Messages are sent after the registry's locks are released.
    SendsUnlocked,
    /// An unsubscription is confirmed before the messages on the way to its thread.
    AnswersAtOnce,
    /// A subscription has no beginning.
    FromTheBeginning,
    /// A subscription has no end until it is removed.
    WithoutEnd,
    /// A subscription is confirmed after other threads have continued.
    ConfirmsLate,
    /// A client moves without the messages on the way to its thread.
    MovesInHaste,
    /// A thread takes a client and forgets the changes of its subscriptions.
    TakesFirst,
    /// A client moves from one thread to the other at once for each subscription.
    MovesWithoutEpoch,
    /// Other threads may take messages in for a thread while a subscription of it begins or ends.
    SubscribesUnlocked,
    /// A message is taken out for another thread before that thread's subscribers are locked.
    RelievesUnlocked,
    /// Subscriptions that begin while a message is published must receive it.
    ExpectsLater,
}

enum Delivery {
    Published(PublishedMessage),
    Follow { client: u64, kind: ChannelKind, name: SharedName, hash: u64, since: u64 },
    BeginAt { client: u64, epoch: usize },
}

/// The output that a client has received, in order.
#[derive(Clone, Debug, PartialEq)]
enum Received {
    /// The number of the subject.
    Subscribed(usize),
    /// The number of the subject, and that of the message.
    Message(usize, u64),
    Unsubscribed(usize),
}

#[derive(Default)]
struct Subscriber {
    id: u64,
    subscribed: BTreeMap<usize, SharedName>,
    received: Vec<Received>,
}

#[derive(Default)]
struct Inbox {
    deliveries: Mutex<VecDeque<Delivery>>,
    clients: Mutex<VecDeque<Subscriber>>,
    /// Messages are taken out of `deliveries` while this is locked.
    subscribers: Mutex<Subscribers>,
}

struct World {
    registry: ChannelRegistry,
    inboxes: [Inbox; THREADS],
    /// How many receivers each message was counted for.
    counted: Mutex<BTreeMap<u64, usize>>,
    /// The subscriptions that are confirmed, by client and kind, each with its number.
    confirmed: Mutex<BTreeMap<(u64, usize), usize>>,
    /// Subscriptions that lasted as long as a message was published.
    expected: Mutex<Vec<(u64, u64, usize)>>,
    fault: Option<Fault>,
}

impl World {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn deliver(&self, thread: usize, delivery: Delivery) {
        self.inboxes[thread].deliveries.lock().unwrap().push_back(delivery);
    }

    fn publish(&self, number: u64) {
        let mut late = Vec::new();
        let payload = number.to_string();
        let before = self.confirmed.lock().unwrap().clone();
        let count = self.registry.publish(
            ChannelKind::Channel,
            CHANNELS[channel_of(number)],
            payload.as_bytes(),
            &mut |thread, message| match self.has(Fault::SendsUnlocked) {
                true => late.push((thread, message)),
                false => self.deliver(thread, Delivery::Published(message)),
            },
        );
        for (thread, message) in late {
            self.deliver(thread, Delivery::Published(message));
        }
        self.counted.lock().unwrap().insert(number, count);
        let mut lasting = self.confirmed.lock().unwrap().clone();
        if !self.has(Fault::ExpectsLater) {
            lasting.retain(|key, nth| before.get(key) == Some(nth));
        }
        let expected = lasting.into_keys().map(|(client, which)| (number, client, which));
        let receives = |which: &usize| match SUBJECTS[*which] {
            (ChannelKind::Pattern, _) => channel_of(number) == 0,
            (_, name) => name == CHANNELS[channel_of(number)],
        };
        let expected = expected.filter(|(_, _, which)| receives(which));
        self.expected.lock().unwrap().extend(expected);
    }

    fn subscribers(&self, thread: usize) -> MutexGuard<'_, Subscribers> {
        self.inboxes[thread].subscribers.lock().unwrap()
    }

    fn next(&self, thread: usize) -> Option<Delivery> {
        self.inboxes[thread].deliveries.lock().unwrap().pop_front()
    }

    /// Takes messages in for a thread.
    fn relieve(&self, thread: usize, count: usize) {
        for _ in 0..count {
            let early = if self.has(Fault::RelievesUnlocked) { self.next(thread) } else { None };
            let mut subscribers = self.subscribers(thread);
            let next = early.or_else(|| self.next(thread));
            let Some(delivery) = next else { return };
            take_in(&mut subscribers, delivery);
        }
    }
}

fn take_in(subscribers: &mut Subscribers, delivery: Delivery) {
    match delivery {
        Delivery::Published(message) => drop(subscribers.receive(message)),
        Delivery::Follow { client, kind, name, hash, since } => {
            subscribers.follow(client, ChannelId { kind, name, hash }, since);
        }
        Delivery::BeginAt { client, epoch } => subscribers.begin_at(client, epoch),
    }
}

struct Owner {
    world: Arc<World>,
    index: usize,
    clients: Vec<Subscriber>,
    /// Clients that were closed.
    closed: Vec<Subscriber>,
    /// The next client that is written to is found closed.
    closes: bool,
}

impl Owner {
    fn step(&mut self, number: u64) {
        let choice = thread_rng().gen_range(0..11);
        let at = match self.clients.len() {
            0 => None,
            len => Some(thread_rng().gen_range(0..len)),
        };
        match (choice, at) {
            (0..=3, _) => self.world.publish(number),
            (4 | 5, Some(at)) => self.subscribe(at),
            // A message that is sent late would also miss clients that have left.
            (6..=8, _) if self.world.has(Fault::SendsUnlocked) => {}
            (6 | 7, Some(at)) => self.unsubscribe(at),
            (8, Some(at)) => self.hand_over(at),
            (9, _) => {
                let other = (self.index + thread_rng().gen_range(1..THREADS)) % THREADS;
                self.world.relieve(other, thread_rng().gen_range(1..4));
            }
            _ => {}
        }
        if thread_rng().gen_range(0..2) == 0 {
            // A closed client has no order.
            let may_close = !self.world.has(Fault::SendsUnlocked);
            self.closes = may_close && thread_rng().gen_range(0..4) == 0;
            self.turn();
            self.closes = false;
        }
    }

    /// One turn: writes the messages that have arrived, and takes the clients that have moved here.
    fn turn(&mut self) {
        loop {
            self.receive();
            self.write();
            let next = self.world.inboxes[self.index].clients.lock().unwrap().pop_front();
            let Some(client) = next else { break };
            // All changes of its subscriptions arrived before the client.
            if !self.world.has(Fault::TakesFirst) {
                self.receive();
            }
            self.subscribers().place(client.id, 0);
            self.clients.push(client);
        }
        self.write();
    }

    fn subscribers(&self) -> MutexGuard<'_, Subscribers> {
        self.world.subscribers(self.index)
    }

    fn receive(&mut self) {
        let mut subscribers = self.subscribers();
        while let Some(delivery) = self.world.next(self.index) {
            let is_gone = |client: &u64| !self.clients.iter().any(|other| other.id == *client);
            let forgets = |client: &u64| self.world.has(Fault::TakesFirst) && is_gone(client);
            match &delivery {
                Delivery::Follow { client, .. } if forgets(client) => {}
                _ => take_in(&mut subscribers, delivery),
            }
        }
    }

    fn write(&mut self) {
        let mut ready = Vec::new();
        self.subscribers().take_ready(&mut ready);
        for pending in ready {
            let world = Arc::clone(&self.world);
            let client = self.clients.iter_mut().find(|client| client.id == pending.id);
            let mut subscribers = world.subscribers(self.index);
            let Some(client) = client else {
                subscribers.keep(pending);
                continue;
            };
            let mut out = Out::default();
            // Some of its messages may be written in the next round.
            let bytes_max = if thread_rng().gen_range(0..2) == 0 { 1 } else { usize::MAX };
            if subscribers.write(pending, &mut out, false, bytes_max).has_more {
                subscribers.keep(pending);
            }
            drop(subscribers);
            read(&out, &mut client.received);
            if std::mem::take(&mut self.closes) {
                self.close(pending.id);
            }
        }
    }

    /// Writes all messages of a client.
    fn write_of(&mut self, id: u64) {
        let mut out = Out::default();
        self.subscribers().write_of(id, &mut out, false);
        let client = self.clients.iter_mut().find(|client| client.id == id);
        read(&out, &mut client.unwrap().received);
    }

    /// Closes a client in the middle of a round. It receives the messages it was counted for, so
    /// more is taken in for the other clients, too.
    fn close(&mut self, id: u64) {
        let Some(at) = self.clients.iter().position(|client| client.id == id) else { return };
        let subscribed = std::mem::take(&mut self.clients[at].subscribed);
        self.world.confirmed.lock().unwrap().retain(|(client, _), _| *client != id);
        for (which, name) in &subscribed {
            let subject = ChannelId {
                kind: SUBJECTS[*which].0,
                name: &**name,
                hash: self.world.registry.hash(name),
            };
            let mut subscribers = self.subscribers();
            let until = self.world.registry.unsubscribe(subject, self.index, |_| {});
            subscribers.end(id, subject, until);
        }
        self.receive();
        self.write_of(id);
        for (which, name) in &subscribed {
            let hash = self.world.registry.hash(name);
            self.subscribers().remove(id, ChannelId { kind: SUBJECTS[*which].0, name, hash });
        }
        self.subscribers().forget(id);
        let client = self.clients.remove(at);
        self.closed.push(client);
    }

    fn subscribe(&mut self, at: usize) {
        let world = Arc::clone(&self.world);
        let client = &mut self.clients[at];
        let which = thread_rng().gen_range(0..SUBJECTS.len());
        let (kind, name) = SUBJECTS[which];
        if client.subscribed.contains_key(&which) {
            return;
        }
        let hash = world.registry.hash(name);
        let lock = || world.subscribers(self.index);
        let subscribers = (!world.has(Fault::SubscribesUnlocked)).then(lock);
        let begun = world.registry.subscribe(ChannelId { kind, name, hash }, self.index, |_| {});
        let from_the_beginning = world.has(Fault::FromTheBeginning);
        let since = if from_the_beginning { 0 } else { begun.since };
        client.subscribed.insert(which, begun.name.clone());
        let channel = ChannelId { kind, name: begun.name, hash };
        let mut subscribers = subscribers.unwrap_or_else(lock);
        subscribers.add(client.id, Some(0), channel, since);
        drop(subscribers);
        if self.world.has(Fault::ConfirmsLate) {
            self.turn();
        }
        self.clients[at].received.push(Received::Subscribed(which));
        let key = (self.clients[at].id, which);
        let nth = self.clients[at].received.len();
        self.world.confirmed.lock().unwrap().insert(key, nth);
    }

    fn unsubscribe(&mut self, at: usize) {
        let which = thread_rng().gen_range(0..SUBJECTS.len());
        let (kind, name) = SUBJECTS[which];
        let id = self.clients[at].id;
        if self.clients[at].subscribed.remove(&which).is_none() {
            return;
        }
        self.world.confirmed.lock().unwrap().remove(&(id, which));
        let hash = self.world.registry.hash(name);
        let subscribers = (!self.world.has(Fault::SubscribesUnlocked)).then(|| self.subscribers());
        let until =
            self.world.registry.unsubscribe(ChannelId { kind, name, hash }, self.index, |_| {});
        let mut subscribers = subscribers.unwrap_or_else(|| self.subscribers());
        if !self.world.has(Fault::WithoutEnd) {
            subscribers.end(id, ChannelId { kind, name, hash }, until);
        }
        drop(subscribers);
        if !self.world.has(Fault::AnswersAtOnce) {
            self.receive();
            self.write_of(id);
        }
        self.subscribers().remove(id, ChannelId { kind, name, hash });
        self.clients[at].received.push(Received::Unsubscribed(which));
    }

    /// Moves a client to another thread, with its subscriptions.
    fn hand_over(&mut self, at: usize) {
        let to = (self.index + thread_rng().gen_range(1..THREADS)) % THREADS;
        let client = &self.clients[at];
        let id = client.id;
        let moved: Vec<_> =
            client.subscribed.iter().map(|(which, name)| (*which, name.clone())).collect();
        let world = Arc::clone(&self.world);
        let subject = |which: usize, name: &SharedName| {
            let hash = world.registry.hash(name);
            ChannelId { kind: SUBJECTS[which].0, name: SharedName::clone(name), hash }
        };
        let follow = |which: usize, name: &SharedName| {
            let ChannelId { kind, name, hash } = subject(which, name);
            world.registry.follow(ChannelId { kind, name: &name, hash }, to, |since| {
                let name = SharedName::clone(&name);
                world.deliver(to, Delivery::Follow { client: id, kind, name, hash, since });
            });
        };
        let transfer = |which: usize, name: &SharedName| {
            let ChannelId { kind, name, hash } = subject(which, name);
            world.registry.transfer(ChannelId { kind, name: &name, hash }, self.index, to);
        };
        if self.world.has(Fault::MovesWithoutEpoch) {
            for (which, name) in &moved {
                follow(*which, name);
                transfer(*which, name);
            }
        } else {
            moved.iter().for_each(|(which, name)| follow(*which, name));
            let mut subscribers = world.subscribers(self.index);
            let epoch = world.registry.begin_epoch();
            subscribers.end_at(id, epoch);
            drop(subscribers);
            world.deliver(to, Delivery::BeginAt { client: id, epoch });
            moved.iter().for_each(|(which, name)| transfer(*which, name));
        }
        if !self.world.has(Fault::MovesInHaste) {
            self.receive();
            self.write_of(id);
        }
        for (which, name) in &moved {
            let hash = self.world.registry.hash(name);
            self.subscribers().remove(id, ChannelId { kind: SUBJECTS[*which].0, name, hash });
        }
        self.subscribers().forget(id);
        let client = self.clients.swap_remove(at);
        self.world.inboxes[to].clients.lock().unwrap().push_back(client);
    }
}

/// The messages that a client received.
fn read(out: &Out, received: &mut Vec<Received>) {
    let text = String::from_utf8(out.bytes.clone()).unwrap();
    let mut lines = text.split("\r\n");
    while let Some(head) = lines.next().filter(|line| !line.is_empty()) {
        let count = if head == "*3" { 6 } else { 8 };
        let payload = (0..count).filter_map(|_| lines.next()).last().unwrap();
        let number = payload.parse().unwrap();
        let which = if head == "*3" { channel_of(number) } else { 2 };
        received.push(Received::Message(which, number));
    }
}

/// Runs the threads and checks what their clients have received.
pub(crate) fn run(fault: Option<Fault>) {
    // Patterns are tried with or without the locks.
    let locked_bytes_max = thread_rng().gen_range(0..2) * 100;
    let registry = ChannelRegistry::new(KeyHasher::new(1));
    let world = Arc::new(World {
        registry: registry.with_locked_bytes_max(locked_bytes_max),
        inboxes: Default::default(),
        counted: Mutex::default(),
        confirmed: Mutex::default(),
        expected: Mutex::default(),
        fault,
    });
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                let clients = (0..2).map(|nth| Subscriber {
                    id: (index * 2 + nth) as u64,
                    ..Subscriber::default()
                });
                let clients = clients.collect();
                let mut owner = Owner { world, index, clients, closed: Vec::new(), closes: false };
                for step in 0..STEPS {
                    owner.step((index * STEPS + step) as u64);
                }
                owner
            })
        })
        .collect();
    let mut owners: Vec<Owner> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    // Messages that are left are written within a bounded number of rounds.
    (0..THREADS * STEPS).for_each(|_| owners.iter_mut().for_each(Owner::turn));
    owners.iter_mut().for_each(|owner| {
        let ids: Vec<u64> = owner.clients.iter().map(|client| client.id).collect();
        ids.into_iter().for_each(|id| owner.write_of(id));
    });
    let all = owners.into_iter().flat_map(|owner| owner.clients.into_iter().chain(owner.closed));
    let clients: Vec<Subscriber> = all.collect();
    check(&clients, &world.counted.lock().unwrap());
    for (number, client, which) in &*world.expected.lock().unwrap() {
        let client = clients.iter().find(|other| other.id == *client).unwrap();
        let message = Received::Message(*which, *number);
        assert!(client.received.contains(&message), "misses a message: {number}, {client:?}");
    }
}

fn check(clients: &[Subscriber], counted: &BTreeMap<u64, usize>) {
    let mut receivers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut orders: Vec<Vec<u64>> = Vec::new();
    let mut orders_of_publishers = Vec::new();
    for client in clients {
        let mut subscribed = BTreeSet::new();
        let mut order: Vec<u64> = Vec::new();
        // The last message of each publisher.
        let mut last = [0; THREADS];
        for received in &client.received {
            match received {
                Received::Subscribed(which) => {
                    subscribed.insert(*which);
                }
                Received::Unsubscribed(which) => {
                    subscribed.remove(which);
                }
                Received::Message(which, number) => {
                    let within = subscribed.contains(which);
                    assert!(within, "before the confirmation or after the end: {client:?}");
                    *receivers.entry(*number).or_default() += 1;
                    if *which == 0 {
                        order.push(*number);
                    }
                    let publisher = *number as usize / STEPS;
                    let is_later = *number >= last[publisher];
                    last[publisher] = *number;
                    orders_of_publishers.push((client, is_later));
                }
            }
        }
        orders.push(order);
    }
    for (number, count) in counted {
        let received = receivers.get(number).copied().unwrap_or(0);
        assert_eq!(received, *count, "message {number}: received, and counted for {clients:?}");
    }
    for order in &orders {
        for other in &orders {
            let both: Vec<&u64> = order.iter().filter(|number| other.contains(number)).collect();
            let theirs: Vec<&u64> = other.iter().filter(|number| order.contains(number)).collect();
            assert_eq!(both, theirs, "one channel, two orders");
        }
    }
    for (client, is_later) in orders_of_publishers {
        assert!(is_later, "the order of a publisher: {client:?}");
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "client {}: {:?}", self.id, self.received)
    }
}
