//! What has been seen of how a script or function uses keys: whether it keeps to those that its
//! caller declares decides how it runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// How a script uses keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyUse {
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
pub struct KeyUseSeen(AtomicU8);

const DECLARED: u8 = 1;
const BEYOND: u8 = 2;
const ALL: u8 = 3;

impl KeyUseSeen {
    /// What has been seen so far.
    #[inline]
    pub fn known(&self) -> KeyUse {
        match self.0.load(Ordering::Relaxed) {
            DECLARED => KeyUse::Declared,
            BEYOND => KeyUse::Beyond,
            ALL => KeyUse::All,
            _ => KeyUse::Unknown,
        }
    }

    /// It has run; to its end, if it has used only declared keys.
    pub fn saw(&self, used: KeyUse) {
        let seen = match (self.known(), used) {
            (_, KeyUse::All) => ALL,
            // It has had all keys, so it is not known which of them it used.
            (_, KeyUse::Beyond) | (KeyUse::All, KeyUse::Declared) => BEYOND,
            (KeyUse::Unknown, KeyUse::Declared) => DECLARED,
            _ => return,
        };
        self.0.store(seen, Ordering::Relaxed);
    }
}
