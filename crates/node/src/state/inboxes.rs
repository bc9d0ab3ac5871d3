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
//! messages in. They do not wait for a slow command: the messages for the thread that runs it may
//! *spill* beyond that (`Inboxes::let_spill`), up to a bound of their memory. As the thread takes
//! them in, publishers may leave half as much there, so they neither stop nor outrun it:
//!
//! ```text
//!   backlog   0 ......... 16 MB |  spilled  0 .............. spill_limit ........ spilled_max
//!             publishers go on  |  publishers go on          wait for the next round
//! ```
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

/// The most memory of messages that spill: publishers wait until the thread takes some in. With a
/// memory limit it is less ([`Inboxes::set_spilled_max`]).
pub(crate) const SPILLED_BYTES_MAX: usize = 512 << 20;

/// So much of that is left when the thread begins to take it in.
const SPILL_ROOM_MAX: usize = 32 << 20;

/// From so many on, a slow command or a long script has delayed the messages in the inbox.
const DELAYED_BYTES_MIN: usize = 1 << 20;

/// So many more may be in an inbox if a command, a transaction or a script publishes much by
/// itself. Then its thread takes messages in for the receiving thread.
const OVERFULL_BYTES: usize = 16 << 20;

/// The most memory of MONITOR lines in the inbox of one thread, or as much as may spill if that is
/// less. No thread waits until they are taken in: clients that watch there are closed instead.
const LINES_BYTES_MAX: usize = 256 << 20;

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
    /// Bytes of its message, and the memory of that.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        if let Self::Published(message) = self {
            return (message.body_bytes(), message.memory());
        }
        (0, 0)
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

/// Why another thread takes messages in, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReliefCause {
    /// A client is moved there.
    Move,
    /// A command publishes much and cannot wait: clients for which so many bytes wait are given up.
    Command(usize),
}

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
    /// The memory of those messages that were pushed while it had more than
    /// [`BACKLOG_BYTES_MAX`], and how much of them publishers may leave there.
    spilled: AtomicUsize,
    spill_limit: AtomicUsize,
    /// The memory of its MONITOR lines in bytes.
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
    /// How many of them, from the first, threads have opened.
    opened: AtomicUsize,
    /// The number of inboxes with more than [`BACKLOG_BYTES_MAX`].
    over: AtomicUsize,
    /// The most memory that may spill into one.
    spilled_max: AtomicUsize,
    /// How often a full inbox has got room.
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
                spilled: AtomicUsize::new(0),
                spill_limit: AtomicUsize::new(0),
                lines: AtomicUsize::new(0),
                is_cut: AtomicBool::new(false),
                rounds: AtomicUsize::new(0),
            }
        };
        Self {
            inboxes: (0..usize::from(IO_THREADS_MAX)).map(inbox).collect(),
            all_active: AtomicBool::new(false),
            opened: AtomicUsize::new(0),
            over: AtomicUsize::new(0),
            spilled_max: AtomicUsize::new(SPILLED_BYTES_MAX),
            relieved: AtomicUsize::new(0),
        }
    }

    /// The inbox of a thread, which `wake` wakes; `None` if another thread has it.
    pub(crate) fn open(&self, thread: usize, wake: Arc<dyn Wake>) -> Option<Mailbox<Delivery>> {
        let inbox = self.inboxes.get(thread)?;
        let mailbox = inbox.mailbox.lock().take()?;
        *inbox.wake.0.write() = Some(wake);
        self.opened.fetch_max(thread + 1, Ordering::Relaxed);
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

    /// Lowers the limit of what may spill after a thread has taken in messages with this memory:
    /// half as much may come again, so what has spilled becomes less while publishers go on.
    pub(crate) fn lower_spill_limit(&self, thread: usize, taken_bytes: usize) {
        let inbox = &self.inboxes[thread];
        let limit = inbox.spill_limit.load(Ordering::Relaxed);
        let spilled = inbox.spilled.load(Ordering::Relaxed);
        if limit == 0 && spilled == 0 {
            return;
        }
        let room_max = if spilled == 0 { 0 } else { SPILL_ROOM_MAX };
        let lowered = limit.saturating_sub(taken_bytes / 2);
        let lowered = lowered.clamp(spilled, spilled + room_max);
        inbox.spill_limit.store(lowered, Ordering::Relaxed);
        if lowered > spilled {
            self.relieved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Lets messages spill into the inbox of a thread that does not look into it.
    pub(crate) fn let_spill(&self, thread: usize) {
        let spilled_max = self.spilled_max();
        let limit = &self.inboxes[thread].spill_limit;
        if limit.swap(spilled_max, Ordering::Relaxed) < spilled_max {
            self.relieved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets the most memory of messages that may spill into one inbox: `bytes_max`, but no more
    /// than [`SPILLED_BYTES_MAX`].
    pub(crate) fn set_spilled_max(&self, bytes_max: usize) {
        self.spilled_max.store(bytes_max.min(SPILLED_BYTES_MAX), Ordering::Relaxed);
    }

    pub(crate) fn spilled_max(&self) -> usize {
        self.spilled_max.load(Ordering::Relaxed)
    }

    /// Whether a slow command has delayed the messages of a thread.
    pub(crate) fn are_delayed(&self, thread: usize) -> bool {
        self.inboxes[thread].spilled.load(Ordering::Relaxed) >= DELAYED_BYTES_MIN
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
    pub(crate) fn push(&self, thread: usize, mut delivery: Delivery) {
        let inbox = &self.inboxes[thread];
        if let Delivery::Published(message) = &mut delivery {
            self.count_pushed(inbox, message);
        }
        inbox.sender.push(delivery);
    }

    fn count_pushed(&self, inbox: &Inbox, message: &mut PublishedMessage) {
        if message.is_request() {
            inbox.lines.fetch_add(message.memory(), Ordering::Relaxed);
            return;
        }
        let weight = message.weight();
        let before = inbox.backlog.fetch_add(weight, Ordering::Relaxed);
        if before + weight <= BACKLOG_BYTES_MAX {
            return;
        }
        message.set_spilled();
        inbox.spilled.fetch_add(message.memory(), Ordering::Relaxed);
        if before <= BACKLOG_BYTES_MAX {
            self.over.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a thread may get more lines of MONITOR.
    pub(crate) fn has_room_for_lines(&self, thread: usize) -> bool {
        let inbox = &self.inboxes[thread];
        let lines = inbox.lines.load(Ordering::Relaxed);
        // A client that has missed a line is being closed, and gets no later one.
        lines < LINES_BYTES_MAX.min(self.spilled_max()) && !inbox.is_cut.load(Ordering::Relaxed)
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
        let inbox = &self.inboxes[thread];
        if message.is_request() {
            inbox.lines.fetch_sub(message.memory(), Ordering::Relaxed);
            return;
        }
        if message.is_spilled() {
            inbox.spilled.fetch_sub(message.memory(), Ordering::Relaxed);
        }
        let weight = message.weight();
        let before = inbox.backlog.fetch_sub(weight, Ordering::Relaxed);
        if before > BACKLOG_BYTES_MAX && before - weight <= BACKLOG_BYTES_MAX {
            self.over.fetch_sub(1, Ordering::Relaxed);
            self.relieved.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether some inbox is full, so that publishers have to wait.
    #[inline]
    pub fn are_some_full(&self) -> bool {
        self.over.load(Ordering::Relaxed) != 0 && self.full_threads().next().is_some()
    }

    /// Whether this thread's inbox is full.
    pub fn is_full(&self, thread: usize) -> bool {
        let inbox = &self.inboxes[thread];
        inbox.backlog.load(Ordering::Relaxed) > BACKLOG_BYTES_MAX
            && inbox.spilled.load(Ordering::Relaxed) >= inbox.spill_limit.load(Ordering::Relaxed)
    }

    /// Whether it has more messages than publishers may leave there.
    pub(crate) fn is_overfull(&self, thread: usize) -> bool {
        let spilled = self.inboxes[thread].spilled.load(Ordering::Relaxed);
        spilled > self.spilled_max() + OVERFULL_BYTES
    }

    /// Whether a thread should look into its inbox soon, so that publishers need not wait for it.
    #[inline]
    pub fn is_filling(&self, thread: usize) -> bool {
        self.inboxes[thread].backlog.load(Ordering::Relaxed) > BACKLOG_BYTES_MAX / 4
    }

    /// The threads with full inboxes.
    pub(crate) fn full_threads(&self) -> impl Iterator<Item = usize> {
        (0..self.opened.load(Ordering::Relaxed)).filter(|thread| self.is_full(*thread))
    }

    /// How often a full inbox has got room. When this grows, publishers that wait may go on.
    pub fn relieved(&self) -> usize {
        self.relieved.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Inboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inboxes").field("over", &self.over).finish_non_exhaustive()
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
