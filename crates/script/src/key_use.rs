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
}

/// The same, as all threads learn it. What is beyond stays so.
#[derive(Debug, Default)]
pub struct KeyUseSeen(AtomicU8);

const DECLARED: u8 = 1;
const BEYOND: u8 = 2;

impl KeyUseSeen {
    /// What has been seen so far.
    #[inline]
    pub fn known(&self) -> KeyUse {
        match self.0.load(Ordering::Relaxed) {
            DECLARED => KeyUse::Declared,
            BEYOND => KeyUse::Beyond,
            _ => KeyUse::Unknown,
        }
    }

    /// It ran to its end and has used only declared keys.
    pub fn saw_declared(&self) {
        let _ = self.0.compare_exchange(0, DECLARED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// It has used another key.
    pub fn saw_beyond(&self) {
        self.0.store(BEYOND, Ordering::Relaxed);
    }
}
