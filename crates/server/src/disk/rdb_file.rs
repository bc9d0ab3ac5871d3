//! The RDB file of the configuration: finding and loading it, and reporting what was loaded.

use std::io::Read;
use std::path::Path;

use node::config::Config;
use persist::disk::{Disk, DiskFile, FileSource};
use persist::{RDB_MAGIC_BYTES_MAX, has_rdb_magic};

use super::load_rdb::{LoadOptions, load_rdb};
use super::loaded_rdb::LoadedRdb;
use super::{check_command, kept_files};
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::{notice, warning};

/// Opens the RDB file of a configuration, if there is one. Without a name there is none.
///
/// # Errors
/// When it cannot be opened.
pub(super) fn find_rdb(config: &Config) -> Result<Option<RealFile>, String> {
    // An empty path would open the directory.
    if config.saving.dbfilename.is_empty() {
        return Ok(None);
    }
    match RealDisk::of_working_directory().open(Path::new(&config.saving.dbfilename)) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(format!("Fatal error loading the DB: {error}")),
    }
}

/// Loads the RDB file of the configuration; for DEBUG RELOAD.
///
/// # Errors
/// Why it was not loaded.
pub(crate) fn load_dump(keyspace: &SharedKeyspace, replaces: bool) -> Result<LoadedRdb, String> {
    let config = keyspace.node.config();
    match find_rdb(&config)? {
        // Commands that load run on the main thread.
        Some(file) => {
            // A log still has the keys that have expired, and gets their ends when they are found.
            let how = LoadHow { replaces, keeps_expired: config.append_only.appendonly };
            let memory = CountedThread::main(&keyspace.node);
            load_file(keyspace, file.clone(), how, &memory).or_else(|why| {
                // The server goes on without what it could not load.
                keep(&config, &file)?;
                Err(why)
            })
        }
        None => Err(format!("there is no file {}", config.saving.dbfilename)),
    }
}

/// Loads the RDB file at start, if there is one, for an append-only file that begins.
///
/// # Errors
/// Why it was not loaded.
pub(crate) fn load_rdb_if_any(
    keyspace: &SharedKeyspace,
    memory: &CountedThread<'_>,
) -> Result<Option<LoadedRdb>, String> {
    let file = find_rdb(&keyspace.node.config())?;
    file.map(|file| load_file(keyspace, file, LoadHow::default(), memory)).transpose()
}

/// The treatment of some keys of an RDB file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadHow {
    /// They replace those that exist.
    pub(super) replaces: bool,
    /// Those that have expired are loaded.
    pub(super) keeps_expired: bool,
}

/// Loads an RDB file.
///
/// # Errors
/// Why it was not loaded.
pub(super) fn load_file(
    keyspace: &SharedKeyspace,
    file: RealFile,
    how: LoadHow,
    memory: &CountedThread<'_>,
) -> Result<LoadedRdb, String> {
    let config = keyspace.node.config();
    let name = &config.saving.dbfilename;
    let failed = |why: &dyn std::fmt::Display| format!("Can't load {name}: {why}");
    let progress = &keyspace.node.snapshots.loading;
    progress.begin(unix_seconds(), file.len().map_err(|error| failed(&error))?);
    let source = FileSource::new(file.clone(), 0).map_err(|error| failed(&error))?;
    let options = LoadOptions {
        keeps_expired: how.keeps_expired,
        replaces: how.replaces,
        ..LoadOptions::new(&config)
    };
    let loaded = load_rdb(keyspace, source, options, memory)
        .map_err(|error| failed(&error.with_remedy(&check_command::of_rdb(&config))))?;
    report(&loaded);
    if loaded.is_partial() {
        keep(&config, &file)?;
    }
    keyspace.node.snapshots.figures.lock().loaded = (loaded.keys, loaded.expired);
    Ok(loaded)
}

/// Keeps the RDB file of a configuration, which was loaded only in part.
fn keep(config: &Config, file: &RealFile) -> Result<(), String> {
    let disk = RealDisk::of_working_directory();
    kept_files::keep_rdb(&disk, Path::new(&config.saving.dbfilename), file)
        .map_err(|error| format!("Files that were loaded only in part must be kept: {error}"))
}

/// Says in the log what was loaded.
fn report(loaded: &LoadedRdb) {
    if let Some(version) = loaded.aux("redis-ver").or(loaded.aux("valkey-ver")) {
        notice!("Loading RDB produced by version {version}, format {}", loaded.version);
    }
    if let Some(created) = loaded.aux("ctime").and_then(|text| text.parse::<i64>().ok()) {
        notice!("RDB age {} seconds", unix_seconds().saturating_sub(created));
    }
    report_left_out(loaded);
    if loaded.empty > 0 {
        notice!("{} keys with empty collections were left out", loaded.empty);
    }
    notice!("Done loading RDB, keys loaded: {}, keys expired: {}.", loaded.keys, loaded.expired);
}

/// Whether a backup may replace what is at a path: only an RDB file, so that a client which may not
/// write elsewhere cannot remove the configuration, and none that is kept or belongs to others.
///
/// # Errors
/// Why it may not.
pub(crate) fn may_replace(path: &Path, config: &Config) -> Result<(), String> {
    if kept_files::is_kept(path) {
        return Err("what is there was kept, because it was loaded only in part".to_owned());
    }
    if is_of_append_only(path, config) {
        return Err("what is there is a part of the append-only file".to_owned());
    }
    let failed = |error: std::io::Error| crate::system::files::reason(&error);
    let is_file = std::fs::symlink_metadata(path).map_err(failed)?.is_file();
    let mut magic = Vec::new();
    if is_file {
        let file = std::fs::File::open(path).map_err(failed)?;
        file.take(RDB_MAGIC_BYTES_MAX as u64).read_to_end(&mut magic).map_err(failed)?;
    }
    match has_rdb_magic(&magic) {
        true => Ok(()),
        false => Err("what is there is no RDB file".to_owned()),
    }
}

/// Whether a file is in the directory of the append-only file, whose files belong together.
fn is_of_append_only(path: &Path, config: &Config) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize();
    let own = Path::new(&config.append_only.appenddirname).canonicalize();
    folder.ok().zip(own.ok()).is_some_and(|(folder, own)| folder == own)
}

/// Says in the log what was left out.
pub(super) fn report_left_out(loaded: &LoadedRdb) {
    for (module, keys) in &loaded.modules {
        warning!(
            "Data of the module {module} were left out, with {keys} keys: modules are not supported"
        );
    }
}

pub(super) fn unix_seconds() -> i64 {
    sys::clock::unix_micros().div_euclid(1_000_000)
}
