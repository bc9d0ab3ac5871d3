//! The keys that the running command reads, for a client that tracks them.

use command::Flags;
use resp::Args;

use super::worker::Worker;
use crate::clients::client_tracking::Invalidation;
use crate::clients::session::Session;
use crate::command_table::entry::{Call, Entry};

/// The keys that the running command reads, as far as they are remembered.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// The client that is notified of changes.
    pub(crate) client: u64,
    pub(crate) names: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

/// The client whose command runs, if it tracks keys, and its notifications that follow the reply.
#[derive(Debug, Default)]
pub(crate) struct OwnNotifications {
    /// 0: no client, or one that does not track.
    pub(crate) client: u64,
    pub(crate) waiting: Vec<Invalidation>,
}

impl Worker {
    /// Prepares to remember the keys of a request when it has run, if its client asks for that.
    pub(crate) fn will_remember(&mut self, session: &Session, entry: &Entry, args: &Args<'_>) {
        let remembers = session.tracking.as_ref().is_some_and(|state| state.remembers());
        if !remembers || !is_read(entry) {
            return;
        }
        let Reads { client, names, ends } = &mut self.reads;
        *client = session.record.id;
        names.clear();
        ends.clear();
        for spec in entry.spec.keys {
            for at in spec.positions(args) {
                names.extend_from_slice(args.text(at));
                ends.push(names.len());
            }
        }
        if !ends.is_empty() {
            self.turn.effects.set_remembered(true);
        }
    }

    /// Remembers the keys of the command that has run. Its shards are still locked.
    pub(crate) fn remember_reads(&mut self) {
        self.turn.effects.set_remembered(false);
        let Reads { client, names, ends } = &self.reads;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        for (start, end) in starts.zip(ends) {
            let key = self.turn.key(&names[start..*end]);
            self.node.trackers.keys.remember(key.bytes, key.hash, *client);
        }
    }
}

/// Whether the keys of a request are remembered when it has run. The keys that a script reads are
/// remembered by its commands.
fn is_read(entry: &Entry) -> bool {
    let flags = entry.spec.flags;
    let returns_values = flags.has(Flags::READONLY) || flags.has(Flags::TRACKED);
    returns_values && !matches!(entry.call, Call::Script(_))
}
