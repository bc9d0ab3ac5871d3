//! The report of a crash in the log: the signal, its address, the thread and its frames.
//!
//! ```text
//! the thread that crashes, in the handler        the thread that names frames
//!   head, signal, address, pc, addresses  ->
//!   asks, and waits for some seconds      ---->  names of functions, files and lines
//!   end; raises the signal again with its default action
//! ```
//!
//! The handler calls only functions that are safe in a signal handler, writes the most important
//! facts first, and allocates nothing. Finding names needs memory and locks, which the crash may
//! have broken, so another thread does it, and the handler waits for it only some seconds. Handlers
//! run on separate stacks, since the thread's stack may have overflowed.

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
/// How long the names of frames may take. Debug builds have much more to read.
const NAMES_MS: c_int = if cfg!(debug_assertions) { 25_000 } else { 5000 };
/// How long a thread that crashes waits for the report of another thread.
const OTHER_MS: c_int = 2 * NAMES_MS;
/// How often it checks whether the other report has ended.
const POLL_MS: c_int = 20;
const FRAMES_MAX: usize = 64;
/// Bytes of a thread's stack for handlers.
const STACK_BYTES: usize = 64 << 10;
/// Bytes of such a stack that the walk over the frames needs.
const WALK_BYTES: usize = 24 << 10;
/// An address this close to the end of a stack means that the stack has overflowed.
const GUARD_BYTES: usize = 64 << 10;

/// The first and last line of a report for SIGALRM, after which the process continues.
const DUMP_HEAD: &str = "\n=== Received SIGALRM: the stack of a thread ===\n";
const DUMP_TAIL: &str = "=== The server continues ===\n\n";

static PREPARED: OnceLock<ReportSetup> = OnceLock::new();
/// The ids of the thread that reports and of the one that names frames; 0 for none.
static REPORTER: AtomicU32 = AtomicU32::new(0);
static NAMER: AtomicU32 = AtomicU32::new(0);
static FRAMES: [AtomicUsize; FRAMES_MAX] = [const { AtomicUsize::new(0) }; FRAMES_MAX];
static FRAMES_LEN: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The address of the end of this thread's stack; 0 if unknown.
    static STACK_END: Cell<usize> = const { Cell::new(0) };
    static HANDLER_STACK: Cell<Option<HandlerStack>> = const { Cell::new(None) };
}

/// The constant parts of reports.
struct ReportSetup {
    /// The path of the log; empty for standard output.
    log: CString,
    /// The first lines.
    head: String,
    /// The last line.
    tail: String,
    asked: EventFd,
    named: EventFd,
}

/// Prepares reports, which are appended to the file `log`, or written to standard output if the
/// path is empty, between the lines `head` and `tail`. From now on SIGALRM writes a report, and the
/// process continues. [`enable`] turns on reports of crashes; the thread that calls [`name_frames`]
/// finds the names of functions. A second call does nothing.
///
/// # Errors
/// If the process has no free descriptors, or the path has a zero byte.
pub fn prepare(log: &str, head: String, tail: String) -> io::Result<()> {
    let (asked, named) = (EventFd::new()?, EventFd::new()?);
    let _ = PREPARED.set(ReportSetup { log: CString::new(log)?, head, tail, asked, named });
    // The first use loads libraries, which a handler must not do.
    backtrace::trace(|_| false);
    // Runs on the thread's own stack, which has not overflowed.
    set_handler(libc::SIGALRM, libc::SA_RESTART);
    Ok(())
}

/// Turns reports of crashes on or off, if they were prepared.
pub fn enable(is_on: bool) {
    let is_reported = is_on && PREPARED.get().is_some();
    for (signal, _) in CRASHES {
        if is_reported {
            set_handler(signal, libc::SA_ONSTACK);
        } else {
            // Not the standard library's handler, which expects the fault to occur again: a signal
            // that another process sent does not.
            // SAFETY: no handler remains.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

fn set_handler(signal: c_int, flags: c_int) {
    // SAFETY: the structure is plain data, and the handler is async-signal-safe.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = flags | libc::SA_SIGINFO;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Writes the names of frames into reports. The calling thread should do nothing else, since it
/// waits for locks and for the log's reader. Calls `begun` once it accepts requests. Returns if
/// reports were not prepared.
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

/// Waits until the event is signalled, at most `milliseconds` if that is not negative. Returns
/// whether it was. Safe in a signal handler.
fn wait_for(event: &EventFd, milliseconds: c_int) -> bool {
    let fd = event.as_fd().as_raw_fd();
    let mut wait = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one structure.
    unsafe { libc::poll(&mut wait, 1, milliseconds) > 0 }
}

/// Blocks SIGALRM and SIGABRT, by which operators ask for a report, in the calling thread and those
/// that it starts, so that the report is about another thread. abort(3) works in these as well.
pub fn block_report_signals() {
    block(&[libc::SIGALRM, libc::SIGABRT]);
}

fn write_names(prepared: &ReportSetup) {
    let mut out = ReportOut::open(&prepared.log);
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

/// Writes to an address where nothing is mapped.
pub fn segfault() {
    // SAFETY: it is deliberately unsound: it ends the process.
    unsafe { std::ptr::without_provenance_mut::<u8>(1).write_volatile(0) };
}

/// A stack for handlers, with an inaccessible page below it.
struct HandlerStack(*mut c_void);

impl HandlerStack {
    /// Makes and installs a stack for the calling thread.
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
        // SAFETY: the kernel no longer uses the stack when it is unmapped.
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

/// Gives the calling thread's handlers a stack that is large enough to walk over the frames. Other
/// threads have a small one of the standard library, and shorter reports.
pub fn protect_thread() {
    // Dropping it later would uninstall the new one.
    drop(HANDLER_STACK.take());
    HANDLER_STACK.set(HandlerStack::new());
    // SAFETY: the first call initialises the attributes, and the last one destroys them.
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

/// Buffers text for the log without allocating.
struct ReportOut {
    fd: RawFd,
    is_own: bool,
    bytes: [u8; 256],
    len: usize,
}

impl ReportOut {
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

impl Write for ReportOut {
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

impl Drop for ReportOut {
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
            // When the handler returns, the process ends as it would have without a handler.
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        } else if taken {
            REPORTER.store(0, Ordering::Release);
        }
        *libc::__errno_location() = errno;
    }
}

/// Waits for the right to report, and returns whether this thread has it. A thread that crashed
/// waits while another one reports: after a report for SIGALRM it reports, and after a crash the
/// process ends.
fn take_turn(is_crash: bool) -> bool {
    let own = thread_id();
    for _ in 0..OTHER_MS / POLL_MS {
        match REPORTER.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            // The report itself crashed.
            Err(reporter) if reporter == own => return false,
            // SAFETY: it only waits; there are no descriptors.
            Err(_) if is_crash => unsafe {
                libc::poll(std::ptr::null_mut(), 0, POLL_MS);
            },
            Err(_) => return false,
        }
    }
    false
}

/// Writes a report.
///
/// # Safety
/// Call it in a handler, with the arguments that the kernel passed.
unsafe fn report(signal: c_int, info: &libc::siginfo_t, context: *const libc::ucontext_t) {
    let Some(prepared) = PREPARED.get() else { return };
    let mut out = ReportOut::open(&prepared.log);
    let is_crash = signal != libc::SIGALRM;
    if is_crash {
        let _ = out.write_str(&prepared.head);
    }
    // SAFETY: the kernel wrote the registers.
    let (pc, sp) = unsafe { registers(context) };
    // SAFETY: by the caller's promise.
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
    let _ = out.write_str(if is_crash { &prepared.tail } else { DUMP_TAIL });
}

/// Writes the signal and its cause.
///
/// # Safety
/// As [`report`].
unsafe fn write_signal(out: &mut ReportOut, signal: c_int, info: &libc::siginfo_t, sp: usize) {
    if signal == libc::SIGALRM {
        let _ = out.write_str(DUMP_HEAD);
        return;
    }
    let name = CRASHES.iter().find(|(number, _)| *number == signal).map_or("?", |(_, name)| name);
    let code = info.si_code;
    let _ = writeln!(out, "The server crashed by signal: {signal} ({name}), si_code: {code}");
    if code <= 0 {
        // SAFETY: a signal with such a code has a sender.
        let (process, user) = unsafe { (info.si_pid(), info.si_uid()) };
        let _ = writeln!(out, "The signal was sent by process {process} of user {user}");
        return;
    }
    // SAFETY: a signal from the kernel has an address.
    let address = unsafe { info.si_addr() } as usize;
    let _ = writeln!(out, "Address: {address:#x}");
    let end = STACK_END.get();
    let guard = end.saturating_sub(GUARD_BYTES)..end + GUARD_BYTES;
    if signal == libc::SIGSEGV && end != 0 && guard.contains(&address) && guard.contains(&sp) {
        let _ = out.write_str("The stack of the thread has overflowed\n");
    }
}

/// The program counter and the stack pointer of the interrupted code.
///
/// # Safety
/// The kernel wrote the structure.
unsafe fn registers(context: *const libc::ucontext_t) -> (usize, usize) {
    // SAFETY: by the caller's promise.
    let machine = unsafe { &(*context).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let registers = (machine.gregs[libc::REG_RIP as usize], machine.gregs[libc::REG_RSP as usize]);
    #[cfg(target_arch = "aarch64")]
    let registers = (machine.pc, machine.sp);
    (registers.0 as usize, registers.1 as usize)
}

/// Stores the addresses of the interrupted code's frames, if the handler's stack is large enough to
/// find them. The handler's own frames come first, and are dropped if `pc` is found.
fn walk(pc: usize, is_on_own_stack: bool) {
    let mut len = 0;
    if is_on_own_stack || handler_stack_bytes() >= WALK_BYTES {
        // SAFETY: another walk at the same time shares no data with this one.
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
        // Names are looked up for the byte before an address, as for return addresses.
        FRAMES[0].store(pc.wrapping_add(1), Ordering::Relaxed);
        len = len.max(1);
    }
    FRAMES_LEN.store(len, Ordering::Release);
}

/// Bytes of this thread's stack for handlers.
fn handler_stack_bytes() -> usize {
    // SAFETY: the structure is plain data, written by the kernel.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        libc::sigaltstack(std::ptr::null(), &mut stack);
        stack.ss_size
    }
}
