//! `weft check rdb`.

use std::error::Error;
use std::path::Path;

use node::config::Config;
use persist::check::{RdbReport, check_rdb, repair_rdb};
use persist::disk::{Disk, DiskFile, FileSink};
use server::{RealDisk, RealFile};

use super::repaired::{Placed, Repaired, Version};
use super::{Finding, keeping, libraries, may_fix, parts};

/// As many places are told that a repair leaves out.
const TOLD_MAX: usize = 10;

/// Looks through a file, and repairs it if `fix` says so; see [`may_fix`].
pub fn check(file: &Path, fix: Option<bool>) -> Result<Finding, Box<dyn Error>> {
    // A link stays one: the file that it names is looked through, and replaced.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let (disk, name) = parts(&file)?;
    let version = Version::of(&file)?;
    let opened = disk.open(&name)?;
    let now_ms = sys::clock::unix_micros() / 1000;
    let mut report = check_rdb(&opened, Some(now_ms))?;
    let (finding, untried) = show(&name, &mut report)?;
    let len = opened.len()?;
    if let Some(end) = report.end.filter(|end| finding == Finding::Whole && *end < len) {
        tell!("{}: {} bytes follow that loading passes over", name.display(), len - end)?;
    }
    // What is no RDB file is not touched.
    if finding == Finding::Whole || report.version == 0 {
        return Ok(finding);
    }
    if !may_fix(fix, &name, &repair(&name, &report, len))? {
        return Ok(Finding::Damaged);
    }
    let Placed { kept, unsynced } =
        replace(&disk.place(&name)?, version, &opened, (&report, now_ms))
            .map_err(|why| format!("cannot fix {}, which stays as it is: {why}", name.display()))?;
    tell!(
        "Fixed {} with {} keys; the damaged file is {}",
        name.display(),
        report.keys,
        Path::new(kept.file_name().unwrap_or_default()).display()
    )?;
    if let Some(error) = unsynced {
        tell!("After a power loss the damaged file may be in its place again: {error}")?;
    }
    // The others may have no end, too.
    Ok(if untried == 0 { Finding::Whole } else { Finding::Damaged })
}

/// What a repair does.
fn repair(name: &Path, report: &RdbReport, len: u64) -> String {
    let mut text = match report.end {
        Some(end) if end == len => format!("write {} anew", name.display()),
        _ => keeping(name, report.items_to, len.saturating_sub(report.items_to)),
    };
    for range in report.left_out.iter().take(TOLD_MAX) {
        text += &format!("\nIt will leave out what stands at {} to {}", range.start, range.end - 1);
    }
    match report.left_out.len().saturating_sub(TOLD_MAX) {
        0 => text,
        more => format!("{text}\nand what stands at {more} more places"),
    }
}

/// Writes what is kept of a file and puts it in its place.
fn replace(
    place: &Path,
    version: Version,
    opened: &RealFile,
    (report, now_ms): (&RdbReport, i64),
) -> Result<Placed, Box<dyn Error>> {
    let repaired = Repaired::beside(place, version)?;
    let disk = RealDisk::new(place.parent().unwrap_or(Path::new("/")));
    let mut sink = FileSink::new(disk.open_to_append(repaired.path())?);
    repair_rdb(opened, report, &mut sink)?;
    // The damaged file may be read otherwise now.
    let found = check_rdb(sink.file(), Some(now_ms))?;
    if let Some((offset, error)) = found.damage {
        return Err(format!("the new one is damaged about offset {offset}: {error}").into());
    }
    if found.keys != report.keys {
        return Err(format!("the new one has {} of {} keys", found.keys, report.keys).into());
    }
    sink.file().sync()?;
    Ok(repaired.take_place()?)
}

/// Says what a report has found, and adds to it which libraries cannot be loaded. Gives also how
/// many were not tried.
pub fn show(name: &Path, report: &mut RdbReport) -> Result<(Finding, usize), Box<dyn Error>> {
    let judged = libraries::judge(&report.libraries)?;
    let RdbReport { version, keys, items_to, end, damage, left_out, database_max, .. } = &*report;
    let name = name.display();
    match damage {
        None if judged.refused.is_empty() => {
            let bytes = end.unwrap_or(*items_to);
            tell!("{name}: RDB version {version}, {keys} keys, {bytes} bytes: all is right")?;
        }
        None => {}
        Some((offset, error)) => {
            tell!(
                "{name}: RDB version {version}, damaged about offset {offset}: {error}. {keys} \
                 keys in the first {items_to} bytes are whole."
            )?;
        }
    }
    if left_out.len() > 1 {
        tell!("{name}: it is damaged at {} places", left_out.len())?;
    }
    if *database_max >= u64::from(Config::default().databases) {
        let databases = database_max.saturating_add(1);
        tell!("{name}: it has keys in database {database_max}: it needs 'databases {databases}'")?;
    }
    if judged.left > 0 {
        tell!(
            "{name}: {} libraries of functions behind one that does not end were not tried: look \
             again after a repair",
            judged.left
        )?;
    }
    let is_whole = damage.is_none() && judged.refused.is_empty();
    for libraries::Refused { range, why } in judged.refused {
        let at = range.start;
        tell!("{name}: the library of functions at offset {at} cannot be loaded: {why}")?;
        report.leave_out(range);
    }
    Ok((if is_whole { Finding::Whole } else { Finding::Damaged }, judged.left))
}
