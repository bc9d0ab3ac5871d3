//! The private side of a client: what only the thread that owns it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clients::record::{ClientRecord, flag};
use crate::config::Config;

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every command is answered.
    On,
    /// None is.
    Off,
    /// The next command is not.
    SkipNext,
    /// The running command is not; those behind it are.
    Skip,
}

/// One client's state.
#[derive(Debug)]
pub struct Session {
    /// Its public facts.
    pub record: Arc<ClientRecord>,
    /// Its database.
    pub db: usize,
    /// It speaks RESP3.
    pub resp3: bool,
    /// It has authenticated or need not.
    pub authenticated: bool,
    /// Its reads do not count as uses of keys.
    pub no_touch: bool,
    /// Which replies it gets.
    pub reply_mode: ReplyMode,
}

impl Session {
    /// The session of a new client.
    pub fn new(record: Arc<ClientRecord>, authenticated: bool) -> Self {
        Self {
            record,
            db: 0,
            resp3: false,
            authenticated,
            no_touch: false,
            reply_mode: ReplyMode::On,
        }
    }

    /// Whether it must authenticate before it may do anything else. A client that never did may go
    /// on once the password has been removed.
    #[inline]
    pub fn must_authenticate(&self, config: &Config) -> bool {
        !self.authenticated && !config.requirepass.is_empty()
    }

    /// Selects a database.
    pub fn select(&mut self, db: usize) {
        self.db = db;
        self.record.db.store(u32::try_from(db).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Makes its reads count as uses of keys, or not.
    pub fn set_no_touch(&mut self, on: bool) {
        self.no_touch = on;
        self.record.set_flag(flag::NO_TOUCH, on);
    }

    /// Makes the client as good as new, but for what it told of its library. A reply that is being
    /// skipped stays so.
    pub fn reset(&mut self, authenticated: bool) {
        self.select(0);
        self.set_resp3(false);
        self.set_no_touch(false);
        self.authenticated = authenticated;
        if self.reply_mode != ReplyMode::Skip {
            self.reply_mode = ReplyMode::On;
        }
        self.record.set_flag(flag::NO_EVICT, false);
        self.record.edit_names(|names| names.name.clear());
    }

    /// Selects the protocol.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
        self.record.set_flag(flag::RESP3, resp3);
    }
}
