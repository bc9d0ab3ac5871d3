//! Where unsafe code is allowed.
//!
//! The compiler enforces `forbid` where it is written, and these checks require that it is written.
//! Clippy requires the reason of each unsafe block and impl (`undocumented_unsafe_blocks`).

use super::Finding;
use super::tree::{File, Tree};

/// The crates that may hold unsafe code.
const HOMES: &[&str] = &["ds", "sys"];

/// No unsafe code outside its home, tests included.
pub fn home(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !is_home(file)) {
        for found in rust.paths.iter().filter(|path| path.names == ["unsafe"]) {
            let message = format!("unsafe code lives in {}", HOMES.join(" and "));
            findings.push(Finding::new(&file.path, found.line, message));
        }
    }
    findings
}

/// Every other crate forbids unsafe code at its root.
pub fn forbidden(tree: &Tree) -> Vec<Finding> {
    let roots = tree.rust().filter(|(file, _)| file.is_crate_root() && !is_home(file));
    let silent = roots.filter(|(_, rust)| !rust.forbids_unsafe);
    let message = "a crate root without `#![forbid(unsafe_code)]`";
    silent.map(|(file, _)| Finding::new(&file.path, 1, message)).collect()
}

fn is_home(file: &File) -> bool {
    file.crate_name().is_some_and(|name| HOMES.contains(&name))
}
