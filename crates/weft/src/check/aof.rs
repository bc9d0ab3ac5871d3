//! `weft check aof`.

use std::error::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use persist::ByteSink;
use persist::aof::{AofFix, AofNames, FileOrder};
use persist::check::{
    AofReport, Later, check_aof, check_directory, check_listed, entry_of, files, later_than,
    reopened,
};
use persist::disk::Disk;
use server::{RealDisk, RealFile};

use super::replace::{HeldLock, hold, replace, stem};
use super::{CheckOutcome, FixMode, may_fix, parts, rdb};

/// The end of the name of a manifest.
const MANIFEST: &str = ".manifest";

/// Checks the files of a manifest, or one file, and cuts off a damaged end if the mode allows it.
pub fn check(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    if is_manifest(file) { check_manifest(file, mode) } else { check_single(file, mode) }
}

/// Describes a fix.
fn plan(name: &Path, bytes: u64, fix: &AofFix) -> String {
    let (name, lost) = (name.display(), fix.lost_bytes(bytes));
    let places = match fix.lost.len() {
        0 => String::new(),
        1 => ", also between commands that are kept".to_owned(),
        places => format!(", also in {places} places between commands that are kept"),
    };
    format!(
        "write a new {name} with {} commands, and keep the original next to it: {lost} of {bytes} \
         bytes are lost{places}",
        fix.commands
    )
}

/// Replaces a file by its fixed one. It no longer ends where the manifest says that it was closed.
fn apply(
    path: &Path,
    file: &RealFile,
    order: FileOrder,
    fix: &AofFix,
) -> Result<(), Box<dyn Error>> {
    let kept = replace(path, |new| {
        fix.write(file, new)?;
        match check_aof(new.file(), order)?.is_whole() {
            true => Ok(()),
            false => Err("the new file is not whole: has the damaged one changed?".into()),
        }
    });
    let kept = kept.map_err(|why| format!("cannot replace {}: {why}", path.display()))?;
    tell!("The original is kept as {}", kept.display())?;
    let (disk, name) = parts(path)?;
    let Some(names) = listed(&name) else { return Ok(()) };
    let text = reopened(&disk, &names, name.as_os_str().as_bytes()).ok().flatten();
    let Some(text) = text else { return Ok(()) };
    let manifest = path.with_file_name(names.path(&names.manifest()));
    let kept = replace(&manifest, |new| Ok(new.put(&text)?));
    let kept = kept.map_err(|why| format!("cannot replace {}: {why}", manifest.display()))?;
    tell!("The original manifest is kept as {}", kept.display())?;
    Ok(())
}

/// Says that a fix must wait for a server.
fn await_server() -> Result<CheckOutcome, Box<dyn Error>> {
    tell!("A server uses these files: shut it down first")?;
    Ok(CheckOutcome::Damaged)
}

/// Takes the lock for a mode that may replace files: from before the check, so that the files are
/// those of the report, to the end. Without it, a server has the lock.
fn hold_for(mode: FixMode, file: &Path) -> Result<Option<HeldLock>, Box<dyn Error>> {
    if mode == FixMode::Never { Ok(None) } else { hold(file) }
}

/// The RDB file that a file may begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum BaseState {
    Whole,
    /// A server loads it only without some data.
    Partial,
    /// It is not fixed here: the commands after it need all of its keys.
    Damaged,
}

impl BaseState {
    /// The outcome when the commands after it are valid.
    fn outcome(self) -> CheckOutcome {
        if self == Self::Whole { CheckOutcome::Valid } else { CheckOutcome::Damaged }
    }
}

/// Prints a report. Says what is wrong with the RDB file at the beginning.
fn show(name: &Path, report: &mut AofReport) -> Result<BaseState, Box<dyn Error>> {
    let mut base = BaseState::Whole;
    if let Some(rdb) = &report.rdb {
        let judged = rdb::show(name, rdb)?;
        base = match rdb::is_whole(rdb, &judged) {
            false => BaseState::Damaged,
            true if rdb.modules.is_empty() => BaseState::Whole,
            true => BaseState::Partial,
        };
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

/// Checks a file. The manifest next to it may say where it was closed.
fn check_in_folder(disk: &RealDisk, name: &Path) -> Result<AofReport, Box<dyn Error>> {
    let entry = |names| entry_of(disk, &names, name.as_os_str().as_bytes()).ok().flatten();
    let entry = listed(name).and_then(entry);
    Ok(check_listed(&disk.open(name)?, FileOrder::Last, entry.as_ref())?)
}

/// Checks one file, as if it were the last.
fn check_single(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let lock = hold_for(mode, file)?;
    let mut report = check_in_folder(&disk, &name)?;
    let base = show(&name, &mut report)?;
    if base == BaseState::Damaged {
        return Ok(CheckOutcome::Damaged);
    }
    if report.is_whole() {
        tell!("AOF is valid")?;
        return Ok(base.outcome());
    }
    if report.is_foreign() {
        tell!("{} is no AOF: it is not changed", name.display())?;
        return Ok(CheckOutcome::Damaged);
    }
    let Some(fix) = &report.fix else { return Ok(CheckOutcome::Damaged) };
    if mode != FixMode::Never && lock.is_none() {
        return await_server();
    }
    if !may_fix(mode, &name, &plan(&name, report.bytes, fix))? {
        return Ok(CheckOutcome::Damaged);
    }
    apply(file, &disk.open(&name)?, FileOrder::Last, fix)?;
    tell!("Successfully fixed AOF {}", name.display())?;
    Ok(base.outcome())
}

fn is_manifest(file: &Path) -> bool {
    file.as_os_str().as_bytes().ends_with(MANIFEST.as_bytes())
}

/// The names of the append-only file that a file belongs to, by its name.
fn listed(file: &Path) -> Option<AofNames> {
    let file = stem(file.as_os_str().as_bytes())?.to_vec();
    Some(AofNames { directory: PathBuf::new(), file })
}

/// The names of the files of a manifest, which is in the working directory of the disk.
fn names(manifest: &Path) -> AofNames {
    let name = manifest.as_os_str().as_bytes();
    let file = name[..name.len() - MANIFEST.len()].to_vec();
    AofNames { directory: PathBuf::new(), file }
}

fn check_manifest(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let lock = hold_for(mode, file)?;
    let mut report = check_directory(&disk, &names(&name))?;
    let mut base = BaseState::Whole;
    for (file, report) in &mut report.files {
        base = base.max(show(&file.path, report)?);
    }
    if base == BaseState::Damaged {
        tell!(
            "The RDB file of a base is not fixed here, because later commands need all of its \
             keys: restore a backup"
        )?;
        return Ok(CheckOutcome::Damaged);
    }
    if report.files.iter().all(|(_, report)| report.is_whole()) {
        tell!("All AOF files and manifest are valid")?;
        return Ok(base.outcome());
    }
    let Some(fixes) = report.fixes() else { return Ok(CheckOutcome::Damaged) };
    if mode != FixMode::Never && lock.is_none() {
        return await_server();
    }
    let path = |name: &Path| file.with_file_name(name);
    let plans = fixes.iter().map(|(file, fix)| plan(&file.path, file.bytes, fix));
    let plans = plans.collect::<Vec<_>>().join("\nand ");
    if !may_fix(mode, &name, &plans)? {
        return Ok(CheckOutcome::Damaged);
    }
    for (damaged, fix) in fixes {
        apply(&path(&damaged.path), &damaged.file, damaged.order, fix)?;
        tell!("Successfully fixed AOF {}", damaged.path.display())?;
    }
    Ok(base.outcome())
}

/// Cuts off the commands that were written after a time.
pub fn truncate_to_timestamp(file: &Path, seconds: i64) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let Some(_lock) = hold(file)? else { return await_server() };
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
        let opened = disk.open(path)?;
        let (kept, fix) = match later_than(&opened, *place, seconds)? {
            Later::Nothing => continue,
            Later::From(kept, fix) => (kept, fix),
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
        apply(&file.with_file_name(path), &opened, *place, &fix)?;
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
