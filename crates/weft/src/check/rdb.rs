//! `weft check rdb`.

use std::error::Error;
use std::path::{Path, PathBuf};

use persist::check::{RdbReport, check_rdb, repair_rdb};
use persist::disk::{Disk, DiskFile, FileSink};
use server::{RealDisk, RealFile};

use super::libraries::Refused;
use super::repaired::Repaired;
use super::{Finding, keeping, libraries, may_fix, parts};

/// Looks through a file, and repairs it if `fix` says so; see [`may_fix`].
pub fn check(file: &Path, fix: Option<bool>) -> Result<Finding, Box<dyn Error>> {
    // A link stays one: the file that it names is looked through, and replaced.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let (disk, name) = parts(&file)?;
    let opened = disk.open(&name)?;
    let mut report = check_rdb(&opened)?;
    let finding = show(&name, &report)?;
    let refused = libraries::refused(&report.libraries)?;
    let finding = if refused.is_empty() { finding } else { Finding::Damaged };
    for Refused { range, why } in refused {
        let at = range.start;
        tell!(
            "{}: the library of functions at offset {at} cannot be loaded: {why}",
            name.display()
        )?;
        report.leave_out(range);
    }
    let behind = opened.len()?.saturating_sub(report.valid_to);
    if finding == Finding::Whole && behind > 0 {
        tell!("{}: {behind} bytes follow that loading passes over", name.display())?;
    }
    // What is no RDB file is not touched.
    if finding == Finding::Whole || report.version == 0 {
        return Ok(finding);
    }
    if !may_fix(fix, &name, &repair(&name, &report, behind))? {
        return Ok(Finding::Damaged);
    }
    let kept = replace(&disk.place(&name)?, &opened, &report)
        .map_err(|why| format!("cannot fix {}, which stays as it is: {why}", name.display()))?;
    tell!(
        "Fixed {} with {} keys; the damaged file is {}",
        name.display(),
        report.keys,
        Path::new(kept.file_name().unwrap_or_default()).display()
    )?;
    Ok(Finding::Whole)
}

/// What a repair does.
fn repair(name: &Path, report: &RdbReport, behind: u64) -> String {
    let mut text = keeping(name, report.valid_to, behind);
    for range in &report.left_out {
        text += &format!("\nIt will leave out what stands at {} to {}", range.start, range.end - 1);
    }
    text
}

/// Writes what is kept of a file and puts it in its place; gives where the damaged one is.
fn replace(place: &Path, opened: &RealFile, report: &RdbReport) -> Result<PathBuf, Box<dyn Error>> {
    let repaired = Repaired::beside(place)?;
    let disk = RealDisk::new(place.parent().unwrap_or(Path::new("/")));
    let mut sink = FileSink::new(disk.open_to_append(repaired.path())?);
    repair_rdb(opened, report, &mut sink)?;
    // The damaged file may have been written to meanwhile, or be read otherwise now.
    let found = check_rdb(sink.file())?;
    if let Some((offset, error)) = found.damage {
        return Err(format!("the new one is damaged about offset {offset}: {error}").into());
    }
    sink.file().sync()?;
    Ok(repaired.take_place()?)
}

/// Says what a report has found.
pub fn show(name: &Path, report: &RdbReport) -> Result<Finding, tools::Error> {
    let RdbReport { version, keys, valid_to, damage, left_out, .. } = report;
    let name = name.display();
    let Some((offset, error)) = damage else {
        tell!("{name}: RDB version {version}, {keys} keys, {valid_to} bytes: all is right")?;
        return Ok(Finding::Whole);
    };
    tell!(
        "{name}: RDB version {version}, damaged about offset {offset}: {error}. {keys} keys in the \
         first {valid_to} bytes are whole."
    )?;
    if left_out.len() > 1 {
        tell!("{name}: {} values or keys are damaged", left_out.len())?;
    }
    Ok(Finding::Damaged)
}
