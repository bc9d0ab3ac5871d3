//! The record of a write: exactly one effect for each write, whatever the command.
//!
//! An effect is written to the log once, in the form in which it is replayed, when it is sealed:
//! under the lock of the shards that it changed, so the log has the order of memory. Without a
//! consumer, a write costs one branch. Tests read each as an [`Effect`].
//!
//! Keyspace events are collected as they happen, including those of reads, and sent before the
//! shards are unlocked. So are changed keys for tracking clients, which are recorded where values
//! change.

use std::collections::BTreeSet;

use crate::event::{EventClasses, KeyspaceEvent, KeyspaceNotice};
use crate::log::{CommandWriter, LogPosition, LogUnit, LoggedCommands, WriteLog};
use crate::touched::Touched;

/// A key was added.
const NEW: KeyspaceEvent = KeyspaceEvent::new('n', "new");
/// A read did not find its key.
const MISSED: KeyspaceEvent = KeyspaceEvent::new('m', "keymiss");

/// One write: by a command, by all commands of a transaction, or by an expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Database number.
    pub db: usize,
    /// The events and their keys, in order.
    pub events: Vec<(KeyspaceEvent, Vec<u8>)>,
    /// The commands that repeat the change; several are one transaction.
    pub commands: Vec<Replay>,
    /// Milliseconds since 1970.
    pub unix_ms: i64,
}

/// A command to replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Database number.
    pub db: usize,
    /// Its arguments, name first.
    pub args: Vec<Vec<u8>>,
}

/// The command that is running, as a client has sent it.
pub trait SentCommand {
    /// Its bytes, if they are those that [`write`](Self::write) leads to.
    fn encoded(&self) -> Option<&[u8]>;

    /// Writes its arguments.
    fn write(self, replay: &mut CommandWriter<'_>);
}

impl<F: FnOnce(&mut CommandWriter<'_>)> SentCommand for F {
    fn encoded(&self) -> Option<&[u8]> {
        None
    }

    fn write(self, replay: &mut CommandWriter<'_>) {
        self(replay);
    }
}

/// Effects are collected, for tests.
const CONSUMED: u8 = 1;
/// Clients may be blocked on keys that the running command changes.
const WATCHED: u8 = 1 << 1;
/// Clients are notified of some classes of events.
const NOTIFIED: u8 = 1 << 2;
/// Changed keys are recorded for tracking clients.
const TOUCHED: u8 = 1 << 3;
/// The keys that the running command reads are remembered when it ends.
const REMEMBERED: u8 = 1 << 4;
/// Effects are logged.
const LOGGED: u8 = 1 << 5;
/// Either of both: commands for a replay are written.
const REPLAYED: u8 = CONSUMED | LOGGED;

/// Collects the effects of a turn.
#[derive(Debug, Default)]
pub struct Effects {
    /// Which of the bits above are set: why changes are recorded, and what remains to be done when
    /// the running command ends.
    wanted: u8,
    /// Changed keys, for clients that track keys.
    touched: Touched,
    /// The event classes that clients are notified of.
    notified: EventClasses,
    /// Events of these classes that are not sent yet.
    notices: Vec<KeyspaceNotice>,
    /// Changed keys, each with the event's database, recorded while clients are blocked.
    changed: Vec<(Option<usize>, Vec<u8>)>,
    /// How many of the first changed keys belong to commands of a transaction that have ended. Each
    /// key is there once, and only if a client may wait for it.
    ended: usize,
    /// The same keys, for lookups.
    ended_keys: BTreeSet<(usize, Vec<u8>)>,
    events: Vec<(KeyspaceEvent, Vec<u8>)>,
    /// The running command has recorded a change to be replayed.
    noted: bool,
    eventless: bool,
    /// The commands that replay the running command, if not the request itself.
    replay: LoggedCommands,
    /// The commands that the unfinished transaction has produced so far.
    unit: LoggedCommands,
    /// The databases of its first and its last command, and whether there is another one.
    unit_dbs: (usize, usize, bool),
    /// Commands have written a part of it, not only expired keys.
    unit_is_written: bool,
    /// The effect of an unfinished transaction.
    transaction: Option<Effect>,
    /// A script has turned replaying off.
    unlogged: bool,
    /// The unfinished transaction will not be replayed.
    is_abandoned: bool,
    /// The nesting depth of unfinished transactions and scripts.
    depth: u32,
    collected: Vec<Effect>,
    log: Option<Box<dyn WriteLog>>,
    /// The number of units appended to logs that commands have written.
    written_units: u64,
}

impl Effects {
    /// Sets whether effects are collected for [`take`](Self::take).
    pub fn set_consumed(&mut self, consumed: bool) {
        self.set(CONSUMED, consumed);
    }

    /// Sets the log, if effects are logged. No command is running.
    pub fn set_log(&mut self, log: Option<Box<dyn WriteLog>>) {
        self.set(LOGGED, log.is_some());
        self.log = log;
    }

    /// Whether effects are logged.
    pub fn is_logged(&self) -> bool {
        self.is(LOGGED)
    }

    /// The number of units appended to logs that commands have written. Units that only remove keys
    /// and fields which were found expired do not count: the client that met one has written
    /// nothing, and loses nothing if the unit is lost.
    pub fn written_units(&self) -> u64 {
        self.written_units
    }

    /// The position after the last unit in the log, if any.
    pub fn log_position(&self) -> Option<LogPosition> {
        self.log.as_ref().and_then(|log| log.position())
    }

    /// The position after the last unit of all threads in the log, if there is one.
    pub fn log_end(&self) -> Option<LogPosition> {
        self.log.as_ref().and_then(|log| log.end())
    }

    /// Whether the log has room for the output of a command, or there is no log.
    pub fn has_log_room(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.has_room())
    }

    /// Sets whether changed keys are recorded for [`take_changed`](Self::take_changed).
    pub fn set_watched(&mut self, watched: bool) {
        self.set(WATCHED, watched);
    }

    /// Sets the event classes that clients are notified of.
    pub fn set_notified(&mut self, classes: EventClasses) {
        self.notified = classes;
        self.set(NOTIFIED, !classes.is_empty());
    }

    /// Whether there is work before the shards are unlocked: events to send, changed keys for
    /// tracking clients, or reads to remember.
    #[inline]
    pub fn has_pending_notifications(&self) -> bool {
        let news = self.wanted & (NOTIFIED | TOUCHED | REMEMBERED);
        news != 0 && (news != NOTIFIED || !self.notices.is_empty())
    }

    /// Whether there are events to send.
    pub fn has_notices(&self) -> bool {
        self.is(NOTIFIED) && !self.notices.is_empty()
    }

    /// Records a changed key for tracking clients.
    #[inline(never)]
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.touched.push(key);
        self.set(TOUCHED, true);
    }

    /// Records that no command changed the last key: it expired or was evicted.
    pub(crate) fn touched_without_command(&mut self) {
        self.touched.mark_last();
    }

    /// Records that all keys have changed: databases were emptied or swapped.
    pub fn touch_all(&mut self) {
        self.touched.set_all();
        self.set(TOUCHED, true);
    }

    /// The keys that changed since the last call, while keys were tracked, or `None` if none did.
    #[inline]
    pub fn take_touched(&mut self) -> Option<Touched> {
        if !self.is(TOUCHED) {
            return None;
        }
        self.set(TOUCHED, false);
        Some(std::mem::take(&mut self.touched))
    }

    /// Returns a list taken before, so that its room is reused.
    pub fn reuse_touched(&mut self, touched: Touched) {
        if !self.is(TOUCHED) {
            self.touched = touched.emptied();
        }
    }

    /// Sets whether the keys that the running command reads are remembered when it ends.
    pub fn set_remembered(&mut self, remembered: bool) {
        self.set(REMEMBERED, remembered);
    }

    /// Whether the keys that the running command reads are remembered when it ends.
    pub fn is_remembered(&self) -> bool {
        self.is(REMEMBERED)
    }

    /// The events to send, in order, since the last call.
    pub fn take_notices(&mut self) -> Vec<KeyspaceNotice> {
        std::mem::take(&mut self.notices)
    }

    fn notify(&mut self, db: Option<usize>, event: KeyspaceEvent, key: &[u8]) {
        if self.notified.contains(event.class) {
            self.notices.push(KeyspaceNotice { db, name: event.name, key: key.to_vec() });
        }
    }

    /// Records that a key was added to a database.
    #[inline]
    pub(crate) fn note_new(&mut self, db: u32, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(Some(db as usize), NEW, key);
        }
    }

    /// Drops the event of the last new key, which replaced an old one.
    pub fn take_back_new(&mut self) {
        self.take_back(NEW.name);
    }

    /// Drops the last event if it has this name.
    pub fn take_back(&mut self, name: &str) {
        if self.notices.last().is_some_and(|notice| notice.name == name) {
            self.notices.pop();
        }
    }

    /// Records an event that changed nothing: only notified clients see it.
    pub fn note_unchanged(&mut self, event: KeyspaceEvent, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(event.db, event, key);
        }
    }

    /// Records that a read found no key.
    #[inline]
    pub fn note_miss(&mut self, db: u32, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(Some(db as usize), MISSED, key);
        }
    }

    fn set(&mut self, bit: u8, on: bool) {
        self.wanted = if on { self.wanted | bit } else { self.wanted & !bit };
    }

    fn is(&self, bit: u8) -> bool {
        self.wanted & bit != 0
    }

    /// Records a changed key while clients are blocked.
    pub fn change(&mut self, db: Option<usize>, key: &[u8]) {
        if self.is(WATCHED) {
            self.changed.push((db, key.to_vec()));
        }
    }

    /// Ends a command on this database within a transaction, whose next command may use another
    /// database. Of the changed keys, only those that are `awaited` are kept, each once for the
    /// whole transaction.
    pub fn end_command(&mut self, db: usize, awaited: impl FnMut(&[u8]) -> bool) {
        if self.changed.len() > self.ended {
            self.keep_awaited(db, awaited);
        }
    }

    fn keep_awaited(&mut self, db: usize, mut awaited: impl FnMut(&[u8]) -> bool) {
        for (changed_db, key) in self.changed.split_off(self.ended) {
            let change = (changed_db.unwrap_or(db), key);
            if awaited(&change.1) && !self.ended_keys.contains(&change) {
                self.changed.push((Some(change.0), change.1.clone()));
                self.ended_keys.insert(change);
            }
        }
        self.ended = self.changed.len();
    }

    /// Whether there are keys for [`take_changed`](Self::take_changed).
    pub fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The keys that changed since the last call, in order, each with its database if that is not
    /// the running command's.
    pub fn take_changed(&mut self) -> Vec<(Option<usize>, Vec<u8>)> {
        if std::mem::take(&mut self.ended) > 0 {
            self.ended_keys.clear();
        }
        std::mem::take(&mut self.changed)
    }

    /// Whether commands for a replay are written. If not, callers can skip collecting them.
    pub fn is_consumed(&self) -> bool {
        self.is(REPLAYED)
    }

    /// Records an event of the running command on a key.
    #[inline]
    pub fn note(&mut self, event: KeyspaceEvent, key: &[u8]) {
        match self.wanted {
            0 => {}
            LOGGED => self.noted = true,
            _ => self.note_wanted(event, key),
        }
    }

    /// Records an event that cannot serve a blocked client, so none is tried.
    pub fn note_unawaited(&mut self, event: KeyspaceEvent, key: &[u8]) {
        self.noted |= self.is(REPLAYED);
        if self.is(CONSUMED) {
            self.events.push((event, key.to_vec()));
        }
        if self.is(NOTIFIED) {
            self.notify(event.db, event, key);
        }
    }

    #[inline(never)]
    fn note_wanted(&mut self, event: KeyspaceEvent, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(event.db, event, key);
        }
        self.change(event.db, key);
        self.noted |= self.is(REPLAYED);
        if self.is(CONSUMED) {
            self.events.push((event, key.to_vec()));
        }
    }

    /// Makes the running command produce an effect although no key has an event: FLUSHALL, SWAPDB.
    pub fn note_eventless(&mut self) {
        self.eventless = true;
    }

    /// Writes the command that replays the running one, if not the request itself.
    #[inline]
    pub fn replay_as(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        if self.is(REPLAYED) {
            self.replay.clear();
            self.replay.add(write);
        }
    }

    /// Adds a command to those written by [`Effects::replay_as`] and this function, for a change
    /// that needs several. They are replayed as one transaction.
    pub fn also_replay(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        if self.is(REPLAYED) {
            self.replay.add(write);
        }
    }

    /// Ends a command: its recorded events become one effect, replayed as the request was sent
    /// unless the command wrote another replay. A command without events has no effect.
    #[inline]
    pub fn seal(&mut self, db: usize, unix_ms: i64, sent: impl SentCommand) {
        let eventless = std::mem::take(&mut self.eventless);
        if self.is(REPLAYED | NOTIFIED) {
            self.seal_wanted(db, unix_ms, eventless, sent);
        }
    }

    fn seal_wanted(&mut self, db: usize, unix_ms: i64, eventless: bool, sent: impl SentCommand) {
        self.notices.iter_mut().for_each(|notice| {
            notice.db.get_or_insert(db);
        });
        if std::mem::take(&mut self.noted) || eventless && self.is(REPLAYED) {
            if self.replay.is_empty() && !self.unlogged {
                if self.depth == 0
                    && !self.is(CONSUMED)
                    && let Some(bytes) = sent.encoded()
                {
                    return self.append(LogUnit::encoded(db, bytes));
                }
                self.replay.add(|replay| sent.write(replay));
            }
            let events = std::mem::take(&mut self.events);
            self.add(db, unix_ms, events, true);
        }
        self.replay.clear();
    }

    /// Appends a command that is encoded already, outside of transactions.
    #[inline]
    fn append(&mut self, unit: LogUnit<'_>) {
        if let Some(log) = &mut self.log {
            self.written_units += 1;
            log.append(unit);
        }
    }

    /// Adds an effect separate from the running command's, such as an expired key. `write` writes
    /// the command to replay.
    #[inline]
    pub fn push<'k>(
        &mut self,
        db: usize,
        unix_ms: i64,
        events: impl IntoIterator<Item = (KeyspaceEvent, &'k [u8])>,
        write: impl FnOnce(&mut CommandWriter<'_>),
    ) {
        if self.is(REPLAYED | NOTIFIED) {
            let events = events.into_iter().map(|(event, key)| {
                self.notify(Some(event.db.unwrap_or(db)), event, key);
                (event, key.to_vec())
            });
            let events: Vec<_> = events.collect();
            if self.is(REPLAYED) {
                // The running command's replay so far comes after it.
                let replay = std::mem::take(&mut self.replay);
                if !self.unlogged {
                    self.replay.add(write);
                }
                self.add(db, unix_ms, events, false);
                self.replay = replay;
            }
        }
    }

    /// From now on effects are combined into one, until [`end_transaction`](Self::end_transaction).
    /// A script in a transaction belongs to the transaction.
    pub fn begin_transaction(&mut self, db: usize, unix_ms: i64) {
        self.depth += 1;
        if self.depth == 1 && self.is(CONSUMED) {
            let (events, commands) = (Vec::new(), Vec::new());
            self.transaction = Some(Effect { db, events, commands, unix_ms });
        }
    }

    /// Ends a transaction. One that changed nothing has no effect. The shards that it changed are
    /// still locked.
    pub fn end_transaction(&mut self) {
        self.depth -= 1;
        if self.depth > 0 {
            return;
        }
        let mut effect = self.transaction.take();
        if std::mem::take(&mut self.is_abandoned) {
            effect = None;
            self.unit.clear();
            self.unit_is_written = false;
        }
        let is_left = |effect: &Effect| !effect.commands.is_empty() || !effect.events.is_empty();
        self.collected.extend(effect.filter(is_left));
        if !self.unit.is_empty() {
            self.log_transaction();
        }
    }

    /// Excludes all changes of the transaction from replay. The transaction was ended by force, and
    /// a replay would restore it in part.
    pub fn abandon_transaction(&mut self) {
        self.is_abandoned = self.depth > 0;
    }

    /// Whether the unfinished transaction will not be replayed.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Sets whether the following effects are replayed; `redis.set_repl` turns that off. Their
    /// events are sent in any case.
    pub fn set_logged(&mut self, logged: bool) {
        self.unlogged = !logged;
    }

    /// Adds an effect whose commands are written, to the transaction if there is one. `is_written`
    /// says whether it is a command's.
    fn add(
        &mut self,
        db: usize,
        unix_ms: i64,
        events: Vec<(KeyspaceEvent, Vec<u8>)>,
        is_written: bool,
    ) {
        if self.unlogged {
            self.replay.clear();
        }
        if self.is(CONSUMED) {
            self.collect(db, unix_ms, events);
        }
        if !self.is(LOGGED) || self.replay.is_empty() {
            return;
        }
        if self.depth == 0 && self.replay.len() == 1 {
            if let Some(log) = &mut self.log {
                self.written_units += u64::from(is_written);
                log.append(self.replay.unit(db));
            }
            return;
        }
        self.unit_is_written |= is_written;
        if self.unit.is_empty() {
            self.unit.begin();
            self.unit_dbs = (db, db, false);
        }
        let (_, last, several) = &mut self.unit_dbs;
        if *last != db {
            self.unit.select(db);
            (*last, *several) = (db, true);
        }
        self.unit.append(&self.replay);
        if self.depth == 0 {
            self.log_transaction();
        }
    }

    fn log_transaction(&mut self) {
        let (db, _, several) = self.unit_dbs;
        let is_written = std::mem::take(&mut self.unit_is_written);
        if let Some(log) = &mut self.log {
            self.written_units += u64::from(is_written);
            log.append(self.unit.transaction(db, several));
        }
        self.unit.clear();
    }

    fn collect(&mut self, db: usize, unix_ms: i64, events: Vec<(KeyspaceEvent, Vec<u8>)>) {
        let commands = self.replay.decode().into_iter().map(|args| Replay { db, args });
        let effect = Effect { db, events, commands: commands.collect(), unix_ms };
        let Some(whole) = &mut self.transaction else { return self.collected.push(effect) };
        let whole_db = whole.db;
        whole.commands.extend(effect.commands);
        whole.events.extend(effect.events.into_iter().map(|(event, key)| {
            let db = event.db.unwrap_or(db);
            (KeyspaceEvent { db: (db != whole_db).then_some(db), ..event }, key)
        }));
    }

    /// Takes the collected effects, oldest first.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.collected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_remembers_each_awaited_key_once() {
        let mut effects = Effects::default();
        effects.set_watched(true);
        let is_awaited = |key: &[u8]| key.starts_with(b"q");
        for _ in 0..1000 {
            for (db, key) in [(None, &b"q2"[..]), (None, b"other"), (Some(3), b"q1"), (None, b"q1")]
            {
                effects.change(db, key);
            }
            effects.end_command(0, is_awaited);
            effects.change(None, b"q1");
            effects.end_command(3, is_awaited);
            assert!(effects.changed.len() <= 3);
        }
        // The last command is outside of a transaction.
        effects.change(None, b"other");
        let [q1, q2, other] = [&b"q1"[..], b"q2", b"other"].map(<[u8]>::to_vec);
        let expected = [(Some(0), q2.clone()), (Some(3), q1.clone()), (Some(0), q1), (None, other)];
        assert_eq!(effects.take_changed(), expected);
        effects.change(None, b"q2");
        effects.end_command(0, is_awaited);
        assert_eq!(effects.take_changed(), [(Some(0), q2)], "nothing is left");
    }
}
