//! A server of threads that only own clients: the product's slots and messages, around them as much
//! of `io_thread`, `client_moves` and `control` as moves clients, with channels in place of
//! mailboxes and numbers in place of requests.
//!
//! That no client has two owners is the compiler's word: messages and slots move it by value. A
//! client that is dropped while it is open has been lost, and says so.

use std::collections::VecDeque;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Mutex, RwLock};
use shuttle::thread::{self, JoinHandle};

use crate::client_location::ClientLocation;
use crate::message::{Message, ReturnAddress};
use crate::shim::Fault;
use crate::slots::{SlotAction, SlotClient, Slots};
use crate::thread_count::{ThreadCount, ThreadStep};

/// Requests in one batch of a client.
const BATCH: u64 = 2;
/// The most moves of one client while the number of threads changes a few times: each change sends
/// it to the main thread and from there to another.
const MOVES_MAX: u64 = 12;

/// The facts of a client that do not depend on its owner.
pub(crate) struct Record {
    pub(crate) id: u64,
    pub(crate) location: ClientLocation,
    pub(crate) closed: AtomicU64,
    /// Requests executed; their numbers run from 0.
    pub(crate) executed: AtomicU64,
    /// How often it was sent from one thread to another to stay there.
    moves: AtomicU64,
}

/// A client that sends so many batches, all of which only the main thread may execute.
pub(crate) struct TestClient {
    record: Arc<Record>,
    /// Its requests that wait.
    queue: VecDeque<u64>,
    batches_left: u64,
    sent: u64,
    open: bool,
}

type TestMessage = Message<TestClient>;

impl SlotClient for TestClient {
    type Ticket = u64;

    fn ticket(&self) -> u64 {
        self.record.id
    }

    fn redeem(&mut self, ticket: u64) {
        assert_eq!(ticket, self.record.id, "a client came back to the slot of another");
    }

    fn id(&self) -> u64 {
        self.record.id
    }

    fn take(&self, thread: usize, slot: usize) -> bool {
        let killed = self.record.location.take(thread as u32, slot as u32);
        killed && !Fault::KillForgottenOnAdoption.is_planted()
    }

    fn is_killed(&self) -> bool {
        self.record.location.is_killed() && !Fault::KillForgottenOnReturn.is_planted()
    }
}

impl Drop for TestClient {
    fn drop(&mut self) {
        assert!(!self.open || std::thread::panicking(), "client {} is lost", self.record.id);
    }
}

/// The state that all threads share.
pub(crate) struct World {
    links: RwLock<Vec<Sender<TestMessage>>>,
    /// Threads below this number take clients.
    active: AtomicUsize,
    /// Threads that run.
    started: AtomicUsize,
    pub(crate) records: Mutex<Vec<Arc<Record>>>,
}

impl World {
    fn send(&self, thread: usize, message: TestMessage) {
        let link = self.links.read().expect("no thread panics").get(thread).cloned();
        match link.map(|link| link.send(message)) {
            // A message to a thread that has ended is dropped, unless it contains a client.
            Some(Ok(())) | None => {}
            Some(Err(refused)) => drop(refused),
        }
    }

    /// Any thread that is there for clients: the models do not depend on the choice.
    fn chosen(&self) -> usize {
        if Fault::GivesToTheParked.is_planted() {
            return self.started.load(Ordering::Relaxed) - 1;
        }
        match self.active.load(Ordering::Relaxed) {
            1 => 0,
            active => thread_rng().gen_range(1..active),
        }
    }

    /// The effect of CLIENT KILL, on any thread.
    pub(crate) fn kill(&self, record: &Record) {
        if record.location.kill() {
            let (thread, slot) = record.location.place();
            self.send(thread as usize, Message::Close { id: record.id, slot: slot as usize });
        }
    }
}

/// One thread: its clients and how it handles messages.
struct Owner {
    world: Arc<World>,
    index: usize,
    slots: Slots<TestClient>,
    inbox: Receiver<TestMessage>,
    ended: bool,
    /// Threads that have ended, as reported to the main thread.
    left: Vec<usize>,
}

impl Owner {
    fn new(world: &Arc<World>, index: usize) -> (Self, Sender<TestMessage>) {
        let (sender, inbox) = channel();
        let (world, slots) = (Arc::clone(world), Slots::new(index));
        (Self { world, index, slots, inbox, ended: false, left: Vec::new() }, sender)
    }

    /// Runs until it receives the order to end, and returns the clients that it has then.
    fn run(mut self) -> Vec<TestClient> {
        while !self.ended {
            let message = self.inbox.recv().expect("the main thread outlives the others");
            self.handle(message);
        }
        self.finish()
    }

    fn handle(&mut self, message: TestMessage) {
        let world = &self.world;
        match self.slots.handle(message, || world.chosen()) {
            SlotAction::Nothing => {}
            SlotAction::Moved(slot) | SlotAction::Returned(slot) | SlotAction::Wake(slot) => {
                self.serve(slot)
            }
            SlotAction::Close(client) => close(client),
            SlotAction::Move(client, thread) => self.move_client(client, thread),
            SlotAction::Execute(mut client, origin) => {
                execute(&mut client);
                self.world.send(origin.thread, Message::Return(client, origin.slot));
            }
            SlotAction::MoveAll => {
                if Fault::LeavesClientsOnMain.is_planted() && self.index != 0 {
                    self.ended = true;
                }
                if Fault::KeepsTheOthers.is_planted() && self.index != 0 {
                    self.ended = true;
                    return;
                }
                self.move_down_to(0);
            }
            SlotAction::MoveSurplus => self.move_down_to(1),
            SlotAction::Left(thread) => self.left.push(thread),
            SlotAction::PauseChanged => {
                for slot in 0..self.slots.len() {
                    self.serve(slot);
                }
            }
            SlotAction::FollowLog | SlotAction::LogReached => {}
            SlotAction::ShutDown => self.ended = true,
        }
        self.ended |= self.slots.has_left();
    }

    /// Moves clients that are here until only `keep` are left.
    fn move_down_to(&mut self, keep: usize) {
        for slot in 0..self.slots.len() {
            if self.slots.clients() > keep
                && let Some(client) = self.slots.remove(slot)
            {
                let thread = self.slots.destination(|| self.world.chosen());
                self.move_client(client, thread);
            }
        }
    }

    fn move_client(&self, client: TestClient, thread: usize) {
        let everyone_chooses = Fault::EveryoneChooses.is_planted();
        let thread = if everyone_chooses { self.world.chosen() } else { thread };
        let moves = client.record.moves.fetch_add(1, Ordering::Relaxed);
        let id = client.record.id;
        assert!(moves < MOVES_MAX || std::thread::panicking(), "client {id} moves without end");
        self.world.send(thread, Message::Move(client));
    }

    /// Reads the next batch of a client. It goes to the main thread, or waits for the end of a
    /// pause, also one that was read before the client came here.
    fn serve(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        let waited = !client.queue.is_empty();
        if !waited && client.batches_left > 0 {
            client.batches_left -= 1;
            client.queue.extend(client.sent..client.sent + BATCH);
            client.sent += BATCH;
        }
        if client.queue.is_empty() || !waited && thread_rng().gen_range(0..4) == 0 {
            return;
        }
        if self.index == 0 {
            execute(client);
        } else if let Some(client) = self.slots.send_to_main(slot) {
            let origin = ReturnAddress { thread: self.index, slot };
            self.world.send(0, Message::MoveToMain(client, origin));
        }
    }

    /// At the end of the server clients come back before the thread ends.
    fn finish(mut self) -> Vec<TestClient> {
        let in_haste = Fault::LeavesClientsOnMain.is_planted();
        while self.slots.has_clients_on_main() && !in_haste {
            let message = self.inbox.recv().expect("the main thread outlives the others");
            self.handle(message);
        }
        (0..self.slots.len()).filter_map(|slot| self.slots.remove(slot)).collect()
    }
}

fn execute(client: &mut TestClient) {
    let next = |queue: &mut VecDeque<u64>| match Fault::NewestFirst.is_planted() {
        true => queue.pop_back(),
        false => queue.pop_front(),
    };
    while let Some(request) = next(&mut client.queue) {
        let expected = client.record.executed.fetch_add(1, Ordering::Relaxed);
        assert_eq!(request, expected, "executed twice, never or out of order");
    }
}

fn close(mut client: TestClient) {
    client.open = false;
    let before = client.record.closed.fetch_add(1, Ordering::Relaxed);
    assert_eq!(before, 0, "closed twice");
}

/// The main thread, which also changes the number of threads.
pub(crate) struct Main {
    pub(crate) world: Arc<World>,
    owner: Owner,
    threads: Vec<Option<JoinHandle<Vec<TestClient>>>>,
    count: ThreadCount,
    /// At the end of the server: threads from this number on are parked and have no clients.
    parked_from: usize,
    /// Clients of threads that have ended with the server.
    rest: Vec<TestClient>,
}

impl Main {
    pub(crate) fn new() -> Self {
        let world = Arc::new(World {
            links: RwLock::new(Vec::new()),
            active: AtomicUsize::new(1),
            started: AtomicUsize::new(1),
            records: Mutex::new(Vec::new()),
        });
        let (owner, link) = Owner::new(&world, 0);
        world.links.write().expect("no thread panics").push(link);
        let (threads, rest) = (Vec::new(), Vec::new());
        Self { world, owner, threads, count: ThreadCount::default(), parked_from: 1000, rest }
    }

    /// A new client, as `accept` brings one.
    pub(crate) fn accept(&mut self, batches: u64) -> Arc<Record> {
        let mut records = self.world.records.lock().expect("no thread panics");
        let record = Arc::new(Record {
            id: records.len() as u64,
            location: ClientLocation::new(),
            closed: AtomicU64::new(0),
            executed: AtomicU64::new(0),
            moves: AtomicU64::new(0),
        });
        records.push(Arc::clone(&record));
        drop(records);
        let client = TestClient {
            record: Arc::clone(&record),
            queue: VecDeque::new(),
            batches_left: batches,
            sent: 0,
            open: true,
        };
        self.world.send(self.world.chosen(), Message::Move(client));
        record
    }

    /// See `Control::set_threads`: the same state machine, other steps.
    pub(crate) fn set_threads(&mut self, wanted: usize) {
        let steps = self.count.set(wanted, wanted);
        self.take_steps(steps);
    }

    /// See `Control::balance`.
    pub(crate) fn set_active(&mut self, active: usize) {
        let steps = self.count.set_active(active);
        self.take_steps(steps);
    }

    fn take_steps(&mut self, steps: Vec<ThreadStep>) {
        for step in steps {
            match step {
                ThreadStep::Publish(active) => self.world.active.store(active, Ordering::Relaxed),
                ThreadStep::Park(thread) if Fault::ParkedInName.is_planted() => {
                    self.world.send(thread, Message::MoveAll);
                }
                ThreadStep::Park(thread) => self.world.send(thread, Message::Park),
                ThreadStep::Resume(thread) => self.world.send(thread, Message::Resume),
                ThreadStep::Leave(thread) => self.world.send(thread, Message::Leave),
                ThreadStep::Start(index) => {
                    let (owner, link) = Owner::new(&self.world, index);
                    self.world.links.write().expect("no thread panics").push(link);
                    self.threads.truncate(index - 1);
                    self.threads.push(Some(thread::spawn(move || {
                        let world = Arc::clone(&owner.world);
                        let rest = owner.run();
                        world.send(0, Message::Left(index));
                        rest
                    })));
                }
                ThreadStep::Unlink(started) => {
                    self.world.links.write().expect("no thread panics").truncate(started);
                }
                ThreadStep::Rebalance => {
                    self.world.send(0, Message::MoveAll);
                    let active = self.count.active();
                    (1..active).for_each(|thread| self.world.send(thread, Message::MoveSurplus));
                }
            }
        }
        self.world.started.store(self.count.started(), Ordering::Relaxed);
    }

    fn threads_left(&self) -> usize {
        self.count.others_running()
    }

    /// Handles the messages that have arrived; waits for one if asked to.
    pub(crate) fn turn(&mut self, wait: bool) {
        let message = match wait {
            true => Some(self.owner.inbox.recv().expect("its own link is open")),
            false => self.owner.inbox.try_recv().ok(),
        };
        if let Some(message) = message {
            self.owner.handle(message);
        }
        for index in std::mem::take(&mut self.owner.left) {
            let thread = self.threads[index - 1].take().expect("it ends once");
            let rest = thread.join().expect("it ends");
            let kept = index >= self.parked_from && !rest.is_empty();
            self.rest.extend(rest);
            assert!(!kept, "a parked thread kept a client");
            let steps = self.count.ended();
            self.take_steps(steps);
        }
    }

    /// Ends the pause on every thread.
    pub(crate) fn unpause(&self) {
        let threads = self.world.links.read().expect("no thread panics").len();
        (0..threads).for_each(|thread| self.world.send(thread, Message::PauseChanged));
    }

    /// Ends the server, and checks the state of its clients.
    pub(crate) fn end(mut self) {
        while self.threads_left() + 1 > self.count.started() {
            self.turn(true);
        }
        assert!(self.rest.is_empty(), "a thread that left kept a client");
        let threads = self.threads.len();
        (1..=threads).for_each(|thread| self.world.send(thread, Message::ShutDown));
        self.parked_from = self.count.active();
        self.world.active.store(1, Ordering::Relaxed);
        self.world.started.store(1, Ordering::Relaxed);
        while self.threads_left() > 0 {
            self.turn(true);
        }
        while let Ok(message) = self.owner.inbox.try_recv() {
            self.owner.handle(message);
        }
        let mut open = std::mem::take(&mut self.rest);
        open.extend(self.owner.finish());
        let records = self.world.records.lock().expect("no thread panics");
        for client in &mut open {
            client.open = false;
            let record = &client.record;
            assert!(!record.location.is_killed(), "client {} was killed and lives", record.id);
            let executed = record.executed.load(Ordering::Relaxed);
            let waiting = client.queue.len() as u64;
            assert_eq!(executed + waiting, client.sent, "a request is lost");
        }
        let closed: u64 = records.iter().map(|r| r.closed.load(Ordering::Relaxed)).sum();
        let killed = records.iter().filter(|record| record.location.is_killed()).count();
        assert_eq!(closed, killed as u64, "the killed clients are closed, and no others");
        assert_eq!(open.len() + killed, records.len(), "a client is lost");
    }
}
