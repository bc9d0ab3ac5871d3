//! The lengths of files and functions, as a ratchet.
//!
//! What is longer than its limit must be in `tidy-ratchet.toml` with its length, and that length
//! may only shrink: longer is a finding, and shorter is one too until `cargo xtask tidy --bless`
//! has lowered the entry. Blessing never raises or adds an entry; who needs a new exception writes
//! it by hand, where a reviewer sees it.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, value};

use super::Finding;
use super::tree::Tree;
use crate::Failure;

/// The longest file, in lines.
const FILE_LINES_MAX: usize = 600;

/// The longest function, in lines from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// The file of exceptions.
const RATCHET_PATH: &str = "crates/xtask/tidy-ratchet.toml";

/// The header of the file when it is written.
const RATCHET_HEADER: &str = "\
# What is longer than tidy allows (600 lines a file, 70 a function), with its length today.
# Lengths here only shrink: `cargo xtask tidy --bless` lowers them, and adds nothing.
";

/// Something that has a length.
struct Sized {
    path: String,
    line: usize,
    /// `PATH` of a file or `PATH::FUNCTION`; the key of its entry.
    key: String,
    lines: usize,
    limit: usize,
}

/// Recorded lengths by key.
type Ratchet = BTreeMap<String, usize>;

/// Nothing is longer than its limit, or than what is recorded for it.
pub fn lengths(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(RATCHET_PATH).map_or("", |file| &file.text);
    let ratchet = match parse(text) {
        Ok(ratchet) => ratchet,
        Err(reason) => return vec![Finding::new(RATCHET_PATH, 1, reason)],
    };
    let sizes = measure(tree);
    let mut findings: Vec<Finding> =
        sizes.values().filter_map(|sized| judge(sized, ratchet.get(&sized.key).copied())).collect();
    for key in ratchet.keys().filter(|key| !sizes.contains_key(*key)) {
        let line = text.lines().position(|line| line.contains(key.as_str())).map_or(1, |at| at + 1);
        let message = format!("{key} is gone: run `cargo xtask tidy --bless`");
        findings.push(Finding::new(RATCHET_PATH, line, message));
    }
    findings
}

/// Lowers the recorded lengths to today's, and drops those that are no longer needed.
///
/// # Errors
/// Fails when the record cannot be read or written.
pub fn bless(root: &Path, tree: &Tree) -> Result<(), Failure> {
    let text = tree.file(RATCHET_PATH).map_or("", |file| &file.text);
    let blessed = print(&lower(parse(text)?, &measure(tree)));
    if blessed == text {
        return Ok(());
    }
    std::fs::write(root.join(RATCHET_PATH), blessed).map_err(|e| format!("{RATCHET_PATH}: {e}"))
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

fn lower(ratchet: Ratchet, sizes: &BTreeMap<String, Sized>) -> Ratchet {
    let lowered = ratchet.into_iter().filter_map(|(key, cap)| {
        let sized = sizes.get(&key).filter(|sized| sized.lines > sized.limit)?;
        Some((key, cap.min(sized.lines)))
    });
    lowered.collect()
}

fn parse(text: &str) -> Result<Ratchet, Failure> {
    let document: DocumentMut = text.parse().map_err(|e| format!("{RATCHET_PATH}: {e}"))?;
    let Some(table) = document.get("lines").and_then(Item::as_table) else {
        return Ok(Ratchet::new());
    };
    let read = |(key, item): (&str, &Item)| {
        let lines = item.as_integer().and_then(|lines| usize::try_from(lines).ok());
        lines.map(|lines| (key.to_owned(), lines)).ok_or(format!("{key}: not a number of lines"))
    };
    table.iter().map(read).collect()
}

fn print(ratchet: &Ratchet) -> String {
    let mut table = Table::new();
    for (key, lines) in ratchet {
        table.insert(key, value(i64::try_from(*lines).unwrap_or(i64::MAX)));
    }
    let mut document = DocumentMut::new();
    document.insert("lines", Item::Table(table));
    format!("{RATCHET_HEADER}{document}")
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

    fn ratchet(list: &[(&str, usize)]) -> Ratchet {
        list.iter().map(|(key, lines)| ((*key).to_owned(), *lines)).collect()
    }

    #[test]
    fn blessing_lowers_and_drops_but_never_raises_or_adds() {
        let today = sizes(&[
            ("fits.rs", 600, 600),
            ("grew.rs", 900, 600),
            ("new.rs", 700, 600),
            ("shrank.rs", 650, 600),
        ]);
        let old =
            ratchet(&[("fits.rs", 610), ("gone.rs", 800), ("grew.rs", 800), ("shrank.rs", 700)]);
        assert_eq!(lower(old, &today), ratchet(&[("grew.rs", 800), ("shrank.rs", 650)]));
    }

    #[test]
    fn the_record_survives_a_round_trip() {
        let written = ratchet(&[("crates/a/src/b.rs", 601), ("crates/a/src/b.rs::T::f", 71)]);
        assert_eq!(parse(&print(&written)), Ok(written));
        assert_eq!(parse(""), Ok(Ratchet::new()));
        assert!(parse("[lines]\n\"a.rs\" = \"many\"").is_err());
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
