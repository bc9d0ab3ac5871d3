//! Sessions that clients may resume, which spares both sides most of a handshake.
//!
//! They are kept here rather than in encrypted tickets, so that `tls-session-cache-size` and
//! `tls-session-cache-timeout` have their meaning and a session of TLS 1.3 serves once. All threads
//! share the store; only handshakes use it.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::server::StoresServerSessions;

/// Sessions remembered when the configuration sets no limit.
const SESSIONS_MAX: usize = 1 << 20;

/// The sessions, the oldest of which make room for new ones.
#[derive(Debug)]
pub struct Sessions {
    count_max: usize,
    lifetime: Duration,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<Vec<u8>, Session>,
    /// Ids by age, the oldest first, each with the number of its session: an id may come back.
    order: VecDeque<(Vec<u8>, u64)>,
    next_number: u64,
}

#[derive(Debug)]
struct Session {
    value: Vec<u8>,
    stored: Instant,
    number: u64,
}

impl Sessions {
    /// An empty store for `count_max` sessions (0: no limit of the configuration's), each for so
    /// many seconds.
    pub fn new(count_max: u32, lifetime_seconds: u32) -> Self {
        let count_max = match count_max as usize {
            0 => SESSIONS_MAX,
            count => count.min(SESSIONS_MAX),
        };
        let lifetime = Duration::from_secs(u64::from(lifetime_seconds));
        Self { count_max, lifetime, kept: Mutex::default() }
    }

    fn put_at(&self, id: Vec<u8>, value: Vec<u8>, now: Instant) -> bool {
        let mut kept = self.kept.lock();
        let number = kept.next_number;
        kept.next_number += 1;
        kept.order.push_back((id.clone(), number));
        kept.by_id.insert(id, Session { value, stored: now, number });
        // Sessions that were taken leave their entries in the order, so the order has a bound of
        // its own.
        while kept.order.len() > self.count_max {
            let Some((oldest, number)) = kept.order.pop_front() else { break };
            if kept.by_id.get(&oldest).is_some_and(|session| session.number == number) {
                kept.by_id.remove(&oldest);
            }
        }
        true
    }

    fn session_at(&self, id: &[u8], now: Instant) -> Option<Vec<u8>> {
        let kept = self.kept.lock();
        let session = kept.by_id.get(id)?;
        self.is_fresh(session, now).then(|| session.value.clone())
    }

    fn take_at(&self, id: &[u8], now: Instant) -> Option<Vec<u8>> {
        let session = self.kept.lock().by_id.remove(id)?;
        self.is_fresh(&session, now).then_some(session.value)
    }

    fn is_fresh(&self, session: &Session, now: Instant) -> bool {
        now.duration_since(session.stored) < self.lifetime
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.put_at(key, value, Instant::now())
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.session_at(key, Instant::now())
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.take_at(key, Instant::now())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_make_room() {
        let (sessions, now) = (Sessions::new(2, 300), Instant::now());
        for id in 1..=3u8 {
            sessions.put_at(vec![id], vec![id, id], now);
        }
        assert_eq!(sessions.session_at(&[1], now), None);
        assert_eq!(sessions.session_at(&[2], now), Some(vec![2, 2]));
        assert_eq!(sessions.take_at(&[3], now), Some(vec![3, 3]));
        assert_eq!(sessions.take_at(&[3], now), None);
    }

    #[test]
    fn an_id_that_comes_back_is_young_again() {
        let (sessions, now) = (Sessions::new(2, 300), Instant::now());
        for (id, value) in [(1u8, 1u8), (1, 2), (2, 3)] {
            sessions.put_at(vec![id], vec![value], now);
        }
        assert_eq!(sessions.session_at(&[1], now), Some(vec![2]));
        assert_eq!(sessions.session_at(&[2], now), Some(vec![3]));
    }

    #[test]
    fn sessions_end_with_their_time() {
        let (sessions, now) = (Sessions::new(0, 300), Instant::now());
        sessions.put_at(vec![1], vec![7], now);
        assert_eq!(sessions.session_at(&[1], now + Duration::from_secs(299)), Some(vec![7]));
        assert_eq!(sessions.session_at(&[1], now + Duration::from_secs(300)), None);
        assert_eq!(sessions.take_at(&[1], now + Duration::from_secs(300)), None);
    }
}
