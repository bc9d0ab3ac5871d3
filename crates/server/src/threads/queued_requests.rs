//! The requests in the queues of clients that were suspended: executed when a client proceeds, when
//! the next turn begins, or on the main thread.

use std::collections::VecDeque;

use node::host::GatedHost;
use node::{Executor, Outcome, Request, ShardLocks};
use resp::out::Mark;
use resp::{Args, Span};

use super::client_state::ClientState;
use super::connection::{Connection, OwnedRequest};
use super::execute::{ExecutionContext, OUT_BYTES_MAX, OUT_KEPT_BYTES_MAX};
use super::io_thread::IoThread;
use super::message::{Message, ReturnAddress};
use super::output::warn_over;
use super::shard_wait::ShardWait;
use crate::keyspace::thread_waits::Waited;

/// Which requests of a queue are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    /// Those at the front that only the main thread may execute.
    OfMainThread,
}

/// A busy script is exclusive, and the thread must go on without access to the keyspace.
struct NoAccess;

impl IoThread {
    /// Proceeds with a client that was suspended: executes its queue, sends the replies, and acts
    /// on the state that follows.
    pub(super) fn proceed(&mut self, slot: usize) {
        let Some(mut client) = self.slots.take_out(slot) else { return };
        self.work_off_queue(&mut client, Which::All);
        self.slots.put_back(slot, client);
        self.look_at_messages(slot);
        self.send_and_act(slot);
    }

    /// Proceeds with postponed clients, after the requests of the turn. They have a time of their
    /// own: otherwise a slow command before them would postpone all but one of them again, to a
    /// turn in which there may be another slow command.
    pub(super) fn proceed_with_postponed(&mut self) {
        let since_tsc = self.worker.last_tsc();
        for _ in 0..self.postponed.len() {
            let Some(slot) = self.postponed.pop_front() else { return };
            let Some(client) = self.slots.client(slot) else { continue };
            let may_send = !client.throttled && client.awaits_log.is_none();
            if matches!(client.state, ClientState::Postponed) && may_send {
                self.proceed(slot);
            }
            if self.is_awaited(since_tsc) {
                break;
            }
        }
    }

    /// Executes for another thread the requests that only the main thread may execute, and returns
    /// the client. Its own thread executes those that follow: they may take long, and every thread
    /// needs the main thread.
    pub(super) fn serve_for_owner(&mut self, mut client: Box<Connection>, origin: ReturnAddress) {
        self.work_off_queue(&mut client, Which::OfMainThread);
        // A limit that was set applies when the reply leaves.
        self.keep_clients_small();
        self.shared.send(origin.thread, Message::Return(client, origin.slot));
    }

    fn work_off_queue(&mut self, client: &mut Connection, which: Which) {
        let done = self.with_scripts(None, |mut context| context.take_requests(client, which));
        if let Err(NoAccess) = done {
            self.without_access(|thread| {
                let _ =
                    thread.with_scripts(None, |mut context| context.take_requests(client, which));
            });
        }
        self.worker.publish_counters();
        self.wake_shard_waiters();
        self.free_removed();
    }

    /// Sends pending output to a client whose queue was executed, and acts on its state.
    pub(super) fn send_and_act(&mut self, slot: usize) {
        if self.close_if_over(slot) {
            return;
        }
        if let Some(client) = self.slots.client_mut(slot) {
            // Sending must not schedule the client again: its state is acted on below.
            client.throttled = false;
        }
        if self.log.is_on() {
            self.defer_output(slot);
        }
        self.send_pending(slot);
        self.act_on_state(slot);
    }

    /// Does what a client's new state asks for.
    pub(super) fn act_on_state(&mut self, slot: usize) {
        let Some(client) = self.slots.client(slot) else { return };
        match client.state {
            ClientState::Reading => {
                if client.has_more_to_do() {
                    self.look_again(slot);
                }
            }
            ClientState::Batched => {}
            ClientState::Postponed => {
                // A throttled client continues when more of its output has left.
                if !client.throttled && client.awaits_log.is_none() {
                    self.look_again(slot);
                }
                self.after_send(slot);
            }
            ClientState::Blocked(_) => self.begin_wait(slot),
            ClientState::AwaitsShard => self.begin_shard_wait(slot),
            ClientState::GracePeriod(_) => self.begin_grace(slot),
            ClientState::Paused => self.waits_for_pause = true,
            ClientState::OnMainThread => self.send_to_main(slot),
            ClientState::Congested => self.wait_for_room(slot),
            ClientState::Closing => self.after_send(slot),
        }
    }

    /// Proceeds with clients that waited for the end of CLIENT PAUSE, as far as it has ended.
    pub(super) fn resume_paused(&mut self) {
        if !std::mem::take(&mut self.waits_for_pause) {
            return;
        }
        for slot in 0..self.slots.len() {
            match self.slots.client(slot).map(|client| &client.state) {
                Some(ClientState::Paused) => self.proceed(slot),
                Some(ClientState::Blocked(_)) => self.schedule(slot),
                _ => {}
            }
        }
    }
}

impl ExecutionContext<'_> {
    /// Executes a client's queued requests until the queue is empty, a request suspends the client,
    /// or the client's time in this turn is used. The replies join what the client has to send.
    fn take_requests(&mut self, client: &mut Connection, which: Which) -> Result<(), NoAccess> {
        client.enter(Outcome::Done);
        let since_tsc = self.worker.last_tsc();
        let units = self.worker.turn.effects.written_units();
        let mut slow_us = 0;
        self.worker.begin_requests();
        while let Some(owned) = client.queue.pop_front() {
            let Ok(outcome) = self.try_request(client, &owned, which) else {
                client.queue.push_front(owned);
                client.keep(self.out, Mark::default(), self.out.mark());
                self.out.clear();
                client.log_wrote = true;
                self.worker.end_requests(&mut client.session);
                return Err(NoAccess);
            };
            let fills_inboxes = self.worker.take_fills_inboxes();
            slow_us = client.slow_us.max(slow_us);
            match outcome {
                Outcome::Done | Outcome::Failed => client.commands += 1,
                Outcome::Close => client.queue.clear(),
                Outcome::MainThread
                | Outcome::Script
                | Outcome::Paused
                | Outcome::ShardInUse
                | Outcome::NotExclusive
                | Outcome::Postponed
                | Outcome::Congested => client.queue.push_front(owned),
                Outcome::Block(_) | Outcome::GracePeriod(_) => {}
            }
            client.enter(outcome);
            if fills_inboxes && matches!(client.state, ClientState::Reading) {
                client.enter(Outcome::Congested);
            }
            let goes_on = matches!(client.state, ClientState::Reading) && !client.queue.is_empty();
            if goes_on && self.worker.has_used_turn(since_tsc) {
                client.enter(Outcome::Postponed);
            }
            if client.state.is_suspended() {
                break;
            }
            if self.out.bytes.len() > OUT_BYTES_MAX {
                if self.shared.log.replies_wait() {
                    client.enter(Outcome::Postponed);
                    break;
                }
                self.send_part(client);
            }
        }
        if matches!(client.state, ClientState::Reading)
            && let Some(error) = client.broken.take()
        {
            let outcome = self.worker.refuse(&error, &client.session, self.out);
            client.enter(outcome);
        }
        client.slow_us = slow_us.max(client.slow_us);
        client.log_wrote |= self.worker.turn.effects.written_units() != units;
        self.worker.end_requests(&mut client.session);
        client.keep(self.out, Mark::default(), self.out.mark());
        self.out.clear_to(OUT_KEPT_BYTES_MAX);
        if client.queue.is_empty() {
            client.queue = VecDeque::new();
        }
        client.publish(self.worker, 0, 0);
        Ok(())
    }

    /// Tries one request, and notes how the client waits for shards then.
    fn try_request(
        &mut self,
        client: &mut Connection,
        owned: &OwnedRequest,
        which: Which,
    ) -> Result<Outcome, NoAccess> {
        let spans: Vec<Span> = (0..owned.args.len()).map(Span::own).collect();
        let args = Args::new(&[], &spans, &owned.args);
        let entry = self.worker.table.resolve(&args);
        if which == Which::OfMainThread && !self.worker.is_for_main(&client.session, entry) {
            return Ok(Outcome::Postponed);
        }
        if self.is_held(client) {
            let wait = client.shard_wait.as_ref().map_or_else(ShardWait::begin, ShardWait::outside);
            client.wait_for_shard(&self.shared.keyspace.shards, Some(wait));
            return Ok(Outcome::ShardInUse);
        }
        let slow_us_before = std::mem::take(&mut client.slow_us);
        let id = client.session.record.id;
        let waited = client.shard_wait.clone();
        let locks = self.enter(waited.as_ref().map_or_else(Waited::default, |it| it.waited(id)));
        let locks = locks.ok_or(NoAccess)?;
        let hasher = self.worker.turn.hasher;
        let hash = entry.and_then(|entry| entry.single_key_hash(&args, |key| hasher.hash(key)));
        self.worker.go_on(locks.tsc(), || locks.time());
        self.out.bytes_max = client.out_bytes_max(&self.worker.config);
        let mut executor = Executor {
            worker: self.worker,
            session: &mut client.session,
            locks: &locks,
            host: GatedHost::new(self.shared),
            out: self.out,
        };
        executor.begin_batch();
        let began_tsc = executor.worker.last_tsc();
        let outcome = executor.execute(Request { entry, args, hash });
        client.slow_us = executor.worker.slow_us_since(began_tsc);
        let shards = &self.shared.keyspace.shards;
        let wait = match outcome {
            Outcome::ShardInUse | Outcome::NotExclusive => {
                // It has not begun yet.
                client.slow_us = slow_us_before.max(client.slow_us);
                let before = waited.unwrap_or_else(ShardWait::begin);
                Some(before.after_try(shards, &locks))
            }
            // It has not been tried yet.
            Outcome::MainThread | Outcome::Script => waited,
            _ => None,
        };
        if wait.is_none() {
            // It was executed, or starts from the beginning.
            client.session.record.forget_visited();
            client.session.forget_script_needs();
        }
        client.wait_for_shard(shards, wait);
        Ok(outcome)
    }

    /// Sends a part of long replies. A client that does not take them is marked as killed, and its
    /// owner closes it.
    fn send_part(&mut self, client: &mut Connection) {
        let bytes_max = 2 * self.out.bytes.len();
        client.keep(self.out, Mark::default(), self.out.mark());
        self.out.clear();
        let sent = client.send_pending(bytes_max);
        let over = client.is_over(self.worker);
        if over {
            self.worker.stats.output_limit_closes.add(1);
            warn_over(client);
        }
        if over || sent.is_err() {
            self.worker.node.kill(&client.session.record);
            client.queue.clear();
        }
    }
}
