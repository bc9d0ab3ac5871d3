//! Loading at start: what was saved comes back before clients are served.
//!
//! A thread of its own loads, so that clients are answered meanwhile: with LOADING, and by INFO,
//! which tells how far it is. The main thread looks now and then whether that is over.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use node::config::Config;
use parking_lot::Mutex;
use persist::disk::{Disk, DiskFile, FileSource};

use super::append_only;
use super::background::CountedThread;
use super::begin_log;
use super::load_aof::AofLoader;
use super::load_rdb::{LoadOptions, Loaded, load_rdb};
use super::log_memory::{self, Places};
use super::log_ring::LogRing;
use super::log_writer::LogWriter;
use super::real_disk::{RealDisk, RealFile};
use crate::threads::io_thread::IoThread;
use crate::threads::message::Message;
use crate::threads::shared::Shared;
use crate::{notice, warning};

/// Between two lines of the log about how far loading is.
const REPORT_US: i64 = 5_000_000;

/// What the keyspace is loaded from.
enum Origin {
    Rdb(RealFile),
    AppendOnly,
}

/// What was loaded.
enum Outcome {
    Rdb,
    AppendOnly(Box<LogWriter<RealDisk>>),
}

/// Loading at start.
pub struct Startup {
    outcome: Arc<Mutex<Option<Result<Outcome, String>>>>,
    /// What the threads begin to log into.
    log: Option<(Box<LogWriter<RealDisk>>, Arc<LogRing>)>,
    began_us: i64,
    report_us: i64,
}

impl Startup {
    /// Begins to load, if there is something. No other thread runs yet.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub fn begin(shared: &Arc<Shared>) -> Result<Option<Self>, String> {
        let (node, config) = (&shared.node, shared.node.config());
        node.snapshots.figures.lock().last_save_unix = unix_seconds();
        notice!("Data lies in {}: {}", config.dir, shown_files(&config));
        if open_disk()?.is_by_name() {
            warning!(
                "Without /proc the files go where the name of the working directory leads: don't \
                 rename it while the server runs"
            );
        }
        if !config.append_only.appendonly {
            begin_log::start_thread(shared, None, None)?;
        }
        let Some(origin) = find(&config)? else { return Ok(None) };
        node.set_loading(true);
        let outcome = Arc::new(Mutex::new(None));
        let (own, result) = (Arc::clone(shared), Arc::clone(&outcome));
        let work = move |memory: &CountedThread<'_>| {
            let loaded = match origin {
                Origin::Rdb(file) => load_rdb_file(&own, file, memory).map(|()| Outcome::Rdb),
                Origin::AppendOnly => begin_log::load(&own, memory)
                    .map(|writer| Outcome::AppendOnly(Box::new(writer))),
            };
            *result.lock() = Some(loaded);
            // Wakes the main thread, which looks here then.
            own.send(0, Message::PauseChanged);
        };
        let thread = std::thread::Builder::new().name("weft-load".to_owned());
        let node = Arc::clone(node);
        let counted = move || CountedThread::run(&node, work);
        thread.spawn(counted).map_err(|error| error.to_string())?;
        let began_us = sys::clock::steady_micros();
        Ok(Some(Self { outcome, log: None, began_us, report_us: began_us + REPORT_US }))
    }

    /// Looks whether everything is loaded, and ends the loading then. Returns whether it is over.
    ///
    /// # Errors
    /// Why it was not loaded.
    pub fn look(&mut self, main: &mut IoThread) -> Result<bool, String> {
        let node = Arc::clone(&main.worker.node);
        if self.log.is_some() {
            return self.look_at_log(main);
        }
        // It has ended early if the server goes down, which is no failure.
        let outcome = if node.goes_down() { None } else { self.outcome.lock().take() };
        let Some(outcome) = outcome else {
            let now_us = sys::clock::steady_micros();
            if now_us >= self.report_us {
                self.report_us = now_us + REPORT_US;
                let progress = &node.snapshots.loading;
                let value = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
                let (bytes, total) = (value(&progress.bytes), value(&progress.bytes_total));
                let percent = bytes.saturating_mul(100).checked_div(total).unwrap_or(0);
                notice!("Loading: {percent}% of the bytes, {} keys", value(&progress.keys));
            }
            return Ok(false);
        };
        match outcome? {
            Outcome::Rdb => {
                notice!("DB loaded from disk: {:.3} seconds", self.seconds());
                end_loading(main);
                Ok(true)
            }
            Outcome::AppendOnly(writer) => {
                let id = writer.aof().log().unwrap_or_else(log_memory::new_id);
                let places = Places::of(&open_disk()?, &node.config());
                match writer.needs_base() {
                    true => places.keep_left(writer.aof().manifest().log)?,
                    false => places.remove_previous(),
                }
                let ring = log_memory::create_ring(places, id, writer.written());
                let ring = ring.map_err(|error| error.to_string())?;
                let fsync = node.config().append_only.appendfsync;
                ring.set_waits_always(fsync == node::config::Fsync::Always);
                main.shared.set_log(Some(Arc::clone(&ring)));
                self.log = Some((writer, ring));
                Ok(false)
            }
        }
    }

    fn seconds(&self) -> f64 {
        let took = Duration::from_micros((sys::clock::steady_micros() - self.began_us) as u64);
        took.as_secs_f64()
    }

    /// Looks whether all threads log what they write, and ends the loading then.
    fn look_at_log(&mut self, main: &mut IoThread) -> Result<bool, String> {
        let is_followed = |(_, ring): &(_, Arc<LogRing>)| main.shared.log.is_followed(ring);
        if self.log.as_ref().is_some_and(|log| !is_followed(log)) {
            // It is over in a moment.
            main.shared.send(0, Message::PauseChanged);
            return Ok(false);
        }
        let Some((writer, ring)) = self.log.take() else { return Ok(true) };
        let shared = Arc::clone(&main.shared);
        begin_log::start_thread(&shared, Some(*writer), Some(ring))?;
        if !shared.node.config().append_only.appendonly {
            // It was switched off while it was loaded.
            shared.append_only.stop(&shared);
        }
        notice!("DB loaded from append only file: {:.3} seconds", self.seconds());
        end_loading(main);
        Ok(true)
    }
}

fn end_loading(main: &mut IoThread) {
    let node = Arc::clone(&main.worker.node);
    node.snapshots.loading.end();
    node.set_loading(false);
    main.worker.take_over_config();
}

fn unix_seconds() -> i64 {
    sys::clock::unix_micros().div_euclid(1_000_000)
}

/// What the first lines of the log say about the files.
fn shown_files(config: &Config) -> String {
    let saving = &config.saving;
    let when: Vec<String> = saving
        .save
        .iter()
        .map(|point| format!("{} changes in {} seconds", point.changes, point.seconds))
        .collect();
    match when.is_empty() {
        true => format!("{} on request ('save' is empty)", saving.dbfilename),
        false => format!("{} after {}", saving.dbfilename, when.join(", or ")),
    }
}

fn find(config: &Config) -> Result<Option<Origin>, String> {
    match config.append_only.appendonly {
        true => Ok(Some(Origin::AppendOnly)),
        false => Ok(find_rdb(config)?.map(Origin::Rdb)),
    }
}

/// The disk as seen from the working directory.
fn open_disk() -> Result<RealDisk, String> {
    let disk = append_only::disk();
    let opened = disk.place(Path::new(""));
    opened.map_err(|error| format!("Can't open the working directory: {error}"))?;
    Ok(disk)
}

fn find_rdb(config: &Config) -> Result<Option<RealFile>, String> {
    match append_only::disk().open(Path::new(&config.saving.dbfilename)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_not_found() || config.saving.dbfilename.is_empty() => Ok(None),
        Err(error) => Err(format!("Fatal error loading the DB: {error}")),
    }
}

/// Loads the RDB file of the configuration; for DEBUG RELOAD.
///
/// # Errors
/// Why it was not loaded.
pub fn load_dump(shared: &Shared, replaces: bool) -> Result<Loaded, String> {
    let config = shared.node.config();
    match find_rdb(&config)? {
        // Commands that load run on the main thread.
        Some(file) => load_file(shared, file, replaces, &CountedThread::main(&shared.node)),
        None => Err(format!("there is no file {}", config.saving.dbfilename)),
    }
}

/// Loads the RDB file at start, if there is one, for an append-only file that begins.
///
/// # Errors
/// Why it was not loaded.
pub fn load_rdb_if_any(
    shared: &Shared,
    memory: &CountedThread<'_>,
) -> Result<Option<Loaded>, String> {
    let file = find_rdb(&shared.node.config())?;
    file.map(|file| load_file(shared, file, false, memory)).transpose()
}

/// Loads an RDB file at start, with its functions.
fn load_rdb_file(
    shared: &Arc<Shared>,
    file: RealFile,
    memory: &CountedThread<'_>,
) -> Result<(), String> {
    let mut loader = AofLoader::new(shared, (memory, &shared.node.snapshots.loading))?;
    let loaded = load_file(shared, file, false, memory)?;
    loader.take_over(&loaded)?;
    loader.end();
    Ok(())
}

fn load_file(
    shared: &Shared,
    file: RealFile,
    replaces: bool,
    memory: &CountedThread<'_>,
) -> Result<Loaded, String> {
    let config = shared.node.config();
    let name = &config.saving.dbfilename;
    let failed = |why: &dyn std::fmt::Display| format!("Can't load {name}: {why}");
    let progress = &shared.node.snapshots.loading;
    progress.begin(unix_seconds(), file.len().map_err(|error| failed(&error))?);
    let source = FileSource::new(file, 0).map_err(|error| failed(&error))?;
    let options = LoadOptions {
        checks: config.saving.rdbchecksum,
        now_ms: sys::clock::unix_micros() / 1000,
        keeps_expired: false,
        replaces,
    };
    let loaded = load_rdb(shared, source, options, (memory, progress));
    let loaded = loaded.map_err(|error| failed(&error))?;
    report(&loaded);
    shared.node.snapshots.figures.lock().loaded = (loaded.keys, loaded.expired);
    Ok(loaded)
}

/// Says in the log what was loaded.
fn report(loaded: &Loaded) {
    if let Some(version) = loaded.aux("redis-ver").or(loaded.aux("valkey-ver")) {
        notice!("Loading RDB produced by version {version}, format {}", loaded.version);
    }
    if let Some(created) = loaded.aux("ctime").and_then(|text| text.parse::<i64>().ok()) {
        notice!("RDB age {} seconds", unix_seconds().saturating_sub(created));
    }
    for module in &loaded.modules {
        warning!("The data of the module '{module}' was left out: modules are not supported");
    }
    if loaded.empty > 0 {
        notice!("{} keys with empty collections were left out", loaded.empty);
    }
    notice!("Done loading RDB, keys loaded: {}, keys expired: {}.", loaded.keys, loaded.expired);
}
