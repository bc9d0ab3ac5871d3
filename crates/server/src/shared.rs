//! What all threads of the process share, and the services that commands ask of the process.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use node::{ClientRecord, Node, ThreadStats};
use parking_lot::{Mutex, RwLock};
use sync::gate::Gate;
use sync::mailbox::Sender;

use crate::connection::Connection;
use crate::control::Control;
use crate::message::Message;
use crate::router::Shards;

/// How to reach a thread.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its mailbox.
    pub mailbox: Sender<Message>,
    /// Its counts, the number of its clients among them.
    pub stats: Arc<ThreadStats>,
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
    pub links: RwLock<Vec<Link>>,
    /// Listening sockets and whatever else a change of configuration may touch.
    pub control: Mutex<Control>,
    /// Dropped values on their way to the thread that frees them.
    pub garbage: std::sync::mpsc::Sender<Box<dyn Send>>,
    /// When the process started, in milliseconds since 1970.
    pub started_ms: i64,
    /// Bytes handed out by the allocator when the server was ready.
    pub startup_bytes: AtomicU64,
    /// The most bytes ever seen handed out.
    pub peak_bytes: AtomicU64,
    /// What the main thread has used of the processor, as of its last tick.
    pub main_cpu: Mutex<sys::process::CpuTime>,
    /// Threads that run commands now.
    pub threads_active: AtomicUsize,
}

impl Shared {
    /// Sends a message to a thread.
    pub fn send(&self, thread: usize, message: Message) {
        let link = self.links.read().get(thread).map(|link| link.mailbox.clone());
        if let Some(link) = link {
            link.send(message);
        }
    }

    /// The thread for a new client: the one that owns the fewest. The main thread owns clients only
    /// when it is alone.
    pub fn thread_for_client(&self) -> usize {
        let active = self.threads_active.load(Ordering::Acquire);
        let links = self.links.read();
        (1..active).min_by_key(|thread| links[*thread].stats.clients.value()).unwrap_or(0)
    }

    /// Gives a client to the thread that has the fewest.
    pub fn place_client(&self, client: Box<Connection>) {
        self.send(self.thread_for_client(), Message::Adopt(client));
    }

    /// Asks the owner of a client to close it.
    pub fn close_client(&self, client: &ClientRecord) {
        client.killed.store(true, Ordering::Release);
        let thread = client.thread.load(Ordering::Acquire) as usize;
        let slot = client.slot.load(Ordering::Acquire) as usize;
        self.send(thread, Message::Close { id: client.id, slot });
    }

    /// Tells every thread that CLIENT PAUSE began or ended.
    pub fn pause_changed(&self) {
        for link in self.links.read().iter() {
            link.mailbox.send(Message::PauseChanged);
        }
    }
}
