//! What has been seen of how a script or function uses keys: whether it keeps to those that its
//! caller declares decides how it runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// How a script uses keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAccess {
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
pub struct KeyAccessSeen(AtomicU8);

const DECLARED: u8 = 1;
const BEYOND: u8 = 2;
const ALL: u8 = 3;

impl KeyAccessSeen {
    /// What has been seen so far.
    #[inline]
    pub fn known(&self) -> KeyAccess {
        match self.0.load(Ordering::Relaxed) {
            DECLARED => KeyAccess::Declared,
            BEYOND => KeyAccess::Beyond,
            ALL => KeyAccess::All,
            _ => KeyAccess::Unknown,
        }
    }

    /// It has run; to its end, if it has used only declared keys.
    pub fn saw(&self, used: KeyAccess) {
        let seen = match (self.known(), used) {
            (_, KeyAccess::All) => ALL,
            // It has had all keys, so it is not known which of them it used.
            (_, KeyAccess::Beyond) | (KeyAccess::All, KeyAccess::Declared) => BEYOND,
            (KeyAccess::Unknown, KeyAccess::Declared) => DECLARED,
            _ => return,
        };
        self.0.store(seen, Ordering::Relaxed);
    }
}
