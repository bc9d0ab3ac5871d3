//! The services of the process that commands may ask for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use node::config::{Apply, Config};
use node::host::{
    ClientWaker, Crash, ProcessInfo, Reload, Reloaded, RewriteBegin, SaveError, Shutdown, Undo,
};
use node::persistence::Purpose;
use node::{ClientRecord, Host};
use script::LogLevel;
use store::LazyFree;

use crate::disk::begin_log;
use crate::disk::saves::{NotBegun, Saving};
use crate::disk::startup;
use crate::process::files;
use crate::process::log::{self, Level};
use crate::threads::control::{Control, SNAPSHOT_PASS};
use crate::threads::shared::Shared;
use crate::{notice, warning};

/// The process, as commands see it.
pub struct ProcessHost<'a>(pub &'a Shared);

impl ProcessHost<'_> {
    fn begin(&self, purpose: Purpose) -> Result<Arc<Saving>, SaveError> {
        let shared = self.0.me.upgrade().ok_or(SaveError::Failed)?;
        self.0.saves.begin_save(&shared, purpose).map_err(|error| match error {
            NotBegun::Running(true) => SaveError::Saving,
            NotBegun::Running(false) => SaveError::SnapshotTaken,
            NotBegun::Failed(_) => SaveError::Failed,
        })
    }

    /// The server does not go down after all. Returns false if it has to.
    pub fn go_on(&self) -> bool {
        self.go_on_unless(|_| false)
    }

    fn go_on_unless(&self, has_to_end: impl FnOnce(&Control) -> bool) -> bool {
        if !self.0.node.scripting.go_on() {
            return false;
        }
        {
            let mut control = self.0.control.lock();
            if has_to_end(&control) {
                return false;
            }
            control.shutdown = None;
            control.ends = false;
            control.is_signalled = false;
            self.0.signalled.forget();
        }
        self.0.node.end_pause_for_ever();
        self.0.pause_changed();
        true
    }

    /// Waits until all commands are over that have begun.
    fn wait_for_all(&self) -> Result<(), SaveError> {
        let pass = self.0.gate.register_as(SNAPSHOT_PASS).ok_or(SaveError::SnapshotTaken)?;
        let busy = &self.0.node.scripting.busy;
        pass.exclusively_unless(&|| busy.any(), || ()).ok_or(SaveError::Failed)
    }
}

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

    fn rewrite_append_only(&self, later: bool) -> RewriteBegin {
        self.0.append_only.rewrite(self.0, later)
    }

    fn save(&self) -> Result<(), SaveError> {
        let saving = self.begin(Purpose::Save)?;
        if saving.wait() { Ok(()) } else { Err(SaveError::Failed) }
    }

    fn begin_save(&self) -> Result<(), SaveError> {
        self.begin(Purpose::Background).map(drop)
    }

    fn save_emptied(&self, changes: u64) {
        if let Some(shared) = self.0.me.upgrade() {
            self.0.saves.save_emptied(&shared, changes);
        }
    }

    fn begin_backup(&self, path: &str) -> Result<(), Option<String>> {
        let shared = self.0.me.upgrade().ok_or(None)?;
        let path = std::path::Path::new(path);
        if path.symlink_metadata().is_ok() {
            return Err(Some("File exists".to_owned()));
        }
        let begun = self.0.saves.begin(&shared, Purpose::Backup, path);
        begun.map(drop).map_err(|error| match error {
            NotBegun::Running(_) => None,
            NotBegun::Failed(why) => Some(why),
        })
    }

    fn begin_reload(&self, how: Reload) -> Result<u64, SaveError> {
        let node = &self.0.node;
        let steady_ms = sys::clock::steady_micros() / 1000;
        let pause = node.begin_pause(false, steady_ms);
        let saved = match how.saves {
            true => self.save(),
            // What has begun is over.
            false => self.wait_for_all(),
        };
        saved.map(|()| pause).inspect_err(|_| self.end_reload(pause))
    }

    fn load(&self, how: Reload) -> Result<Reloaded, String> {
        let loaded = startup::load_dump(self.0, how.merges);
        self.0.node.snapshots.loading.end();
        let loaded = loaded.inspect_err(|why| warning!("{why}"))?;
        Ok(Reloaded { db_keys: loaded.db_keys, functions: loaded.functions })
    }

    fn flush_append_only(&self) -> Result<(), String> {
        let flushed = self.0.append_only.flush();
        let found = flushed.and_then(|()| begin_log::find_again(&self.0.node.config()));
        found.inspect_err(|why| warning!("{why}"))
    }

    fn load_append_only(&self) -> Result<(), String> {
        let shared = self.0.me.upgrade().ok_or_else(String::new)?;
        let loaded = begin_log::load_again(&shared);
        self.0.node.snapshots.loading.end();
        loaded.inspect_err(|why| warning!("{why}"))
    }

    fn end_reload(&self, pause: u64) {
        let steady_ms = sys::clock::steady_micros() / 1000;
        self.0.node.run_pause(pause, steady_ms, steady_ms);
        self.0.pause_changed();
    }

    fn shut_down(&self, how: Shutdown) -> Result<(), String> {
        self.0.control.lock().shutdown = Some(how);
        Ok(())
    }

    fn call_off_shutdown(&self) -> bool {
        let may_go_on = {
            let mut control = self.0.control.lock();
            control.take_signals(self.0);
            control.shutdown.is_some() && !control.ends
        };
        if !may_go_on || !self.go_on_unless(|control| control.ends) {
            return false;
        }
        notice!("Shutdown manually aborted.");
        true
    }

    fn process_info(&self) -> ProcessInfo {
        let shared = self.0;
        let used = &shared.node.used_memory;
        used.add_rest(sys::thread_end::take_rest());
        // This runs on the main thread.
        let used_bytes = used.sum(&used.of_thread(0), sys::allocator::thread_bytes());
        let control = shared.control.lock();
        ProcessInfo {
            executable: control.executable.clone(),
            config_file: control.config_file.clone(),
            tcp_port: control.tcp_port(),
            ..figures(shared, used_bytes)
        }
    }

    fn working_directory(&self) -> Option<String> {
        // A name that is no text cannot be told, nor read again from a file.
        std::env::current_dir().ok()?.into_os_string().into_string().ok()
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

    fn crash(&self, how: Crash) {
        match how {
            Crash::Panic => give_up(),
            Crash::Fault => sys::crash::segfault(),
        }
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

/// As a mistake of this program does.
#[expect(clippy::panic, reason = "it is asked for")]
fn give_up() {
    panic!("DEBUG PANIC has asked for it");
}

/// What the process tells about itself, but for what the main thread looks after: this is for any
/// thread. `used_bytes` is the memory in use.
pub(crate) fn figures(shared: &Shared, used_bytes: u64) -> ProcessInfo {
    let now_ms = sys::clock::steady_micros() / 1000;
    let memory = sys::allocator::statistics();
    let (process, children) = (sys::process::process_cpu_time(), sys::process::children_cpu_time());
    let main = *shared.main_cpu.lock();
    ProcessInfo {
        pid: std::process::id(),
        uptime_seconds: u64::try_from((now_ms - shared.started_ms) / 1000).unwrap_or(0),
        kernel: sys::process::kernel(),
        threads_active: shared.threads_active.load(Ordering::Relaxed),
        threads_carrying: shared.threads_carrying.load(Ordering::Relaxed),
        cpu: (process.user, process.system),
        cpu_children: (children.user, children.system),
        cpu_main: (main.user, main.system),
        used_bytes,
        used_peak_bytes: shared.node.used_memory.peak(),
        allocated_bytes: memory.allocated,
        startup_bytes: shared.startup_bytes,
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
