//! The mailbox: a lock-free queue into one thread, and a wake that is made only when that thread
//! may be asleep.
//!
//! ```text
//!                prepare_sleep() finds nothing
//!     AWAKE  -----------------------------------> ASLEEP   owner waits in epoll_wait
//!       ^                                           |
//!       |   awake(), by the owner: no wake          |
//!       +-------------------------------------------+
//!       |   send() or wake(), by whichever clears   |
//!       +---------- the flag: one wake -------------+
//! ```
//!
//! One turn of the owner: `awake()`, empty the wake's descriptor, `pop()` the messages (with a
//! bound, so that a busy mailbox does not starve its other work), `prepare_sleep()`, wait (without
//! blocking when `prepare_sleep()` was false).
//!
//! A producer that sends a lot, or holds a lock while it sends, only [pushes](Sender::push) its
//! messages and [wakes](Sender::wake) the owner once, later.
//!
//! Invariants, each with a model in `tests/models`:
//! - A message is either seen before the owner sleeps, or a wake is made after it was queued: at
//!   the latest by the producer's next `send()` or `wake()`.
//! - There is at most one wake for each `prepare_sleep()`, however many producers there are.
//! - Messages of one producer arrive in the order in which it sent them.
//!
//! Why nothing is lost: the producer writes the queue, then reads the flag; the owner writes the
//! flag, then reads the queue. Between its two steps each side has a sequentially consistent fence.
//! The two fences have an order, and the side that comes second sees what the other wrote first.
//!
//! The mailbox does not bound the queue (the senders decide how much may be outstanding), answer,
//! or report that the owner is gone. A thread that ends returns its `Mailbox`, and the thread that
//! joins it receives the rest.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::shim::{AtomicBool, Ordering, SegQueue, fence};

/// Ends the owner's sleep, in the server by a write to its eventfd.
///
/// A wake must stick: when it is made after `prepare_sleep` and before the owner waits, the wait
/// has to return at once. It may be made late, when the owner is up again for another reason.
pub trait Wake: Send + Sync {
    /// Ends the current sleep of the owner, or else its next one.
    fn wake(&self);
}

impl<F: Fn() + Send + Sync> Wake for F {
    fn wake(&self) {
        self();
    }
}

/// The receiving end. It belongs to one thread; it can be moved to another but not shared.
pub struct Mailbox<T> {
    shared: Arc<MailboxState<T>>,
    /// Makes the type `!Sync`: the protocol of sleeping knows only one owner.
    one_owner: PhantomData<Cell<()>>,
}

/// The sending end: any number of them, on any thread.
pub struct Sender<T> {
    shared: Arc<MailboxState<T>>,
}

struct MailboxState<T> {
    queue: SegQueue<T>,
    /// On its own cache line: every send reads it, it changes only with sleep.
    asleep: CachePadded<AtomicBool>,
    wake: Box<dyn Wake>,
}

impl<T> Mailbox<T> {
    /// An empty mailbox whose owner is awake, and is woken by `wake`.
    pub fn new(wake: impl Wake + 'static) -> Self {
        let shared = MailboxState {
            queue: SegQueue::new(),
            asleep: CachePadded::new(AtomicBool::new(false)),
            wake: Box::new(wake),
        };
        Self { shared: Arc::new(shared), one_owner: PhantomData }
    }

    /// One more sending end.
    pub fn sender(&self) -> Sender<T> {
        Sender { shared: Arc::clone(&self.shared) }
    }

    /// The oldest message. It never sleeps, but may spin for a moment: for a producer that has
    /// taken its place in the queue and not yet written its message there.
    pub fn pop(&self) -> Option<T> {
        self.shared.queue.pop()
    }

    /// Announces that the owner is about to wait. False: messages are there, do not sleep.
    ///
    /// After true, call [`awake`](Self::awake) when the wait is over, and do not empty the wake's
    /// descriptor before: the one wake of this sleep may already be in it. After false the owner is
    /// awake, though a wake may have been made.
    #[must_use]
    pub fn prepare_sleep(&self) -> bool {
        // Saves the fence, and a needless wake, when the answer is plain.
        if !self.shared.queue.is_empty() {
            return false;
        }
        self.shared.asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `send`: either that producer sees the flag, or its message is
        // seen by the next line.
        fence(Ordering::SeqCst);
        if self.shared.queue.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// The wait is over: until the next [`prepare_sleep`](Self::prepare_sleep) no sender needs to
    /// wake it.
    pub fn awake(&self) {
        // Mostly a plain read: the sender that woke the owner has cleared the flag.
        if self.shared.asleep.load(Ordering::Relaxed) {
            self.shared.clear_flag();
        }
    }
}

impl<T> Sender<T> {
    /// Queues a message, and wakes the owner if it may be asleep and no other sender does. Never
    /// blocks.
    ///
    /// Costs two locked instructions and a fence on x86-64; the wake, when there is one, is a
    /// system call.
    pub fn send(&self, message: T) {
        self.push(message);
        self.wake();
    }

    /// Queues a message that may stay unseen until [`wake`](Self::wake), which the same thread must
    /// call afterwards.
    #[inline]
    pub fn push(&self, message: T) {
        self.shared.queue.push(message);
    }

    /// Wakes the owner if it may be asleep and no other sender does, for the messages that this
    /// thread has [pushed](Self::push).
    #[inline]
    pub fn wake(&self) {
        // Pairs with the fence in `prepare_sleep`. The queue's own orderings are not relied upon.
        fence(Ordering::SeqCst);
        // The read keeps the line shared while the owner is awake.
        if self.shared.asleep.load(Ordering::Relaxed) && self.shared.clear_flag() {
            self.shared.wake.wake();
        }
    }
}

impl<T> MailboxState<T> {
    /// Whether the caller is the one that ended the announced sleep: producers compete with one
    /// another and with the owner. Relaxed, because the flag only elects; the fences order.
    fn clear_flag(&self) -> bool {
        self.asleep.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Mailbox<T> {
    /// Drops messages that will not be read: a message may own a socket, and senders may live long.
    /// Later messages are dropped with the last sender.
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}
