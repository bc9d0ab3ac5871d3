//! Rules about lines of text, of whatever language.
//!
//! `concat!` makes the patterns, so that this file does not break its own rules. Lock files, which
//! package managers write, are left out.

use super::Finding;
use super::tree::{File, Tree};

/// The widest line, in characters.
const COLUMNS_MAX: usize = 100;

/// Kinds of file whose lines are code. Prose and tables of documents may be wider.
const CODE_EXTENSIONS: &[&str] = &["rs", "toml", "sh", "py", "js", "mjs", "ts", "go", "java"];

/// Words that promise work instead of doing it.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// Folders that exist on one machine only.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/ro", "ot/")];

/// Every Rust file opens with a header that describes it.
pub fn header(tree: &Tree) -> Vec<Finding> {
    let opens = |file: &File| file.text.lines().next().is_some_and(|line| line.starts_with("//! "));
    let bare = tree.rust().filter(|(file, _)| !opens(file));
    let message = "the first line is not a `//!` header that says what the file is";
    bare.map(|(file, _)| Finding::new(&file.path, 1, message)).collect()
}

/// No line of code is wider than the limit. A line that only holds a link may be.
pub fn columns(tree: &Tree) -> Vec<Finding> {
    let is_code = |file: &File| {
        let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension);
        CODE_EXTENSIONS.contains(&extension) || file.text.starts_with("#!")
    };
    each_line(tree, |file, line| {
        let width = line.chars().count();
        let is_link = line.contains("://") && line.split_whitespace().count() <= 2;
        let wide = width > COLUMNS_MAX && is_code(file) && !file.is_generated() && !is_link;
        wide.then(|| format!("{width} columns, {COLUMNS_MAX} at most"))
    })
}

/// No line ends in blanks.
pub fn whitespace(tree: &Tree) -> Vec<Finding> {
    each_line(tree, |_, line| {
        line.ends_with([' ', '\t']).then(|| "blanks at the end of the line".to_owned())
    })
}

/// No text promises later work: a feature that does not work is absent, and a plan is an issue.
pub fn unfinished(tree: &Tree) -> Vec<Finding> {
    each_line(tree, |_, line| {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        let word = words.find(|word| UNFINISHED.contains(word))?;
        Some(format!("{word}: do it, or open an issue"))
    })
}

/// No text depends on the machine it was written on.
pub fn machine_paths(tree: &Tree) -> Vec<Finding> {
    each_line(tree, |_, line| {
        let found = MACHINE_FOLDERS.iter().find(|folder| has_absolute(line, folder))?;
        Some(format!("a path under {found} exists on one machine only"))
    })
}

/// Whether the folder starts a path, and is not the middle of a longer one or of an address.
fn has_absolute(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}' | '*'))
    })
}

fn each_line(tree: &Tree, judge: impl Fn(&File, &str) -> Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !file.is_lock()) {
        for (number, line) in file.lines() {
            if let Some(message) = judge(file, line) {
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}
