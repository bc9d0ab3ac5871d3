//! What has been seen of how a script or function uses keys: whether it keeps to those that its
//! caller declares decides how it runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// How a script uses keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptKeys {
    /// It has not run to its end yet.
    Unknown,
    /// So far it has used no keys but the declared ones.
    Declared,
    /// It has used other keys.
    Beyond,
    /// A command that it called when it ran last needs all keys.
    All,
}

/// The same, as all threads learn it. What is beyond stays so, or needs all keys.
#[derive(Debug, Default)]
pub struct ScriptKeysSeen(AtomicU8);

const DECLARED: u8 = 1;
const BEYOND: u8 = 2;
const ALL: u8 = 3;

impl ScriptKeysSeen {
    /// What has been seen so far.
    #[inline]
    pub fn known(&self) -> ScriptKeys {
        match self.0.load(Ordering::Relaxed) {
            DECLARED => ScriptKeys::Declared,
            BEYOND => ScriptKeys::Beyond,
            ALL => ScriptKeys::All,
            _ => ScriptKeys::Unknown,
        }
    }

    /// It has run; to its end, if it has used only declared keys.
    pub fn saw(&self, used: ScriptKeys) {
        let seen = match (self.known(), used) {
            (_, ScriptKeys::All) => ALL,
            // It has had all keys, so it is not known which of them it used.
            (_, ScriptKeys::Beyond) | (ScriptKeys::All, ScriptKeys::Declared) => BEYOND,
            (ScriptKeys::Unknown, ScriptKeys::Declared) => DECLARED,
            _ => return,
        };
        self.0.store(seen, Ordering::Relaxed);
    }
}
