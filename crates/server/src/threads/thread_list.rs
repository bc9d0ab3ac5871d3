//! All threads that serve clients, and how each is reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;
use sync::mailbox::{Mailbox, Sender};
use sys::eventfd::EventFd;

use super::connection::Connection;
use super::message::Message;
use crate::system::thread_notifier::ThreadNotifier;

/// How to reach a thread.
#[derive(Clone, Debug)]
pub struct ThreadHandle {
    pub mailbox: Sender<Message<Box<Connection>>>,
    /// Clients it owns and those on their way to it. The thread that places a client counts it, so
    /// that a burst of connections does not go to one thread.
    pub clients: Arc<AtomicUsize>,
    /// The TSC when its turn began, 0 while it waits. A turn that lasts long is not counted as busy
    /// time before its end.
    pub turn_tsc: Arc<AtomicU64>,
    /// Its number in the system, 0 before it runs.
    pub system_id: Arc<AtomicU32>,
}

/// A thread whose turn has lasted this long gets no new clients as long as there are others: it
/// serves no client before its command is over. Most turns last for less than a millisecond.
pub(super) const STUCK_MS: f64 = 3.0;

impl ThreadHandle {
    /// How long its turn has lasted at this TSC, in milliseconds; 0 while it waits.
    pub(super) fn turn_ms(&self, tsc: u64) -> f64 {
        match self.turn_tsc.load(Ordering::Relaxed) {
            0 => 0.0,
            began => tsc.saturating_sub(began) as f64 / sys::clock::tsc_per_micro() / 1000.0,
        }
    }
}

/// The mailbox of a thread and the event that wakes its owner, made before the thread is.
pub struct ThreadMailbox {
    /// The receiving end.
    pub mailbox: Mailbox<Message<Box<Connection>>>,
    /// Readable when a message may be there.
    pub wake: Arc<EventFd>,
    /// The handle by which other threads reach the owner.
    pub handle: ThreadHandle,
}

impl ThreadMailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn new() -> std::io::Result<Self> {
        let wake = Arc::new(EventFd::new()?);
        let signal = Arc::clone(&wake);
        let mailbox = Mailbox::new(move || signal.signal());
        let (clients, turn_tsc, system_id) = Default::default();
        let handle = ThreadHandle { mailbox: mailbox.sender(), clients, turn_tsc, system_id };
        Ok(Self { mailbox, wake, handle })
    }
}

#[derive(Debug, Default)]
pub(crate) struct ThreadList {
    /// By their numbers.
    pub(crate) handles: RwLock<Vec<ThreadHandle>>,
}

impl ThreadList {
    pub(crate) fn send(&self, thread: usize, message: Message<Box<Connection>>) {
        let handle = self.handles.read().get(thread).map(|handle| handle.mailbox.clone());
        if let Some(handle) = handle {
            handle.send(message);
        }
    }

    pub(crate) fn send_to_all(&self, message: impl Fn() -> Message<Box<Connection>>) {
        self.handles.read().iter().for_each(|handle| handle.mailbox.send(message()));
    }
}

impl ThreadNotifier for ThreadList {
    fn log_replaced(&self) {
        self.send_to_all(|| Message::FollowLog);
    }

    fn log_advanced(&self, thread: usize) {
        self.send(thread, Message::LogReached);
    }

    fn log_failed(&self) {
        self.send_to_all(|| Message::LogReached);
    }

    fn shard_available(&self, thread: usize, slot: usize, client: u64) {
        self.send(thread, Message::Wake { id: client, slot });
    }

    fn wait_ended(&self, thread: usize, slot: usize, client: u64) {
        self.send(thread, Message::Wake { id: client, slot });
    }

    fn wake_main(&self) {
        self.send(0, Message::PauseChanged);
    }
}
