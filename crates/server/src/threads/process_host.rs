//! The services of the process that commands may ask for.

use std::time::Duration;

use node::config::{Apply, Config, SignalShutdown};
use node::host::{
    ClientWaker, Crash, ProcessInfo, Reload, Reloaded, RewriteBegin, SaveAtEnd, SaveError,
    Shutdown, Undo,
};
use node::state::snapshots::Purpose;
use node::{ClientRecord, Host};
use script::LogLevel;
use store::LazyFree;
use store::lazy_free::BigPiece;
use sys::signal::Signal;

use super::apply::apply;
use super::control::Control;
use super::message::Message;
use super::shared::SharedState;
use crate::disk::saves::NotBegun;
use crate::disk::{aof_start, rdb_file};
use crate::keyspace::stop_waits::GRACE_LOOK;
use crate::system::files;
use crate::system::server_log::{self, Level, notice, warning};

impl SharedState {
    /// Whether a thread that waits for slow commands must stop waiting.
    fn must_end(&self) -> bool {
        self.signalled.has_come() || self.node.is_shutting_down()
    }

    /// Cancels the shutdown. Returns false if the server must end.
    pub fn go_on(&self) -> bool {
        self.go_on_unless(|_| false)
    }

    fn go_on_unless(&self, has_to_end: impl FnOnce(&Control) -> bool) -> bool {
        if !self.node.scripting.go_on() {
            return false;
        }
        {
            let mut control = self.control.lock();
            if has_to_end(&control) {
                return false;
            }
            control.shutdown = None;
            control.ends = false;
            control.is_signalled = false;
            self.signalled.forget();
        }
        self.node.end_pause_for_ever();
        self.pause_changed();
        true
    }

    /// Waits until all commands are over that have begun. Other threads go on.
    fn wait_for_all(&self) -> Result<(), SaveError> {
        if self.keyspace.is_snapshot_running() {
            return Err(SaveError::SnapshotTaken);
        }
        let mut period = self.keyspace.gate.grace_period();
        while !period.is_over() {
            if self.node.scripting.busy.any() || self.must_end() {
                return Err(SaveError::Failed);
            }
            std::thread::sleep(GRACE_LOOK);
        }
        Ok(())
    }
}

fn save_error(error: NotBegun) -> SaveError {
    match error {
        NotBegun::Running(true) => SaveError::Saving,
        NotBegun::Running(false) => SaveError::SnapshotTaken,
        NotBegun::Failed(_) => SaveError::Failed,
    }
}

impl Control {
    /// Takes the signals that have arrived, which ask to end the process. A signal that arrives
    /// while it ends may ask to do so by force.
    pub fn take_signals(&mut self, shared: &SharedState) {
        if !shared.signalled.has_come() {
            return;
        }
        let config = shared.node.config();
        for signal in shared.signalled.take() {
            let how = match signal {
                Signal::Terminate => config.shutdown_on_sigterm,
                Signal::Interrupt => config.shutdown_on_sigint,
            };
            let save = match how {
                SignalShutdown { save: true, .. } => SaveAtEnd::Yes,
                SignalShutdown { nosave: true, .. } => SaveAtEnd::No,
                _ => SaveAtEnd::ByConfig,
            };
            let SignalShutdown { now, force, .. } = how;
            self.is_signalled = true;
            let shutdown = self.shutdown.get_or_insert(Shutdown { save, now, force });
            shutdown.now |= now;
            shutdown.force |= force;
        }
    }
}

impl ClientWaker for SharedState {
    fn wake_client(&self, client: &ClientRecord) {
        let (thread, slot) = client.location.place_after();
        self.send(thread as usize, Message::Wake { id: client.id, slot: slot as usize });
    }

    fn free_evicted(&self, pieces: Vec<BigPiece>) {
        self.garbage.send_all(pieces);
    }
}

impl Host for SharedState {
    fn apply<'a>(
        &'a self,
        step: Apply,
        old: &'a Config,
        new: &'a Config,
    ) -> Result<Undo<'a>, String> {
        apply(self, step, old, new)
    }

    /// The owner may be busy, but CLIENT KILL is answered soon, and from then on its client's
    /// connection must not work: so its socket is shut down at once.
    fn close_client(&self, client: &ClientRecord) {
        self.node.kill(client);
        client.fd_guard.with(sys::socket::shut_down);
        let (thread, slot) = client.location.place();
        self.send(thread as usize, Message::Close { id: client.id, slot: slot as usize });
    }

    fn pause_changed(&self) {
        self.threads.send_to_all(|| Message::PauseChanged);
    }

    fn rewrite_append_only(&self, later: bool) -> RewriteBegin {
        self.append_only.rewrite(later)
    }

    fn save(&self) -> Result<(), SaveError> {
        match self.saves.save(&|| !self.must_end()) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SaveError::Failed),
            Err(error) => Err(save_error(error)),
        }
    }

    fn begin_save(&self) -> Result<(), SaveError> {
        self.saves.begin_save(Purpose::Background).map(drop).map_err(save_error)
    }

    fn save_emptied(&self, changes: u64) {
        self.saves.save_emptied(changes);
    }

    fn begin_backup(&self, path: &str, replaces: bool) -> Result<u64, Option<String>> {
        let path = std::path::Path::new(path);
        if path.symlink_metadata().is_ok() {
            if !replaces {
                let why = "File exists. REPLACE replaces an RDB file.";
                return Err(Some(why.to_owned()));
            }
            rdb_file::may_replace(path, &self.node.config()).map_err(Some)?;
        }
        let begun = self.saves.begin(Purpose::Backup, path);
        begun.map(|saving| saving.number).map_err(|error| match error {
            NotBegun::Running(_) => None,
            NotBegun::Failed(why) => Some(why),
        })
    }

    fn begin_reload(&self, how: Reload) -> Result<u64, SaveError> {
        let node = &self.node;
        let steady_ms = sys::clock::steady_micros() / 1000;
        let pause = node.begin_pause(false, steady_ms);
        let saved = match how.saves {
            true => self.save(),
            // Waits until the commands that have begun are over.
            false => self.wait_for_all(),
        };
        saved.map(|()| pause).inspect_err(|_| self.end_reload(pause))
    }

    fn load(&self, how: Reload) -> Result<Reloaded, String> {
        let loaded = rdb_file::load_dump(&self.keyspace, how.merges);
        self.node.snapshots.loading.end();
        let loaded = loaded.inspect_err(|why| warning!("{why}"))?;
        Ok(Reloaded { db_keys: loaded.db_keys, functions: loaded.functions })
    }

    fn flush_append_only(&self) -> Result<(), String> {
        let flushed = self.append_only.flush();
        let found = flushed.and_then(|()| aof_start::find_again(&self.node));
        found.inspect_err(|why| warning!("{why}"))
    }

    fn load_append_only(&self) -> Result<(), String> {
        let loaded = aof_start::load_again(&self.keyspace, self);
        self.node.snapshots.loading.end();
        loaded.inspect_err(|why| warning!("{why}"))
    }

    fn end_reload(&self, pause: u64) {
        let steady_ms = sys::clock::steady_micros() / 1000;
        self.node.limit_pause(pause, steady_ms, steady_ms);
        self.pause_changed();
    }

    fn shut_down(&self, how: Shutdown) -> Result<(), String> {
        self.control.lock().shutdown = Some(how);
        Ok(())
    }

    fn call_off_shutdown(&self) -> bool {
        let may_go_on = {
            let mut control = self.control.lock();
            control.take_signals(self);
            control.shutdown.is_some() && !control.ends
        };
        if !may_go_on || !self.go_on_unless(|control| control.ends) {
            return false;
        }
        notice!("Shutdown manually aborted.");
        true
    }

    fn process_info(&self) -> ProcessInfo {
        let used = &self.node.used_memory;
        used.add_rest(sys::thread_end::take_rest());
        // This runs on the main thread.
        let used_bytes = used.sum(&used.of_thread(0), sys::allocator::thread_bytes());
        let control = self.control.lock();
        ProcessInfo {
            executable: control.executable.clone(),
            config_file: control.config_file.clone(),
            tcp_port: control.tcp_port(),
            ..self.process.info(&self.node, used_bytes)
        }
    }

    fn working_directory(&self) -> Option<String> {
        // A name that is not UTF-8 can be neither shown nor read again from a file.
        std::env::current_dir().ok()?.into_os_string().into_string().ok()
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        let path = self.control.lock().config_file.clone();
        match std::fs::read(&path) {
            Ok(text) => Ok(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write_config_file(&self, text: &[u8]) -> Result<(), String> {
        let path = self.control.lock().config_file.clone();
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
            // A password that can be guessed is worse than none.
            warning!("The system has no random numbers: {error}");
            std::process::abort();
        }
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn free(&self, removed: &mut LazyFree) {
        let garbage = removed.take_big();
        if !garbage.is_empty() {
            self.garbage.send(garbage);
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
        server_log::line(level, &String::from_utf8_lossy(line));
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
