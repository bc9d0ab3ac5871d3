//! Owners of clients that are blocked on keys: the product's locks, slots, messages, client states
//! and executor, around them as much of `blocked` and `io_thread` as begins and ends waits, with
//! channels in place of mailboxes.

use std::sync::Arc;
use std::time::Duration;
use store::Time;
use store::lazy_free::BigPiece;

use node::blocking::{due, finish, give_up, on_deadline};
use node::config::{Apply, Config};
use node::host::{
    ClientWaker, Crash, GatedHost, ProcessInfo, Reload, Reloaded, RewriteBegin, SaveError,
    Shutdown, Undo,
};
use node::{ClientRecord, Executor, Host, Node, Outcome, Request, Session, Worker};
use node::{table, transactions};
use resp::{Args, Out, Span};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread::yield_now;

use crate::client_state::ClientState;
use crate::gate::{Gate, Pass};
use crate::message::Message;
use crate::shard_locks::{NoOtherClients, ThreadShards};
use crate::shards::Shards;
use crate::shim::{Command, Fault};
use crate::slots::{SlotAction, SlotClient, Slots};
use crate::thread_waits::{ThreadWaits, Waited};

const SHARDS: usize = 4;
const DATABASES: u32 = 2;
/// The reply of EXEC when a watched key has changed.
pub(crate) const NOT_EXECUTED: &str = "*-1";
/// How often a thread comes back to a shard that is in use within a moment.
const LOOKS_MAX: usize = 100;
/// Where every thread's clock begins.
pub(crate) const START_MS: i64 = 1000;

/// A client, and everything it received.
#[derive(Debug)]
pub(crate) struct TestClient {
    session: Session,
    state: ClientState,
    received: Arc<Mutex<Vec<String>>>,
    pub(crate) record: Arc<ClientRecord>,
}

type TestMessage = Message<TestClient>;

impl SlotClient for TestClient {
    type Ticket = ();

    fn ticket(&self) {}

    fn redeem(&mut self, (): ()) {}

    fn id(&self) -> u64 {
        self.record.id
    }

    fn take(&self, thread: usize, slot: usize) -> bool {
        self.record.location.take(thread as u32, slot as u32)
    }

    fn is_killed(&self) -> bool {
        self.record.location.is_killed()
    }
}

/// The part of a client that a test keeps.
pub(crate) struct Seen {
    pub(crate) record: Arc<ClientRecord>,
    received: Arc<Mutex<Vec<String>>>,
}

impl Seen {
    /// Everything it received.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().expect("no thread panics").clone()
    }
}

/// The state that all threads share.
pub(crate) struct World {
    shards: Shards,
    gate: Gate,
    pub(crate) node: Arc<Node>,
    links: Mutex<Vec<Sender<TestMessage>>>,
}

impl World {
    fn enter<'a>(&'a self, pass: &'a Pass, waits: &'a ThreadWaits) -> ThreadShards<'a> {
        let busy = &self.node.scripting.busy;
        let locks = ThreadShards::enter(&self.shards, Some(pass), busy, &NoOtherClients);
        locks.waiting(waits, Waited::default())
    }

    pub(crate) fn new() -> Arc<Self> {
        let config = Config { databases: DATABASES, ..Config::default() };
        Arc::new(Self {
            shards: Shards::new(SHARDS),
            gate: Gate::new(8),
            node: Arc::new(Node::new(config, 42, SHARDS)),
            links: Mutex::new(Vec::new()),
        })
    }

    /// Keys of different shards.
    pub(crate) fn keys<const COUNT: usize>(&self) -> [String; COUNT] {
        let shard = |name: &String| self.node.map.shard_of(self.node.hasher.hash(name.as_bytes()));
        std::array::from_fn(|wanted| {
            let names = (0..).map(|number| format!("k{number}"));
            names.into_iter().find(|name| shard(name) == wanted).expect("there are many names")
        })
    }

    /// A request with keys of different shards in place of `first`, `second` and `third`, and with
    /// another key in the shard of the first in place of `neighbour`.
    pub(crate) fn name_keys(&self, request: &str) -> String {
        let [first, second, third] = self.keys();
        let shard = |name: &String| self.node.map.shard_of(self.node.hasher.hash(name.as_bytes()));
        let mut names = (0..).map(|number| format!("n{number}"));
        let neighbour = names.find(|name| shard(name) == shard(&first));
        let neighbour = neighbour.expect("there are many names");
        let request = request.replace("first", &first).replace("second", &second);
        request.replace("third", &third).replace("neighbour", &neighbour)
    }

    /// Whether a shard knows of a client that watches one of its keys. Only its debug output shows
    /// that.
    pub(crate) fn is_watched(&self) -> bool {
        (0..SHARDS).any(|shard| format!("{:?}", *self.shards.lock(shard)).contains("watched: true"))
    }

    pub(crate) fn send(&self, thread: usize, message: TestMessage) {
        let links = self.links.lock().expect("no thread panics");
        // A thread that has ended needs no message.
        let _ = links[thread].send(message);
    }

    /// Marks a client to be closed and notifies its owner, as CLIENT KILL does.
    pub(crate) fn kill(&self, record: &ClientRecord) {
        if self.node.kill(record) {
            let (thread, slot) = record.location.place();
            self.send(thread as usize, Message::Close { id: record.id, slot: slot as usize });
        }
    }
}

impl ClientWaker for World {
    fn wake_client(&self, client: &ClientRecord) {
        if Fault::NoWake.is_planted() {
            return;
        }
        let (thread, slot) = client.location.place_after();
        let wake = Message::Wake { id: client.id, slot: slot as usize };
        self.send(thread as usize, wake);
    }

    fn free_evicted(&self, _: Vec<BigPiece>) {}
}

impl Host for World {
    fn close_client(&self, _: &ClientRecord) {}

    fn apply<'a>(&'a self, _: Apply, _: &'a Config, _: &'a Config) -> Result<Undo<'a>, String> {
        Ok(Box::new(|| ()))
    }

    fn pause_changed(&self) {}

    fn call_off_shutdown(&self) -> bool {
        false
    }

    fn rewrite_append_only(&self, _: bool) -> RewriteBegin {
        RewriteBegin::Failed
    }

    fn flush_append_only(&self) -> Result<(), String> {
        Ok(())
    }

    fn load_append_only(&self) -> Result<(), String> {
        Ok(())
    }

    fn save(&self) -> Result<(), SaveError> {
        Ok(())
    }

    fn begin_save(&self) -> Result<(), SaveError> {
        Ok(())
    }

    fn save_emptied(&self, _: u64) {}

    fn begin_backup(&self, _: &str, _: bool) -> Result<u64, Option<String>> {
        Ok(1)
    }

    fn begin_reload(&self, _: Reload) -> Result<u64, SaveError> {
        Ok(0)
    }

    fn load(&self, _: Reload) -> Result<Reloaded, String> {
        Ok(Reloaded::default())
    }

    fn end_reload(&self, _: u64) {}

    fn shut_down(&self, _: Shutdown) -> Result<(), String> {
        Ok(())
    }

    fn process_info(&self) -> ProcessInfo {
        ProcessInfo::default()
    }

    fn working_directory(&self) -> Option<String> {
        None
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn write_config_file(&self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn read_acl_file(&self, _: &str) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn write_acl_file(&self, _: &str, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn fill_random(&self, _: &mut [u8]) {}

    fn sleep(&self, _: Duration) {}

    fn free(&self, removed: &mut store::LazyFree) {
        removed.clear();
    }

    fn crash(&self, _: Crash) {}

    /// Waits for all threads that are inside the gate: for ever, if its caller is.
    fn purge_memory(&self) {
        drop(self.gate.close(None));
    }

    fn log(&self, _: script::LogLevel, _: &[u8]) {}

    fn allocator_report(&self) -> String {
        String::new()
    }
}

/// One thread: its clients, its way to execute and its mailbox.
pub(crate) struct Owner {
    pub(crate) world: Arc<World>,
    index: usize,
    slots: Slots<TestClient>,
    inbox: Receiver<TestMessage>,
    worker: Worker,
    pass: Pass,
    waits: ThreadWaits,
}

impl Owner {
    /// A thread with the next number; the first is the main thread.
    pub(crate) fn new(world: &Arc<World>) -> Self {
        let (sender, inbox) = channel();
        let mut links = world.links.lock().expect("no thread panics");
        links.push(sender);
        let index = links.len() - 1;
        drop(links);
        let mut worker = Worker::new(Arc::clone(&world.node), index, table(), 7, 1.0);
        worker.begin_turn(Time { unix_us: START_MS * 1000, steady_ms: START_MS }, 0);
        let pass = world.gate.register().expect("there are as many passes as threads");
        let (world, slots, waits) = (Arc::clone(world), Slots::new(index), ThreadWaits::default());
        Self { world, index, slots, inbox, worker, pass, waits }
    }

    /// A new client here, which this thread owns from the start. The main thread has none.
    pub(crate) fn connect(&mut self) -> (usize, Seen) {
        let id = self.world.node.clients.next_id();
        let record = Arc::new(ClientRecord::new(id, ("a".into(), "b".into()), 1, 0, 0));
        self.world.node.clients.add(Arc::clone(&record));
        let session = Session::new(Arc::clone(&record), &self.world.node.users);
        let received = Arc::default();
        let seen = Seen { record: Arc::clone(&record), received: Arc::clone(&received) };
        let client = TestClient { session, state: ClientState::Reading, received, record };
        match self.slots.handle(Message::Move(client), || 0) {
            SlotAction::Moved(slot) => (slot, seen),
            other => panic!("a thread takes a client: {other:?}"),
        }
    }

    /// Executes a request of a client. Returns whether it blocks the client; if not, it is
    /// answered, or the client was killed.
    pub(crate) fn request(&mut self, slot: usize, words: &str) -> bool {
        match self.execute(slot, words) {
            ClientState::Blocked(_) => return true,
            ClientState::Reading => {}
            state => {
                assert!(state.is_closing(), "{state:?}");
                let client = self.slots.client(slot).expect("it is here");
                assert!(client.is_killed(), "no other thread closes");
            }
        }
        false
    }

    /// The number of a client.
    pub(crate) fn client(&self, slot: usize) -> u64 {
        self.slots.client(slot).expect("it is here").id()
    }

    /// Executes a request of a client that does not block it. Returns the reply.
    pub(crate) fn ask(&mut self, slot: usize, words: &str) -> String {
        assert!(!self.request(slot, words), "it is answered");
        let client = self.slots.client(slot).expect("it is here");
        let received = client.received.lock().expect("no thread panics");
        received.last().expect("it was answered").clone()
    }

    /// Executes MULTI, these commands and EXEC. Returns the reply of EXEC.
    pub(crate) fn transaction(&mut self, slot: usize, commands: &[&str]) -> String {
        if Fault::ChecksFirst.is_planted() && self.transact(slot, &[]) == NOT_EXECUTED {
            return NOT_EXECUTED.to_owned();
        }
        if !Fault::SplitExec.is_planted() {
            return self.transact(slot, commands);
        }
        let replies = commands.iter().map(|command| self.transact(slot, &[command]));
        let replies: Vec<String> = replies.map(|reply| reply.replacen("*1 ", "", 1)).collect();
        format!("*{} {}", replies.len(), replies.join(" "))
    }

    fn transact(&mut self, slot: usize, commands: &[&str]) -> String {
        assert_eq!(self.ask(slot, "MULTI"), "+OK");
        for command in commands {
            assert_eq!(self.ask(slot, command), "+QUEUED", "{command}");
        }
        self.ask(slot, "EXEC")
    }

    /// Uses a service of the process inside the gate, as no command can.
    pub(crate) fn purge_inside(&self) {
        let _locks = self.world.enter(&self.pass, &self.waits);
        self.world.purge_memory();
    }

    /// Executes a request of a client. Returns the state of the client after it.
    pub(crate) fn execute(&mut self, slot: usize, words: &str) -> &ClientState {
        Command::begin(words);
        let client = self.slots.client_mut(slot).expect("it is here");
        let args: Vec<_> =
            words.split(' ').map(|word| Arc::new(word.as_bytes().to_vec())).collect();
        let spans: Vec<Span> = (0..args.len()).map(Span::own).collect();
        let args = Args::new(&[], &spans, &args);
        let entry = table().resolve(&args);
        let hasher = self.world.node.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        let mut out = Out::default();
        let outcome = loop {
            let locks = self.world.enter(&self.pass, &self.waits);
            let mut executor = Executor {
                worker: &mut self.worker,
                session: &mut client.session,
                locks: &locks,
                host: GatedHost::new(&*self.world),
                out: &mut out,
            };
            executor.begin_batch();
            let outcome = executor.execute(Request { entry, args, hash });
            if !matches!(outcome, Outcome::ShardInUse | Outcome::NotExclusive) {
                break outcome;
            }
            // It is deferred, and has done nothing.
            drop(locks);
            yield_now();
        };
        if matches!(outcome, Outcome::GracePeriod(_)) {
            let mut period = self.world.gate.grace_period();
            while !Fault::NoGracePeriod.is_planted() && !period.is_over() {
                yield_now();
            }
        }
        let outcome = outcome.after_grace(&mut self.worker, &*self.world, &mut out);
        client.state = ClientState::after(outcome);
        schedule(&self.worker, client);
        deliver(client, &out);
        self.catch_up();
        &self.slots.client(slot).expect("it is here").state
    }

    /// Handles one message, for which it waits.
    pub(crate) fn turn(&mut self) {
        let message = self.inbox.recv().expect("its link is open");
        self.handle(message);
    }

    fn handle(&mut self, message: TestMessage) {
        match self.slots.handle(message, || 2) {
            SlotAction::Nothing => {}
            SlotAction::Moved(_) if Fault::DeafOnArrival.is_planted() => {}
            SlotAction::Moved(slot) | SlotAction::Wake(slot) => self.end_wait(slot),
            SlotAction::Close(client) => self.end(client),
            SlotAction::Move(client, thread) => self.world.send(thread, Message::Move(client)),
            other => panic!("no test asks for this: {other:?}"),
        }
    }

    /// Waits until a client waits no more.
    pub(crate) fn until_received(&mut self, slot: usize) {
        while self.waits(slot) {
            self.turn();
        }
    }

    /// Whether a client is here and waits.
    pub(crate) fn waits(&self, slot: usize) -> bool {
        self.slots.client(slot).is_some_and(|client| client.state.blocked().is_some())
    }

    /// When this thread comes back to a client's wait.
    pub(crate) fn due_ms(&self, slot: usize) -> Option<i64> {
        self.slots.client(slot)?.state.blocked()?.due_ms
    }

    /// Whether it is this thread's to come back to a client's wait before `end_ms`. Then it is
    /// that time, and it does.
    pub(crate) fn come_due_before(&mut self, slot: usize, end_ms: i64) -> bool {
        let Some(due_ms) = self.due_ms(slot).filter(|due_ms| *due_ms < end_ms) else {
            return false;
        };
        self.go_on_to(due_ms);
        for _ in 0..LOOKS_MAX {
            let client = self.slots.client_mut(slot).expect("it is here");
            let Some(blocked) = client.state.blocked_mut() else { break };
            blocked.due_ms = None;
            let locks = self.world.enter(&self.pass, &self.waits);
            on_deadline(&mut self.worker, &blocked.waiter, &locks, &*self.world);
            drop(locks);
            self.end_wait(slot);
            // When the shard was in use, it comes back to it soon; here it is the same moment.
            if self.due_ms(slot) != Some(due_ms + 1) {
                break;
            }
            yield_now();
        }
        true
    }

    /// Advances this thread's clock.
    pub(crate) fn go_on_to(&mut self, now_ms: i64) {
        self.worker.begin_turn(Time { unix_us: now_ms * 1000, steady_ms: now_ms }, 0);
    }

    /// CLIENT PAUSE is over: this thread asks again when it comes back to a client's wait.
    pub(crate) fn resume(&mut self, slot: usize) {
        if !Fault::DeafAfterPause.is_planted() {
            schedule(&self.worker, self.slots.client_mut(slot).expect("it is here"));
        }
    }

    /// The deadline of a client's wait has passed.
    pub(crate) fn time_out(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let Some(blocked) = client.state.blocked() else { return };
        blocked.waiter.time_out();
        let received = Arc::clone(&client.received);
        self.end_wait(slot);
        if Fault::TimeOutAnyway.is_planted() {
            *received.lock().expect("no thread panics") = vec!["*-1".to_owned()];
        }
    }

    fn end_wait(&mut self, slot: usize) {
        let client = self.slots.client_mut(slot).expect("it is here");
        let mut out = Out::default();
        while let Some(blocked) = client.state.blocked() {
            let locks = self.world.enter(&self.pass, &self.waits);
            if finish(&mut self.worker, &blocked.waiter, &locks, &mut out).is_some() {
                client.state = ClientState::Reading;
            } else if blocked.waiter.waits() {
                break;
            }
            // The shard of one of its keys is in use: this thread comes back to it soon.
            drop(locks);
            yield_now();
        }
        schedule(&self.worker, client);
        deliver(client, &out);
    }

    /// Closes a client, as when it has disconnected.
    pub(crate) fn close(&mut self, slot: usize) {
        if let Some(client) = self.slots.remove(slot) {
            self.end(client);
        }
    }

    /// Does the work that was deferred because shards were in use.
    fn catch_up(&mut self) {
        while self.worker.has_deferred() {
            yield_now();
            let locks = self.world.enter(&self.pass, &self.waits);
            self.worker.catch_up(&locks, &*self.world);
        }
    }

    fn end(&mut self, mut client: TestClient) {
        Command::begin("");
        let locks = self.world.enter(&self.pass, &self.waits);
        if let Some(blocked) = client.state.blocked() {
            give_up(&mut self.worker, &blocked.waiter, &locks);
        }
        if !Fault::WatchOutlives.is_planted() {
            transactions::forget(&mut self.worker, &mut client.session, &locks);
        }
        drop(locks);
        self.catch_up();
        client.received.lock().expect("no thread panics").push("closed".to_owned());
    }

    /// Gives a client to the main thread, which finds another owner for it.
    pub(crate) fn give_away(&mut self, slot: usize) {
        let client = self.slots.remove(slot).expect("it is here");
        assert_ne!(self.index, 0);
        self.world.send(0, Message::Move(client));
    }
}

/// Sets the deadline of a blocked client.
fn schedule(worker: &Worker, client: &mut TestClient) {
    if let Some(blocked) = client.state.blocked_mut() {
        blocked.due_ms = due(worker, &blocked.waiter).at_ms;
    }
}

fn deliver(client: &TestClient, out: &Out) {
    if !out.bytes.is_empty() {
        let text = String::from_utf8_lossy(&out.bytes).trim_end().replace("\r\n", " ");
        client.received.lock().expect("no thread panics").push(text);
    }
}
