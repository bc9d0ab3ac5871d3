//! Keyspace notifications: events of keys, published on channels.
//!
//! Events are published before the shards of their command are let go, so that the events of a key
//! come in the order in which it changed. In a transaction and in a script each command publishes
//! its own.

use base::number::push_u64;
use pubsub::ChannelKind;
use store::KeyspaceNotice;

use crate::execution::worker::Worker;

impl Worker {
    /// Tells what the running command has done to keys, as far as someone wants to know.
    #[inline]
    pub(crate) fn publish_events(&mut self) {
        if self.turn.effects.has_news() {
            self.publish_news();
        }
    }

    #[inline(never)]
    fn publish_news(&mut self) {
        self.tell_touched();
        if self.turn.effects.is_remembered() {
            self.remember_reads();
        }
        if self.turn.effects.has_notices() {
            self.publish_notices();
        }
    }

    fn publish_notices(&mut self) {
        let events = self.config.notify_keyspace_events;
        let notices = self.turn.effects.take_notices();
        let pubsub = &self.node.pubsub;
        if pubsub.len(ChannelKind::Channel) == 0 && pubsub.len(ChannelKind::Pattern) == 0 {
            return;
        }
        let mut channel = Vec::new();
        for KeyspaceNotice { db, name, key } in notices {
            let db = db.unwrap_or(0);
            if events.by_key {
                name_channel(&mut channel, b"__keyspace@", db, &key);
                self.publish_event(&channel, name.as_bytes());
            }
            if events.by_event {
                name_channel(&mut channel, b"__keyevent@", db, name.as_bytes());
                self.publish_event(&channel, &key);
            }
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
