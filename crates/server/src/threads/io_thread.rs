//! One I/O thread: its event loop, its clients, and one turn of it.
//!
//! ```text
//! wait -> read and parse every ready client -> prefetch -> execute in order -> send
//!   ^                                                                           |
//!   +--------------------------- cron <- mailbox <-----------------------------+
//! ```
//!
//! Invariants: only the owner touches a client; a client that is on the main thread leaves its slot
//! reserved; nothing is executed outside the gate and nothing is sent inside it.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use node::propagation::{invalidations, subscribe};
use node::{Worker, transactions};
use resp::Out;
use sync::mailbox::Mailbox;
use sys::epoll::{Epoll, Event, Events, Interest};
use sys::eventfd::EventFd;

use super::connection::Connection;
use super::cron_schedule::Cron;
use super::deadlines::Deadlines;
use super::deliverer::Deliverer;
use super::grace_waits::Graces;
use super::keyspace_access::KeyspaceAccess;
use super::message::Message;
use super::read_batch::ReadBatch;
use super::reply_waits::ReplyWaits;
use super::shard_wait::{ShardWaits, VISIT_WAIT_MAX};
use super::shared::SharedState;
use super::slots::{SlotAction, Slots};
use super::thread_list::ThreadMailbox;
use crate::system::clock::Clock;
use crate::system::server_log::{self, Level};

/// The token of the mailbox's eventfd. Slots of clients are smaller, the main thread's own
/// descriptors greater.
pub const MAILBOX_TOKEN: u64 = 1 << 62;
/// Events of one wait.
const EVENTS_MAX: usize = 512;
/// Handshakes taken a step further between two waits. A signature takes up to a millisecond, and
/// the other clients must not wait for those of all new connections.
pub(crate) const HANDSHAKES_MAX: usize = 2;
/// Messages handled between two waits.
const MESSAGES_MAX: usize = 1024;

/// Between two refused handshakes that are logged at the default level, in milliseconds.
const REFUSALS_LOGGED_MS: i64 = 1000;

/// Between two attempts to do deferred work.
pub(crate) const CATCH_UP_MS: i32 = 10;

/// Clients that move to other threads, a few in each turn.
#[derive(Debug)]
pub(crate) struct Moves {
    /// The slot to continue with.
    pub next: usize,
    /// All clients move, not only those beyond the thread's share.
    pub all: bool,
}

/// One thread's event loop and everything it owns.
pub struct IoThread {
    pub shared: Arc<SharedState>,
    /// Executes the requests; without access to the keyspace, a worker that replies BUSY.
    pub worker: Box<Worker>,
    pub epoll: Arc<Epoll>,
    pub slots: Slots<Box<Connection>>,
    /// Requests of the turn. `None` if there are none, or they are executed.
    pub(crate) read_batch: Option<Box<ReadBatch>>,
    /// Replies of the turn.
    pub(crate) out: Box<Out>,
    /// Its access to the keyspace. `None` while a request is executed that has taken it.
    pub(crate) access: Option<Box<KeyspaceAccess>>,
    /// A nested turn has served clients in this turn, so the remaining events may concern other
    /// clients.
    pub(crate) ran_nested_turn: bool,
    /// Clients it owns and those on their way to it.
    pub(crate) clients: Arc<AtomicUsize>,
    pub(crate) mailbox: Mailbox<Message<Box<Connection>>>,
    pub(crate) wake: Arc<EventFd>,
    events: Events,
    pub(crate) clock: Clock,
    /// Clients with input that no event will report.
    pub(crate) again: VecDeque<usize>,
    /// Clients whose queues continue after the requests of the turn.
    pub(crate) postponed: VecDeque<usize>,
    /// Clients whose requests wait for shards.
    pub(crate) shard_waits: ShardWaits,
    /// A client, suspended or blocked, waits for the end of CLIENT PAUSE.
    pub(crate) waits_for_pause: bool,
    /// When to come back to blocked clients.
    pub(crate) deadlines: Deadlines,
    /// Commands that are answered when earlier commands are over.
    pub(crate) graces: Graces,
    /// Published messages on their way to the clients.
    pub(crate) deliverer: Deliverer,
    cron: Cron,
    /// When to try deferred work again, on the steady scale.
    catch_up_ms: i64,
    ended: bool,
    /// The thread must end, and does when it has its access back.
    ends_later: bool,
    /// The log, and clients whose replies wait for it.
    pub(crate) log: ReplyWaits,
    /// Handshakes that may still advance in this turn.
    pub(crate) handshakes_left: usize,
    /// When a refused handshake is logged again at the default level, on the steady scale.
    refusal_logged_ms: i64,
    pub(crate) moves: Option<Moves>,
    pub(crate) turn_tsc: Arc<AtomicU64>,
    system_id: Arc<AtomicU32>,
}

impl IoThread {
    /// A thread's loop, which the thread itself runs.
    ///
    /// # Errors
    /// When the process is out of descriptors, or has as many threads as the gate admits.
    pub fn new(
        shared: Arc<SharedState>,
        mut worker: Worker,
        post: ThreadMailbox,
    ) -> std::io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(post.wake.as_fd(), MAILBOX_TOKEN, Interest::READ)?;
        let pass = shared.keyspace.gate.register_as(worker.index);
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
            clients: post.handle.clients,
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
            log: ReplyWaits::default(),
            handshakes_left: 0,
            refusal_logged_ms: 0,
            moves: None,
            turn_tsc: post.handle.turn_tsc,
            system_id: post.handle.system_id,
            worker: Box::new(worker),
            shared,
        };
        thread.follow_log();
        Ok(thread)
    }

    /// Runs until the thread receives the order to end.
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
            access.waits.wait_budget.renew(VISIT_WAIT_MAX);
        }
        self.receive_deferred();
        for index in 0..count {
            // The remaining events are reported again: their slots may have other clients by now.
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
        self.answer_turn();
        self.proceed_with_postponed();
        self.retry_shard_waits();
        self.handle_messages();
        if std::mem::take(&mut self.ends_later) {
            self.end();
        }
        if self.worker.has_deferred() && self.steady_ms() >= self.catch_up_ms {
            self.catch_up();
            self.catch_up_ms = self.steady_ms() + i64::from(CATCH_UP_MS);
        }
        while let Some(slot) = self.deadlines.pop_due(self.steady_ms()) {
            self.on_deadline(slot);
        }
        self.end_graces();
        self.proceed_with_publishers();
        self.deliver();
        self.move_some();
        let is_done = self.graces.is_empty() && !self.worker.has_deferred();
        self.ended |= is_done && self.slots.has_left();
        if self.waits_for_pause && self.worker.node.pause_left_ms(self.steady_ms()) == 0 {
            self.resume_paused();
        }
        self.tick_cron();
        if self.worker.evicts_in_ms().is_some() {
            self.evict_on();
        }
        let garbage = self.worker.turn.lazy_free.take_big();
        if !garbage.is_empty() {
            self.shared.garbage.send(garbage);
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

    /// The thread's time on the steady clock, in milliseconds, which advances during a turn when a
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
        let until_caught_up = if self.worker.has_deferred() { CATCH_UP_MS } else { i32::MAX };
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

    pub(crate) fn handle_messages(&mut self) {
        for _ in 0..MESSAGES_MAX {
            let Some(message) = self.mailbox.pop() else { return };
            self.handle(message);
        }
    }

    pub(crate) fn watch(&mut self, slot: usize, interest: Interest) {
        if let Some(client) = self.slots.client_mut(slot)
            && client.watched != Some(interest)
        {
            let (fd, token) = (client.transport.as_fd(), slot as u64);
            let registered = match client.watched {
                Some(_) => self.epoll.modify(fd, token, interest),
                None => self.epoll.add(fd, token, interest),
            };
            client.watched = Some(interest);
            if registered.is_err() {
                // Out of watches: no event of this client would ever arrive.
                self.close(slot);
            }
        }
    }

    pub(crate) fn handle(&mut self, message: Message<Box<Connection>>) {
        let shared = &self.shared;
        match self.slots.handle(message, || shared.thread_for_client()) {
            SlotAction::Nothing => {}
            SlotAction::Moved(slot) => self.moved(slot),
            SlotAction::Returned(slot) => self.returned(slot),
            SlotAction::Wake(slot) => self.wake(slot),
            SlotAction::Close(client) => self.end_client(client),
            SlotAction::Move(client, thread) => self.move_client(client, thread),
            SlotAction::Execute(client, origin) => self.serve_for_owner(client, origin),
            SlotAction::MoveAll => self.moves = Some(Moves { next: 0, all: true }),
            SlotAction::MoveSurplus => self.moves = Some(Moves { next: 0, all: false }),
            SlotAction::Left(thread) => shared.control.lock().thread_left(shared, thread),
            SlotAction::PauseChanged => self.resume_paused(),
            SlotAction::FollowLog => self.follow_log(),
            SlotAction::LogReached => self.log_reached(),
            SlotAction::ShutDown if self.access.is_none() => self.ends_later = true,
            SlotAction::ShutDown => self.end(),
        }
    }

    fn end(&mut self) {
        self.finish();
        self.ended = true;
    }

    /// Closes a client, and logs why if its handshake was not done. Clients that one side refused
    /// are logged at the default level, but no more than one each second: a client that tries
    /// again and again must not fill the disk.
    pub(crate) fn refuse(&mut self, slot: usize) {
        let steady_ms = self.steady_ms();
        if let Some(client) = self.slots.client(slot)
            && let Some(reason) = client.transport.refusal()
        {
            let record = &client.session.record;
            let level = match client.transport.is_refused() && steady_ms >= self.refusal_logged_ms {
                true => Level::Notice,
                false => Level::Verbose,
            };
            if level == Level::Notice {
                self.refusal_logged_ms = steady_ms + REFUSALS_LOGGED_MS;
            }
            let (address, local) = (&record.address, &record.local_address);
            let text = format!(
                "Error accepting a client connection: {reason} (addr={address} laddr={local})"
            );
            server_log::line(level, &text);
        }
        self.close(slot);
    }

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
        invalidations::forget(&self.worker, &mut client.session);
        let locks = self.shared.enter(self.access.as_deref());
        transactions::forget(&mut self.worker, &mut client.session, &locks);
        drop(locks);
        client.transport.shut_down();
        self.worker.forget_client(&client.session.record);
        self.worker.node.clients.remove(client.session.record.id);
    }

    /// Stops watching and counting a client that has left its slot.
    pub(crate) fn forget(&mut self, client: &mut Connection) {
        let id = client.session.record.id;
        if let Some(blocked) = client.state.blocked_mut() {
            self.deadlines.move_to(None, &mut blocked.due_ms, id, 0);
        }
        self.graces.forget(id);
        client.leave_queue(&self.shared.keyspace.shards);
        // A client that was only passing through is not in the epoll instance.
        let _ = self.epoll.delete(client.transport.as_fd());
        self.clients.fetch_sub(1, Ordering::Relaxed);
        self.worker.stats.clients.set(self.slots.clients() as u64);
    }

    fn tick_cron(&mut self) {
        let mut cron = std::mem::take(&mut self.cron);
        cron.run(self);
        self.cron = cron;
    }
}
