//! What the actors of a run share: the end, what they have met, and what they have found wrong.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use diff::reply::Value;

use crate::ANSWER_TIME_MAX;
use crate::connection::{Endpoint, is_timeout};
use crate::run::Plan;

/// Why an actor cannot go on with its connection.
#[derive(Debug)]
pub enum Trouble {
    /// The connection is closed.
    Lost,
    /// The server has not answered in time.
    Silent,
    /// The server has answered what must not be.
    Wrong(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Wrong(error.to_string()),
            _ if is_timeout(&error) => Self::Silent,
            _ => Self::Lost,
        }
    }
}

/// What is wrong, for [`Trouble::Wrong`].
pub fn wrong<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(what.into()))
}

/// Fails unless a reply is this status.
pub fn expect(reply: &Value, status: &str) -> Result<(), Trouble> {
    match reply.text() {
        Some(text) if text == status.as_bytes() => Ok(()),
        _ => wrong(format!("{reply} is not {status}")),
    }
}

/// A fault between the server and a client, which the actors' checks have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An increment is sent twice.
    RepeatedIncrement,
    /// A transfer takes from one account and gives to none.
    TornTransfer,
    /// An element that was popped does not arrive.
    LostElement,
    /// A message does not arrive.
    LostMessage,
    /// A message arrives twice.
    RepeatedMessage,
    /// A message arrives after the channel was left.
    LateMessage,
    /// A reply does not arrive.
    LostReply,
    /// A client is not told that a key has changed.
    LostInvalidation,
}

impl Fault {
    /// All faults, by their names on a command line.
    pub const ALL: &[(&str, Self)] = &[
        ("repeated-increment", Self::RepeatedIncrement),
        ("torn-transfer", Self::TornTransfer),
        ("lost-element", Self::LostElement),
        ("lost-message", Self::LostMessage),
        ("repeated-message", Self::RepeatedMessage),
        ("late-message", Self::LateMessage),
        ("lost-reply", Self::LostReply),
        ("lost-invalidation", Self::LostInvalidation),
    ];
}

/// What all actors of one run share.
pub struct World {
    /// The server.
    pub endpoint: Endpoint,
    /// The server has the parameters of Weft.
    pub is_weft: bool,
    /// The planted fault.
    fault: Option<Fault>,
    /// When the actors stop.
    until: Instant,
    is_over: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    failures: Mutex<Vec<String>>,
    /// Connections that were closed by the server.
    lost: AtomicU64,
    /// Clients that were killed.
    pub killed: AtomicU64,
}

impl World {
    /// A run that begins now.
    pub fn new(plan: &Plan) -> Self {
        Self {
            endpoint: plan.endpoint.clone(),
            is_weft: plan.is_weft,
            fault: plan.fault,
            until: Instant::now() + plan.length,
            is_over: AtomicBool::new(false),
            counts: Mutex::default(),
            failures: Mutex::default(),
            lost: AtomicU64::new(0),
            killed: AtomicU64::new(0),
        }
    }

    /// Whether the actors stop: the time is over, or something is wrong.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.is_over.load(Ordering::Relaxed)
    }

    /// Whether this fault happens now, if it is planted: one time in so many.
    pub fn plants(&self, fault: Fault, one_in: u32) -> bool {
        self.fault == Some(fault) && fastrand::u32(0..one_in) == 0
    }

    /// Counts what was met.
    pub fn met(&self, what: &'static str, times: u64) {
        *lock(&self.counts).entry(what).or_default() += times;
    }

    /// Notes what is wrong, and ends the run.
    pub fn fail(&self, failure: String) {
        lock(&self.failures).push(failure);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Follows an actor's trouble: whether it may connect again.
    pub fn survives(&self, actor: &str, trouble: Trouble) -> bool {
        match trouble {
            Trouble::Lost => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Trouble::Silent => self.fail(format!("{actor}: no answer for {ANSWER_TIME_MAX:?}")),
            Trouble::Wrong(what) => self.fail(format!("{actor}: {what}")),
        }
        false
    }

    /// What was counted and found.
    pub fn into_findings(self) -> (BTreeMap<&'static str, u64>, Vec<String>) {
        let (lost, killed) = (self.lost.into_inner(), self.killed.into_inner());
        let mut counts = self.counts.into_inner().unwrap_or_default();
        counts.insert("connections closed by the server", lost);
        counts.insert("clients killed", killed);
        let mut failures = self.failures.into_inner().unwrap_or_default();
        if failures.is_empty() && lost > killed {
            failures.push(format!("{lost} connections were closed, but {killed} clients killed"));
        }
        (counts, failures)
    }
}

/// A lock that no panic of another actor takes away.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
