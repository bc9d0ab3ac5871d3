//! What an RDB file has, and what a repair keeps of it.
//!
//! A repaired file is one that a server loads, with nothing in it that the damaged one did not say:
//!
//! - Where the outline of the file is whole, values that cannot be loaded are left out, and all
//!   others are kept.
//! - Where it breaks off, what stands before the first damage is kept. What may have been taken for
//!   whole by mistake, because zeros stand where the rest of it is lost, is not.

use std::collections::HashSet;
use std::io;
use std::ops::Range;

use base::hash::KeyHasher;
use base::random::entropy_seed;
use store::Limits;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::CheckError;
use crate::crc64::{CHECKSUM_BYTES, Crc64};
use crate::disk::{BLOCK_BYTES, DiskError, DiskFile, FileSink, FileSource};
use crate::rdb::reader::{Attributes, KeyHead, Sizes};
use crate::rdb::{self, Decoder, Item, Reader, ValueType};
use crate::{Error, Input, Sink};

/// Longer values are not copied to be decoded: they are read again, once their outline is whole.
const COPIED_BYTES_MAX: usize = 1 << 20;
/// The shortest key and value: both are empty. As many zeros look like them.
const EMPTY_KEY_BYTES: usize = 3;
/// As many zeros around the beginning of a key are of a lost block: a key without a name behind a
/// value that ends in a score of 0 has fewer.
const LOST_BYTES_MIN: usize = 16;
/// No more bytes behind an end may be anything: a line's end, a few that strayed there. What is
/// read from a wrong place on ends in so few bytes as seldom as it ends where the file does.
const STRAY_BYTES_MAX: u64 = 8;

/// What an RDB file has.
#[derive(Debug, Default)]
pub struct RdbReport {
    /// Its version; 0 when it has none.
    pub version: u16,
    /// Keys that are kept.
    pub keys: u64,
    /// Bytes up to the end of the last item that is kept.
    pub items_to: u64,
    /// Where the file ends, behind its checksum, if its outline goes so far.
    pub end: Option<u64>,
    /// About where the first damage is, and what it is.
    pub damage: Option<(u64, Error)>,
    /// Where something stands before `items_to` that is left out, in order.
    pub left_out: Vec<Range<u64>>,
    /// Libraries of functions. Whether their code can be loaded is for the caller to find.
    pub libraries: Vec<LibraryFound>,
    /// The highest number of a database.
    pub database_max: u64,
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
}

/// Looks through an RDB file: all that makes a load of it fail, but for the code of libraries.
/// Keys that expired before `now_ms`, in milliseconds since 1970, are passed over, as loading does
/// but in the base of an append-only file.
///
/// # Errors
/// When the disk fails.
pub fn check_rdb<F: DiskFile>(file: &F, now_ms: Option<i64>) -> Result<RdbReport, CheckError> {
    let scan = |end| Scan::new(file, now_ms, end).run().map_err(CheckError::Read);
    let (found, suspects) = scan(file.len()?)?;
    if found.end.is_some() {
        return Ok(found);
    }
    // What zeros stand in for is not whole, although it may look so.
    let cut = found.items_to;
    let mut from = cut;
    if zeros_at(file, cut)?.is_none_or(|zeros| zeros >= EMPTY_KEY_BYTES) {
        from = zeros_before(file, cut)?;
    }
    let Suspects { nameless, last, is_cut } = suspects;
    let is_cut = is_cut && is_cut_only(file, found.version)?;
    if last < cut && !is_cut && begins_in_zeros(file, last)? {
        from = from.min(zeros_before(file, last)?);
    }
    if let Some(at) = nameless.filter(|at| *at <= cut) {
        from = from.min(zeros_before(file, at)?);
    }
    if from == cut {
        return Ok(found);
    }
    let (before, _) = scan(from)?;
    Ok(RdbReport { damage: found.damage, ..before })
}

/// Whether nothing tells that a file was damaged otherwise than by a cut, if it is too short: the
/// mark of the end is not where it is in others, and no zeros stand at the end, as a crash leaves
/// them in the middle as well.
fn is_cut_only<F: DiskFile>(file: &F, version: u16) -> Result<bool, DiskError> {
    let len = file.len()?;
    let behind = if has_checksum(version) { CHECKSUM_BYTES as u64 } else { 0 };
    let mut mark = [0];
    let Some(at) = len.checked_sub(1 + behind) else { return Ok(true) };
    file.read_at(at, &mut mark)?;
    Ok(mark != [rdb::END] && short_zeros_before(file, len)? < LOST_BYTES_MIN)
}

/// Whether files of this version end with a checksum.
fn has_checksum(version: u16) -> bool {
    version >= rdb::CHECKSUM_VERSION_MIN
}

/// Whether the zeros of a lost block end in the byte there.
fn begins_in_zeros<F: DiskFile>(file: &F, at: u64) -> Result<bool, DiskError> {
    Ok(short_zeros_before(file, at + 1)? == LOST_BYTES_MIN)
}

/// How many zeros stand before a place, up to [`LOST_BYTES_MIN`]; 0 behind the end of the file.
fn short_zeros_before<F: DiskFile>(file: &F, at: u64) -> Result<usize, DiskError> {
    let mut bytes = [1; LOST_BYTES_MIN];
    let begin = at.saturating_sub(LOST_BYTES_MIN as u64);
    file.read_at(begin, &mut bytes[LOST_BYTES_MIN - (at - begin) as usize..])?;
    Ok(bytes.iter().rev().take_while(|byte| **byte == 0).count())
}

/// How many zeros stand there, up to [`LOST_BYTES_MIN`]; none: nothing else stands there.
fn zeros_at<F: DiskFile>(file: &F, at: u64) -> Result<Option<usize>, DiskError> {
    let mut bytes = [0; LOST_BYTES_MIN];
    let read = file.read_at(at, &mut bytes)?;
    Ok(bytes[..read].iter().position(|byte| *byte != 0))
}

/// Where the zeros begin in which the bytes before a place end.
fn zeros_before<F: DiskFile>(file: &F, at: u64) -> Result<u64, DiskError> {
    let (mut from, mut room) = (at, vec![0; BLOCK_BYTES]);
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

/// Whether nothing but zeros stands there.
fn is_zero<F: DiskFile>(file: &F, range: Range<u64>) -> Result<bool, DiskError> {
    Ok(zeros_before(file, range.end)? <= range.start)
}

/// Reads a file item by item.
struct Scan<'f, F> {
    file: &'f F,
    now_ms: Option<i64>,
    /// Where the file ends for this.
    end: u64,
    report: RdbReport,
    /// What is kept where the outline breaks off later.
    sound: Option<Sound>,
    suspects: Suspects,
    /// The value before cannot be decoded.
    is_behind_damage: bool,
    /// The keys that there are: by 128 bits of hash, which are those of no two keys.
    seen: HashSet<u128>,
    seed: u64,
    db: u64,
    value: Vec<u8>,
    /// The keys that the file says to have, and those that were met.
    announced: u64,
    met: u64,
}

const NO_ATTRIBUTES: Attributes =
    Attributes { expires_at: None, idle_seconds: None, frequency: None };

/// What may be made of the zeros of a lost block if the outline breaks off later.
#[derive(Clone, Copy, Debug, Default)]
struct Suspects {
    /// Where the first string stands whose key has no name, and that stands among such zeros.
    nameless: Option<u64>,
    /// Where the last item stands.
    last: u64,
    /// The item behind it goes on where the file ends.
    is_cut: bool,
}

/// What stands before the first damage.
struct Sound {
    items_to: u64,
    keys: u64,
    database_max: u64,
}

/// What keeps an item from being loaded.
enum Fault {
    /// Where the next one begins is not known.
    Outline(Error),
    /// The others can be loaded.
    Item(Error),
}

const TWICE: Error = Error::Corrupt("a key that is there twice");
const LOST: Error = Error::Corrupt("a key whose beginning is lost");

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Outline(error)
    }
}

impl From<DiskError> for Fault {
    fn from(error: DiskError) -> Self {
        Self::Outline(Error::Source(error.error))
    }
}

impl<'f, F: DiskFile> Scan<'f, F> {
    fn new(file: &'f F, now_ms: Option<i64>, end: u64) -> Self {
        Self {
            file,
            now_ms,
            end,
            report: RdbReport::default(),
            sound: None,
            suspects: Suspects::default(),
            is_behind_damage: false,
            seen: HashSet::new(),
            seed: entropy_seed(),
            db: 0,
            value: Vec::new(),
            announced: 0,
            met: 0,
        }
    }

    /// Reads the file.
    fn run(mut self) -> io::Result<(RdbReport, Suspects)> {
        let source = FileSource::within(self.file.clone(), 0..self.end);
        let mut reader = match Reader::new(source, true) {
            Ok(reader) => reader,
            Err(error) => return self.broken(0, error),
        };
        (self.report.version, self.report.items_to) = (reader.version(), reader.offset());
        let (limits, hasher) = (Limits::default(), KeyHasher::new(self.seed));
        let mut decoder = Decoder::new(&limits, hasher);
        loop {
            let at = self.report.items_to;
            match self.item(&mut reader, &mut decoder) {
                Ok(true) => self.suspects.last = at,
                Ok(false) => return Ok((self.report, self.suspects)),
                Err(Fault::Outline(Error::End)) if self.ends_at(at)? => {
                    self.report.damage.get_or_insert((self.end, Error::End));
                    self.report.end = Some(self.end);
                    return Ok((self.report, self.suspects));
                }
                Err(Fault::Outline(error)) => {
                    self.suspects.is_cut = matches!(error, Error::End);
                    return self.broken(reader.offset(), error);
                }
                Err(Fault::Item(error)) => self.leave_out(at..reader.offset(), error),
            }
            self.report.items_to = reader.offset();
        }
    }

    /// Whether the mark of the end stands there and nothing but part of a checksum behind it.
    fn ends_at(&self, at: u64) -> io::Result<bool> {
        let mut mark = [0];
        let read = self.file.read_at(at, &mut mark).map_err(|error| error.error)?;
        let is_cut = self.end - at <= CHECKSUM_BYTES as u64;
        Ok(read == 1 && mark == [rdb::END] && is_cut && has_checksum(self.report.version))
    }

    /// Whether an end that was read is the last one, although its checksum tells nothing. 0xff
    /// looks like one where reading goes on from a wrong place, and what was read there would be
    /// kept. That is unlikely if as many keys were met as the file says to have, or if nothing but
    /// zeros or a few bytes follows: so it is where what is read ends with the file.
    fn is_last(&self, end: u64) -> Result<bool, DiskError> {
        let all_are_met = self.announced > 0 && self.met == self.announced;
        let is_near = self.end - end <= STRAY_BYTES_MAX;
        Ok(all_are_met || is_near || is_zero(self.file, end..self.end)?)
    }

    /// Whether a checksum stands before that place, which is right if reading has not failed.
    fn has_checksum_before(&self, end: u64) -> Result<bool, DiskError> {
        let mut stored = [0; CHECKSUM_BYTES];
        let Some(at) = end.checked_sub(CHECKSUM_BYTES as u64) else { return Ok(false) };
        self.file.read_at(at, &mut stored)?;
        Ok(has_checksum(self.report.version) && stored != [0; CHECKSUM_BYTES])
    }

    /// Remembers a string there whose key has no name, if it stands among many zeros.
    fn suspect_nameless(&mut self, at: u64) -> Result<(), DiskError> {
        if self.suspects.nameless.is_none() {
            let behind = zeros_at(self.file, at)?.unwrap_or(LOST_BYTES_MIN);
            let zeros = short_zeros_before(self.file, at)? + behind;
            self.suspects.nameless = (zeros >= LOST_BYTES_MIN).then_some(at);
        }
        Ok(())
    }

    /// Reads an item; says whether more may follow.
    fn item(
        &mut self,
        reader: &mut Reader<FileSource<F>>,
        decoder: &mut Decoder<'_>,
    ) -> Result<bool, Fault> {
        let is_behind_damage = std::mem::take(&mut self.is_behind_damage);
        let report = &mut self.report;
        let at = report.items_to;
        match reader.item() {
            Ok(Item::Key(KeyHead { key, value_type, attributes })) => {
                self.met += 1;
                let name = xxh3_128_with_seed(key, self.seed.wrapping_add(self.db));
                let is_string = value_type == ValueType::String && attributes == NO_ATTRIBUTES;
                let is_nameless = is_string && key.is_empty();
                if is_nameless {
                    self.suspect_nameless(at)?;
                }
                let expires_at = attributes.expires_at;
                if expires_at.zip(self.now_ms).is_some_and(|(at, now)| at < now) {
                    reader.skip_value()?;
                } else if self.has_value(value_type, reader, decoder)? {
                    let may_be_lost = is_string && is_behind_damage;
                    let is_empty = reader.offset() - at == EMPTY_KEY_BYTES as u64;
                    self.add(at, name, (may_be_lost, is_nameless && is_empty))?;
                }
                self.report.keys += 1;
            }
            Ok(Item::Function(source)) => {
                let source = source.to_vec();
                report.libraries.push(LibraryFound { range: at..reader.offset(), source });
            }
            Ok(Item::Database(number)) => {
                self.db = number;
                report.database_max = report.database_max.max(number);
            }
            // Keys in which loading expires nothing.
            Ok(Item::Aux(b"aof-base", b"1")) => self.now_ms = None,
            Ok(Item::End) => {
                let end = reader.offset();
                let is_behind_damage = self.report.damage.is_some();
                if is_behind_damage && !self.has_checksum_before(end)? && !self.is_last(end)? {
                    return Err(Error::Corrupt("an end before the end of the file").into());
                }
                self.report.end = Some(end);
                return Ok(false);
            }
            Ok(Item::Sizes(Sizes { keys, .. })) => {
                self.announced = self.announced.saturating_add(keys);
            }
            Ok(_) => {}
            // All items are there. Which of them has changed is not known.
            Err(error @ Error::Checksum { .. }) => {
                let end = reader.offset();
                if !self.is_last(end)? {
                    return Err(error.into());
                }
                self.report.end = Some(end);
                self.report.damage.get_or_insert((end, error));
                return Ok(false);
            }
            Err(error @ Error::Compressed(_)) => {
                // That of a key whose name this is.
                reader.skip_value()?;
                return Err(Fault::Item(error));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Adds a key that stands there. `are_zeros`: it is made of zeros alone, whose number decides
    /// where the next item begins.
    fn add(
        &mut self,
        at: u64,
        name: u128,
        (may_be_lost, are_zeros): (bool, bool),
    ) -> Result<(), Fault> {
        let error = match () {
            () if may_be_lost && begins_in_zeros(self.file, at)? => LOST,
            () if !self.seen.insert(name) => TWICE,
            () => return Ok(()),
        };
        Err(if are_zeros { error.into() } else { Fault::Item(error) })
    }

    /// Reads the value of the last key; says whether loading makes a key of it.
    fn has_value(
        &mut self,
        value_type: ValueType,
        reader: &mut Reader<FileSource<F>>,
        decoder: &mut Decoder<'_>,
    ) -> Result<bool, Fault> {
        if value_type == ValueType::Module2 {
            reader.skip_value()?;
            return Ok(false);
        }
        let from = reader.offset();
        self.value.clear();
        let value = if reader.copy_short_value(&mut self.value, COPIED_BYTES_MAX)? {
            decoder.value(value_type, &mut Input::new(&self.value[..])).map(drop)
        } else {
            let value = FileSource::within(self.file.clone(), from..reader.offset());
            decoder.value(value_type, &mut Input::new(value)).map(drop)
        };
        match value {
            Ok(()) => Ok(true),
            Err(Error::EmptyValue) => Ok(false),
            Err(Error::Source(error)) => Err(Error::Source(error).into()),
            Err(error) => {
                self.is_behind_damage = true;
                Err(Fault::Item(error))
            }
        }
    }

    fn leave_out(&mut self, range: Range<u64>, error: Error) {
        let report = &mut self.report;
        let RdbReport { keys, database_max, .. } = *report;
        self.sound.get_or_insert(Sound { items_to: range.start, keys, database_max });
        report.damage.get_or_insert((range.start, error));
        match report.left_out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => report.left_out.push(range),
        }
    }

    /// What is kept where the outline breaks off.
    fn broken(self, offset: u64, error: Error) -> io::Result<(RdbReport, Suspects)> {
        if let Error::Source(error) = error {
            return Err(error);
        }
        let Self { mut report, sound, suspects, .. } = self;
        report.damage.get_or_insert((offset, error));
        if let Some(Sound { items_to, keys, database_max }) = sound {
            report = RdbReport { items_to, keys, database_max, ..report };
        }
        report.left_out.clear();
        report.libraries.retain(|library| library.range.end <= report.items_to);
        Ok((report, suspects))
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
    let end = report.items_to..report.items_to;
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
    match has_checksum(report.version) {
        true => out.put(&crc.value().to_le_bytes()),
        false => Ok(()),
    }
}
