//! Known breaches of rules, as numbers that only shrink.
//!
//! `tidy-ratchet.toml` has a section for each rule with exceptions: lengths of files and functions
//! (`lengths.rs`), and for a rule with an `CountArea` the number of findings that each area may
//! have. `cargo xtask tidy --bless` lowers the numbers to today's and removes unneeded ones. It
//! never raises or adds one: a new exception is written by hand, where a reviewer sees it.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, value};

use super::tree::Tree;
use super::{Check, Finding};
use crate::Failure;

/// The file of exceptions.
pub const PATH: &str = "crates/xtask/tidy-ratchet.toml";

/// The header of the file when it is written.
const HEADER: &str = "\
# Known breaches of the rules of tidy: the lengths of files above 600 lines and functions above 70,
# and for other rules the number of findings in each crate. The numbers only shrink: `cargo xtask
# tidy --bless` lowers them, and adds nothing.
";

/// Numbers by their keys.
pub type RatchetCounts = BTreeMap<String, usize>;

/// Over which files the findings of a rule are counted.
#[derive(Clone, Copy)]
pub enum CountArea {
    /// A crate of `crates/`, or another folder or file at the root.
    Crate,
    /// Everything.
    Workspace,
    /// The findings about one name.
    Subject,
}

/// The number of findings that are shown of an area with exceptions. All are alike: the record does
/// not tell which ones are new.
const SHOWN_MAX: usize = 20;

/// The whole file: sections by the names of their rules.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ratchet(pub BTreeMap<String, RatchetCounts>);

impl Ratchet {
    /// Reads the file, which may be absent.
    ///
    /// # Errors
    /// Names the part that is not TOML or not a number.
    pub fn read(tree: &Tree) -> Result<Self, Failure> {
        Self::parse(tree.file(PATH).map_or("", |file| &file.text))
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        let document: DocumentMut = text.parse().map_err(|e| format!("{PATH}: {e}"))?;
        let number = |(key, item): (&str, &Item)| {
            let number = item.as_integer().and_then(|number| usize::try_from(number).ok());
            number.map(|number| (key.to_owned(), number)).ok_or(format!("{key}: not a number"))
        };
        let mut ratchet = Self::default();
        for (name, item) in document.iter() {
            let table = item.as_table().ok_or(format!("{name}: not a table"))?;
            let section: RatchetCounts = table.iter().map(number).collect::<Result<_, _>>()?;
            ratchet.0.insert(name.to_owned(), section);
        }
        Ok(ratchet)
    }

    fn print(&self) -> String {
        let mut document = DocumentMut::new();
        for (name, section) in self.0.iter().filter(|(_, section)| !section.is_empty()) {
            let mut table = Table::new();
            for (key, number) in section {
                table.insert(key, value(i64::try_from(*number).unwrap_or(i64::MAX)));
            }
            document.insert(name, Item::Table(table));
        }
        format!("{HEADER}\n{document}")
    }

    /// Lowers the numbers of a section to today's, and removes those that became zero.
    pub fn lower(&mut self, name: &str, today: &RatchetCounts) {
        if let Some(section) = self.0.get_mut(name) {
            section.retain(|key, number| {
                let now = today.get(key).copied().unwrap_or_default();
                *number = now.min(*number);
                *number > 0
            });
        }
    }

    /// Writes the file, if its text in the tree differs.
    ///
    /// # Errors
    /// Fails when it cannot be written.
    pub fn write(&self, root: &Path, tree: &Tree) -> Result<(), Failure> {
        let text = self.print();
        if tree.file(PATH).is_some_and(|file| file.text == text) {
            return Ok(());
        }
        std::fs::write(root.join(PATH), text).map_err(|e| format!("{PATH}: {e}"))
    }
}

impl CountArea {
    /// The key of the area that a finding belongs to.
    fn key(self, finding: &Finding) -> String {
        let mut folders = finding.path.split('/');
        let first = folders.next().unwrap_or_default();
        let inside = if first == "crates" { folders.next() } else { None };
        match self {
            Self::Crate => inside.unwrap_or(first).to_owned(),
            Self::Workspace => "workspace".to_owned(),
            Self::Subject => finding.subject.clone(),
        }
    }
}

/// How many findings each area has.
pub fn count(findings: &[Finding], area: CountArea) -> RatchetCounts {
    let mut counts = RatchetCounts::new();
    for finding in findings {
        *counts.entry(area.key(finding)).or_default() += 1;
    }
    counts
}

/// The findings of a check, without those of areas that have no more than the record allows.
pub fn judge(check: &Check, tree: &Tree) -> Vec<Finding> {
    let findings = (check.run)(tree);
    let Some(area) = check.area else { return findings };
    let ratchet = match Ratchet::read(tree) {
        Ok(ratchet) => ratchet,
        Err(reason) => return vec![Finding::new(PATH, 1, reason)],
    };
    let recorded = ratchet.0.get(check.name);
    let mut over = Vec::new();
    for (key, count) in count(&findings, area) {
        let allowed = recorded.and_then(|section| section.get(&key)).copied().unwrap_or_default();
        if count <= allowed {
            continue;
        }
        let shown_max = if allowed > 0 { SHOWN_MAX } else { count };
        over.extend(findings.iter().filter(|f| area.key(f) == key).take(shown_max).cloned());
        if allowed > 0 {
            let message =
                format!("{key} has {count} findings of `{}`, {allowed} recorded", check.name);
            over.push(Finding::new(PATH, 1, message));
        }
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(list: &[(&str, usize)]) -> RatchetCounts {
        list.iter().map(|(key, number)| ((*key).to_owned(), *number)).collect()
    }

    fn ratchet(list: &[(&str, usize)]) -> Ratchet {
        Ratchet([("lines".to_owned(), section(list))].into())
    }

    #[test]
    fn lowering_never_raises_or_adds() {
        let mut old = ratchet(&[("gone.rs", 800), ("grew.rs", 800), ("shrank.rs", 700)]);
        let today = section(&[("grew.rs", 900), ("new.rs", 700), ("shrank.rs", 650)]);
        old.lower("lines", &today);
        old.lower("unknown", &today);
        assert_eq!(old, ratchet(&[("grew.rs", 800), ("shrank.rs", 650)]));
    }

    #[test]
    fn the_record_survives_a_round_trip() {
        let written = ratchet(&[("crates/a/src/b.rs", 601), ("crates/a/src/b.rs::T::f", 71)]);
        assert_eq!(Ratchet::parse(&written.print()), Ok(written));
        assert_eq!(Ratchet::parse(""), Ok(Ratchet::default()));
        assert!(Ratchet::parse("[lines]\n\"a.rs\" = \"many\"").is_err());
        assert!(Ratchet::parse("lines = 3").is_err());
    }

    #[test]
    fn areas_are_crates_and_what_else_is_at_the_root() {
        let keys = ["crates/ds/src/a.rs", "docs/a.md", "README.md"]
            .map(|path| CountArea::Crate.key(&Finding::new(path, 1, "")));
        assert_eq!(keys, ["ds", "docs", "README.md"]);
    }
}
