//! The record of a write: exactly one [`Effect`], whatever the command.
//!
//! The append-only file, replicas, keyspace notifications and client tracking will consume effects;
//! commands do not know them. While there is no consumer, a write costs one branch.

/// The name of a keyspace event and its class, as `notify-keyspace-events` spells classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `g` generic, `$` string, `x` expired ...
    pub class: char,
    /// The name that subscribers see.
    pub name: &'static str,
    /// The key's database, when it is not the effect's: MOVE and COPY reach into another one.
    pub db: Option<usize>,
}

impl Event {
    /// An event of a class.
    pub const fn new(class: char, name: &'static str) -> Self {
        Self { class, name, db: None }
    }

    /// The same event in another database than the session's.
    pub const fn in_db(self, db: usize) -> Self {
        Self { db: Some(db), ..self }
    }
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Database number.
    pub db: usize,
    /// What happened to which keys, in order.
    pub events: Vec<(Event, Vec<u8>)>,
    /// The command that makes the same change when it is replayed, name first.
    pub command: Vec<Vec<u8>>,
    /// Commands to be replayed behind it, as one transaction with it; rarely any.
    pub more: Vec<Vec<Vec<u8>>>,
    /// Milliseconds since 1970.
    pub unix_ms: i64,
}

/// Effects have a consumer.
const CONSUMED: u8 = 1;
/// Clients may be blocked on keys that the running command changes.
const WATCHED: u8 = 1 << 1;

/// Collects the effects of a turn.
#[derive(Debug, Default)]
pub struct Effects {
    /// Why the changes of the running command are recorded: bits `CONSUMED` and `WATCHED`.
    wanted: u8,
    /// Keys that have changed, with the event's database, while they are watched.
    changed: Vec<(Option<usize>, Vec<u8>)>,
    events: Vec<(Event, Vec<u8>)>,
    replay: Option<Vec<Vec<u8>>>,
    more: Vec<Vec<Vec<u8>>>,
    eventless: bool,
    log: Vec<Effect>,
}

impl Effects {
    /// Sets whether effects have a consumer.
    pub fn set_consumed(&mut self, consumed: bool) {
        self.set(CONSUMED, consumed);
    }

    /// Sets whether changed keys are remembered for [`take_changed`](Self::take_changed).
    pub fn set_watched(&mut self, watched: bool) {
        self.set(WATCHED, watched);
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

    /// The keys that have changed since the last call, in order; a database only where it is not
    /// the running command's.
    pub fn take_changed(&mut self) -> Vec<(Option<usize>, Vec<u8>)> {
        std::mem::take(&mut self.changed)
    }

    /// Whether effects have a consumer: for what is worth collecting only then.
    pub fn is_consumed(&self) -> bool {
        self.is(CONSUMED)
    }

    /// Notes what the running command did to a key.
    #[inline]
    pub fn note(&mut self, event: Event, key: &[u8]) {
        if self.wanted != 0 {
            self.note_wanted(event, key);
        }
    }

    /// The same for a change that no blocked client can be served with: none is tried.
    pub fn note_unawaited(&mut self, event: Event, key: &[u8]) {
        if self.is(CONSUMED) {
            self.events.push((event, key.to_vec()));
        }
    }

    #[inline(never)]
    fn note_wanted(&mut self, event: Event, key: &[u8]) {
        self.change(event.db, key);
        if self.is(CONSUMED) {
            self.events.push((event, key.to_vec()));
        }
    }

    /// Makes the running command leave an effect although no key has an event: FLUSHALL, SWAPDB.
    pub fn note_eventless(&mut self) {
        self.eventless = true;
    }

    /// Sets how the running command is replayed, when not as it was sent.
    #[inline]
    pub fn replay_as(&mut self, command: impl FnOnce() -> Vec<Vec<u8>>) {
        if self.is(CONSUMED) {
            self.replay = Some(command());
        }
    }

    /// Adds a command to those that [`Effects::replay_as`] and this have named, for a change that
    /// no single command can replay. They are replayed as one transaction.
    pub fn also_replay(&mut self, command: impl FnOnce() -> Vec<Vec<u8>>) {
        if !self.is(CONSUMED) {
            return;
        }
        match self.replay {
            None => self.replay = Some(command()),
            Some(_) => self.more.push(command()),
        }
    }

    /// Ends a command: what it noted becomes one effect, replayed as it was sent unless it said
    /// otherwise. A command that noted nothing leaves none.
    #[inline]
    pub fn seal(&mut self, db: usize, unix_ms: i64, sent: impl FnOnce() -> Vec<Vec<u8>>) {
        let eventless = std::mem::take(&mut self.eventless);
        if !self.is(CONSUMED) {
            return;
        }
        let replay = self.replay.take();
        let more = std::mem::take(&mut self.more);
        if eventless || !self.events.is_empty() {
            let events = std::mem::take(&mut self.events);
            let command = replay.unwrap_or_else(sent);
            self.log.push(Effect { db, events, command, more, unix_ms });
        }
    }

    /// Adds a separate effect beside the running command's: an expired key.
    #[inline]
    pub fn push(&mut self, effect: impl FnOnce() -> Effect) {
        if self.is(CONSUMED) {
            self.log.push(effect());
        }
    }

    /// Takes what has been collected, oldest first.
    pub fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.log)
    }
}
