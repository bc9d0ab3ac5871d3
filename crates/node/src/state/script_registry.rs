//! The scripts of a server as all threads share them: those that exist, and those that run.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use command::Flags;
use parking_lot::{Mutex, RwLock};
use resp::Args;
use script::{Libraries, Script, ScriptFlags, ScriptRegistry};

use super::busy_scripts::{BusyScript, BusyScripts};
use crate::command_table::entry::{Call, Entry};
use crate::command_table::script_call::{Named, ScriptCall};

/// After so many evicted scripts, VMs drop their compiled forms.
const EVICTED_SWEEP: u64 = 128;

/// Scripts and libraries of one server, and the scripts that run.
#[derive(Debug)]
pub struct Scripting {
    /// Distinguishes the servers of a process.
    pub(crate) number: u64,
    /// The scripts that EVALSHA finds.
    pub scripts: RwLock<ScriptRegistry>,
    /// The libraries whose functions FCALL finds.
    pub libraries: RwLock<Libraries>,
    /// Scripts that had been evicted at the last CONFIG RESETSTAT.
    evicted_base: AtomicU64,
    /// How often many scripts or libraries were removed: a VM that has seen a smaller number drops
    /// their compiled forms.
    gone: AtomicU64,
    /// The exclusive slot: held by the script that may wait for shards while it holds others.
    pub exclusive: Mutex<()>,
    /// The scripts that have run for at least a moment, by thread.
    running: Mutex<HashMap<usize, Arc<Running>>>,
    /// Those that have run for longer than `busy-reply-threshold`.
    pub busy: BusyScripts,
    vm_bytes: Mutex<HashMap<usize, usize>>,
    /// The server shuts down: scripts end, even if they have written.
    is_ending: AtomicBool,
    /// The same for scripts that become busy.
    ends_busy: AtomicBool,
    /// A script that had written was ended.
    must_end: AtomicBool,
}

/// The memory and the number of scripts and functions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScriptFigures {
    /// Bytes of the interpreters.
    pub(crate) vm_bytes: u64,
    /// Bytes of scripts, and how many there are.
    pub(crate) scripts: (u64, u64),
    /// Scripts evicted since the last CONFIG RESETSTAT.
    pub(crate) evicted: u64,
    /// Bytes of the code of libraries, how many there are, and their functions.
    pub(crate) libraries: (u64, u64, u64),
}

/// A script that runs.
#[derive(Debug)]
pub struct Running {
    /// Its function's name; `None` for an EVAL script.
    pub function: Option<Vec<u8>>,
    /// The request that runs it.
    pub command: Vec<Vec<u8>>,
    /// When it began, in milliseconds on the steady scale.
    pub began_ms: i64,
    /// Whether it has written, or was killed.
    pub kill_state: Arc<KillState>,
}

/// Whether a script may be killed: the first write and the kill exclude each other.
#[derive(Debug, Default)]
pub struct KillState(AtomicU8);

const WROTE: u8 = 1;
const KILLED: u8 = 2;
/// Killed after it has written.
const FORCED: u8 = 3;

impl KillState {
    /// Notes that the script is about to write. Returns false if it was killed.
    pub fn write(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(0, WROTE, success, failure) {
            Ok(_) | Err(WROTE) => true,
            Err(_) => false,
        }
    }

    /// Kills the script. Returns false if it has written.
    pub fn kill(&self) -> bool {
        let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
        match self.0.compare_exchange(0, KILLED, success, failure) {
            Ok(_) | Err(KILLED) => true,
            Err(_) => false,
        }
    }

    /// Kills the script even if it has written, because the server shuts down. Returns whether it
    /// has.
    fn force(&self) -> bool {
        if self.kill() {
            return false;
        }
        self.0.store(FORCED, Ordering::Release);
        true
    }

    /// Whether the script was killed.
    pub fn is_killed(&self) -> bool {
        self.0.load(Ordering::Acquire) >= KILLED
    }

    /// Whether it was killed although it has written: its effects must be dropped.
    pub fn is_forced(&self) -> bool {
        self.0.load(Ordering::Acquire) == FORCED
    }

    /// Whether the script has written.
    pub fn has_written(&self) -> bool {
        self.0.load(Ordering::Acquire) == WROTE
    }
}

/// Whether a script that declares these flags may not run when memory is short.
pub(crate) fn needs_memory(flags: ScriptFlags) -> bool {
    !flags.contains(ScriptFlags::NO_WRITES) && !flags.contains(ScriptFlags::ALLOW_OOM)
}

impl Default for Scripting {
    fn default() -> Self {
        static SERVERS: AtomicU64 = AtomicU64::new(0);
        Self {
            number: SERVERS.fetch_add(1, Ordering::Relaxed),
            scripts: RwLock::default(),
            libraries: RwLock::default(),
            evicted_base: AtomicU64::new(0),
            gone: AtomicU64::new(0),
            exclusive: Mutex::default(),
            running: Mutex::default(),
            busy: BusyScripts::default(),
            is_ending: AtomicBool::new(false),
            ends_busy: AtomicBool::new(false),
            must_end: AtomicBool::new(false),
            vm_bytes: Mutex::default(),
        }
    }
}

impl Scripting {
    pub(crate) fn flush_scripts(&self) {
        self.scripts.write().flush();
        self.gone.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn flush_libraries(&self) {
        self.libraries.write().flush();
        self.gone.fetch_add(1, Ordering::Release);
    }

    /// Forgets a library. Returns whether it was there.
    pub(crate) fn remove_library(&self, name: &[u8]) -> bool {
        let removed = self.libraries.write().remove(name);
        self.gone.fetch_add(u64::from(removed), Ordering::Release);
        removed
    }

    /// Registers a script that EVAL brought. From time to time the VMs learn that others were
    /// evicted for it.
    pub(crate) fn add_evaluated(&self, script: &Arc<Script>, now_ms: u64) {
        let mut scripts = self.scripts.write();
        let before = scripts.evicted();
        scripts.add_evaluated(script, now_ms);
        if scripts.evicted() / EVICTED_SWEEP != before / EVICTED_SWEEP {
            self.gone.fetch_add(1, Ordering::Release);
        }
    }

    /// CONFIG RESETSTAT: resets the counts.
    pub(crate) fn reset_totals(&self) {
        self.evicted_base.store(self.scripts.read().evicted(), Ordering::Relaxed);
    }

    /// How often scripts or libraries were flushed.
    #[inline]
    pub(crate) fn gone(&self) -> u64 {
        self.gone.load(Ordering::Acquire)
    }

    /// Whether a request may write. A script says so itself; one that is not known may.
    #[inline]
    pub(crate) fn may_write(&self, entry: &Entry, args: &Args<'_>) -> bool {
        match entry.call {
            Call::Script(call) => {
                let writes = |flags: ScriptFlags| !flags.contains(ScriptFlags::NO_WRITES);
                !call.read_only && self.declared(call, args).is_none_or(writes)
            }
            _ => entry.spec.flags.may_write(),
        }
    }

    /// Whether a request is refused when memory is short. A script that declares nothing is not:
    /// its commands are.
    pub(crate) fn may_take_memory(&self, entry: &Entry, args: &Args<'_>) -> bool {
        match entry.call {
            Call::Script(call) => self.declared(call, args).is_some_and(needs_memory),
            _ => entry.spec.flags.has(Flags::DENYOOM),
        }
    }

    /// Whether a request is refused while writes cannot be kept on the disk, although the admission
    /// flags of its command do not say so: a script that declares what it does, and that it writes.
    pub(crate) fn declares_writes(&self, entry: &Entry, args: &Args<'_>) -> bool {
        let Call::Script(call) = entry.call else { return false };
        let writes = |flags: ScriptFlags| !flags.contains(ScriptFlags::NO_WRITES);
        self.declared(call, args).is_some_and(writes)
    }

    /// The flags that a request's script declares. `None` if it declares nothing, or is not known.
    fn declared(&self, call: ScriptCall, args: &Args<'_>) -> Option<ScriptFlags> {
        let name = args.text(1);
        match call.what {
            Named::Body if !name.starts_with(b"#!") => None,
            Named::Body => Script::declared(name),
            Named::Sha => self.scripts.read().find(name).and_then(|script| script.flags()),
            Named::Function => {
                let libraries = self.libraries.read();
                libraries.function(name).map(|(_, function)| function.flags)
            }
        }
    }

    /// Notes a script that has run on a thread for a moment.
    pub fn begin(&self, thread: usize, running: Arc<Running>) {
        let mut all = self.running.lock();
        if self.is_ending.load(Ordering::Relaxed) {
            self.force(&running.kill_state);
        }
        all.insert(thread, running);
    }

    /// The thread's script has ended.
    pub fn end(&self, thread: usize) {
        self.busy.end(thread);
        self.running.lock().remove(&thread);
    }

    /// The scripts that a client may want to kill, those first that have run longest: the busy
    /// ones, or all that have run for a moment if none is busy.
    pub fn candidates(&self) -> Vec<Arc<Running>> {
        let running = self.running.lock();
        let is_wanted = |thread: usize| !self.busy.any() || self.busy.runs_on(thread);
        let wanted = running.iter().filter(|(thread, _)| is_wanted(**thread));
        let mut wanted: Vec<_> = wanted.map(|(_, running)| Arc::clone(running)).collect();
        wanted.sort_by_key(|running| running.began_ms);
        wanted
    }

    /// The function that has run longest, of those that have run for a moment.
    pub fn function(&self) -> Option<Arc<Running>> {
        let running = self.running.lock();
        let functions = running.values().filter(|running| running.function.is_some());
        functions.min_by_key(|running| running.began_ms).cloned()
    }

    /// Notes the bytes of a thread's interpreter.
    pub fn set_vm_bytes(&self, thread: usize, bytes: usize) {
        self.vm_bytes.lock().insert(thread, bytes);
    }

    /// The memory and the number of scripts and functions.
    pub(crate) fn figures(&self) -> ScriptFigures {
        let (scripts, libraries) = (self.scripts.read(), self.libraries.read());
        let code: usize = libraries.iter().map(|library| library.source().len()).sum();
        let functions = libraries.function_count() as u64;
        ScriptFigures {
            vm_bytes: self.vm_bytes.lock().values().map(|bytes| *bytes as u64).sum(),
            scripts: (scripts.memory_bytes() as u64, scripts.len() as u64),
            evicted: scripts.evicted() - self.evicted_base.load(Ordering::Relaxed),
            libraries: (code as u64, libraries.len() as u64, functions),
        }
    }

    /// Kills all scripts, also those that begin later, because the server shuts down.
    pub fn end_all(&self) {
        let running = self.running.lock();
        self.is_ending.store(true, Ordering::Relaxed);
        running.values().for_each(|running| self.force(&running.kill_state));
    }

    fn force(&self, kill_state: &KillState) {
        if kill_state.force() {
            self.must_end.store(true, Ordering::Release);
        }
    }

    /// Whether the shutdown can no longer be called off: a script was ended after some of its
    /// writes, which are in memory and not in the log.
    pub fn must_end(&self) -> bool {
        self.must_end.load(Ordering::Acquire)
    }

    /// The shutdown is called off. Returns false if the server [must end](Self::must_end).
    pub fn go_on(&self) -> bool {
        let _running = self.running.lock();
        if !self.must_end() {
            self.is_ending.store(false, Ordering::Relaxed);
        }
        !self.must_end()
    }

    /// Kills scripts that become busy from now on, because no client could.
    pub fn end_when_busy(&self) {
        self.ends_busy.store(true, Ordering::Relaxed);
    }

    /// Notes that a script has become busy.
    pub(crate) fn begin_busy(&self, script: BusyScript, kill_state: &KillState) {
        self.busy.begin(script);
        if self.ends_busy.load(Ordering::Relaxed) {
            self.force(kill_state);
        }
    }

    /// Kills the busy scripts that have not written. Returns whether there are no others.
    pub fn end_harmless(&self) -> bool {
        let running = self.running.lock();
        let busy = running.iter().filter(|(thread, _)| self.busy.runs_on(**thread));
        busy.fold(true, |all, (_, running)| running.kill_state.kill() && all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_has_written_is_not_killed() {
        let (wrote, killed) = (KillState::default(), KillState::default());
        assert!(wrote.write() && wrote.write() && !wrote.kill() && !wrote.is_killed());
        assert!(killed.kill() && killed.kill() && !killed.write() && killed.is_killed());
        assert!(wrote.force() && wrote.is_killed() && wrote.is_forced());
        assert!(!wrote.write() && !wrote.has_written());
        assert!(!killed.force() && !killed.is_forced());
    }

    #[test]
    fn a_server_that_ended_a_script_after_a_write_cannot_continue() {
        let (scripting, wrote) = (Scripting::default(), KillState::default());
        let running = |kill_state: KillState| {
            let (function, command, began_ms) = (None, Vec::new(), 0);
            Arc::new(Running { function, command, began_ms, kill_state: Arc::new(kill_state) })
        };
        scripting.begin(1, running(KillState::default()));
        scripting.end_all();
        assert!(scripting.go_on(), "it had not written");
        scripting.end_all();
        assert!(wrote.write());
        scripting.begin(2, running(wrote));
        assert!(scripting.must_end() && !scripting.go_on());
    }
}
