//! A whole server in one thread, with a clock that stands still and a fake process.

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

/// The start of every transcript's clock: a round second in 2023.
pub const START_MS: i64 = 1_700_000_000_000;
const TICKS_PER_MICRO: f64 = 1.0;

/// A server and its clients.
pub struct TestServer {
    /// The shared state of the threads.
    pub node: Arc<Node>,
    /// The fake process.
    pub host: FakeHost,
    worker: Worker,
    logged: Option<Logged>,
    shards: FakeShards,
    clients: BTreeMap<String, TestClient>,
    /// The deadlines of waiting clients.
    due_ms: BTreeMap<String, i64>,
    /// Bytes that blocked clients have received and the transcript has not read.
    received: BTreeMap<String, Vec<u8>>,
    /// Clients whose deadlines were met.
    deadlines: Vec<String>,
    /// The steady clock.
    now_us: i64,
    /// The amount by which the system clock was set back.
    set_back_us: i64,
    /// Whether requests belong to the turn of the previous request.
    pub in_one_turn: bool,
    /// The number of this server.
    pub number: u64,
    default_config: bool,
}

/// A client and, while it is blocked, its wait.
struct TestClient {
    session: Session,
    waiter: Option<Arc<Waiter>>,
}

/// The number of servers so far.
static SERVERS: AtomicU64 = AtomicU64::new(0);

impl TestServer {
    /// Creates a server with the default configuration.
    pub fn new(shards: usize) -> Self {
        Self { default_config: true, ..Self::with_config(shards, Config::default()) }
    }

    /// Creates a server with a configuration.
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

    /// Turns the log off.
    pub fn end_log(&mut self) {
        self.worker.set_log(None);
        self.logged = None;
    }

    /// Whether the server started with a configuration other than the default.
    pub fn is_prepared(&self) -> bool {
        !self.default_config
    }

    /// Sets the system clock back; no time passes.
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

    /// Advances the clock, and stops at each deadline to serve its client.
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

    /// Makes the next command wait for its shards.
    pub fn delay_next(&self, time: Duration) {
        self.shards.wait_ticks.set(time.as_micros() as u64);
    }

    /// Makes this much time pass each time a script reads the clock.
    pub fn look_takes(&self, time: Duration) {
        self.shards.look_ticks.set(time.as_micros() as u64);
    }

    /// Calls the first function when a script is first refused a shard, and the second when a
    /// script waits for exclusive access.
    pub fn meanwhile(&self, refused: impl FnOnce() + 'static, waits: impl FnOnce() + 'static) {
        self.shards.when_refused.set(Some(Box::new(refused)));
        self.shards.when_waiting.set(Some(Box::new(waits)));
    }

    /// The shard of a key.
    pub fn shard_of(&self, key: &str) -> usize {
        self.node.map.shard_of(self.node.hasher.hash(key.as_bytes()))
    }

    /// When the thread continues to evict between turns, in milliseconds.
    pub fn evicts_in_ms(&self) -> Option<i32> {
        self.worker.evicts_in_ms()
    }

    /// Makes another thread hold this shard, or none.
    pub fn set_busy(&self, shard: Option<usize>) {
        self.shards.busy.set(shard);
    }

    /// Makes another thread hold the shard of this key for long, or none.
    pub fn set_slow(&self, key: Option<&str>) {
        self.shards.slow.set(key.map(|key| self.shard_of(key)));
    }

    /// Ends that when a script is next refused a shard in the middle of its work.
    pub fn end_slow_when_refused(&self) {
        let slow = std::rc::Rc::clone(&self.shards.slow);
        self.shards.when_refused.set(Some(Box::new(move || slow.set(None))));
    }

    /// Whether a client's last command was deferred because it needs the shards of these keys, and
    /// no others.
    pub fn take_needed(&self, keys: &[String]) -> bool {
        let mut shards: Vec<usize> = keys.iter().map(|key| self.shard_of(key)).collect();
        shards.sort_unstable();
        self.shards.needed.take() == shards
    }

    /// Makes another thread kill this client when its next command leaves the gate.
    pub fn kill_outside(&self, client: &str) {
        let record = Arc::clone(&self.clients[client].session.record);
        *self.shards.victim.borrow_mut() = Some(record);
    }

    /// Makes a busy script of another thread hold the shard of this key, or all shards.
    pub fn begin_busy_script(&self, key: Option<&str>) {
        let holds = key.map_or(Held::All, |key| Held::Shards(vec![self.shard_of(key)]));
        let script = BusyScript { thread: 1, is_function: false, waits: true, holds };
        self.node.scripting.busy.begin(script);
    }

    /// Ends the busy script, and lets the thread do its deferred work.
    pub fn end_busy_script(&mut self) {
        assert_eq!(self.catch_up_after_busy_script(), 1, "the work was done in several parts");
    }

    /// Ends the busy script, and returns the number of parts in which the deferred work was done.
    pub fn catch_up_after_busy_script(&mut self) -> usize {
        self.catch_up();
        self.node.scripting.busy.end(1);
        let mut parts = (1..1000).skip_while(|_| {
            self.catch_up();
            self.worker.has_deferred()
        });
        parts.next().expect("the script has ended")
    }

    fn catch_up(&mut self) {
        self.begin_turn();
        self.worker.catch_up(&self.shards, &self.host);
        self.worker.end_turn();
        self.finish_waits();
        self.hear_of_waits();
    }

    /// Whether work is deferred until the end of the script.
    pub fn has_deferred(&self) -> bool {
        self.worker.has_deferred()
    }

    /// Notes the next deadline of a client.
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

    /// Retries the clients that were woken, and returns their number.
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

    /// The numbers of keys of database 0 that another thread has seen since the last call, in
    /// order.
    pub fn take_totals_seen(&mut self) -> Vec<usize> {
        self.shards.totals_seen.take()
    }

    /// The largest number of shards held at once since the last call.
    pub fn take_most_held(&mut self) -> usize {
        self.shards.most_held.take()
    }

    /// The clients whose deadlines were met since the last call, in order.
    pub fn take_deadlines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.deadlines)
    }

    /// Bytes that a client has received since it was blocked, or since the last call.
    pub fn received(&mut self, client: &str) -> Vec<u8> {
        self.received.remove(client).unwrap_or_default()
    }

    /// Delivers published messages to the clients.
    fn deliver(&mut self) {
        self.worker.wake_receivers();
        let mut ready = Vec::new();
        while self.worker.deliveries.is_active() {
            let has_more = self.worker.deliveries.receive(&mut ready);
            for pending in &ready {
                let mut clients = self.clients.iter_mut();
                let found = clients.find(|(_, client)| client.session.record.id == pending.id);
                let (name, client) = found.expect("a subscribed client is connected");
                let mut out = Out::default();
                let resp3 = client.session.resp3;
                self.worker.deliveries.subscribers().write(*pending, &mut out, resp3, usize::MAX);
                let is_subscribed = client.session.record.has(flag::PUBSUB);
                if client.session.reply_mode == ReplyMode::Off && !is_subscribed {
                    // The client is not in MONITOR.
                    continue;
                }
                self.received.entry(name.clone()).or_default().extend(bytes_of(&out));
            }
            if !has_more {
                break;
            }
        }
        self.tell();
    }

    /// Delivers invalidations to clients that track keys.
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

    /// Ends the waits that are settled.
    fn finish_waits(&mut self) {
        for (name, client) in &mut self.clients {
            let mut out = Out::default();
            if let Some(waiter) = &client.waiter
                && let Some(ended) = finish(&mut self.worker, waiter, &self.shards, &mut out)
            {
                client.waiter = None;
                if ended.has_written {
                    client.session.note_served(&self.worker);
                }
                self.received.entry(name.clone()).or_default().extend(bytes_of(&out));
            }
        }
    }

    /// Disconnects a client.
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

    /// Sends a request, and returns the bytes of its reply and its effects.
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

    /// Disconnects the clients that a command has killed.
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

/// Executes a single request.
fn execute_inside(executor: &mut Executor<'_, FakeShards>, request: Request<'_>) -> Outcome {
    executor.locks.enter();
    executor.begin_batch();
    let outcome = executor.execute(request);
    executor.locks.leave();
    outcome
}

/// Changes of the keyspace so far, including this turn.
/// Whether a command leaves an effect even if it has removed nothing.
fn removes_all(effect: &Effect) -> bool {
    let names = effect.commands.iter().filter_map(|command| command.args.first());
    names.map(|name| name.to_ascii_lowercase()).any(|name| name.starts_with(b"flush"))
}

fn changes(worker: &Worker) -> u64 {
    worker.node.changes() + worker.turn.counters.changes
}

/// Takes the effects, which must agree with the log.
fn take_effects(worker: &mut Worker, logged: Option<&Logged>) -> Vec<Effect> {
    let effects = worker.turn.effects.take();
    if let Some(logged) = logged {
        logged.check(&effects);
    }
    effects
}

/// Whether an effect comes from a command, not from expiry or eviction.
fn is_own(effect: &Effect) -> bool {
    let tells_of_time = effect
        .events
        .iter()
        .any(|(event, _)| event.name.ends_with("expired") || event.name == "evicted");
    // A transaction may have both kinds.
    !tells_of_time || effect.commands.len() > 1
}

fn bytes_of(out: &Out) -> Vec<u8> {
    let pieces = out.pieces(resp::out::Mark::default(), out.mark());
    pieces.flat_map(|piece| piece.as_slice().to_vec()).collect()
}
