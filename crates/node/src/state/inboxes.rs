//! The inboxes of all threads: messages of one thread for the clients of another.
//!
//! Messages for clients are pushed while locks are held, so that they arrive in order. The thread
//! that has pushed them wakes the receiving threads once, later, outside the gate
//! ([`Worker::wake_receivers`]). They are separate from the requests between threads, because a
//! command that ends a subscription has to take in its client's messages before it is answered.
//!
//! An inbox belongs to the number of a thread and outlives it: the next thread with that number
//! continues with it.
//!
//! Publishers wait while the inbox of a receiving thread is full, until that thread has taken some
//! messages in. They do not wait for a slow command: a thread whose clients publish takes messages
//! in for the thread that runs it (`Inboxes::relieve`), as far as these do not bring subscribers
//! that read near their limits.
//!
//! [`Worker::wake_receivers`]: crate::Worker::wake_receivers

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};
use pubsub::{ChannelKind, PublishedMessage, SharedName};
use sync::mailbox::{Mailbox, Sender, Wake};

use crate::clients::record::ClientRecord;
use crate::config::IO_THREADS_MAX;

/// The most bytes of messages in an inbox before publishers have to wait, as they weigh when they
/// are delivered: few enough that they are delivered soon.
const BACKLOG_BYTES_MAX: usize = 16 << 20;

/// So many may be in an inbox if a command, a transaction or a script publishes more than that by
/// itself. Then its thread takes messages in for the receiving thread.
const OVERFULL_BYTES: usize = 2 * BACKLOG_BYTES_MAX;

/// The most bytes of MONITOR lines in the inbox of one thread. No thread waits until they are taken
/// in: clients that watch there are closed instead.
const LINES_BYTES_MAX: usize = 64 << 20;

/// A message for the clients of a thread.
#[derive(Debug)]
pub enum Delivery {
    /// A message to a channel.
    Published(PublishedMessage),
    /// A subscription begins, of a client that was moved to the main thread.
    Begin(Box<Subscription>),
    /// A subscription ends, of a client that was moved to the main thread.
    End(Box<Subscription>),
    /// A subscription of a client that is about to come to this thread, and receives the messages
    /// on its old thread until then.
    Follow(Box<Subscription>),
    /// From this epoch on, a client receives its messages on this thread.
    BeginAt(u64, usize),
    /// Notifications wait in the record of a client.
    Look(Arc<ClientRecord>),
    /// Keys have changed whose prefixes clients of this thread track: there is a list of such
    /// prefixes.
    Changed,
    /// A mark: everything pushed before has been taken in.
    Mark,
    /// No more messages follow for a client of this thread, which is closed.
    Gone(u64),
    /// MONITOR lines are missing: the clients that watch on this thread must be closed.
    Cut,
}

impl Delivery {
    /// Bytes of its message.
    pub(crate) fn body_bytes(&self) -> usize {
        if let Self::Published(message) = self { message.body_bytes() } else { 0 }
    }
}

/// A subscription of a client, as another thread sends it to the owner.
#[derive(Debug)]
pub struct Subscription {
    /// The client's number.
    pub client: u64,
    /// Its slot, if it has one on the thread.
    pub slot: Option<usize>,
    /// The kind of channel.
    pub kind: ChannelKind,
    /// Its name.
    pub name: SharedName,
    /// The name's hash.
    pub hash: u64,
    /// The moment at which the subscription begins or ends.
    pub moment: u64,
}

/// Why another thread takes messages in. The number is the limit of bytes that may wait for a
/// client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReliefCause {
    /// A client is moved there: takes in all, up to a limit.
    Move,
    /// Publishers wait: until there is room, while less than half of the limit waits for each
    /// client, and their messages take no more than [`RELIEVED_BYTES_MAX`].
    Stall(usize),
    /// The thread has stalled for long: the same up to the limit, at which clients are given up.
    LongStall(usize),
    /// A command publishes much and cannot wait: the same without a bound of their memory.
    Command(usize),
}

/// The most memory of messages that are taken in for a thread whose clients do not receive them.
/// Then publishers wait until it writes some.
pub(crate) const RELIEVED_BYTES_MAX: usize = 256 << 20;

/// Takes messages in for the thread that has the inbox.
pub(crate) type Relief = Box<dyn Fn(ReliefCause) + Send + Sync>;

/// The threads to which one thread has sent messages.
#[derive(Debug, Default)]
pub(crate) struct ReceivingThreads {
    /// Those that must be woken, as bits.
    pub(crate) threads: u128,
    /// Messages of the request went to full inboxes.
    pub(crate) were_some_full: bool,
}

/// Wakes the thread that has the inbox.
#[derive(Default)]
struct ThreadWake(RwLock<Option<Arc<dyn Wake>>>);

struct Inbox {
    sender: Sender<Delivery>,
    wake: Arc<ThreadWake>,
    /// The receiving end, while no thread has it.
    mailbox: Mutex<Option<Mailbox<Delivery>>>,
    /// `None` while no thread has it.
    relief: Mutex<Option<Relief>>,
    /// The weight of its messages in bytes, without the lines of MONITOR.
    backlog: AtomicUsize,
    /// The weight of its MONITOR lines in bytes.
    lines: AtomicUsize,
    /// The clients that watch on this thread are given up when it comes to [`Delivery::Cut`],
    /// because there were too many lines. Until then it gets no more.
    is_cut: AtomicBool,
    /// How often its thread has looked for messages. Only the thread counts.
    rounds: AtomicUsize,
}

/// One inbox for each thread that there can be.
pub struct Inboxes {
    inboxes: Box<[Inbox]>,
    /// Every thread looks into its inbox.
    all_active: AtomicBool,
    /// The number of full inboxes.
    full: AtomicUsize,
    /// How often an inbox has stopped being full.
    relieved: AtomicUsize,
}

impl Inboxes {
    pub(crate) fn new() -> Self {
        let inbox = |_| {
            let wake = Arc::<ThreadWake>::default();
            let of_thread = Arc::clone(&wake);
            let mailbox = Mailbox::new(move || {
                if let Some(wake) = &*of_thread.0.read() {
                    wake.wake();
                }
            });
            Inbox {
                sender: mailbox.sender(),
                wake,
                mailbox: Mutex::new(Some(mailbox)),
                relief: Mutex::new(None),
                backlog: AtomicUsize::new(0),
                lines: AtomicUsize::new(0),
                is_cut: AtomicBool::new(false),
                rounds: AtomicUsize::new(0),
            }
        };
        Self {
            inboxes: (0..usize::from(IO_THREADS_MAX)).map(inbox).collect(),
            all_active: AtomicBool::new(false),
            full: AtomicUsize::new(0),
            relieved: AtomicUsize::new(0),
        }
    }

    /// The inbox of a thread, which `wake` wakes; `None` if another thread has it.
    pub(crate) fn open(&self, thread: usize, wake: Arc<dyn Wake>) -> Option<Mailbox<Delivery>> {
        let inbox = self.inboxes.get(thread)?;
        let mailbox = inbox.mailbox.lock().take()?;
        *inbox.wake.0.write() = Some(wake);
        Some(mailbox)
    }

    /// Lets other threads take messages in for this thread; `None` ends that, after it waited for a
    /// thread that does so.
    pub(crate) fn set_relief(&self, thread: usize, relief: Option<Relief>) {
        *self.inboxes[thread].relief.lock() = relief;
    }

    /// Takes some messages in for a thread, unless another thread does so now. The thread must look
    /// into its inbox afterwards, as a thread does at the end of its turn.
    pub(crate) fn relieve(&self, thread: usize, cause: ReliefCause) {
        let relief = self.inboxes[thread].relief.try_lock();
        if let Some(Some(relief)) = relief.as_deref() {
            relief(cause);
        }
    }

    /// Notes that a thread looks for messages.
    pub(crate) fn begin_round(&self, thread: usize) {
        let rounds = &self.inboxes[thread].rounds;
        rounds.store(rounds.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How often a thread has looked for messages.
    pub fn rounds(&self, thread: usize) -> usize {
        self.inboxes[thread].rounds.load(Ordering::Relaxed)
    }

    /// Takes back the inbox of a thread that ends.
    pub(crate) fn close(&self, thread: usize, mailbox: Mailbox<Delivery>) {
        let inbox = &self.inboxes[thread];
        *inbox.wake.0.write() = None;
        *inbox.mailbox.lock() = Some(mailbox);
    }

    /// Puts something into a thread's inbox. The caller [wakes](Self::wake) the thread later.
    pub(crate) fn push(&self, thread: usize, delivery: Delivery) {
        let inbox = &self.inboxes[thread];
        if let Delivery::Published(message) = &delivery {
            self.count_pushed(inbox, message);
        }
        inbox.sender.push(delivery);
    }

    fn count_pushed(&self, inbox: &Inbox, message: &PublishedMessage) {
        let weight = message.weight();
        if message.is_request() {
            inbox.lines.fetch_add(weight, Ordering::Relaxed);
            return;
        }
        let before = inbox.backlog.fetch_add(weight, Ordering::Relaxed);
        if before <= BACKLOG_BYTES_MAX && before + weight > BACKLOG_BYTES_MAX {
            self.full.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a thread may get more lines of MONITOR.
    pub(crate) fn has_room_for_lines(&self, thread: usize) -> bool {
        let inbox = &self.inboxes[thread];
        let lines = inbox.lines.load(Ordering::Relaxed);
        // A client that has missed a line is being closed, and gets no later one.
        lines < LINES_BYTES_MAX && !inbox.is_cut.load(Ordering::Relaxed)
    }

    /// A line for a thread had no room, so the clients that watch there must be closed.
    pub(crate) fn cut(&self, thread: usize) {
        if !self.inboxes[thread].is_cut.swap(true, Ordering::Relaxed) {
            self.push(thread, Delivery::Cut);
        }
    }

    /// The clients that missed lines are given up: the others get the next ones.
    pub(crate) fn end_cut(&self, thread: usize) {
        self.inboxes[thread].is_cut.store(false, Ordering::Relaxed);
    }

    /// Wakes a thread, if it sleeps, for what was pushed.
    pub(crate) fn wake(&self, thread: usize) {
        self.inboxes[thread].sender.wake();
    }

    /// Makes every thread look into its inbox from now on: any thread may have messages for any
    /// client.
    pub(crate) fn activate_all(&self) {
        if self.all_active.load(Ordering::Relaxed) {
            return;
        }
        self.all_active.store(true, Ordering::SeqCst);
        // A thread that sleeps has not announced that.
        for inbox in &self.inboxes {
            if let Some(wake) = &*inbox.wake.0.read() {
                wake.wake();
            }
        }
    }

    #[inline]
    pub(crate) fn are_all_active(&self) -> bool {
        self.all_active.load(Ordering::Relaxed)
    }

    /// A message was taken out of a thread's inbox.
    pub(crate) fn taken(&self, thread: usize, message: &PublishedMessage) {
        let (inbox, weight) = (&self.inboxes[thread], message.weight());
        if message.is_request() {
            inbox.lines.fetch_sub(weight, Ordering::Relaxed);
            return;
        }
        let before = inbox.backlog.fetch_sub(weight, Ordering::Relaxed);
        if before > BACKLOG_BYTES_MAX && before - weight <= BACKLOG_BYTES_MAX {
            self.full.fetch_sub(1, Ordering::Relaxed);
            self.relieved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether some inbox is full, so that publishers have to wait.
    #[inline]
    pub fn are_some_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) != 0
    }

    /// Whether this thread's inbox is full.
    pub fn is_full(&self, thread: usize) -> bool {
        self.inboxes[thread].backlog.load(Ordering::Relaxed) > BACKLOG_BYTES_MAX
    }

    /// Whether it has more messages than publishers may leave there.
    pub(crate) fn is_overfull(&self, thread: usize) -> bool {
        self.inboxes[thread].backlog.load(Ordering::Relaxed) > OVERFULL_BYTES
    }

    /// Whether it has so many messages that relieving the thread goes on.
    pub(crate) fn is_half_full(&self, thread: usize) -> bool {
        self.inboxes[thread].backlog.load(Ordering::Relaxed) > BACKLOG_BYTES_MAX / 2
    }

    /// Whether a thread should look into its inbox soon, so that publishers need not wait for it.
    #[inline]
    pub fn is_filling(&self, thread: usize) -> bool {
        self.inboxes[thread].backlog.load(Ordering::Relaxed) > BACKLOG_BYTES_MAX / 4
    }

    /// The threads with full inboxes.
    pub(crate) fn full_threads(&self) -> impl Iterator<Item = usize> {
        (0..self.inboxes.len()).filter(|thread| self.is_full(*thread))
    }

    /// How often a full inbox has had room again. When this grows, publishers that wait may go on.
    pub fn relieved(&self) -> usize {
        self.relieved.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Inboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inboxes").field("full", &self.full).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::hash::KeyHasher;
    use pubsub::{ChannelId, ChannelRegistry};

    use super::*;

    #[test]
    fn publishers_wait_until_threads_have_caught_up() {
        let (registry, inboxes) = (ChannelRegistry::new(KeyHasher::new(1)), Inboxes::new());
        let mailbox = inboxes.open(1, Arc::new(|| {})).unwrap();
        assert!(inboxes.open(1, Arc::new(|| {})).is_none(), "one thread has an inbox");
        let name =
            ChannelId { kind: ChannelKind::Channel, name: &b"c"[..], hash: registry.hash(b"c") };
        for _ in 0..1000 {
            registry.subscribe(name, 1, |_| {});
        }
        let other = ChannelId {
            kind: ChannelKind::Channel,
            name: &b"other"[..],
            hash: registry.hash(b"other"),
        };
        registry.subscribe(other, 2, |_| {});
        let waits = |channel: &[u8]| {
            inboxes.are_some_full()
                && registry.reaches(ChannelKind::Channel, channel, |thread| inboxes.is_full(thread))
        };
        let payload = [b'x'; 1000];
        let mut published = 0;
        while !waits(b"c") {
            published += 1;
            registry.publish(ChannelKind::Channel, b"c", &payload, &mut |thread, message| {
                inboxes.push(thread, Delivery::Published(message));
            });
        }
        // Each takes a megabyte in the outputs of the subscribers.
        assert!((10..20).contains(&published), "{published}");
        // A client that publishes only to other threads goes on.
        assert!(!waits(b"other") && !waits(b"nobody"));
        assert!(!registry.reaches_events(|thread| inboxes.is_full(thread)));
        let pattern =
            ChannelId { kind: ChannelKind::Pattern, name: &b"*r"[..], hash: registry.hash(b"*r") };
        registry.subscribe(pattern, 1, |_| {});
        assert!(waits(b"other") && !waits(b"nobody"));
        assert!(registry.reaches_events(|thread| inboxes.is_full(thread)));
        registry.follow(pattern, 2, |_| {});
        registry.transfer(pattern, 1, 2);
        assert!(!waits(b"other") && !registry.reaches_events(|thread| inboxes.is_full(thread)));
        assert_eq!(inboxes.relieved(), 0);
        while let Some(Delivery::Published(message)) = mailbox.pop() {
            inboxes.taken(1, &message);
        }
        assert!(!inboxes.are_some_full() && inboxes.relieved() == 1);
        assert_eq!(inboxes.inboxes[1].backlog.load(Ordering::Relaxed), 0);
        inboxes.close(1, mailbox);
        assert!(inboxes.open(1, Arc::new(|| {})).is_some());
    }
}
