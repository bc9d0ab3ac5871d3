//! Scripts that have run for longer than `busy-reply-threshold`, and the shards that each of them
//! holds.
//!
//! No thread waits for a busy script: a command that needs its shards fails, and the thread goes on
//! with its other clients. Before the script counts as busy, threads wait for it like for any other
//! command, so a thread that waits has to look here from time to time.
//!
//! Invariants:
//! - A busy script is found by every shard that it holds, from the moment when it is busy to the
//!   moment before it releases them. So a thread that waits for a shard and does not find its
//!   holder here gets it soon, or finds the holder later.
//! - [`any`](BusyScripts::any) costs an atomic load, and nothing here waits.

use std::sync::atomic::{AtomicU8, Ordering};

use engine::ScriptError;
use parking_lot::Mutex;

/// There are busy scripts.
const ANY: u8 = 1;
/// One of them runs behind the closed gate.
const EXCLUSIVE: u8 = 2;

/// The busy scripts of one server.
#[derive(Debug, Default)]
pub struct BusyScripts {
    /// The bits above that apply to `scripts`.
    state: AtomicU8,
    scripts: Mutex<Vec<BusyScript>>,
}

/// A busy script.
#[derive(Debug)]
pub struct BusyScript {
    /// The thread that runs it.
    pub thread: usize,
    /// FUNCTION KILL ends it, and not SCRIPT KILL.
    pub is_function: bool,
    /// It may wait for further shards, so that other scripts which need the exclusive slot wait for
    /// its end.
    pub waits: bool,
    /// The shards that it holds.
    pub holds: Held,
}

/// The shards that a script holds.
#[derive(Debug)]
pub enum Held {
    /// All of them, behind the closed gate.
    All,
    /// These shards, by ascending number.
    Shards(Vec<usize>),
}

impl BusyScript {
    fn error(&self) -> ScriptError {
        if self.is_function { ScriptError::BusyWithFunction } else { ScriptError::BusyWithScript }
    }

    fn holds(&self, shard: usize) -> bool {
        match &self.holds {
            Held::All => true,
            Held::Shards(shards) => shards.binary_search(&shard).is_ok(),
        }
    }
}

impl BusyScripts {
    /// Whether there are any.
    #[inline]
    pub fn any(&self) -> bool {
        self.state.load(Ordering::Acquire) & ANY != 0
    }

    /// Whether one of them runs behind the closed gate.
    #[inline]
    pub fn is_exclusive(&self) -> bool {
        self.state.load(Ordering::Acquire) & EXCLUSIVE != 0
    }

    /// A script has become busy.
    pub fn begin(&self, script: BusyScript) {
        self.change(|scripts| scripts.push(script));
    }

    /// The busy script of this thread holds one more shard.
    pub fn add(&self, thread: usize, shard: usize) {
        self.change(|scripts| {
            let own = scripts.iter_mut().find(|script| script.thread == thread);
            if let Some(BusyScript { holds: Held::Shards(shards), .. }) = own
                && let Err(at) = shards.binary_search(&shard)
            {
                shards.insert(at, shard);
            }
        });
    }

    /// The busy script of this thread waits for shards from now on.
    pub fn waits(&self, thread: usize) {
        self.change(|scripts| {
            let own = scripts.iter_mut().filter(|script| script.thread == thread);
            own.for_each(|script| script.waits = true);
        });
    }

    /// The busy script of this thread ends, and is about to release its shards.
    pub fn end(&self, thread: usize) {
        self.change(|scripts| scripts.retain(|script| script.thread != thread));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<BusyScript>)) {
        let mut scripts = self.scripts.lock();
        change(&mut scripts);
        let any = if scripts.is_empty() { 0 } else { ANY };
        let is_exclusive = scripts.iter().any(|script| matches!(script.holds, Held::All));
        self.state.store(any | if is_exclusive { EXCLUSIVE } else { 0 }, Ordering::Release);
    }

    fn find(&self, is_wanted: impl Fn(&BusyScript) -> bool) -> Option<ScriptError> {
        if !self.any() {
            return None;
        }
        self.scripts.lock().iter().find(|script| is_wanted(script)).map(BusyScript::error)
    }

    /// Whether this thread runs one.
    pub fn runs_on(&self, thread: usize) -> bool {
        self.find(|script| script.thread == thread).is_some()
    }

    /// The error for a command that needs this shard, if a busy script holds it.
    pub fn holder(&self, shard: usize) -> Option<ScriptError> {
        self.find(|script| script.holds(shard))
    }

    /// The error for a script that needs the exclusive slot, if a busy script has it.
    pub(crate) fn waiting(&self) -> Option<ScriptError> {
        self.find(|script| script.waits)
    }

    /// The error for a thread that cannot enter or close the gate because of a busy script.
    pub fn at_gate(&self) -> ScriptError {
        self.find(|script| matches!(script.holds, Held::All)).unwrap_or_else(|| self.error(None))
    }

    /// The error for a client of a thread that runs a busy script, or of another thread.
    pub fn error(&self, thread: Option<usize>) -> ScriptError {
        let own = thread.and_then(|thread| self.find(|script| script.thread == thread));
        own.or_else(|| self.find(|_| true)).unwrap_or(ScriptError::BusyWithScript)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(thread: usize, holds: Held) -> BusyScript {
        BusyScript { thread, is_function: thread == 1, waits: thread == 2, holds }
    }

    #[test]
    fn a_script_is_found_by_its_shards_until_it_ends() {
        let busy = BusyScripts::default();
        assert!(!busy.any() && busy.holder(7).is_none() && busy.waiting().is_none());
        busy.begin(script(0, Held::Shards(vec![3, 7])));
        busy.begin(script(1, Held::Shards(vec![5])));
        busy.add(1, 4);
        busy.add(1, 4);
        busy.add(0, 9);
        assert!(busy.any() && !busy.is_exclusive() && busy.waiting().is_none());
        let with_script = Some(ScriptError::BusyWithScript);
        assert_eq!([3, 7, 9].map(|shard| busy.holder(shard)), [with_script; 3]);
        let with_function = Some(ScriptError::BusyWithFunction);
        assert_eq!([4, 5].map(|shard| busy.holder(shard)), [with_function; 2]);
        assert_eq!(busy.holder(6), None);
        assert_eq!(busy.error(Some(0)), ScriptError::BusyWithScript);
        assert_eq!(busy.error(Some(1)), ScriptError::BusyWithFunction);
        busy.end(0);
        assert_eq!((busy.holder(3), busy.holder(4)), (None, with_function));
        busy.end(1);
        assert!(!busy.any());
    }

    #[test]
    fn a_script_behind_a_closed_gate_holds_all_shards() {
        let busy = BusyScripts::default();
        busy.begin(script(2, Held::All));
        assert!(busy.is_exclusive() && busy.holder(1000).is_some() && busy.waiting().is_some());
        busy.end(2);
        assert!(!busy.is_exclusive());
    }
}
