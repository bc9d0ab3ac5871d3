//! `weft check`: finds damage in RDB files and append-only files, and saves what can be loaded.

use std::error::Error;
use std::io::{BufRead, stdin};
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use server::RealDisk;
use tools::print;

/// Prints a line.
macro_rules! tell {
    ($($arg:tt)*) => {
        tools::print(&format!("{}\n", format_args!($($arg)*)))
    };
}

mod aof;
mod libraries;
mod rdb;
mod replace;

/// Finds damage in RDB files and append-only files. Exits with 0 if there is none, or if --fix
/// wrote what can be loaded.
#[derive(Parser)]
#[command(name = "weft check", bin_name = "weft check")]
pub struct CheckProgram {
    #[command(subcommand)]
    file: CheckedFile,
}

#[derive(Subcommand)]
enum CheckedFile {
    /// Load an RDB file up to the first damage.
    Rdb {
        /// The file.
        file: PathBuf,
        /// Write the keys before the first damage to FILE.fixed, after a question. FILE itself is
        /// never changed.
        #[arg(long)]
        fix: bool,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Check an append-only file: all files of a manifest, or one file.
    Aof {
        /// The manifest, or a file.
        file: PathBuf,
        /// Replace damaged files by new ones with what is intact, after a question. The originals
        /// stay next to them.
        #[arg(long)]
        fix: bool,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Cut off what was written after this time, in seconds since 1970, without a question. The
        /// files must have been written with aof-timestamp-enabled.
        #[arg(long, value_name = "SECONDS", conflicts_with_all = ["fix", "yes"],
              allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..))]
        truncate_to_timestamp: Option<i64>,
    },
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// There is no damage, or it was fixed.
    Valid,
    /// There is damage.
    Damaged,
}

/// Whether damage is fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FixMode {
    Never,
    /// After a question: `--fix`.
    Ask,
    /// Without a question: `--fix --yes`.
    Always,
}

impl FixMode {
    fn of(fix: bool, yes: bool) -> Self {
        match (fix, yes) {
            (false, _) => Self::Never,
            (true, false) => Self::Ask,
            (true, true) => Self::Always,
        }
    }
}

impl CheckProgram {
    /// Checks the file of the arguments.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn check(self) -> Result<CheckOutcome, Box<dyn Error>> {
        match self.file {
            CheckedFile::Rdb { file, fix, yes } => rdb::check(&file, FixMode::of(fix, yes)),
            CheckedFile::Aof { file, truncate_to_timestamp: Some(seconds), .. } => {
                aof::truncate_to_timestamp(&file, seconds)
            }
            CheckedFile::Aof { file, fix, yes, .. } => aof::check(&file, FixMode::of(fix, yes)),
        }
    }
}

/// The directory of a file, and the file's name. Only regular files are accepted: a device may have
/// no end, or be empty.
fn parts(file: &Path) -> Result<(RealDisk, PathBuf), Box<dyn Error>> {
    if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is no regular file", file.display()).into());
    }
    let path = std::path::absolute(file)?;
    let (directory, name) = (path.parent(), path.file_name());
    let (Some(directory), Some(name)) = (directory, name) else { return Err("no file".into()) };
    Ok((RealDisk::new(directory), PathBuf::from(name)))
}

/// Prints what a fix will do, asks if the mode requires it, and returns whether to fix the file.
fn may_fix(mode: FixMode, name: &Path, plan: &str) -> Result<bool, Box<dyn Error>> {
    if mode == FixMode::Never {
        tell!("{} is not valid. Use the --fix option to try fixing it.", name.display())?;
        return Ok(false);
    }
    tell!("This will {plan}")?;
    if mode == FixMode::Always {
        return Ok(true);
    }
    print("Continue? [y/N]: ")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("y"))
}
