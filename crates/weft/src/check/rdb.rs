//! `weft check rdb`.
//!
//! A fix writes a new file next to the damaged one, which is never changed. The new file gets its
//! name after it was written and checked, and replaces no other file.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::path::{Display, Path, PathBuf};

use node::config::Config;
use persist::ModuleId;
use persist::check::{KeyFound, ModuleFound, RdbReport, check_rdb, write_loaded};
use persist::disk::{Disk, DiskFile, FileSink};
use server::{RealDisk, RealFile};

use super::libraries::{self, Judged};
use super::replace::copy_access;
use super::{CheckOutcome, FixMode, may_fix, parts};

/// How the name of a new file ends.
const FIXED: &str = ".fixed";
/// How many bytes of a key's name are shown.
const NAME_BYTES_MAX: usize = 200;

/// Checks a file, and writes a new one if it is damaged and the mode allows it.
pub fn check(file: &Path, mode: FixMode) -> Result<CheckOutcome, Box<dyn Error>> {
    let (disk, name) = parts(file)?;
    let opened = disk.open(&name)?;
    let report = check_rdb(&opened)?;
    let judged = show(&name, &report)?;
    let len = opened.len()?;
    if is_whole(&report, &judged) {
        if let Some(end) = report.end.filter(|end| *end < len) {
            tell!("{}: loading ignores the {} bytes after the end", name.display(), len - end)?;
        }
        return Ok(outcome(&report, &judged));
    }
    if report.version == 0 {
        return Ok(CheckOutcome::Damaged);
    }
    let new = with_suffix(&name, FIXED);
    let mut plan = format!("write {} with {} keys", new.display(), report.keys);
    if !judged.refused.is_empty() {
        plan += " and without the libraries that cannot be loaded";
    }
    if !may_fix(mode, &name, &plan)? {
        return Ok(CheckOutcome::Damaged);
    }
    write_fixed(file, &opened, &report, &judged).map_err(|why| {
        format!("cannot write {}: {why}; {} is unchanged", new.display(), name.display())
    })?;
    let (new, name) = (new.display(), name.display());
    tell!("Wrote {new} with {} keys; {name} is unchanged", report.keys)?;
    if judged.untried > 0 {
        tell!("Check {new} as well: it has libraries that were not tried")?;
        return Ok(CheckOutcome::Damaged);
    }
    if !report.modules.is_empty() {
        tell!("{new} still has the data of modules")?;
        return Ok(CheckOutcome::Damaged);
    }
    Ok(CheckOutcome::Valid)
}

/// A path with more at its end.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Writes what was loaded of a file to a new file next to it.
fn write_fixed(
    damaged: &Path,
    opened: &RealFile,
    report: &RdbReport,
    judged: &Judged,
) -> Result<(), Box<dyn Error>> {
    let new = with_suffix(&std::path::absolute(damaged)?, FIXED);
    if new.symlink_metadata().is_ok() {
        return Err("a file of this name exists: move it away".into());
    }
    let folder = new.parent().unwrap_or(Path::new("/"));
    let prefix = new.file_name().unwrap_or(OsStr::new(FIXED));
    let temporary = tempfile::Builder::new().prefix(prefix).tempfile_in(folder)?;
    let mut sink = FileSink::new(RealDisk::new(folder).open_to_append(temporary.path())?);
    let left_out: Vec<Range<u64>> =
        judged.refused.iter().map(|refused| refused.range.clone()).collect();
    write_loaded(opened, report, &left_out, &mut sink)?;
    // Another process may have changed the damaged file since it was loaded.
    let found = check_rdb(sink.file())?;
    if let Some((_, error)) = found.damage {
        return Err(format!("it is damaged at offset {}: {error}", found.items_to).into());
    }
    if found.keys != report.keys {
        return Err(format!("it has {} of {} keys", found.keys, report.keys).into());
    }
    copy_access(damaged, temporary.as_file())?;
    sink.file().sync()?;
    temporary.persist_noclobber(&new)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

/// Whether a file has no damage, and its libraries can be loaded.
pub fn is_whole(report: &RdbReport, judged: &Judged) -> bool {
    report.damage.is_none() && judged.refused.is_empty()
}

/// Whether a server loads a file.
pub fn outcome(report: &RdbReport, judged: &Judged) -> CheckOutcome {
    match is_whole(report, judged) && report.modules.is_empty() {
        true => CheckOutcome::Valid,
        false => CheckOutcome::Damaged,
    }
}

fn show_module(
    name: &Display<'_>,
    module: &ModuleId,
    found: &ModuleFound,
) -> Result<(), Box<dyn Error>> {
    let ModuleFound { keys, offset, first_key } = found;
    tell!("{name}: at offset {offset} begin data of the module {module}, with {keys} keys")?;
    if let Some(KeyFound { name: key, database, .. }) = first_key {
        let key = key[..key.len().min(NAME_BYTES_MAX)].escape_ascii();
        tell!("{name}: the first of these keys is '{key}' in database {database}")?;
    }
    tell!("{name}: a server loads it with 'rdb-load-unknown skip', and without these data")?;
    Ok(())
}

/// Prints a report, and loads its libraries.
pub fn show(name: &Path, report: &RdbReport) -> Result<Judged, Box<dyn Error>> {
    let judged = libraries::judge(&report.libraries)?;
    let RdbReport { version, keys, last_key, items_to, end, damage, database_max, .. } = report;
    let name = name.display();
    if let Some((found_at, error)) = damage {
        tell!(
            "{name}: RDB version {version}, damaged at offset {items_to}: {error} (found at \
             offset {found_at})"
        )?;
        match last_key {
            Some(KeyFound { name: key, database, offset }) => tell!(
                "{name}: keys before it: {keys}; the last is '{}' in database {database}, at \
                 offset {offset}",
                key[..key.len().min(NAME_BYTES_MAX)].escape_ascii()
            )?,
            None => tell!("{name}: no key before it")?,
        }
    } else if judged.refused.is_empty() {
        let bytes = end.unwrap_or(*items_to);
        let result = if report.modules.is_empty() { "all is right" } else { "no damage" };
        tell!("{name}: RDB version {version}, {keys} keys, {bytes} bytes: {result}")?;
    }
    report.modules.iter().try_for_each(|(module, found)| show_module(&name, module, found))?;
    if *database_max >= u64::from(Config::default().databases) {
        let databases = database_max.saturating_add(1);
        tell!("{name}: it has keys in database {database_max}: it needs 'databases {databases}'")?;
    }
    if judged.untried > 0 {
        tell!(
            "{name}: {} libraries of functions after one that does not end were not tried",
            judged.untried
        )?;
    }
    for libraries::Refused { range, why } in &judged.refused {
        let at = range.start;
        tell!("{name}: the library of functions at offset {at} cannot be loaded: {why}")?;
    }
    Ok(judged)
}
