//! A fake process that records calls: files, shutdowns, sleeps and log lines.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use node::config::{Apply, Config};
use node::host::{
    ClientWaker, Crash, ProcessInfo, Reload, Reloaded, RewriteBegin, SaveError, Shutdown, Undo,
};
use node::{ClientRecord, Host};
use store::LazyFree;
use store::lazy_free::BigPiece;

/// A fake process that records calls.
#[derive(Default)]
pub struct FakeHost {
    /// Clients that should be closed.
    pub closed: RefCell<Vec<u64>>,
    /// Clients that were woken.
    pub woken: RefCell<Vec<u64>>,
    /// Requested shutdowns.
    pub shutdowns: RefCell<Vec<Shutdown>>,
    /// Requested sleeps.
    pub sleeps: RefCell<Vec<Duration>>,
    /// Lines of the log.
    pub logged: RefCell<Vec<String>>,
    /// The path of the configuration file; empty without one.
    pub config_path: RefCell<String>,
    /// The text of the configuration file.
    pub config_file: RefCell<Vec<u8>>,
    /// ACL files by path.
    pub acl_files: RefCell<BTreeMap<String, Vec<u8>>>,
    /// The applied changes of the configuration.
    pub applied: RefCell<Vec<Apply>>,
    /// A change that fails.
    pub unfollowed: RefCell<Option<Apply>>,
    /// Why the next save fails to start.
    pub saves: Cell<Option<SaveError>>,
    /// Duration of each command in ticks; a tick is a microsecond.
    pub ticks: Cell<u64>,
    /// How often removed values were freed before the end of a turn.
    pub freed: Cell<usize>,
    /// Whether the thread is inside the gate.
    pub(crate) inside: Rc<Cell<bool>>,
}

impl FakeHost {
    #[track_caller]
    fn is_used(&self) {
        assert!(!self.inside.get(), "the process is called inside the gate");
    }
}

impl ClientWaker for FakeHost {
    fn wake_client(&self, client: &ClientRecord) {
        self.woken.borrow_mut().push(client.id);
    }

    fn free_evicted(&self, _: Vec<BigPiece>) {}
}

impl Host for FakeHost {
    fn apply<'a>(&'a self, step: Apply, _: &'a Config, _: &'a Config) -> Result<Undo<'a>, String> {
        self.is_used();
        if *self.unfollowed.borrow() == Some(step) {
            return Err("not today".to_owned());
        }
        self.applied.borrow_mut().push(step);
        Ok(Box::new(move || {
            self.is_used();
            let last = self.applied.borrow_mut().pop();
            assert_eq!(last, Some(step), "changes are undone in reverse order");
        }))
    }

    fn close_client(&self, client: &ClientRecord) {
        self.is_used();
        self.closed.borrow_mut().push(client.id);
    }

    fn pause_changed(&self) {
        self.is_used();
    }

    fn flush_append_only(&self) -> Result<(), String> {
        self.is_used();
        Ok(())
    }

    fn load_append_only(&self) -> Result<(), String> {
        self.is_used();
        Ok(())
    }

    fn rewrite_append_only(&self, later: bool) -> RewriteBegin {
        // Also in a transaction, which stays inside the gate.
        if later { RewriteBegin::Scheduled } else { RewriteBegin::Started }
    }

    fn call_off_shutdown(&self) -> bool {
        false
    }

    fn save(&self) -> Result<(), SaveError> {
        self.is_used();
        self.saves.take().map_or(Ok(()), Err)
    }

    fn begin_save(&self) -> Result<(), SaveError> {
        self.save()
    }

    fn save_emptied(&self, _: u64) {
        self.is_used();
    }

    fn begin_backup(&self, path: &str, _: bool) -> Result<u64, Option<String>> {
        self.is_used();
        match self.saves.take() {
            None => Ok(5),
            Some(SaveError::Failed) => Err(Some(format!("'{path}' is there"))),
            Some(_) => Err(None),
        }
    }

    fn begin_reload(&self, _: Reload) -> Result<u64, SaveError> {
        self.save().map(|()| 7)
    }

    fn load(&self, how: Reload) -> Result<Reloaded, String> {
        self.is_used();
        if how.merges { Err("damaged".to_owned()) } else { Ok(Reloaded::default()) }
    }

    fn end_reload(&self, pause: u64) {
        self.is_used();
        assert_eq!(pause, 7);
    }

    fn shut_down(&self, how: Shutdown) -> Result<(), String> {
        self.is_used();
        self.shutdowns.borrow_mut().push(how);
        Ok(())
    }

    fn process_info(&self) -> ProcessInfo {
        self.is_used();
        ProcessInfo {
            pid: 4321,
            uptime_seconds: 90_061,
            tcp_port: 6379,
            config_file: self.config_path.borrow().clone(),
            used_bytes: 3 << 20,
            used_peak_bytes: 4 << 20,
            allocated_bytes: 3 << 20,
            startup_bytes: 1 << 20,
            muzzy_bytes: 8192,
            allocator: "fake-1.0".to_owned(),
            ..ProcessInfo::default()
        }
    }

    fn working_directory(&self) -> Option<String> {
        self.is_used();
        None
    }

    fn read_config_file(&self) -> Result<Vec<u8>, String> {
        self.is_used();
        Ok(self.config_file.borrow().clone())
    }

    fn write_config_file(&self, text: &[u8]) -> Result<(), String> {
        self.is_used();
        *self.config_file.borrow_mut() = text.to_vec();
        Ok(())
    }

    fn read_acl_file(&self, path: &str) -> Result<Vec<u8>, String> {
        self.is_used();
        let file = self.acl_files.borrow().get(path).cloned();
        file.ok_or_else(|| "No such file or directory".to_owned())
    }

    fn write_acl_file(&self, path: &str, text: &[u8]) -> Result<(), String> {
        self.is_used();
        if path.ends_with('/') {
            return Err("Is a directory".to_owned());
        }
        self.acl_files.borrow_mut().insert(path.to_owned(), text.to_vec());
        Ok(())
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.is_used();
        bytes.iter_mut().zip(1..).for_each(|(byte, number)| *byte = number);
    }

    fn sleep(&self, time: Duration) {
        self.is_used();
        self.sleeps.borrow_mut().push(time);
    }

    fn free(&self, removed: &mut LazyFree) {
        self.freed.set(self.freed.get() + 1);
        removed.clear();
    }

    fn crash(&self, _: Crash) {
        self.is_used();
    }

    fn purge_memory(&self) {
        self.is_used();
    }

    fn log(&self, _: script::LogLevel, line: &[u8]) {
        self.is_used();
        self.logged.borrow_mut().push(String::from_utf8_lossy(line).into_owned());
    }

    fn allocator_report(&self) -> String {
        self.is_used();
        "report".to_owned()
    }
}
