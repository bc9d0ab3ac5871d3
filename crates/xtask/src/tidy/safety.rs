//! Where unsafe code is allowed, and with what reason.
//!
//! The compiler enforces `forbid` where it is written. These checks require that it is written, and
//! that each promise to the compiler has its reason above it. Only a reader can judge the reason.

use super::Finding;
use super::tokens::UnsafeKind;
use super::tree::{File, Tree};

/// The crates that may hold unsafe code.
const HOMES: &[&str] = &["ds", "sys"];

/// No unsafe code outside its home, tests included.
pub fn home(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !is_home(file)) {
        for found in &rust.unsafes {
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

/// Every unsafe block and impl has its reason in a `SAFETY` comment above it.
pub fn reason(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, rust) in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        for found in rust.unsafes.iter().filter(|found| found.kind == UnsafeKind::Promise) {
            if !has_reason(&lines, found.line) {
                let message = "no `// SAFETY:` comment above says why this is sound";
                findings.push(Finding::new(&file.path, found.line, message));
            }
        }
    }
    findings
}

fn is_home(file: &File) -> bool {
    file.crate_name().is_some_and(|name| HOMES.contains(&name))
}

/// Goes up from the line, over the start of its statement and over attributes, to the comment.
fn has_reason(lines: &[&str], line: usize) -> bool {
    let mut above = lines[..line - 1].iter().rev().map(|line| line.trim()).peekable();
    let is_start = |line: &str| line.is_empty() || line.ends_with(['{', '}', ';', ',']);
    while above.next_if(|line| !line.starts_with("//") && !is_start(line)).is_some() {}
    above.take_while(|line| line.starts_with("//")).any(|line| line.starts_with("// SAFETY: "))
}
