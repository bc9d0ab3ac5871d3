//! EVAL scripts, by the SHA-1 of their bodies.
//!
//! All threads share a [`Script`]; each compiles it for its own VM. [`ScriptRegistry`] holds the
//! scripts that EVALSHA finds. If there are too many scripts from EVAL, the least recently used
//! ones are evicted; scripts from SCRIPT LOAD stay until SCRIPT FLUSH.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sha1::{Digest, Sha1};

use crate::failure::ScriptFailure;
use crate::flags::ScriptFlags;
use crate::key_access::ScriptKeysSeen;
use crate::shebang;

/// The most scripts from EVAL that are kept, as in Redis.
pub const EVALUATED_SCRIPTS_MAX: usize = 500;

/// The SHA-1 of a body in lower-case hexadecimal digits.
pub type Sha = [u8; 40];

/// A script as a client sent it.
#[derive(Debug)]
pub struct Script {
    sha: Sha,
    body: Arc<[u8]>,
    code_start: usize,
    flags: Option<ScriptFlags>,
    /// Whether it is registered; false after it was evicted or flushed.
    live: AtomicBool,
    /// Whether it came from SCRIPT LOAD.
    loaded: AtomicBool,
    /// When it was last used, in milliseconds.
    used_at_ms: AtomicU64,
    /// Its number in the order of registrations.
    number: AtomicU64,
    key_access: ScriptKeysSeen,
}

impl Script {
    /// A script that is not registered yet.
    ///
    /// # Errors
    ///
    /// The shebang is wrong.
    pub fn new(body: &[u8]) -> Result<Self, ScriptFailure> {
        let (flags, code_start) = shebang::script(body)?;
        Ok(Self {
            sha: hex(body),
            body: body.into(),
            code_start,
            flags,
            live: AtomicBool::new(true),
            loaded: AtomicBool::new(false),
            used_at_ms: AtomicU64::new(0),
            number: AtomicU64::new(0),
            key_access: ScriptKeysSeen::default(),
        })
    }

    /// The flags that a body declares, or `None` without a valid shebang.
    pub fn declared(body: &[u8]) -> Option<ScriptFlags> {
        shebang::script(body).ok().and_then(|(flags, _)| flags)
    }

    /// Its SHA-1.
    pub fn sha(&self) -> &Sha {
        &self.sha
    }

    /// The text as a client sent it.
    pub fn body(&self) -> &Arc<[u8]> {
        &self.body
    }

    /// The text without the shebang.
    pub fn code(&self) -> &[u8] {
        self.body.get(self.code_start..).unwrap_or_default()
    }

    /// The flags that it declares, or `None` without a shebang.
    pub fn flags(&self) -> Option<ScriptFlags> {
        self.flags
    }

    /// How it uses keys.
    pub fn key_access(&self) -> &ScriptKeysSeen {
        &self.key_access
    }

    /// Whether EVALSHA still finds it.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.live.load(Ordering::Acquire)
    }

    /// Records a use. Writes to memory shared between threads at most once in a millisecond.
    #[inline]
    pub fn touch(&self, now_ms: u64) {
        if self.used_at_ms.load(Ordering::Relaxed) != now_ms {
            self.used_at_ms.store(now_ms, Ordering::Relaxed);
        }
    }
}

/// The scripts that EVALSHA finds.
#[derive(Debug, Default)]
pub struct ScriptRegistry {
    by_sha: HashMap<Sha, Arc<Script>, foldhash::fast::RandomState>,
    evaluated: usize,
    body_bytes: usize,
    evicted: u64,
    registered: u64,
}

impl ScriptRegistry {
    /// The script with a SHA-1, in digits of any case.
    pub fn find(&self, sha: &[u8]) -> Option<&Arc<Script>> {
        self.by_sha.get(&lower(sha)?)
    }

    /// Registers a script from EVAL, unless it exists. The caller has compiled it: scripts that do
    /// not compile are not kept.
    pub fn add_evaluated(&mut self, script: &Arc<Script>, now_ms: u64) {
        if self.by_sha.contains_key(&script.sha) {
            return;
        }
        while self.evaluated >= EVALUATED_SCRIPTS_MAX && self.evict() {}
        self.evaluated += 1;
        self.add(script, now_ms);
    }

    /// Registers a script from SCRIPT LOAD. A script from EVAL is never evicted afterwards.
    pub fn add_loaded(&mut self, script: &Arc<Script>, now_ms: u64) {
        match self.by_sha.get(&script.sha) {
            Some(known) => {
                let was_loaded = known.loaded.swap(true, Ordering::Relaxed);
                self.evaluated -= usize::from(!was_loaded);
            }
            None => {
                script.loaded.store(true, Ordering::Relaxed);
                self.add(script, now_ms);
            }
        }
    }

    fn add(&mut self, script: &Arc<Script>, now_ms: u64) {
        self.registered += 1;
        script.number.store(self.registered, Ordering::Relaxed);
        script.used_at_ms.store(now_ms, Ordering::Relaxed);
        script.live.store(true, Ordering::Release);
        self.body_bytes += script.body.len();
        self.by_sha.insert(script.sha, Arc::clone(script));
    }

    /// Removes the least recently used script from EVAL.
    fn evict(&mut self) -> bool {
        let evaluated =
            self.by_sha.values().filter(|script| !script.loaded.load(Ordering::Relaxed));
        let oldest = evaluated.min_by_key(|script| {
            (script.used_at_ms.load(Ordering::Relaxed), script.number.load(Ordering::Relaxed))
        });
        let Some(sha) = oldest.map(|script| script.sha) else { return false };
        if let Some(script) = self.by_sha.remove(&sha) {
            script.live.store(false, Ordering::Release);
            self.body_bytes -= script.body.len();
            self.evaluated -= 1;
            self.evicted += 1;
        }
        true
    }

    /// SCRIPT FLUSH.
    pub fn flush(&mut self) {
        self.by_sha.values().for_each(|script| script.live.store(false, Ordering::Release));
        self.by_sha.clear();
        self.evaluated = 0;
        self.body_bytes = 0;
    }

    /// `number_of_cached_scripts` of INFO.
    pub fn len(&self) -> usize {
        self.by_sha.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_sha.is_empty()
    }

    /// `evicted_scripts` of INFO: the number since the server began.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Bytes of all bodies, and of the register for each.
    pub fn memory_bytes(&self) -> usize {
        self.body_bytes + self.by_sha.len() * (size_of::<Script>() + size_of::<Sha>())
    }
}

/// A SHA-1 in lower-case digits, or `None` if it does not have 40 bytes.
pub fn lower(sha: &[u8]) -> Option<Sha> {
    let mut sha: Sha = sha.try_into().ok()?;
    sha.make_ascii_lowercase();
    Some(sha)
}

/// The SHA-1 of bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> [u8; 40] {
    digits(Sha1::new_with_prefix(bytes))
}

pub fn digits(sha: Sha1) -> [u8; 40] {
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(sha.finalize()) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
