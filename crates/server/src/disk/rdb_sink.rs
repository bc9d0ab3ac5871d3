//! An RDB file of a snapshot.
//!
//! Entries that come while a shard is locked are encoded into memory; the rest goes straight to the
//! writer, so that a long string is not copied again.

use std::sync::Arc;

use node::Node;
use node::config::Config;
use persist::ByteSink;
use persist::disk::{DiskError, DiskFile, FileSink};
use persist::rdb::encode::Options;
use persist::rdb::encode::parts::Parts;
use persist::rdb::reader::Attributes;
use persist::rdb::{RdbWriter, ValueEncoder};
use script::Library;
use store::Stored;
use store::snapshot::{CollectionHead, CollectionPart, KeySink};

use super::snapshot_job::{Pacing, SnapshotJob, SnapshotSink, WalkError};

/// Bytes of the buffer that are kept between two steps.
const BUFFER_BYTES_MAX: usize = 1 << 20;

/// The meaning of access clocks, so that a file shows how keys were used. As in Redis, only where a
/// policy asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uses {
    /// The file does not show it.
    Hidden,
    /// When each key was used; the clock at the cut.
    Recency(u32),
    /// How often.
    Frequency,
}

/// How a file is written, and its metadata.
#[derive(Clone, Debug)]
pub struct RdbOptions {
    /// Compression and checksum. The snapshot knows whether fields of hashes expire.
    pub format: Options,
    /// How the file shows the use of keys.
    pub uses: Uses,
    /// Names and values about the file.
    pub aux: Vec<(&'static str, String)>,
}

/// A file that is synced after so many bytes each, so that no long sync is left for its end.
pub(super) struct SyncedSink<'a, F> {
    pub(super) sink: &'a mut FileSink<F>,
    pub(super) every_bytes: Option<u64>,
    pub(super) synced: u64,
}

impl<F: DiskFile> ByteSink for SyncedSink<'_, F> {
    type Error = DiskError;

    fn put(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.sink.put(bytes)?;
        if self.every_bytes.is_some_and(|every| self.sink.written() - self.synced >= every) {
            self.synced = self.sink.written();
            self.sink.file().sync()?;
        }
        Ok(())
    }
}

impl Uses {
    fn attributes(self, expires_at: Option<i64>, access_clock: u32) -> Attributes {
        let mut attributes = Attributes { expires_at, ..Attributes::default() };
        match self {
            Self::Hidden => {}
            Self::Recency(now) => {
                let idle = now.wrapping_sub(access_clock) & ds::record::ACCESS_CLOCK_MASK;
                attributes.idle_seconds = Some(u64::from(idle));
            }
            // The lowest byte.
            Self::Frequency => attributes.frequency = Some(access_clock as u8),
        }
        attributes
    }
}

struct RdbSink<S: ByteSink> {
    writer: RdbWriter<S>,
    encoder: ValueEncoder,
    /// Entries that were encoded while a shard was locked.
    buffer: Vec<u8>,
    uses: Uses,
    /// The database of the last key.
    db: u32,
    parts: Option<Parts>,
    keys: u64,
    locked: bool,
    failure: Option<S::Error>,
}

/// How the RDB files of a server are written. `aof_base` says whether commands of an append-only
/// file follow.
pub fn rdb_options(node: &Node, config: &Config, aof_base: bool) -> RdbOptions {
    let unix_seconds = sys::clock::unix_micros().div_euclid(1_000_000);
    let policy = config.eviction.maxmemory_policy;
    let saving = &config.saving;
    RdbOptions {
        format: Options {
            compress: saving.rdbcompression,
            checksum: saving.rdbchecksum,
            ..Options::default()
        },
        uses: match (policy.is_lfu(), policy.is_lru()) {
            (true, _) => Uses::Frequency,
            (_, true) => Uses::Recency(unix_seconds as u32),
            _ => Uses::Hidden,
        },
        aux: vec![
            ("redis-ver", node::version::COMPAT_VERSION.to_owned()),
            ("redis-bits", usize::BITS.to_string()),
            ("ctime", unix_seconds.to_string()),
            ("used-mem", node.used_memory.total().max(0).to_string()),
            ("aof-base", u8::from(aof_base).to_string()),
            ("weft-ver", node::version::VERSION.to_owned()),
        ],
    }
}

impl SnapshotJob {
    /// Writes an RDB file. Returns the sink, which has everything then.
    ///
    /// # Errors
    /// When the snapshot is not whole or the sink fails.
    pub fn write_to<S: ByteSink>(
        self,
        out: S,
        options: &RdbOptions,
        pacing: Pacing<'_>,
    ) -> Result<S, WalkError<S::Error>> {
        let format = Options { fields_expire: self.fields_expire, ..options.format };
        let mut writer = RdbWriter::new(out, format).map_err(WalkError::Sink)?;
        write_front(&mut writer, options, &self.libraries).map_err(WalkError::Sink)?;
        self.write_sizes(&mut writer).map_err(WalkError::Sink)?;
        let mut sink = RdbSink {
            writer,
            encoder: ValueEncoder::of_file(format),
            buffer: Vec::new(),
            uses: options.uses,
            db: u32::MAX,
            parts: None,
            keys: 0,
            locked: false,
            failure: None,
        };
        self.walk(&mut sink, pacing)?;
        sink.writer.finish().map_err(WalkError::Sink)
    }

    /// The sizes of all databases come first, because keys do not come one database after the
    /// other.
    fn write_sizes<S: ByteSink>(&self, writer: &mut RdbWriter<S>) -> Result<(), S::Error> {
        let mut used = self.sizes.iter().enumerate().filter(|(_, sizes)| sizes.keys > 0);
        used.try_for_each(|(number, sizes)| writer.database(number as u64, *sizes))
    }
}

/// Writes an RDB file without keys.
///
/// # Errors
/// When the sink fails.
pub fn write_empty<S: ByteSink>(
    out: S,
    options: &RdbOptions,
    libraries: &[Arc<Library>],
) -> Result<S, S::Error> {
    let mut writer = RdbWriter::new(out, options.format)?;
    write_front(&mut writer, options, libraries)?;
    writer.finish()
}

/// The parts of a file before its databases.
fn write_front<S: ByteSink>(
    writer: &mut RdbWriter<S>,
    options: &RdbOptions,
    libraries: &[Arc<Library>],
) -> Result<(), S::Error> {
    for (name, value) in &options.aux {
        writer.aux(name.as_bytes(), value.as_bytes())?;
    }
    libraries.iter().try_for_each(|library| writer.function(library.source()))
}

/// Writes with an encoder to where things go now, and keeps the first failure.
macro_rules! write {
    ($sink:ident, |$encoder:ident, $out:ident| $work:expr) => {
        if $sink.locked {
            let ($encoder, $out) = (&mut $sink.encoder, &mut $sink.buffer);
            let Ok(done) = $work;
            Some(done)
        } else if $sink.failure.is_none() {
            let ($encoder, $out) = (&mut $sink.encoder, &mut $sink.writer);
            match $work {
                Ok(done) => Some(done),
                Err(error) => {
                    $sink.failure = Some(error);
                    None
                }
            }
        } else {
            None
        }
    };
}

impl<S: ByteSink> RdbSink<S> {
    fn select(&mut self, db: u32) {
        if self.db != db {
            self.db = db;
            write!(self, |encoder, out| encoder.select(u64::from(db), out));
        }
    }
}

impl<S: ByteSink> KeySink for RdbSink<S> {
    fn entry(&mut self, db: u32, value: Stored<'_>) {
        self.select(db);
        self.keys += 1;
        let attributes = self.uses.attributes(value.expires_at(), value.access_clock());
        write!(self, |encoder, out| encoder.key(value, attributes, out));
    }

    fn begin(&mut self, head: &CollectionHead) {
        self.select(head.db);
        self.keys += 1;
        let attributes = self.uses.attributes(head.expires_at, head.access_clock);
        self.parts = write!(self, |encoder, out| encoder.begin(head, attributes, out));
    }

    fn part(&mut self, part: CollectionPart<'_>) {
        if let Some(mut parts) = self.parts.take() {
            write!(self, |encoder, out| encoder.part(&mut parts, part, out));
            self.parts = Some(parts);
        }
    }

    fn end(&mut self) {
        if let Some(parts) = self.parts.take() {
            write!(self, |encoder, out| encoder.end(parts, out));
        }
    }
}

impl<S: ByteSink> SnapshotSink for RdbSink<S> {
    type Error = S::Error;

    fn is_locked(&mut self, locked: bool) {
        self.locked = locked;
    }

    fn pass_on(&mut self) -> Result<u64, S::Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.writer.keys(&self.buffer)?;
        base::room::clear(&mut self.buffer, BUFFER_BYTES_MAX);
        Ok(std::mem::take(&mut self.keys))
    }
}
