//! The record of a write: exactly one effect, whatever the command.
//!
//! The log takes effects in the form in which they are replayed, written once where they are
//! sealed: under the lock of the shards that they have changed, so that its order is that of
//! memory. Commands do not know it. While there is no consumer, a write costs one branch. Tests
//! take each as an [`Effect`]. Keyspace notifications take their events as they
//! happen, also those of reads, and are told before the shards are let go. So are those who track
//! keys, for whom each change is noted where values change.

use std::collections::BTreeSet;

use crate::event::{EventClasses, KeyspaceEvent, KeyspaceNotice};
use crate::log::{CommandWriter, LogPosition, LoggedCommands, WriteLog};
use crate::touched::Touched;

/// A key was added.
const NEW: KeyspaceEvent = KeyspaceEvent::new('n', "new");
/// A read did not find its key.
const MISSED: KeyspaceEvent = KeyspaceEvent::new('m', "keymiss");

/// One write: by a command, by all commands of a transaction, or by the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Database number.
    pub db: usize,
    /// What happened to which keys, in order.
    pub events: Vec<(KeyspaceEvent, Vec<u8>)>,
    /// The commands that make the same change when they are replayed; several as one transaction.
    pub commands: Vec<Replay>,
    /// Milliseconds since 1970.
    pub unix_ms: i64,
}

/// A command to be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Database number.
    pub db: usize,
    /// Its arguments, name first.
    pub args: Vec<Vec<u8>>,
}

/// Effects are collected, for tests.
const CONSUMED: u8 = 1;
/// Clients may be blocked on keys that the running command changes.
const WATCHED: u8 = 1 << 1;
/// Clients are notified of some classes of events.
const NOTIFIED: u8 = 1 << 2;
/// Keys have changed that may be tracked, or all have.
const TOUCHED: u8 = 1 << 3;
/// What the running command reads is remembered when it ends.
const REMEMBERED: u8 = 1 << 4;
/// Effects are logged.
const LOGGED: u8 = 1 << 5;
/// Either: what is to be replayed is written.
const REPLAYED: u8 = CONSUMED | LOGGED;

/// Collects the effects of a turn.
#[derive(Debug, Default)]
pub struct Effects {
    /// Why the changes of the running command are recorded, and what is to be done when it ends:
    /// the bits above.
    wanted: u8,
    /// Keys that have changed, for those who track them.
    touched: Touched,
    /// The classes of events of which clients are notified.
    notified: EventClasses,
    /// Events of these classes that nobody has been told yet.
    notices: Vec<KeyspaceNotice>,
    /// Keys that have changed, with the event's database, while they are watched.
    changed: Vec<(Option<usize>, Vec<u8>)>,
    /// Of these so many, from the first on, are those of commands that have ended within a
    /// transaction: each once, and only those that someone may wait for.
    ended: usize,
    /// The same keys, to be found.
    ended_keys: BTreeSet<(usize, Vec<u8>)>,
    events: Vec<(KeyspaceEvent, Vec<u8>)>,
    /// The running command has noted something that is to be replayed.
    noted: bool,
    eventless: bool,
    /// How the running command is replayed, if not as it was sent.
    replay: LoggedCommands,
    /// What the transaction that has not ended has left so far.
    unit: LoggedCommands,
    /// The databases of its first and its last command, and whether there is another one.
    unit_dbs: (usize, usize, bool),
    /// The effect of a transaction that has not ended.
    transaction: Option<Effect>,
    /// Effects are not replayed: a script says so.
    unlogged: bool,
    /// The transaction that has not ended leaves nothing.
    is_abandoned: bool,
    /// Transactions and scripts that have begun and not ended, one within the other.
    depth: u32,
    collected: Vec<Effect>,
    log: Option<Box<dyn WriteLog>>,
    /// How often something was appended to a log.
    logged_units: u64,
}

impl Effects {
    /// Sets whether effects are collected for [`take`](Self::take).
    pub fn set_consumed(&mut self, consumed: bool) {
        self.set(CONSUMED, consumed);
    }

    /// Sets where effects are logged, if they are. No command runs.
    pub fn set_log(&mut self, log: Option<Box<dyn WriteLog>>) {
        self.set(LOGGED, log.is_some());
        self.log = log;
    }

    /// Whether effects are logged.
    pub fn is_logged(&self) -> bool {
        self.is(LOGGED)
    }

    /// How often something was appended to a log.
    pub fn logged_units(&self) -> u64 {
        self.logged_units
    }

    /// Behind what was appended last to the log, if there is one and anything was.
    pub fn log_place(&self) -> Option<LogPosition> {
        self.log.as_ref().and_then(|log| log.place())
    }

    /// Whether the log has room for what a command may leave. There is room if there is no log.
    pub fn has_log_room(&self) -> bool {
        self.log.as_ref().is_none_or(|log| log.has_room())
    }

    /// Sets whether changed keys are remembered for [`take_changed`](Self::take_changed).
    pub fn set_watched(&mut self, watched: bool) {
        self.set(WATCHED, watched);
    }

    /// Sets of which classes of events clients are notified.
    pub fn set_notified(&mut self, classes: EventClasses) {
        self.notified = classes;
        self.set(NOTIFIED, !classes.is_empty());
    }

    /// Whether something is to be done before the shards are let go: clients are to be notified of
    /// events, keys have changed that may be tracked, or reads are to be remembered.
    #[inline]
    pub fn has_news(&self) -> bool {
        let news = self.wanted & (NOTIFIED | TOUCHED | REMEMBERED);
        news != 0 && (news != NOTIFIED || !self.notices.is_empty())
    }

    /// Whether there are events of which clients are to be notified.
    pub fn has_notices(&self) -> bool {
        self.is(NOTIFIED) && !self.notices.is_empty()
    }

    /// Notes that a key changes, which may be tracked.
    #[inline(never)]
    pub(crate) fn touch(&mut self, key: &[u8]) {
        self.touched.push(key);
        self.set(TOUCHED, true);
    }

    /// The key that was touched last was not changed by a command: it has expired, or is evicted.
    pub(crate) fn touched_without_command(&mut self) {
        self.touched.mark_last();
    }

    /// All keys have changed: databases were emptied or swapped.
    pub fn touch_all(&mut self) {
        self.touched.set_all();
        self.set(TOUCHED, true);
    }

    /// The keys that have changed since the last call, while keys were tracked; None: none has.
    #[inline]
    pub fn take_touched(&mut self) -> Option<Touched> {
        if !self.is(TOUCHED) {
            return None;
        }
        self.set(TOUCHED, false);
        Some(std::mem::take(&mut self.touched))
    }

    /// Gives back what was taken, for its room.
    pub fn reuse_touched(&mut self, touched: Touched) {
        if !self.is(TOUCHED) {
            self.touched = touched.emptied();
        }
    }

    /// Sets whether what the running command reads is to be remembered when it ends.
    pub fn set_remembered(&mut self, remembered: bool) {
        self.set(REMEMBERED, remembered);
    }

    /// Whether what the running command reads is to be remembered when it ends.
    pub fn is_remembered(&self) -> bool {
        self.is(REMEMBERED)
    }

    /// The events of which clients are to be notified, in order, since the last call.
    pub fn take_notices(&mut self) -> Vec<KeyspaceNotice> {
        std::mem::take(&mut self.notices)
    }

    fn notify(&mut self, db: Option<usize>, event: KeyspaceEvent, key: &[u8]) {
        if self.notified.contains(event.class) {
            self.notices.push(KeyspaceNotice { db, name: event.name, key: key.to_vec() });
        }
    }

    /// A key was added to a database.
    #[inline]
    pub(crate) fn note_new(&mut self, db: u32, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(Some(db as usize), NEW, key);
        }
    }

    /// The key that was added last has replaced one: that is no event.
    pub fn take_back_new(&mut self) {
        self.take_back(NEW.name);
    }

    /// The last event is none after all, if it has this name.
    pub fn take_back(&mut self, name: &str) {
        if self.notices.last().is_some_and(|notice| notice.name == name) {
            self.notices.pop();
        }
    }

    /// Notes something that changed nothing: only those hear of it who are notified.
    pub fn note_unchanged(&mut self, event: KeyspaceEvent, key: &[u8]) {
        if self.is(NOTIFIED) {
            self.notify(event.db, event, key);
        }
    }

    /// A read did not find its key in a database.
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

    /// Remembers a changed key, while they are watched.
    pub fn change(&mut self, db: Option<usize>, key: &[u8]) {
        if self.is(WATCHED) {
            self.changed.push((db, key.to_vec()));
        }
    }

    /// A command on this database ends within a transaction: from here on another database may be
    /// the running command's. Of the keys that it has changed those are remembered that are
    /// `awaited`, and each once for the whole transaction, however many commands this has.
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

    /// The keys that have changed since the last call, in order; a database only where it is not
    /// the running command's.
    pub fn take_changed(&mut self) -> Vec<(Option<usize>, Vec<u8>)> {
        if std::mem::take(&mut self.ended) > 0 {
            self.ended_keys.clear();
        }
        std::mem::take(&mut self.changed)
    }

    /// Whether effects are replayed: for what is worth collecting only then.
    pub fn is_consumed(&self) -> bool {
        self.is(REPLAYED)
    }

    /// Notes what the running command did to a key.
    #[inline]
    pub fn note(&mut self, event: KeyspaceEvent, key: &[u8]) {
        if self.wanted != 0 {
            self.note_wanted(event, key);
        }
    }

    /// The same for a change that no blocked client can be served with: none is tried.
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

    /// Makes the running command leave an effect although no key has an event: FLUSHALL, SWAPDB.
    pub fn note_eventless(&mut self) {
        self.eventless = true;
    }

    /// Writes how the running command is replayed, when not as it was sent.
    #[inline]
    pub fn replay_as(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        if self.is(REPLAYED) {
            self.replay.clear();
            self.replay.add(write);
        }
    }

    /// Adds a command to those that [`Effects::replay_as`] and this have written, for a change that
    /// no single command can replay. They are replayed as one transaction.
    pub fn also_replay(&mut self, write: impl FnOnce(&mut CommandWriter<'_>)) {
        if self.is(REPLAYED) {
            self.replay.add(write);
        }
    }

    /// Ends a command: what it noted becomes one effect, replayed as it was sent unless it said
    /// otherwise. A command that noted nothing leaves none.
    #[inline]
    pub fn seal(&mut self, db: usize, unix_ms: i64, sent: impl FnOnce(&mut CommandWriter<'_>)) {
        let eventless = std::mem::take(&mut self.eventless);
        if self.is(REPLAYED | NOTIFIED) {
            self.seal_wanted(db, unix_ms, eventless, sent);
        }
    }

    fn seal_wanted(
        &mut self,
        db: usize,
        unix_ms: i64,
        eventless: bool,
        sent: impl FnOnce(&mut CommandWriter<'_>),
    ) {
        self.notices.iter_mut().for_each(|notice| {
            notice.db.get_or_insert(db);
        });
        if std::mem::take(&mut self.noted) || eventless && self.is(REPLAYED) {
            if self.replay.is_empty() && !self.unlogged {
                self.replay.add(sent);
            }
            let events = std::mem::take(&mut self.events);
            self.add(db, unix_ms, events);
        }
        self.replay.clear();
    }

    /// Adds a separate effect beside the running command's, on a database: an expired key. `write`
    /// writes the command to be replayed.
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
                // What the running command has written so far comes behind.
                let replay = std::mem::take(&mut self.replay);
                if !self.unlogged {
                    self.replay.add(write);
                }
                self.add(db, unix_ms, events);
                self.replay = replay;
            }
        }
    }

    /// From here on effects are one, until [`end_transaction`](Self::end_transaction). A script in
    /// a transaction belongs to it.
    pub fn begin_transaction(&mut self, db: usize, unix_ms: i64) {
        self.depth += 1;
        if self.depth == 1 && self.is(CONSUMED) {
            let (events, commands) = (Vec::new(), Vec::new());
            self.transaction = Some(Effect { db, events, commands, unix_ms });
        }
    }

    /// Ends a transaction. One that changed nothing leaves no effect. The shards that it has
    /// changed are still locked.
    pub fn end_transaction(&mut self) {
        self.depth -= 1;
        if self.depth > 0 {
            return;
        }
        let mut effect = self.transaction.take();
        if std::mem::take(&mut self.is_abandoned) {
            effect = None;
            self.unit.clear();
        }
        let is_left = |effect: &Effect| !effect.commands.is_empty() || !effect.events.is_empty();
        self.collected.extend(effect.filter(is_left));
        if !self.unit.is_empty() {
            self.log_transaction();
        }
    }

    /// What the transaction has changed and changes from here on is not replayed. It was ended by
    /// force, and would be there in part after a restart.
    pub fn abandon_transaction(&mut self) {
        self.is_abandoned = self.depth > 0;
    }

    /// Whether the transaction that has not ended leaves nothing.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    /// Whether the effects that follow are to be replayed; `redis.set_repl` turns that off. Their
    /// events happen all the same.
    pub fn set_logged(&mut self, logged: bool) {
        self.unlogged = !logged;
    }

    /// Adds an effect whose commands are written: to the transaction, if there is one.
    fn add(&mut self, db: usize, unix_ms: i64, events: Vec<(KeyspaceEvent, Vec<u8>)>) {
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
                self.logged_units += 1;
                log.append(self.replay.unit(db));
            }
            return;
        }
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
        if let Some(log) = &mut self.log {
            self.logged_units += 1;
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

    /// Takes what has been collected, oldest first.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.collected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_changes_in_a_transaction_each_awaited_key_is_remembered_once() {
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
        // The last command, outside of a transaction.
        effects.change(None, b"other");
        let [q1, q2, other] = [&b"q1"[..], b"q2", b"other"].map(<[u8]>::to_vec);
        let expected = [(Some(0), q2.clone()), (Some(3), q1.clone()), (Some(0), q1), (None, other)];
        assert_eq!(effects.take_changed(), expected);
        effects.change(None, b"q2");
        effects.end_command(0, is_awaited);
        assert_eq!(effects.take_changed(), [(Some(0), q2)], "nothing is known any more");
    }
}
