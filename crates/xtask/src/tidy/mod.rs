//! `cargo xtask tidy`: the rules of STYLE.md that a program can check.
//!
//! Each rule is a `Check`: a name and a function from the tree to its findings. To add one, write
//! the function, add its row to `CHECKS`, and plant it in `cases.rs`, whose test refuses a check
//! without an example that passes and one that fails. A check reads only the tree, and repeats no
//! rule of rustfmt or clippy. Rules that read the rows of the commands are in `xtask-product`, as
//! `cargo xtask rows`.

use std::path::Path;

use crate::Failure;

mod calls;
mod english;
mod graph;
mod lengths;
mod manifests;
mod modules;
mod names;
mod order;
mod paths;
mod prose;
mod ratchet;
mod rust;
mod safety;
mod signatures;
mod text;
mod tokens;
mod tree;

#[cfg(test)]
mod cases;

pub use ratchet::CountArea;
pub use tree::{File, Tree};

use ratchet::Ratchet;

/// One rule.
pub struct Check {
    /// Printed with each finding.
    pub name: &'static str,
    /// Finds the places that break the rule.
    pub run: fn(&Tree) -> Vec<Finding>,
    /// The area in which findings are counted, if the ratchet may allow some.
    pub area: Option<CountArea>,
}

/// One place that breaks a rule.
#[derive(Clone)]
pub struct Finding {
    /// From the workspace root.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// The mistake, and the remedy where that is not obvious.
    pub message: String,
    /// The name it is about, for a rule with [`CountArea::Subject`].
    pub subject: String,
}

/// Every rule.
const CHECKS: &[Check] = &[
    Check::new("header", text::header),
    Check::new("columns", text::columns),
    Check::new("whitespace", text::whitespace),
    Check::new("unfinished", text::unfinished),
    Check::new("machine-path", text::machine_paths),
    Check::new("path", paths::named).counted(CountArea::Crate),
    Check::new("length", lengths::lengths),
    Check::new("call", calls::calls),
    Check::new("print", calls::prints),
    Check::new("unsafe-home", safety::home),
    Check::new("unsafe-forbidden", safety::forbidden),
    Check::new("layer", manifests::layers),
    Check::new("dependency-reason", manifests::reasons),
    Check::new("name", names::banned),
    Check::new("getter", names::getters),
    Check::new("type-name", names::types).counted(CountArea::Subject),
    Check::new("step-name", signatures::steps).counted(CountArea::Workspace),
    Check::new("tuple-parameter", signatures::tuples).counted(CountArea::Crate),
    Check::new("english", english::english).counted(CountArea::Crate),
    Check::new("order-list", order::listed),
    Check::new("order", order::upward).counted(CountArea::Crate),
    Check::new("cycle", order::cycles).counted(CountArea::Crate),
];

/// The options of the command.
#[derive(clap::Args, Default)]
pub struct Options {
    /// Lower the numbers of the ratchet to today's; never raises or adds one
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
        bless(root, &tree)?;
        tree = Tree::read(root)?;
    }
    report("tidy", &tree, CHECKS)
}

/// Lowers the numbers of the ratchet to today's.
fn bless(root: &Path, tree: &Tree) -> Result<(), Failure> {
    let mut ratchet = Ratchet::read(tree)?;
    lengths::lower(&mut ratchet, tree);
    for check in CHECKS {
        if let Some(area) = check.area {
            ratchet.lower(check.name, &ratchet::count(&(check.run)(tree), area));
        }
    }
    ratchet.write(root, tree)
}

/// Runs the checks over the tree, and prints a line for each finding.
///
/// # Errors
/// Fails when anything was found.
pub fn report(command: &str, tree: &Tree, checks: &[Check]) -> Result<(), Failure> {
    let mut count = 0;
    for check in checks {
        for Finding { path, line, message, .. } in ratchet::judge(check, tree) {
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

impl Check {
    /// A rule without exceptions.
    pub const fn new(name: &'static str, run: fn(&Tree) -> Vec<Finding>) -> Self {
        Self { name, run, area: None }
    }

    /// The rule, with as many findings in each area as the ratchet records.
    const fn counted(self, area: CountArea) -> Self {
        Self { area: Some(area), ..self }
    }
}

impl Finding {
    /// A finding at this place.
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into(), subject: String::new() }
    }

    /// The finding as one about this name.
    fn about(self, subject: &str) -> Self {
        Self { subject: subject.to_owned(), ..self }
    }
}
