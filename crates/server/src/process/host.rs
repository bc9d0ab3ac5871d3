//! The services of the process that commands may ask for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use node::config::{Apply, Config};
use node::host::{ClientWaker, ProcessInfo, Shutdown, Undo};
use node::{ClientRecord, Host};
use script::LogLevel;
use store::LazyFree;

use crate::process::files;
use crate::process::log::{self, Level};
use crate::threads::shared::Shared;
use crate::{notice, warning};

/// The process, as commands see it.
pub struct ProcessHost<'a>(pub &'a Shared);

impl ClientWaker for ProcessHost<'_> {
    fn wake_client(&self, client: &ClientRecord) {
        self.0.wake_client(client);
    }
}

impl Host for ProcessHost<'_> {
    fn apply<'a>(
        &'a self,
        step: Apply,
        old: &'a Config,
        new: &'a Config,
    ) -> Result<Undo<'a>, String> {
        crate::threads::apply::apply(self.0, step, old, new)
    }

    fn close_client(&self, client: &ClientRecord) {
        self.0.close_client(client);
    }

    fn pause_changed(&self) {
        self.0.pause_changed();
    }

    fn shut_down(&self, how: Shutdown) -> Result<(), String> {
        self.0.control.lock().shutdown = Some(how);
        Ok(())
    }

    fn call_off_shutdown(&self) -> bool {
        if self.0.control.lock().shutdown.take().is_none() {
            return false;
        }
        notice!("Shutdown manually aborted.");
        self.0.node.scripting.go_on();
        self.0.node.end_pause_for_ever();
        self.0.pause_changed();
        true
    }

    fn process_info(&self) -> ProcessInfo {
        let shared = self.0;
        let now_ms = sys::clock::steady_micros() / 1000;
        let memory = sys::allocator::statistics();
        let used = &shared.node.used_memory;
        // This runs on the main thread.
        let used_bytes = used.sum(&used.of_thread(0), sys::allocator::thread_bytes());
        let (process, children) =
            (sys::process::process_cpu_time(), sys::process::children_cpu_time());
        let main = *shared.main_cpu.lock();
        let control = shared.control.lock();
        ProcessInfo {
            pid: std::process::id(),
            uptime_seconds: u64::try_from((now_ms - shared.started_ms) / 1000).unwrap_or(0),
            kernel: sys::process::kernel(),
            executable: control.executable.clone(),
            config_file: control.config_file.clone(),
            tcp_port: control.tcp_port(),
            threads_active: shared.threads_active.load(Ordering::Relaxed),
            threads_carrying: shared.threads_carrying.load(Ordering::Relaxed),
            cpu: (process.user, process.system),
            cpu_children: (children.user, children.system),
            cpu_main: (main.user, main.system),
            used_bytes,
            used_peak_bytes: used.peak(),
            allocated_bytes: memory.allocated,
            startup_bytes: shared.startup_bytes,
            active_bytes: memory.active,
            resident_bytes: memory.resident,
            muzzy_bytes: memory.muzzy,
            rss_bytes: sys::process::resident_bytes(),
            system_memory_bytes: sys::process::system_memory_bytes(),
            allocator: sys::allocator::version(),
            tsc_per_micro: sys::clock::tsc_per_micro(),
        }
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        let path = self.0.control.lock().config_file.clone();
        match std::fs::read(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_config_file(&self, text: &[u8]) -> Result<(), String> {
        let path = self.0.control.lock().config_file.clone();
        files::replace(&path, text).map_err(|error| files::reason(&error))
    }

    fn read_acl_file(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| files::reason(&error))
    }

    fn write_acl_file(&self, path: &str, text: &[u8]) -> Result<(), String> {
        files::replace(path, text).map_err(|error| {
            warning!("Can't write the ACL file '{path}': {error}");
            files::reason(&error)
        })
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        if let Err(error) = sys::random::fill(bytes) {
            // A password that someone could guess is worse than none.
            warning!("The system has no random numbers: {error}");
            std::process::abort();
        }
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn free(&self, removed: &mut LazyFree) {
        let (garbage, bytes) = removed.take_big();
        if !garbage.is_empty() {
            self.0.garbage.send(garbage, bytes);
        }
        removed.clear();
    }

    fn purge_memory(&self) {
        sys::allocator::purge();
    }

    fn log(&self, level: LogLevel, line: &[u8]) {
        let level = match level {
            LogLevel::Debug => Level::Debug,
            LogLevel::Verbose => Level::Verbose,
            LogLevel::Notice => Level::Notice,
            LogLevel::Warning => Level::Warning,
        };
        log::line(level, &String::from_utf8_lossy(line));
    }

    fn allocator_report(&self) -> String {
        sys::allocator::report()
    }
}
