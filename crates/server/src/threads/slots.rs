//! The clients of one thread, and how they move from thread to thread: a state machine that answers
//! each message with one [`SlotAction`]. No input or output happens here.
//!
//! ```text
//!             Move               MoveToMain
//!     Free ---------> Here ----------------------> OnMain   on the main thread
//!       ^               |  <----------------------  |
//!       |   remove      |        Return             |
//!       +---------------+---------------------------+ Return of a killed client, or to a thread
//!                                                     that leaves or is parked
//! ```
//!
//! While the thread executes a request of a client that is `Here`, the slot is `Executing` and the
//! executing code has the client: for messages it is as if it were on the main thread.
//!
//! Invariants, each with a model in `tests/models`:
//! - A client is in one thread's slots or in one message, never in two and never in none, until it
//!   is closed, once. A slot that is `OnMain` stays reserved for the client that will return.
//! - A kill reaches its client: `Close` finds it `Here`, or the thread that gets it next, by `Move`
//!   or `Return`, finds its location marked. In the same way `Wake` reaches its client, or the
//!   thread that gets it next finds its wait over.
//! - Only the main thread gives clients to other threads, and only it orders them to leave. So its
//!   messages to a thread arrive before its `Leave`, and a thread that leaves passes its clients to
//!   the main thread, which never ends. Nothing reaches a thread that has ended.
//! - A parked thread passes its clients to the main thread in the same way. Clients sent to it
//!   before `Park` arrive before it, so none of them stays.
//! - A thread that leaves has left when the last of its clients has returned from `OnMain` and was
//!   passed on.
//!
//! This module does not watch sockets, count clients, or choose the thread for a client.

use super::message::{Message, ReturnAddress};

/// The interface of a client to the slots.
pub trait SlotClient {
    /// The part of a client that stays in its slot while it is on the main thread.
    type Ticket;
    /// A ticket for the client, which leaves its slot.
    fn ticket(&self) -> Self::Ticket;
    /// The client returns and gets its ticket, which may have changed.
    fn redeem(&mut self, ticket: Self::Ticket);
    /// Its number, never used again.
    fn id(&self) -> u64;
    /// Makes this the client's location. Returns whether the client must be closed instead.
    fn take(&self, thread: usize, slot: usize) -> bool;
    /// Whether the client must be closed.
    fn is_killed(&self) -> bool;
}

enum ClientSlot<C: SlotClient> {
    Free,
    Here(C),
    /// Of a client for which something is executed on this thread.
    Executing,
    /// Of a client that will be back.
    OnMain(C::Ticket),
}

/// The rest of a message, for the thread.
#[derive(Debug)]
pub enum SlotAction<C> {
    Nothing,
    /// A client has moved into this slot: watch it. Its wait for a key may be over.
    Moved(usize),
    /// See whether the wait of the client in this slot is over, for a key or a shard.
    Wake(usize),
    /// A client has returned to this slot from the main thread: send its replies and proceed with
    /// it. Its wait for a key may be over.
    Returned(usize),
    /// Close this client, which is in no slot.
    Close(C),
    /// Move this client, which is in no slot, to another thread.
    Move(C, usize),
    /// Execute the queue of another thread's client and return it.
    Execute(C, ReturnAddress),
    /// [Take](Slots::remove) every client out of its slot and move it to its
    /// [destination](Slots::destination).
    MoveAll,
    /// The same with the clients that are more than the thread's share.
    MoveSurplus,
    Left(usize),
    PauseChanged,
    FollowLog,
    /// The log has advanced: release the clients that waited for that.
    LogReached,
    ShutDown,
}

/// The clients of one thread.
pub struct Slots<C: SlotClient> {
    thread: usize,
    entries: Vec<ClientSlot<C>>,
    free: Vec<usize>,
    /// Slots that are [`ClientSlot::OnMain`].
    on_main: usize,
    leaving: bool,
    parked: bool,
}

/// The number of the main thread.
const MAIN: usize = 0;

impl<C: SlotClient> Slots<C> {
    pub fn new(thread: usize) -> Self {
        Self {
            thread,
            entries: Vec::new(),
            free: Vec::new(),
            on_main: 0,
            leaving: false,
            parked: false,
        }
    }

    /// Does the part of a message that concerns the slots, and returns the rest. `chosen` is the
    /// thread for a new client; only the main thread calls it.
    pub fn handle(&mut self, message: Message<C>, chosen: impl FnOnce() -> usize) -> SlotAction<C> {
        match message {
            Message::Move(client) => self.take(client, chosen),
            Message::Return(client, slot) => self.take_back(client, slot),
            Message::Close { id, slot } => match self.client(slot) {
                Some(client) if client.id() == id => {
                    self.remove(slot).map_or(SlotAction::Nothing, SlotAction::Close)
                }
                // The client is closed, or the thread that gets it next sees that it is killed.
                _ => SlotAction::Nothing,
            },
            Message::Wake { id, slot } => match self.client(slot) {
                Some(client) if client.id() == id => SlotAction::Wake(slot),
                // The client is closed, or the thread that gets it next checks its wait.
                _ => SlotAction::Nothing,
            },
            Message::MoveToMain(client, origin) => SlotAction::Execute(client, origin),
            // The message may be late: there may be no other thread left.
            Message::MoveAll if self.destination(chosen) == self.thread => SlotAction::Nothing,
            Message::MoveAll => SlotAction::MoveAll,
            Message::MoveSurplus => SlotAction::MoveSurplus,
            Message::Left(thread) => SlotAction::Left(thread),
            Message::Park => {
                self.parked = true;
                SlotAction::MoveAll
            }
            Message::Resume => {
                self.parked = false;
                SlotAction::Nothing
            }
            Message::Leave => {
                self.leaving = true;
                SlotAction::MoveAll
            }
            Message::PauseChanged => SlotAction::PauseChanged,
            // The main thread checks for signals in each turn.
            Message::Signalled => SlotAction::Nothing,
            Message::FollowLog => SlotAction::FollowLog,
            Message::LogReached => SlotAction::LogReached,
            Message::ShutDown => SlotAction::ShutDown,
        }
    }

    /// The thread that a client moves to from here: `chosen` by the main thread, the only one that
    /// knows which threads will still be there.
    pub fn destination(&self, chosen: impl FnOnce() -> usize) -> usize {
        if self.thread == MAIN { chosen() } else { MAIN }
    }

    fn take(&mut self, client: C, chosen: impl FnOnce() -> usize) -> SlotAction<C> {
        let stays = self.thread != MAIN && !self.passes_on();
        let home = if stays { self.thread } else { self.destination(chosen) };
        if home != self.thread {
            return SlotAction::Move(client, home);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(ClientSlot::Free);
            self.entries.len() - 1
        });
        if client.take(self.thread, slot) {
            self.free.push(slot);
            return SlotAction::Close(client);
        }
        self.entries[slot] = ClientSlot::Here(client);
        SlotAction::Moved(slot)
    }

    fn take_back(&mut self, client: C, slot: usize) -> SlotAction<C> {
        let killed = client.is_killed();
        self.restore(slot, client);
        if !killed && !self.passes_on() {
            return SlotAction::Returned(slot);
        }
        match self.remove(slot) {
            Some(client) if killed => SlotAction::Close(client),
            Some(client) => SlotAction::Move(client, MAIN),
            None => SlotAction::Nothing,
        }
    }

    /// Takes out the client that is here in a slot, and leaves this instead.
    #[inline]
    fn replace_client(&mut self, slot: usize, left: ClientSlot<C>) -> Option<C> {
        let entry =
            self.entries.get_mut(slot).filter(|entry| matches!(entry, ClientSlot::Here(_)))?;
        match std::mem::replace(entry, left) {
            ClientSlot::Here(client) => Some(client),
            _ => None,
        }
    }

    /// Takes a client out for a while; its slot stays reserved until it is back.
    pub fn send_to_main(&mut self, slot: usize) -> Option<C> {
        let client = self.replace_client(slot, ClientSlot::Free)?;
        self.entries[slot] = ClientSlot::OnMain(client.ticket());
        self.on_main += 1;
        Some(client)
    }

    /// Puts a returned client back into its slot, which is reserved for it.
    fn restore(&mut self, slot: usize, mut client: C) {
        let entry = &mut self.entries[slot];
        assert!(matches!(entry, ClientSlot::OnMain(_)), "a client comes back to its own slot");
        if let ClientSlot::OnMain(ticket) = std::mem::replace(entry, ClientSlot::Free) {
            client.redeem(ticket);
        }
        *entry = ClientSlot::Here(client);
        self.on_main -= 1;
    }

    /// The ticket in a slot whose client is on the main thread.
    pub fn ticket_mut(&mut self, slot: usize) -> Option<&mut C::Ticket> {
        match self.entries.get_mut(slot) {
            Some(ClientSlot::OnMain(ticket)) => Some(ticket),
            _ => None,
        }
    }

    /// Takes a client out while a request of it is executed; its slot stays reserved. Messages do
    /// not find it, as if it were on the main thread, so they are checked afterwards.
    #[inline]
    pub fn take_out(&mut self, slot: usize) -> Option<C> {
        self.replace_client(slot, ClientSlot::Executing)
    }

    /// Puts a client back that was taken out.
    #[inline]
    pub fn put_back(&mut self, slot: usize, client: C) {
        if let Some(entry) = self.entries.get_mut(slot) {
            debug_assert!(
                matches!(entry, ClientSlot::Executing),
                "a client comes back to its own slot"
            );
            *entry = ClientSlot::Here(client);
        }
    }

    /// Takes a client out for good.
    pub fn remove(&mut self, slot: usize) -> Option<C> {
        let client = self.replace_client(slot, ClientSlot::Free)?;
        self.free.push(slot);
        Some(client)
    }

    /// The client in a slot, unless it is on the main thread.
    #[inline]
    pub fn client(&self, slot: usize) -> Option<&C> {
        match self.entries.get(slot) {
            Some(ClientSlot::Here(client)) => Some(client),
            _ => None,
        }
    }

    #[inline]
    pub fn client_mut(&mut self, slot: usize) -> Option<&mut C> {
        match self.entries.get_mut(slot) {
            Some(ClientSlot::Here(client)) => Some(client),
            _ => None,
        }
    }

    /// Clients in slots, including those that are on the main thread.
    pub fn clients(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Slots, used or not: their numbers are smaller.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The clients that are here, with their slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut C)> {
        self.entries.iter_mut().enumerate().filter_map(|(slot, entry)| match entry {
            ClientSlot::Here(client) => Some((slot, client)),
            _ => None,
        })
    }

    /// Whether clients will come back.
    pub fn has_clients_on_main(&self) -> bool {
        self.on_main > 0
    }

    /// Whether the thread takes no clients and passes on those it has.
    pub fn passes_on(&self) -> bool {
        self.leaving || self.parked
    }

    /// Whether the thread has received the order to leave.
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Whether the thread has received the order to leave and has no clients left.
    pub fn has_left(&self) -> bool {
        self.leaving && self.clients() == 0
    }
}
