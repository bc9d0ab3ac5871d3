//! The state that all actors of a run share: when it ends, the counts of events, and the failures.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::connection::{Endpoint, REPLY_TIME_MAX};
use crate::fault::Fault;
use crate::trouble::Trouble;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The server. Its data is overwritten.
    pub endpoint: Endpoint,
    /// The server has the parameters of Weft; without them, another server can be tested.
    pub is_weft: bool,
    /// How long clients act.
    pub length: Duration,
    /// Where the random numbers begin.
    pub seed: u64,
    /// Clients of each kind.
    pub clients: usize,
    /// A fault between the server and the clients, which must be found.
    pub fault: Option<Fault>,
}

/// State that all actors of one run share.
pub struct World {
    /// The server.
    pub endpoint: Endpoint,
    /// The server has the parameters of Weft.
    pub is_weft: bool,
    fault: Option<Fault>,
    /// When the actors stop.
    until: Instant,
    is_over: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    failures: Mutex<Vec<String>>,
    /// Connections that the server closed.
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

    /// Whether the actors stop: the time is over, or a check has failed.
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.is_over.load(Ordering::Relaxed)
    }

    /// Whether the planted fault is this one and strikes now: one time in `one_in`.
    pub fn plants(&self, fault: Fault, one_in: u32) -> bool {
        self.fault == Some(fault) && fastrand::u32(0..one_in) == 0
    }

    /// Counts events.
    pub fn met(&self, event: &'static str, times: u64) {
        *lock(&self.counts).entry(event).or_default() += times;
    }

    /// Records a failure, and ends the run.
    pub fn fail(&self, failure: String) {
        lock(&self.failures).push(failure);
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Counts or reports an actor's trouble; says whether the actor may connect again.
    pub fn survives(&self, actor: &str, trouble: Trouble) -> bool {
        match trouble {
            Trouble::Lost => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                return true;
            }
            Trouble::Silent => self.fail(format!("{actor}: no reply for {REPLY_TIME_MAX:?}")),
            Trouble::Wrong(text) => self.fail(format!("{actor}: {text}")),
        }
        false
    }

    /// The counts and the failures.
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

/// Locks a mutex, also after another actor has panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
