//! The services of the process that commands may ask for.

use std::sync::atomic::Ordering;
use std::time::Duration;

use node::config::{Apply, Config};
use node::host::{ClientWaker, ProcessInfo, Shutdown, Undo};
use node::{ClientRecord, Host};

use crate::threads::shared::Shared;

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

    fn process_info(&self) -> ProcessInfo {
        let shared = self.0;
        let now_ms = sys::clock::steady_micros() / 1000;
        let memory = sys::allocator::statistics();
        let peak = shared.peak_bytes.fetch_max(memory.allocated, Ordering::Relaxed);
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
            allocated_bytes: memory.allocated,
            allocated_peak_bytes: peak.max(memory.allocated),
            startup_bytes: shared.startup_bytes.load(Ordering::Relaxed),
            active_bytes: memory.active,
            resident_bytes: memory.resident,
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
        crate::process::files::replace(&path, text).map_err(|error| error.to_string())
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn purge_memory(&self) {
        sys::allocator::purge();
    }

    fn allocator_report(&self) -> String {
        sys::allocator::report()
    }
}
