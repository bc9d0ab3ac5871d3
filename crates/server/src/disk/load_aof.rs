//! Loading an append-only file: its base, then the commands written since, one after the other.
//!
//! ```text
//! manifest -> base: RDB file, loaded on all processors, or commands -> incremental files
//!          -> commands after them in the log of a killed process
//! ```
//!
//! The commands of a transaction are kept until its EXEC and dropped when there is none. A tail
//! that a crash has left is dropped and the file ends before it; any other damage ends loading,
//! with advice.
//!
//! The caller ensures that nothing else uses the keyspace.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use node::state::node::PAUSE_FOR_EVER;
use node::state::snapshots::LoadProgress;
use node::{Applier, ApplyOutcome, Host, StreamOrigin};
use persist::aof::{Aof, AofEnd, AofItem, AofReader, Damage, FileOrder, LoadFile, ReadError};
use persist::disk::{Disk, FileSource};
use resp::Args;
use resp::args::Span;
use script::RestorePolicy;
use sync::gate::Pass;
use sync::log_positions::POSITION_MAX;

use super::check_command;
use super::kept_files::{LoadedFiles, keep_append_only};
use super::load_rdb::{LoadOptions, delay_load, load_rdb};
use super::loaded_rdb::LoadedRdb;
use super::rdb_file::report_left_out;
use crate::keyspace::gate_passes::LOAD_PASS;
use crate::keyspace::shard_locks::NoOtherClients;
use crate::keyspace::shared_keyspace::SharedKeyspace;
use crate::log::left_log::LeftCommands;
use crate::system::counted_thread::CountedThread;
use crate::system::real_disk::{RealDisk, RealFile};
use crate::system::server_log::{notice, warning};

/// Commands between two reports of the progress, and checks whether loading must end.
const COMMANDS_A_LOOK: u64 = 256;
/// Lines of the log about commands that fail.
const COMPLAINTS_MAX: u64 = 10;
/// Before a command is tried again.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of a command's name that an error shows.
const NAME_BYTES_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct LoadedAof {
    /// The position in the log where the files end, if they say so.
    pub position: Option<u64>,
    /// The process that wrote that position has written nothing after it.
    pub is_last_writer: bool,
    /// Bytes of the files before the last one.
    pub bytes_before: u64,
    /// Bytes of all files.
    pub bytes: u64,
    pub commands: u64,
    /// Whether the last file may be written: not if it is kept as it is, under a second name too.
    pub may_append: bool,
}

/// Loads files into an empty keyspace.
pub struct AofLoader<'a> {
    keyspace: &'a Arc<SharedKeyspace>,
    host: &'a dyn Host,
    pass: Pass,
    applier: Applier,
    memory: &'a CountedThread<'a>,
    progress: &'a LoadProgress,
    /// Bytes of the files before the one that is loaded.
    bytes_before: u64,
    /// The transaction that is read.
    transaction: Option<Vec<Vec<Arc<Vec<u8>>>>>,
    commands: u64,
    failed: u64,
    /// The names of files of which something was left out.
    partial: BTreeSet<Vec<u8>>,
    /// `key-load-delay`, which may change meanwhile, and the commands that no delay was for yet.
    delay_us: i64,
    delayed: u64,
}

impl<'a> AofLoader<'a> {
    /// A loader on this thread.
    ///
    /// # Errors
    /// When another one is at work.
    pub fn new(
        keyspace: &'a Arc<SharedKeyspace>,
        host: &'a dyn Host,
        memory: &'a CountedThread<'a>,
    ) -> Result<Self, String> {
        let pass = keyspace.gate.register_as(LOAD_PASS);
        let pass = pass.ok_or_else(|| "loading is in progress".to_owned())?;
        let seed = base::random::entropy_seed();
        let ticks = sys::clock::tsc_per_micro();
        let applier = Applier::new(StreamOrigin::File, &keyspace.node, memory.own(), seed, ticks);
        Ok(Self {
            keyspace,
            host,
            pass,
            applier,
            memory,
            progress: &keyspace.node.snapshots.loading,
            bytes_before: 0,
            transaction: None,
            commands: 0,
            failed: 0,
            partial: BTreeSet::new(),
            delay_us: 0,
            delayed: 0,
        })
    }

    /// Loads all files that a manifest names, and repairs the last one. Files of which something
    /// was left out are kept. If a server `is_running`, it has written them, and goes on also when
    /// not all was loaded.
    ///
    /// # Errors
    /// Why they cannot be loaded, and how to continue.
    pub fn load(
        &mut self,
        aof: &Aof<RealDisk>,
        disk: &RealDisk,
        is_running: bool,
    ) -> Result<LoadedAof, String> {
        let files = aof.load_files().map_err(|error| fatal(&error))?;
        let total = files.iter().map(|file| file.bytes).sum();
        self.progress.begin(sys::clock::unix_micros().div_euclid(1_000_000), total);
        let mut loaded = self.load_files(&files, disk);
        let has_failed = loaded.is_err();
        let is_partial =
            |file: &LoadFile<RealFile>| has_failed || self.partial.contains(&file.entry.name);
        if files.iter().any(is_partial) && (is_running || !has_failed) {
            let kept = LoadedFiles { files: &files, is_written: is_running };
            keep_append_only(aof, kept, is_partial).map_err(|error| {
                fatal(&format!("files that were loaded only in part must be kept: {error}"))
            })?;
        }
        if let (Ok(loaded), Some(last)) = (&mut loaded, files.last()) {
            let has_second_name = last.file.has_second_name().map_err(|error| fatal(&error))?;
            loaded.may_append = !has_second_name && !is_partial(last);
        }
        loaded
    }

    fn load_files(
        &mut self,
        files: &[LoadFile<RealFile>],
        disk: &RealDisk,
    ) -> Result<LoadedAof, String> {
        let mut loaded = LoadedAof::default();
        for file in files {
            loaded.bytes_before = self.bytes_before;
            let end = self.load_file(file, disk)?;
            loaded.is_last_writer = end.ends_with_batch || end.commands == 0;
            loaded.position = match end.log_end {
                // Leaves room for later units.
                None if end.commands == 0 => {
                    file.entry.start_offset.filter(|start| *start <= POSITION_MAX / 2)
                }
                position => position,
            };
            self.bytes_before += file.bytes;
        }
        if files
            .last()
            .is_some_and(|file| file.entry.file_type != persist::aof::FileType::Incremental)
        {
            loaded.bytes_before = self.bytes_before;
        }
        // A larger one is damaged, or another server's.
        loaded.position = loaded.position.filter(|position| *position <= POSITION_MAX);
        loaded.bytes = self.bytes_before;
        loaded.commands = self.commands;
        if self.failed > 0 {
            warning!("{} commands of the append-only file have failed", self.failed);
        }
        Ok(loaded)
    }

    fn load_file(&mut self, file: &LoadFile<RealFile>, disk: &RealDisk) -> Result<AofEnd, String> {
        let (began_us, failed) = (sys::clock::steady_micros(), self.failed);
        self.applier.select(0);
        let from = match file.begins_with_rdb().map_err(|error| fatal(&error))? {
            true => self.load_base(file)?,
            false => 0,
        };
        let reader = AofReader::new(file.file.clone(), from, file.order);
        let mut reader = reader.map_err(|error| fatal(&error))?.closed(&file.entry);
        let end = self.replay(&mut reader, file)?;
        if self.failed > failed {
            self.partial.insert(file.entry.name.clone());
        }
        self.transaction = None;
        self.applier.publish(sys::allocator::thread_bytes());
        if let Some(tail) = &end.tail {
            self.drop_tail(file, tail, &end, disk)?;
        } else if let Some(repair) = &end.repair {
            let file = disk.open_to_append(&file.path).map_err(|error| fatal(&error))?;
            repair.apply(&file).map_err(|error| fatal(&error))?;
        }
        let seconds = (sys::clock::steady_micros() - began_us) as f64 / 1e6;
        let kind = match file.entry.file_type {
            persist::aof::FileType::Base => "base",
            _ => "incr",
        };
        notice!("DB loaded from {kind} file {}: {seconds:.3} seconds", name_of(file));
        Ok(end)
    }

    /// Loads the RDB file that a file begins with. Returns where it ends.
    fn load_base(&mut self, file: &LoadFile<RealFile>) -> Result<u64, String> {
        notice!("Reading RDB base file on AOF loading...");
        let source = FileSource::new(file.file.clone(), 0).map_err(|error| fatal(&error))?;
        let config = self.keyspace.node.config();
        let options = LoadOptions { keeps_expired: true, ..LoadOptions::new(&config) };
        let loaded = load_rdb(self.keyspace, source, options, self.memory).map_err(|error| {
            let error = error.with_remedy(&check_command::of_append_only(&config));
            format!("Can't load the base file {}: {error}", name_of(file))
        })?;
        report_left_out(&loaded);
        if loaded.is_partial() {
            self.partial.insert(file.entry.name.clone());
        }
        self.take_over(&loaded)?;
        Ok(loaded.bytes)
    }

    /// Counts the keys loaded from an RDB file, and loads its functions.
    ///
    /// # Errors
    /// When functions cannot be loaded.
    pub fn take_over(&mut self, loaded: &LoadedRdb) -> Result<(), String> {
        self.applier.add_keys(&loaded.db_keys);
        self.applier
            .load_functions(&loaded.functions, RestorePolicy::Append, &sys::clock::tsc, self.host)
            .map_err(|why| format!("Functions can't be loaded: {why}"))
    }

    fn replay(
        &mut self,
        reader: &mut AofReader<RealFile>,
        file: &LoadFile<RealFile>,
    ) -> Result<AofEnd, String> {
        loop {
            let item = match reader.item() {
                Ok(item) => item,
                Err(ReadError::Disk(error)) => return Err(fatal(&error)),
                Err(ReadError::Damage(damage)) => return Err(damaged(file, &damage)),
            };
            match item {
                AofItem::Timestamp(_) => {}
                AofItem::End(end) => return Ok(end),
                AofItem::Command { args, offset } => {
                    self.command(args, || format!("{} at offset {offset}", name_of(file)))?;
                    if self.delay_us != 0 {
                        delay_load(self.keyspace, self.delay_us, 1, &mut self.delayed);
                    }
                    if self.delay_us != 0 || self.commands.is_multiple_of(COMMANDS_A_LOOK) {
                        self.delay_us = self.keyspace.node.config().saving.key_load_delay;
                        let bytes = self.bytes_before + offset;
                        self.progress.bytes.store(bytes, Ordering::Relaxed);
                        let node = &self.keyspace.node;
                        let is_shutting_down = node.pause.load(Ordering::Relaxed) == PAUSE_FOR_EVER;
                        if is_shutting_down || self.progress.cancel.load(Ordering::Relaxed) {
                            return Err("loading was ended".to_owned());
                        }
                    }
                }
            }
        }
    }

    /// Removes all libraries of functions.
    ///
    /// # Errors
    /// When they are in use.
    pub fn forget_functions(&mut self) -> Result<(), String> {
        self.applier.load_functions(&[], RestorePolicy::Flush, &sys::clock::tsc, self.host)
    }

    /// Loads the commands that the log of a killed process had after the files.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub fn load_left(&mut self, left: &LeftCommands) -> Result<(), String> {
        left.each(|args, at| self.command(args, || format!("the log of a process, at byte {at}")))
    }

    /// Takes a command: executes it, or keeps it until its transaction is whole.
    fn command(&mut self, args: Args<'_>, place: impl Fn() -> String) -> Result<(), String> {
        let is = |name: &str| args.name().eq_ignore_ascii_case(name.as_bytes());
        if is("multi") {
            self.transaction = Some(Vec::new());
        } else if is("exec") {
            for owned in self.transaction.take().unwrap_or_default() {
                let spans: Vec<Span> = (0..owned.len()).map(Span::own).collect();
                self.execute(Args::new(&[], &spans, &owned), &place)?;
            }
        } else if let Some(transaction) = &mut self.transaction {
            transaction.push(args.to_owned_args());
        } else {
            self.execute(args, &place)?;
        }
        Ok(())
    }

    fn execute(&mut self, args: Args<'_>, place: &impl Fn() -> String) -> Result<(), String> {
        let Self { keyspace, host, pass, applier, .. } = self;
        if self.commands.is_multiple_of(COMMANDS_A_LOOK) {
            let steady_ms = sys::clock::steady_micros() / 1000;
            applier.set_time(store::Time { unix_us: sys::clock::unix_micros(), steady_ms });
            applier.publish(sys::allocator::thread_bytes());
        }
        self.commands += 1;
        loop {
            let locks = keyspace.enter(Some(pass), &NoOtherClients);
            let replayed = applier.command(args, &locks, *host);
            drop(locks);
            match replayed {
                ApplyOutcome::Done => return Ok(()),
                ApplyOutcome::Later => std::thread::sleep(PAUSE),
                ApplyOutcome::ShutDown => return Err("loading was ended".to_owned()),
                ApplyOutcome::Unknown => {
                    let name = shown(args.name());
                    let place = place();
                    return Err(format!(
                        "Unknown command '{name}' reading the append only file {place}"
                    ));
                }
                // Later commands would go to another database than they did.
                ApplyOutcome::Failed(text) if args.name().eq_ignore_ascii_case(b"select") => {
                    let text = String::from_utf8_lossy(&text);
                    return Err(format!("SELECT fails in {}: {text}", place()));
                }
                ApplyOutcome::Failed(text) => {
                    self.failed += 1;
                    if self.failed <= COMPLAINTS_MAX {
                        let (name, text) = (shown(args.name()), String::from_utf8_lossy(&text));
                        warning!("The command '{name}' of {} fails: {text}", place());
                    }
                    return Ok(());
                }
            }
        }
    }

    /// Drops the tail that a crash has left at the end of a file, if the configuration allows it.
    fn drop_tail(
        &self,
        file: &LoadFile<RealFile>,
        tail: &persist::aof::AofTail,
        end: &AofEnd,
        disk: &RealDisk,
    ) -> Result<(), String> {
        let (name, offset, dropped) = (name_of(file), tail.offset, tail.dropped);
        if !self.keyspace.node.config().append_only.aof_load_truncated {
            return Err(format!(
                "Unexpected end of file reading the append only file {name}: {} at offset \
                 {offset}. You can: 1) Make a backup of your AOF file, then use 'weft check aof \
                 --fix <filename.manifest>'. 2) Set the 'aof-load-truncated' configuration option \
                 to yes and restart the server, which drops the last {dropped} bytes.",
                tail.fault
            ));
        }
        warning!(
            "!!! Warning: short read while loading the AOF file {name}!!! At offset {offset} {}.",
            tail.fault
        );
        warning!("AOF {name} loaded anyway because aof-load-truncated is enabled");
        if let Some(repair) = &end.repair {
            let opened = disk.open_to_append(&file.path).map_err(|error| fatal(&error))?;
            repair.apply(&opened).map_err(|error| fatal(&error))?;
            warning!(
                "Truncating the AOF {name} at offset {}: {dropped} bytes are dropped.",
                end.valid_to
            );
        }
        Ok(())
    }

    pub fn end(self) {
        self.applier.end(sys::allocator::thread_bytes());
    }
}

fn name_of(file: &LoadFile<RealFile>) -> String {
    String::from_utf8_lossy(&file.entry.name).into_owned()
}

fn shown(name: &[u8]) -> String {
    name[..name.len().min(NAME_BYTES_MAX)].escape_ascii().to_string()
}

fn fatal(error: &dyn Display) -> String {
    format!("Fatal error loading the append-only file: {error}")
}

fn remedy() -> &'static str {
    "Make a backup, then use 'weft check aof --fix <filename.manifest>'."
}

fn damaged(file: &LoadFile<RealFile>, damage: &Damage) -> String {
    let what = match file.order {
        FileOrder::Last => "what was safe on the disk once is damaged",
        FileOrder::Earlier => "another file follows, so it was whole once",
    };
    format!(
        "Bad file format reading the append only file {}: {damage} ({what}; the first {} bytes are \
         right). {}",
        name_of(file),
        damage.valid_to,
        remedy()
    )
}
