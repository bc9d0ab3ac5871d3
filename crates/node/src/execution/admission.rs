//! The checks before a command: one ordered list, [`admit`](Executor::admit).
//!
//! ```text
//!   killed -> exists -> arity -> user -> queue -> state, thread, room -> pause -> memory
//! ```
//!
//! Each step is a function that returns the request's outcome as an error if the command may not
//! run now. None of them costs an ordinary data command more than a branch: the state of the server
//! and the thread are one test of the command's admission flags against the thread's mask
//! (`command_table/admission_flags.rs`), and only a command with one of these bits is looked at
//! closely.
//!
//! All checks are made inside the gate. A command that leaves it on the way to its shards checks
//! again what may have changed since ([`recheck`](super::recheck)).
//!
//! Later checks are one line each. The redirects of a cluster (MOVED, ASK, CROSSSLOT) follow the
//! user: they need the command's keys and nothing of the server. READONLY, MASTERDOWN and
//! NOREPLICAS follow [`check_loaded`](Executor::check_loaded), each with an admission flag. A check
//! that concerns queued commands also has a line in [`queue`](Executor::queue).

use std::sync::atomic::Ordering;

use command::Flags;
use engine::{Error, ServerError, TransactionError, echo_start};
use resp::Args;

use super::access;
use super::executor::{ECHOED_BYTES_MAX, Executor};
use super::features::Features;
use super::outcome::Outcome;
use super::perform::Manner;
use crate::clients::record::flag;
use crate::command_table::admission_flags::{
    self as flags, KEPT, LOGS, NOT_LOADED, NOTIFIES, SCRIPT,
};
use crate::command_table::entry::{Call, Entry};
use crate::command_table::request::Request;
use crate::state::node::PAUSE_NONE;

/// The demands of a command, for the checks after the queue.
struct Demands {
    flags: u16,
    may_write: bool,
}

impl<L: Features> Executor<'_, L> {
    /// Executes one request and appends its reply to `out`.
    pub fn execute(&mut self, request: Request<'_>) -> Outcome {
        loop {
            let outcome = match self.admit(&request) {
                Ok((entry, manner)) => self.perform(entry, &request, manner),
                Err(outcome) => outcome,
            };
            // A command that a change of users has stopped is admitted again, by the new rules.
            if !matches!(outcome, Outcome::Paused) || self.session.knows(&self.worker.node.users) {
                return outcome;
            }
        }
    }

    /// All checks before a command, in their order. Returns the command and how it is performed.
    ///
    /// # Errors
    /// The request's outcome, if the command may not run now.
    #[inline(always)]
    fn admit(&mut self, request: &Request<'_>) -> Result<(&'static Entry, Manner), Outcome> {
        self.check_not_killed(request)?;
        let entry = self.check_exists(request)?;
        self.check_form_and_user(entry, &request.args)?;
        let demands = match self.session.transaction {
            None => {
                Demands { flags: entry.admission_flags, may_write: entry.spec.flags.may_write() }
            }
            Some(_) => self.check_transaction(entry, request)?,
        };
        let mut manner = Manner::Usual;
        if demands.flags & self.worker.admission_mask != 0 {
            manner = self.check_state_and_thread(entry, demands.flags)?;
        }
        if self.worker.node.pause.load(Ordering::Relaxed) != PAUSE_NONE
            && manner != Manner::WithoutAccess
        {
            manner = self.check_pause(entry, request, demands.may_write)?;
        }
        if self.worker.is_limited()
            && let Err(outcome) = self.check_memory(entry, request)
        {
            // The eviction may have sent events to this client: they follow the error.
            if manner == Manner::Notified && self.is_over(&outcome) {
                self.write_own_messages();
            }
            return Err(outcome);
        }
        Ok((entry, manner))
    }

    /// Killed: the client is not served any longer.
    #[inline]
    fn check_not_killed(&mut self, request: &Request<'_>) -> Result<(), Outcome> {
        let record = &self.session.record;
        if record.location.is_killed() {
            return Err(Outcome::Close);
        }
        // CLIENT LIST shows rejected commands, too.
        let last_command = request.entry.map_or(0, |entry| entry.index + 1);
        record.last_command.store(last_command, Ordering::Relaxed);
        Ok(())
    }

    /// Exists: the request names a command.
    #[inline]
    fn check_exists(&mut self, request: &Request<'_>) -> Result<&'static Entry, Outcome> {
        match request.entry {
            Some(entry) => Ok(entry),
            None => Err(self.reject_unknown(&request.args)),
        }
    }

    /// Subcommand and arity; user: the client has authenticated and its rules allow the command.
    #[inline]
    fn check_form_and_user(&mut self, entry: &Entry, args: &Args<'_>) -> Result<(), Outcome> {
        match self.find_denial(entry, args) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.reject_denied(entry, &error)),
        }
    }

    #[inline]
    fn find_denial(&mut self, entry: &Entry, args: &Args<'_>) -> Result<(), Error> {
        if entry.lacks_subcommand(args) {
            let [command, name] = [0, 1].map(|at| echo_start(args.text(at), ECHOED_BYTES_MAX));
            return Err(Error::UnknownSubcommand(name, command.to_ascii_uppercase()));
        }
        if !entry.spec.accepts(args.len()) {
            return Err(Error::Arity(entry.name.clone()));
        }
        match self.session.is_free(&self.worker.node.users) {
            true => Ok(()),
            false => access::admit(self.worker, self.session, entry, args),
        }
    }

    /// Between MULTI and EXEC: queues the command, unless it is one of those that run at once.
    #[inline(never)]
    fn check_transaction(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Result<Demands, Outcome> {
        let Some(transaction) = &self.session.transaction else { return Err(Outcome::Failed) };
        if !entry.spec.flags.has(Flags::NOT_QUEUED) {
            return Err(self.queue(entry, request));
        }
        if !matches!(entry.call, Call::Exec) {
            return Ok(Demands { flags: entry.admission_flags, may_write: false });
        }
        let scripting = &self.worker.node.scripting;
        let mut queued = transaction.admission_flags();
        if self.worker.admission_mask & KEPT != 0
            && transaction.has_script(|entry, args| scripting.declares_writes(entry, args))
        {
            queued |= KEPT;
        }
        Ok(Demands {
            flags: flags::of_exec(entry.admission_flags, queued),
            may_write: transaction.may_write(|entry, args| scripting.may_write(entry, args)),
        })
    }

    /// Queues a command for EXEC, after the checks that would refuse it.
    fn queue(&mut self, entry: &'static Entry, request: &Request<'_>) -> Outcome {
        if entry.spec.flags.has(Flags::NO_MULTI) {
            return self.reject(Some(entry), &TransactionError::NotAllowed.into());
        }
        if self.worker.mask_with_access.is_some() {
            return self.reject_busy(entry);
        }
        if self.worker.is_limited()
            && let Err(outcome) = self.check_memory(entry, request)
        {
            return outcome;
        }
        let mut asked = entry.admission_flags & self.worker.admission_mask;
        if self.worker.admission_mask & KEPT != 0
            && self.worker.node.scripting.declares_writes(entry, &request.args)
        {
            asked |= KEPT;
        }
        if let Err(outcome) = self.check_writes_kept(entry, asked) {
            return outcome;
        }
        if let Err(outcome) = self.check_loaded(entry, asked) {
            return outcome;
        }
        let Some(transaction) = &mut self.session.transaction else { return Outcome::Failed };
        let (node, steady_ms) = (&self.worker.node, self.worker.turn.steady_ms);
        let may_write = node.scripting.may_write(entry, &request.args);
        if node.is_paused(may_write, steady_ms) {
            return Outcome::Paused;
        }
        // A transaction that will not run need not be kept.
        let fails = transaction.is_aborted()
            || self.session.watched.as_ref().is_some_and(|watched| watched.watch().is_touched());
        if !fails {
            let has_room =
                transaction.push(entry, request, may_write, &node.hasher, self.worker.turns);
            let bytes = self.session.record.set_transaction(Some(transaction));
            let bytes_max = self.worker.config.client_query_buffer_limit;
            if !has_room || bytes as u64 > bytes_max {
                self.session.record.set_flag(flag::CLOSING, true);
                return Outcome::Close;
            }
        }
        self.reply_outside_run(|reply| reply.queued());
        Outcome::Done
    }

    /// State of the server and thread, for a command with flags that the thread's mask has.
    #[inline(never)]
    fn check_state_and_thread(
        &mut self,
        entry: &'static Entry,
        command_flags: u16,
    ) -> Result<Manner, Outcome> {
        if let Some(mask) = self.worker.mask_with_access {
            return self.check_without_access(entry, command_flags & mask);
        }
        let asked = command_flags & self.worker.admission_mask;
        // Mostly nothing else is asked of a write that is logged.
        if asked == LOGS && self.worker.turn.effects.has_log_room() {
            return Ok(Manner::Usual);
        }
        self.check_writes_kept(entry, asked)?;
        self.check_loaded(entry, asked)?;
        check_thread(asked)?;
        self.check_room(asked)?;
        let is_notified = asked & NOTIFIES != 0 && self.session.is_subscribed();
        Ok(if is_notified { Manner::Notified } else { Manner::Usual })
    }

    /// Busy script: the thread has no access to the keyspace, and only commands that may end the
    /// script are executed.
    fn check_without_access(&mut self, entry: &Entry, asked: u16) -> Result<Manner, Outcome> {
        if !entry.spec.flags.has(Flags::ALLOW_BUSY) {
            return Err(self.reject_busy(entry));
        }
        if asked != 0 { Err(Outcome::MainThread) } else { Ok(Manner::WithoutAccess) }
    }

    /// Refused writes: nothing can be kept on the disk.
    fn check_writes_kept(&mut self, entry: &Entry, asked: u16) -> Result<(), Outcome> {
        if asked & KEPT != 0
            && let Some(error) = self.worker.refusal_of_writes()
        {
            return Err(self.reject(Some(entry), &error));
        }
        Ok(())
    }

    /// Loading: keys are being loaded.
    fn check_loaded(&mut self, entry: &Entry, asked: u16) -> Result<(), Outcome> {
        if asked & NOT_LOADED != 0 {
            return Err(self.reject(Some(entry), &ServerError::Loading.into()));
        }
        Ok(())
    }

    /// Room: in the log for the effect of a command, and in the inboxes of threads for the events
    /// of keys.
    fn check_room(&mut self, asked: u16) -> Result<(), Outcome> {
        if asked & LOGS != 0 && !self.worker.turn.effects.has_log_room()
            || asked & NOTIFIES != 0 && self.worker.node.holds_events()
        {
            return Err(Outcome::Congested);
        }
        Ok(())
    }

    /// Pause: CLIENT PAUSE, or the end of the server.
    #[cold]
    fn check_pause(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
        may_write: bool,
    ) -> Result<Manner, Outcome> {
        let (node, steady_ms) = (&self.worker.node, self.worker.turn.steady_ms);
        let may_write = may_write
            && (!matches!(entry.call, Call::Script(_))
                || node.scripting.may_write(entry, &request.args));
        // As in Redis, a pause of everything also holds back the command that would end it. But
        // while the pause waits for a script, or a script does not end, a command that ends the
        // script runs.
        let may_end_script = node.pause_begins() || node.scripting.busy.any();
        let ends_script = may_end_script && entry.spec.flags.has(Flags::ALLOW_BUSY);
        // A SHUTDOWN that was called off replies so.
        let is_called_off = self.session.awaits_shutdown && !node.is_shutting_down();
        if node.is_paused(may_write, steady_ms) && !ends_script && !is_called_off {
            return Err(match node.refuses_all() {
                true => self.reject_busy(entry),
                false => Outcome::Paused,
            });
        }
        // The keyspace does not change during a pause, so expired keys stay until its end.
        let keeps_expired = !may_write && node.pause_left_ms(steady_ms) > 0;
        Ok(if keeps_expired { Manner::KeepsExpired } else { Manner::Usual })
    }

    /// Memory: evicts if it is over its limit.
    fn check_memory(
        &mut self,
        entry: &'static Entry,
        request: &Request<'_>,
    ) -> Result<(), Outcome> {
        L::keep_to_memory(self, entry, request).map_or(Ok(()), Err)
    }
}

/// Thread: the main thread executes the command, or this one has to be prepared for scripts.
fn check_thread(asked: u16) -> Result<(), Outcome> {
    match asked & !(NOTIFIES | LOGS | KEPT) {
        0 => Ok(()),
        SCRIPT => Err(Outcome::Script),
        _ => Err(Outcome::MainThread),
    }
}
