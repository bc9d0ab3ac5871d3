//! One I/O thread: its event loop, its clients, and one turn of it.
//!
//! ```text
//! wait -> read and parse every ready client -> prefetch -> execute in order -> send
//!   ^                                                                           |
//!   +--------------------------- cron <- mailbox <-----------------------------+
//! ```
//!
//! Invariants: only the owner touches a client; a client that is lent to the main thread leaves
//! its slot reserved; nothing is executed outside the gate and nothing is sent inside it.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use node::propagation::{subscribe, tracking};
use node::{Worker, transactions};
use resp::{Limits, Out};
use sync::mailbox::Mailbox;
use sys::epoll::{Epoll, Event, Events, Interest};
use sys::eventfd::EventFd;

use crate::keyspace::shard_locks::Nobody;
use crate::net::connection::Connection;
use crate::net::read_batch::{ReadBatch, Received};
use crate::threads::busy_script::{CATCH_UP_MS, KeyspaceAccess};
use crate::threads::client_moves::Moves;
use crate::threads::client_state::ClientState;
use crate::threads::clock::Clock;
use crate::threads::cron_schedule::Cron;
use crate::threads::deadlines::Deadlines;
use crate::threads::deliveries::Deliverer;
use crate::threads::grace::Graces;
use crate::threads::log_holds::LogHolds;
use crate::threads::message::Message;
use crate::threads::shard_waits::{ShardWaits, VISIT_WAIT_MAX};
use crate::threads::shared::{Shared, ThreadHandle};
use crate::threads::slots::{Action, Slots};
use crate::{verbose, warning};

/// The token of the mailbox's eventfd. Slots of clients are smaller, the main thread's own
/// descriptors greater.
pub const MAILBOX_TOKEN: u64 = 1 << 62;
/// Events of one wait.
const EVENTS_MAX: usize = 512;
/// The most unfinished input of one client, whatever `client-query-buffer-limit` says.
const QUERY_BYTES_MAX: usize = 3 << 30;
/// Handshakes taken a step further between two waits. A signature takes up to a millisecond, and
/// the other clients must not wait for those of everyone who connects at the same time.
pub(crate) const HANDSHAKES_MAX: usize = 2;
/// Messages handled between two waits.
const MESSAGES_MAX: usize = 1024;

/// One thread's event loop and everything it owns.
pub struct IoThread {
    /// What all threads share.
    pub shared: Arc<Shared>,
    /// What it executes with; without access to the keyspace, one that answers with BUSY.
    pub worker: Box<Worker>,
    /// Its epoll instance.
    pub epoll: Arc<Epoll>,
    /// Its clients.
    pub slots: Slots<Box<Connection>>,
    /// Requests of the turn. None: there have been none, or they are executed.
    pub(crate) read_batch: Option<Box<ReadBatch>>,
    /// Replies of the turn.
    pub(crate) out: Box<Out>,
    /// Its access to the keyspace. None: someone executes something and has it.
    pub(crate) access: Option<Box<KeyspaceAccess>>,
    /// A nested turn has served clients in this turn, and events may concern others by now.
    pub(crate) ran_nested_turn: bool,
    /// Clients it owns and those on their way to it.
    pub(crate) clients: Arc<AtomicUsize>,
    pub(crate) mailbox: Mailbox<Message<Box<Connection>>>,
    pub(crate) wake: Arc<EventFd>,
    events: Events,
    pub(crate) clock: Clock,
    /// Clients with input that needs no event to be looked at.
    pub(crate) again: VecDeque<usize>,
    /// Clients whose queues go on behind the requests of the turn.
    pub(crate) postponed: VecDeque<usize>,
    /// Clients whose requests wait for shards.
    pub(crate) shard_waits: ShardWaits,
    /// Some client, held or blocked, waits for the end of CLIENT PAUSE.
    pub(crate) waits_for_pause: bool,
    /// When to come back to blocked clients.
    pub(crate) deadlines: Deadlines,
    /// Commands that wait for others to be over.
    pub(crate) graces: Graces,
    /// What was published on its way to the clients.
    pub(crate) deliverer: Deliverer,
    cron: Cron,
    /// When to look again at what was put off, on the steady scale.
    catch_up_ms: i64,
    ended: bool,
    /// It is to end, and does when it has its access back.
    ends_later: bool,
    /// The log, and clients whose replies wait for it.
    pub(crate) log: LogHolds,
    /// Handshakes that may still go on in this turn.
    pub(crate) handshakes_left: usize,
    /// Clients that are to move to other threads.
    pub(crate) moves: Option<Moves>,
    pub(crate) turn_tsc: Arc<AtomicU64>,
    system_id: Arc<AtomicU32>,
}

/// The mailbox of a thread and what wakes its owner, made before the thread is.
pub struct ThreadMailbox {
    /// The receiving end.
    pub mailbox: Mailbox<Message<Box<Connection>>>,
    /// Readable when a message may be there.
    pub wake: Arc<EventFd>,
    /// Clients that the owner has and those on their way to it.
    pub clients: Arc<AtomicUsize>,
    /// See [`ThreadHandle::turn_tsc`].
    pub turn_tsc: Arc<AtomicU64>,
    /// See [`ThreadHandle::system_id`].
    pub system_id: Arc<AtomicU32>,
}

impl ThreadMailbox {
    /// An empty mailbox.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn new() -> std::io::Result<Self> {
        let wake = Arc::new(EventFd::new()?);
        let signal = Arc::clone(&wake);
        let mailbox = Mailbox::new(move || signal.signal());
        let (clients, turn_tsc, system_id) = Default::default();
        Ok(Self { mailbox, wake, clients, turn_tsc, system_id })
    }

    /// How others reach the owner.
    pub fn handle(&self) -> ThreadHandle {
        ThreadHandle {
            mailbox: self.mailbox.sender(),
            clients: Arc::clone(&self.clients),
            turn_tsc: Arc::clone(&self.turn_tsc),
            system_id: Arc::clone(&self.system_id),
        }
    }
}

impl IoThread {
    /// A thread's loop, to be run by the thread itself.
    ///
    /// # Errors
    /// When the process is out of descriptors, or has as many threads as the gate admits.
    pub fn new(
        shared: Arc<Shared>,
        mut worker: Worker,
        post: ThreadMailbox,
    ) -> std::io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(post.wake.as_fd(), MAILBOX_TOKEN, Interest::READ)?;
        let pass = shared.gate.register_as(worker.index);
        let pass = pass.ok_or_else(|| std::io::Error::other("too many threads"))?;
        let mut clock = Clock::new();
        let now = clock.now();
        worker.begin_turn(now.time, now.tsc);
        let signal = Arc::clone(&post.wake);
        worker.deliveries.open(Arc::new(move || signal.signal()));
        let mut thread = Self {
            clock,
            access: Some(KeyspaceAccess::new(Arc::clone(&shared), pass, &mut worker)),
            ran_nested_turn: false,
            epoll: Arc::new(epoll),
            slots: Slots::new(worker.index),
            read_batch: None,
            out: Box::default(),
            clients: post.clients,
            mailbox: post.mailbox,
            wake: post.wake,
            events: Events::with_capacity(EVENTS_MAX),
            again: VecDeque::new(),
            postponed: VecDeque::new(),
            shard_waits: ShardWaits::default(),
            waits_for_pause: false,
            deadlines: Deadlines::default(),
            graces: Graces::default(),
            deliverer: Deliverer::default(),
            cron: Cron::default(),
            catch_up_ms: 0,
            ended: false,
            ends_later: false,
            log: LogHolds::default(),
            handshakes_left: 0,
            moves: None,
            turn_tsc: post.turn_tsc,
            system_id: post.system_id,
            worker: Box::new(worker),
            shared,
        };
        thread.follow_log();
        Ok(thread)
    }

    /// Runs until the thread is told to end.
    pub fn run(&mut self) {
        self.system_id.store(sys::process::thread_id(), Ordering::Relaxed);
        while !self.ended {
            self.turn(&mut |_, _| {});
        }
    }

    /// One turn. Events of descriptors that are no clients go to `special`.
    pub fn turn(&mut self, special: &mut dyn FnMut(&mut Self, Event)) {
        let timeout_ms = self.timeout_ms();
        let count = self.epoll.wait(&mut self.events, timeout_ms).unwrap_or(0);
        self.mailbox.awake();
        self.worker.deliveries.awake();
        let now = self.clock.now();
        self.turn_tsc.store(now.tsc, Ordering::Relaxed);
        self.worker.begin_turn(now.time, now.tsc);
        self.handshakes_left = HANDSHAKES_MAX;
        self.ran_nested_turn = false;
        if let Some(access) = &self.access {
            access.waits.patience.renew(VISIT_WAIT_MAX);
        }
        self.look_at_those_again();
        for index in 0..count {
            // What is left is reported again: its places may have other clients by now.
            if self.ran_nested_turn {
                break;
            }
            let event = self.events.at(index);
            match event.token() {
                MAILBOX_TOKEN => self.wake.clear(),
                token if token > MAILBOX_TOKEN => special(self, event),
                token => self.client_ready(token as usize, event),
            }
        }
        self.keep_clients_small();
        self.execute_turn();
        self.go_on_with_postponed();
        self.retry_shard_waits();
        self.handle_messages();
        if std::mem::take(&mut self.ends_later) {
            self.end();
        }
        if self.worker.has_put_off() && self.steady_ms() >= self.catch_up_ms {
            self.catch_up();
            self.catch_up_ms = self.steady_ms() + i64::from(CATCH_UP_MS);
        }
        while let Some(slot) = self.deadlines.pop_due(self.steady_ms()) {
            self.on_deadline(slot);
        }
        self.end_graces();
        self.go_on_with_publishers();
        self.deliver();
        self.move_some();
        let is_done = self.graces.is_empty() && !self.worker.has_put_off();
        self.ended |= is_done && self.slots.has_left();
        if self.waits_for_pause && self.worker.node.pause_left_ms(self.steady_ms()) == 0 {
            self.resume_paused();
        }
        self.run_cron();
        if self.worker.evicts_in_ms().is_some() {
            self.evict_on();
        }
        let (garbage, bytes) = self.worker.turn.lazy_free.take_big();
        if !garbage.is_empty() {
            self.shared.garbage.send(garbage, bytes);
        }
        self.worker.wake_receivers();
        self.look_at_log();
        self.keep_clients_small();
        self.worker.end_turn();
        self.worker.publish_memory(sys::allocator::thread_bytes());
        let busy = sys::clock::tsc().wrapping_sub(now.tsc);
        self.worker.stats.turns.add(1);
        self.worker.stats.busy_tsc.add(busy);
        self.turn_tsc.store(0, Ordering::Relaxed);
    }

    /// The thread's time on the steady clock, in milliseconds, which goes on during a turn when a
    /// command takes long.
    pub(crate) fn steady_ms(&self) -> i64 {
        self.worker.turn.steady_ms
    }

    /// How long the next wait may last; 0 when there is something to do.
    fn timeout_ms(&mut self) -> i32 {
        let until_eviction = self.worker.evicts_in_ms().unwrap_or(i32::MAX);
        let has_more = !self.again.is_empty() || !self.postponed.is_empty() || until_eviction == 0;
        let may_wait = !has_more && self.moves.is_none() && !self.deliverer.has_more;
        if !may_wait || !self.mailbox.prepare_sleep() || !self.worker.deliveries.prepare_sleep() {
            return 0;
        }
        let steady_ms = self.steady_ms();
        let has_clients = self.slots.clients() > 0;
        let until_cron = self.cron.wait_ms(steady_ms, has_clients, self.tends_shards());
        let until_deadline = self.deadlines.wait_ms(steady_ms).unwrap_or(i64::MAX);
        let until_grace = self.graces.wait_ms().unwrap_or(i64::MAX);
        let until_shard = self.shard_waits.wait_ms().unwrap_or(i64::MAX);
        let until_room = self.deliverer.wait_ms().unwrap_or(i64::MAX);
        let until_caught_up = if self.worker.has_put_off() { CATCH_UP_MS } else { i32::MAX };
        let until_other = until_cron.min(until_caught_up).min(until_eviction);
        let until_other = until_grace.min(i64::from(until_other));
        let until_other = until_other.min(until_shard).min(until_room);
        let timeout_ms = until_deadline.min(until_other) as i32;
        if !self.waits_for_pause {
            return timeout_ms;
        }
        let left = self.worker.node.pause_left_ms(steady_ms);
        timeout_ms.min(left.min(1000) as i32 + 1)
    }

    /// Whether some of the shards are this thread's to tend.
    pub(crate) fn tends_shards(&self) -> bool {
        self.worker.index < self.shared.cron_threads()
    }

    pub(crate) fn client_ready(&mut self, slot: usize, event: Event) {
        if event.writable() {
            self.send_pending(slot);
        }
        if !event.readable() {
            return;
        }
        match self.slots.client_mut(slot) {
            Some(client) if client.log_hold.is_some() => {
                // Nothing is read now; it is watched as before when that is over.
                match event.hung_up() {
                    true => self.close(slot),
                    false => self.watch(slot, Interest::NONE),
                }
            }
            // The next wait reports it again.
            Some(client)
                if matches!(client.state, ClientState::Batched | ClientState::Postponed) => {}
            Some(client) if client.state.is_closing() || client.state.is_held() => {
                // Nothing is read now; only a broken connection is of interest, and the end of one
                // whose client waits for a key.
                let waits = client.state.blocked().is_some();
                if event.hung_up() || waits && event.ended() {
                    self.close(slot);
                } else {
                    let write = client.wants_write();
                    self.watch(slot, Interest { read: false, write, end: waits });
                }
            }
            Some(client) if client.transport.is_handshaking() => {
                // Those left out are ready again at once, in the next turn.
                if let Some(left) = self.handshakes_left.checked_sub(1) {
                    self.handshakes_left = left;
                    self.receive(slot);
                }
            }
            // It is ready again at once, in the next turn.
            Some(client) if client.held_back => {}
            Some(_) => self.receive(slot),
            None => self.unwatch_away(slot),
        }
    }

    /// Reads and parses once; executes what has gathered first when there is no room.
    fn receive(&mut self, slot: usize) {
        if self.read_batch.as_ref().is_some_and(|read_batch| read_batch.is_full()) {
            self.execute_turn();
        }
        let Some(client) = self.slots.client_mut(slot) else { return };
        let limits = limits(client, &self.worker);
        let expected_bytes = client.query_buffer.as_ref().map_or(0, |buffer| buffer.wanted_bytes());
        if expected_bytes > 0 && !self.has_room_for(expected_bytes) {
            self.again.push_back(slot);
            return;
        }
        let Some(client) = self.slots.client_mut(slot) else { return };
        let query_max = self.worker.config.client_query_buffer_limit;
        // Places in a query buffer are numbers of 32 bits.
        let query_max = usize::try_from(query_max).unwrap_or(usize::MAX).min(QUERY_BYTES_MAX);
        let hasher = self.worker.turn.hasher;
        let hash = |key: &[u8]| hasher.hash(key);
        let table = self.worker.table;
        let read_batch = self.read_batch.get_or_insert_with(|| Box::new(ReadBatch::new(table)));
        let received = read_batch.receive(slot, client, limits, query_max, &hash);
        self.worker.stats.reads.add(1);
        if expected_bytes > 0 {
            self.worker.received(sys::allocator::thread_bytes());
        }
        if matches!(received, Received::Batch | Received::BatchAndMore) {
            client.state = ClientState::Batched;
        }
        if self.worker.limits_clients() {
            // Before it is executed: what is too large is not.
            client.publish(&self.worker, 0, 0);
        }
        match received {
            Received::Batch => {}
            Received::BatchAndMore => self.again.push_back(slot),
            Received::Nothing => {
                // A handshake may have an answer that the socket does not take yet.
                if client.transport.is_buffered() {
                    self.after_send(slot);
                }
            }
            Received::Broken => self.refuse(slot),
            Received::TooLong => self.close_over_query_limit(slot),
        }
        if let Some(client) = self.slots.client(slot)
            && client.transport.has_received()
            && received != Received::BatchAndMore
        {
            self.again.push_back(slot);
        }
    }

    /// Looks at the clients whose input needs no event.
    pub(crate) fn look_at_those_again(&mut self) {
        for _ in 0..self.again.len() {
            let Some(slot) = self.again.pop_front() else { return };
            self.receive_again(slot);
        }
    }

    /// Handles what other threads ask.
    pub(crate) fn handle_messages(&mut self) {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = self.mailbox.pop() else { return };
            self.handle(message);
        }
    }

    /// Looks at input that came before: behind a request that may have authenticated the client, or
    /// waiting inside its transport.
    fn receive_again(&mut self, slot: usize) {
        let Some(client) = self.slots.client_mut(slot) else { return };
        if client.held_back {
            // The socket may be full since: no event would tell, and the client would never be
            // read again, which may be sending and not reading until it is done.
            self.send_pending(slot);
            if self.slots.client(slot).is_some_and(|client| client.held_back) {
                self.again.push_back(slot);
            }
            return;
        }
        if !matches!(client.state, ClientState::Reading) || client.log_hold.is_some() {
            return;
        }
        if client.query_buffer.is_none() || client.transport.has_received() {
            return self.receive(slot);
        }
        let limits = limits(client, &self.worker);
        let hasher = self.worker.turn.hasher;
        client.state = ClientState::Batched;
        let table = self.worker.table;
        let read_batch = self.read_batch.get_or_insert_with(|| Box::new(ReadBatch::new(table)));
        if read_batch.parse_query_buffer(slot, client, limits, &|key| hasher.hash(key)) {
            self.again.push_back(slot);
        }
    }

    /// Looks at a client in the next turn even without an event: goes on with its queue or looks at
    /// its input.
    pub(crate) fn look_again(&mut self, slot: usize) {
        match self.slots.client(slot).map(|client| &client.state) {
            Some(ClientState::Postponed) => self.postponed.push_back(slot),
            _ => self.again.push_back(slot),
        }
    }

    pub(crate) fn watch(&mut self, slot: usize, interest: Interest) {
        if let Some(client) = self.slots.client_mut(slot)
            && client.watched != Some(interest)
        {
            let (fd, token) = (client.transport.as_fd(), slot as u64);
            let told = match client.watched {
                Some(_) => self.epoll.modify(fd, token, interest),
                None => self.epoll.add(fd, token, interest),
            };
            client.watched = Some(interest);
            if told.is_err() {
                // Out of watches: nothing would ever be heard of it.
                self.close(slot);
            }
        }
    }

    pub(crate) fn handle(&mut self, message: Message<Box<Connection>>) {
        let shared = &self.shared;
        match self.slots.handle(message, || shared.thread_for_client()) {
            Action::Nothing => {}
            Action::Moved(slot) => self.moved(slot),
            Action::Returned(slot) => self.returned(slot),
            Action::Wake(slot) => self.wake(slot),
            Action::Close(client) => self.end_client(client),
            Action::Move(client, thread) => self.move_client(client, thread),
            Action::Execute(client, origin) => self.execute_lent(client, origin),
            Action::MoveAll => self.moves = Some(Moves { next: 0, all: true }),
            Action::MoveSurplus => self.moves = Some(Moves { next: 0, all: false }),
            Action::Left(thread) => shared.control.lock().thread_left(shared, thread),
            Action::PauseChanged => self.resume_paused(),
            Action::FollowLog => self.follow_log(),
            Action::LogReached => self.log_reached(),
            Action::ShutDown if self.access.is_none() => self.ends_later = true,
            Action::ShutDown => self.end(),
        }
    }

    fn end(&mut self) {
        self.finish();
        self.ended = true;
    }

    /// Ends a client that is given up, and logs it when its handshake was not done.
    pub(crate) fn refuse(&mut self, slot: usize) {
        if let Some(client) = self.slots.client(slot)
            && let Some(reason) = client.transport.refusal()
        {
            let record = &client.session.record;
            verbose!(
                "Error accepting a client connection: {reason} (addr={} laddr={})",
                record.address,
                record.local_address
            );
        }
        self.close(slot);
    }

    fn close_over_query_limit(&mut self, slot: usize) {
        self.worker.stats.query_limit_closes.add(1);
        if let Some(client) = self.slots.client(slot) {
            let record = &client.session.record;
            warning!(
                "Client id={} addr={} closed for exceeding the query buffer limit, qbuf={}",
                record.id,
                record.address,
                client.query_bytes()
            );
        }
        self.close(slot);
    }

    /// Ends a client.
    pub fn close(&mut self, slot: usize) {
        if let Some(client) = self.slots.remove(slot) {
            self.end_client(client);
        }
    }

    fn end_client(&mut self, mut client: Box<Connection>) {
        self.forget(&mut client);
        self.give_up_wait(&client);
        self.keep_grace(&mut client);
        if client.session.record.follows() {
            subscribe::forget(&mut self.worker, &client.session.record);
        }
        tracking::forget(&self.worker, &mut client.session);
        let locks = self.shared.enter(self.access.as_ref().map(|access| &access.pass), &Nobody);
        transactions::forget(&mut self.worker, &mut client.session, &locks);
        drop(locks);
        client.transport.shut_down();
        self.worker.forget_client(&client.session.record);
        self.worker.node.clients.remove(client.session.record.id);
    }

    /// Stops watching and counting a client that is in no slot any more.
    pub(crate) fn forget(&mut self, client: &mut Connection) {
        let id = client.session.record.id;
        if let Some(blocked) = client.state.blocked_mut() {
            self.deadlines.move_to(None, &mut blocked.due_ms, id, 0);
        }
        self.graces.forget(id);
        client.leave_queue(&self.shared.shards);
        // One that was only passing through has not been added.
        let _ = self.epoll.delete(client.transport.as_fd());
        self.clients.fetch_sub(1, Ordering::Relaxed);
        self.worker.stats.clients.set(self.slots.clients() as u64);
    }

    fn run_cron(&mut self) {
        let mut cron = std::mem::take(&mut self.cron);
        cron.run(self);
        self.cron = cron;
    }
}

/// What a client may send at the moment.
fn limits(client: &Connection, worker: &Worker) -> Limits {
    Limits {
        bulk_bytes_max: worker.config.bulk_bytes_max() as i64,
        authenticated: !client.session.must_authenticate(&worker.node.users),
    }
}
