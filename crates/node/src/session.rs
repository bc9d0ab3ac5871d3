//! The private side of a client: what only the thread that owns it needs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::client::{ClientRecord, flag};

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyMode {
    /// Every command is answered.
    On,
    /// None is.
    Off,
    /// The command behind this one is not; then as before.
    SkipNext,
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

    /// Selects a database.
    pub fn select(&mut self, db: usize) {
        self.db = db;
        self.record.db.store(u32::try_from(db).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    /// Selects the protocol.
    pub fn set_resp3(&mut self, resp3: bool) {
        self.resp3 = resp3;
        self.record.set_flag(flag::RESP3, resp3);
    }
}
