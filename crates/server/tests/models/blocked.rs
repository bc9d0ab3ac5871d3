//! Owners of clients that are blocked on keys: the product's locks, slots, messages, client states
//! and executor, around them as much of `blocked` and `io_thread` as begins and ends waits, with
//! channels in place of mailboxes.

use std::sync::Arc;
use std::time::Duration;
use store::Time;

use node::blocking::{due, finish, give_up, on_deadline};
use node::config::{Apply, Config};
use node::host::{ClientWaker, GatedHost, ProcessInfo, Shutdown, Undo};
use node::{ClientRecord, Executor, Host, Node, Request, Session, Worker, table};
use resp::{Args, Out, Span};
use shuttle::sync::Mutex;
use shuttle::sync::mpsc::{Receiver, Sender, channel};

use crate::client_state::ClientState;
use crate::gate::{Gate, Pass};
use crate::message::Message;
use crate::shard_locks::{Shards, ThreadShards};
use crate::shim::Fault;
use crate::slots::{Action, Client, Slots};

const SHARDS: usize = 4;
const DATABASES: u32 = 2;
/// Where every thread's clock begins.
pub(crate) const START_MS: i64 = 1000;

/// A client, and what it has been told.
#[derive(Debug)]
pub(crate) struct TestClient {
    session: Session,
    state: ClientState,
    told: Arc<Mutex<Vec<String>>>,
    pub(crate) record: Arc<ClientRecord>,
}

type TestMessage = Message<TestClient>;

impl Client for TestClient {
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

/// What a test keeps of a client.
pub(crate) struct Seen {
    pub(crate) record: Arc<ClientRecord>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Seen {
    /// Everything it was told.
    pub(crate) fn told(&self) -> Vec<String> {
        self.told.lock().expect("nobody panics").clone()
    }
}

/// What all threads share.
pub(crate) struct World {
    shards: Shards,
    gate: Gate,
    pub(crate) node: Arc<Node>,
    links: Mutex<Vec<Sender<TestMessage>>>,
}

impl World {
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

    pub(crate) fn send(&self, thread: usize, message: TestMessage) {
        let links = self.links.lock().expect("nobody panics");
        // Who has ended needs to hear nothing.
        let _ = links[thread].send(message);
    }

    /// Marks a client as one to be closed and tells its owner, as CLIENT KILL does.
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
}

impl Host for World {
    fn close_client(&self, _: &ClientRecord) {}

    fn apply<'a>(&'a self, _: Apply, _: &'a Config, _: &'a Config) -> Result<Undo<'a>, String> {
        Ok(Box::new(|| ()))
    }

    fn pause_changed(&self) {}

    fn shut_down(&self, _: Shutdown) -> Result<(), String> {
        Ok(())
    }

    fn process_info(&self) -> ProcessInfo {
        ProcessInfo::default()
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        Ok(Vec::new())
    }

    fn write_config_file(&self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn sleep(&self, _: Duration) {}

    /// Waits for all who are inside the gate: for ever, if its caller is.
    fn purge_memory(&self) {
        drop(self.gate.close(None));
    }

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
}

impl Owner {
    /// A thread with the next number; the first is the main thread.
    pub(crate) fn new(world: &Arc<World>) -> Self {
        let (sender, inbox) = channel();
        let mut links = world.links.lock().expect("nobody panics");
        links.push(sender);
        let index = links.len() - 1;
        drop(links);
        let mut worker = Worker::new(Arc::clone(&world.node), index, table(), 7, 1.0);
        worker.begin_turn(Time { unix_us: START_MS * 1000, steady_ms: START_MS }, 0);
        let pass = world.gate.register().expect("there are as many passes as threads");
        Self { world: Arc::clone(world), index, slots: Slots::new(index), inbox, worker, pass }
    }

    /// A new client here, which is owned by this thread from the start. The main thread has none.
    pub(crate) fn connect(&mut self) -> (usize, Seen) {
        let id = self.world.node.clients.next_id();
        let record = Arc::new(ClientRecord::new(id, ("a".into(), "b".into()), 1, 0, 0));
        self.world.node.clients.add(Arc::clone(&record));
        let session = Session::new(Arc::clone(&record), true);
        let told = Arc::default();
        let seen = Seen { record: Arc::clone(&record), told: Arc::clone(&told) };
        let client = TestClient { session, state: ClientState::Reading, told, record };
        match self.slots.handle(Message::Move(client), || 0) {
            Action::Moved(slot) => (slot, seen),
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
                assert!(client.is_killed(), "nobody else closes");
            }
        }
        false
    }

    /// Uses a service of the process inside the gate, as no command can.
    pub(crate) fn purge_inside(&self) {
        let _locks = ThreadShards::enter(&self.world.shards, &self.pass);
        self.world.purge_memory();
    }

    /// Executes a request of a client. Returns the state that the client has come to.
    pub(crate) fn execute(&mut self, slot: usize, words: &str) -> &ClientState {
        let client = self.slots.client_mut(slot).expect("it is here");
        let args: Vec<_> =
            words.split(' ').map(|word| Arc::new(word.as_bytes().to_vec())).collect();
        let spans: Vec<Span> = (0..args.len()).map(Span::own).collect();
        let args = Args::new(&[], &spans, &args);
        let entry = table().resolve(&args);
        let hasher = self.world.node.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        let mut out = Out::default();
        let mut executor = Executor {
            worker: &mut self.worker,
            session: &mut client.session,
            locks: &ThreadShards::enter(&self.world.shards, &self.pass),
            host: GatedHost::new(&*self.world),
            out: &mut out,
        };
        client.state = ClientState::after(executor.execute(Request { entry, args, hash }));
        schedule(&self.worker, client);
        tell(client, &out);
        &client.state
    }

    /// Handles one message, for which it waits.
    pub(crate) fn turn(&mut self) {
        let message = self.inbox.recv().expect("its link is open");
        self.handle(message);
    }

    fn handle(&mut self, message: TestMessage) {
        match self.slots.handle(message, || 2) {
            Action::Nothing => {}
            Action::Moved(_) if Fault::DeafOnArrival.is_planted() => {}
            Action::Moved(slot) | Action::Wake(slot) => self.end_wait(slot),
            Action::Close(client) => self.end(client),
            Action::Move(client, thread) => self.world.send(thread, Message::Move(client)),
            other => panic!("nobody asks for this: {other:?}"),
        }
    }

    /// Waits until a client waits no more.
    pub(crate) fn until_told(&mut self, slot: usize) {
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
        let client = self.slots.client_mut(slot).expect("it is here");
        let blocked = client.state.blocked_mut().expect("it has a deadline");
        blocked.due_ms = None;
        self.worker.begin_turn(Time { unix_us: due_ms * 1000, steady_ms: due_ms }, 0);
        let locks = ThreadShards::enter(&self.world.shards, &self.pass);
        on_deadline(&mut self.worker, &blocked.waiter, &locks, &*self.world);
        drop(locks);
        self.end_wait(slot);
        true
    }

    /// The time of a client's wait has come.
    pub(crate) fn time_out(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let Some(blocked) = client.state.blocked() else { return };
        blocked.waiter.time_out();
        let told = Arc::clone(&client.told);
        self.end_wait(slot);
        if Fault::TimeOutAnyway.is_planted() {
            *told.lock().expect("nobody panics") = vec!["*-1".to_owned()];
        }
    }

    fn end_wait(&mut self, slot: usize) {
        let client = self.slots.client_mut(slot).expect("it is here");
        let mut out = Out::default();
        if let Some(blocked) = client.state.blocked() {
            let locks = ThreadShards::enter(&self.world.shards, &self.pass);
            if finish(&mut self.worker, &blocked.waiter, &locks, &mut out) {
                client.state = ClientState::Reading;
            }
        }
        schedule(&self.worker, client);
        tell(client, &out);
    }

    /// Closes a client, as when it has disconnected.
    pub(crate) fn close(&mut self, slot: usize) {
        if let Some(client) = self.slots.remove(slot) {
            self.end(client);
        }
    }

    fn end(&mut self, client: TestClient) {
        if let Some(blocked) = client.state.blocked() {
            let locks = ThreadShards::enter(&self.world.shards, &self.pass);
            give_up(&mut self.worker, &blocked.waiter, &locks);
        }
        client.told.lock().expect("nobody panics").push("closed".to_owned());
    }

    /// Gives a client to the main thread, which finds another home for it.
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

fn tell(client: &TestClient, out: &Out) {
    if !out.bytes.is_empty() {
        let text = String::from_utf8_lossy(&out.bytes).trim_end().replace("\r\n", " ");
        client.told.lock().expect("nobody panics").push(text);
    }
}
