//! The keys that a script or function has been seen to use: whether these are only the declared
//! ones decides how it runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// The keys that a script uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptKeys {
    /// It has not run to its end yet.
    Unknown,
    /// It has used only declared keys so far.
    Declared,
    /// It has used other keys.
    Beyond,
    /// A command of its last run needs all keys.
    All,
}

/// The same, shared by all threads. A script that has used other keys stays `Beyond`, or becomes
/// `All`.
#[derive(Debug, Default)]
pub struct ScriptKeysSeen(AtomicU8);

const DECLARED: u8 = 1;
const BEYOND: u8 = 2;
const ALL: u8 = 3;

impl ScriptKeysSeen {
    /// The keys that it has been seen to use so far.
    #[inline]
    pub fn known(&self) -> ScriptKeys {
        match self.0.load(Ordering::Relaxed) {
            DECLARED => ScriptKeys::Declared,
            BEYOND => ScriptKeys::Beyond,
            ALL => ScriptKeys::All,
            _ => ScriptKeys::Unknown,
        }
    }

    /// Notes a run; one that used only declared keys has run to its end.
    pub fn saw(&self, used: ScriptKeys) {
        let seen = match (self.known(), used) {
            (_, ScriptKeys::All) => ALL,
            // It had all keys, so it is not known which of them it used.
            (_, ScriptKeys::Beyond) | (ScriptKeys::All, ScriptKeys::Declared) => BEYOND,
            (ScriptKeys::Unknown, ScriptKeys::Declared) => DECLARED,
            _ => return,
        };
        self.0.store(seen, Ordering::Relaxed);
    }
}
