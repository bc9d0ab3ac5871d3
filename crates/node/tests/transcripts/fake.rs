//! A whole server in one thread: shards in a row, a clock that stands still, and no process around.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine::{ExclusiveShards, HeldShards, ShardAccess};
use node::blocking::{due, finish, give_up, on_deadline};
use node::clients::record::flag;
use node::config::{Apply, Config};
use node::host::{ClientWaker, GateAccess, GatedHost, ProcessInfo, Shutdown, Undo};
use node::{
    ClientRecord, Executor, Host, Node, Outcome, Request, Session, ShardLocks, Waiter, Worker,
    table,
};
use resp::{Args, Out, Span};
use store::{Effect, Shard, Time};

/// Where every transcript's clock begins: a round second of the year 2023.
pub const START_MS: i64 = 1_700_000_000_000;
const TICKS_PER_MICRO: f64 = 1.0;

/// A server and its clients.
pub struct TestServer {
    /// The state that threads would share.
    pub node: Arc<Node>,
    /// What the process would do.
    pub host: FakeHost,
    worker: Worker,
    shards: FakeShards,
    clients: BTreeMap<String, TestClient>,
    /// When to see to those that wait.
    due_ms: BTreeMap<String, i64>,
    /// What clients that were blocked have received, up to where the transcript has read it.
    received: BTreeMap<String, Vec<u8>>,
    /// Clients whose deadlines were met.
    deadlines: Vec<String>,
    /// The steady clock.
    now_us: i64,
    /// By how much the system's clock has been set back.
    set_back_us: i64,
    /// Requests belong to the turn that the last one before began.
    pub in_one_turn: bool,
    /// Tells servers apart.
    pub number: u64,
    default_config: bool,
}

/// A client and, while it is blocked, its wait.
struct TestClient {
    session: Session,
    waiter: Option<Arc<Waiter>>,
}

/// How many servers there were.
static SERVERS: AtomicU64 = AtomicU64::new(0);

impl TestServer {
    /// A fresh server with so many shards and the default configuration.
    pub fn new(shards: usize) -> Self {
        Self { default_config: true, ..Self::with_config(shards, Config::default()) }
    }

    /// A fresh server with a configuration.
    pub fn with_config(shards: usize, config: Config) -> Self {
        let node = Arc::new(Node::new(config, 42, shards));
        let host = FakeHost::default();
        let mut worker = Worker::new(Arc::clone(&node), 0, table(), 7, TICKS_PER_MICRO);
        worker.turn.effects.set_consumed(true);
        let shards = (0..shards).map(|_| RefCell::new(Shard::default())).collect();
        Self {
            node,
            shards: FakeShards {
                shards,
                ticks: Cell::default(),
                inside: Rc::clone(&host.inside),
                most_held: Cell::default(),
                start: Cell::default(),
                wait_ticks: Cell::default(),
            },
            host,
            worker,
            clients: BTreeMap::new(),
            due_ms: BTreeMap::new(),
            received: BTreeMap::new(),
            deadlines: Vec::new(),
            now_us: START_MS * 1000,
            set_back_us: 0,
            in_one_turn: false,
            number: SERVERS.fetch_add(1, Ordering::Relaxed),
            default_config: false,
        }
    }

    /// Whether its configuration differs from the default from the start.
    pub fn is_prepared(&self) -> bool {
        !self.default_config
    }

    /// Sets the system's clock back; no time passes.
    pub fn set_back(&mut self, ms: i64) {
        self.set_back_us += ms * 1000;
    }

    fn begin_turn(&mut self) {
        let time = self.time();
        self.worker.begin_turn(time, 0);
    }

    fn time(&self) -> Time {
        Time { unix_us: self.now_us - self.set_back_us, steady_ms: self.now_us / 1000 }
    }

    /// Lets the clock go on, and stand still whenever a client that waits has to be seen to.
    pub fn advance(&mut self, ms: i64) {
        let end_us = self.now_us + ms * 1000;
        loop {
            let soonest = self.due_ms.iter().min_by_key(|(_, at_ms)| **at_ms);
            let soonest = soonest.map(|(name, at_ms)| (name.clone(), at_ms * 1000));
            let Some((name, at_us)) = soonest.filter(|(_, at_us)| *at_us <= end_us) else { break };
            self.now_us = self.now_us.max(at_us);
            self.begin_turn();
            self.due_ms.remove(&name);
            self.deadlines.push(name.clone());
            if let Some(waiter) = self.clients.get(&name).and_then(|client| client.waiter.as_ref())
            {
                let before = self.worker.turn.counters;
                on_deadline(&mut self.worker, waiter, &self.shards, &self.host);
                let changed = self.worker.turn.counters.changes > before.changes;
                let effects = self.worker.turn.effects.take();
                let any_own = effects.iter().any(is_own);
                assert_eq!(any_own, changed, "effects for writes: {effects:?}");
                self.worker.end_turn();
            }
            self.finish_waits();
            self.schedule(&name);
            self.hear_of_waits();
        }
        self.now_us = end_us;
        self.begin_turn();
    }

    /// Lets the next command wait for its shards.
    pub fn delay_next(&self, time: Duration) {
        self.shards.wait_ticks.set(time.as_micros() as u64);
    }

    /// Notes when to see to a client again.
    fn schedule(&mut self, name: &str) {
        let Some(client) = self.clients.get(name) else { return };
        let due = client.waiter.as_ref().map(|waiter| due(&self.worker, waiter));
        let mut due = due.unwrap_or_default();
        if due.after_pause {
            let now_ms = self.now_us / 1000;
            let end_ms = now_ms + self.node.pause_left_ms(now_ms);
            due.at_ms = due.at_ms.into_iter().chain([end_ms]).min();
        }
        match due.at_ms {
            Some(at_ms) => self.due_ms.insert(name.to_owned(), at_ms),
            None => self.due_ms.remove(name),
        };
    }

    /// Asks again about the clients that have been woken. Returns how many that were.
    fn hear_of_waits(&mut self) -> usize {
        let woken = self.host.woken.take();
        for id in &woken {
            let found = self.clients.iter().find(|(_, client)| client.session.record.id == *id);
            if let Some(name) = found.map(|(name, _)| name.clone()) {
                self.schedule(&name);
            }
        }
        woken.len()
    }

    /// The most shards that were held at once since the last call.
    pub fn take_most_held(&mut self) -> usize {
        self.shards.most_held.take()
    }

    /// The clients whose deadlines were met since the last call, in order.
    pub fn take_deadlines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.deadlines)
    }

    /// What a client has received since it was blocked, or since the last call.
    pub fn received(&mut self, client: &str) -> Vec<u8> {
        self.received.remove(client).unwrap_or_default()
    }

    /// Ends the waits that someone has settled.
    fn finish_waits(&mut self) {
        for (name, client) in &mut self.clients {
            let mut out = Out::default();
            if let Some(waiter) = &client.waiter
                && finish(&mut self.worker, waiter, &self.shards, &mut out)
            {
                client.waiter = None;
                self.received.entry(name.clone()).or_default().extend(bytes_of(&out));
            }
        }
    }

    /// Ends a client.
    pub fn close(&mut self, client: &str) {
        if let Some(client) = self.clients.remove(client) {
            if let Some(waiter) = &client.waiter {
                give_up(&mut self.worker, waiter, &self.shards);
            }
            self.node.clients.remove(client.session.record.id);
        }
    }

    /// Sends a request and returns the bytes of its reply and the effects it left.
    pub fn request(&mut self, client: &str, args: &[Vec<u8>]) -> (Vec<u8>, Vec<Effect>) {
        let mut buffer = Vec::new();
        let spans: Vec<Span> = args
            .iter()
            .map(|arg| {
                buffer.extend_from_slice(arg);
                Span::new(buffer.len() - arg.len(), arg.len())
            })
            .collect();
        if self.in_one_turn {
            let ticks = self.shards.ticks.get() + self.host.ticks.get();
            self.shards.ticks.set(ticks);
        } else {
            self.begin_turn();
            self.shards.ticks.set(self.host.ticks.get());
            self.shards.start.set(self.time());
        }
        if !self.clients.contains_key(client) {
            let session = self.connect();
            self.clients.insert(client.to_owned(), TestClient { session, waiter: None });
        }
        let TestClient { session, waiter } = self.clients.get_mut(client).expect("connected above");
        assert!(waiter.is_none(), "client {client} waits");
        session.record.seen_ms.store(self.now_us / 1000, Ordering::Relaxed);
        let args = Args::new(&buffer, &spans, &[]);
        let entry = table().resolve(&args);
        let hasher = self.node.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        let request = Request { entry, args, hash };
        let mut out = Out::default();
        let before = self.worker.turn.counters;
        let mut executor = Executor {
            worker: &mut self.worker,
            session,
            locks: &self.shards,
            host: GatedHost::new(&self.host),
            out: &mut out,
        };
        self.shards.enter();
        let outcome = executor.execute(request);
        self.shards.leave();
        let after = self.worker.turn.counters;
        let effects = self.worker.turn.effects.take();
        let own: Vec<_> = effects.iter().filter(|effect| is_own(effect)).collect();
        let changed = after.changes > before.changes;
        let wake_events = self.host.woken.borrow().len();
        if wake_events == 0 {
            assert_eq!(own.len(), usize::from(changed), "one effect for each write: {effects:?}");
        } else {
            assert_eq!(own.is_empty(), !changed, "effects for writes: {effects:?}");
            assert!(own.len() <= 1 + wake_events, "one effect for each write: {effects:?}");
        }
        self.worker.end_turn();
        self.shards.check(&self.node, &self.worker);
        let record = Arc::clone(&session.record);
        record.set_flag(flag::PAUSED, matches!(outcome, Outcome::Paused));
        match outcome {
            Outcome::Block(new) => *waiter = Some(new),
            Outcome::Close => self.close(client),
            _ => {}
        }
        self.finish_waits();
        self.schedule(client);
        self.hear_of_waits();
        record.commands.fetch_add(1, Ordering::Relaxed);
        self.close_killed();
        (bytes_of(&out), effects)
    }

    /// Ends the clients that a command has killed.
    fn close_killed(&mut self) {
        let closed = self.host.closed.borrow().clone();
        let is_closed = |client: &TestClient| closed.contains(&client.session.record.id);
        for client in self.clients.values().filter(|client| is_closed(client)) {
            if let Some(waiter) = &client.waiter {
                give_up(&mut self.worker, waiter, &self.shards);
            }
        }
        for id in closed.iter() {
            self.node.clients.remove(*id);
        }
        self.clients.retain(|_, client| !is_closed(client));
    }

    fn connect(&mut self) -> Session {
        let id = self.node.clients.next_id();
        let port = 40_000 + id;
        let addresses = (format!("127.0.0.1:{port}").into(), "127.0.0.1:6379".into());
        let record = ClientRecord::new(id, addresses, 10, self.now_us / 1000, 0);
        let record = Arc::new(record);
        self.node.clients.add(Arc::clone(&record));
        let authenticated = self.node.config().requirepass.is_empty();
        Session::new(record, authenticated)
    }
}

/// Whether an effect is that of a command, and not of time.
fn is_own(effect: &Effect) -> bool {
    effect.events.iter().all(|(event, _)| !event.name.ends_with("expired"))
}

fn bytes_of(out: &Out) -> Vec<u8> {
    let pieces = out.pieces(resp::out::Mark::default(), out.mark());
    pieces.flat_map(|piece| piece.as_slice().to_vec()).collect()
}

/// Shards without locks.
struct FakeShards {
    shards: Vec<RefCell<Shard>>,
    /// What the tick counter shows when a command ends.
    ticks: Cell<u64>,
    /// The thread is inside the gate.
    inside: Rc<Cell<bool>>,
    /// The most shards that were held at once.
    most_held: Cell<usize>,
    /// The time when the tick counter showed 0.
    start: Cell<Time>,
    /// How long the next command waits for its shards, in ticks.
    wait_ticks: Cell<u64>,
}

impl FakeShards {
    /// Compares what is known of the shards with what they hold.
    fn check(&self, node: &Node, worker: &Worker) {
        for database in 0..node.databases {
            let len = |shard: &RefCell<Shard>| shard.borrow().db_ref(database).len();
            let keys: usize = self.shards.iter().map(len).sum();
            assert_eq!(worker.turn.keys.total(database), keys, "keys of {database}");
        }
        for (number, shard) in self.shards.iter().enumerate() {
            let marked = node.expiring_shards.contains(number);
            let expires = shard.borrow_mut().expires();
            assert!(marked || !expires, "shard {number} is not marked as one where keys expire");
        }
    }
}

struct FakeHeldShards<'a>(Vec<(usize, std::cell::RefMut<'a, Shard>)>);

impl HeldShards for FakeHeldShards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        &mut self.0.iter_mut().find(|(held, _)| *held == number).expect("a held shard").1
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.0.iter().find(|(held, _)| *held == number).expect("a held shard").1
    }
}

/// All shards: visited, then held.
struct FakeExclusiveShards<'a> {
    shards: &'a [RefCell<Shard>],
    held: Vec<std::cell::RefMut<'a, Shard>>,
}

impl ShardAccess for FakeExclusiveShards<'_> {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) {
        work(&mut self.shards[shard].borrow_mut());
    }
}

impl HeldShards for FakeExclusiveShards<'_> {
    fn shard(&mut self, number: usize) -> &mut Shard {
        if self.held.is_empty() {
            self.held.extend(self.shards.iter().map(RefCell::borrow_mut));
        }
        &mut self.held[number]
    }

    fn shard_ref(&self, number: usize) -> &Shard {
        &self.held[number]
    }
}

impl ShardAccess for FakeShards {
    fn visit(&self, shard: usize, work: &mut dyn FnMut(&mut Shard)) {
        work(&mut self.shards[shard].borrow_mut());
    }
}

impl GateAccess for FakeShards {
    fn leave(&self) {
        assert!(self.inside.replace(false), "left twice");
    }

    fn enter(&self) {
        assert!(!self.inside.replace(true), "entered twice");
    }

    fn barrier(&self) {}
}

impl ShardLocks for FakeShards {
    fn one<R>(&self, shard: usize, work: impl FnOnce(&mut Shard) -> R) -> R {
        work(&mut self.shards[shard].borrow_mut())
    }

    fn many<R>(&self, shards: &[usize], work: impl FnOnce(&mut dyn HeldShards) -> R) -> R {
        assert!(shards.is_sorted_by(|a, b| a < b), "ascending without repetition");
        self.most_held.set(self.most_held.get().max(shards.len()));
        let held =
            shards.iter().map(|number| (*number, self.shards[*number].borrow_mut())).collect();
        work(&mut FakeHeldShards(held))
    }

    fn exclusive<R>(&self, work: impl FnOnce(&mut dyn ExclusiveShards) -> R) -> R {
        work(&mut FakeExclusiveShards { shards: &self.shards, held: Vec::new() })
    }

    fn prefetch(&self, _: usize) {}

    fn tsc(&self) -> u64 {
        self.ticks.get()
    }

    fn time(&self) -> Time {
        let (start, us) = (self.start.get(), self.ticks.get() as i64);
        Time { unix_us: start.unix_us + us, steady_ms: start.steady_ms + us / 1000 }
    }

    fn time_after_wait(&self) -> Option<Time> {
        let wait = self.wait_ticks.take();
        self.ticks.set(self.ticks.get() + wait);
        (wait > 0).then(|| self.time())
    }
}

/// A process that only remembers what it was asked for.
#[derive(Default)]
pub struct FakeHost {
    /// Clients that were to be closed.
    pub closed: RefCell<Vec<u64>>,
    /// Clients whose wait is over or worth a look.
    pub woken: RefCell<Vec<u64>>,
    /// Requests to end.
    pub shutdowns: RefCell<Vec<Shutdown>>,
    /// Times slept.
    pub sleeps: RefCell<Vec<Duration>>,
    /// The path of the configuration file; empty when there is none.
    pub config_path: RefCell<String>,
    /// The text of the configuration file.
    pub config_file: RefCell<Vec<u8>>,
    /// The steps of changed configurations that the process follows.
    pub applied: RefCell<Vec<Apply>>,
    /// A step that it cannot follow.
    pub unfollowed: RefCell<Option<Apply>>,
    /// Ticks that each command takes; a tick is a microsecond.
    pub ticks: Cell<u64>,
    /// The thread is inside the gate.
    inside: Rc<Cell<bool>>,
}

impl FakeHost {
    #[track_caller]
    fn is_used(&self) {
        assert!(!self.inside.get(), "a service of the process is used inside the gate");
    }
}

impl ClientWaker for FakeHost {
    fn wake_client(&self, client: &ClientRecord) {
        self.woken.borrow_mut().push(client.id);
    }
}

impl Host for FakeHost {
    fn apply<'a>(&'a self, step: Apply, _: &'a Config, _: &'a Config) -> Result<Undo<'a>, String> {
        self.is_used();
        if *self.unfollowed.borrow() == Some(step) {
            return Err("not today".to_owned());
        }
        self.applied.borrow_mut().push(step);
        Ok(Box::new(move || {
            self.is_used();
            let last = self.applied.borrow_mut().pop();
            assert_eq!(last, Some(step), "the last step is taken back first");
        }))
    }

    fn close_client(&self, client: &ClientRecord) {
        self.is_used();
        self.closed.borrow_mut().push(client.id);
    }

    fn pause_changed(&self) {
        self.is_used();
    }

    fn shut_down(&self, how: Shutdown) -> Result<(), String> {
        self.is_used();
        self.shutdowns.borrow_mut().push(how);
        Ok(())
    }

    fn process_info(&self) -> ProcessInfo {
        self.is_used();
        ProcessInfo {
            pid: 4321,
            uptime_seconds: 90_061,
            tcp_port: 6379,
            config_file: self.config_path.borrow().clone(),
            allocated_bytes: 3 << 20,
            allocated_peak_bytes: 4 << 20,
            startup_bytes: 1 << 20,
            allocator: "fake-1.0".to_owned(),
            ..ProcessInfo::default()
        }
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        self.is_used();
        Ok(self.config_file.borrow().clone())
    }

    fn write_config_file(&self, text: &[u8]) -> Result<(), String> {
        self.is_used();
        *self.config_file.borrow_mut() = text.to_vec();
        Ok(())
    }

    fn sleep(&self, time: Duration) {
        self.is_used();
        self.sleeps.borrow_mut().push(time);
    }

    fn purge_memory(&self) {
        self.is_used();
    }

    fn allocator_report(&self) -> String {
        self.is_used();
        "report".to_owned()
    }
}
