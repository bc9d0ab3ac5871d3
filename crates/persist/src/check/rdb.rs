//! Loads an RDB file as a server does, up to the first damage, and keeps no keys.
//!
//! The loaded part is the beginning of the file, up to the end of the last whole item. With an end
//! and a new checksum it becomes a file that a server loads. Nothing is read after damage, because
//! no byte says where the next item begins.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;

use base::hash::KeyHasher;
use base::random::entropy_seed;
use store::EncodingLimits;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::CheckError;
use crate::crc64::Crc64;
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile, FileSink, FileSource};
use crate::rdb::reader::Skipped;
use crate::rdb::{self, RdbItem, RdbReader, ValueDecoder};
use crate::{ByteSink, ByteSource, Error, ModuleId};

/// The result of loading an RDB file.
#[derive(Debug, Default)]
pub struct RdbReport {
    /// The version of the format; 0 if this is no RDB file.
    pub version: u16,
    /// How many keys were loaded, including expired ones.
    pub keys: u64,
    /// The last key that was loaded.
    pub last_key: Option<KeyFound>,
    /// The end of the last item that was loaded, and the start of the damaged one if there is one.
    pub items_to: u64,
    /// The end of the file, after its checksum. `None` if the file is damaged.
    pub end: Option<u64>,
    /// The first damage, and the offset at which the decoder found it.
    pub damage: Option<(u64, Error)>,
    /// Data of modules, which a server loads only without them: `rdb-load-unknown`.
    pub modules: BTreeMap<ModuleId, ModuleFound>,
    /// Libraries of functions. The caller checks whether their code runs.
    pub libraries: Vec<LibraryFound>,
    /// The highest database number.
    pub database_max: u64,
}

/// A key in a file.
#[derive(Debug, PartialEq, Eq)]
pub struct KeyFound {
    /// Its name.
    pub name: Vec<u8>,
    /// The number of its database.
    pub database: u64,
    /// Where the key begins in the file, its expiry included.
    pub offset: u64,
}

/// Data of a module in a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModuleFound {
    /// How many keys have a value of the module.
    pub keys: u64,
    /// Where the first of the data are.
    pub offset: u64,
    /// The first of the keys.
    pub first_key: Option<KeyFound>,
}

/// A library of functions in a file.
#[derive(Debug)]
pub struct LibraryFound {
    /// Where it is in the file.
    pub range: Range<u64>,
    /// Its source.
    pub source: Vec<u8>,
}

/// Loads an RDB file up to the first damage. Damage is everything that makes a load fail, except
/// library code that does not run. Values of expired keys are decoded too, which a load may skip.
///
/// # Errors
/// When the disk fails.
pub fn check_rdb<F: DiskFile>(file: &F) -> Result<RdbReport, CheckError> {
    let mut report = RdbReport::default();
    let source = Unannounced(FileSource::new(file.clone(), 0)?);
    let loaded = match RdbReader::new(source, true) {
        Ok(mut reader) => {
            (report.version, report.items_to) = (reader.version(), reader.offset());
            load_items(&mut reader, &mut report).map_err(|error| (reader.offset(), error))
        }
        Err(error) => Err((0, error)),
    };
    report.damage = match loaded {
        Err((_, Error::Source(error))) => return Err(CheckError::Read(error)),
        loaded => loaded.err(),
    };
    Ok(report)
}

impl RdbReport {
    /// The data of a module, of which some are here.
    fn module(&mut self, module: ModuleId, offset: u64) -> &mut ModuleFound {
        self.modules.entry(module).or_insert(ModuleFound { offset, ..ModuleFound::default() })
    }
}

/// A file that does not say how many bytes follow. So a damaged length, which a long file seems to
/// confirm, takes no memory.
struct Unannounced<F>(FileSource<F>);

impl<F: DiskFile> ByteSource for Unannounced<F> {
    fn block(&self) -> &[u8] {
        self.0.block()
    }

    fn advance(&mut self) -> io::Result<()> {
        self.0.advance()
    }
}

/// Loads items up to the end of the file or to an error, and adds them to the report.
fn load_items<S: ByteSource>(
    reader: &mut RdbReader<S>,
    report: &mut RdbReport,
) -> Result<(), Error> {
    let (limits, seed) = (EncodingLimits::default(), entropy_seed());
    let mut decoder = ValueDecoder::new(&limits, KeyHasher::new(seed));
    let (mut names, mut database) = (HashSet::new(), 0);
    loop {
        let offset = report.items_to;
        match reader.item()? {
            RdbItem::Key(head) => {
                let key = KeyFound { name: head.key.to_vec(), database, offset };
                match reader.record(&mut decoder, 0) {
                    Ok(_) => {
                        // The database is no part of the seed: short names of two databases would
                        // have the same hash.
                        let hash = xxh3_128_with_seed(&key.name, seed);
                        if !names.insert((hash, database as u32)) {
                            return Err(Error::Corrupt("a key occurs twice"));
                        }
                        report.keys += 1;
                        report.last_key = Some(key);
                    }
                    // A server skips such keys.
                    Err(Error::EmptyValue) => {}
                    Err(Error::Module(module)) => {
                        let found = report.module(module, reader.item_offset());
                        found.keys += 1;
                        found.first_key.get_or_insert(key);
                    }
                    Err(error) => return Err(error),
                }
            }
            RdbItem::Function(source) => {
                let source = source.to_vec();
                // An expiry before the library belongs to a key after it.
                let range = reader.item_offset()..reader.offset();
                report.libraries.push(LibraryFound { range, source });
            }
            RdbItem::Database(number) => {
                database = number;
                report.database_max = report.database_max.max(number);
            }
            RdbItem::End => {
                report.end = Some(reader.offset());
                return Ok(());
            }
            RdbItem::Skipped(Skipped::ModuleAux(module)) => {
                report.module(module, reader.item_offset());
            }
            RdbItem::Sizes(_) | RdbItem::Slot(..) | RdbItem::Aux(..) => {}
            RdbItem::Skipped(Skipped::SlotImport) => {}
        }
        report.items_to = reader.offset();
    }
}

/// Writes the loaded part of an RDB file as a file of its own, without the given ranges, which are
/// ranges of libraries in ascending order.
///
/// # Errors
/// When the disk fails.
pub fn write_loaded<F: DiskFile>(
    file: &F,
    report: &RdbReport,
    left_out: &[Range<u64>],
    out: &mut FileSink<F>,
) -> Result<(), DiskError> {
    let (mut crc, mut room) = (Crc64::new(), vec![0; BLOCK_BYTES]);
    let starts = [0].into_iter().chain(left_out.iter().map(|range| range.end));
    let ends = left_out.iter().map(|range| range.start).chain([report.items_to]);
    for (mut at, end) in starts.zip(ends) {
        while at < end {
            let wanted = (end - at).min(BLOCK_BYTES as u64) as usize;
            let read = file.read_at(at, &mut room[..wanted])?;
            if read == 0 {
                break;
            }
            crc.update(&room[..read]);
            out.put(&room[..read])?;
            at += read as u64;
        }
    }
    crc.update(&[rdb::END]);
    out.put(&[rdb::END])?;
    match report.version >= rdb::CHECKSUM_VERSION_MIN {
        true => out.put(&crc.value().to_le_bytes()),
        false => Ok(()),
    }
}
