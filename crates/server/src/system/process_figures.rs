//! The figures of the process that INFO and the metrics show, for any thread.

use std::sync::atomic::{AtomicUsize, Ordering};

use node::Node;
use node::host::ProcessInfo;
use parking_lot::Mutex;

/// Figures of the process that its threads keep.
#[derive(Debug)]
pub(crate) struct ProcessFigures {
    /// When the process started, in milliseconds on the steady scale.
    started_ms: i64,
    /// Bytes in use when the server was ready.
    startup_bytes: u64,
    /// Processor time of the main thread, as of its last tick.
    pub(crate) main_cpu: Mutex<sys::process::CpuTime>,
    /// Threads that run, the main thread included.
    pub(crate) threads_started: AtomicUsize,
    /// Of these, threads below this number take clients.
    pub(crate) threads_active: AtomicUsize,
}

impl ProcessFigures {
    /// Figures of a process whose main thread is its only one.
    pub(crate) fn new() -> Self {
        Self {
            started_ms: sys::clock::steady_micros() / 1000,
            startup_bytes: u64::try_from(sys::allocator::thread_bytes()).unwrap_or(0),
            main_cpu: Mutex::default(),
            threads_started: AtomicUsize::new(1),
            threads_active: AtomicUsize::new(1),
        }
    }

    /// All that any thread can report. `used_bytes` is the memory in use.
    pub(crate) fn info(&self, node: &Node, used_bytes: u64) -> ProcessInfo {
        let now_ms = sys::clock::steady_micros() / 1000;
        let memory = sys::allocator::statistics();
        let (process, children) =
            (sys::process::process_cpu_time(), sys::process::children_cpu_time());
        let main = *self.main_cpu.lock();
        ProcessInfo {
            pid: std::process::id(),
            uptime_seconds: u64::try_from((now_ms - self.started_ms) / 1000).unwrap_or(0),
            kernel: sys::process::kernel(),
            threads_active: self.threads_started.load(Ordering::Relaxed),
            threads_carrying: self.threads_active.load(Ordering::Relaxed),
            cpu: (process.user, process.system),
            cpu_children: (children.user, children.system),
            cpu_main: (main.user, main.system),
            used_bytes,
            used_peak_bytes: node.used_memory.peak(),
            allocated_bytes: memory.allocated,
            startup_bytes: self.startup_bytes,
            active_bytes: memory.active,
            resident_bytes: memory.resident,
            muzzy_bytes: memory.muzzy,
            rss_bytes: sys::process::resident_bytes(),
            system_memory_bytes: sys::process::system_memory_bytes(),
            allocator: sys::allocator::version(),
            tsc_per_micro: sys::clock::tsc_per_micro(),
            ..ProcessInfo::default()
        }
    }
}
