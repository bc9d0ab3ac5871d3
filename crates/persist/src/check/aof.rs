//! Checks append-only files: one file, or all that a manifest names.

use super::{CheckError, RdbReport, check_rdb};
use crate::aof::{
    self, AofEnd, AofItem, AofNames, AofReader, AofTail, Damage, FileOrder, LoadFile,
    ManifestEntry, ReadError, Repair,
};
use crate::disk::{Disk, DiskError, DiskFile};

/// The result of checking a file.
#[derive(Debug)]
pub struct AofReport {
    /// Its length.
    pub bytes: u64,
    /// The report about the RDB file that it begins with, if it does.
    pub rdb: Option<RdbReport>,
    /// How many commands are complete, as are their transactions.
    pub commands: u64,
    /// How many bytes of them have no checksum.
    pub unsealed: u64,
    /// The end of the last of them.
    pub valid_to: u64,
    /// The tail that a crash left after them. Loading drops it.
    pub tail: Option<AofTail>,
    /// Damage that makes loading fail.
    pub damage: Option<Damage>,
    /// Makes the file end after its valid part.
    pub repair: Option<Repair>,
}

impl AofReport {
    /// Whether all of it is valid.
    pub fn is_whole(&self) -> bool {
        self.tail.is_none() && self.damage.is_none() && !self.has_damaged_rdb()
    }

    /// Whether no part of it is that of an append-only file.
    pub fn is_foreign(&self) -> bool {
        self.bytes > 0 && self.rdb.is_none() && self.commands == 0 && self.valid_to == 0
    }

    fn has_damaged_rdb(&self) -> bool {
        self.rdb.as_ref().is_some_and(|rdb| rdb.damage.is_some())
    }
}

/// Checks a file of an append-only file, or the single file of a Redis before version 7.
///
/// # Errors
/// When the disk fails.
pub fn check_aof<F: DiskFile>(file: &F, order: FileOrder) -> Result<AofReport, CheckError> {
    check_listed(file, order, None)
}

/// The same for a file with an entry in the manifest.
fn check_listed<F: DiskFile>(
    file: &F,
    order: FileOrder,
    entry: Option<&ManifestEntry>,
) -> Result<AofReport, CheckError> {
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
    let mut reader = AofReader::new(file.clone(), report.valid_to, order)?;
    if let Some(entry) = entry {
        reader = reader.closed(entry);
    }
    match read_to_end(&mut reader) {
        Ok(AofEnd { valid_to, commands, unsealed, tail, repair, .. }) => {
            Ok(AofReport { valid_to, commands, unsealed, tail, repair, ..report })
        }
        Err(ReadError::Disk(error)) => Err(error.into()),
        Err(ReadError::Damage(damage)) => {
            let valid_to = damage.valid_to;
            let (commands, unsealed) = (reader.kept_commands(), reader.kept_unsealed());
            let (damage, repair) = (Some(damage), reader.repair()?);
            Ok(AofReport { valid_to, commands, unsealed, damage, repair, ..report })
        }
    }
}

fn read_to_end<F: DiskFile>(reader: &mut AofReader<F>) -> Result<AofEnd, ReadError> {
    loop {
        if let AofItem::End(end) = reader.item()? {
            return Ok(end);
        }
    }
}

/// The part of a file that was written after a time.
#[derive(Debug)]
pub enum Later {
    /// Nothing, or the file has no timestamps.
    Nothing,
    /// All commands.
    All,
    /// The commands after this offset, where the repair makes the file end.
    From(u64, Repair),
    /// Unknown: the file is damaged before that part.
    Damaged,
}

/// Finds the part of a file that was written after a time in seconds since 1970. The file must have
/// been written with `aof-timestamp-enabled`.
///
/// # Errors
/// When the disk fails.
pub fn later_than<F: DiskFile>(
    file: &F,
    order: FileOrder,
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
    let mut reader = AofReader::new(file.clone(), from, order)?.until(unix_seconds);
    match read_to_end(&mut reader) {
        Err(ReadError::Disk(error)) => Err(error.into()),
        Err(ReadError::Damage(_)) => Ok(Later::Damaged),
        Ok(AofEnd { valid_to, repair: Some(repair), .. }) if reader.later_at().is_some() => {
            Ok(if valid_to == 0 { Later::All } else { Later::From(valid_to, repair) })
        }
        Ok(AofEnd { tail: Some(_), .. }) => Ok(Later::Damaged),
        Ok(_) => Ok(Later::Nothing),
    }
}

/// The result of checking an append-only file.
#[derive(Debug)]
pub struct DirectoryReport<F> {
    /// Its files in the order in which they are loaded, with their reports.
    pub files: Vec<(LoadFile<F>, AofReport)>,
}

impl<F: DiskFile> DirectoryReport<F> {
    /// The fix for the first damaged file, which cuts it before the damage. `None` if no file is
    /// damaged, or if it is not the last one, because later files depend on all commands before
    /// them.
    pub fn fix(&self) -> Option<Fix<'_, F>> {
        let (file, report) = self.files.iter().find(|(_, report)| !report.is_whole())?;
        let repair = report.repair.as_ref()?;
        let is_last = file.order == FileOrder::Last;
        let dropped = report.bytes.saturating_sub(report.valid_to);
        is_last.then_some(Fix { file, repair, kept: report.valid_to, dropped })
    }
}

/// A proposed repair of one file.
#[derive(Debug)]
pub struct Fix<'a, F> {
    /// The file.
    pub file: &'a LoadFile<F>,
    /// How many bytes are kept.
    pub kept: u64,
    /// How many bytes are lost.
    pub dropped: u64,
    repair: &'a Repair,
}

impl<F: DiskFile> Fix<'_, F> {
    /// Repairs the file.
    ///
    /// # Errors
    /// When the disk fails. The call can be repeated then.
    pub fn apply<D: Disk<File = F>>(&self, disk: &D) -> Result<(), DiskError> {
        self.repair.apply(&disk.open_to_append(&self.file.path)?)
    }
}

/// Checks an append-only file: its manifest, and all files that it names.
///
/// # Errors
/// When the disk fails, the manifest is damaged, or a file is missing.
pub fn check_directory<D: Disk>(
    disk: &D,
    names: &AofNames,
) -> Result<DirectoryReport<D::File>, CheckError> {
    let files = files(disk, names)?.into_iter().map(|file| {
        let report = check_listed(&file.file, file.order, Some(&file.entry))?;
        Ok((file, report))
    });
    Ok(DirectoryReport { files: files.collect::<Result<_, CheckError>>()? })
}

/// Opens the files that a manifest names, in the order in which they are loaded.
///
/// # Errors
/// When the disk fails, the manifest is damaged, or it or a file is missing.
pub fn files<D: Disk>(disk: &D, names: &AofNames) -> Result<Vec<LoadFile<D::File>>, CheckError> {
    // A server without a manifest begins one, but here it must exist.
    disk.open(&names.path(&names.manifest()))?;
    let manifest = aof::read_manifest(disk, names).map_err(CheckError::Manifest)?;
    Ok(aof::load_files(disk, names, &manifest)?)
}
