//! Places beyond `maxclients`, so that a server whose clients have taken all others still answers
//! PING and can be administered: by CLIENT LIST and CLIENT KILL, CONFIG SET maxclients, INFO.
//!
//! A client that connects beyond the limit gets one of a few such places and may use no keys. At
//! its first other request it gets the error that Redis sends to such clients at once, and is
//! closed. When enough other clients have left, it becomes an ordinary client.
//!
//! Clients of an application that connect and say nothing yet must not keep an operator out: when
//! all places are taken, the next client gets the place of the one that was silent for the longest
//! time, unless all of them have just been used for administration. And clients that connect again
//! and again must not push out an operator before the first request: a new client keeps its place
//! for a moment, and a client that finds none is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::record::{ClientRecord, flag};

/// Clients beyond `maxclients`.
pub const RESERVED_CLIENTS_MAX: usize = 8;
/// How long a place is kept after an administrator has used it, in milliseconds.
const KEPT_MS: i64 = 60_000;
/// How long a place is kept in any case, in milliseconds.
const NEW_MS: i64 = 200;

/// The clients beyond `maxclients`.
#[derive(Debug, Default)]
pub struct Reserve(Mutex<Vec<Arc<ClientRecord>>>);

impl Reserve {
    /// Makes a place for another client; `close` closes one to make room. Returns whether there is
    /// a place. For the thread that accepts connections, as is `add`.
    pub fn make_place(&self, steady_ms: i64, close: impl FnOnce(&ClientRecord)) -> bool {
        let mut clients = self.0.lock();
        // Only this list refers to a client that has left.
        clients.retain(|record| {
            record.has(flag::RESERVED)
                && !record.location.is_killed()
                && Arc::strong_count(record) > 1
        });
        if clients.len() < RESERVED_CLIENTS_MAX {
            return true;
        }
        let seen_ms = |record: &ClientRecord| record.seen_ms.load(Ordering::Relaxed);
        let may_go = |record: &ClientRecord| {
            let is_kept = record.has(flag::ADMINISTERS) && steady_ms - seen_ms(record) <= KEPT_MS;
            !is_kept && steady_ms - record.created_ms >= NEW_MS
        };
        let all = clients.iter().enumerate().filter(|(_, record)| may_go(record));
        let Some((at, _)) = all.min_by_key(|(_, record)| seen_ms(record)) else { return false };
        close(&clients.remove(at));
        true
    }

    /// Another client has got a place.
    pub fn add(&self, record: &Arc<ClientRecord>) {
        self.0.lock().push(Arc::clone(record));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn silent_clients_are_closed_to_make_room_but_not_administrators() {
        const LATER_MS: i64 = 10 + NEW_MS;
        let reserve = Reserve::default();
        let connect = |id: u64| {
            let place = (Box::from("a"), Box::from("b"));
            let record = ClientRecord::new(id, place, 1, id as i64, flag::RESERVED);
            let record = Arc::new(record);
            reserve.add(&record);
            record
        };
        let mut closed = Vec::new();
        let mut make_place = |steady_ms| {
            let mut one = None;
            let has_place = reserve.make_place(steady_ms, |record| one = Some(record.id));
            closed.extend(one);
            (has_place, one)
        };
        let clients: Vec<_> = (1..=8)
            .map(|id| {
                assert_eq!(make_place(10), (true, None));
                connect(id)
            })
            .collect();
        clients[0].set_flag(flag::ADMINISTERS, true);
        // The second one has just come.
        assert_eq!(make_place(1 + NEW_MS), (false, None));
        assert_eq!(make_place(2 + NEW_MS), (true, Some(2)));
        let ninth = connect(9);
        ninth.set_flag(flag::ADMINISTERS, true);
        clients.iter().for_each(|client| client.set_flag(flag::ADMINISTERS, true));
        assert_eq!(make_place(LATER_MS), (false, None));
        // One becomes a client like any other, one is closed.
        clients[3].set_flag(flag::RESERVED, false);
        assert_eq!(make_place(LATER_MS), (true, None));
        let tenth = connect(10);
        tenth.set_flag(flag::ADMINISTERS, true);
        assert_eq!(make_place(LATER_MS), (false, None));
        // An administrator leaves.
        drop(ninth);
        assert_eq!(make_place(LATER_MS), (true, None));
        let eleventh = connect(11);
        eleventh.set_flag(flag::ADMINISTERS, true);
        assert_eq!(make_place(LATER_MS), (false, None));
        assert_eq!(make_place(2 + KEPT_MS), (true, Some(1)));
        assert_eq!(closed, [2, 1]);
    }
}
