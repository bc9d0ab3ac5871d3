//! Three threads with clients that act at random, and the properties of the messages they receive.
//!
//! Around the product's registry and subscribers, this models as much of `node` and `server` as
//! carries messages between them: an inbox for each thread, and clients whose output is a list.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use base::hash::KeyHasher;
use resp::Out;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::message::{ChannelId, ChannelKind, PublishedMessage, SharedName};
use crate::registry::ChannelRegistry;
use crate::subscribers::Subscribers;

const THREADS: usize = 3;
/// The number of steps of each thread.
const STEPS: usize = 7;
const CHANNEL: &[u8] = b"c";
const SUBJECTS: [(ChannelKind, &[u8]); 2] =
    [(ChannelKind::Channel, CHANNEL), (ChannelKind::Pattern, b"c*")];

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
    /// The end of a round drops messages of the next one.
    EndsTheNextRound,
}

enum Delivery {
    Published(PublishedMessage),
    Adopt { client: u64, kind: ChannelKind, name: SharedName, hash: u64, since: u64 },
}

/// The output that a client has received, in order.
#[derive(Clone, Debug, PartialEq)]
enum Received {
    Subscribed(ChannelKind),
    Message(ChannelKind, u64),
    Unsubscribed(ChannelKind),
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
}

struct World {
    registry: ChannelRegistry,
    inboxes: [Inbox; THREADS],
    /// How many receivers each message was counted for.
    counted: Mutex<BTreeMap<u64, usize>>,
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
        let count = self.registry.publish(
            ChannelKind::Channel,
            CHANNEL,
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
    }
}

struct Owner {
    world: Arc<World>,
    index: usize,
    clients: Vec<Subscriber>,
    /// Clients that were closed.
    closed: Vec<Subscriber>,
    subscribers: Subscribers,
    /// The next client that is written to is found closed.
    closes: bool,
}

impl Owner {
    fn step(&mut self, number: u64) {
        let choice = thread_rng().gen_range(0..10);
        let at = match self.clients.len() {
            0 => None,
            len => Some(thread_rng().gen_range(0..len)),
        };
        match (choice, at) {
            (0..=3, _) => self.world.publish(number),
            (4 | 5, Some(at)) => self.subscribe(at),
            (6 | 7, Some(at)) => self.unsubscribe(at),
            (8, Some(at)) => self.hand_over(at),
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
            self.subscribers.place(client.id, 0);
            self.clients.push(client);
        }
        self.write();
    }

    fn receive(&mut self) {
        loop {
            let next = self.world.inboxes[self.index].deliveries.lock().unwrap().pop_front();
            match next {
                Some(Delivery::Published(message)) => {
                    self.subscribers.receive(message);
                }
                Some(Delivery::Adopt { client, kind, name, hash, since }) => {
                    let gone = self.world.has(Fault::TakesFirst)
                        && !self.clients.iter().any(|other| other.id == client);
                    if !gone {
                        self.subscribers.add(client, None, ChannelId { kind, name, hash }, since);
                    }
                }
                None => return,
            }
        }
    }

    fn write(&mut self) {
        let mut ready = Vec::new();
        self.subscribers.take_ready(&mut ready);
        for pending in ready {
            let client = self.clients.iter_mut().find(|client| client.id == pending.id);
            match client {
                Some(client) => {
                    let mut out = Out::default();
                    self.subscribers.write(pending, &mut out, false);
                    read(&out, &mut client.received);
                    if std::mem::take(&mut self.closes) {
                        self.close(pending.id);
                    }
                }
                None => {
                    self.subscribers.keep(pending);
                }
            }
        }
        if self.world.has(Fault::EndsTheNextRound) {
            self.subscribers.take_ready(&mut Vec::new());
        }
        self.subscribers.end_round();
    }

    /// Closes a client in the middle of a round. It receives the messages it was counted for, so
    /// more is taken in for the other clients, too.
    fn close(&mut self, id: u64) {
        let Some(at) = self.clients.iter().position(|client| client.id == id) else { return };
        let mut client = self.clients.remove(at);
        let subscribed = std::mem::take(&mut client.subscribed);
        for (which, name) in &subscribed {
            let subject = ChannelId {
                kind: SUBJECTS[*which].0,
                name: &**name,
                hash: self.world.registry.hash(name),
            };
            let until = self.world.registry.unsubscribe(subject, self.index, |_| {});
            self.subscribers.end(id, subject, until);
        }
        self.receive();
        let mut out = Out::default();
        self.subscribers.write_of(id, &mut out, false);
        read(&out, &mut client.received);
        for (which, name) in &subscribed {
            let hash = self.world.registry.hash(name);
            self.subscribers.remove(id, ChannelId { kind: SUBJECTS[*which].0, name, hash });
        }
        self.subscribers.forget(id);
        self.closed.push(client);
    }

    fn subscribe(&mut self, at: usize) {
        let client = &mut self.clients[at];
        let which = thread_rng().gen_range(0..SUBJECTS.len());
        let (kind, name) = SUBJECTS[which];
        if client.subscribed.contains_key(&which) {
            return;
        }
        let hash = self.world.registry.hash(name);
        let begun =
            self.world.registry.subscribe(ChannelId { kind, name, hash }, self.index, |_| {});
        let from_the_beginning = self.world.has(Fault::FromTheBeginning);
        let since = if from_the_beginning { 0 } else { begun.since };
        client.subscribed.insert(which, begun.name.clone());
        self.subscribers.add(client.id, Some(0), ChannelId { kind, name: begun.name, hash }, since);
        if self.world.has(Fault::ConfirmsLate) {
            self.turn();
        }
        self.clients[at].received.push(Received::Subscribed(kind));
    }

    fn unsubscribe(&mut self, at: usize) {
        let which = thread_rng().gen_range(0..SUBJECTS.len());
        let (kind, name) = SUBJECTS[which];
        let id = self.clients[at].id;
        if self.clients[at].subscribed.remove(&which).is_none() {
            return;
        }
        let hash = self.world.registry.hash(name);
        let until =
            self.world.registry.unsubscribe(ChannelId { kind, name, hash }, self.index, |_| {});
        if !self.world.has(Fault::WithoutEnd) {
            self.subscribers.end(id, ChannelId { kind, name, hash }, until);
        }
        if !self.world.has(Fault::AnswersAtOnce) {
            self.receive();
            self.write();
        }
        self.subscribers.remove(id, ChannelId { kind, name, hash });
        self.clients[at].received.push(Received::Unsubscribed(kind));
    }

    /// Moves a client to another thread, with its subscriptions.
    fn hand_over(&mut self, at: usize) {
        let to = (self.index + thread_rng().gen_range(1..THREADS)) % THREADS;
        let client = &self.clients[at];
        let id = client.id;
        let moved: Vec<_> =
            client.subscribed.iter().map(|(which, name)| (*which, name.clone())).collect();
        for (which, name) in &moved {
            let kind = SUBJECTS[*which].0;
            let hash = self.world.registry.hash(name);
            let world = &self.world;
            let until =
                world.registry.transfer(ChannelId { kind, name, hash }, self.index, to, |since| {
                    let name = name.clone();
                    world.deliver(to, Delivery::Adopt { client: id, kind, name, hash, since });
                });
            self.subscribers.end(id, ChannelId { kind, name, hash }, until);
        }
        if !self.world.has(Fault::MovesInHaste) {
            self.receive();
            self.write();
        }
        for (which, name) in &moved {
            let hash = self.world.registry.hash(name);
            self.subscribers.remove(id, ChannelId { kind: SUBJECTS[*which].0, name, hash });
        }
        let client = self.clients.swap_remove(at);
        self.world.inboxes[to].clients.lock().unwrap().push_back(client);
    }
}

/// The messages that a client received.
fn read(out: &Out, received: &mut Vec<Received>) {
    let text = String::from_utf8(out.bytes.clone()).unwrap();
    let mut lines = text.split("\r\n");
    while let Some(head) = lines.next().filter(|line| !line.is_empty()) {
        let kind = if head == "*3" { ChannelKind::Channel } else { ChannelKind::Pattern };
        let count = if head == "*3" { 6 } else { 8 };
        let payload = (0..count).filter_map(|_| lines.next()).last().unwrap();
        received.push(Received::Message(kind, payload.parse().unwrap()));
    }
}

/// Runs the threads and checks what their clients have received.
pub(crate) fn run(fault: Option<Fault>) {
    let world = Arc::new(World {
        registry: ChannelRegistry::new(KeyHasher::new(1)),
        inboxes: Default::default(),
        counted: Mutex::default(),
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
                let subscribers = Subscribers::default();
                let closed = Vec::new();
                let mut owner = Owner { world, index, clients, closed, subscribers, closes: false };
                for step in 0..STEPS {
                    owner.step((index * STEPS + step) as u64);
                }
                owner
            })
        })
        .collect();
    let mut owners: Vec<Owner> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    owners.iter_mut().for_each(Owner::turn);
    let all = owners.into_iter().flat_map(|owner| owner.clients.into_iter().chain(owner.closed));
    let clients: Vec<Subscriber> = all.collect();
    check(&clients, &world.counted.lock().unwrap());
}

fn check(clients: &[Subscriber], counted: &BTreeMap<u64, usize>) {
    let mut receivers: BTreeMap<u64, usize> = BTreeMap::new();
    let mut orders: Vec<Vec<u64>> = Vec::new();
    for client in clients {
        let mut subscribed = BTreeSet::new();
        let mut order = Vec::new();
        for received in &client.received {
            match received {
                Received::Subscribed(kind) => {
                    subscribed.insert(*kind as u8);
                }
                Received::Unsubscribed(kind) => {
                    subscribed.remove(&(*kind as u8));
                }
                Received::Message(kind, number) => {
                    let within = subscribed.contains(&(*kind as u8));
                    assert!(within, "before the confirmation or after the end: {client:?}");
                    *receivers.entry(*number).or_default() += 1;
                    if *kind == ChannelKind::Channel {
                        order.push(*number);
                    }
                }
            }
        }
        orders.push(order);
    }
    for (number, count) in counted {
        let received = receivers.get(number).copied().unwrap_or(0);
        assert_eq!(received, *count, "message {number}: received, and counted for");
    }
    for order in &orders {
        for other in &orders {
            let both: Vec<&u64> = order.iter().filter(|number| other.contains(number)).collect();
            let theirs: Vec<&u64> = other.iter().filter(|number| order.contains(number)).collect();
            assert_eq!(both, theirs, "one channel, two orders");
        }
    }
}

impl std::fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "client {}: {:?}", self.id, self.received)
    }
}
