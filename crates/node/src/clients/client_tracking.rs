//! What other threads have to know of a client that tracks keys, and what it is to be told.
//!
//! Whatever a client is to be told waits in its record, wherever the client is, until its owner
//! writes it between two replies. Whoever leaves the first message tells the thread that has the
//! client; a thread that gets the client looks for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::uncounted::Uncounted;
use parking_lot::Mutex;
use pubsub::message::COPIED_BYTES_MAX;
use resp::out::Told;
use resp::{Out, Reply};
use tracking::TrackingState;
use tracking::audience::ChangedKeys;

use super::session::Session;

/// What waits for one client, in bytes, about. Beyond, it is told that any key may have changed.
const MESSAGES_BYTES_MAX: usize = 16 << 20;
/// What a message takes beside its keys.
const MESSAGE_BYTES: usize = 64;

/// The channel of those who are told by RESP2.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// How a client tracks keys, for those who tell it of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// The number of the client that is told instead; 0: itself.
    pub redirect: u64,
    /// It is told of prefixes, and not of what it has read.
    pub broadcasts: bool,
    /// It is not told of changes that it has made itself.
    pub no_loop: bool,
    /// The client that was to be told instead is gone.
    pub is_broken: bool,
}

impl Mode {
    pub(crate) fn of(state: &TrackingState) -> Self {
        let (broadcasts, no_loop) = (state.broadcasts(), state.no_loop());
        Self { redirect: state.redirect, broadcasts, no_loop, is_broken: false }
    }
}

/// What a client is told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A key has changed.
    Key(Box<[u8]>),
    /// Keys have changed: the array of their names in the protocol, as all read it who are told.
    Keys(Arc<Told>),
    /// Any key may have changed.
    All,
    /// The client with this number, which was to be told instead, is gone.
    Broken(u64),
}

impl News {
    /// Bytes of memory that it keeps, about, behind another one for the same client. One that many
    /// others have told something hears it from each.
    fn bytes_behind(&self, last: Option<&Self>) -> usize {
        let shared = match (self, last) {
            (Self::Keys(names), Some(Self::Keys(last))) if Arc::ptr_eq(names, last) => 0,
            (Self::Keys(names), _) => names.memory_bytes(),
            _ => 0,
        };
        self.own_bytes() + shared
    }

    /// The same but for what several clients are told, which is kept once.
    fn own_bytes(&self) -> usize {
        MESSAGE_BYTES + if let Self::Key(name) = self { name.len() } else { 0 }
    }
}

#[derive(Debug)]
struct Message {
    news: News,
    /// Another client has asked for it.
    redirected: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// None: it does not track, and others have it told.
    mode: Option<Mode>,
    messages: Vec<Message>,
    /// What they take, about.
    bytes: usize,
    /// The same but for what several clients are told. No key is evicted for either.
    uncounted: Uncounted,
}

impl Shared {
    fn count(&mut self) {
        let news = || self.messages.iter().map(|message| &message.news);
        let lasts = std::iter::once(None).chain(news().map(Some));
        self.bytes = news().zip(lasts).map(|(news, last)| news.bytes_behind(last)).sum();
        self.uncounted.set(self.messages.iter().map(|message| message.news.own_bytes()).sum());
    }
}

/// The part of a client's record that concerns tracking.
#[derive(Debug, Default)]
pub struct ClientTracking {
    /// Something waits for it.
    has_messages: AtomicBool,
    /// It is closed. Changed and looked at while `shared` is locked.
    is_gone: AtomicBool,
    /// What the prefixes take that it tracks.
    prefix_bytes: AtomicUsize,
    /// Boxed, because most clients do not track.
    shared: Mutex<Option<Box<Shared>>>,
}

impl ClientTracking {
    /// How the client tracks; none: it does not.
    pub fn mode(&self) -> Option<Mode> {
        self.shared.lock().as_ref().and_then(|shared| shared.mode)
    }

    /// Says how the client tracks. One that does not any more is not told what waits.
    pub(crate) fn set_mode(&self, mode: Option<Mode>) {
        let mut shared = self.shared.lock();
        if mode.is_none() {
            let Some(known) = shared.as_mut() else { return };
            known.messages.retain(|message| message.redirected);
            if known.messages.is_empty() {
                *shared = None;
                self.has_messages.store(false, Ordering::Relaxed);
                return;
            }
            known.count();
        }
        shared.get_or_insert_default().mode = mode;
    }

    /// Says what the prefixes take that the client tracks. Only its owner does.
    pub(crate) fn set_prefix_bytes(&self, bytes: usize) {
        self.prefix_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that the client that was to be told instead is gone.
    pub(crate) fn set_broken(&self) {
        if let Some(Shared { mode: Some(mode), .. }) = self.shared.lock().as_deref_mut() {
            mode.is_broken = true;
        }
    }

    /// Leaves something for the client, for another one if that is `redirected`. Returns whether
    /// the thread that has it must be told.
    pub(crate) fn push(&self, news: News, redirected: bool) -> bool {
        let mut shared = self.shared.lock();
        let is_gone = self.is_gone.load(Ordering::Relaxed);
        if is_gone || shared.is_none() && !redirected {
            // It is closed, or tracks no more.
            return false;
        }
        let shared = shared.get_or_insert_default();
        let last = shared.messages.last().map(|message| &message.news);
        let bytes = shared.bytes + news.bytes_behind(last);
        if bytes <= MESSAGES_BYTES_MAX {
            shared.bytes = bytes;
            shared.uncounted.set(shared.uncounted.bytes() + news.own_bytes());
            shared.messages.push(Message { news, redirected });
        } else {
            let redirected = redirected || shared.messages.iter().any(|message| message.redirected);
            shared.messages = vec![Message { news: News::All, redirected }];
            shared.count();
        }
        !self.has_messages.swap(true, Ordering::Relaxed)
    }

    /// Whether something waits for the client.
    #[inline]
    pub fn has_messages(&self) -> bool {
        self.has_messages.load(Ordering::Relaxed)
    }

    /// Bytes of memory that its prefixes and what waits for it take, about.
    pub fn memory_bytes(&self) -> usize {
        let shared = self.shared.lock();
        let waiting = shared.as_ref().map_or(0, |shared| size_of::<Shared>() + shared.bytes);
        self.prefix_bytes.load(Ordering::Relaxed) + waiting
    }

    fn take(&self) -> Vec<Message> {
        let mut shared = self.shared.lock();
        self.has_messages.store(false, Ordering::Relaxed);
        let Some(known) = shared.as_mut() else { return Vec::new() };
        let messages = std::mem::take(&mut known.messages);
        known.count();
        if known.mode.is_none() {
            *shared = None;
        }
        messages
    }

    /// Drops what waits for a client that is closed, and what comes later.
    pub(crate) fn forget(&self) {
        let mut shared = self.shared.lock();
        *shared = None;
        self.is_gone.store(true, Ordering::Relaxed);
        self.has_messages.store(false, Ordering::Relaxed);
    }
}

/// Writes what waits for a client. For its owner, between two replies.
pub fn write_messages(session: &Session, out: &mut Out) {
    if session.record.tracking.has_messages() {
        for Message { news, redirected } in session.record.tracking.take() {
            write(&news, redirected, session, out);
        }
    }
}

/// Writes one message, as far as the client's protocol has something for it.
pub(crate) fn write(news: &News, redirected: bool, session: &Session, out: &mut Out) {
    let before = out.bytes.len();
    let mut reply = Reply::new(out, session.resp3);
    match news {
        News::Broken(client) => {
            if session.resp3 {
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.unsigned(*client);
            }
            return;
        }
        _ if session.resp3 => {
            reply.push(2);
            reply.bulk(b"invalidate");
        }
        _ if redirected && session.is_subscribed() => {
            reply.array(3);
            reply.bulk(b"message");
            reply.bulk(CHANNEL);
        }
        _ => return,
    }
    match news {
        News::Key(name) => {
            reply.array(1);
            reply.bulk(name);
        }
        // As long messages are: what waits for many clients is kept once.
        News::Keys(names) if names.len() > COPIED_BYTES_MAX => out.push_told(Arc::clone(names)),
        News::Keys(names) => reply.raw(names),
        News::All | News::Broken(_) => reply.null(),
    }
    out.note_telling(out.bytes.len() - before);
}

/// What a client is told of keys that have changed, and that it may have changed itself; none:
/// nothing. `encoded` keeps what others are told.
pub(crate) fn news_of(
    changed: &ChangedKeys,
    but: Option<u64>,
    encoded: &mut Option<Arc<Told>>,
) -> Option<News> {
    if changed.are_all() {
        return Some(News::All);
    }
    if but.is_some_and(|client| changed.has_source(client)) {
        return changed.encode(but).map(|array| News::Keys(Arc::new(Told::of_keys(array))));
    }
    if encoded.is_none() {
        *encoded = changed.encode(None).map(|array| Arc::new(Told::of_keys(array)));
    }
    encoded.clone().map(News::Keys)
}

#[cfg(test)]
mod tests {
    use base::uncounted::thread_bytes;

    use super::*;

    /// What waits is left out until it is taken or dropped, and nothing waits for one that is gone.
    #[test]
    fn what_waits_for_a_client_is_left_out() {
        let tracking = ClientTracking::default();
        let key = || News::Key(vec![b'x'; 1000].into());
        assert!(!tracking.push(key(), false), "it does not track");
        tracking.set_mode(Some(Mode::default()));
        let names = Arc::new(Told::of_keys(vec![0; 20_480]));
        let news = || News::Keys(Arc::clone(&names));
        assert!(tracking.push(key(), false) && !tracking.push(news(), true));
        // What several are told is kept once, and left out once.
        let others = [1, 2].map(|_| ClientTracking::default());
        others.iter().for_each(|other| assert!(other.push(news(), true)));
        drop(names);
        assert_eq!(thread_bytes(), 1000 + 20_480 + 4 * MESSAGE_BYTES as i64);
        assert!(others[0].memory_bytes() > 20_480);
        drop(others);
        tracking.set_mode(None);
        assert_eq!(thread_bytes(), 20_480 + MESSAGE_BYTES as i64, "others have it told");
        let messages = tracking.take();
        assert_eq!((messages.len(), thread_bytes()), (1, 20_480));
        drop(messages);
        assert_eq!(thread_bytes(), 0);
        assert!(tracking.push(key(), true));
        tracking.forget();
        assert!(!tracking.push(key(), true) && !tracking.has_messages());
        assert_eq!(thread_bytes(), 0);
    }

    /// One that many others have told the same is told all of that: it keeps it once.
    #[test]
    fn what_comes_again_counts_once() {
        let tracking = ClientTracking::default();
        let names = Arc::new(Told::of_keys(vec![0; 1 << 20]));
        for _ in 0..60 {
            tracking.push(News::Keys(Arc::clone(&names)), true);
        }
        let bytes = tracking.memory_bytes();
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
        tracking.set_mode(Some(Mode::default()));
        tracking.set_mode(None);
        assert_eq!((tracking.memory_bytes(), tracking.take().len()), (bytes, 60));
    }

    /// A client keeps no more than it may, whoever else is told the same.
    #[test]
    fn what_others_are_told_too_counts_in_full() {
        let tracking = ClientTracking::default();
        for _ in 0..20 {
            tracking.push(News::Keys(Arc::new(Told::of_keys(vec![0; 1 << 20]))), true);
            assert!(thread_bytes() <= MESSAGES_BYTES_MAX as i64);
        }
        assert!((3 << 20..5 << 20).contains(&tracking.memory_bytes()));
    }

    #[test]
    fn too_much_is_told_in_one_message() {
        let tracking = ClientTracking::default();
        let firsts = (0..20).filter(|_| tracking.push(News::Key(vec![0; 1 << 20].into()), true));
        assert_eq!(firsts.count(), 1);
        assert!((3 << 20..5 << 20).contains(&thread_bytes()), "{}", thread_bytes());
        drop(tracking);
        assert_eq!(thread_bytes(), 0);
    }
}
