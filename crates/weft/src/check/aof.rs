//! `weft check aof`.

use std::error::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use persist::aof::{AofNames, FileOrder};
use persist::check::{AofReport, Later, check_aof, check_directory, files, later_than};
use persist::disk::Disk;

use super::{Finding, keeping, may_fix, parts, rdb};

/// How the name of a manifest ends.
const MANIFEST: &str = ".manifest";

/// Looks through what a manifest names, or one file, and repairs the end if `fix` says so; see
/// [`may_fix`].
pub fn check(file: &Path, fix: Option<bool>) -> Result<Finding, Box<dyn Error>> {
    if is_manifest(file) { manifest(file, fix) } else { single(file, fix) }
}

/// Prints a report. Says whether the RDB file at the beginning can be loaded, which is not repaired
/// here: the commands after it need all of its keys.
fn show(name: &Path, report: &mut AofReport) -> Result<Finding, Box<dyn Error>> {
    let mut base = Finding::Whole;
    if let Some(rdb) = &report.rdb {
        let judged = rdb::show(name, rdb)?;
        base = rdb::finding(rdb, &judged);
        // Loading ends at a library that it refuses.
        let refused_at = judged.refused.first().map(|refused| refused.range.start);
        if let Some(at) = refused_at.filter(|at| *at < report.valid_to) {
            (report.commands, report.unsealed, report.valid_to) = (0, 0, at);
        }
    }
    let AofReport { bytes, commands, unsealed, valid_to, .. } = report;
    let name = name.display();
    tell!(
        "{name}: {bytes} bytes, {commands} commands, valid up to offset {valid_to} \
         ({unsealed} bytes without checksums)"
    )?;
    if let Some(tail) = &report.tail {
        tell!(
            "{name}: at offset {} {}, as a crash leaves it; loading drops the last {} bytes",
            tail.offset,
            tail.fault,
            tail.dropped
        )?;
    }
    if let Some(damage) = &report.damage {
        tell!("{name}: {damage}; loading refuses it")?;
    }
    Ok(base)
}

/// Looks through one file, as if it were the last.
fn single(file: &Path, fix: Option<bool>) -> Result<Finding, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let mut report = check_aof(&disk.open(&name)?, FileOrder::Last)?;
    if show(&name, &mut report)? == Finding::Damaged {
        return Ok(Finding::Damaged);
    }
    if report.is_whole() {
        tell!("AOF is valid")?;
        return Ok(Finding::Whole);
    }
    if report.is_foreign() {
        tell!("{} has nothing of an AOF: it is not touched", name.display())?;
        return Ok(Finding::Damaged);
    }
    let Some(repair) = &report.repair else { return Ok(Finding::Damaged) };
    let dropped = report.bytes.saturating_sub(report.valid_to);
    if !may_fix(fix, &name, &keeping(&name, report.valid_to, dropped))? {
        return Ok(Finding::Damaged);
    }
    repair.apply(&disk.open_to_append(&name)?)?;
    tell!("Successfully truncated AOF {}", name.display())?;
    Ok(Finding::Whole)
}

fn is_manifest(file: &Path) -> bool {
    file.as_os_str().as_bytes().ends_with(MANIFEST.as_bytes())
}

/// What a manifest without a directory names.
fn names(manifest: &Path) -> AofNames {
    let name = manifest.as_os_str().as_bytes();
    let file = name[..name.len() - MANIFEST.len()].to_vec();
    AofNames { directory: PathBuf::new(), file }
}

fn manifest(file: &Path, fix: Option<bool>) -> Result<Finding, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let mut report = check_directory(&disk, &names(&name))?;
    let mut bases = Finding::Whole;
    for (file, report) in &mut report.files {
        if show(&file.path, report)? == Finding::Damaged {
            bases = Finding::Damaged;
        }
    }
    if bases == Finding::Damaged {
        tell!("A base is not cut, because commands follow on all that it has: restore a backup")?;
        return Ok(Finding::Damaged);
    }
    if report.files.iter().all(|(_, report)| report.is_whole()) {
        tell!("All AOF files and manifest are valid")?;
        return Ok(Finding::Whole);
    }
    let Some(proposed) = report.fix() else {
        tell!("What is damaged is followed by others: nothing can be cut off without losing them")?;
        return Ok(Finding::Damaged);
    };
    let what = keeping(&proposed.file.path, proposed.kept, proposed.dropped);
    if !may_fix(fix, &proposed.file.path, &what)? {
        return Ok(Finding::Damaged);
    }
    proposed.apply(&disk)?;
    tell!("Successfully truncated AOF {}", proposed.file.path.display())?;
    Ok(Finding::Whole)
}

/// Cuts off what was written later than a time.
pub fn truncate_to_timestamp(file: &Path, seconds: i64) -> Result<Finding, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    if let Some(log) = log_beside(file)? {
        // It would go on where the file ends now.
        tell!(
            "{log} is there: a server uses these files, or was killed and has left commands in it. \
             Start it if need be, and end it first"
        )?;
        return Ok(Finding::Damaged);
    }
    let files = match is_manifest(&name) {
        true => {
            let files = files(&disk, &names(&name))?.into_iter();
            files.map(|file| (file.path, file.order, file.bytes)).collect()
        }
        false => vec![(name.clone(), FileOrder::Last, 0)],
    };
    for (number, (path, place, _)) in files.iter().enumerate() {
        let shown = path.display();
        let (kept, repair) = match later_than(&disk.open(path)?, *place, seconds)? {
            Later::Nothing => continue,
            Later::From(kept, repair) => (kept, repair),
            Later::All => {
                tell!("AOF {shown} has nothing before timestamp {seconds}, aborting...")?;
                return Ok(Finding::Damaged);
            }
            Later::Damaged => {
                tell!("AOF {shown} is not valid: check it without a timestamp first")?;
                return Ok(Finding::Damaged);
            }
        };
        // A start behind another server's file begins one of its own.
        if files[number + 1..].iter().any(|(_, _, bytes)| *bytes > 0) {
            tell!(
                "Failed to truncate AOF {shown} to timestamp {seconds} to offset {kept} because it \
                 is not the last file."
            )?;
            return Ok(Finding::Damaged);
        }
        repair.apply(&disk.open_to_append(path)?)?;
        tell!("Successfully truncated AOF {shown} to timestamp {seconds}")?;
        return Ok(Finding::Whole);
    }
    tell!("Truncate nothing in AOF {} to timestamp {seconds}", name.display())?;
    Ok(Finding::Whole)
}

/// The log of a server's process beside its files, which has what these do not have yet.
fn log_beside(file: &Path) -> Result<Option<String>, Box<dyn Error>> {
    // The server knows the file by its own name, and not by that of a link.
    let path = std::fs::canonicalize(file).or_else(|_| std::path::absolute(file))?;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    for entry in std::fs::read_dir(directory)? {
        let found = entry?.file_name();
        let log = found.as_bytes();
        let log = log.strip_suffix(b".previous").unwrap_or(log);
        let stem = log.strip_suffix(b".log");
        let rest = stem.and_then(|stem| name.as_bytes().strip_prefix(stem));
        if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b".")) {
            return Ok(Some(found.to_string_lossy().into_owned()));
        }
    }
    Ok(None)
}
