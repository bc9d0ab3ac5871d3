//! `weft check aof`.

use std::error::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use persist::aof::{AofNames, FileOrder};
use persist::check::{AofReport, Later, check_aof, check_directory, files, later_than};
use persist::disk::Disk;

use super::{CheckOutcome, FixMode, may_fix, parts, rdb};

/// The end of the name of a manifest.
const MANIFEST: &str = ".manifest";

/// Checks the files of a manifest, or one file, and cuts off a damaged end if the mode allows it.
pub fn check(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    if is_manifest(file) { check_manifest(file, mode) } else { check_single(file, mode) }
}

/// Describes a fix that cuts the end off a file.
fn plan(name: &Path, kept: u64, dropped: u64) -> String {
    let name = name.display();
    format!("keep the first {kept} bytes of {name}: the last {dropped} are lost")
}

/// Prints a report. Says whether the RDB file at the beginning can be loaded, which is not repaired
/// here: the commands after it need all of its keys.
fn show(name: &Path, report: &mut AofReport) -> Result<CheckOutcome, Box<dyn Error>> {
    let mut base = CheckOutcome::Valid;
    if let Some(rdb) = &report.rdb {
        let judged = rdb::show(name, rdb)?;
        base = rdb::outcome(rdb, &judged);
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

/// Checks one file, as if it were the last.
fn check_single(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let mut report = check_aof(&disk.open(&name)?, FileOrder::Last)?;
    if show(&name, &mut report)? == CheckOutcome::Damaged {
        return Ok(CheckOutcome::Damaged);
    }
    if report.is_whole() {
        tell!("AOF is valid")?;
        return Ok(CheckOutcome::Valid);
    }
    if report.is_foreign() {
        tell!("{} is no AOF: it is not changed", name.display())?;
        return Ok(CheckOutcome::Damaged);
    }
    let Some(repair) = &report.repair else { return Ok(CheckOutcome::Damaged) };
    let dropped = report.bytes.saturating_sub(report.valid_to);
    if !may_fix(mode, &name, &plan(&name, report.valid_to, dropped))? {
        return Ok(CheckOutcome::Damaged);
    }
    repair.apply(&disk.open_to_append(&name)?)?;
    tell!("Successfully truncated AOF {}", name.display())?;
    Ok(CheckOutcome::Valid)
}

fn is_manifest(file: &Path) -> bool {
    file.as_os_str().as_bytes().ends_with(MANIFEST.as_bytes())
}

/// The names of the files of a manifest, which is in the working directory of the disk.
fn names(manifest: &Path) -> AofNames {
    let name = manifest.as_os_str().as_bytes();
    let file = name[..name.len() - MANIFEST.len()].to_vec();
    AofNames { directory: PathBuf::new(), file }
}

fn check_manifest(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let mut report = check_directory(&disk, &names(&name))?;
    let mut bases = CheckOutcome::Valid;
    for (file, report) in &mut report.files {
        if show(&file.path, report)? == CheckOutcome::Damaged {
            bases = CheckOutcome::Damaged;
        }
    }
    if bases == CheckOutcome::Damaged {
        tell!("A base is not cut, because later commands need all of its keys: restore a backup")?;
        return Ok(CheckOutcome::Damaged);
    }
    if report.files.iter().all(|(_, report)| report.is_whole()) {
        tell!("All AOF files and manifest are valid")?;
        return Ok(CheckOutcome::Valid);
    }
    let Some(proposed) = report.fix() else {
        tell!("Files follow the damaged one: nothing can be cut off without losing them")?;
        return Ok(CheckOutcome::Damaged);
    };
    let plan = plan(&proposed.file.path, proposed.kept, proposed.dropped);
    if !may_fix(mode, &proposed.file.path, &plan)? {
        return Ok(CheckOutcome::Damaged);
    }
    proposed.apply(&disk)?;
    tell!("Successfully truncated AOF {}", proposed.file.path.display())?;
    Ok(CheckOutcome::Valid)
}

/// Cuts off the commands that were written after a time.
pub fn truncate_to_timestamp(file: &Path, seconds: i64) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    if let Some(log) = log_beside(file)? {
        // A server would continue the log where the file ends now.
        tell!(
            "{log} exists: a server uses these files, or was killed and left commands in it. Start \
             the server if necessary, and shut it down first"
        )?;
        return Ok(CheckOutcome::Damaged);
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
                return Ok(CheckOutcome::Damaged);
            }
            Later::Damaged => {
                tell!("AOF {shown} is not valid: check it without a timestamp first")?;
                return Ok(CheckOutcome::Damaged);
            }
        };
        // After the file of another server, a start of Weft begins a new one, which may be empty.
        if files[number + 1..].iter().any(|(_, _, bytes)| *bytes > 0) {
            tell!(
                "Failed to truncate AOF {shown} to timestamp {seconds} to offset {kept} because it \
                 is not the last file."
            )?;
            return Ok(CheckOutcome::Damaged);
        }
        repair.apply(&disk.open_to_append(path)?)?;
        tell!("Successfully truncated AOF {shown} to timestamp {seconds}")?;
        return Ok(CheckOutcome::Valid);
    }
    tell!("Truncate nothing in AOF {} to timestamp {seconds}", name.display())?;
    Ok(CheckOutcome::Valid)
}

/// The log of a server next to its files, with commands that these do not have yet.
fn log_beside(file: &Path) -> Result<Option<String>, Box<dyn Error>> {
    // The server uses the name of the file, and not that of a link.
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
