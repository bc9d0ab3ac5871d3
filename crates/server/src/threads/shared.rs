//! What all threads of the process share, and the services that commands ask of the process.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use node::{ClientRecord, Node};
use parking_lot::{Mutex, RwLock};
use sync::gate::Gate;
use sync::mailbox::Sender;

use crate::keyspace::shard_locks::Shards;
use crate::net::connection::Connection;
use crate::threads::control::Control;
use crate::threads::message::Message;

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
    /// Dropped values on their way to the thread that frees them.
    pub garbage: std::sync::mpsc::Sender<Box<dyn Send>>,
    /// When the process started, in milliseconds on the steady scale.
    pub started_ms: i64,
    /// Bytes handed out by the allocator when the server was ready.
    pub startup_bytes: AtomicU64,
    /// The most bytes ever seen handed out.
    pub peak_bytes: AtomicU64,
    /// What the main thread has used of the processor, as of its last tick.
    pub main_cpu: Mutex<sys::process::CpuTime>,
    /// Threads that run, the main thread included.
    pub threads_active: AtomicUsize,
    /// Of these, threads below this number take clients.
    pub threads_carrying: AtomicUsize,
}

impl Shared {
    /// Sends a message to a thread.
    pub fn send(&self, thread: usize, message: Message<Box<Connection>>) {
        let handle = self.handles.read().get(thread).map(|handle| handle.mailbox.clone());
        if let Some(handle) = handle {
            handle.send(message);
        }
    }

    /// The thread that has the fewest clients. The main thread owns clients only when it is alone.
    /// Only the main thread may rely on the answer, for it is the one that ends threads.
    pub fn thread_for_client(&self) -> usize {
        let carrying = self.threads_carrying.load(Ordering::Acquire);
        let handles = self.handles.read();
        let others = handles.iter().enumerate().take(carrying).skip(1);
        let fewest = others.min_by_key(|(_, handle)| handle.clients.load(Ordering::Relaxed));
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
    /// only one other carries clients, so that this one sleeps when they do.
    pub fn cron_threads(&self) -> usize {
        match self.threads_carrying.load(Ordering::Relaxed) {
            0..=2 => 1,
            carrying => carrying,
        }
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
