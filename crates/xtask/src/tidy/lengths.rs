//! The lengths of files and functions, as a ratchet.
//!
//! Files and functions above the limit are in `tidy-ratchet.toml` with their lengths. A greater
//! length is a finding, and so is a smaller one, until `cargo xtask tidy --bless` lowers the entry.

use std::collections::BTreeMap;

use super::Finding;
use super::ratchet::{self, Ratchet};
use super::tree::Tree;

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 600;

/// The longest function, in lines from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// The section of the record.
const SECTION: &str = "lines";

/// Something that has a length.
struct Sized {
    path: String,
    line: usize,
    /// `PATH` of a file or `PATH::FUNCTION`; the key of its entry.
    key: String,
    lines: usize,
    limit: usize,
}

/// Nothing is longer than its limit, or than what is recorded for it.
pub fn lengths(tree: &Tree) -> Vec<Finding> {
    let ratchet = match Ratchet::read(tree) {
        Ok(ratchet) => ratchet,
        Err(reason) => return vec![Finding::new(ratchet::PATH, 1, reason)],
    };
    let recorded = ratchet.0.get(SECTION).cloned().unwrap_or_default();
    let sizes = measure(tree);
    let mut findings: Vec<Finding> = sizes
        .values()
        .filter_map(|sized| judge(sized, recorded.get(&sized.key).copied()))
        .collect();
    let text = tree.file(ratchet::PATH).map_or("", |file| &file.text);
    for key in recorded.keys().filter(|key| !sizes.contains_key(*key)) {
        let line = text.lines().position(|line| line.contains(key.as_str())).map_or(1, |at| at + 1);
        let message = format!("{key} is gone: run `cargo xtask tidy --bless`");
        findings.push(Finding::new(ratchet::PATH, line, message));
    }
    findings
}

/// Lowers the recorded lengths to today's, and drops those that are no longer needed.
pub fn lower(ratchet: &mut Ratchet, tree: &Tree) {
    let sizes = measure(tree);
    let too_long = sizes.values().filter(|sized| sized.lines > sized.limit);
    ratchet.lower(SECTION, &too_long.map(|sized| (sized.key.clone(), sized.lines)).collect());
}

fn judge(sized: &Sized, recorded: Option<usize>) -> Option<Finding> {
    let Sized { path, line, key, lines, limit } = sized;
    let message = match recorded {
        None if lines > limit => format!("{key} has {lines} lines, {limit} at most"),
        Some(cap) if *lines > cap.max(*limit) => format!("{key} grew from {cap} to {lines} lines"),
        Some(cap) if *lines < cap || lines <= limit => {
            format!("{key} shrank from {cap} to {lines} lines: run `cargo xtask tidy --bless`")
        }
        _ => return None,
    };
    Some(Finding::new(path, *line, message))
}

/// The length of each file and function. Of functions with one path, the longest counts.
fn measure(tree: &Tree) -> BTreeMap<String, Sized> {
    let mut sizes = BTreeMap::new();
    for (file, rust) in tree.rust() {
        let path = || file.path.clone();
        let lines = file.text.lines().count();
        let whole = Sized { path: path(), line: 1, key: path(), lines, limit: FILE_LINES_MAX };
        sizes.insert(path(), whole);
        for function in &rust.functions {
            let key = format!("{}::{}", file.path, function.path);
            if sizes.get(&key).is_some_and(|longer: &Sized| longer.lines >= function.lines) {
                continue;
            }
            let (line, lines) = (function.line, function.lines);
            let sized =
                Sized { path: path(), line, key: key.clone(), lines, limit: FUNCTION_LINES_MAX };
            sizes.insert(key, sized);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(&str, usize, usize)]) -> BTreeMap<String, Sized> {
        let sized = |(key, lines, limit): &(&str, usize, usize)| {
            let key = (*key).to_owned();
            (key.clone(), Sized { path: key.clone(), line: 1, key, lines: *lines, limit: *limit })
        };
        list.iter().map(sized).collect()
    }

    #[test]
    fn a_recorded_length_holds_exactly() {
        let verdict = |lines, recorded| {
            let all = sizes(&[("a.rs", lines, 600)]);
            judge(&all["a.rs"], recorded).map(|finding| finding.message)
        };
        assert_eq!(verdict(600, None), None);
        assert_eq!(verdict(601, None).as_deref(), Some("a.rs has 601 lines, 600 at most"));
        assert_eq!(verdict(700, Some(700)), None);
        assert_eq!(verdict(701, Some(700)).as_deref(), Some("a.rs grew from 700 to 701 lines"));
        assert!(verdict(699, Some(700)).is_some_and(|message| message.contains("--bless")));
        assert!(verdict(500, Some(500)).is_some_and(|message| message.contains("--bless")));
    }
}
