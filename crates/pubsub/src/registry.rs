//! The threads on which channels and patterns have subscribers, shared by all threads.
//!
//! Channels are in buckets by the hash of their names, each with a lock; patterns have one lock,
//! which publishers share. A publisher finds the patterns that match, which takes long without the
//! locks (`pattern_search`). Then it counts the receivers and sends one message to each
//! thread that has some *while it holds the locks*. Therefore:
//! - After a client has unsubscribed, every message it was counted for is on the way to its thread.
//! - The messages to one channel arrive at all threads in the same order.
//!
//! Each change under a lock has a moment, an increasing number, and each message carries the
//! moments of its publication. A subscription lasts from its first moment, inclusive, to its last,
//! exclusive.
//!
//! A client that changes threads takes its subscriptions along without a pause for publishers:
//!
//! ```text
//!   follow each       its messages go to both threads: the old one writes them
//!   begin an epoch    of later messages, the old thread writes none, the new one all
//!   transfer each     its messages go to the new thread only
//! ```
//!
//! A message has the epoch that its publisher reads under the lock of the channel. After the last
//! transfer the messages of earlier epochs are on the way to the old thread, and the new one gets
//! the client when they are written. So the client receives all messages once, and in order.
//!
//! The locks are leaves: a thread that holds one waits for nothing. Without subscribers, publishing
//! costs one load. Long messages are encoded before a lock is taken.

use std::ops::Range;
use std::sync::Arc;

use base::hash::KeyHasher;
use crossbeam_utils::CachePadded;
use hashbrown::HashTable;
use resp::out::SharedMessage;

use super::shim::{AtomicUsize, Mutex, Ordering, RwLock};
use crate::message::{
    COPIED_BYTES_MAX, ChannelId, ChannelKind, Matches, PublishedMessage, SharedName, encode,
};
use crate::pattern_index::{PatternIndex, prefix_of};
use crate::pattern_search::{LOCKED_BYTES_MAX, PatternSearch, UntriedPatterns};
use crate::subscribers::shrink;
use crate::threads::Threads;

/// Locks for each of the two kinds of channels.
const BUCKETS: usize = 64;

/// A subscription that has begun.
#[derive(Debug)]
pub struct Registered {
    /// The shared name.
    pub name: SharedName,
    /// The first moment whose messages it receives.
    pub since: u64,
}

#[derive(Debug)]
struct ChannelThreads {
    hash: u64,
    name: SharedName,
    threads: Threads,
}

/// A part of the channels.
#[derive(Debug, Default)]
struct Bucket {
    channels: HashTable<ChannelThreads>,
    moment: u64,
}

impl Bucket {
    fn find(&self, hash: u64, name: &[u8]) -> Option<&ChannelThreads> {
        self.channels.find(hash, |channel| *channel.name == *name)
    }
}

/// Channels of one kind.
#[derive(Debug)]
struct ChannelBuckets {
    buckets: Box<[CachePadded<Mutex<Bucket>>]>,
    /// The number of channels in all buckets.
    count: AtomicUsize,
}

impl ChannelBuckets {
    fn new(buckets: usize) -> Self {
        let buckets = (0..buckets).map(|_| CachePadded::new(Mutex::new(Bucket::default())));
        Self { buckets: buckets.collect(), count: AtomicUsize::new(0) }
    }

    fn bucket(&self, hash: u64) -> &Mutex<Bucket> {
        // The low bits decide the position in the bucket's table, the highest ones its tag.
        &self.buckets[(hash >> 32) as usize % self.buckets.len()]
    }
}

#[derive(Debug)]
struct PatternRegistry {
    index: PatternIndex,
    moment: u64,
}

/// Which threads have subscribers of which channels and patterns.
#[derive(Debug)]
pub struct ChannelRegistry {
    hasher: KeyHasher,
    channels: ChannelBuckets,
    shard_channels: ChannelBuckets,
    /// The channel of [`ChannelKind::Requests`].
    requests: ChannelBuckets,
    patterns: RwLock<PatternRegistry>,
    /// The number of patterns in the index.
    pattern_count: AtomicUsize,
    /// The threads with clients that may receive keyspace events.
    event_followers: Mutex<Threads>,
    /// The number of the current epoch: clients change threads from one epoch to the next.
    epoch: AtomicUsize,
    /// Bytes of patterns and channels that are compared while the locks are held.
    locked_bytes_max: usize,
}

/// A message that is not sent yet.
struct DraftMessage<'a> {
    kind: ChannelKind,
    is_event: bool,
    channel: &'a [u8],
    payload: &'a [u8],
    hash: u64,
    /// `None` if no pattern can match.
    search: Option<PatternSearch<'a>>,
    /// A long message is encoded without the locks.
    encoded: Option<(Arc<SharedMessage>, Range<usize>)>,
}

impl DraftMessage<'_> {
    fn is_long(&self) -> bool {
        self.channel.len() + self.payload.len() > COPIED_BYTES_MAX
    }

    fn encode(&self) -> (Arc<SharedMessage>, Range<usize>) {
        encode(self.channel, self.payload, self.is_event)
    }
}

/// How an attempt to send a message ended.
enum SendAttempt {
    /// It has so many receivers.
    Sent(usize),
    /// Not sent: these patterns must be tried before.
    Untried(UntriedPatterns),
    /// Not sent: it has receivers, and must be encoded before.
    Unencoded,
}

impl ChannelRegistry {
    /// A registry without subscribers. Clients choose the names, so the hash must have a secret.
    pub fn new(hasher: KeyHasher) -> Self {
        Self {
            hasher,
            channels: ChannelBuckets::new(BUCKETS),
            shard_channels: ChannelBuckets::new(BUCKETS),
            requests: ChannelBuckets::new(1),
            patterns: RwLock::new(PatternRegistry { index: PatternIndex::new(hasher), moment: 0 }),
            pattern_count: AtomicUsize::new(0),
            event_followers: Mutex::new(Threads::default()),
            epoch: AtomicUsize::new(0),
            locked_bytes_max: LOCKED_BYTES_MAX,
        }
    }

    /// The same, with another limit for the bytes that are compared while the locks are held.
    pub fn with_locked_bytes_max(self, locked_bytes_max: usize) -> Self {
        Self { locked_bytes_max, ..self }
    }

    fn of(&self, kind: ChannelKind) -> &ChannelBuckets {
        match kind {
            ChannelKind::Shard => &self.shard_channels,
            ChannelKind::Requests => &self.requests,
            ChannelKind::Channel | ChannelKind::Pattern => &self.channels,
        }
    }

    /// The hash of a name, by which the [subscribers](crate::Subscribers) of a thread find it.
    pub fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash(name)
    }

    /// Begins a subscription of a client on `thread`. Calls `announce` with it while no publisher
    /// can publish to the channel.
    pub fn subscribe(
        &self,
        channel: ChannelId<&[u8]>,
        thread: usize,
        announce: impl FnOnce(&Registered),
    ) -> Registered {
        let ChannelId { kind, name, hash } = channel;
        if may_be_event(kind, name) {
            self.event_followers.lock().add(thread);
        }
        if kind == ChannelKind::Pattern {
            let mut patterns = self.patterns.write();
            patterns.moment += 1;
            let name = patterns.index.add(name, thread);
            self.pattern_count.store(patterns.index.len(), Ordering::Relaxed);
            let registered = Registered { name, since: patterns.moment };
            announce(&registered);
            return registered;
        }
        let channels = self.of(kind);
        let mut bucket = channels.bucket(hash).lock();
        bucket.moment += 1;
        let since = bucket.moment;
        let mut is_new = false;
        let mut channel = bucket
            .channels
            .entry(hash, |channel| *channel.name == *name, |channel| channel.hash)
            .or_insert_with(|| {
                is_new = true;
                ChannelThreads { hash, name: name.into(), threads: Threads::default() }
            });
        let channel = channel.get_mut();
        channel.threads.add(thread);
        let registered = Registered { name: channel.name.clone(), since };
        if is_new {
            channels.count.fetch_add(1, Ordering::Relaxed);
        }
        announce(&registered);
        registered
    }

    /// Ends a subscription of a client on `thread`. Returns the first moment whose messages it does
    /// not receive; all earlier messages are on the way to the thread. Calls `announce` with that
    /// moment while no publisher can publish to the channel.
    pub fn unsubscribe(
        &self,
        channel: ChannelId<&[u8]>,
        thread: usize,
        announce: impl FnOnce(u64),
    ) -> u64 {
        let ChannelId { kind, name, hash } = channel;
        if may_be_event(kind, name) {
            self.event_followers.lock().remove(thread);
        }
        if kind == ChannelKind::Pattern {
            let mut patterns = self.patterns.write();
            patterns.moment += 1;
            patterns.index.remove(name, thread);
            self.pattern_count.store(patterns.index.len(), Ordering::Relaxed);
            announce(patterns.moment);
            return patterns.moment;
        }
        let channels = self.of(kind);
        let mut bucket = channels.bucket(hash).lock();
        bucket.moment += 1;
        let until = bucket.moment;
        let found = bucket.channels.find_entry(hash, |channel| *channel.name == *name);
        debug_assert!(found.is_ok(), "only a subscribed client unsubscribes");
        if let Ok(mut found) = found {
            found.get_mut().threads.remove(thread);
            if found.get().threads.is_empty() {
                found.remove();
                shrink(&mut bucket.channels, |channel| channel.hash);
                channels.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
        announce(until);
        until
    }

    /// Sends the messages of a subscription to its client's next thread as well. Calls `announce`
    /// with the first moment of that while no publisher can publish to the channel.
    pub fn follow(&self, channel: ChannelId<&[u8]>, to: usize, announce: impl FnOnce(u64)) {
        if may_be_event(channel.kind, channel.name) {
            self.event_followers.lock().add(to);
        }
        self.change_threads(channel, |threads, moment| {
            threads.follow(to);
            announce(moment);
        });
    }

    /// Begins an epoch. Messages of one publisher, those to one channel, and those that depend on
    /// each other have ascending epochs.
    pub fn begin_epoch(&self) -> usize {
        self.epoch.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a subscription on the next thread of its client, which [follows](Self::follow) there.
    /// Messages of earlier epochs than the current one are on the way to the thread `from`.
    pub fn transfer(&self, channel: ChannelId<&[u8]>, from: usize, to: usize) {
        if may_be_event(channel.kind, channel.name) {
            self.event_followers.lock().remove(from);
        }
        self.change_threads(channel, |threads, _| threads.transfer(from, to));
    }

    /// Changes the threads of a channel or pattern while no publisher can publish to it.
    fn change_threads(&self, channel: ChannelId<&[u8]>, change: impl FnOnce(&mut Threads, u64)) {
        let ChannelId { kind, name, hash } = channel;
        if kind == ChannelKind::Pattern {
            let mut patterns = self.patterns.write();
            patterns.moment += 1;
            let moment = patterns.moment;
            if let Some(threads) = patterns.index.threads_mut(name) {
                change(threads, moment);
            }
            return;
        }
        let mut bucket = self.of(kind).bucket(hash).lock();
        bucket.moment += 1;
        let moment = bucket.moment;
        if let Some(channel) = bucket.channels.find_mut(hash, |other| *other.name == *name) {
            change(&mut channel.threads, moment);
        }
    }

    /// Publishes a message to a channel of a kind: calls `send` once for each thread that has
    /// receivers. Returns the total number of receivers. `send` must not wait.
    #[inline]
    pub fn publish(
        &self,
        kind: ChannelKind,
        channel: &[u8],
        payload: &[u8],
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) -> usize {
        self.publish_any(kind, false, channel, payload, send)
    }

    /// Publishes a keyspace event.
    #[inline]
    pub fn publish_event(
        &self,
        channel: &[u8],
        payload: &[u8],
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) -> usize {
        self.publish_any(ChannelKind::Channel, true, channel, payload, send)
    }

    #[inline]
    fn publish_any(
        &self,
        kind: ChannelKind,
        is_event: bool,
        channel: &[u8],
        payload: &[u8],
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) -> usize {
        let is_matched =
            kind != ChannelKind::Shard && self.pattern_count.load(Ordering::Relaxed) != 0;
        if !is_matched && self.of(kind).count.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.publish_to_some(kind, is_event, is_matched, channel, payload, send)
    }

    #[inline(never)]
    fn publish_to_some(
        &self,
        kind: ChannelKind,
        is_event: bool,
        is_matched: bool,
        channel: &[u8],
        payload: &[u8],
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) -> usize {
        let hash = self.hasher.hash(channel);
        let search = is_matched.then(|| PatternSearch::new(channel));
        let mut draft =
            DraftMessage { kind, is_event, channel, payload, hash, search, encoded: None };
        loop {
            match self.try_to_send(&mut draft, send) {
                SendAttempt::Sent(receivers) => return receivers,
                SendAttempt::Untried(untried) => {
                    if let Some(search) = &mut draft.search {
                        search.try_unlocked(untried);
                    }
                }
                SendAttempt::Unencoded => draft.encoded = Some(draft.encode()),
            }
        }
    }

    /// Sends a message to all threads with receivers, while nothing can be published to the channel
    /// and no subscription of it can begin or end.
    fn try_to_send(
        &self,
        draft: &mut DraftMessage<'_>,
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) -> SendAttempt {
        let (kind, hash) = (draft.kind, draft.hash);
        let bucket = self.of(kind).bucket(hash).lock();
        let patterns = draft.search.is_some().then(|| self.patterns.read());
        let mut of_patterns: Vec<&Threads> = Vec::new();
        if let (Some(search), Some(patterns)) = (&mut draft.search, &patterns) {
            if let Some(untried) = search.advance(&patterns.index, self.locked_bytes_max) {
                return SendAttempt::Untried(untried);
            }
            search.matching.retain(|pattern| {
                let threads = patterns.index.threads(pattern);
                of_patterns.extend(threads);
                threads.is_some()
            });
        }
        let of_channel = bucket.find(hash, draft.channel).map(|found| &found.threads);
        let all = of_channel.into_iter().chain(of_patterns.iter().copied());
        let receivers = all.clone().map(Threads::clients).sum();
        if receivers == 0 {
            return SendAttempt::Sent(0);
        }
        if draft.is_long() && draft.encoded.is_none() {
            return SendAttempt::Unencoded;
        }
        let (body, channel_at) = draft.encoded.take().unwrap_or_else(|| draft.encode());
        let matching = draft.search.as_mut().map(|search| std::mem::take(&mut search.matching));
        let matches = patterns.as_ref().zip(matching).and_then(|(patterns, matching)| {
            let names = matching.into_iter().map(|pattern| (pattern.name, pattern.hash)).collect();
            let matches = Matches { moment: patterns.moment, patterns: names };
            (!matches.patterns.is_empty()).then(|| Arc::new(matches))
        });
        let mut message =
            PublishedMessage::new(kind, hash, bucket.moment, body, channel_at, matches);
        message.epoch = self.epoch.load(Ordering::Relaxed);
        if of_patterns.is_empty() {
            let threads = of_channel.into_iter().flat_map(Threads::iter);
            threads.for_each(|(thread, clients)| send(thread, message.to(clients)));
            return SendAttempt::Sent(receivers);
        }
        let mut threads: Vec<(usize, usize)> = all.flat_map(Threads::iter).collect();
        threads.sort_unstable();
        for same in threads.chunk_by(|(one, _), (other, _)| one == other) {
            let clients = same.iter().map(|(_, clients)| clients).sum();
            send(same[0].0, message.to(clients));
        }
        SendAttempt::Sent(receivers)
    }

    /// Sends a line that shows a request to each thread with MONITOR clients. `stamp` is called
    /// while no other line can be sent, so all clients see all lines in one order, with increasing
    /// stamps.
    pub fn show_request(
        &self,
        mut line: Vec<u8>,
        stamp: impl FnOnce(&mut [u8]),
        send: &mut dyn FnMut(usize, PublishedMessage),
    ) {
        let hash = self.hasher.hash(b"");
        let bucket = self.requests.bucket(hash).lock();
        let Some(found) = bucket.find(hash, b"") else { return };
        stamp(&mut line);
        let (kind, body) = (ChannelKind::Requests, Arc::new(SharedMessage::new(line)));
        let mut message = PublishedMessage::new(kind, hash, bucket.moment, body, 0..0, None);
        message.epoch = self.epoch.load(Ordering::Relaxed);
        found.threads.iter().for_each(|(thread, clients)| send(thread, message.to(clients)));
    }

    /// Whether a message to a channel would go to a thread for which `is_asked_for` returns true.
    pub fn reaches(
        &self,
        kind: ChannelKind,
        channel: &[u8],
        is_asked_for: impl Fn(usize) -> bool,
    ) -> bool {
        let reaches = |threads: &Threads| threads.iter().any(|(thread, _)| is_asked_for(thread));
        let hash = self.hasher.hash(channel);
        let bucket = self.of(kind).bucket(hash).lock();
        if bucket.find(hash, channel).is_some_and(|found| reaches(&found.threads)) {
            return true;
        }
        drop(bucket);
        if kind == ChannelKind::Shard || self.pattern_count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut search = PatternSearch::new(channel);
        loop {
            let patterns = self.patterns.read();
            let Some(untried) = search.advance(&patterns.index, self.locked_bytes_max) else {
                let mut matching = search.matching.iter();
                return matching
                    .any(|pattern| patterns.index.threads(pattern).is_some_and(reaches));
            };
            drop(patterns);
            search.try_unlocked(untried);
        }
    }

    /// Whether keyspace events may go to a thread for which `is_asked_for` returns true.
    pub fn reaches_events(&self, is_asked_for: impl Fn(usize) -> bool) -> bool {
        self.event_followers.lock().iter().any(|(thread, _)| is_asked_for(thread))
    }

    /// The number of channels of a kind with subscribers, or of patterns.
    pub fn len(&self, kind: ChannelKind) -> usize {
        match kind {
            ChannelKind::Pattern => self.pattern_count.load(Ordering::Relaxed),
            _ => self.of(kind).count.load(Ordering::Relaxed),
        }
    }

    /// Subscribers of a channel.
    pub fn clients(&self, kind: ChannelKind, channel: &[u8]) -> usize {
        let hash = self.hasher.hash(channel);
        let bucket = self.of(kind).bucket(hash).lock();
        bucket.find(hash, channel).map_or(0, |found| found.threads.clients())
    }

    /// The channels of a kind that have subscribers. Publishers wait only while their bucket is
    /// visited.
    pub fn names(&self, kind: ChannelKind) -> Vec<SharedName> {
        let mut names = Vec::new();
        for bucket in &self.of(kind).buckets {
            names.extend(bucket.lock().channels.iter().map(|channel| channel.name.clone()));
        }
        names
    }
}

/// The common beginning of all keyspace event channels.
const EVENTS: &[u8] = b"__key";

/// Whether keyspace events may be published to a channel, or to one that a pattern matches.
fn may_be_event(kind: ChannelKind, name: &[u8]) -> bool {
    match kind {
        ChannelKind::Channel => name.starts_with(EVENTS),
        ChannelKind::Pattern => {
            let start = prefix_of(name);
            start.starts_with(EVENTS) || EVENTS.starts_with(start)
        }
        ChannelKind::Shard | ChannelKind::Requests => false,
    }
}
