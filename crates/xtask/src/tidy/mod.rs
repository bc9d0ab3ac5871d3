//! `cargo xtask tidy`: the rules of STYLE.md that a program can check.
//!
//! Each rule is a `Check`: a name and a function from the tree to its findings. To add one, write
//! the function, add its row to `CHECKS`, and plant it in `cases.rs`, whose test refuses a check
//! without an example that passes and one that fails. A check reads nothing but the tree. What
//! rustfmt and clippy already refuse has no check here. Rules that read the rows of the commands
//! are in `xtask-product`, as `cargo xtask rows`.

use std::path::Path;

use crate::Failure;

mod calls;
mod lengths;
mod manifests;
mod names;
mod rust;
mod safety;
mod text;
mod tokens;
mod tree;

#[cfg(test)]
mod cases;

pub use tree::{File, Tree};

/// One rule.
pub struct Check {
    /// Printed with each finding.
    pub name: &'static str,
    /// What breaks the rule.
    pub run: fn(&Tree) -> Vec<Finding>,
}

/// One place that breaks a rule.
pub struct Finding {
    /// From the workspace root.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to do where that is not plain.
    pub message: String,
}

/// Every rule.
const CHECKS: &[Check] = &[
    Check { name: "header", run: text::header },
    Check { name: "columns", run: text::columns },
    Check { name: "whitespace", run: text::whitespace },
    Check { name: "unfinished", run: text::unfinished },
    Check { name: "machine-path", run: text::machine_paths },
    Check { name: "length", run: lengths::lengths },
    Check { name: "call", run: calls::calls },
    Check { name: "print", run: calls::prints },
    Check { name: "unsafe-home", run: safety::home },
    Check { name: "unsafe-forbidden", run: safety::forbidden },
    Check { name: "unsafe-reason", run: safety::reason },
    Check { name: "layer", run: manifests::layers },
    Check { name: "dependency-reason", run: manifests::reasons },
    Check { name: "name", run: names::banned },
    Check { name: "getter", run: names::getters },
];

/// How to run tidy.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Lower the recorded sizes of what is too long to today's; never raises or adds one
    #[arg(long)]
    bless: bool,
}

/// Checks the tree, and prints a line for each finding.
///
/// # Errors
/// Fails when anything was found, or the tree cannot be read.
pub fn run(root: &Path, options: &Options) -> Result<(), Failure> {
    let mut tree = Tree::read(root)?;
    if options.bless {
        lengths::bless(root, &tree)?;
        tree = Tree::read(root)?;
    }
    report("tidy", &tree, CHECKS)
}

/// Runs the checks over the tree, and prints a line for each finding.
///
/// # Errors
/// Fails when anything was found.
pub fn report(command: &str, tree: &Tree, checks: &[Check]) -> Result<(), Failure> {
    let mut count = 0;
    for check in checks {
        for Finding { path, line, message } in (check.run)(tree) {
            println!("{path}:{line}: [{}] {message}", check.name);
            count += 1;
        }
    }
    if count > 0 {
        return Err(format!("{command}: findings: {count}"));
    }
    println!("{command}: {} checks over {} files, no findings", checks.len(), tree.files.len());
    Ok(())
}

impl Finding {
    /// A finding at this place.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}
