//! What a crash leaves in the log: the signal, its address, the thread and what that was doing.
//!
//! ```text
//! the thread that crashes, in the handler        the thread that names frames
//!   head, signal, address, pc, addresses  ->
//!   asks, and waits for some seconds      ---->  names of functions, files and lines
//!   end; the signal again, with its default
//! ```
//!
//! The handler calls only what is safe in it, writes what matters first, and allocates nothing. To
//! find names takes memory and locks, which the crash may have broken: another thread does it, and
//! is waited for for some seconds at most. Handlers run on stacks of their own, for a crash may
//! be that of the stack.

use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::fmt::{self, Write};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::eventfd::EventFd;
use crate::process::thread_id;
use crate::signal::block;

/// The signals of a crash, with their names.
const CRASHES: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];
/// How long the names of frames may take: in builds for development there is much more to read.
const NAMES_MS: c_int = if cfg!(debug_assertions) { 25_000 } else { 5000 };
/// How long a thread waits that crashes while another one reports.
const OTHER_MS: c_int = 2 * NAMES_MS;
/// Between two looks whether it still does.
const LOOK_MS: c_int = 20;
const FRAMES_MAX: usize = 64;
/// Bytes of the stack that handlers of a thread run on.
const STACK_BYTES: usize = 64 << 10;
/// What the walk over the frames needs of such a stack.
const WALK_BYTES: usize = 24 << 10;
/// How far below its end a stack that overflows is missed, where nothing guards it.
const GUARD_BYTES: usize = 64 << 10;

/// What is around a report of SIGALRM, behind which the process goes on.
const LOOK_HEAD: &str = "\n=== Received SIGALRM: this is what a thread is doing ===\n";
const LOOK_TAIL: &str = "=== It goes on ===\n\n";

static PREPARED: OnceLock<Prepared> = OnceLock::new();
/// The thread that reports, and the one that names frames; 0 for none.
static REPORTER: AtomicU32 = AtomicU32::new(0);
static NAMER: AtomicU32 = AtomicU32::new(0);
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];
static FRAMES_LEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Where this thread's stack ends; 0 if that is not known.
    static STACK_END: Cell<usize> = const { Cell::new(0) };
    static HANDLER_STACK: Cell<Option<HandlerStack>> = const { Cell::new(None) };
}

/// What reports need.
struct Prepared {
    /// The path of the log; empty: standard output.
    log: CString,
    /// The first lines.
    head: String,
    /// The last line.
    tail: String,
    asked: EventFd,
    named: EventFd,
}

/// Prepares reports: they go to the end of a file, or to standard output when its path is empty,
/// and begin and end with some lines. SIGALRM makes one from now on, and the process goes on.
/// Crashes follow with [`enable`]; names of functions are those of the thread that calls
/// [`name_frames`]. Does nothing when called again.
///
/// # Errors
/// When the process is out of descriptors, or the path has a zero byte.
pub fn prepare(log: &str, head: String, tail: String) -> io::Result<()> {
    let (asked, named) = (EventFd::new()?, EventFd::new()?);
    let _ = PREPARED.set(Prepared { log: CString::new(log)?, head, tail, asked, named });
    // What loads something at its first use has done so then.
    backtrace::trace(|_| false);
    // On the thread's own stack: it has not overflowed.
    set_handler(libc::SIGALRM, libc::SA_RESTART);
    Ok(())
}

/// Whether crashes are reported, when that is prepared.
pub fn enable(is_on: bool) {
    let is_reported = is_on && PREPARED.get().is_some();
    for (signal, _) in CRASHES {
        if is_reported {
            set_handler(signal, libc::SA_ONSTACK);
        } else {
            // Not that of the standard library, which trusts that a fault comes again: a signal
            // that another process has sent does not.
            // SAFETY: no handler is left that could be wrong.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

fn set_handler(signal: c_int, flags: c_int) {
    // SAFETY: the structure is plain data; the handler keeps to what is allowed in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = flags | libc::SA_SIGINFO;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Writes the names of frames into reports, whenever one asks for it. The calling thread does
/// nothing else: it waits for locks, and for who reads the log. `begun` is called when reports
/// ask it. Returns if nothing is prepared.
pub fn name_frames(begun: impl FnOnce()) {
    let Some(prepared) = PREPARED.get() else { return };
    NAMER.store(thread_id(), Ordering::Relaxed);
    begun();
    loop {
        if wait_for(&prepared.asked, -1) {
            prepared.asked.clear();
            write_names(prepared);
            prepared.named.signal();
        }
    }
}

/// Waits for so long at most until something is signalled; without an end if that is negative.
/// May be called in a handler.
fn wait_for(event: &EventFd, milliseconds: c_int) -> bool {
    let fd = event.as_fd().as_raw_fd();
    let mut wait = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: it is one structure.
    unsafe { libc::poll(&mut wait, 1, milliseconds) > 0 }
}

/// SIGALRM and SIGABRT, by which someone asks what the process is doing, look at other threads than
/// the calling one and those that it starts. abort(3) is heard in these as well.
pub fn leave_alone() {
    block(&[libc::SIGALRM, libc::SIGABRT]);
}

fn write_names(prepared: &Prepared) {
    let mut out = Out::open(&prepared.log);
    for frame in &FRAMES[..FRAMES_LEN.load(Ordering::Acquire)] {
        let address = frame.load(Ordering::Relaxed);
        let mut is_known = false;
        backtrace::resolve(address as *mut c_void, |symbol| {
            is_known = true;
            let _ = write!(out, "  {address:#018x}");
            if let Some(name) = symbol.name() {
                let _ = write!(out, " {name:#}");
            }
            if let (Some(file), Some(line)) = (symbol.filename(), symbol.lineno()) {
                let _ = write!(out, " at {}:{line}", file.display());
            }
            let _ = out.write_char('\n');
        });
        if !is_known {
            let _ = writeln!(out, "  {address:#018x}");
        }
        out.flush();
    }
}

/// Writes to an address that nobody has.
pub fn segfault() {
    // SAFETY: it is not sound, and is not meant to be: it ends the process.
    unsafe { std::ptr::without_provenance_mut::<u8>(1).write_volatile(0) };
}

/// A stack that handlers run on. Below it nothing is mapped for use.
struct HandlerStack(*mut c_void);

impl HandlerStack {
    /// Makes one for the calling thread.
    fn new() -> Option<Self> {
        // SAFETY: the memory is new, and belongs to this thread's handlers until it is dropped.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
            let size = STACK_BYTES + page;
            let start = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
            if start == libc::MAP_FAILED {
                return None;
            }
            let own = Self(start);
            let bottom = start.byte_add(page);
            libc::mprotect(bottom, STACK_BYTES, libc::PROT_READ | libc::PROT_WRITE);
            let stack = libc::stack_t { ss_sp: bottom, ss_flags: 0, ss_size: STACK_BYTES };
            (libc::sigaltstack(&stack, std::ptr::null_mut()) == 0).then_some(own)
        }
    }
}

impl Drop for HandlerStack {
    fn drop(&mut self) {
        // SAFETY: the thread ends; no handler runs on it any more when it is given back.
        unsafe {
            let none = libc::stack_t {
                ss_sp: std::ptr::null_mut(),
                ss_flags: libc::SS_DISABLE,
                ss_size: 0,
            };
            libc::sigaltstack(&none, std::ptr::null_mut());
            let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
            libc::munmap(self.0, STACK_BYTES + page);
        }
    }
}

/// Gives handlers of the calling thread a stack that is large enough to look through its frames.
/// Others have a small one of the standard library, and a shorter report.
pub fn protect_thread() {
    // Its end would switch off the new one.
    drop(HANDLER_STACK.take());
    HANDLER_STACK.set(HandlerStack::new());
    // SAFETY: the attributes are initialised by the first call, and destroyed.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) == 0 {
            let (mut end, mut size) = (std::ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&attributes, &mut end, &mut size);
            STACK_END.set(end as usize);
            libc::pthread_attr_destroy(&mut attributes);
        }
    }
}

/// Text on its way to the log, without allocating.
struct Out {
    fd: RawFd,
    is_own: bool,
    bytes: [u8; 256],
    len: usize,
}

impl Out {
    fn open(log: &CString) -> Self {
        let (mut fd, mut is_own) = (libc::STDOUT_FILENO, false);
        if !log.is_empty() {
            let flags = libc::O_APPEND | libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
            // SAFETY: the path ends with a zero byte.
            let opened = unsafe { libc::open(log.as_ptr(), flags, 0o644) };
            if opened >= 0 {
                (fd, is_own) = (opened, true);
            }
        }
        Self { fd, is_own, bytes: [0; 256], len: 0 }
    }

    fn flush(&mut self) {
        let mut rest = &self.bytes[..self.len];
        while !rest.is_empty() {
            // SAFETY: the bytes are read up to their length.
            let written = unsafe { libc::write(self.fd, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(written) {
                Ok(1..) => rest = &rest[written as usize..],
                _ => break,
            }
        }
        self.len = 0;
    }
}

impl Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if self.len == self.bytes.len() {
                self.flush();
            }
            self.bytes[self.len] = byte;
            self.len += 1;
        }
        Ok(())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.flush();
        if self.is_own {
            // SAFETY: the descriptor is its own.
            unsafe { libc::close(self.fd) };
        }
    }
}

/// The handler. Nothing in it may allocate, lock or panic.
extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: each thread has its own.
    let errno = unsafe { *libc::__errno_location() };
    let is_crash = signal != libc::SIGALRM;
    let taken = take_turn(is_crash);
    if taken {
        // SAFETY: the kernel gives a handler both structures.
        unsafe { report(signal, &*info, context.cast()) };
    }
    // SAFETY: all of these may be called in a handler.
    unsafe {
        if is_crash {
            // When the handler returns the process ends as it would have without one.
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else if taken {
            REPORTER.store(0, Ordering::Release);
        }
        *libc::__errno_location() = errno;
    }
}

/// Whether this thread reports. One that has crashed waits for another that does: the process goes
/// on behind that if it was for SIGALRM, and ends otherwise.
fn take_turn(is_crash: bool) -> bool {
    let own = thread_id();
    for _ in 0..OTHER_MS / LOOK_MS {
        match REPORTER.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            // The report itself has crashed.
            Err(reporter) if reporter == own => return false,
            // SAFETY: there are no descriptors to be looked at.
            Err(_) if is_crash => unsafe {
                libc::poll(std::ptr::null_mut(), 0, LOOK_MS);
            },
            Err(_) => return false,
        }
    }
    false
}

/// Writes a report.
///
/// # Safety
/// In a handler, with what the kernel has given it.
unsafe fn report(signal: c_int, info: &libc::siginfo_t, context: *const libc::ucontext_t) {
    let Some(prepared) = PREPARED.get() else { return };
    let mut out = Out::open(&prepared.log);
    let is_crash = signal != libc::SIGALRM;
    if is_crash {
        let _ = out.write_str(&prepared.head);
    }
    // SAFETY: the kernel has written the registers.
    let (pc, sp) = unsafe { registers(context) };
    // SAFETY: as the caller's.
    unsafe { write_signal(&mut out, signal, info, sp) };
    let mut name = [0u8; 17];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = name.split(|byte| *byte == 0).next().and_then(|name| str::from_utf8(name).ok());
    let _ = writeln!(out, "Thread: {} ({})", name.unwrap_or("?"), thread_id());
    let _ = writeln!(out, "Instruction: {pc:#x}, stack: {sp:#x}");
    out.flush();
    walk(pc, !is_crash);
    let _ = out.write_str("Frames:");
    for frame in &FRAMES[..FRAMES_LEN.load(Ordering::Relaxed)] {
        let _ = write!(out, " {:#x}", frame.load(Ordering::Relaxed));
    }
    let _ = out.write_char('\n');
    out.flush();
    let namer = NAMER.load(Ordering::Relaxed);
    if namer != 0 && namer != thread_id() {
        prepared.named.clear();
        prepared.asked.signal();
        wait_for(&prepared.named, NAMES_MS);
    }
    let _ = out.write_str(if is_crash { &prepared.tail } else { LOOK_TAIL });
}

/// Says which signal it was, and why it came.
///
/// # Safety
/// As [`report`].
unsafe fn write_signal(out: &mut Out, signal: c_int, info: &libc::siginfo_t, sp: usize) {
    if signal == libc::SIGALRM {
        let _ = out.write_str(LOOK_HEAD);
        return;
    }
    let name = CRASHES.iter().find(|(number, _)| *number == signal).map_or("?", |(_, name)| name);
    let code = info.si_code;
    let _ = writeln!(out, "The server crashed by signal: {signal} ({name}), si_code: {code}");
    if code <= 0 {
        // SAFETY: a signal of this kind has a sender.
        let (process, user) = unsafe { (info.si_pid(), info.si_uid()) };
        let _ = writeln!(out, "It was sent by process {process} of user {user}");
        return;
    }
    // SAFETY: a signal of the kernel has an address.
    let address = unsafe { info.si_addr() } as usize;
    let _ = writeln!(out, "Address: {address:#x}");
    let end = STACK_END.get();
    let guard = end.saturating_sub(GUARD_BYTES)..end + GUARD_BYTES;
    if signal == libc::SIGSEGV && end != 0 && guard.contains(&address) && guard.contains(&sp) {
        let _ = out.write_str("The stack of the thread has overflowed\n");
    }
}

/// The program counter and the stack pointer of what was interrupted.
///
/// # Safety
/// The kernel has written the structure.
unsafe fn registers(context: *const libc::ucontext_t) -> (usize, usize) {
    // SAFETY: as the caller's.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let registers = (machine.gregs[libc::REG_RIP as usize], machine.gregs[libc::REG_RSP as usize]);
    #[cfg(target_arch = "aarch64")]
    let registers = (machine.pc, machine.sp);
    (registers.0 as usize, registers.1 as usize)
}

/// Keeps the addresses of the frames of what was interrupted, as far as the stack of the handler
/// allows to look for them. Those of the handler come first, and are left out if `pc` is found.
fn walk(pc: usize, is_on_own_stack: bool) {
    let mut len = 0;
    if is_on_own_stack || handler_stack_bytes() >= WALK_BYTES {
        // SAFETY: whoever else looks for frames at the same time shares nothing with this.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                let address = frame.ip() as usize;
                if address == pc {
                    len = 0;
                }
                FRAMES[len].store(address, Ordering::Relaxed);
                len += 1;
                len < FRAMES_MAX
            });
        }
    }
    if FRAMES[0].load(Ordering::Relaxed) == pc || len == 0 {
        // So that the place is that of the instruction, as for those that have called something.
        FRAMES[0].store(pc.wrapping_add(1), Ordering::Relaxed);
        len = len.max(1);
    }
    FRAMES_LEN.store(len, Ordering::Release);
}

/// Bytes of the stack that handlers of this thread run on.
fn handler_stack_bytes() -> usize {
    // SAFETY: the structure is plain data, written by the kernel.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut stack);
        stack.ss_size
    }
}
