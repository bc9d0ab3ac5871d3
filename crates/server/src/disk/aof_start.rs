//! The append-only file at start: existing files are loaded, or the first base is written; then the
//! log continues where it ended.
//!
//! ```text
//! files of the manifest -> later commands of a killed process, from its ring -> new ring
//! no files              -> the RDB file, if there is one -> first base          -> new ring
//! ```
//!
//! Where the files can be read and not be written, as on a full disk, the server starts all the
//! same: it refuses writes until a new base is whole, and keeps the ring of the killed process.

use std::sync::Arc;

use node::config::Config;
use node::{Host, Node};
use persist::aof::{Aof, AofError, Cut, LogId};

use super::aof_files::{names, random_position};
use super::aof_handle::AppendOnlyFile;
use super::aof_requests::Caller;
use super::aof_thread::AofThread;
use super::aof_writer::AofWriter;
use super::load_aof::{AofLoader, LoadedAof};
use super::rdb_file::load_rdb_if_any;
use super::rewrite::{Rewrite, RewriteWatch, format_of};
use super::snapshot_job::SnapshotJob;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::left_log::{LeftCommands, LeftLog};
use crate::log::places::{self, Places};
use crate::log::ring::LogRing;
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::RealDisk;
use crate::system::server_log::{notice, warning};

/// Loads the append-only file, or begins one. Nothing else uses the keyspace.
///
/// # Errors
/// Why the server cannot start.
pub(crate) fn load(
    append_only: &AppendOnlyFile,
    host: &dyn Host,
    memory: &CountedThread<'_>,
) -> Result<AofWriter<RealDisk>, String> {
    let keyspace = &append_only.keyspace;
    let node = &keyspace.node;
    let config = node.config();
    let disk = RealDisk::of_working_directory();
    append_only.lock(&disk, &config)?;
    let fatal = |error: &dyn std::fmt::Display| format!("Can't open the append-only file: {error}");
    let mut aof = Aof::open(disk.clone(), names(&config)).map_err(|error| fatal(&error))?;
    if aof.upgrade_single_file().map_err(|error| fatal(&error))? {
        let (file, directory) =
            (&config.append_only.appendfilename, &config.append_only.appenddirname);
        notice!("Successfully migrated an old-style AOF configuration ({file}) to {directory}");
    }
    let mut loader = AofLoader::new(keyspace, host, memory)?;
    if aof.manifest().has_no_data() {
        // A log whose files are gone is reported.
        left(&disk, &config, None, &LoadedAof::default())?;
        if let Some(loaded) = load_rdb_if_any(keyspace, memory)? {
            loader.take_over(&loaded)?;
            notice!("The append-only file begins with the data of the RDB file");
        }
        loader.end();
        return begin(keyspace, aof, &config);
    }
    let loaded = loader.load(&aof, &disk, false)?;
    let left = left(&disk, &config, aof.manifest().log, &loaded)?;
    let end = left.as_ref().and_then(LeftCommands::end).or(loaded.position);
    let end = end.unwrap_or_else(random_position);
    let resumed = go_on(aof, &loaded, left.as_ref());
    if let Some(left) = &left {
        loader.load_left(left)?;
        report_left(left, resumed.is_ok().then(|| Places::of(&disk, &config)));
    }
    loader.end();
    let mut writer = match resumed {
        Ok(writer) => writer,
        Err(AofError::Disk(error)) if error.operation.is_of_change() => {
            warning!("The append-only file can't be written: {error}");
            warning!("Commands that change keys are refused until a new one is whole");
            let aof = Aof::open(disk, names(&config)).map_err(|error| fatal(&error))?;
            AofWriter::without_files(aof, end, loaded.bytes, error)
        }
        Err(error) => return Err(fatal(&error)),
    };
    // The files contain the former log now, so it may be forgotten.
    if let Err(error) = writer.aof.set_log(places::new_id()) {
        warning!("The manifest can't name a new log: {error}");
        if writer.aof.log().is_none() {
            warning!("Until the next rewrite, what is not written yet is lost by kill -9");
        }
    }
    Ok(writer)
}

/// Continues the files that were loaded, and appends the commands that a killed process had logged
/// after them.
fn go_on(
    aof: Aof<RealDisk>,
    loaded: &LoadedAof,
    left: Option<&LeftCommands>,
) -> Result<AofWriter<RealDisk>, AofError> {
    let mut writer = resume(aof, loaded)?;
    if let Some(left) = left {
        writer.append_left(left)?;
    }
    Ok(writer)
}

/// Reports the commands that come from a log. With its places, a damaged log is kept under another
/// name, because the files have its good part.
fn report_left(left: &LeftCommands, places: Option<Places>) {
    notice!(
        "The last process was killed: {} bytes of commands come from its log",
        left.bytes.len()
    );
    if left.lost_bytes > 0 {
        warning!("{} bytes of unacknowledged commands are dropped", left.lost_bytes);
    }
    if left.damaged_bytes > 0 {
        let kept = places.map(|places| places.keep_damaged()).unwrap_or_default();
        warning!("{} bytes of the log are damaged and not used{kept}", left.damaged_bytes);
    }
}

/// Continues the files that were loaded. If another server has written last, the files do not say
/// where they end in the log: then a new file begins, which says where it begins. The same if the
/// last file must stay as it is.
fn resume(aof: Aof<RealDisk>, loaded: &LoadedAof) -> Result<AofWriter<RealDisk>, AofError> {
    match loaded.position.filter(|_| loaded.is_last_writer && loaded.may_append) {
        Some(position) => AofWriter::resume(aof, position, loaded.bytes_before),
        None => {
            let position = loaded.position.unwrap_or_else(random_position);
            AofWriter::resume_in_new_file(aof, position, loaded.bytes)
        }
    }
}

/// The commands that a killed process had logged after the files, if its log is the one that the
/// files name and continues where they end.
///
/// # Errors
/// When it cannot be looked at.
fn left(
    disk: &RealDisk,
    config: &Config,
    named: Option<LogId>,
    loaded: &LoadedAof,
) -> Result<Option<LeftCommands>, String> {
    let logs = Places::of(disk, config).left()?;
    if logs.is_empty() {
        return Ok(None);
    }
    let is_elsewhere = logs.iter().all(Option::is_none);
    // One that could not be removed may have the same number as the one that went on.
    let own = logs.into_iter().flatten().filter(|log| Some(log.id()) == named);
    let own = own.max_by_key(LeftLog::created);
    let found = match (own, loaded.position.filter(|_| loaded.is_last_writer)) {
        _ if is_elsewhere => Err("it is a copy, or of an earlier start of the machine"),
        (None, _) => Err("it is of other files"),
        (_, None) => Err("another server has written to the files since"),
        (Some(log), Some(position)) => match log.commands(position) {
            Some(left) => Ok((left != LeftCommands::default()).then_some(left)),
            None => Err("it does not go on where the files end"),
        },
    };
    Ok(found.unwrap_or_else(|why| {
        warning!("The log of a process that was killed is not used: {why}");
        None
    }))
}

/// Looks for an append-only file that [`load_again`] may load. The one that is written stays where
/// the working directory was when it was begun.
///
/// # Errors
/// If there is none in the working directory, or the one that is written lacks the keys so far.
pub(crate) fn find_again(node: &Node) -> Result<(), String> {
    let config = node.config();
    may_load(node)?;
    let aof = Aof::open(RealDisk::of_working_directory(), names(&config))
        .map_err(|error| error.to_string())?;
    match aof.manifest().has_no_data() {
        true => Err("there is no append-only file in the working directory".to_owned()),
        false => Ok(()),
    }
}

/// Whether the append-only file that is written has everything: until its first base is whole, the
/// files are those of an earlier one.
fn may_load(node: &Node) -> Result<(), String> {
    let is_on = node.config().append_only.appendonly;
    if is_on && !node.durability.has_base() {
        return Err("the append-only file has no base yet".to_owned());
    }
    match node.append_only.lock().rewrite_began_ms {
        Some(_) => Err("the append-only file is being rewritten".to_owned()),
        None => Ok(()),
    }
}

/// Loads the append-only file while it is written: for DEBUG LOADAOF. All that was logged is in it,
/// the keyspace is empty, and commands of clients are paused.
///
/// # Errors
/// Why it was not loaded, or not all of it.
pub(crate) fn load_again(keyspace: &Arc<SharedKeyspace>, host: &dyn Host) -> Result<(), String> {
    let node = &keyspace.node;
    let config = node.config();
    may_load(node)?;
    let disk = RealDisk::of_working_directory();
    let aof = Aof::open(disk.clone(), names(&config)).map_err(|error| error.to_string())?;
    // Commands that load run on the main thread.
    let memory = CountedThread::main(node);
    let mut loader = AofLoader::new(keyspace, host, &memory)?;
    let loaded = loader.forget_functions().and_then(|()| loader.load(&aof, &disk, true)).map(drop);
    loader.end();
    loaded
}

/// Writes the first base of an append-only file.
fn begin(
    keyspace: &Arc<SharedKeyspace>,
    mut aof: Aof<RealDisk>,
    config: &Config,
) -> Result<AofWriter<RealDisk>, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("Can't begin the append-only file: {error}");
    let cut = Cut { position: random_position(), database: 0 };
    aof.set_log(places::new_id()).map_err(|error| failed(&error))?;
    let mut writer = AofWriter::without_base(aof, cut.position);
    let pending = SnapshotJob::reserve(keyspace);
    let begun = pending.and_then(|pending| pending.cut_when_possible(&|| (), &|| true));
    let (job, ()) = begun.ok_or_else(|| failed(&"another snapshot is being taken"))?;
    let format = format_of(config.append_only.aof_use_rdb_preamble);
    let base = writer.begin_rewrite(cut, format).map_err(|error| failed(&error))?;
    let rewrite = Rewrite::new(job, base, &keyspace.node, config);
    let memory = CountedThread::main(&keyspace.node);
    let base = rewrite.run(&RewriteWatch::default(), &memory).map_err(|error| failed(&error))?;
    writer.finish_rewrite(base).map_err(|error| failed(&error))?;
    notice!("Creating AOF base file on server start");
    Ok(writer)
}

/// Starts the thread that writes the log: with a writer and the ring that the threads append to, if
/// there is an append-only file.
///
/// # Errors
/// When the system refuses a thread.
pub(crate) fn start_thread(
    append_only: &AppendOnlyFile,
    writer: Option<AofWriter<RealDisk>>,
    ring: Option<Arc<LogRing>>,
) -> Result<(), String> {
    let (keyspace, log) = (Arc::clone(&append_only.keyspace), Arc::clone(&append_only.log));
    let (sender, receiver) = std::sync::mpsc::channel();
    let work = move || {
        // Before the server is ready: from then on it may be asked for a report.
        sys::crash::block_report_signals();
        let thread = std::thread::current();
        let (caller, requests) = Caller::new(move || thread.unpark());
        let started = AofThread::new(&keyspace, &log, writer, caller.clone(), requests);
        let (thread, result) = match started {
            Ok(thread) => (Some(thread), Ok(caller)),
            Err(error) => (None, Err(error.to_string())),
        };
        let _ = sender.send(result);
        if let Some(thread) = thread {
            CountedThread::run(&keyspace.node, |memory| thread.run(ring, memory));
        }
    };
    std::thread::Builder::new()
        .name("weft-log".to_owned())
        .spawn(work)
        .map_err(|error| error.to_string())?;
    let caller = receiver.recv().map_err(|error| error.to_string())??;
    append_only.begin(caller);
    Ok(())
}
