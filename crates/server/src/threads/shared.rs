//! What all threads of the process share, and the services that commands ask of the process.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use node::{ClientRecord, Node};
use parking_lot::{Mutex, RwLock};
use sync::gate::{Gate, Pass};
use sync::mailbox::Sender;

use crate::disk::append_only::AppendOnly;
use crate::disk::log_ring::LogRing;
use crate::disk::log_slot::LogSlot;
use crate::disk::saves::Saves;
use crate::disk::unfinished::Unfinished;
use crate::http::MetricsService;
use crate::keyspace::shard_locks::{ServesOthers, Shards, ThreadShards};
use crate::net::connection::Connection;
use crate::process::garbage::Garbage;
use crate::process::signals::Signalled;
use crate::threads::carrier_trials::Work;
use crate::threads::control::Control;
use crate::threads::message::Message;
use crate::threads::slow_turns::{Schedule, Turn};

/// How to reach a thread.
#[derive(Clone, Debug)]
pub struct ThreadHandle {
    /// Its mailbox.
    pub mailbox: Sender<Message<Box<Connection>>>,
    /// Clients it owns and those on their way to it. Whoever places a client counts it, so that a
    /// burst of connections does not go to one thread.
    pub clients: Arc<AtomicUsize>,
    /// The TSC when its turn began, 0 while it waits. A turn that lasts long is not counted as busy
    /// time before its end.
    pub turn_tsc: Arc<AtomicU64>,
    /// Its number in the system, 0 before it runs.
    pub system_id: Arc<AtomicU32>,
}

/// A thread whose turn has lasted so long gets no new clients, as long as there are others: it
/// serves nobody before its command is over. Most turns last for less than a millisecond.
const STUCK_MS: f64 = 3.0;

impl ThreadHandle {
    /// How long its turn has lasted at this TSC, in milliseconds; 0 while it waits.
    fn turn_ms(&self, tsc: u64) -> f64 {
        match self.turn_tsc.load(Ordering::Relaxed) {
            0 => 0.0,
            began => tsc.saturating_sub(began) as f64 / sys::clock::tsc_per_micro() / 1000.0,
        }
    }
}

/// What all threads share.
pub struct Shared {
    /// The way to itself for threads that are started later.
    pub me: Weak<Shared>,
    /// The state of the server as Redis knows it.
    pub node: Arc<Node>,
    /// The keyspace.
    pub shards: Shards,
    /// Through which every thread goes to execute.
    pub gate: Gate,
    /// All threads, the main thread first.
    pub handles: RwLock<Vec<ThreadHandle>>,
    /// Listening sockets and whatever else a change of configuration may touch.
    pub control: Mutex<Control>,
    /// The thread that writes the log.
    pub append_only: AppendOnly,
    /// Dropped values on their way to the thread that frees them.
    pub garbage: Garbage,
    /// Who writes RDB files.
    pub saves: Saves,
    /// RDB files that are not whole.
    pub unfinished: Unfinished,
    /// The signals that have come.
    pub signalled: Signalled,
    /// The log, if there is one.
    pub log: LogSlot,
    /// Who serves metrics.
    pub metrics: MetricsService,
    /// When the process started, in milliseconds on the steady scale.
    pub started_ms: i64,
    /// Bytes in use when the server was ready.
    pub startup_bytes: u64,
    /// What the main thread has used of the processor, as of its last tick.
    pub main_cpu: Mutex<sys::process::CpuTime>,
    /// Threads that run, the main thread included.
    pub threads_active: AtomicUsize,
    /// Of these, threads below this number take clients.
    pub threads_carrying: AtomicUsize,
    /// Whether those have enough to do that the background work on shards is theirs, too.
    pub cron_is_shared: AtomicBool,
}

impl Shared {
    /// The keyspace as a thread sees it that enters the gate by its pass; see
    /// [`ThreadShards::enter`].
    #[inline]
    pub fn enter<'a>(
        &'a self,
        pass: Option<&'a Pass>,
        others: &'a dyn ServesOthers,
    ) -> ThreadShards<'a> {
        ThreadShards::enter(&self.shards, pass, &self.node.scripting.busy, others)
    }

    /// Sets the log, or that there is none. All threads follow; [`LogSlot::is_followed`] tells when
    /// they have. For the main thread.
    pub(crate) fn set_log(&self, ring: Option<Arc<LogRing>>) {
        if let Some(ring) = &ring {
            ring.count_for(&self.node);
        }
        self.log.set(ring);
        for thread in 0..self.handles.read().len() {
            self.send(thread, Message::FollowLog);
        }
    }

    /// Sends a message to a thread.
    pub fn send(&self, thread: usize, message: Message<Box<Connection>>) {
        let handle = self.handles.read().get(thread).map(|handle| handle.mailbox.clone());
        if let Some(handle) = handle {
            handle.send(message);
        }
    }

    /// The thread for a client: of those that are not stuck in a slow command, if there are any,
    /// the one that has the fewest clients. The main thread owns clients only when it is alone.
    /// Only the main thread may rely on the answer, for it is the one that ends threads.
    pub fn thread_for_client(&self) -> usize {
        let carrying = self.threads_carrying.load(Ordering::Acquire);
        let handles = self.handles.read();
        let others = handles.iter().enumerate().take(carrying).skip(1);
        let tsc = sys::clock::tsc();
        let fewest = others.min_by_key(|(_, handle)| {
            (handle.turn_ms(tsc) >= STUCK_MS, handle.clients.load(Ordering::Relaxed))
        });
        fewest.map_or(0, |(thread, _)| thread)
    }

    /// Moves a client to a thread; to another than the main thread only if this is the main thread.
    pub fn move_client(&self, thread: usize, client: Box<Connection>) {
        if let Some(handle) = self.handles.read().get(thread) {
            handle.clients.fetch_add(1, Ordering::Relaxed);
            handle.mailbox.send(Message::Move(client));
        }
    }

    /// The share of all clients that each thread would have if all had equally many.
    pub fn fair_share(&self) -> usize {
        let carrying = self.threads_carrying.load(Ordering::Acquire);
        let handles = self.handles.read();
        let all: usize = handles.iter().map(|handle| handle.clients.load(Ordering::Relaxed)).sum();
        all.div_ceil(carrying.saturating_sub(1).max(1))
    }

    /// How many threads share the background work on shards. The main thread does it alone while
    /// only one other carries clients or they do hardly anything, so that they sleep when their
    /// clients do.
    pub fn cron_threads(&self) -> usize {
        let is_shared = self.cron_is_shared.load(Ordering::Relaxed);
        match self.threads_carrying.load(Ordering::Relaxed) {
            carrying @ 3.. if is_shared => carrying,
            _ => 1,
        }
    }

    /// The turns at this TSC of the threads that carry clients beside the main thread, and of as
    /// many as `least` whether they do or not.
    pub fn turns(&self, tsc: u64, least: usize) -> Vec<Turn> {
        let carrying = self.threads_carrying.load(Ordering::Relaxed).max(least + 1);
        let handles = self.handles.read();
        let turns = handles.iter().take(carrying).skip(1).map(|handle| {
            let schedule = sys::process::thread_schedule(handle.system_id.load(Ordering::Relaxed));
            let schedule = schedule.map(|(cpu_ns, waited_ns)| Schedule { cpu_ns, waited_ns });
            Turn { turn_ms: handle.turn_ms(tsc), schedule }
        });
        turns.collect()
    }

    /// Whether all threads that carry clients are stuck in slow commands, and not the main thread.
    pub fn is_stuck(&self) -> bool {
        let tsc = sys::clock::tsc();
        let carrying = self.threads_carrying.load(Ordering::Relaxed);
        let handles = self.handles.read();
        let mut carriers = handles.iter().take(carrying).skip(1).peekable();
        carriers.peek().is_some() && carriers.all(|handle| handle.turn_ms(tsc) >= STUCK_MS)
    }

    /// Busy ticks of each thread that carries clients beside the main thread, up to `tsc`.
    pub fn busy_tsc(&self, tsc: u64) -> Vec<u64> {
        let carrying = self.threads_carrying.load(Ordering::Relaxed);
        let (handles, stats) = (self.handles.read(), self.node.threads.read());
        let carriers = handles.iter().zip(stats.iter()).take(carrying).skip(1);
        let busy = carriers.map(|(handle, stats)| {
            let counted = stats.busy_tsc.value();
            match handle.turn_tsc.load(Ordering::Relaxed) {
                0 => counted,
                began => counted + tsc.saturating_sub(began),
            }
        });
        busy.collect()
    }

    /// What the threads beside the main thread have done so far. None: the system does not tell.
    pub fn work(&self) -> Option<Work> {
        let (handles, stats) = (self.handles.read(), self.node.threads.read());
        let mut work = Work::default();
        let main = sys::process::thread_id();
        for (handle, stats) in handles.iter().zip(stats.iter()).skip(1) {
            let thread = handle.system_id.load(Ordering::Relaxed);
            debug_assert_ne!(thread, main, "each thread has its own number");
            let (cpu_ns, waited_ns) = sys::process::thread_schedule(thread)?;
            work.cpu_ns += cpu_ns;
            work.waited_ns += waited_ns;
            work.in_bytes += stats.in_bytes.value();
        }
        Some(work)
    }

    /// Asks the owner of a client to close it. The owner may be busy, but whoever asked for it is
    /// answered soon, and then the client must not find its connection in order: so its socket is
    /// shut down at once.
    pub fn close_client(&self, client: &ClientRecord) {
        self.node.kill(client);
        client.fd_guard.with(sys::socket::shut_down);
        let (thread, slot) = client.location.place();
        self.send(thread as usize, Message::Close { id: client.id, slot: slot as usize });
    }

    /// Tells the owner of a client that its wait for a key is over.
    pub fn wake_client(&self, client: &ClientRecord) {
        let (thread, slot) = client.location.place_after();
        self.send(thread as usize, Message::Wake { id: client.id, slot: slot as usize });
    }

    /// Tells every thread that CLIENT PAUSE began or ended.
    pub fn pause_changed(&self) {
        for handle in self.handles.read().iter() {
            handle.mailbox.send(Message::PauseChanged);
        }
    }
}
