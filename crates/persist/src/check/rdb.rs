//! What an RDB file has, and what a repair keeps of it.
//!
//! A repaired file is one that a server loads, with nothing in it that the damaged one did not say:
//!
//! - Where the outline of the file is whole, values that cannot be loaded are left out, and all
//!   others are kept.
//! - Where it breaks off, what stands before the first damage is kept. What may have been taken for
//!   whole by mistake, because zeros stand where a crash has lost the rest of it, is not.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use base::hash::KeyHasher;
use base::random::entropy_seed;
use store::Limits;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::CheckError;
use crate::crc64::Crc64;
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile, FileSink, FileSource};
use crate::rdb::{self, Decoder, Item, Reader, ValueType};
use crate::{Error, Input, Sink, Source};

/// As many damaged values are left out. Where there are more, the file is no RDB file from the
/// first of them on.
const LEFT_OUT_MAX: usize = 1000;
/// What is kept of the room for a value.
const ROOM_BYTES_MAX: usize = 1 << 20;
/// The shortest key and value: both are empty. As many zeros look like them.
const EMPTY_KEY_BYTES: usize = 3;

/// What an RDB file has.
#[derive(Debug, Default)]
pub struct RdbReport {
    /// Its version; 0 when it has none.
    pub version: u16,
    /// Keys that are kept.
    pub keys: u64,
    /// Bytes up to the end of the last item that is kept, or, of a file without damage, behind its
    /// checksum.
    pub valid_to: u64,
    /// About where the first damage is, and what it is.
    pub damage: Option<(u64, Error)>,
    /// Where in the valid bytes something stands that is left out, in order.
    pub left_out: Vec<Range<u64>>,
    /// Libraries of functions. Whether their code can be loaded is for the caller to find.
    pub libraries: Vec<LibraryFound>,
}

/// A library of functions in a file.
#[derive(Debug)]
pub struct LibraryFound {
    /// Where it stands.
    pub range: Range<u64>,
    /// Its source.
    pub source: Vec<u8>,
}

impl RdbReport {
    /// Leaves something more out.
    pub fn leave_out(&mut self, range: Range<u64>) {
        let at = self.left_out.partition_point(|other| other.start < range.start);
        self.left_out.insert(at, range);
    }

    /// The same of a file that ends there.
    fn up_to(self, valid_to: u64, keys: u64) -> Self {
        let mut libraries = self.libraries;
        libraries.retain(|library| library.range.end <= valid_to);
        Self { valid_to, keys, libraries, left_out: Vec::new(), ..self }
    }
}

/// Looks through an RDB file: all that makes a load of it fail, but for the code of libraries.
///
/// # Errors
/// When the disk fails.
pub fn check_rdb<F: DiskFile>(file: &F) -> Result<RdbReport, CheckError> {
    let found = scan(FileSource::new(file.clone(), 0)?).map_err(CheckError::Read)?;
    if found.damage.is_none() || !found.left_out.is_empty() {
        return Ok(found);
    }
    let from = zeros_around(file, found.valid_to)?;
    if from == found.valid_to {
        return Ok(found);
    }
    // What zeros stand in for is not whole, although it may look so.
    let before = FileSource::up_to(file.clone(), from);
    let before = scan(before).map_err(CheckError::Read)?;
    Ok(RdbReport { damage: found.damage, ..before })
}

/// Where the zeros begin in which valid bytes end, when zeros go on behind them as those of a lost
/// block do, to the end of the file or as far as a key without a name; otherwise `valid_to`.
fn zeros_around<F: DiskFile>(file: &F, valid_to: u64) -> Result<u64, DiskError> {
    let mut behind = [0; EMPTY_KEY_BYTES];
    let read = file.read_at(valid_to, &mut behind)?;
    if behind[..read].iter().any(|byte| *byte != 0) {
        return Ok(valid_to);
    }
    let (mut from, mut room) = (valid_to, vec![0; BLOCK_BYTES]);
    while from > 0 {
        let block = from.saturating_sub(BLOCK_BYTES as u64);
        let room = &mut room[..(from - block) as usize];
        let read = file.read_at(block, room)?;
        if let Some(last) = room[..read].iter().rposition(|byte| *byte != 0) {
            return Ok(block + last as u64 + 1);
        }
        from = block;
    }
    Ok(0)
}

/// Reads a file to its end, or as far as its outline goes.
fn scan<S: Source>(source: S) -> io::Result<RdbReport> {
    let mut report = RdbReport::default();
    let mut reader = match Reader::new(source, true) {
        Ok(reader) => reader,
        Err(error) => return report.broken(0, error, None),
    };
    (report.version, report.valid_to) = (reader.version(), reader.offset());
    let (limits, mut seen, mut db) = (Limits::default(), Seen::new(), 0);
    let mut values = Values { decoder: Decoder::new(&limits, seen.hasher), bytes: Vec::new() };
    // What is kept where the outline breaks off later: the bytes before the first damage.
    let mut sound = None;
    loop {
        let at = report.valid_to;
        let item = match reader.item() {
            Ok(Item::Key(head)) => {
                let (name, value_type) = (seen.name(db, head.key), head.value_type);
                values.read(&mut reader, value_type).map(|is_key| is_key.then_some(name))
            }
            Ok(Item::Function(source)) => {
                let source = source.to_vec();
                report.libraries.push(LibraryFound { range: at..reader.offset(), source });
                Ok(None)
            }
            Ok(Item::Database(number)) => {
                db = number;
                Ok(None)
            }
            Ok(Item::End) => {
                if report.damage.is_none() {
                    report.valid_to = reader.offset();
                }
                return Ok(report);
            }
            Ok(_) => Ok(None),
            // All items are there. Which of them has changed is not known.
            Err(error @ Error::Checksum { .. }) => {
                report.damage.get_or_insert((reader.offset(), error));
                return Ok(report);
            }
            Err(error) => Err(Fault::Outline(error)),
        };
        let item = item.and_then(|name| match name {
            Some(name) if !seen.names.insert(name) => Err(TWICE),
            name => Ok(u64::from(name.is_some())),
        });
        match item {
            Ok(keys) => report.keys += keys,
            Err(Fault::Outline(error)) => return report.broken(reader.offset(), error, sound),
            Err(Fault::Value(error)) => {
                sound.get_or_insert((at, report.keys));
                report.damage.get_or_insert((at, error));
                report.left_out.push(at..reader.offset());
                if report.left_out.len() > LEFT_OUT_MAX {
                    return report.broken(at, Error::End, sound);
                }
            }
        }
        report.valid_to = reader.offset();
    }
}

impl RdbReport {
    /// The outline breaks off; before the bytes and keys `sound`, if any, there was no damage.
    fn broken(mut self, offset: u64, error: Error, sound: Option<(u64, u64)>) -> io::Result<Self> {
        if let Error::Source(error) = error {
            return Err(error);
        }
        self.damage.get_or_insert((offset, error));
        let (valid_to, keys) = sound.unwrap_or((self.valid_to, self.keys));
        Ok(self.up_to(valid_to, keys))
    }
}

/// What keeps an item from being loaded.
enum Fault {
    /// Where the next one begins is not known.
    Outline(Error),
    /// The others can be loaded.
    Value(Error),
}

const TWICE: Fault = Fault::Value(Error::Corrupt("a key that is there twice"));

/// Decodes values.
struct Values<'l> {
    decoder: Decoder<'l>,
    bytes: Vec<u8>,
}

impl Values<'_> {
    /// Reads the value of the last key; says whether loading makes a key of it.
    fn read<S: Source>(
        &mut self,
        reader: &mut Reader<S>,
        value_type: ValueType,
    ) -> Result<bool, Fault> {
        if value_type == ValueType::Module2 {
            return reader.skip_value().map(|()| false).map_err(Fault::Outline);
        }
        base::room::clear(&mut self.bytes, ROOM_BYTES_MAX);
        reader.copy_value(&mut self.bytes).map_err(Fault::Outline)?;
        match self.decoder.value(value_type, &mut Input::new(&self.bytes[..])) {
            Ok(_) => Ok(true),
            Err(Error::EmptyValue) => Ok(false),
            Err(error) => Err(Fault::Value(error)),
        }
    }
}

/// The keys that there are: by 128 bits of hash, which are those of no two keys.
struct Seen {
    hasher: KeyHasher,
    seed: u64,
    names: HashSet<u128>,
}

impl Seen {
    fn new() -> Self {
        let seed = entropy_seed();
        Self { hasher: KeyHasher::new(seed), seed, names: HashSet::new() }
    }

    /// What is kept of a key.
    fn name(&self, db: u64, key: &[u8]) -> u128 {
        xxh3_128_with_seed(key, self.seed.wrapping_add(db))
    }
}

/// Writes what is kept of a damaged RDB file, with an end and a checksum of their own.
///
/// # Errors
/// When the disk fails.
pub fn repair_rdb<F: DiskFile>(
    file: &F,
    report: &RdbReport,
    out: &mut FileSink<F>,
) -> Result<(), DiskError> {
    let (mut crc, mut at, mut room) = (Crc64::new(), 0, vec![0; BLOCK_BYTES]);
    let end = report.valid_to..report.valid_to;
    for left_out in report.left_out.iter().chain([&end]) {
        while at < left_out.start {
            let wanted = (left_out.start - at).min(BLOCK_BYTES as u64) as usize;
            let read = file.read_at(at, &mut room[..wanted])?;
            if read == 0 {
                break;
            }
            crc.update(&room[..read]);
            out.put(&room[..read])?;
            at += read as u64;
        }
        at = left_out.end;
    }
    crc.update(&[rdb::END]);
    out.put(&[rdb::END])?;
    match report.version < rdb::CHECKSUM_VERSION_MIN {
        true => Ok(()),
        false => out.put(&crc.value().to_le_bytes()),
    }
}
