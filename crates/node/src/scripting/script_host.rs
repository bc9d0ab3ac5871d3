//! The host of a running script: it performs the script's commands on the shards that are locked.

use std::sync::Arc;
use std::time::Duration;

use acl::log::DenialOrigin;
use command::{Flags, Group, ShardScope};
use engine::{AclError, Error, LockedShards, ScriptError};
use parking_lot::MutexGuard;
use resp::{Args, Out, Reply};
use script::{LogLevel, ScriptKeys, ScriptReplication, Tick, VmHost};

use super::evaluation::Grant;
use crate::command_table::entry::Entry;
use crate::execution::access;
use crate::execution::accounting::{Run, account, note_error};
use crate::execution::held_calls::{HeldCalls, StaysInside};
use crate::execution::outcome::Outcome;
use crate::state::busy_scripts::{BusyScript, Held};
use crate::state::script_registry::Running;

/// Microseconds between two looks at how long a script has run, and at the clients that wait
/// meanwhile.
const LOOK_US: u64 = 1000;
/// Between two such looks of a script that waits for a shard.
const SHARD_WAIT: Duration = Duration::from_millis(5);

/// The name of a running script: the SHA-1 of its text, or the name of its function.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScriptName<'c> {
    pub(super) text: &'c [u8],
    pub(super) is_function: bool,
}

/// One run of a script.
pub(super) struct ScriptHost<'a, 's, 'c> {
    pub(super) calls: HeldCalls<'a, 's>,
    grant: Grant<'c>,
    /// The exclusive slot among scripts, if the script had to take it.
    slot: Option<MutexGuard<'c, ()>>,
    pub(super) read_only: bool,
    /// Its commands may take memory even when it is short.
    pub(super) allows_oom: bool,
    /// The keys that it has accessed so far.
    pub(super) accessed: ScriptKeys,
    /// It has written, published or changed the server: it is not begun again.
    pub(super) has_acted: bool,
    /// It needed a shard that another command holds. Its further commands have no effect.
    pub(super) is_refused: bool,
    /// The hash of a key in that shard, if the script begins again when the shard is free.
    pub(super) needed: Option<u64>,
    /// It has closed its client: by CLIENT KILL, or with its user.
    pub(super) has_closed: bool,
    pub(super) request: Args<'c>,
    pub(super) name: ScriptName<'c>,
    /// The server knows that it runs.
    is_known: bool,
    /// It has run for longer than `busy-reply-threshold`.
    is_busy: bool,
    /// When it began, in milliseconds on the steady scale.
    began_ms: i64,
    /// When its first tick came, in microseconds of the TSC.
    first_tick_us: Option<u64>,
    looked_us: u64,
    hashes: Vec<u64>,
}

impl<'a, 's, 'c> ScriptHost<'a, 's, 'c> {
    pub(super) fn new(
        calls: HeldCalls<'a, 's>,
        grant: Grant<'c>,
        request: Args<'c>,
        name: ScriptName<'c>,
    ) -> Self {
        let began_ms = calls.worker.turn.steady_ms;
        let hashes = std::mem::take(&mut calls.worker.hashes);
        calls.worker.turn.in_script = true;
        Self {
            calls,
            grant,
            slot: None,
            read_only: false,
            allows_oom: false,
            accessed: ScriptKeys::Declared,
            has_acted: false,
            is_refused: false,
            needed: None,
            has_closed: false,
            request,
            name,
            is_known: false,
            is_busy: false,
            began_ms,
            first_tick_us: None,
            looked_us: 0,
            hashes,
        }
    }

    /// Returns borrowed lists, and notes that the run is over.
    pub(super) fn end(&mut self) {
        self.calls.worker.hashes = std::mem::take(&mut self.hashes);
        self.calls.worker.turn.in_script = false;
        if self.is_known {
            self.calls.worker.node.scripting.end(self.calls.worker.index);
        }
    }

    /// The time by the TSC, in microseconds.
    fn now_us(&self) -> u64 {
        self.calls.worker.micros((self.calls.tsc)())
    }

    /// Looks about every [`LOOK_US`] at how long the script has run. Returns the time.
    fn keep_time(&mut self) -> u64 {
        let now_us = self.now_us();
        let first_tick_us = *self.first_tick_us.get_or_insert(now_us);
        if now_us.saturating_sub(self.looked_us.max(first_tick_us)) < LOOK_US {
            return now_us;
        }
        self.look(now_us, first_tick_us);
        self.now_us()
    }

    fn look(&mut self, now_us: u64, first_tick_us: u64) {
        self.looked_us = now_us;
        if !self.is_known {
            self.become_known();
        }
        // The current value: it may have been changed because this script does not end.
        let threshold_ms = self.calls.worker.node.config().scripts.busy_reply_threshold_ms;
        let ran_ms = i64::try_from(now_us.saturating_sub(first_tick_us) / 1000).unwrap_or(i64::MAX);
        if !self.is_busy && threshold_ms > 0 && ran_ms >= threshold_ms {
            self.become_busy(ran_ms);
        }
        if self.is_busy {
            // Its messages would wait for its end otherwise.
            self.calls.worker.wake_receivers();
            let time = (self.calls.serve_others)();
            // As in Redis TIME goes on from then on, and the commands of a script expire nothing.
            let turn = &mut self.calls.worker.turn;
            turn.shown_us = turn.shown_us.max(time.unix_us);
        }
    }

    /// Registers the script, which has run for a moment, so that clients can kill it.
    fn become_known(&mut self) {
        self.is_known = true;
        let running = Running {
            function: self.name.is_function.then(|| self.name.text.to_vec()),
            command: self.request.iter().map(<[u8]>::to_vec).collect(),
            began_ms: self.began_ms,
            kill_state: Arc::clone(self.grant.kill_state),
        };
        let worker = &self.calls.worker;
        worker.node.scripting.begin(worker.index, Arc::new(running));
    }

    /// Registers the script as busy: no thread waits for it from now on.
    fn become_busy(&mut self, ran_ms: i64) {
        self.is_busy = true;
        let worker = &self.calls.worker;
        let holds = match &self.calls.shards {
            LockedShards::All(_) => Held::All,
            LockedShards::Many(held) => Held::Shards(
                (0..worker.node.map.len()).filter(|shard| held.holds(*shard)).collect(),
            ),
            LockedShards::One(..) | LockedShards::Each(_) => {
                unreachable!("what a script holds may become more")
            }
        };
        let ScriptName { text, is_function } = self.name;
        let waits = self.waits();
        let script = BusyScript { thread: worker.index, is_function, waits, holds };
        worker.node.scripting.begin_busy(script, self.grant.kill_state);
        let line = format!(
            "Slow script detected: still in execution after {ran_ms} milliseconds. You can try \
             killing the script using the {} command. Script name is: {}.",
            if is_function { "FUNCTION KILL" } else { "SCRIPT KILL" },
            String::from_utf8_lossy(text)
        );
        // No thread waits for this one now.
        self.calls.host.outside(&StaysInside, |host| host.log(LogLevel::Warning, line.as_bytes()));
    }

    /// Whether it waits for shards while it holds others.
    fn waits(&self) -> bool {
        self.grant.keys != ScriptKeys::Declared || self.slot.is_some()
    }

    /// Takes the exclusive slot if the script does not have it. Returns whether it has it now, and
    /// may wait for a shard while it holds others.
    fn may_wait(&mut self) -> bool {
        if !self.waits() {
            self.slot = self.grant.slot.and_then(|slot| slot.try_lock());
        }
        self.waits()
    }

    /// The command that a script calls.
    fn find(&self, args: &Args<'_>) -> Result<&'static Entry, ScriptError> {
        let entry = self.calls.worker.table.resolve(args);
        entry.filter(|entry| !entry.lacks_subcommand(args)).ok_or(ScriptError::UnknownCommand)
    }

    /// The checks that a command from a script must pass.
    fn admit(&mut self, entry: &Entry, args: &Args<'_>) -> Result<(), Error> {
        let flags = entry.spec.flags;
        if !entry.spec.accepts(args.len()) {
            return Err(ScriptError::Arity.into());
        }
        if flags.has(Flags::NOSCRIPT) && !self.allows_noscript(entry) {
            return Err(ScriptError::NotAllowed.into());
        }
        let HeldCalls { worker, session, .. } = &mut self.calls;
        let admitted = access::admit_inside(worker, session, entry, args, DenialOrigin::Lua);
        // As in Redis an option is denied last, as if the command had begun.
        let denied_option = match admitted {
            Err(error @ Error::Acl(AclError::Option(_))) => Some(error),
            admitted => {
                admitted?;
                None
            }
        };
        if self.read_only && flags.may_write() {
            return Err(ScriptError::ReadOnly.into());
        }
        // Once it has written, it goes on to its end.
        let is_refused = self.calls.worker.out_of_memory
            && flags.has(Flags::DENYOOM)
            && !self.allows_oom
            && !self.grant.kill_state.has_written();
        if is_refused {
            return Err(Error::OutOfMemory);
        }
        if flags.has(Flags::WRITE)
            && let Some(error) = self.calls.worker.refusal_of_writes()
            && !self.grant.kill_state.has_written()
        {
            return Err(error);
        }
        denied_option.map_or(Ok(()), Err)
    }

    /// Whether the script may call a command that is denied to scripts: after DEBUG
    /// SET-DISABLE-DENY-SCRIPTS, and if it neither needs the interpreter, which is in use, nor
    /// changes the state of a transaction or of the client, which is that of the caller. In Redis
    /// scripts have a client of their own.
    #[cold]
    fn allows_noscript(&self, entry: &Entry) -> bool {
        let worker = &self.calls.worker;
        let flags = entry.spec.flags;
        worker.config.scripts.allow_noscript
            && entry.spec.group != Group::Scripting
            && !flags.has(Flags::NOT_QUEUED)
            && !flags.has(Flags::NO_MULTI)
            && !flags.has(Flags::SESSION)
            && (worker.index == 0 || !flags.has(Flags::MAIN))
    }

    /// Locks the further shards that a command needs.
    fn lock_shards(&mut self, entry: &Entry, args: &Args<'_>) -> Result<(), ScriptError> {
        let HeldCalls { worker, .. } = &mut self.calls;
        self.hashes.clear();
        entry.push_hashes(&mut self.hashes, &worker.node.hasher, args);
        let map = worker.node.map;
        let needs_all = match entry.spec.scope.with(args) {
            ShardScope::Keys => entry.changes_server(),
            scope => scope != ShardScope::KeysAndFree,
        };
        if needs_all {
            self.lock_all(map.len())?;
        }
        for at in 0..self.hashes.len() {
            let hash = self.hashes[at];
            self.lock_shard(map.shard_of(hash), Some(hash))?;
        }
        Ok(())
    }

    /// Locks all shards. Waiting for one of them while holding the others would stop all commands
    /// on keys, so a script that has done nothing yet is begun again when it can have all of them.
    fn lock_all(&mut self, shards: usize) -> Result<(), ScriptError> {
        self.accessed = ScriptKeys::All;
        let begins_again = self.grant.keys != ScriptKeys::All && !self.has_acted && !self.is_busy;
        if begins_again && let LockedShards::Many(held) = &mut self.calls.shards {
            let mut all = 0..shards;
            if !all.all(|number| held.try_add(number)) {
                return Err(ScriptError::ShardInUse);
            }
        }
        (0..shards).try_for_each(|number| self.lock_shard(number, None))
    }

    /// Locks a shard, that of a key with this hash if it is for one.
    fn lock_shard(&mut self, number: usize, hash: Option<u64>) -> Result<(), ScriptError> {
        let LockedShards::Many(held) = &mut self.calls.shards else { return Ok(()) };
        if !held.holds(number) {
            if self.accessed == ScriptKeys::Declared {
                self.accessed = ScriptKeys::Beyond;
            }
            if !held.try_add(number) {
                self.wait_for(number, hash)?;
            }
            if self.is_busy {
                let worker = &self.calls.worker;
                worker.node.scripting.busy.add(worker.index, number);
            }
        }
        // Clients that are blocked on undeclared keys are served afterwards.
        if self.calls.shards.shard(number).has_waiters() {
            self.calls.worker.turn.effects.set_watched(true);
        }
        Ok(())
    }

    /// Waits for a shard while it holds others, if it may.
    fn wait_for(&mut self, number: usize, hash: Option<u64>) -> Result<(), ScriptError> {
        if !self.may_wait() {
            return Err(ScriptError::ShardInUse);
        }
        if self.is_busy {
            let worker = &self.calls.worker;
            worker.node.scripting.busy.waits(worker.index);
        }
        loop {
            if let Some(error) = self.calls.worker.node.scripting.busy.holder(number) {
                return Err(error);
            }
            let LockedShards::Many(held) = &mut self.calls.shards else { return Ok(()) };
            if held.add(number, SHARD_WAIT) {
                return Ok(());
            }
            if hash.is_some() && self.begins_again() {
                self.needed = hash;
                return Err(ScriptError::ShardInUse);
            }
            self.keep_time();
            if self.grant.kill_state.is_killed() {
                return Err(ScriptError::Killed);
            }
        }
    }

    /// Whether the script may begin again when a shard that it needs is free, so that its thread
    /// can serve others until then.
    fn begins_again(&self) -> bool {
        let has_acted = self.has_acted || self.grant.kill_state.has_written();
        self.grant.begins_again && !has_acted && !self.is_busy
    }

    /// Performs one command of the script.
    fn perform(&mut self, args: Args<'_>, resp3: bool, out: &mut Out) -> Result<(), Error> {
        if self.is_refused {
            return Err(ScriptError::ShardInUse.into());
        }
        let entry = self.find(&args)?;
        if let Err(error) = self.admit(entry, &args) {
            self.calls.worker.stats.commands[usize::from(entry.index)].rejected.add(1);
            return Err(error);
        }
        if let Err(error) = self.lock_shards(entry, &args) {
            self.is_refused = error == ScriptError::ShardInUse;
            return Err(error.into());
        }
        if entry.spec.flags.has(Flags::WRITE) && !self.grant.kill_state.write() {
            return Err(ScriptError::Killed.into());
        }
        let flags = entry.spec.flags;
        self.has_acted |= flags.may_write() || flags.has(Flags::ADMIN);
        let start = (self.calls.tsc)();
        let mark = out.mark();
        let session = &mut self.calls.session;
        let was_resp3 = std::mem::replace(&mut session.resp3, resp3);
        let outcome = self.calls.call(out, entry, args, &self.hashes);
        let outcome = self.calls.end_at_once(outcome);
        let end = (self.calls.tsc)();
        let tsc = end.wrapping_sub(start);
        let HeldCalls { worker, session, shards, .. } = &mut self.calls;
        session.resp3 = was_resp3;
        if matches!(entry.spec.scope, ShardScope::Exclusive) {
            worker.mark_awaited_changed(shards);
        }
        let failed = matches!(outcome, Outcome::Failed);
        self.has_closed |= matches!(outcome, Outcome::Close);
        if failed {
            note_error(worker, out, mark);
        }
        let (record, reply) = (&*session.record, Some((&*out, mark)));
        let run = || Run { record, entry, args: &args, reply, end_tsc: Some(end) };
        account(worker, entry, !failed, tsc, run);
        Ok(())
    }
}

impl VmHost for ScriptHost<'_, '_, '_> {
    fn call(&mut self, args: Args<'_>, resp3: bool, out: &mut Out) {
        if let Err(error) = self.perform(args, resp3, out) {
            let text = error.text();
            // A script that was refused a shard begins again, or that is its own error.
            if !self.is_refused {
                self.calls.worker.stats.note_error(&text);
            }
            Reply::new(out, resp3).error(&text);
        }
    }

    fn log(&mut self, level: LogLevel, line: &[u8]) {
        let worker = &mut *self.calls.worker;
        worker.script_log.push(worker.config.loglevel, level, line);
    }

    fn acl_check(&mut self, args: Args<'_>) -> Option<bool> {
        let entry = self.find(&args).ok()?;
        Some(access::check(self.calls.session.user(), entry, &args).is_ok())
    }

    fn set_replication(&mut self, targets: ScriptReplication) {
        // Only the append-only file reads the log.
        self.calls.worker.turn.effects.set_logged(targets.aof);
    }

    fn clock(&mut self) -> Duration {
        Duration::from_micros(self.now_us())
    }

    fn seed(&mut self) -> u64 {
        self.calls.worker.random.next_u64()
    }

    fn tick(&mut self) -> Tick {
        let now_us = self.keep_time();
        if self.grant.kill_state.is_killed() {
            let line = b"Lua script killed by user with SCRIPT KILL.";
            self.log(LogLevel::Notice, line);
            return Tick::Kill;
        }
        if self.is_refused {
            return Tick::Kill;
        }
        Tick::Continue(Duration::from_micros(now_us))
    }
}
