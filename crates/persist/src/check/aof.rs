//! Checks append-only files: one file, or all that a manifest names.

use super::{CheckError, RdbReport, check_rdb};
use crate::aof::salvage::{self, read_to_end};
use crate::aof::{
    self, AofEnd, AofFix, AofNames, AofReader, AofTail, Damage, FileOrder, LoadFile, ManifestEntry,
    ReadError,
};
use crate::disk::{Disk, DiskFile};

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
    /// The new file with the intact part, if this one is not whole.
    pub fix: Option<AofFix>,
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

/// The same for a file that may have an entry in a manifest, which says where it was closed.
///
/// # Errors
/// When the disk fails.
pub fn check_listed<F: DiskFile>(
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
        fix: None,
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
    let from = report.valid_to;
    match read_to_end(&mut reader) {
        Ok(AofEnd { valid_to, commands, unsealed, tail, repair, .. }) => {
            let fix = repair.map(|cut| AofFix::of_cut(cut, commands));
            Ok(AofReport { valid_to, commands, unsealed, tail, fix, ..report })
        }
        Err(ReadError::Disk(error)) => Err(error.into()),
        Err(ReadError::Damage(damage)) => {
            let valid_to = damage.valid_to;
            let (commands, unsealed) = (reader.kept_commands(), reader.kept_unsealed());
            let (damage, fix) = (Some(damage), Some(salvage::find(file, from, order, entry)?));
            Ok(AofReport { valid_to, commands, unsealed, damage, fix, ..report })
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
    /// The commands after this offset, where a new file ends.
    From(u64, AofFix),
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
        Ok(AofEnd { valid_to, commands, repair: Some(cut), .. }) if reader.later_at().is_some() => {
            let fix = AofFix::of_cut(cut, commands);
            Ok(if valid_to == 0 { Later::All } else { Later::From(valid_to, fix) })
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

impl<F> DirectoryReport<F> {
    /// The files that are not whole, with the new files that replace them. `None` if the RDB file
    /// that one begins with is damaged: later commands need all of its keys.
    pub fn fixes(&self) -> Option<Vec<(&LoadFile<F>, &AofFix)>> {
        let damaged = self.files.iter().filter(|(_, report)| !report.is_whole());
        damaged.map(|(file, report)| Some((file, report.fix.as_ref()?))).collect()
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

/// The entry of a file in a manifest, if there is one.
///
/// # Errors
/// When the disk fails, or the manifest is damaged.
pub fn entry_of<D: Disk>(
    disk: &D,
    names: &AofNames,
    file: &[u8],
) -> Result<Option<ManifestEntry>, CheckError> {
    let manifest = aof::read_manifest(disk, names).map_err(CheckError::Manifest)?;
    let entry = manifest.load_order().find(|entry| entry.name == file);
    Ok(entry.map(|entry| manifest.trusted(entry)))
}

/// The manifest for a file that no longer ends where it was closed. `None` if the manifest does not
/// say where that was.
///
/// # Errors
/// When the disk fails, or the manifest is damaged.
pub fn reopened<D: Disk>(
    disk: &D,
    names: &AofNames,
    file: &[u8],
) -> Result<Option<Vec<u8>>, CheckError> {
    let mut manifest = aof::read_manifest(disk, names).map_err(CheckError::Manifest)?;
    let mut entries = manifest.incremental.iter_mut();
    let end = entries.find(|entry| entry.name == file).and_then(|entry| entry.end_offset.take());
    Ok(end.map(|_| manifest.sealed()))
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
