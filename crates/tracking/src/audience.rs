//! The clients to notify of the changes of one prefix, and the changed keys that they were not
//! notified of yet.
//!
//! The members on one thread are a part. A change is recorded for each part. The thread, which is
//! notified that its part has changes, takes the keys later, all at once, and sends them to all
//! members of the part. So a change costs one step for each thread, and changes that arrive before
//! a thread takes them join one list.
//!
//! A member that sends a request first catches up: it receives the keys that it was not notified of
//! yet. The cost depends on these keys and not on the number of members. The member may receive the
//! same keys again with the others.
//!
//! ```text
//!   note(key)  --+--> part of thread 1: {k1, k2}  members a, b    take(1) -> {k1, k2} for a, b
//!                +--> part of thread 2: {k2}      members c
//! ```
//!
//! A member belongs to one part at any time, and takes its pending keys along when it moves: it is
//! notified of every change between its [`join`](Audience::join) and its
//! [`leave`](Audience::leave), once or twice. The lock is a leaf.

use std::collections::BTreeMap;

use base::uncounted::Uncounted;
use parking_lot::Mutex;
use resp::{Out, Reply};

/// The approximate bytes of keys that are kept for a part. Beyond them, its members are notified
/// that any key may have changed.
const KEYS_BYTES_MAX: usize = 4 << 20;
/// The approximate bytes that a key takes in addition to its name.
const KEY_BYTES: usize = 64;

/// The source of a change that no client's command has made.
pub const NO_CLIENT: u64 = 0;

/// The last change of a key.
#[derive(Clone, Copy, Debug)]
struct KeyChange {
    /// The client that made it.
    source: u64,
    /// Its number in the sequence of the part's changes.
    number: u64,
}

/// Changed keys, each with the client that changed it last.
#[derive(Clone, Debug, Default)]
pub struct ChangedKeys {
    keys: BTreeMap<Box<[u8]>, KeyChange>,
    /// Their approximate memory, for which no key is evicted.
    bytes: Uncounted,
    /// There were too many to keep.
    all: bool,
}

impl ChangedKeys {
    fn is_empty(&self) -> bool {
        self.keys.is_empty() && !self.all
    }

    fn add(&mut self, key: &[u8], change: KeyChange) {
        if self.all {
            return;
        }
        if let Some(last) = self.keys.get_mut(key) {
            *last = change;
            return;
        }
        let bytes = self.bytes.bytes() + key.len() + KEY_BYTES;
        if bytes > KEYS_BYTES_MAX {
            *self = Self { all: true, ..Self::default() };
            return;
        }
        self.bytes.set(bytes);
        self.keys.insert(key.into(), change);
    }

    /// The keys that changed after this change.
    fn since(&self, number: u64) -> Self {
        let newer = self.keys.iter().filter(|(_, change)| change.number > number);
        let keys: BTreeMap<_, _> = newer.map(|(key, change)| (key.clone(), *change)).collect();
        let bytes = keys.keys().map(|key| key.len() + KEY_BYTES).sum();
        Self { keys, bytes: Uncounted::new(bytes), all: self.all }
    }

    /// Whether there were too many keys to list.
    pub fn are_all(&self) -> bool {
        self.all
    }

    /// Whether a client is the last source of some of them.
    pub fn has_source(&self, client: u64) -> bool {
        self.keys.values().any(|change| change.source == client)
    }

    /// The array of their names in the protocol, without those that the client `but` changed last,
    /// or `None` if it is empty.
    pub fn encode(&self, but: Option<u64>) -> Option<Vec<u8>> {
        let is_listed = |change: &KeyChange| but.is_none_or(|client| client != change.source);
        let count = self.keys.values().filter(|change| is_listed(change)).count();
        if count == 0 {
            return None;
        }
        let mut out = Out::default();
        let mut reply = Reply::new(&mut out, false);
        reply.array(count);
        let listed = self.keys.iter().filter(|(_, change)| is_listed(change));
        listed.for_each(|(name, _)| reply.bulk(name));
        // The reply may wait for long, so it frees unused room.
        out.bytes.shrink_to_fit();
        Some(out.bytes)
    }
}

#[derive(Debug)]
struct AudienceMember<M> {
    client: u64,
    member: M,
    /// The number of the last change that it caught up with.
    caught_up: u64,
}

#[derive(Debug)]
struct ThreadPart<M> {
    thread: usize,
    /// By ascending client number.
    members: Vec<AudienceMember<M>>,
    changed: ChangedKeys,
    /// The number of changes so far.
    changes: u64,
    /// The thread was notified that there are changes.
    knows: bool,
}

/// The keys that a thread sends to its members.
#[derive(Debug)]
pub struct InvalidationRound<M> {
    /// The members.
    pub members: Vec<M>,
    /// The keys that have changed.
    pub changed: ChangedKeys,
}

/// The clients to notify of the changes of one prefix.
#[derive(Debug)]
pub struct Audience<M> {
    prefix: Box<[u8]>,
    parts: Mutex<Vec<ThreadPart<M>>>,
}

impl<M: Clone> Audience<M> {
    /// An audience without members.
    pub fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.into(), parts: Mutex::new(Vec::new()) }
    }

    /// The prefix.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Adds the client with this number to the part of a thread, unless it is a member already.
    pub fn join(&self, client: u64, member: M, thread: usize) {
        let mut parts = self.parts.lock();
        let is_member = |part: &ThreadPart<M>| part.place(client).is_ok();
        if !parts.iter().any(is_member) {
            add(&mut parts, AudienceMember { client, member, caught_up: 0 }, thread);
        }
    }

    /// Removes a client. Returns whether no members are left.
    pub fn leave(&self, client: u64) -> bool {
        let mut parts = self.parts.lock();
        take_out(&mut parts, client);
        parts.is_empty()
    }

    /// Moves a client to the part of a thread, unless it is there. Returns its pending keys.
    pub fn relocate(&self, client: u64, thread: usize) -> Option<ChangedKeys> {
        let mut parts = self.parts.lock();
        let part = parts.iter().find(|part| part.place(client).is_ok())?;
        if part.thread == thread {
            return None;
        }
        let changed = part.changed.clone();
        let member = take_out(&mut parts, client)?;
        add(&mut parts, AudienceMember { client, member, caught_up: 0 }, thread);
        (!changed.is_empty()).then_some(changed)
    }

    /// Records that a client, or [`NO_CLIENT`], has changed a key. Calls `notify` for each thread
    /// that does not know yet that it has something to [take](Self::take).
    pub fn note(&self, key: &[u8], source: u64, mut notify: impl FnMut(usize)) {
        for part in self.parts.lock().iter_mut() {
            if !std::mem::replace(&mut part.knows, true) {
                notify(part.thread);
            }
            part.changes += 1;
            part.changed.add(key, KeyChange { source, number: part.changes });
        }
    }

    /// Takes the pending keys of one client of a thread.
    pub fn catch_up(&self, client: u64, thread: usize) -> Option<ChangedKeys> {
        let mut parts = self.parts.lock();
        let part = parts.iter_mut().find(|part| part.thread == thread)?;
        let member = part.place(client).ok()?;
        let is_alone = part.members.len() == 1;
        let caught_up = std::mem::replace(&mut part.members[member].caught_up, part.changes);
        if part.changed.is_empty() || caught_up == part.changes {
            return None;
        }
        Some(if is_alone {
            std::mem::take(&mut part.changed)
        } else {
            part.changed.since(caught_up)
        })
    }

    /// Takes the changes that a thread has to send. The next change notifies the thread again.
    pub fn take(&self, thread: usize) -> Option<InvalidationRound<M>> {
        let mut parts = self.parts.lock();
        let part = parts.iter_mut().find(|part| part.thread == thread)?;
        part.knows = false;
        if part.changed.is_empty() {
            return None;
        }
        let outdated = part.members.iter().filter(|member| member.caught_up < part.changes);
        let members = outdated.map(|member| member.member.clone()).collect();
        Some(InvalidationRound { members, changed: std::mem::take(&mut part.changed) })
    }
}

impl<M> ThreadPart<M> {
    fn place(&self, client: u64) -> Result<usize, usize> {
        self.members.binary_search_by_key(&client, |member| member.client)
    }
}

fn add<M>(parts: &mut Vec<ThreadPart<M>>, member: AudienceMember<M>, thread: usize) {
    let at = parts.iter().position(|part| part.thread == thread).unwrap_or_else(|| {
        let changed = ChangedKeys::default();
        parts.push(ThreadPart { thread, members: Vec::new(), changed, changes: 0, knows: false });
        parts.len() - 1
    });
    let part = &mut parts[at];
    if let Err(place) = part.place(member.client) {
        part.members.insert(place, member);
    }
}

/// Removes a client from its part. A part without members is removed too.
fn take_out<M>(parts: &mut Vec<ThreadPart<M>>, client: u64) -> Option<M> {
    let found =
        parts.iter().enumerate().find_map(|(at, part)| Some((at, part.place(client).ok()?)));
    let (at, place) = found?;
    let AudienceMember { member, .. } = parts[at].members.remove(place);
    if parts[at].members.is_empty() {
        parts.swap_remove(at);
    }
    Some(member)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn text(changed: &ChangedKeys, but: Option<u64>) -> Option<String> {
        changed.encode(but).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_round_names_each_key_once() {
        let audience = Audience::new(b"");
        audience.join(1, (), 2);
        let mut notified = Vec::new();
        for (key, source) in [("b", 1), ("a", NO_CLIENT), ("b", 5), ("c", 1)] {
            audience.note(key.as_bytes(), source, |thread| notified.push(thread));
        }
        assert_eq!(notified, [2], "once until it takes them");
        assert!(audience.take(1).is_none());
        let round = audience.take(2).unwrap();
        let all = text(&round.changed, None).unwrap();
        assert_eq!(all, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
        let but_own = text(&round.changed, Some(1)).unwrap();
        assert_eq!(
            but_own, "*2\r\n$1\r\na\r\n$1\r\nb\r\n",
            "without the last key that the client changed itself"
        );
        assert!(round.changed.has_source(5) && !round.changed.has_source(7));
        assert!(audience.take(2).is_none());
        audience.note(b"c", 1, |_| {});
        assert_eq!(text(&audience.take(2).unwrap().changed, Some(1)), None);
    }

    #[test]
    fn a_member_that_caught_up_receives_only_new_keys() {
        let audience = Audience::new(b"");
        (1..4).for_each(|client| audience.join(client, client, 2));
        let notified = std::cell::Cell::new(0);
        let note = |key: &str| {
            audience.note(key.as_bytes(), NO_CLIENT, |_| notified.set(notified.get() + 1))
        };
        let caught_up =
            |client: u64| audience.catch_up(client, 2).map(|changed| text(&changed, None).unwrap());
        assert_eq!(caught_up(1), None);
        note("a");
        note("b");
        assert_eq!(caught_up(1).unwrap(), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
        assert_eq!((caught_up(1), audience.catch_up(2, 1).is_some()), (None, false));
        note("a");
        assert_eq!(caught_up(1).unwrap(), "*1\r\n$1\r\na\r\n");
        let round = audience.take(2).unwrap();
        assert_eq!((round.members, round.changed.keys.len()), (vec![2, 3], 2));
        assert_eq!(caught_up(2), None);
        note("c");
        assert_eq!(caught_up(2).unwrap(), "*1\r\n$1\r\nc\r\n");
        assert!(!audience.leave(2) && !audience.leave(3));
        // All other members are up to date, and the thread does not know of changes.
        assert_eq!(caught_up(1).unwrap(), "*1\r\n$1\r\nc\r\n");
        note("d");
        assert_eq!(audience.take(2).unwrap().members, [1]);
        assert!(audience.take(2).is_none());
        assert_eq!(notified.get(), 2);
    }

    #[test]
    fn too_many_keys_count_as_all_keys() {
        let audience = Audience::new(b"");
        audience.join(1, (), 0);
        for number in 0..KEYS_BYTES_MAX / 100 {
            audience.note(format!("a key of a length: {number:045}").as_bytes(), NO_CLIENT, |_| {});
        }
        let changed = audience.take(0).unwrap().changed;
        assert!(changed.are_all() && changed.keys.is_empty());
        audience.note(b"k", NO_CLIENT, |_| {});
        assert!(!audience.take(0).unwrap().changed.are_all());
    }

    #[derive(Clone, Debug)]
    enum AudienceStep {
        Join(u64, usize),
        Leave(u64),
        Relocate(u64, usize),
        Note(u8),
        CatchUp(u64, usize),
        Take(usize),
    }

    fn step() -> impl Strategy<Value = AudienceStep> {
        prop_oneof![
            1 => (1u64..5, 0usize..3).prop_map(|(c, thread)| AudienceStep::Join(c, thread)),
            1 => (1u64..5).prop_map(AudienceStep::Leave),
            1 => (1u64..5, 0usize..3).prop_map(|(c, thread)| AudienceStep::Relocate(c, thread)),
            4 => (0u8..10).prop_map(AudienceStep::Note),
            2 => (1u64..5, 0usize..3).prop_map(|(c, thread)| AudienceStep::CatchUp(c, thread)),
            2 => (0usize..3).prop_map(AudienceStep::Take),
        ]
    }

    proptest! {
        #[test]
        fn members_receive_all_changes_and_threads_all_rounds(
            steps in proptest::collection::vec(step(), 0..100)
        ) {
            let audience = Audience::new(b"");
            // The changed keys that each member has not received yet.
            let mut outdated: BTreeMap<u64, BTreeSet<Vec<u8>>> = BTreeMap::new();
            let mut threads: BTreeSet<usize> = BTreeSet::new();
            let notify = |outdated: &mut BTreeMap<u64, BTreeSet<Vec<u8>>>,
                            client: u64, changed: &ChangedKeys| {
                let keys = outdated.get_mut(&client).unwrap();
                changed.keys.keys().for_each(|key| { keys.remove(&key.to_vec()); });
            };
            for step in steps {
                match step {
                    AudienceStep::Join(client, thread) => {
                        audience.join(client, client, thread);
                        outdated.entry(client).or_default();
                    }
                    AudienceStep::Leave(client) => {
                        outdated.remove(&client);
                        prop_assert_eq!(audience.leave(client), outdated.is_empty());
                    }
                    AudienceStep::Relocate(client, thread) => {
                        if let Some(changed) = audience.relocate(client, thread) {
                            notify(&mut outdated, client, &changed);
                        }
                    }
                    AudienceStep::Note(key) => {
                        audience.note(&[key], NO_CLIENT, |thread| { threads.insert(thread); });
                        outdated.values_mut().for_each(|keys| { keys.insert(vec![key]); });
                    }
                    AudienceStep::CatchUp(client, thread) => {
                        if let Some(changed) = audience.catch_up(client, thread) {
                            notify(&mut outdated, client, &changed);
                        }
                    }
                    AudienceStep::Take(thread) => {
                        let knows = threads.remove(&thread);
                        if let Some(round) = audience.take(thread) {
                            prop_assert!(knows);
                            for client in round.members {
                                notify(&mut outdated, client, &round.changed);
                            }
                        }
                    }
                }
            }
            for thread in threads {
                if let Some(round) = audience.take(thread) {
                    for client in round.members {
                        notify(&mut outdated, client, &round.changed);
                    }
                }
            }
            prop_assert!(outdated.values().all(BTreeSet::is_empty), "{outdated:?}");
        }
    }
}
