//! What an append-only file has: each of its files, and all that its manifest names.

use super::{CheckError, RdbReport, check_rdb};
use crate::aof::{
    self, Damage, End, Item, LoadFile, Names, Place, ReadError, Reader, Repair, Tail,
};
use crate::disk::{Disk, DiskError, DiskFile};

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
        let rdb = check_rdb(file)?;
        if rdb.damage.is_some() {
            report.valid_to = rdb.items_to;
            return Ok(AofReport { rdb: Some(rdb), ..report });
        }
        report.valid_to = rdb.end.unwrap_or(rdb.items_to);
        report.rdb = Some(rdb);
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
        let rdb = check_rdb(file)?;
        if rdb.damage.is_some() {
            return Ok(Later::Damaged);
        }
        from = rdb.end.unwrap_or(rdb.items_to);
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
