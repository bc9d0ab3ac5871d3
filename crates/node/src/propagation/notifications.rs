//! Keyspace notifications: events of keys, published on channels.
//!
//! Events are published before the shards of their command are released, so that the events of a
//! key arrive in the order of its changes. In a transaction or script each command publishes its
//! own.

use base::number::push_u64;
use pubsub::ChannelKind;
use store::KeyspaceNotice;

use crate::execution::worker::Worker;

/// Publishes the changes of keys by the running command: tracking clients are notified, and events
/// are sent to their channels.
#[inline(never)]
pub(crate) fn publish_changes(worker: &mut Worker) {
    worker.notify_touched();
    if worker.turn.effects.is_remembered() {
        worker.remember_reads();
    }
    if worker.turn.effects.has_notices() {
        publish_notices(worker);
    }
}

fn publish_notices(worker: &mut Worker) {
    let events = worker.config.notify_keyspace_events;
    let notices = worker.turn.effects.take_notices();
    let pubsub = &worker.node.pubsub;
    if pubsub.len(ChannelKind::Channel) == 0 && pubsub.len(ChannelKind::Pattern) == 0 {
        return;
    }
    let mut channel = Vec::new();
    for KeyspaceNotice { db, name, key } in notices {
        let db = db.unwrap_or(0);
        if events.by_key {
            name_channel(&mut channel, b"__keyspace@", db, &key);
            worker.publish_event(&channel, name.as_bytes());
        }
        if events.by_event {
            name_channel(&mut channel, b"__keyevent@", db, name.as_bytes());
            worker.publish_event(&channel, &key);
        }
    }
}

fn name_channel(channel: &mut Vec<u8>, start: &[u8], db: usize, end: &[u8]) {
    channel.clear();
    channel.extend_from_slice(start);
    push_u64(channel, db as u64);
    channel.extend_from_slice(b"__:");
    channel.extend_from_slice(end);
}
