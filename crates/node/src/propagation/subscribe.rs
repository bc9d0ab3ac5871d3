//! How a client's subscriptions begin, end and change threads.
//!
//! The thread that has a client in its slots is the home of its subscriptions: messages for them go
//! there. Nearly always it also runs the client's commands. A client that was moved to the main
//! thread can change its subscriptions there only in a transaction that needs that thread; its home
//! gets these changes in order with messages.
//!
//! A subscription ends in three steps: the registry stops counting it; its home takes in the
//! messages so far, which the client receives before the reply; its home forgets it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pubsub::{ChannelId, ChannelKind, ClientSubscriptions, SharedName};
use resp::Out;

use crate::clients::record::{ClientRecord, flag};
use crate::clients::session::Session;
use crate::execution::worker::Worker;
use crate::state::inboxes::{Delivery, ReliefCause, Subscription};
use crate::state::node::Node;

/// Whether a client may have so many more subscriptions, with so many bytes of names together.
pub(crate) fn has_room(session: &Session, names: usize, bytes: usize) -> bool {
    let subscriptions = session.record.subscriptions.lock();
    match subscriptions.as_ref() {
        Some(subscriptions) => subscriptions.has_room_for(names, bytes),
        None => ClientSubscriptions::default().has_room_for(names, bytes),
    }
}

/// The names of a kind that a client is subscribed to.
pub(crate) fn names(session: &Session, kind: ChannelKind) -> Vec<SharedName> {
    let subscriptions = session.record.subscriptions.lock();
    let all = subscriptions.iter().flat_map(|all| all.iter(kind));
    all.map(|(name, _)| SharedName::clone(name)).collect()
}

/// The count with which a client's subscriptions of a kind are confirmed.
pub(crate) fn count(session: &Session, kind: ChannelKind) -> usize {
    session.record.subscriptions.lock().as_ref().map_or(0, |all| all.counted(kind))
}

/// Begins a subscription, unless the client has it. Returns the count to confirm it with.
pub(crate) fn begin(
    worker: &mut Worker,
    session: &Session,
    kind: ChannelKind,
    name: &[u8],
) -> usize {
    let record = &session.record;
    let (client, (home, slot)) = (record.id, record.location.place());
    let (home, slot) = (home as usize, Some(slot as usize));
    let mut subscriptions = record.subscriptions.lock();
    let subscriptions = subscriptions.get_or_insert_with(|| {
        // The thread that killed the client before does not find it among the subscribers.
        let counted_on = (!record.location.is_killed()).then_some(home);
        Box::new(ClientSubscriptions::new(counted_on))
    });
    if subscriptions.contains(kind, name) {
        return subscriptions.counted(kind);
    }
    let node = Arc::clone(&worker.node);
    let hash = node.pubsub.hash(name);
    if subscriptions.counted_on().is_none() {
        subscriptions.add(kind, name.into(), hash);
        return subscriptions.counted(kind);
    }
    // Meanwhile no other thread takes messages in for this one.
    let deliveries = Arc::clone(&worker.deliveries);
    let mut subscribers = (home == worker.index).then(|| deliveries.subscribers());
    let begun = node.pubsub.subscribe(ChannelId { kind, name, hash }, home, |begun| {
        if home != worker.index {
            let (name, moment) = (SharedName::clone(&begun.name), begun.since);
            let begin = Subscription { client, slot, kind, name, hash, moment };
            node.inboxes.push(home, Delivery::Begin(Box::new(begin)));
        }
    });
    if let Some(subscribers) = &mut subscribers {
        let name = SharedName::clone(&begun.name);
        deliveries.activate();
        subscribers.add(client, slot, ChannelId { kind, name, hash }, begun.since);
    }
    drop(subscribers);
    subscriptions.add(kind, begun.name, hash);
    subscriptions.counted(kind)
}

/// Ends those of the named subscriptions that the client has. Its messages so far are written to
/// `out`. Calls `confirm` for each name, with the count that is left.
pub(crate) fn end(
    worker: &mut Worker,
    session: &Session,
    kind: ChannelKind,
    names: &[SharedName],
    out: &mut Out,
    is_nested: bool,
    mut confirm: impl FnMut(&mut Out, &SharedName, usize),
) {
    let record = &session.record;
    let client = record.id;
    let mut subscriptions = record.subscriptions.lock();
    let Some(subscriptions) = subscriptions.as_mut() else {
        return names.iter().for_each(|name| confirm(out, name, 0));
    };
    let node = Arc::clone(&worker.node);
    let home = record.location.place().0 as usize;
    let is_home = home == worker.index;
    // A repeated name ends once.
    let owned = names.iter().filter(|name| subscriptions.contains(kind, name));
    let ending: BTreeMap<&SharedName, u64> =
        owned.map(|name| (name, node.pubsub.hash(name))).collect();
    for (&name, &hash) in &ending {
        let tell_home = |moment| {
            if !is_home {
                let (slot, name) = (None, SharedName::clone(name));
                let end = Subscription { client, slot, kind, name, hash, moment };
                node.inboxes.push(home, Delivery::End(Box::new(end)));
            }
        };
        // Meanwhile no other thread takes messages in for this one.
        let mut subscribers = is_home.then(|| worker.deliveries.subscribers());
        let until = match subscriptions.counted_on() {
            Some(home) => node.pubsub.unsubscribe(ChannelId { kind, name, hash }, home, tell_home),
            None => {
                tell_home(0);
                0
            }
        };
        if let Some(subscribers) = &mut subscribers {
            subscribers.end(client, ChannelId { kind, name, hash }, until);
        }
    }
    if is_home && !ending.is_empty() {
        worker.deliveries.receive_all();
        if !is_nested {
            worker.deliveries.subscribers().write_of(client, out, session.resp3);
        }
        for (&name, &hash) in &ending {
            worker.deliveries.subscribers().remove(client, ChannelId { kind, name, hash });
        }
    }
    for name in names {
        subscriptions.remove(kind, name);
        confirm(out, name, subscriptions.counted(kind));
    }
}

/// Publishes whether the client has subscriptions, after they have changed.
pub(crate) fn note_change(worker: &Worker, session: &mut Session) {
    let mut subscriptions = session.record.subscriptions.lock();
    let has_some = subscriptions.as_ref().is_some_and(|all| all.has_channels());
    let watches = subscriptions.as_ref().is_some_and(|all| all.len(ChannelKind::Requests) > 0);
    if !has_some && !watches {
        *subscriptions = None;
    }
    drop(subscriptions);
    session.record.set_flag(flag::PUBSUB, has_some);
    session.record.set_flag(flag::MONITOR, watches);
    session.set_subscribed(has_some, watches, &worker.node.users);
}

/// Ends all subscriptions of a client that is closed. For the client's owner.
pub fn forget(worker: &mut Worker, record: &ClientRecord) {
    worker.node.stop_counting(record);
    let Some(subscriptions) = record.subscriptions.lock().take() else { return };
    for (kind, name, hash) in subscriptions.all() {
        worker.deliveries.subscribers().remove(record.id, ChannelId { kind, name, hash });
    }
    worker.deliveries.forget(record.id);
    record.set_flag(flag::PUBSUB, false);
    if record.has(flag::MONITOR) {
        record.set_flag(flag::MONITOR, false);
        worker.node.requests_watched();
    }
}

/// Moves the subscriptions of a client that goes from this thread to another, and writes the
/// messages that have arrived here. For the client's owner, which sends the client afterwards.
///
/// No other thread waits: it takes some of the subscriptions at a time, and messages go on. The
/// client receives them in order, as [`pubsub::registry`] says.
pub fn hand_over(worker: &mut Worker, session: &Session, to: usize, out: &mut Out) {
    let record = &session.record;
    let (node, from, client) = (Arc::clone(&worker.node), worker.index, record.id);
    let mut subscriptions = record.subscriptions.lock();
    let Some(all) = subscriptions.as_mut() else { return };
    // It may have been killed, and then the registry does not count it.
    let is_counted = all.counted_on().is_some();
    all.set_moves(is_counted);
    drop(subscriptions);
    // Some may have been begun on another thread.
    worker.deliveries.receive_all();
    if is_counted {
        let mut count = 0;
        for_each(record, |kind, name, hash| {
            node.pubsub.follow(ChannelId { kind, name, hash }, to, |moment| {
                let (slot, name) = (None, SharedName::clone(name));
                let follow = Subscription { client, slot, kind, name, hash, moment };
                node.inboxes.push(to, Delivery::Follow(Box::new(follow)));
            });
            count += 1;
            if count % LOCKED_MAX == 0 {
                // The other thread's clients do not wait for all of them.
                node.inboxes.relieve(to, ReliefCause::Move);
            }
        });
        let mut subscribers = worker.deliveries.subscribers();
        let epoch = node.pubsub.begin_epoch();
        subscribers.end_at(client, epoch);
        drop(subscribers);
        node.inboxes.push(to, Delivery::BeginAt(client, epoch));
        for_each(record, |kind, name, hash| {
            node.pubsub.transfer(ChannelId { kind, name, hash }, from, to);
        });
        end_move(&node, record, to);
    }
    worker.deliveries.receive_all();
    worker.deliveries.subscribers().write_of(client, out, session.resp3);
    // It has messages that the client will not get, so its next thread closes it.
    if worker.deliveries.subscribers().is_given_up(client) && node.kill(record) {
        worker.stats.output_limit_closes.add(1);
    }
    for_each(record, |kind, name, hash| {
        worker.deliveries.subscribers().remove(client, ChannelId { kind, name, hash });
    });
    worker.deliveries.subscribers().forget(client);
}

/// Counts a client on its next thread, or no longer, if it was killed meanwhile.
fn end_move(node: &Node, record: &ClientRecord, to: usize) {
    let mut subscriptions = record.subscriptions.lock();
    let Some(all) = subscriptions.as_mut() else { return };
    all.set_moves(false);
    let is_killed = all.counted_on().is_none();
    all.count_on(Some(to));
    drop(subscriptions);
    if is_killed {
        node.stop_counting(record);
    }
}

/// Subscriptions for which the list of a client is locked at a time.
const LOCKED_MAX: usize = 256;

/// Visits all subscriptions of a client, which do not change meanwhile.
fn for_each(record: &ClientRecord, mut visit: impl FnMut(ChannelKind, &SharedName, u64)) {
    for kind in ChannelKind::ALL {
        let mut last = None;
        loop {
            let subscriptions = record.subscriptions.lock();
            let all = subscriptions.as_ref();
            let some = all.map(|all| all.some(kind, last.as_ref(), LOCKED_MAX)).unwrap_or_default();
            drop(subscriptions);
            some.iter().for_each(|(name, hash)| visit(kind, name, *hash));
            match some.into_iter().next_back() {
                Some((name, _)) => last = Some(name),
                None => break,
            }
        }
    }
}
