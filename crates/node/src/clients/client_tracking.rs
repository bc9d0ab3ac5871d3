//! How a client tracks keys, as other threads see it, and the notifications that wait for it.
//!
//! Notifications wait in the client's record, wherever the client is, until its owner writes them
//! between two replies. The thread that leaves the first one notifies the thread that has the
//! client; a thread that receives the client looks for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::uncounted::Uncounted;
use parking_lot::Mutex;
use pubsub::message::COPIED_BYTES_MAX;
use resp::out::SharedMessage;
use resp::{Out, Reply};
use tracking::TrackingState;
use tracking::audience::ChangedKeys;

use super::session::Session;

/// Approximate bytes of notifications that wait for one client. Beyond, they are replaced by one
/// that any key may have changed.
const MESSAGES_BYTES_MAX: usize = 16 << 20;
/// Bytes of a notification besides its keys.
const MESSAGE_BYTES: usize = 64;

/// The channel of invalidations in RESP2.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// How a client tracks keys, for the threads that notify it of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// The number of the client that is notified instead; 0 for none.
    pub redirect: u64,
    /// It is notified of prefixes, and not of keys that it has read.
    pub broadcasts: bool,
    /// It is not notified of its own changes.
    pub no_loop: bool,
    /// The client that was notified instead is gone.
    pub is_broken: bool,
}

impl Mode {
    pub(crate) fn of(state: &TrackingState) -> Self {
        let (broadcasts, no_loop) = (state.broadcasts(), state.no_loop());
        Self { redirect: state.redirect, broadcasts, no_loop, is_broken: false }
    }
}

/// A notification of a client that tracks keys.
#[derive(Clone, Debug)]
pub(crate) enum Invalidation {
    /// A key has changed.
    Key(Box<[u8]>),
    /// Keys have changed: the array of their names in the protocol, shared by all clients that are
    /// notified.
    Keys(Arc<SharedMessage>),
    /// Any key may have changed.
    All,
    /// The client with this number, which was notified instead, is gone.
    Broken(u64),
}

impl Invalidation {
    /// Approximate bytes of memory that it keeps when it follows `last` for the same client. A
    /// client to which many others redirect gets the same array from each of them.
    fn bytes_behind(&self, last: Option<&Self>) -> usize {
        let shared = match (self, last) {
            (Self::Keys(names), Some(Self::Keys(last))) if Arc::ptr_eq(names, last) => 0,
            (Self::Keys(names), _) => names.memory_bytes(),
            _ => 0,
        };
        self.own_bytes() + shared
    }

    /// The same without the arrays that several clients share, which are kept once.
    fn own_bytes(&self) -> usize {
        MESSAGE_BYTES + if let Self::Key(name) = self { name.len() } else { 0 }
    }
}

#[derive(Debug)]
struct Message {
    invalidation: Invalidation,
    /// Another client has redirected it.
    redirected: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// `None` if it does not track, and others redirect to it.
    mode: Option<Mode>,
    messages: Vec<Message>,
    /// Their approximate size in bytes.
    bytes: usize,
    /// The same without shared arrays. No key is evicted for these bytes.
    uncounted: Uncounted,
}

impl Shared {
    fn count(&mut self) {
        let invalidation = || self.messages.iter().map(|message| &message.invalidation);
        let lasts = std::iter::once(None).chain(invalidation().map(Some));
        self.bytes = invalidation()
            .zip(lasts)
            .map(|(invalidation, last)| invalidation.bytes_behind(last))
            .sum();
        self.uncounted
            .set(self.messages.iter().map(|message| message.invalidation.own_bytes()).sum());
    }
}

/// The part of a client's record about tracking.
#[derive(Debug, Default)]
pub struct ClientTracking {
    /// Notifications wait for it.
    has_messages: AtomicBool,
    /// It is closed. Read and written while `shared` is locked.
    is_gone: AtomicBool,
    /// Bytes of the prefixes that it tracks.
    prefix_bytes: AtomicUsize,
    /// Boxed, because most clients do not track.
    shared: Mutex<Option<Box<Shared>>>,
}

impl ClientTracking {
    /// How the client tracks; `None` if it does not.
    pub fn mode(&self) -> Option<Mode> {
        self.shared.lock().as_ref().and_then(|shared| shared.mode)
    }

    /// Sets how the client tracks. A client that stops tracking loses the notifications that wait.
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

    /// Sets the bytes of the prefixes that the client tracks. Only its owner does.
    pub(crate) fn set_prefix_bytes(&self, bytes: usize) {
        self.prefix_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Notes that the client that was notified instead is gone.
    pub(crate) fn set_broken(&self) {
        if let Some(Shared { mode: Some(mode), .. }) = self.shared.lock().as_deref_mut() {
            mode.is_broken = true;
        }
    }

    /// Leaves a notification for the client; `redirected` if it is another client's. Returns
    /// whether the thread that has the client must be notified.
    pub(crate) fn push(&self, invalidation: Invalidation, redirected: bool) -> bool {
        let mut shared = self.shared.lock();
        let is_gone = self.is_gone.load(Ordering::Relaxed);
        if is_gone || shared.is_none() && !redirected {
            // It is closed, or has stopped tracking.
            return false;
        }
        let shared = shared.get_or_insert_default();
        let last = shared.messages.last().map(|message| &message.invalidation);
        let bytes = shared.bytes + invalidation.bytes_behind(last);
        if bytes <= MESSAGES_BYTES_MAX {
            shared.bytes = bytes;
            shared.uncounted.set(shared.uncounted.bytes() + invalidation.own_bytes());
            shared.messages.push(Message { invalidation, redirected });
        } else {
            let redirected = redirected || shared.messages.iter().any(|message| message.redirected);
            shared.messages = vec![Message { invalidation: Invalidation::All, redirected }];
            shared.count();
        }
        !self.has_messages.swap(true, Ordering::Relaxed)
    }

    /// Whether notifications wait for the client.
    #[inline]
    pub fn has_messages(&self) -> bool {
        self.has_messages.load(Ordering::Relaxed)
    }

    /// Approximate bytes of its prefixes and notifications.
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

    /// Drops the notifications of a client that is closed, and later ones.
    pub(crate) fn forget(&self) {
        let mut shared = self.shared.lock();
        *shared = None;
        self.is_gone.store(true, Ordering::Relaxed);
        self.has_messages.store(false, Ordering::Relaxed);
    }
}

/// Writes the notifications that wait for a client. For its owner, between two replies.
pub fn write_messages(session: &Session, out: &mut Out) {
    if session.record.tracking.has_messages() {
        for Message { invalidation, redirected } in session.record.tracking.take() {
            write(&invalidation, redirected, session, out);
        }
    }
}

/// Writes one notification, if the client's protocol has a form for it.
pub(crate) fn write(
    invalidation: &Invalidation,
    redirected: bool,
    session: &Session,
    out: &mut Out,
) {
    let before = out.bytes.len();
    let mut reply = Reply::new(out, session.resp3);
    match invalidation {
        Invalidation::Broken(client) => {
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
    match invalidation {
        Invalidation::Key(name) => {
            reply.array(1);
            reply.bulk(name);
        }
        // Like long messages: an array that waits for many clients is kept once.
        Invalidation::Keys(names) if names.len() > COPIED_BYTES_MAX => {
            out.push_message(Arc::clone(names))
        }
        Invalidation::Keys(names) => reply.raw(names),
        Invalidation::All | Invalidation::Broken(_) => reply.null(),
    }
    out.count_notification(out.bytes.len() - before);
}

/// The notification for a client of changed keys, without the changes of client `but`; `None` if
/// there is none. `encoded` keeps the array that other clients share.
pub(crate) fn invalidation_of(
    changed: &ChangedKeys,
    but: Option<u64>,
    encoded: &mut Option<Arc<SharedMessage>>,
) -> Option<Invalidation> {
    if changed.are_all() {
        return Some(Invalidation::All);
    }
    if but.is_some_and(|client| changed.has_source(client)) {
        return changed
            .encode(but)
            .map(|array| Invalidation::Keys(Arc::new(SharedMessage::about_keys(array))));
    }
    if encoded.is_none() {
        *encoded = changed.encode(None).map(|array| Arc::new(SharedMessage::about_keys(array)));
    }
    encoded.clone().map(Invalidation::Keys)
}

#[cfg(test)]
mod tests {
    use base::uncounted::thread_bytes;

    use super::*;

    /// Waiting notifications are left out of the count until they are taken or dropped, and none
    /// waits for a client that is gone.
    #[test]
    fn messages_that_wait_for_a_client_are_uncounted() {
        let tracking = ClientTracking::default();
        let key = || Invalidation::Key(vec![b'x'; 1000].into());
        assert!(!tracking.push(key(), false), "it does not track");
        tracking.set_mode(Some(Mode::default()));
        let names = Arc::new(SharedMessage::about_keys(vec![0; 20_480]));
        let invalidation = || Invalidation::Keys(Arc::clone(&names));
        assert!(tracking.push(key(), false) && !tracking.push(invalidation(), true));
        // An array that several clients share is kept once, and left out once.
        let others = [1, 2].map(|_| ClientTracking::default());
        others.iter().for_each(|other| assert!(other.push(invalidation(), true)));
        drop(names);
        assert_eq!(thread_bytes(), 1000 + 20_480 + 4 * MESSAGE_BYTES as i64);
        assert!(others[0].memory_bytes() > 20_480);
        drop(others);
        tracking.set_mode(None);
        assert_eq!(thread_bytes(), 20_480 + MESSAGE_BYTES as i64, "other clients share the array");
        let messages = tracking.take();
        assert_eq!((messages.len(), thread_bytes()), (1, 20_480));
        drop(messages);
        assert_eq!(thread_bytes(), 0);
        assert!(tracking.push(key(), true));
        tracking.forget();
        assert!(!tracking.push(key(), true) && !tracking.has_messages());
        assert_eq!(thread_bytes(), 0);
    }

    /// A client to which many others redirect the same array keeps it once.
    #[test]
    fn a_repeated_message_counts_once() {
        let tracking = ClientTracking::default();
        let names = Arc::new(SharedMessage::about_keys(vec![0; 1 << 20]));
        for _ in 0..60 {
            tracking.push(Invalidation::Keys(Arc::clone(&names)), true);
        }
        let bytes = tracking.memory_bytes();
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
        tracking.set_mode(Some(Mode::default()));
        tracking.set_mode(None);
        assert_eq!((tracking.memory_bytes(), tracking.take().len()), (bytes, 60));
    }

    /// A client keeps no more than its limit, even if others share the arrays.
    #[test]
    fn a_shared_message_counts_in_full_for_each_client() {
        let tracking = ClientTracking::default();
        for _ in 0..20 {
            tracking.push(
                Invalidation::Keys(Arc::new(SharedMessage::about_keys(vec![0; 1 << 20]))),
                true,
            );
            assert!(thread_bytes() <= MESSAGES_BYTES_MAX as i64);
        }
        assert!((3 << 20..5 << 20).contains(&tracking.memory_bytes()));
    }

    #[test]
    fn too_many_keys_become_one_message() {
        let tracking = ClientTracking::default();
        let firsts =
            (0..20).filter(|_| tracking.push(Invalidation::Key(vec![0; 1 << 20].into()), true));
        assert_eq!(firsts.count(), 1);
        assert!((3 << 20..5 << 20).contains(&thread_bytes()), "{}", thread_bytes());
        drop(tracking);
        assert_eq!(thread_bytes(), 0);
    }
}
