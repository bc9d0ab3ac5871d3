//! The subscribers of one thread, and the published messages that each has not received yet.
//!
//! ```text
//!   message -> channel  -> clients --+--> pending of a client: indexes of the round's messages
//!           -> patterns -> clients --+           |                         |
//!                                         written, all at once     kept, while it is moved
//! ```
//!
//! A round takes messages in, then writes all pending messages of each client at once. A client
//! that cannot be written to now, because it is moved to another thread, keeps its messages in
//! order.
//!
//! Message numbers continue from round to round. A message taken in while a round is written
//! belongs to the next one: it outlives the end of the round, and its number stays valid.
//!
//! A client without subscriptions stays until its messages are written. This module knows no
//! sockets: `slot` is the client's place on its thread and has no meaning here.

use std::collections::HashMap;
use std::sync::Arc;

use base::uncounted::Uncounted;
use hashbrown::HashTable;
use resp::Out;
use resp::out::SharedMessage;

use crate::message::{ChannelId, ChannelKind, DELIVERY_BYTES, PublishedMessage, SharedName, write};

/// The end of a subscription that has not ended.
const NEVER: u64 = u64::MAX;
/// A message to the channel itself, not by a pattern.
const NO_PATTERN: u32 = u32::MAX;
/// The approximate bytes that a kept message takes in addition to its body.
const KEPT_BYTES: usize = 64;

/// One client among those of a channel or pattern.
#[derive(Debug)]
struct Receiver {
    /// The position of the client.
    at: usize,
    /// It receives messages from `since` on and before `until`.
    since: u64,
    until: u64,
}

/// A channel or pattern with its clients on this thread, by their positions.
#[derive(Debug)]
struct Followed {
    hash: u64,
    name: SharedName,
    clients: Vec<Receiver>,
}

impl Followed {
    fn place(&mut self, at: usize) -> Option<&mut Receiver> {
        let found = self.clients.binary_search_by_key(&at, |place| place.at).ok()?;
        self.clients.get_mut(found)
    }
}

/// A message of the round, and the pattern by which a client receives it.
#[derive(Clone, Copy, Debug)]
struct MessageRef {
    /// Its number.
    message: u32,
    pattern: u32,
}

/// A message that outlives the round.
#[derive(Debug)]
struct KeptMessage {
    kind: ChannelKind,
    pattern: Option<SharedName>,
    body: Arc<SharedMessage>,
    /// The memory of an event in addition to its body; otherwise 0.
    _uncounted: Uncounted,
}

#[derive(Debug)]
struct Subscriber {
    id: u64,
    slot: Option<usize>,
    subscriptions: usize,
    kept: Vec<KeptMessage>,
    pending: Vec<MessageRef>,
    /// The approximate bytes that both will take in its output.
    waiting_bytes: usize,
    /// It is in the list of clients with pending messages.
    is_ready: bool,
    /// It exceeded its limit and receives nothing more.
    is_given_up: bool,
}

/// A client with messages to write.
#[derive(Clone, Copy, Debug)]
pub struct PendingClient {
    at: usize,
    /// The client's number.
    pub id: u64,
    /// Its place on its thread, or `None` while it is moved there.
    pub slot: Option<usize>,
}

/// The subscribers of one thread.
#[derive(Debug, Default)]
pub struct Subscribers {
    clients: Vec<Option<Subscriber>>,
    free: Vec<usize>,
    by_id: HashMap<u64, usize>,
    channels: HashTable<Followed>,
    patterns: HashTable<Followed>,
    shard_channels: HashTable<Followed>,
    requests: HashTable<Followed>,
    /// The messages of the round, followed by those of the next one.
    messages: Vec<PublishedMessage>,
    /// The number of the first message. It wraps.
    first: u32,
    /// How many of them belong to the round that is being written.
    in_round: usize,
    ready: Vec<usize>,
}

impl Subscribers {
    /// Whether there are no subscribers and no pending messages.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    fn table(&mut self, kind: ChannelKind) -> &mut HashTable<Followed> {
        match kind {
            ChannelKind::Channel => &mut self.channels,
            ChannelKind::Pattern => &mut self.patterns,
            ChannelKind::Shard => &mut self.shard_channels,
            ChannelKind::Requests => &mut self.requests,
        }
    }

    /// Sets the slot of a client of this thread.
    pub fn place(&mut self, id: u64, slot: usize) {
        if let Some(client) = self.client_mut(id) {
            client.slot = Some(slot);
        }
    }

    fn client_mut(&mut self, id: u64) -> Option<&mut Subscriber> {
        self.clients.get_mut(*self.by_id.get(&id)?)?.as_mut()
    }

    /// Adds a subscription of a client, with its slot if the client is here. It receives messages
    /// from the moment `since` on.
    pub fn add(
        &mut self,
        id: u64,
        slot: Option<usize>,
        channel: ChannelId<SharedName>,
        since: u64,
    ) {
        let ChannelId { kind, name, hash } = channel;
        let at = self.by_id.get(&id).copied().unwrap_or_else(|| self.join(id, slot));
        let followed = self.table(kind).entry(
            hash,
            |followed| *followed.name == *name,
            |followed| followed.hash,
        );
        let mut followed = followed.or_insert_with(|| Followed { hash, name, clients: Vec::new() });
        let clients = &mut followed.get_mut().clients;
        match clients.binary_search_by_key(&at, |place| place.at) {
            Ok(found) => {
                debug_assert!(false, "a subscription is removed before it begins again");
                clients[found].until = NEVER;
                return;
            }
            Err(behind) => {
                if clients.is_empty() {
                    // Nearly always there is one client.
                    clients.reserve_exact(1);
                }
                clients.insert(behind, Receiver { at, since, until: NEVER });
            }
        }
        if let Some(Some(client)) = self.clients.get_mut(at) {
            client.subscriptions += 1;
        }
    }

    fn join(&mut self, id: u64, slot: Option<usize>) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        self.clients[at] = Some(Subscriber {
            id,
            slot,
            subscriptions: 0,
            kept: Vec::new(),
            pending: Vec::new(),
            waiting_bytes: 0,
            is_ready: false,
            is_given_up: false,
        });
        self.by_id.insert(id, at);
        at
    }

    /// Ends a client's subscription at the moment `until`, from which on it receives nothing.
    pub fn end(&mut self, id: u64, channel: ChannelId<&[u8]>, until: u64) {
        let ChannelId { kind, name, hash } = channel;
        let Some(at) = self.by_id.get(&id).copied() else { return };
        let followed = self.table(kind).find_mut(hash, |followed| *followed.name == *name);
        if let Some(place) = followed.and_then(|followed| followed.place(at)) {
            place.until = until;
        }
    }

    /// Removes a subscription of a client. Messages that arrived before stay pending.
    pub fn remove(&mut self, id: u64, channel: ChannelId<&[u8]>) {
        let ChannelId { kind, name, hash } = channel;
        let Some(at) = self.by_id.get(&id).copied() else { return };
        let found = self.table(kind).find_entry(hash, |followed| *followed.name == *name);
        let Ok(mut found) = found else { return };
        let clients = &mut found.get_mut().clients;
        let Ok(place) = clients.binary_search_by_key(&at, |place| place.at) else { return };
        clients.remove(place);
        if clients.is_empty() {
            found.remove();
            shrink(self.table(kind), |followed| followed.hash);
        }
        let Some(Some(client)) = self.clients.get_mut(at) else { return };
        client.subscriptions -= 1;
        // A client that the round has not reached yet has pending messages too.
        let has_pending = client.is_ready || !client.pending.is_empty() || !client.kept.is_empty();
        if client.subscriptions == 0 && !has_pending {
            self.leave(at);
        }
    }

    /// Forgets a client with its pending messages, if its subscriptions have been removed.
    pub fn forget(&mut self, id: u64) {
        if let Some(at) = self.by_id.get(&id).copied()
            && self.clients[at].as_ref().is_some_and(|client| client.subscriptions == 0)
        {
            self.leave(at);
        }
    }

    fn leave(&mut self, at: usize) {
        if let Some(client) = self.clients[at].take() {
            debug_assert_eq!(client.subscriptions, 0, "its subscriptions are removed first");
            self.by_id.remove(&client.id);
            if client.is_ready {
                self.ready.retain(|ready| *ready != at);
            }
            self.free.push(at);
        }
        if self.by_id.is_empty() {
            // Frees the room that thousands of clients needed. Messages that arrived since the
            // round began have no receiver.
            let mut messages = std::mem::take(&mut self.messages);
            messages.truncate(self.in_round);
            let (first, in_round) = (self.first, self.in_round);
            *self = Self { messages, first, in_round, ..Self::default() };
        }
    }

    /// Takes in a message. Returns the number of subscriptions that receive it.
    pub fn receive(&mut self, message: PublishedMessage) -> usize {
        let number = self.first.wrapping_add(self.messages.len() as u32);
        let Self { clients, channels, patterns, shard_channels, requests, ready, .. } = self;
        let mut receivers = 0;
        let bytes = message.body().len() + DELIVERY_BYTES;
        let mut give = |followed: &Followed, moment: u64, pattern: u32| {
            for place in &followed.clients {
                if !(place.since..place.until).contains(&moment) {
                    continue;
                }
                let Some(Some(client)) = clients.get_mut(place.at) else { continue };
                if client.is_given_up {
                    continue;
                }
                if !client.is_ready {
                    client.is_ready = true;
                    ready.push(place.at);
                }
                client.pending.push(MessageRef { message: number, pattern });
                client.waiting_bytes += bytes;
                receivers += 1;
            }
        };
        let of_kind = match message.kind {
            ChannelKind::Shard => shard_channels,
            ChannelKind::Requests => requests,
            ChannelKind::Channel | ChannelKind::Pattern => channels,
        };
        let channel = message.channel();
        if let Some(followed) = of_kind.find(message.hash, |other| *other.name == *channel) {
            give(followed, message.moment, NO_PATTERN);
        }
        if let Some(matches) = &message.matches {
            for (index, (name, hash)) in (0..).zip(&matches.patterns) {
                if let Some(followed) = patterns.find(*hash, |other| other.name == *name) {
                    give(followed, matches.moment, index);
                }
            }
        }
        if receivers > 0 {
            self.messages.push(message);
        }
        receivers
    }

    /// Begins a round: lists the clients with pending messages. For each of them, unless it is
    /// [forgotten](Self::forget) first, call either [`write`](Self::write) or [`keep`](Self::keep),
    /// and then [`end_round`](Self::end_round).
    pub fn take_ready(&mut self, ready: &mut Vec<PendingClient>) {
        ready.clear();
        self.in_round = self.messages.len();
        for at in self.ready.drain(..) {
            if let Some(Some(client)) = self.clients.get_mut(at) {
                client.is_ready = false;
                ready.push(PendingClient { at, id: client.id, slot: client.slot });
            }
        }
    }

    /// Writes all pending messages of a client, if it is still here.
    pub fn write(&mut self, pending: PendingClient, out: &mut Out, resp3: bool) {
        let Some(client) = client_of(&mut self.clients, pending) else { return };
        if !client.kept.is_empty() {
            for KeptMessage { kind, pattern, body, .. } in std::mem::take(&mut client.kept) {
                write(&body, kind, pattern.as_ref(), out, resp3);
            }
        }
        client.waiting_bytes = 0;
        for item in client.pending.drain(..) {
            let Some((message, pattern)) = resolve(&self.messages, self.first, item) else {
                continue;
            };
            write(message.body(), message.kind, pattern, out, resp3);
        }
        client.pending.shrink_to(PENDING_KEPT);
        if client.subscriptions == 0 {
            self.leave(pending.at);
        }
    }

    /// Keeps the pending messages of a client that cannot be written to now. Returns the
    /// approximate bytes that wait for it.
    pub fn keep(&mut self, pending: PendingClient) -> usize {
        let Some(client) = client_of(&mut self.clients, pending) else { return 0 };
        for item in client.pending.drain(..) {
            let Some((message, pattern)) = resolve(&self.messages, self.first, item) else {
                continue;
            };
            let (kind, body) = (message.kind, Arc::clone(message.body()));
            let _uncounted = Uncounted::new(if body.is_about_keys() { KEPT_BYTES } else { 0 });
            client.kept.push(KeptMessage { kind, pattern: pattern.cloned(), body, _uncounted });
        }
        if !client.is_ready {
            client.is_ready = true;
            self.ready.push(pending.at);
        }
        client.waiting_bytes
    }

    /// Gives up the clients with at least `bytes_max` waiting bytes: drops their messages, and they
    /// receive nothing more. Returns their numbers. They stay in the list of pending clients, so
    /// that their thread closes them.
    pub fn give_up(&mut self, bytes_max: usize) -> Vec<u64> {
        let mut given_up = Vec::new();
        for client in self.clients.iter_mut().flatten() {
            if client.waiting_bytes >= bytes_max {
                (client.kept, client.pending) = (Vec::new(), Vec::new());
                client.waiting_bytes = 0;
                client.is_given_up = true;
                given_up.push(client.id);
            }
        }
        if !given_up.is_empty() {
            self.drop_unwanted();
        }
        given_up
    }

    /// Drops the messages that no client waits for. The others keep their numbers.
    fn drop_unwanted(&mut self) {
        let mut is_wanted = vec![false; self.messages.len()];
        for item in self.clients.iter().flatten().flat_map(|client| &client.pending) {
            if let Some(wanted) = is_wanted.get_mut(item.message.wrapping_sub(self.first) as usize)
            {
                *wanted = true;
            }
        }
        let all = self.messages.iter_mut().zip(is_wanted);
        all.filter(|(_, wanted)| !wanted).for_each(|(message, _)| message.drop_body());
    }

    /// Writes all pending messages of one client, in the middle of a round.
    pub fn write_of(&mut self, id: u64, out: &mut Out, resp3: bool) {
        let Some(at) = self.by_id.get(&id).copied() else { return };
        let Some(Some(client)) = self.clients.get_mut(at) else { return };
        if !client.is_ready {
            return;
        }
        client.is_ready = false;
        let pending = PendingClient { at, id, slot: client.slot };
        self.ready.retain(|ready| *ready != at);
        self.write(pending, out, resp3);
    }

    /// Whether messages wait to be written.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Ends a round, whose messages are all written or kept. Messages that arrived since it began
    /// stay.
    pub fn end_round(&mut self) {
        let ended = std::mem::take(&mut self.in_round);
        self.messages.drain(..ended);
        self.first = self.first.wrapping_add(ended as u32);
        self.messages.shrink_to(PENDING_KEPT);
    }
}

/// Frees most of the room of a table that needs a small part of it.
pub(crate) fn shrink<T>(table: &mut HashTable<T>, hash: impl Fn(&T) -> u64) {
    let len = table.len();
    if table.capacity() > SHRINK_FROM && table.capacity() / SHRINK_RATIO >= len {
        table.shrink_to(2 * len, hash);
    }
}

/// The least capacity from which a table shrinks, and the capacity for each used entry that makes
/// it shrink.
pub(crate) const SHRINK_FROM: usize = 64;
pub(crate) const SHRINK_RATIO: usize = 8;

/// Entries that lists keep from round to round.
const PENDING_KEPT: usize = 64;

/// The client at a position, unless another client has taken the position.
fn client_of(
    clients: &mut [Option<Subscriber>],
    pending: PendingClient,
) -> Option<&mut Subscriber> {
    clients.get_mut(pending.at)?.as_mut().filter(|client| client.id == pending.id)
}

/// The message and pattern of a reference; the first message has the number `first`.
fn resolve(
    messages: &[PublishedMessage],
    first: u32,
    item: MessageRef,
) -> Option<(&PublishedMessage, Option<&SharedName>)> {
    let message = messages.get(item.message.wrapping_sub(first) as usize);
    debug_assert!(message.is_some(), "what is pending is here");
    let message = message?;
    let matches = message.matches.as_ref().filter(|_| item.pattern != NO_PATTERN);
    let pattern = matches.and_then(|matches| matches.patterns.get(item.pattern as usize));
    Some((message, pattern.map(|(name, _)| name)))
}
