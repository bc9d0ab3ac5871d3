//! Keyspace events and the notices that clients receive of them.

/// The name of a keyspace event and its class, as `notify-keyspace-events` spells classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyspaceEvent {
    /// `g` generic, `$` string, `x` expired ...
    pub class: char,
    /// The name that subscribers see.
    pub name: &'static str,
    /// The key's database if it is not the effect's: MOVE and COPY reach into another one.
    pub db: Option<usize>,
}

impl KeyspaceEvent {
    /// An event in the effect's database.
    pub const fn new(class: char, name: &'static str) -> Self {
        Self { class, name, db: None }
    }

    /// The same event in a database other than the session's.
    pub const fn in_db(self, db: usize) -> Self {
        Self { db: Some(db), ..self }
    }
}

/// A set of event classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventClasses(u128);

impl EventClasses {
    /// The set with one more class, given by its letter.
    pub const fn with(self, class: char) -> Self {
        Self(self.0 | 1 << (class as u32 % u128::BITS))
    }

    /// Whether the set has a class.
    pub const fn contains(self, class: char) -> bool {
        self.0 & Self(0).with(class).0 != 0
    }

    /// Whether the set has no class.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// An event to send to notified clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceNotice {
    /// Database number, or `None` until the command that caused the event ends.
    pub db: Option<usize>,
    /// The event's name.
    pub name: &'static str,
    /// Its key.
    pub key: Vec<u8>,
}
