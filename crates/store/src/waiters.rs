//! Who waits for keys of a shard: a queue for each key, first come first served.
//!
//! Waiters stand here from the moment their command finds nothing, under the same lock under which
//! it looked. A waiter of several keys stands in several queues, of several shards perhaps; when
//! it has been served or has given up, it is dead in all of them, passed over and dropped by
//! whoever comes by, and taken out of the rest by its owner.
//!
//! What it deliberately does not do: know what a waiter wants or how it is answered.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::turn::Key;

/// One who waits, as far as shards are concerned.
pub trait Waiter: Any + Send + Sync + fmt::Debug {
    /// Whether it still waits. Once false, always false.
    fn waits(&self) -> bool;
    /// Whether a key with a value of this type, or none, may be what it waits for.
    fn wants(&self, type_name: Option<&'static str>) -> bool;
    /// The hash of another key that is written to when it is served.
    fn target(&self) -> Option<u64>;
}

/// The waiters of one shard.
#[derive(Debug, Default)]
pub struct Waiters {
    /// By the hash of the key.
    lines: HashMap<u64, Vec<Line>>,
}

/// Those who wait for one key of one database.
#[derive(Debug)]
struct Line {
    db: usize,
    key: Box<[u8]>,
    queue: VecDeque<Arc<dyn Waiter>>,
}

impl Waiters {
    fn line(&mut self, db: usize, key: Key<'_>) -> Option<&mut Line> {
        let lines = self.lines.get_mut(&key.hash)?;
        lines.iter_mut().find(|line| line.db == db && *line.key == *key.bytes)
    }

    /// Adds a waiter to the end of a key's queue, unless it stands there already. Returns whether
    /// it was added.
    pub(crate) fn add(&mut self, db: usize, key: Key<'_>, waiter: Arc<dyn Waiter>) -> bool {
        if let Some(line) = self.line(db, key) {
            let is_there = line.queue.back().is_some_and(|last| Arc::ptr_eq(last, &waiter));
            if !is_there {
                line.queue.push_back(waiter);
            }
            return !is_there;
        }
        let line = Line { db, key: key.bytes.into(), queue: VecDeque::from([waiter]) };
        self.lines.entry(key.hash).or_default().push(line);
        true
    }

    /// Takes a waiter out of a key's queue. Returns whether it stood there. It is searched for
    /// from the front, where those are who have waited longest.
    pub(crate) fn leave(&mut self, db: usize, key: Key<'_>, waiter: &Arc<dyn Waiter>) -> bool {
        let Some(line) = self.line(db, key) else { return false };
        match line.queue.iter().position(|other| Arc::ptr_eq(other, waiter)) {
            Some(at) => self.remove(db, key, at),
            None => false,
        }
    }

    fn forget_if_empty(&mut self, db: usize, key: Key<'_>) {
        let Some(lines) = self.lines.get_mut(&key.hash) else { return };
        lines.retain(|line| !(line.queue.is_empty() && line.db == db && *line.key == *key.bytes));
        if lines.is_empty() {
            self.lines.remove(&key.hash);
        }
    }

    /// The first waiter from place `from` on that wants a value of this type.
    pub fn next(
        &mut self,
        db: usize,
        key: Key<'_>,
        from: usize,
        type_name: Option<&'static str>,
    ) -> Option<(usize, Arc<dyn Waiter>)> {
        let queue = &self.line(db, key)?.queue;
        let found = (from..queue.len()).find(|at| {
            let waiter = &queue[*at];
            waiter.waits() && waiter.wants(type_name)
        });
        found.map(|at| (at, Arc::clone(&queue[at])))
    }

    /// Takes the waiter at a place out of a key's queue. Returns whether there was one.
    pub(crate) fn remove(&mut self, db: usize, key: Key<'_>, at: usize) -> bool {
        let removed = self.line(db, key).and_then(|line| line.queue.remove(at)).is_some();
        self.forget_if_empty(db, key);
        removed
    }

    /// Whether someone may wait for a key with this hash.
    pub fn is_awaited(&self, hash: u64) -> bool {
        self.lines.contains_key(&hash)
    }

    /// The hashes of the keys that may be written to when those are served who wait for keys with
    /// this hash.
    pub fn targets(&self, hash: u64) -> impl Iterator<Item = u64> {
        let lines = self.lines.get(&hash).into_iter().flatten();
        let waiters = lines.flat_map(|line| &line.queue).filter(|waiter| waiter.waits());
        waiters.filter_map(|waiter| waiter.target())
    }

    /// The keys that someone waits for, with their databases and hashes.
    pub fn keys(&self) -> impl Iterator<Item = (usize, Key<'_>)> {
        self.lines.iter().flat_map(|(hash, lines)| {
            lines.iter().map(|line| (line.db, Key { bytes: &line.key, hash: *hash }))
        })
    }

    /// Keys that someone waits for, and those among them where someone waits also for the key's
    /// end.
    pub fn count(&self) -> (usize, usize) {
        let lines = || self.lines.values().flatten();
        let live = |waiter: &&Arc<dyn Waiter>| waiter.waits();
        let waited = lines().filter(|line| line.queue.iter().any(|waiter| live(&waiter)));
        let for_end =
            lines().filter(|line| line.queue.iter().filter(live).any(|waiter| waiter.wants(None)));
        (waited.count(), for_end.count())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Debug)]
    struct TestWaiter {
        waits: AtomicBool,
        wants: &'static str,
        target: Option<u64>,
    }

    impl Waiter for TestWaiter {
        fn waits(&self) -> bool {
            self.waits.load(Ordering::Relaxed)
        }

        fn wants(&self, type_name: Option<&'static str>) -> bool {
            type_name == Some(self.wants) || self.wants == "end"
        }

        fn target(&self) -> Option<u64> {
            self.target
        }
    }

    fn someone(wants: &'static str, target: Option<u64>) -> Arc<TestWaiter> {
        Arc::new(TestWaiter { waits: AtomicBool::new(true), wants, target })
    }

    fn key(bytes: &[u8]) -> Key<'_> {
        // All in one line of the map, as if their hashes collided.
        Key { bytes, hash: 7 }
    }

    #[test]
    fn a_queue_is_first_come_first_served() {
        let mut waiters = Waiters::default();
        let [a, b, c] = [someone("list", Some(1)), someone("zset", None), someone("list", Some(3))];
        for waiter in [&a, &b, &c] {
            assert!(waiters.add(0, key(b"k"), waiter.clone()));
        }
        assert!(!waiters.add(0, key(b"k"), c.clone()), "it stands there already");
        assert!(waiters.add(1, key(b"k"), someone("end", None)));
        assert!(waiters.add(0, key(b"other"), a.clone()));
        assert_eq!(waiters.count(), (3, 1));
        assert_eq!(waiters.targets(7).collect::<Vec<_>>(), [1, 3, 1]);
        let places = |waiters: &mut Waiters, wants| {
            let mut found = Vec::new();
            let mut from = 0;
            while let Some((at, _)) = waiters.next(0, key(b"k"), from, wants) {
                found.push(at);
                from = at + 1;
            }
            found
        };
        assert_eq!(places(&mut waiters, Some("list")), [0, 2]);
        assert_eq!(places(&mut waiters, Some("zset")), [1]);
        assert!(places(&mut waiters, None).is_empty());
        assert!(waiters.next(1, key(b"k"), 0, None).is_some(), "the other database's");
        a.waits.store(false, Ordering::Relaxed);
        assert_eq!(places(&mut waiters, Some("list")), [2]);
        let gone: Arc<dyn Waiter> = a;
        assert!(waiters.leave(0, key(b"k"), &gone));
        assert!(!waiters.leave(0, key(b"k"), &gone) && !waiters.leave(2, key(b"k"), &gone));
        assert_eq!(places(&mut waiters, Some("list")), [1]);
        assert_eq!(waiters.count(), (2, 1), "the dead wait for nothing");
    }

    #[test]
    fn nothing_is_left_of_those_who_go() {
        let mut waiters = Waiters::default();
        let a = someone("list", None);
        waiters.add(0, key(b"k"), a.clone());
        waiters.add(0, key(b"l"), a.clone());
        assert!(waiters.is_awaited(7) && !waiters.is_awaited(8));
        assert!(waiters.remove(0, key(b"k"), 0));
        assert!(!waiters.remove(0, key(b"k"), 0));
        assert_eq!(waiters.keys().count(), 1);
        let gone: Arc<dyn Waiter> = a;
        assert!(waiters.leave(0, key(b"l"), &gone));
        assert!(!waiters.leave(0, key(b"l"), &gone));
        assert!(!waiters.is_awaited(7));
        assert!(waiters.lines.is_empty());
    }
}
