//! `weft check`: looks through files without loading them, and repairs the end of an append-only
//! file or an RDB file.

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

/// Looks through RDB files and append-only files.
#[derive(Parser)]
#[command(name = "weft check", bin_name = "weft check")]
pub struct Check {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// An RDB file, which is loaded up to the first damage.
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
    /// An append-only file: its manifest, or one of its files.
    Aof {
        /// The manifest, or a file.
        file: PathBuf,
        /// Cut off what is damaged at the end, after a question.
        #[arg(long)]
        fix: bool,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Cut off what was written later than this time, in seconds since 1970; the file tells
        /// times where aof-timestamp-enabled is on. There is no question.
        #[arg(long, value_name = "SECONDS", conflicts_with_all = ["fix", "yes"],
              allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..))]
        truncate_to_timestamp: Option<i64>,
    },
}

/// What a check has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Everything is right, or is by now.
    Whole,
    /// Something is wrong.
    Damaged,
}

impl Check {
    /// Looks through what the arguments name.
    ///
    /// # Errors
    /// When that cannot be read or written.
    pub fn run(self) -> Result<Finding, Box<dyn Error>> {
        match self.what {
            What::Rdb { file, fix, yes } => rdb::check(&file, fix.then_some(yes)),
            What::Aof { file, truncate_to_timestamp: Some(seconds), .. } => {
                aof::truncate_to_timestamp(&file, seconds)
            }
            What::Aof { file, fix, yes, .. } => aof::check(&file, fix.then_some(yes)),
        }
    }
}

/// The directory of a file, and the file's name. What is no regular file, such as a device, may
/// have no end, or nothing to say.
fn parts(file: &Path) -> Result<(RealDisk, PathBuf), Box<dyn Error>> {
    if std::fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        return Err(format!("{} is no regular file", file.display()).into());
    }
    let path = std::path::absolute(file)?;
    let (directory, name) = (path.parent(), path.file_name());
    let (Some(directory), Some(name)) = (directory, name) else { return Err("no file".into()) };
    Ok((RealDisk::new(directory), PathBuf::from(name)))
}

/// What a repair does that cuts the end off a file.
fn keeping(name: &Path, kept: u64, dropped: u64) -> String {
    let name = name.display();
    format!("keep the first {kept} bytes of {name}: the last {dropped} are lost")
}

/// Whether a file may be repaired, which will do `what`: `fix` says whether that was asked for, and
/// whether without a question.
fn may_fix(fix: Option<bool>, name: &Path, what: &str) -> Result<bool, Box<dyn Error>> {
    let Some(without_question) = fix else {
        tell!("{} is not valid. Use the --fix option to try fixing it.", name.display())?;
        return Ok(false);
    };
    tell!("This will {what}")?;
    if without_question {
        return Ok(true);
    }
    print("Continue? [y/N]: ")?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    Ok(answer.trim().eq_ignore_ascii_case("y"))
}
