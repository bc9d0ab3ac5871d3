//! Loading at start, before clients are served.
//!
//! A thread of its own loads, so that clients get replies: LOADING, and INFO, which shows the
//! progress. The main thread checks from time to time whether it is done.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use node::Host;
use node::config::Config;
use parking_lot::Mutex;

use super::aof_handle::AppendOnlyFile;
use super::aof_start;
use super::aof_writer::AofWriter;
use super::load_aof::AofLoader;
use super::rdb_file::{LoadHow, find_rdb, load_file, unix_seconds};
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::places::{self, Places};
use crate::log::ring::LogRing;
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::{notice, warning};

/// Between two lines of the log about how far loading is.
const REPORT_US: i64 = 5_000_000;

/// The file from which the keyspace is loaded.
enum LoadOrigin {
    Rdb(RealFile),
    AppendOnly,
}

enum LoadOutcome {
    Rdb,
    AppendOnly(Box<AofWriter<RealDisk>>),
}

pub(crate) struct Startup {
    append_only: Arc<AppendOnlyFile>,
    outcome: Arc<Mutex<Option<Result<LoadOutcome, String>>>>,
    is_loaded: bool,
    /// The ring that the threads begin to append to.
    log: Option<(Box<AofWriter<RealDisk>>, Arc<LogRing>)>,
    began_us: i64,
    report_us: i64,
}

impl Startup {
    /// Begins to load, if there is a file. No other thread runs yet.
    ///
    /// # Errors
    /// Why it cannot be loaded.
    pub(crate) fn begin(
        append_only: &Arc<AppendOnlyFile>,
        host: Arc<dyn Host + Send + Sync>,
    ) -> Result<Option<Self>, String> {
        let node = &append_only.keyspace.node;
        let config = node.config();
        node.snapshots.figures.lock().last_save_unix = unix_seconds();
        notice!("Data lies in {}: {}", config.dir, shown_files(&config));
        if open_disk()?.is_by_name() {
            warning!(
                "Without /proc the files go where the name of the working directory leads: don't \
                 rename it while the server runs"
            );
        }
        if !config.append_only.appendonly {
            aof_start::start_thread(append_only, None, None)?;
        }
        let Some(origin) = find(&config)? else { return Ok(None) };
        node.set_loading(true);
        let outcome = Arc::new(Mutex::new(None));
        let (own, result) = (Arc::clone(append_only), Arc::clone(&outcome));
        let work = move |memory: &CountedThread<'_>| {
            let loaded = match origin {
                LoadOrigin::Rdb(file) => {
                    load_rdb_file(&own.keyspace, &*host, file, memory).map(|()| LoadOutcome::Rdb)
                }
                LoadOrigin::AppendOnly => aof_start::load(&own, &*host, memory)
                    .map(|writer| LoadOutcome::AppendOnly(Box::new(writer))),
            };
            *result.lock() = Some(loaded);
            own.keyspace.threads.wake_main();
        };
        let thread = std::thread::Builder::new().name("weft-load".to_owned());
        let node = Arc::clone(node);
        let counted = move || CountedThread::run(&node, work);
        thread.spawn(counted).map_err(|error| error.to_string())?;
        let began_us = sys::clock::steady_micros();
        let append_only = Arc::clone(append_only);
        let report_us = began_us + REPORT_US;
        Ok(Some(Self { append_only, outcome, is_loaded: false, log: None, began_us, report_us }))
    }

    /// Looks whether everything is loaded. The caller then ends the loading.
    ///
    /// # Errors
    /// Why it was not loaded.
    pub(crate) fn look(&mut self) -> Result<bool, String> {
        if self.is_loaded {
            return Ok(true);
        }
        if self.log.is_some() {
            return self.look_at_log();
        }
        let node = &self.append_only.keyspace.node;
        // It has ended early if the server shuts down, which is no failure.
        let outcome = if node.is_shutting_down() { None } else { self.outcome.lock().take() };
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
            LoadOutcome::Rdb => {
                notice!("DB loaded from disk: {:.3} seconds", self.seconds());
                self.is_loaded = true;
                Ok(true)
            }
            LoadOutcome::AppendOnly(writer) => {
                let id = writer.aof.log().unwrap_or_else(places::new_id);
                let places = Places::of(&open_disk()?, &node.config());
                match writer.aof.needs_base() {
                    true => places.keep_left(writer.aof.manifest().log)?,
                    false => places.remove_previous(),
                }
                let ring = LogRing::create(places, id, writer.written());
                let ring = ring.map_err(|error| error.to_string())?;
                ring.configure(&node.config());
                ring.policy.follow(true, false);
                self.append_only.log.set(Some(Arc::clone(&ring)));
                self.log = Some((writer, ring));
                Ok(false)
            }
        }
    }

    fn seconds(&self) -> f64 {
        let took = Duration::from_micros((sys::clock::steady_micros() - self.began_us) as u64);
        took.as_secs_f64()
    }

    /// Checks whether all threads append to the log.
    fn look_at_log(&mut self) -> Result<bool, String> {
        let append_only = Arc::clone(&self.append_only);
        let is_followed = |(_, ring): &(_, Arc<LogRing>)| append_only.log.is_followed(ring);
        if self.log.as_ref().is_some_and(|log| !is_followed(log)) {
            // It is over in a moment.
            append_only.keyspace.threads.wake_main();
            return Ok(false);
        }
        let Some((writer, ring)) = self.log.take() else { return Ok(true) };
        aof_start::start_thread(&append_only, Some(*writer), Some(ring))?;
        if !append_only.keyspace.node.config().append_only.appendonly {
            // It was switched off while it was loaded.
            append_only.stop();
        }
        notice!("DB loaded from append only file: {:.3} seconds", self.seconds());
        self.is_loaded = true;
        Ok(true)
    }

    /// Lets clients use the keyspace.
    pub(crate) fn end_loading(self) {
        let node = &self.append_only.keyspace.node;
        node.snapshots.loading.end();
        node.set_loading(false);
    }
}

/// The files as the first lines of the log show them.
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

fn find(config: &Config) -> Result<Option<LoadOrigin>, String> {
    match config.append_only.appendonly {
        true => Ok(Some(LoadOrigin::AppendOnly)),
        false => Ok(find_rdb(config)?.map(LoadOrigin::Rdb)),
    }
}

/// The disk as seen from the working directory.
fn open_disk() -> Result<RealDisk, String> {
    let disk = RealDisk::of_working_directory();
    let opened = disk.place(Path::new(""));
    opened.map_err(|error| format!("Can't open the working directory: {error}"))?;
    Ok(disk)
}

/// Loads an RDB file at start, with its functions.
fn load_rdb_file(
    keyspace: &Arc<SharedKeyspace>,
    host: &dyn Host,
    file: RealFile,
    memory: &CountedThread<'_>,
) -> Result<(), String> {
    let mut loader = AofLoader::new(keyspace, host, memory)?;
    let loaded = load_file(keyspace, file, LoadHow::default(), memory)?;
    loader.take_over(&loaded)?;
    loader.end();
    Ok(())
}
