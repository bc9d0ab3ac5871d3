//! The subscribers of one thread, and the published messages that each has not received yet.
//!
//! ```text
//!   message -> channel  -> clients --+--> pending of a client: references to messages
//!           -> patterns -> clients --+           |                         |
//!                                         written, many at once    kept, while it is moved
//! ```
//!
//! A round takes messages in, then writes pending messages of each client at once. A client that
//! cannot be written to now, because it is moved to another thread, keeps its messages in order.
//! Another thread may take messages in for a thread that is busy with a slow command. Then it
//! watches the clients for which half of the limit waits, and gives up those at the limit.
//!
//! A message stays as long as some client refers to it. A client without subscriptions stays until
//! its messages are written. This module knows no sockets: `slot` is the client's place on its
//! thread and has no meaning here.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use hashbrown::HashTable;
use resp::Out;

use crate::message::{ChannelId, ChannelKind, DELIVERY_BYTES, PublishedMessage, SharedName, write};
use crate::pending_messages::{MessageRef, NO_PATTERN, PENDING_KEPT, PendingMessages, pattern_of};

/// The end of a subscription that has not ended.
const NEVER: u64 = u64::MAX;

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

#[derive(Debug)]
struct Subscriber {
    id: u64,
    slot: Option<usize>,
    subscriptions: usize,
    /// One of them is to the executed requests.
    watches: bool,
    pending: VecDeque<MessageRef>,
    /// The approximate bytes that they will take in its output.
    waiting_bytes: usize,
    /// Those that its output had when it was last written to, if they are many.
    output_bytes: usize,
    /// It is in the list of clients that have much waiting.
    is_listed: bool,
    /// It is in the list of clients with pending messages.
    is_ready: bool,
    /// It exceeded its limit and receives nothing more.
    is_given_up: bool,
    /// It receives the messages of these epochs here.
    epochs: Range<usize>,
    /// It is not known yet from which epoch on: its old thread still writes messages.
    is_arriving: bool,
}

impl Subscriber {
    /// Whether so much waits for it that other threads should wait for its thread. The limit of
    /// subscribers does not hold for a client that only watches requests.
    fn is_behind(&self, limit: usize) -> bool {
        self.waiting_bytes.saturating_add(self.output_bytes) >= limit.div_ceil(2)
            && self.subscriptions > usize::from(self.watches)
            && !self.is_given_up
    }

    fn pending(&self, at: usize) -> PendingClient {
        PendingClient { at, id: self.id, slot: self.slot, had_output: self.output_bytes > 0 }
    }
}

/// The extent of a write to a client.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenMessages {
    /// The approximate bytes that its messages take.
    pub bytes: usize,
    /// More messages are pending.
    pub has_more: bool,
    /// The client was [given up](Subscribers::give_up), and must be closed.
    pub is_given_up: bool,
}

/// A client with messages to write.
#[derive(Clone, Copy, Debug)]
pub struct PendingClient {
    at: usize,
    /// The client's number.
    pub id: u64,
    /// Its place on its thread, or `None` while it is moved there.
    pub slot: Option<usize>,
    /// Its output was long when it was last written to.
    pub had_output: bool,
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
    messages: PendingMessages,
    ready: Vec<usize>,
    /// The limit of bytes that may wait for a client, or 0 if no other thread has taken messages
    /// in; and clients for which half of them wait, or have waited.
    limit: usize,
    behind: Vec<usize>,
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
            client.watches |= kind == ChannelKind::Requests;
        }
    }

    /// Adds a subscription of a client that still receives its messages on another thread.
    pub fn follow(&mut self, id: u64, channel: ChannelId<SharedName>, since: u64) {
        let is_new = !self.by_id.contains_key(&id);
        self.add(id, None, channel, since);
        if is_new && let Some(client) = self.client_mut(id) {
            client.is_arriving = true;
        }
    }

    /// A client receives messages here from an epoch on; earlier ones it has from another thread.
    pub fn begin_at(&mut self, id: u64, epoch: usize) {
        let Self { clients, by_id, messages, .. } = self;
        let client = by_id.get(&id).and_then(|at| clients.get_mut(*at)?.as_mut());
        let Some(client) = client else { return };
        client.is_arriving = false;
        client.epochs.start = epoch;
        client.waiting_bytes = 0;
        client.pending.retain(|item| {
            let message = messages.get(*item).filter(|message| message.epoch >= epoch);
            let bytes = message.map(|message| message.body().len() + DELIVERY_BYTES);
            match bytes {
                Some(bytes) => client.waiting_bytes += bytes,
                None => messages.release(*item),
            }
            bytes.is_some()
        });
    }

    /// A client receives messages here until an epoch begins, and then on another thread.
    pub fn end_at(&mut self, id: u64, epoch: usize) {
        if let Some(client) = self.client_mut(id) {
            client.epochs.end = epoch;
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
            watches: false,
            pending: VecDeque::new(),
            waiting_bytes: 0,
            output_bytes: 0,
            is_listed: false,
            is_ready: false,
            is_given_up: false,
            epochs: 0..usize::MAX,
            is_arriving: false,
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
        client.watches &= kind != ChannelKind::Requests;
        // A client that the round has not reached yet has pending messages too.
        let has_pending = client.is_ready || !client.pending.is_empty();
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
            client.pending.into_iter().for_each(|item| self.messages.release(item));
            self.free.push(at);
        }
        if self.by_id.is_empty() {
            // Frees the room that thousands of clients needed.
            *self = Self::default();
        }
    }

    /// Takes in a message. Returns the number of subscriptions that receive it.
    pub fn receive(&mut self, message: PublishedMessage) -> usize {
        let place_of_message = self.messages.next();
        let Self { clients, channels, patterns, shard_channels, requests, ready, .. } = self;
        let (limit, behind) = (self.limit, &mut self.behind);
        let mut receivers = 0;
        let bytes = message.body().len() + DELIVERY_BYTES;
        let epoch = message.epoch;
        let mut give = |followed: &Followed, moment: u64, pattern: u32| {
            for place in &followed.clients {
                if !(place.since..place.until).contains(&moment) {
                    continue;
                }
                let Some(Some(client)) = clients.get_mut(place.at) else { continue };
                if client.is_given_up || !client.epochs.contains(&epoch) {
                    continue;
                }
                if !client.is_ready {
                    client.is_ready = true;
                    ready.push(place.at);
                }
                client.pending.push_back(MessageRef { message: place_of_message, pattern });
                receivers += 1;
                if client.is_arriving {
                    continue;
                }
                client.waiting_bytes += bytes;
                if limit != 0 && !client.is_listed && client.is_behind(limit) {
                    client.is_listed = true;
                    behind.push(place.at);
                }
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
            self.messages.add(message, receivers);
        }
        receivers
    }

    /// Lists the clients with pending messages. For each of them, unless it is
    /// [forgotten](Self::forget) first, call either [`write`](Self::write) or [`keep`](Self::keep).
    pub fn take_ready(&mut self, ready: &mut Vec<PendingClient>) {
        ready.clear();
        for at in self.ready.drain(..) {
            if let Some(Some(client)) = self.clients.get_mut(at) {
                client.is_ready = false;
                ready.push(client.pending(at));
            }
        }
    }

    /// Writes pending messages of a client, if it is still here, until they take `bytes_max` bytes.
    /// If there are more, [keep](Self::keep) the client.
    pub fn write(
        &mut self,
        pending: PendingClient,
        out: &mut Out,
        resp3: bool,
        bytes_max: usize,
    ) -> WrittenMessages {
        let Self { clients, messages, .. } = self;
        let mut written = WrittenMessages::default();
        let Some(client) = client_of(clients, pending) else { return written };
        if client.is_given_up {
            return WrittenMessages { is_given_up: true, ..written };
        }
        while written.bytes < bytes_max
            && let Some(item) = client.pending.pop_front()
        {
            if let Some(message) = messages.get(item) {
                written.bytes += message.body().len() + DELIVERY_BYTES;
                write(message.body(), message.kind, pattern_of(message, item), out, resp3);
            }
            messages.release(item);
        }
        client.waiting_bytes = client.waiting_bytes.saturating_sub(written.bytes);
        written.has_more = !client.pending.is_empty();
        if written.has_more {
            return written;
        }
        client.pending.shrink_to(PENDING_KEPT);
        if client.subscriptions == 0 {
            self.leave(pending.at);
        }
        written
    }

    /// Keeps the pending messages of a client that cannot be written to now, or not all of them.
    /// Returns the approximate bytes that wait for it.
    pub fn keep(&mut self, pending: PendingClient) -> usize {
        let Some(client) = client_of(&mut self.clients, pending) else { return 0 };
        if !client.is_ready {
            client.is_ready = true;
            self.ready.push(pending.at);
        }
        client.waiting_bytes
    }

    /// Notes how many bytes a client's output has after a [write](Self::write).
    pub fn note_output(&mut self, pending: PendingClient, bytes: usize) {
        if let Some(client) = client_of(&mut self.clients, pending) {
            client.output_bytes = bytes;
        }
    }

    /// Sets the limit of bytes that may wait for a client.
    pub fn set_limit(&mut self, limit: usize) {
        if std::mem::replace(&mut self.limit, limit) == limit {
            return;
        }
        self.behind.clear();
        for (at, client) in self.clients.iter_mut().enumerate() {
            let Some(client) = client else { continue };
            client.is_listed = client.is_behind(limit);
            if client.is_listed {
                self.behind.push(at);
            }
        }
    }

    /// Whether half of the limit waits for some client.
    pub fn is_some_behind(&mut self) -> bool {
        while let Some(at) = self.behind.last().copied() {
            if let Some(Some(client)) = self.clients.get_mut(at) {
                if client.is_behind(self.limit) {
                    return true;
                }
                client.is_listed = false;
            }
            self.behind.pop();
        }
        false
    }

    /// The approximate memory of all pending messages.
    pub fn pending_bytes(&self) -> usize {
        self.messages.bytes
    }

    /// Gives up the clients for which the limit waits: drops their messages, and they receive
    /// nothing more. They stay in the list of pending clients, so that their thread closes them.
    pub fn give_up(&mut self) {
        let (limit, listed) = (self.limit, std::mem::take(&mut self.behind));
        let is_over =
            |client: &Subscriber| client.is_behind(limit) && client.waiting_bytes >= limit;
        for at in listed {
            match self.clients.get(at).and_then(Option::as_ref) {
                Some(client) if is_over(client) => self.give_up_client(at),
                _ => self.behind.push(at),
            }
        }
    }

    /// Gives up the clients that watch requests and for which at least `bytes_min` wait.
    pub fn give_up_watchers(&mut self, bytes_min: usize) {
        let clients = self.requests.iter().flat_map(|followed| &followed.clients);
        let watching: Vec<usize> = clients.map(|receiver| receiver.at).collect();
        for at in watching {
            let client = self.clients.get(at).and_then(Option::as_ref);
            if client.is_some_and(|client| client.waiting_bytes >= bytes_min) {
                self.give_up_client(at);
            }
        }
    }

    fn give_up_client(&mut self, at: usize) {
        let Self { clients, messages, ready, .. } = self;
        let Some(Some(client)) = clients.get_mut(at) else { return };
        std::mem::take(&mut client.pending).into_iter().for_each(|item| messages.release(item));
        client.waiting_bytes = 0;
        client.is_given_up = true;
        client.is_listed = false;
        if !std::mem::replace(&mut client.is_ready, true) {
            ready.push(at);
        }
    }

    /// Whether a client was [given up](Self::give_up): its thread closes it.
    pub fn is_given_up(&self, client: u64) -> bool {
        let client = self.by_id.get(&client).and_then(|at| self.clients[*at].as_ref());
        client.is_some_and(|client| client.is_given_up)
    }

    /// Writes all pending messages of one client, in the middle of a round.
    pub fn write_of(&mut self, id: u64, out: &mut Out, resp3: bool) {
        let Some(at) = self.by_id.get(&id).copied() else { return };
        let Some(Some(client)) = self.clients.get_mut(at) else { return };
        // Its thread closes a client that was given up.
        if !client.is_ready || client.is_given_up {
            return;
        }
        client.is_ready = false;
        let pending = client.pending(at);
        self.ready.retain(|ready| *ready != at);
        self.write(pending, out, resp3, usize::MAX);
    }

    /// Whether messages wait to be written.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
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

/// The client at a position, unless another client has taken the position.
fn client_of(
    clients: &mut [Option<Subscriber>],
    pending: PendingClient,
) -> Option<&mut Subscriber> {
    clients.get_mut(pending.at)?.as_mut().filter(|client| client.id == pending.id)
}
