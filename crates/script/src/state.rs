//! State shared by the callbacks of one VM: the current run, and its buffers.
//!
//! Callbacks live as long as the VM, so they reach the run through this state and the host through
//! `HOST`. Only the capacity of the buffers outlives a run, and it is bounded.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::RandomState;
use mlua::{Error, Function, Lua};
use resp::out::Mark;
use resp::{Out, Span};
use scoped_tls_hkt::scoped_thread_local;
use sys::luau::{safepoints_left, set_safepoints};

use crate::failure::SourcePlace;
use crate::flags::ScriptFlags;
use crate::host::{HOST, Tick};
use crate::json_config::JsonConfig;

/// The host is asked once in this many safepoints of the interpreter while they come fast. A
/// safepoint is a call, a return, a jump back or a step of a pattern.
const TICK_SAFEPOINTS: u32 = 64;
/// If safepoints are further apart than this, each is followed by a tick. So is the one after a
/// step that takes much memory, because further steps on such a text may take long. Then the number
/// of safepoints between two ticks doubles as long as they come fast.
const TICK_GAP_MAX: Duration = Duration::from_micros(500);
/// Capacity that a buffer keeps between runs.
pub const KEPT_BYTES_MAX: usize = 64 * 1024;
/// The most errors within one reply that are counted.
const RETURNED_ERRORS_MAX: usize = 1024;
/// Bytes of such an error that are read.
const RETURNED_ERROR_BYTES_MAX: usize = 64;
/// The time limit for the code of a new library.
pub const LOAD_TIMEOUT: Duration = Duration::from_millis(500);
/// The time limit for a library in another VM after it was loaded in one: the machine may be busier
/// by then, and the client that calls a function is not to blame.
pub const LOAD_AGAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The text of the error when the host ends a script.
pub const KILLED: &str = "Script killed by user with SCRIPT KILL...";

/// Why a script was stopped.
#[derive(Clone, Debug)]
pub struct ScriptStop {
    /// The text of the error, without its code.
    pub text: &'static str,
    /// Where the script was stopped.
    pub place: Option<SourcePlace>,
}

/// A function that a library registered while it was loaded.
pub struct Registration {
    /// Its name, of letters, digits and underscores.
    pub name: Vec<u8>,
    /// The text of `description`.
    pub description: Option<Vec<u8>>,
    /// The flags that it declares.
    pub flags: ScriptFlags,
    /// The function that FCALL calls.
    pub callback: Function,
}

/// The functions that a library has registered so far.
#[derive(Default)]
pub struct Registrations {
    in_order: Vec<Registration>,
    names: HashSet<Vec<u8>, RandomState>,
}

impl Registrations {
    /// Adds a function. Returns false if the name is taken.
    pub fn add(&mut self, registration: Registration) -> bool {
        let is_new = self.names.insert(registration.name.clone());
        if is_new {
            self.in_order.push(registration);
        }
        is_new
    }

    /// The functions in the order of their registration.
    pub fn into_vec(self) -> Vec<Registration> {
        self.in_order
    }
}

/// The arguments and the reply of one command.
#[derive(Default)]
pub struct CallBuffers {
    pub bytes: Vec<u8>,
    pub spans: Vec<Span>,
    pub own: Vec<Arc<Vec<u8>>>,
    pub out: Out,
    /// The reply in one piece, if `out` holds it in several.
    pub flat: Vec<u8>,
    /// The request was refused; `flat` holds the error.
    pub is_refused: bool,
    /// The buffers may hold data.
    pub is_used: bool,
}

impl CallBuffers {
    /// The reply of the last command.
    pub fn reply(&self) -> &[u8] {
        if self.flat.is_empty() { &self.out.bytes } else { &self.flat }
    }

    /// Whether the reply contains values of the keyspace, which are not copied until
    /// [`Self::join_reply`].
    #[inline]
    pub fn shares_values(&self) -> bool {
        self.out.mark().shares_since(Mark::default())
    }

    /// The length of the reply.
    pub fn reply_bytes(&self) -> usize {
        if self.flat.is_empty() { self.out.bytes_since(Mark::default()) } else { self.flat.len() }
    }

    /// Copies a reply that contains values of the keyspace into one piece.
    pub fn join_reply(&mut self) {
        if self.shares_values() {
            let Self { out, flat, .. } = self;
            let pieces = out.pieces(Mark::default(), out.mark());
            pieces.for_each(|piece| flat.extend_from_slice(piece.as_slice()));
        }
    }

    /// The buffer that holds the reply.
    pub fn reply_buffer(&mut self) -> &mut Vec<u8> {
        if self.flat.is_empty() { &mut self.out.bytes } else { &mut self.flat }
    }

    /// Removes everything and keeps a bounded amount of memory.
    pub fn clear(&mut self) {
        if !self.is_used {
            return;
        }
        (self.is_refused, self.is_used) = (false, false);
        self.own.clear();
        base::room::clear(&mut self.bytes, KEPT_BYTES_MAX);
        base::room::clear(&mut self.spans, KEPT_BYTES_MAX);
        base::room::clear(&mut self.flat, KEPT_BYTES_MAX);
        self.out.clear_to(KEPT_BYTES_MAX);
    }
}

scoped_thread_local!(
    /// The state of the VM that runs on this thread.
    pub static STATE: VmState
);

/// The state of a VM; see this module.
pub struct VmState {
    pub buffers: RefCell<CallBuffers>,
    /// Whether commands reply in RESP3, set by `redis.setresp`.
    pub resp3: Cell<bool>,
    /// The state of `math.random`, after it was used or seeded in this run.
    pub random: Cell<Option<u64>>,
    /// The registrations of a library that is being loaded.
    pub registrations: RefCell<Option<Registrations>>,
    /// Errors within the values that the script returned, until they are counted.
    pub returned_errors: RefCell<Vec<Vec<u8>>>,
    /// The settings of the `cjson` that scripts share.
    pub json: Rc<Cell<JsonConfig>>,
    /// Bytes that a VM may take while Lua runs.
    pub memory_bytes_max: usize,
    /// Memory use from which garbage is collected at once: at its memory limit the interpreter
    /// fails without collecting, and its own pace is too slow for long strings.
    collect_at: Cell<usize>,
    stop: RefCell<Option<ScriptStop>>,
    last_tick: Cell<Option<Duration>>,
    /// Safepoints from the last tick to the next.
    tick_safepoints: Cell<u32>,
    deadline: Cell<Option<Duration>>,
    timeout: Cell<Option<Duration>>,
}

impl VmState {
    pub fn new(memory_bytes_max: usize) -> Self {
        Self {
            buffers: RefCell::default(),
            resp3: Cell::new(false),
            random: Cell::new(None),
            registrations: RefCell::new(None),
            returned_errors: RefCell::default(),
            json: Rc::default(),
            memory_bytes_max,
            collect_at: Cell::new(memory_bytes_max / 2),
            stop: RefCell::new(None),
            last_tick: Cell::new(None),
            tick_safepoints: Cell::new(TICK_SAFEPOINTS),
            deadline: Cell::new(None),
            timeout: Cell::new(None),
        }
    }

    /// Begins a run. With a timeout, the run ends that long after its first tick.
    pub fn begin(&self, timeout: Option<Duration>) {
        // A run that was stopped between a command and its reply has left the reply there.
        self.buffers.borrow_mut().clear();
        self.resp3.set(false);
        self.random.set(None);
        self.json.set(JsonConfig::default());
        set_safepoints(TICK_SAFEPOINTS);
        self.tick_safepoints.set(TICK_SAFEPOINTS);
        self.last_tick.set(None);
        self.deadline.set(None);
        self.timeout.set(timeout);
        self.stop.replace(None);
    }

    /// Keeps the beginning of an error, which includes its code.
    pub fn note_returned_error(&self, text: &[u8]) {
        let mut errors = self.returned_errors.borrow_mut();
        if errors.len() < RETURNED_ERRORS_MAX {
            errors.push(text[..text.len().min(RETURNED_ERROR_BYTES_MAX)].to_vec());
        }
    }

    /// Ends a run. Returns why it was stopped, if it was.
    pub fn end(&self) -> Option<ScriptStop> {
        self.collect_at.set(self.memory_bytes_max / 2);
        self.stop.take()
    }

    /// Asks the host whether the script may continue: at some safepoints, and within long
    /// functions.
    ///
    /// # Errors
    ///
    /// The script was stopped: at this and every later safepoint of the run, so that no `pcall`
    /// delays the end.
    #[cold]
    #[inline(never)]
    pub fn poll(&self, lua: &Lua) -> mlua::Result<()> {
        // Between runs only our own functions execute, to write replies.
        if !HOST.is_set() {
            set_safepoints(TICK_SAFEPOINTS);
            return Ok(());
        }
        self.collect(lua)?;
        if self.stop.borrow().is_none() {
            match HOST.with(|host| host.tick()) {
                Tick::Continue(now) => match self.passed(now) {
                    Ok(()) => return Ok(()),
                    Err(text) => self.stop_at(lua, text),
                },
                Tick::Kill => self.stop_at(lua, KILLED),
            }
        }
        // From now on every safepoint calls this function.
        set_safepoints(0);
        Err(Error::runtime("stopped"))
    }

    /// Schedules the next tick, and checks the time limit of a load.
    fn passed(&self, now: Duration) -> Result<(), &'static str> {
        let last = self.last_tick.replace(Some(now));
        let is_slow = last.is_some_and(|last| now.saturating_sub(last) > TICK_GAP_MAX)
            || safepoints_left() > 1;
        let next = if is_slow { 1 } else { TICK_SAFEPOINTS.min(2 * self.tick_safepoints.get()) };
        self.tick_safepoints.set(next);
        set_safepoints(next);
        if let Some(timeout) = self.timeout.get() {
            let deadline = self.deadline.get().unwrap_or(now + timeout);
            self.deadline.set(Some(deadline));
            if now > deadline {
                return Err("FUNCTION LOAD timeout");
            }
        }
        Ok(())
    }

    /// Collects garbage if there may be much.
    #[inline]
    pub fn collect(&self, lua: &Lua) -> mlua::Result<()> {
        if lua.used_memory() > self.collect_at.get() { self.collect_now(lua) } else { Ok(()) }
    }

    /// Collects garbage before this many bytes are allocated at once, if there may be much.
    pub fn collect_before(&self, lua: &Lua, bytes: usize) -> mlua::Result<()> {
        let expected = lua.used_memory().saturating_add(bytes);
        if expected > self.collect_at.get() { self.collect_now(lua) } else { Ok(()) }
    }

    #[cold]
    fn collect_now(&self, lua: &Lua) -> mlua::Result<()> {
        lua.gc_collect()?;
        // Collects again when half of the remaining memory is used, so that a script with much data
        // does not collect all the time.
        let (live, max) = (lua.used_memory(), self.memory_bytes_max);
        let half_of_rest = max.saturating_sub(live) / 2;
        self.collect_at.set((live + half_of_rest).max(max / 2));
        Ok(())
    }

    fn stop_at(&self, lua: &Lua, text: &'static str) {
        let place = (0..8).find_map(|level| lua.inspect_stack(level, SourcePlace::of).flatten());
        self.stop.replace(Some(ScriptStop { text, place }));
    }

    /// Runs `f` without the memory limit, under which each allocation would be a protected call.
    /// The memory of `f` counts when Lua continues.
    #[inline]
    pub fn unlimited<R>(&self, lua: &Lua, f: impl FnOnce() -> R) -> R {
        // Cannot fail: the VM has its own allocator.
        let _ = lua.set_memory_limit(0);
        let result = f();
        // Only finalizers can fail here, and there are none.
        let _ = self.collect(lua);
        let _ = lua.set_memory_limit(self.memory_bytes_max);
        result
    }
}
