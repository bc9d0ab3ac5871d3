//! Looking through files without loading them: what is valid, where the first damage is, and what
//! a repair would keep.
//!
//! Nothing is changed here but by [`Fix::apply`].

use std::io;

use crate::aof::{
    self, AofError, Damage, End, Item, LoadFile, Names, Place, ReadError, Reader, Repair, Tail,
};
use crate::crc64::Crc64;
use crate::disk::{BLOCK_BYTES, Disk, DiskError, DiskFile, FileSink, FileSource};
use crate::{Error, Sink, Source, rdb};

/// What an RDB file has.
#[derive(Debug)]
pub struct RdbReport {
    /// Its version; 0 when it has none.
    pub version: u16,
    /// Whole keys.
    pub keys: u64,
    /// Bytes up to the end of the last whole key, or of the file behind its checksum.
    pub valid_to: u64,
    /// About where the first damage is, and what it is.
    pub damage: Option<(u64, Error)>,
}

/// Looks through an RDB file: its outline and its checksum, not the inside of values.
///
/// # Errors
/// When the source fails.
pub fn check_rdb<S: Source>(source: S) -> io::Result<RdbReport> {
    let mut report = RdbReport { version: 0, keys: 0, valid_to: 0, damage: None };
    let mut reader = match rdb::Reader::new(source, true) {
        Ok(reader) => reader,
        Err(error) => return damaged(report, 0, error),
    };
    report.version = reader.version();
    // The last key, and where it begins. One that comes twice is no key, as of the zeros that a
    // crash may leave at the end.
    let (mut last, mut last_at): (Option<Vec<u8>>, u64) = (None, 0);
    loop {
        let at = report.valid_to;
        let is_key = match reader.item() {
            Ok(rdb::Item::Key(head)) if last.as_deref() == Some(head.key) => {
                (report.keys, report.valid_to) = (report.keys - 1, last_at);
                return damaged(report, at, Error::Corrupt("a key that is there twice"));
            }
            Ok(rdb::Item::Key(head)) => {
                let mut room = last.take().unwrap_or_default();
                room.clear();
                room.extend_from_slice(head.key);
                (last, last_at) = (Some(room), at);
                true
            }
            Ok(rdb::Item::End) => {
                report.valid_to = reader.offset();
                return Ok(report);
            }
            Ok(rdb::Item::Database(_)) => {
                last = None;
                false
            }
            Ok(_) => false,
            Err(error) => return damaged(report, reader.offset(), error),
        };
        if let Err(error) = reader.skip_value() {
            return damaged(report, reader.offset(), error);
        }
        report.valid_to = reader.offset();
        report.keys += u64::from(is_key);
    }
}

/// Writes the whole items of a damaged RDB file, with an end and a checksum of their own. Where
/// only the checksum is wrong that is all of them: which one has changed is not known.
///
/// # Errors
/// When the disk fails.
pub fn repair_rdb<F: DiskFile>(
    file: &F,
    report: &RdbReport,
    out: &mut FileSink<F>,
) -> Result<(), DiskError> {
    let (mut crc, mut at, mut room) = (Crc64::new(), 0, vec![0; BLOCK_BYTES]);
    while at < report.valid_to {
        let wanted =
            usize::try_from(report.valid_to - at).map_or(BLOCK_BYTES, |left| left.min(BLOCK_BYTES));
        let read = file.read_at(at, &mut room[..wanted])?;
        if read == 0 {
            break;
        }
        crc.update(&room[..read]);
        out.put(&room[..read])?;
        at += read as u64;
    }
    crc.update(&[rdb::END]);
    out.put(&[rdb::END])?;
    match report.version < rdb::CHECKSUM_VERSION_MIN {
        true => Ok(()),
        false => out.put(&crc.value().to_le_bytes()),
    }
}

fn damaged(mut report: RdbReport, offset: u64, error: Error) -> io::Result<RdbReport> {
    match error {
        Error::Source(error) => Err(error),
        error => {
            report.damage = Some((offset, error));
            Ok(report)
        }
    }
}

/// What a file of an append-only file has.
#[derive(Debug)]
pub struct AofReport {
    /// Its length.
    pub bytes: u64,
    /// The RDB file that it begins with.
    pub rdb: Option<RdbReport>,
    /// Commands that are whole and in whole transactions.
    pub commands: u64,
    /// Bytes of them that no checksum covers.
    pub unsealed: u64,
    /// Bytes up to the end of the last of them.
    pub valid_to: u64,
    /// What a crash has left behind them; loading drops it.
    pub tail: Option<Tail>,
    /// What is wrong where nothing may be; loading refuses it.
    pub damage: Option<Damage>,
    /// What would make the file end where it is valid.
    pub repair: Option<Repair>,
}

impl AofReport {
    /// Whether all of it is valid.
    pub fn is_whole(&self) -> bool {
        self.tail.is_none() && self.damage.is_none() && !self.has_damaged_rdb()
    }

    /// Whether there is nothing in it that an append-only file has: it is another file.
    pub fn is_foreign(&self) -> bool {
        self.bytes > 0 && self.rdb.is_none() && self.commands == 0 && self.valid_to == 0
    }

    fn has_damaged_rdb(&self) -> bool {
        self.rdb.as_ref().is_some_and(|rdb| rdb.damage.is_some())
    }
}

/// Looks through a file of an append-only file, or a single one of a Redis before version 7.
///
/// # Errors
/// When the disk fails.
pub fn check_aof<F: DiskFile>(file: &F, place: Place) -> Result<AofReport, CheckError> {
    let mut report = AofReport {
        bytes: file.len()?,
        rdb: None,
        commands: 0,
        unsealed: 0,
        valid_to: 0,
        tail: None,
        damage: None,
        repair: None,
    };
    if aof::begins_with_rdb(file)? {
        let rdb = check_rdb(FileSource::new(file.clone(), 0)?).map_err(CheckError::Read)?;
        report.valid_to = rdb.valid_to;
        let is_damaged = rdb.damage.is_some();
        report.rdb = Some(rdb);
        if is_damaged {
            return Ok(report);
        }
    }
    let mut reader = Reader::new(file.clone(), report.valid_to, place)?;
    match read_to_end(&mut reader) {
        Ok(End { valid_to, commands, unsealed, tail, repair, .. }) => {
            Ok(AofReport { valid_to, commands, unsealed, tail, repair, ..report })
        }
        Err(ReadError::Disk(error)) => Err(error.into()),
        Err(ReadError::Damage(damage)) => {
            let (valid_to, (commands, unsealed)) = (damage.valid_to, reader.kept());
            let (damage, repair) = (Some(damage), reader.repair()?);
            Ok(AofReport { valid_to, commands, unsealed, damage, repair, ..report })
        }
    }
}

fn read_to_end<F: DiskFile>(reader: &mut Reader<F>) -> Result<End, ReadError> {
    loop {
        if let Item::End(end) = reader.item()? {
            return Ok(end);
        }
    }
}

/// What a file of an append-only file has that was written later than a time.
#[derive(Debug)]
pub enum Later {
    /// Nothing, or nothing that it tells the time of.
    Nothing,
    /// Everything.
    All,
    /// What follows these first bytes, and what makes the file end behind them.
    From(u64, Repair),
    /// It is damaged before that.
    Damaged,
}

/// Looks for what was written later than a time in seconds since 1970, which a file tells where
/// `aof-timestamp-enabled` is on.
///
/// # Errors
/// When the disk fails.
pub fn later_than<F: DiskFile>(
    file: &F,
    place: Place,
    unix_seconds: i64,
) -> Result<Later, CheckError> {
    let mut from = 0;
    if aof::begins_with_rdb(file)? {
        let rdb = check_rdb(FileSource::new(file.clone(), 0)?).map_err(CheckError::Read)?;
        if rdb.damage.is_some() {
            return Ok(Later::Damaged);
        }
        from = rdb.valid_to;
    }
    let mut reader = Reader::new(file.clone(), from, place)?.until(unix_seconds);
    match read_to_end(&mut reader) {
        Err(ReadError::Disk(error)) => Err(error.into()),
        Err(ReadError::Damage(_)) => Ok(Later::Damaged),
        Ok(End { valid_to, repair: Some(repair), .. }) if reader.later_at().is_some() => {
            Ok(if valid_to == 0 { Later::All } else { Later::From(valid_to, repair) })
        }
        Ok(End { tail: Some(_), .. }) => Ok(Later::Damaged),
        Ok(_) => Ok(Later::Nothing),
    }
}

/// What an append-only file has.
#[derive(Debug)]
pub struct DirectoryReport<F> {
    /// Its files in the order in which they are loaded, with what each has.
    pub files: Vec<(LoadFile<F>, AofReport)>,
}

impl<F: DiskFile> DirectoryReport<F> {
    /// What would make it whole, if anything is to do and can be done: the first file that is
    /// damaged ends before the damage. If that is not the last one, commands of the later ones
    /// would follow on others than they did, so nothing is proposed.
    pub fn fix(&self) -> Option<Fix<'_, F>> {
        let (file, report) = self.files.iter().find(|(_, report)| !report.is_whole())?;
        let repair = report.repair.as_ref()?;
        let is_last = file.place == Place::Last;
        let dropped = report.bytes.saturating_sub(report.valid_to);
        is_last.then_some(Fix { file, repair, kept: report.valid_to, dropped })
    }
}

/// A repair that is proposed.
#[derive(Debug)]
pub struct Fix<'a, F> {
    /// The file.
    pub file: &'a LoadFile<F>,
    /// Bytes of it that are kept.
    pub kept: u64,
    /// Bytes of it that are lost.
    pub dropped: u64,
    repair: &'a Repair,
}

impl<F: DiskFile> Fix<'_, F> {
    /// Does it.
    ///
    /// # Errors
    /// When the disk fails; the same can be done again then.
    pub fn apply<D: Disk<File = F>>(&self, disk: &D) -> Result<(), DiskError> {
        self.repair.apply(&disk.open_to_append(&self.file.path)?)
    }
}

/// Why files could not be looked through.
#[derive(Debug)]
pub enum CheckError {
    /// The disk failed.
    Disk(DiskError),
    /// A file could not be read.
    Read(io::Error),
    /// The manifest is damaged.
    Manifest(AofError),
}

impl From<DiskError> for CheckError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

impl std::fmt::Display for CheckError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Manifest(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CheckError {}

/// Looks through an append-only file: its manifest and all files that it names.
///
/// # Errors
/// When the disk fails, the manifest is damaged, or a file is missing.
pub fn check_directory<D: Disk>(
    disk: &D,
    names: &Names,
) -> Result<DirectoryReport<D::File>, CheckError> {
    let files = files(disk, names)?.into_iter().map(|file| {
        let report = check_aof(&file.file, file.place)?;
        Ok((file, report))
    });
    Ok(DirectoryReport { files: files.collect::<Result<_, CheckError>>()? })
}

/// The files that the manifest of an append-only file names, in the order in which they are loaded.
///
/// # Errors
/// When the disk fails, the manifest is damaged, or it or a file is missing.
pub fn files<D: Disk>(disk: &D, names: &Names) -> Result<Vec<LoadFile<D::File>>, CheckError> {
    // To a server none means that there is no append-only file yet.
    disk.open(&names.path(&names.manifest()))?;
    let manifest = aof::read_manifest(disk, names).map_err(CheckError::Manifest)?;
    Ok(aof::load_files(disk, names, &manifest)?)
}
