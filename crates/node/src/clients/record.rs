//! The record of a client: public facts as atomics, which its owner writes and all threads read.
//!
//! CLIENT LIST, INFO and the cron read records and never touch a client of another thread. A value
//! may be a turn old.

use core::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering};

use acl::{DEFAULT_USER, User};
use engine::Visited;
use parking_lot::Mutex;
use pubsub::{ChannelKind, ClientSubscriptions};
use store::Watch;
use sync::client_location::ClientLocation;
use sync::fd_guard::FdGuard;

use super::client_tracking::ClientTracking;
use super::counted::Counted;
use super::transaction_queue::Transaction;
use super::watched_keys::WatchedKeys;
use crate::config::{OutputLimit, OutputLimits};

/// The types of clients in CLIENT LIST TYPE and CLIENT KILL TYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientType {
    /// It sends commands.
    Normal,
    /// It sends the writes of the server that this one replicates.
    Master,
    /// It receives this server's writes.
    Replica,
    /// It receives published messages.
    Pubsub,
}

impl ClientType {
    /// A type by its name in any case.
    pub fn parse(name: &[u8]) -> Option<Self> {
        match name.to_ascii_lowercase().as_slice() {
            b"normal" => Some(Self::Normal),
            b"master" => Some(Self::Master),
            b"replica" | b"slave" => Some(Self::Replica),
            b"pubsub" => Some(Self::Pubsub),
            _ => None,
        }
    }
}

impl OutputLimits {
    /// The limit of a client of this type.
    pub fn of(&self, client_type: ClientType) -> OutputLimit {
        match client_type {
            ClientType::Pubsub => self.pubsub,
            ClientType::Replica => self.replica,
            ClientType::Normal | ClientType::Master => self.normal,
        }
    }
}

/// Bits of [`ClientRecord::flags`].
pub mod flag {
    /// Connected by a unix socket.
    pub const UNIX_SOCKET: u32 = 1;
    /// Speaks RESP3.
    pub const RESP3: u32 = 1 << 1;
    /// Protected from eviction.
    pub const NO_EVICT: u32 = 1 << 2;
    /// Its reads do not count as uses of keys.
    pub const NO_TOUCH: u32 = 1 << 3;
    /// Is closed as soon as its output is sent.
    pub const CLOSING: u32 = 1 << 4;
    /// Waits for the end of CLIENT PAUSE.
    pub const PAUSED: u32 = 1 << 5;
    /// Connected by TLS.
    pub const TLS: u32 = 1 << 6;
    /// Has subscriptions.
    pub const PUBSUB: u32 = 1 << 7;
    /// Watches all requests: MONITOR.
    pub const MONITOR: u32 = 1 << 12;
    /// Is beyond `maxclients`, for administration.
    pub const RESERVED: u32 = 1 << 13;
    /// Has been used for administration.
    pub const ADMINISTERS: u32 = 1 << 14;
}

/// Names that a client gave, and its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Its user; `None` for the default user.
    user: Option<Arc<[u8]>>,
    /// CLIENT SETNAME.
    pub name: Vec<u8>,
    /// CLIENT SETINFO lib-name.
    pub library: Vec<u8>,
    /// CLIENT SETINFO lib-ver.
    pub library_version: Vec<u8>,
}

impl Names {
    /// The name of its user.
    pub fn user(&self) -> &[u8] {
        self.user.as_deref().unwrap_or(DEFAULT_USER)
    }
}

/// Bytes of a client's session; `session.rs` asserts this.
pub(super) const SESSION_BYTES: usize = 96;
/// Approximate bytes of a client besides its record and session: its connection, and its places in
/// tables.
const OTHER_BYTES: usize = 512;

#[derive(Debug)]
struct Watched {
    watch: Arc<Watch>,
    keys: usize,
    /// Bytes of memory that they take besides those that their shards count.
    list_bytes: usize,
}

impl Watched {
    fn memory_bytes(&self) -> usize {
        self.list_bytes + self.watch.memory_bytes()
    }
}

/// The public facts of one client.
#[derive(Debug)]
pub struct ClientRecord {
    /// Its number, never used again.
    pub id: u64,
    /// Its address.
    pub address: Box<str>,
    /// The address it connected to.
    pub local_address: Box<str>,
    /// The descriptor of its socket.
    pub fd_guard: FdGuard,
    /// When it connected, in milliseconds on the steady scale.
    pub created_ms: i64,
    /// When its last request came, in milliseconds on the steady scale.
    pub seen_ms: AtomicI64,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
    /// Its database.
    pub db: AtomicU32,
    /// The thread that owns it, and whether it was killed.
    pub location: ClientLocation,
    /// Index of its last command in the table, one more; 0 for none.
    pub last_command: AtomicU16,
    /// Commands it has sent.
    pub commands: AtomicU64,
    /// Bytes received from it.
    pub in_bytes: AtomicU64,
    /// Bytes sent to it.
    pub out_bytes: AtomicU64,
    /// Bytes of requests not executed yet.
    pub query_bytes: AtomicU64,
    /// Bytes of replies not sent yet.
    pub output_bytes: AtomicU64,
    /// Bytes of whole requests that wait because the client is suspended.
    pub argument_bytes: AtomicU64,
    /// Bytes of its wait: the request, and its places in the queues of keys.
    wait_bytes: AtomicU64,
    /// Bytes of the names that it gave.
    name_bytes: AtomicU64,
    /// Its memory as it counts against `maxmemory-clients`.
    pub(crate) counted: Counted,
    /// Commands queued since MULTI, one more; 0 outside a transaction.
    queued: AtomicU32,
    /// Bytes of their arguments.
    queued_bytes: AtomicU64,
    /// Bytes of memory that they take, their arguments included.
    queue_bytes: AtomicU64,
    /// The keys that it watches.
    watched: Mutex<Option<Watched>>,
    /// The progress of its command that visits shards and waits for one of them.
    visited: Mutex<Option<Box<Visited>>>,
    /// Whether there is such progress.
    has_visited: AtomicBool,
    /// Whether that command needs all shards at once.
    visits_all: AtomicBool,
    /// Its subscriptions; boxed, because most clients have none. Only the thread that runs its
    /// commands changes them.
    pub(crate) subscriptions: Mutex<Option<Box<ClientSubscriptions>>>,
    /// How it tracks keys, and its notifications.
    pub tracking: ClientTracking,
    /// Names that it gave, and its user; boxed, because most clients give none and are the default
    /// user.
    pub names: Mutex<Option<Box<Names>>>,
}

impl ClientRecord {
    /// The record of a new client.
    pub fn new(
        id: u64,
        addresses: (Box<str>, Box<str>),
        fd: i32,
        steady_ms: i64,
        flags: u32,
    ) -> Self {
        Self {
            id,
            address: addresses.0,
            local_address: addresses.1,
            fd_guard: FdGuard::new(fd),
            created_ms: steady_ms,
            seen_ms: AtomicI64::new(steady_ms),
            flags: AtomicU32::new(flags),
            db: AtomicU32::new(0),
            location: ClientLocation::new(),
            last_command: AtomicU16::new(0),
            commands: AtomicU64::new(0),
            in_bytes: AtomicU64::new(0),
            out_bytes: AtomicU64::new(0),
            query_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            argument_bytes: AtomicU64::new(0),
            wait_bytes: AtomicU64::new(0),
            name_bytes: AtomicU64::new(0),
            counted: Counted::default(),
            queued: AtomicU32::new(0),
            queued_bytes: AtomicU64::new(0),
            queue_bytes: AtomicU64::new(0),
            watched: Mutex::new(None),
            visited: Mutex::new(None),
            has_visited: AtomicBool::new(false),
            visits_all: AtomicBool::new(false),
            subscriptions: Mutex::new(None),
            tracking: ClientTracking::default(),
            names: Mutex::new(None),
        }
    }

    /// Publishes the queue of the client's transaction; `None` outside a transaction. Returns its
    /// bytes of memory.
    pub(crate) fn set_transaction(&self, transaction: Option<&Transaction>) -> usize {
        let len = transaction.map_or(0, |transaction| transaction.len().saturating_add(1));
        self.queued.store(u32::try_from(len).unwrap_or(u32::MAX), Ordering::Relaxed);
        let bytes = transaction.map_or(0, Transaction::bytes);
        self.queued_bytes.store(bytes as u64, Ordering::Relaxed);
        let bytes = transaction.map_or(0, Transaction::memory_bytes);
        self.queue_bytes.store(bytes as u64, Ordering::Relaxed);
        bytes
    }

    /// Commands queued since MULTI, and the bytes of their arguments; `None` outside a transaction.
    pub fn queued(&self) -> Option<(u32, u64)> {
        let len = self.queued.load(Ordering::Relaxed).checked_sub(1)?;
        Some((len, self.queued_bytes.load(Ordering::Relaxed)))
    }

    /// Publishes the keys that the client watches.
    pub(crate) fn set_watch(&self, watched: Option<&WatchedKeys>) {
        let watched = watched.map(|keys| Watched {
            watch: Arc::clone(keys.watch()),
            keys: keys.len(),
            list_bytes: keys.list_bytes(),
        });
        *self.watched.lock() = watched;
    }

    /// The number of keys that the client watches, and whether one of them has changed: then the
    /// others do not matter, and the number is 0.
    pub fn watched(&self) -> (usize, bool) {
        match self.watched.lock().as_ref() {
            None => (0, false),
            Some(watched) if watched.watch.is_touched() => (0, true),
            Some(watched) => (watched.keys, false),
        }
    }

    /// Channels, patterns and shard channels that it is subscribed to.
    pub fn subscribed(&self) -> [usize; 3] {
        let subscriptions = self.subscriptions.lock();
        let kinds = [ChannelKind::Channel, ChannelKind::Pattern, ChannelKind::Shard];
        kinds.map(|kind| subscriptions.as_ref().map_or(0, |all| all.len(kind)))
    }

    /// Approximate bytes of memory that it takes: its requests and output, its subscriptions and
    /// its own state.
    pub fn memory_bytes(&self) -> u64 {
        let value = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let fixed = size_of::<Self>() + SESSION_BYTES + OTHER_BYTES;
        let addresses = self.address.len() + self.local_address.len();
        let requests = value(&self.query_bytes) + self.held_bytes();
        let followed = self.subscription_bytes() + self.tracking.memory_bytes();
        let texts = value(&self.name_bytes) + followed as u64;
        let watched = self.watched.lock().as_ref().map_or(0, |watched| watched.memory_bytes());
        (fixed + addresses) as u64
            + texts
            + requests
            + value(&self.output_bytes)
            + value(&self.queue_bytes)
            + watched as u64
            + self.visited_bytes()
    }

    /// Keeps the progress of its command that visits shards, and has to wait for one of them.
    pub(crate) fn keep_visited(&self, visited: Visited) {
        self.visits_all.store(visited.needs_all(), Ordering::Relaxed);
        self.has_visited.store(true, Ordering::Relaxed);
        *self.visited.lock() = Some(Box::new(visited));
    }

    /// Forgets that progress: the command has ended, or begins again.
    #[inline]
    pub fn forget_visited(&self) {
        if self.has_visited.load(Ordering::Relaxed) {
            self.take_visited();
        }
    }

    /// Takes that progress.
    pub fn take_visited(&self) -> Option<Visited> {
        self.has_visited.store(false, Ordering::Relaxed);
        self.visits_all.store(false, Ordering::Relaxed);
        self.visited.lock().take().map(|visited| *visited)
    }

    /// Whether its command, which visits shards, needs all of them at once.
    pub(crate) fn visits_all(&self) -> bool {
        self.visits_all.load(Ordering::Relaxed)
    }

    fn visited_bytes(&self) -> u64 {
        self.visited.lock().as_ref().map_or(0, |visited| visited.kept.len() as u64)
    }

    /// Sets the bytes of its wait; 0 when that has ended.
    pub(crate) fn set_wait_bytes(&self, bytes: usize) {
        self.wait_bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of whole requests that are suspended: those that wait, and the one that it is blocked
    /// by.
    pub fn held_bytes(&self) -> u64 {
        self.argument_bytes.load(Ordering::Relaxed) + self.wait_bytes.load(Ordering::Relaxed)
    }

    /// Approximate bytes of memory of its subscriptions.
    fn subscription_bytes(&self) -> usize {
        if !self.follows() {
            return 0;
        }
        self.subscriptions.lock().as_ref().map_or(0, |all| all.memory_bytes())
    }

    /// Whether it has a subscription that a user may not have.
    pub(crate) fn exceeds(&self, user: &User) -> bool {
        let subscriptions = self.subscriptions.lock();
        subscriptions.as_ref().is_some_and(|all| {
            let mut channels = all.all().filter(|(kind, ..)| *kind != ChannelKind::Requests);
            channels.any(|(kind, name, _)| !user.allows_channel(name, kind == ChannelKind::Pattern))
        })
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u32) -> bool {
        self.flags.load(Ordering::Relaxed) & flag != 0
    }

    /// Whether it gets messages besides replies.
    pub fn follows(&self) -> bool {
        self.has(flag::PUBSUB) || self.has(flag::MONITOR)
    }

    /// Sets or clears a flag. Only the owner does.
    pub fn set_flag(&self, flag: u32, on: bool) {
        let flags = self.flags.load(Ordering::Relaxed);
        self.flags.store(if on { flags | flag } else { flags & !flag }, Ordering::Relaxed);
    }

    /// Whether the client is on this host: by the unix socket or a loopback address.
    pub fn is_local(&self) -> bool {
        let address = self.address.parse::<SocketAddr>();
        self.has(flag::UNIX_SOCKET)
            || address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
    }

    /// The names that the client gave.
    pub fn names(&self) -> Names {
        self.names.lock().as_deref().cloned().unwrap_or_default()
    }

    /// Changes the names that the client gave.
    pub fn edit_names(&self, edit: impl FnOnce(&mut Names)) {
        let mut names = self.names.lock();
        let edited = names.get_or_insert_default();
        edit(edited);
        let texts = [&edited.name, &edited.library, &edited.library_version];
        let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
        self.name_bytes.store(bytes as u64, Ordering::Relaxed);
        if **edited == Names::default() {
            *names = None;
        }
    }

    /// Sets its user. Only the owner does.
    pub(crate) fn set_user(&self, user: &User) {
        let name = (!user.is_default()).then(|| Arc::clone(user.name()));
        let before = self.names.lock().as_ref().and_then(|names| names.user.clone());
        if before.as_ref().map(Arc::as_ptr) != name.as_ref().map(Arc::as_ptr) {
            self.edit_names(|names| names.user = name);
        }
    }

    /// The name of its user, whose address distinguishes users that share a name.
    pub(crate) fn user(&self) -> Arc<[u8]> {
        let user = self.names.lock().as_ref().and_then(|names| names.user.clone());
        user.unwrap_or_else(|| DEFAULT_USER.into())
    }

    pub(crate) fn is_user(&self, name: &[u8]) -> bool {
        self.names.lock().as_ref().map_or(DEFAULT_USER, |names| names.user()) == name
    }

    /// The type of this client. There are no replicas yet.
    pub fn client_type(&self) -> ClientType {
        if self.has(flag::PUBSUB) { ClientType::Pubsub } else { ClientType::Normal }
    }
}
