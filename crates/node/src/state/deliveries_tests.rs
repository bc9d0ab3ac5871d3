//! Deliveries of one thread, and messages that other threads take in for it.

#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::sync::Arc;

use base::hash::KeyHasher;
use base::uncounted::thread_bytes;
use pubsub::{ChannelId, ChannelKind, ChannelRegistry, PendingClient, PublishedMessage};
use resp::Out;

use super::deliveries::Deliveries;
use super::inboxes::{Delivery, Inboxes, RELIEVED_BYTES_MAX, ReliefCause};
use crate::clients::record::ClientRecord;

/// Events are left out of the count until they are written, or no client waits for them.
#[test]
fn messages_in_delivery_are_uncounted() {
    let inboxes = Arc::new(Inboxes::new());
    let deliveries = Deliveries::new(1, Arc::clone(&inboxes));
    deliveries.open(Arc::new(|| {}));
    let registry = ChannelRegistry::new(KeyHasher::new(1));
    let name = ChannelId { kind: ChannelKind::Channel, name: &b"c"[..], hash: registry.hash(b"c") };
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
    let name = ChannelId { kind: ChannelKind::Channel, name: &b"c"[..], hash: registry.hash(b"c") };
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

/// A thread with subscribers, and publishers on other threads.
struct World {
    inboxes: Arc<Inboxes>,
    deliveries: Deliveries,
    registry: ChannelRegistry,
    published: Cell<usize>,
}

impl World {
    /// A hundred subscribers of `c` and one of `quiet`.
    fn new() -> Self {
        let inboxes = Arc::new(Inboxes::new());
        let deliveries = Deliveries::new(1, Arc::clone(&inboxes));
        deliveries.open(Arc::new(|| {}));
        deliveries.activate();
        assert!(deliveries.begins_round());
        let registry = ChannelRegistry::new(KeyHasher::new(1));
        let world = Self { inboxes, deliveries, registry, published: Cell::new(0) };
        (1..=100).for_each(|client| world.follow(client, ChannelKind::Channel, b"c"));
        world.follow(101, ChannelKind::Channel, b"quiet");
        world
    }

    fn follow(&self, client: u64, kind: ChannelKind, name: &[u8]) {
        let hash = self.registry.hash(name);
        let begun = self.registry.subscribe(ChannelId { kind, name, hash }, 1, |_| {});
        let channel = ChannelId { kind, name: begun.name, hash };
        self.deliveries.subscribers().add(client, None, channel, begun.since);
    }

    fn push(&self, message: PublishedMessage) {
        self.inboxes.push(1, Delivery::Published(message));
    }

    fn publish(&self, channel: &[u8], number: usize) {
        let payload = format!("{number:01000}");
        let kind = ChannelKind::Channel;
        let push = &mut |_, message| self.push(message);
        self.registry.publish(kind, channel, payload.as_bytes(), push);
    }

    /// Publishes until publishers must wait. Returns how many messages there were so far.
    fn fill(&self) -> usize {
        while !self.inboxes.are_some_full() {
            self.publish(b"c", self.published.get());
            self.published.set(self.published.get() + 1);
        }
        self.published.get()
    }

    /// Lists the clients that were given up.
    fn given_up(&self) -> Vec<u64> {
        let mut ready = Vec::new();
        self.deliveries.receive_nothing(&mut ready);
        let mut given_up = Vec::new();
        for pending in ready {
            let mut subscribers = self.deliveries.subscribers();
            if subscribers.write(pending, &mut Out::default(), false, 0).is_given_up {
                given_up.push(pending.id);
            }
            subscribers.keep(pending);
        }
        given_up.sort_unstable();
        given_up
    }
}

/// A thread that is busy with a slow command takes nothing in.
#[test]
fn another_thread_takes_messages_in() {
    let world = World::new();
    let World { inboxes, deliveries, .. } = &world;
    world.publish(b"quiet", 0);
    let first = world.fill();
    let mut rounds = 0;
    while inboxes.are_some_full() {
        inboxes.relieve(1, ReliefCause::Stall(64 << 20));
        rounds += 1;
    }
    assert!(rounds < 10 && inboxes.relieved() == 1, "{rounds}");
    assert!(!deliveries.prepare_sleep(), "the thread has to write them");
    let all = world.fill();
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
    // At their limit, clients are given up, and listed until their thread closes them.
    world.publish(b"quiet", 1);
    world.fill();
    inboxes.relieve(1, ReliefCause::LongStall(50_000));
    for _ in 0..2 {
        assert_eq!(world.given_up(), (1..=100).collect::<Vec<u64>>());
    }
    drop(world.deliveries);
    world.inboxes.relieve(1, ReliefCause::Command(1));
    assert!(!world.inboxes.are_some_full());
}

/// Slow commands that follow one another on a thread, which writes a part of the messages
/// between them: publishers wait before a subscriber is at its limit.
#[test]
fn subscribers_that_read_beside_slow_commands_are_not_given_up() {
    const LIMIT: usize = 1 << 20;
    let world = World::new();
    let World { inboxes, deliveries, .. } = &world;
    let (mut ready, mut all, mut written) = (Vec::new(), 0, 0);
    let write = |pending: PendingClient, bytes_max| {
        let mut out = Out::default();
        let mut subscribers = deliveries.subscribers();
        let part = subscribers.write(pending, &mut out, false, bytes_max);
        assert!(!part.is_given_up);
        if part.has_more {
            subscribers.keep(pending);
        }
        part.bytes
    };
    for _ in 0..100 {
        // A slow command, with publishers that go on for as long as they may.
        for _ in 0..20 {
            inboxes.relieve(1, ReliefCause::Stall(LIMIT));
            all = world.fill();
        }
        deliveries.receive_nothing(&mut ready);
        written += ready.drain(..).map(|pending| write(pending, 10_000)).sum::<usize>();
    }
    assert!(all * 1000 > 3 * LIMIT / 2 && written > 0, "{all}");
    inboxes.relieve(1, ReliefCause::Stall(LIMIT));
    assert!(deliveries.subscribers().is_some_behind());
    // One of them does not read its output: they wait for that, too.
    deliveries.receive_nothing(&mut ready);
    let rest: Vec<PendingClient> = ready.clone();
    for pending in ready.drain(..) {
        write(pending, usize::MAX);
    }
    assert!(!deliveries.subscribers().is_some_behind());
    deliveries.subscribers().note_output(rest[0], LIMIT / 2 - 500);
    inboxes.relieve(1, ReliefCause::Stall(LIMIT));
    assert!(deliveries.subscribers().is_some_behind());
    let pending_bytes = deliveries.subscribers().pending_bytes();
    assert!(pending_bytes < 3000, "one message: {pending_bytes}");
}

/// The limit of subscribers does not hold for clients that only watch requests.
#[test]
fn watchers_are_given_up_only_if_they_would_miss_lines() {
    let world = World::new();
    let World { inboxes, deliveries, .. } = &world;
    world.follow(200, ChannelKind::Requests, b"");
    world.follow(201, ChannelKind::Requests, b"");
    world.follow(201, ChannelKind::Channel, b"quiet");
    let show = || {
        let line = vec![b'+'; 100_000];
        world.registry.show_request(line, |_| {}, &mut |_, message| world.push(message));
    };
    (0..20).for_each(|_| show());
    world.fill();
    while inboxes.are_some_full() {
        inboxes.relieve(1, ReliefCause::LongStall(1 << 20));
    }
    assert_eq!(world.given_up(), [201]);
    assert!(inboxes.has_room_for_lines(1));
    inboxes.cut(1);
    assert!(!inboxes.has_room_for_lines(1));
    deliveries.receive_all();
    assert!(inboxes.has_room_for_lines(1));
    assert_eq!(world.given_up(), [200, 201]);
}

/// A thread without room for more memory is waited for.
#[test]
fn the_memory_of_messages_for_a_slow_thread_is_bounded() {
    let world = World::new();
    let World { inboxes, deliveries, .. } = &world;
    let payload = vec![b'x'; 4 << 20];
    let mut count = 0;
    while !inboxes.are_some_full() {
        let push = &mut |_, message| world.push(message);
        world.registry.publish(ChannelKind::Channel, b"c", &payload, push);
        inboxes.relieve(1, ReliefCause::LongStall(PENDING_MAX));
        count += 1;
    }
    let most = (RELIEVED_BYTES_MAX + (16 << 20)) / payload.len() + 2;
    assert!((most - 4..=most).contains(&count), "{count}");
    let pending = deliveries.subscribers().pending_bytes();
    assert!(pending < RELIEVED_BYTES_MAX + (4 << 20) + 100_000, "{pending}");
    // A command that publishes more cannot wait.
    inboxes.relieve(1, ReliefCause::Command(PENDING_MAX));
    assert!(!inboxes.are_some_full());
    let mut ready = Vec::new();
    deliveries.receive_nothing(&mut ready);
    for pending in ready {
        deliveries.subscribers().write(pending, &mut Out::default(), false, usize::MAX);
    }
    assert_eq!(deliveries.subscribers().pending_bytes(), 0);
}
const PENDING_MAX: usize = 4 << 30;

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
