//! A whole server in one thread: shards in a row, a clock that stands still, and no process around.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use node::blocking::{due, finish, give_up, on_deadline};
use node::clients::ReplyMode;
use node::clients::client_tracking::write_messages;
use node::clients::record::flag;
use node::config::Config;
use node::host::{GateAccess, GatedHost};
use node::propagation::{invalidations, subscribe};
use node::state::busy_scripts::{BusyScript, Held};
use node::transactions::forget;
use node::{ClientRecord, Executor, Node, Outcome, Request, Session, Waiter, Worker};
use resp::{Args, Out, Span};
use store::{Effect, Time};

use crate::fake_host::FakeHost;
use crate::fake_shards::FakeShards;
use crate::logged::Logged;

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
    logged: Option<Logged>,
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
        let mut worker = Worker::new(Arc::clone(&node), 0, node.table, 7, TICKS_PER_MICRO);
        worker.turn.effects.set_consumed(true);
        let logged = Logged::default();
        worker.turn.effects.set_log(Some(Box::new(logged.clone())));
        worker.deliveries.open(Arc::new(|| {}));
        Self {
            node: Arc::clone(&node),
            shards: FakeShards::new(node, shards, &host.inside),
            host,
            worker,
            logged: Some(logged),
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

    /// Nothing is logged any more.
    pub fn end_log(&mut self) {
        self.worker.set_log(None);
        self.logged = None;
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
                let before = changes(&self.worker);
                on_deadline(&mut self.worker, waiter, &self.shards, &self.host);
                let changed = changes(&self.worker) > before;
                let effects = take_effects(&mut self.worker, self.logged.as_ref());
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

    /// Lets so much time pass with each look at the clock that a script takes.
    pub fn look_takes(&self, time: Duration) {
        self.shards.look_ticks.set(time.as_micros() as u64);
    }

    /// Calls one of these when a script is refused a shard for the first time, and the other when
    /// one waits to be alone.
    pub fn meanwhile(&self, refused: impl FnOnce() + 'static, waits: impl FnOnce() + 'static) {
        self.shards.when_refused.set(Some(Box::new(refused)));
        self.shards.when_waiting.set(Some(Box::new(waits)));
    }

    /// The shard of a key.
    pub fn shard_of(&self, key: &str) -> usize {
        self.node.map.shard_of(self.node.hasher.hash(key.as_bytes()))
    }

    /// When its thread goes on evicting between its turns, in milliseconds.
    pub fn evicts_in_ms(&self) -> Option<i32> {
        self.worker.evicts_in_ms()
    }

    /// From now on another thread holds this shard, or none.
    pub fn set_busy(&self, shard: Option<usize>) {
        self.shards.busy.set(shard);
    }

    /// Another thread kills this client as soon as its next command leaves the gate.
    pub fn kill_outside(&self, client: &str) {
        let record = Arc::clone(&self.clients[client].session.record);
        *self.shards.victim.borrow_mut() = Some(record);
    }

    /// From now on a script of another thread, which has run for too long, holds the shard of this
    /// key, or all of them.
    pub fn begin_busy_script(&self, key: Option<&str>) {
        let holds = key.map_or(Held::All, |key| Held::Shards(vec![self.shard_of(key)]));
        let script = BusyScript { thread: 1, is_function: false, waits: true, holds };
        self.node.scripting.busy.begin(script);
    }

    /// It ends, and the thread catches up on what it has put off.
    pub fn end_busy_script(&mut self) {
        assert_eq!(self.catch_up_after_busy_script(), 1, "nothing is in the way any more");
    }

    /// The same. Returns how many parts it catches up in.
    pub fn catch_up_after_busy_script(&mut self) -> usize {
        self.catch_up();
        self.node.scripting.busy.end(1);
        let mut parts = (1..1000).skip_while(|_| {
            self.catch_up();
            self.worker.has_deferred()
        });
        parts.next().expect("nothing is in the way any more")
    }

    fn catch_up(&mut self) {
        self.begin_turn();
        self.worker.catch_up(&self.shards, &self.host);
        self.worker.end_turn();
        self.finish_waits();
        self.hear_of_waits();
    }

    /// Whether something waits for the end of the script.
    pub fn has_deferred(&self) -> bool {
        self.worker.has_deferred()
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

    /// How many keys of database 0 another thread has seen since the last call, in order.
    pub fn take_totals_seen(&mut self) -> Vec<usize> {
        self.shards.totals_seen.take()
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

    /// Writes what was published for the clients.
    fn deliver(&mut self) {
        self.worker.wake_receivers();
        let mut ready = Vec::new();
        while self.worker.deliveries.is_active() {
            let has_more = self.worker.deliveries.receive(&mut ready);
            for pending in &ready {
                let mut clients = self.clients.iter_mut();
                let found = clients.find(|(_, client)| client.session.record.id == pending.id);
                let (name, client) = found.expect("who is subscribed is connected");
                let mut out = Out::default();
                let resp3 = client.session.resp3;
                self.worker.deliveries.subscribers().write(*pending, &mut out, resp3);
                let is_subscribed = client.session.record.has(flag::PUBSUB);
                if client.session.reply_mode == ReplyMode::Off && !is_subscribed {
                    // It is shown no requests.
                    continue;
                }
                self.received.entry(name.clone()).or_default().extend(bytes_of(&out));
            }
            self.worker.deliveries.subscribers().end_round();
            if !has_more {
                break;
            }
        }
        self.tell();
    }

    /// Writes what clients that track keys are told of changes.
    fn tell(&mut self) {
        self.worker.notify_rounds();
        while let Some(record) = self.worker.deliveries.next_look() {
            let mut clients = self.clients.iter();
            let found = clients.find(|(_, client)| client.session.record.id == record.id);
            if let Some((name, client)) = found {
                let mut out = Out::default();
                write_messages(&client.session, &mut out);
                self.received.entry(name.clone()).or_default().extend(bytes_of(&out));
            }
        }
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
        if let Some(mut client) = self.clients.remove(client) {
            subscribe::forget(&mut self.worker, &client.session.record);
            invalidations::forget(&self.worker, &mut client.session);
            forget(&mut self.worker, &mut client.session, &self.shards);
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
        let entry = self.node.table.resolve(&args);
        let hasher = self.node.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        let request = Request { entry, args, hash };
        let mut out = Out::default();
        let before = changes(&self.worker);
        self.worker.begin_requests();
        let mut executor = Executor {
            worker: &mut self.worker,
            session,
            locks: &self.shards,
            host: GatedHost::new(&self.host),
            out: &mut out,
        };
        let outcome = execute_inside(&mut executor, request);
        let outcome = outcome.after_grace(&mut self.worker, &self.host, &mut out);
        self.worker.end_requests(session);
        let after = changes(&self.worker);
        let effects = take_effects(&mut self.worker, self.logged.as_ref());
        let own: Vec<_> = effects.iter().filter(|effect| is_own(effect)).collect();
        let changed = after > before || own.iter().any(|effect| removes_all(effect));
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
        self.deliver();
        self.close_killed();
        (bytes_of(&out), effects)
    }

    /// Ends the clients that a command has killed.
    fn close_killed(&mut self) {
        let closed = self.host.closed.borrow().clone();
        let is_closed = |client: &TestClient| closed.contains(&client.session.record.id);
        for client in self.clients.values_mut().filter(|client| is_closed(client)) {
            subscribe::forget(&mut self.worker, &client.session.record);
            invalidations::forget(&self.worker, &mut client.session);
            forget(&mut self.worker, &mut client.session, &self.shards);
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
        Session::new(record, &self.node.users)
    }
}

/// Executes a request that comes alone.
fn execute_inside(executor: &mut Executor<'_, FakeShards>, request: Request<'_>) -> Outcome {
    executor.locks.enter();
    executor.begin_batch();
    let outcome = executor.execute(request);
    executor.locks.leave();
    outcome
}

/// Changes of the keyspace so far, also of this turn.
/// Whether an effect is there also where it has removed nothing, which is no change.
fn removes_all(effect: &Effect) -> bool {
    let names = effect.commands.iter().filter_map(|command| command.args.first());
    names.map(|name| name.to_ascii_lowercase()).any(|name| name.starts_with(b"flush"))
}

fn changes(worker: &Worker) -> u64 {
    worker.node.changes() + worker.turn.counters.changes
}

/// Takes what was left, which is also what was logged.
fn take_effects(worker: &mut Worker, logged: Option<&Logged>) -> Vec<Effect> {
    let effects = worker.turn.effects.take();
    if let Some(logged) = logged {
        logged.check(&effects);
    }
    effects
}

/// Whether an effect is that of a command, and not of time or of the limit of memory.
fn is_own(effect: &Effect) -> bool {
    let tells_of_time = effect
        .events
        .iter()
        .any(|(event, _)| event.name.ends_with("expired") || event.name == "evicted");
    // A transaction may do both.
    !tells_of_time || effect.commands.len() > 1
}

fn bytes_of(out: &Out) -> Vec<u8> {
    let pieces = out.pieces(resp::out::Mark::default(), out.mark());
    pieces.flat_map(|piece| piece.as_slice().to_vec()).collect()
}
