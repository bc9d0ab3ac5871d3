//! What other threads have to know of a client that tracks keys, and what it is to be told.
//!
//! Whatever a client is to be told waits in its record, wherever the client is, until its owner
//! writes it between two replies. Whoever leaves the first message tells the thread that has the
//! client; a thread that gets the client looks for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use resp::{Out, Reply};
use tracking::State;
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
    pub(crate) fn of(state: &State) -> Self {
        let (broadcasts, no_loop) = (state.broadcasts(), state.no_loop());
        Self { redirect: state.redirect, broadcasts, no_loop, is_broken: false }
    }
}

/// What a client is told.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// A key has changed.
    Key(Box<[u8]>),
    /// Keys have changed: the array of their names in the protocol.
    Keys(Arc<Vec<u8>>),
    /// Any key may have changed.
    All,
    /// The client with this number, which was to be told instead, is gone.
    Broken(u64),
}

impl News {
    fn bytes(&self) -> usize {
        let keys = match self {
            Self::Key(name) => name.len(),
            // It is shared.
            Self::Keys(_) | Self::All | Self::Broken(_) => 0,
        };
        keys + MESSAGE_BYTES
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
    bytes: usize,
}

/// The part of a client's record that concerns tracking.
#[derive(Debug, Default)]
pub struct ClientTracking {
    /// Something waits for it.
    has_messages: AtomicBool,
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
        if shared.is_none() && !redirected {
            // It tracks no more.
            return false;
        }
        let shared = shared.get_or_insert_default();
        shared.bytes += news.bytes();
        if shared.bytes <= MESSAGES_BYTES_MAX {
            shared.messages.push(Message { news, redirected });
        } else {
            let redirected = redirected || shared.messages.iter().any(|message| message.redirected);
            shared.messages = vec![Message { news: News::All, redirected }];
            shared.bytes = MESSAGE_BYTES;
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
        known.bytes = 0;
        let messages = std::mem::take(&mut known.messages);
        if known.mode.is_none() {
            *shared = None;
        }
        messages
    }

    /// Drops what waits for a client that is closed.
    pub(crate) fn forget(&self) {
        *self.shared.lock() = None;
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
        News::Keys(names) => reply.raw(names),
        News::All | News::Broken(_) => reply.null(),
    }
}

/// What a client is told of keys that have changed, and that it may have changed itself; none:
/// nothing. `encoded` keeps what others are told.
pub(crate) fn news_of(
    changed: &ChangedKeys,
    but: Option<u64>,
    encoded: &mut Option<Arc<Vec<u8>>>,
) -> Option<News> {
    if changed.are_all() {
        return Some(News::All);
    }
    if but.is_some_and(|client| changed.has_source(client)) {
        return changed.encode(but).map(|names| News::Keys(Arc::new(names)));
    }
    if encoded.is_none() {
        *encoded = changed.encode(None).map(Arc::new);
    }
    encoded.clone().map(News::Keys)
}
