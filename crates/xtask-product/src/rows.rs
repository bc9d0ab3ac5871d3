//! `cargo xtask rows`: what the rows of the commands require of the rest of the tree.
//!
//! Three rules, in the form of the rules of style: generated documents are current, every command
//! is a request of some transcript, and the bench measures every data command. They are here and
//! not in `xtask` because they compile the product to read its tables.

use std::collections::HashSet;
use std::path::Path;

use node::execution::table::{Call, Entry};
use tools::bench::workload;
use xtask::Failure;
use xtask::tidy::{Check, Finding, Tree, report};

use crate::docs::{DOCUMENTS, Document};

/// Where requests and their replies stand as transcripts.
const TRANSCRIPTS: &str = "crates/node/tests/transcripts/";

/// Where the bench's workloads stand.
const WORKLOADS: &str = "crates/tools/src/bench/workload.rs";

/// Data commands without a workload, and why.
const UNMEASURED: &[(&str, &str)] = &[
    ("flushall", "empties the keyspace that the other workloads fill"),
    ("flushdb", "empties the keyspace that the other workloads fill"),
    ("keys", "takes seconds for one request on a filled keyspace"),
    ("move", "a key moves once, and every further request finds nothing"),
    ("object|freq", "is an error unless the eviction policy is LFU"),
    ("object|help", "touches no data"),
    ("pfdebug", "is for those who develop the server"),
    ("pfselftest", "is for those who develop the server"),
    ("rename", "is an error when its source was renamed before"),
    ("renamenx", "is an error when its source was renamed before"),
    ("swapdb", "stops the world"),
    ("xackdel", "is unknown to the peers"),
    ("xdelex", "is unknown to the peers"),
    ("xgroup|create", "is an error when the group is there"),
    ("xgroup|destroy", "a group goes once, and every further request finds nothing"),
    ("xgroup|help", "touches no data"),
    ("xinfo|help", "touches no data"),
];

/// Every rule.
const CHECKS: &[Check] = &[
    Check { name: "generated", run: generated },
    Check { name: "command-test", run: tested },
    Check { name: "command-bench", run: measured },
];

/// Checks the tree, and prints a line for each finding.
///
/// # Errors
/// Fails when anything was found, or the tree cannot be read.
pub fn run(root: &Path) -> Result<(), Failure> {
    report("rows", &Tree::read(root)?, CHECKS)
}

/// Every generated file is what its tables give.
fn generated(tree: &Tree) -> Vec<Finding> {
    let stale = |Document { path, text }: &Document| {
        let current = tree.file(path).map_or("", |file| &file.text);
        let wanted = text();
        let line = current.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count() + 1;
        let message = "not what the tables give: run `cargo xtask docs`";
        (current != wanted).then(|| Finding::new(path, line, message))
    };
    DOCUMENTS.iter().filter_map(stale).collect()
}

/// Every command, subcommands included, is a request of some transcript.
fn tested(tree: &Tree) -> Vec<Finding> {
    let transcripts = tree.files.iter().filter(|file| file.path.starts_with(TRANSCRIPTS));
    let named = resolve(transcripts.flat_map(|file| file.text.lines().flat_map(requests)));
    let missing = node::table().entries().iter().filter(|entry| !named.contains(&entry.index));
    missing
        .map(|entry| {
            let message = format!("no transcript sends {}", sent(entry));
            Finding::new(&format!("{TRANSCRIPTS}main.rs"), 1, message)
        })
        .collect()
}

/// Every data command has a workload in the bench, or a reason why it has none.
fn measured(_: &Tree) -> Vec<Finding> {
    let templates = workload::TABLE.iter().flat_map(|row| [row.read, row.write]).flatten();
    unmeasured(&templates.collect::<Vec<_>>(), UNMEASURED)
}

/// The entries that the requests name; a container counts as named with its subcommand.
fn resolve<'a>(requests: impl Iterator<Item = &'a str>) -> HashSet<u16> {
    let table = node::table();
    let mut named = HashSet::new();
    for request in requests {
        let mut words = request.split_whitespace();
        let Some(entry) = words.next().and_then(|name| table.find(name.as_bytes())) else {
            continue;
        };
        let second = words.next().unwrap_or_default();
        named.insert(entry.index);
        named.extend(table.find_subcommand(entry, second.as_bytes()).map(|entry| entry.index));
    }
    named
}

/// The requests on one line of Rust: each stands behind `> ` at the start of a transcript's line,
/// and such a line starts with the file's, behind a quote, or behind an escaped line end.
fn requests(line: &str) -> impl Iterator<Item = &str> {
    let lines = line.split("\\n").flat_map(|part| part.split('"'));
    lines.filter_map(|part| part.trim_start().strip_prefix("> "))
}

fn unmeasured(templates: &[&str], exempt: &[(&str, &str)]) -> Vec<Finding> {
    let found = |message: String| Finding::new(WORKLOADS, 1, message);
    let named = resolve(templates.iter().copied());
    let mut findings = Vec::new();
    for entry in node::table().entries().iter().filter(|e| matches!(e.call, Call::Data(_))) {
        let is_exempt = exempt.iter().any(|(name, _)| *name == entry.name);
        match (is_exempt, named.contains(&entry.index)) {
            (false, false) => {
                findings.push(found(format!("no workload for {}, nor a reason", sent(entry))));
            }
            (true, true) => {
                findings.push(found(format!("{} has a workload and a reason", sent(entry))));
            }
            _ => {}
        }
    }
    let is_known = |name: &str| node::table().entries().iter().any(|entry| entry.name == name);
    let unknown = exempt.iter().filter(|(name, _)| !is_known(name));
    findings.extend(unknown.map(|(name, _)| found(format!("`{name}` is no command"))));
    findings
}

/// The name as a client sends it.
fn sent(entry: &Entry) -> String {
    entry.name.replace('|', " ").to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(findings: Vec<Finding>) -> Vec<String> {
        findings.into_iter().map(|finding| finding.message).collect()
    }

    fn tree(path: &str, text: String) -> Result<Tree, String> {
        Tree::of(vec![(path.to_owned(), text)])
    }

    #[test]
    fn a_command_without_a_transcript_is_found() -> Result<(), String> {
        let path = "crates/node/tests/transcripts/all.rs";
        let transcript = |entries: &[Entry]| {
            let requests = entries.iter().map(|entry| format!("> {} x\n", sent(entry)));
            format!("const ALL: &str = r#\"\n{}\"#;", requests.collect::<String>())
        };
        let entries = node::table().entries();
        assert!(messages(tested(&tree(path, transcript(entries))?)).is_empty());
        let (last, others) = entries.split_last().ok_or("no commands")?;
        let expected = [format!("no transcript sends {}", sent(last))];
        assert_eq!(messages(tested(&tree(path, transcript(others))?)), expected);
        let elsewhere = tree("crates/node/src/a.rs", transcript(entries))?;
        assert_eq!(tested(&elsewhere).len(), entries.len());
        Ok(())
    }

    #[test]
    fn requests_open_lines_of_transcripts() {
        let found = |line: &'static str| requests(line).collect::<Vec<_>>();
        assert_eq!(found("> get k"), ["get k"]);
        assert_eq!(found(r#"check("> GET k\n\"v\"\n> TTL k\n");"#), ["GET k", "TTL k"]);
        assert!(found("if a > b { c }").is_empty() && found("fn f() -> u8 {}").is_empty());
    }

    #[test]
    fn a_data_command_has_a_workload_or_a_reason() {
        let data = || node::table().entries().iter().filter(|e| matches!(e.call, Call::Data(_)));
        let all: Vec<String> = data().map(sent).collect();
        let mut templates: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(messages(unmeasured(&templates, &[])).is_empty());
        templates.retain(|name| *name != "GET");
        assert_eq!(messages(unmeasured(&templates, &[])), ["no workload for GET, nor a reason"]);
        assert!(messages(unmeasured(&templates, &[("get", "no time")])).is_empty());
        let exempt = [("get", "no time"), ("set", "no time"), ("nosuch", "no time")];
        let expected = ["SET has a workload and a reason", "`nosuch` is no command"];
        assert_eq!(messages(unmeasured(&templates, &exempt)), expected);
    }

    #[test]
    fn a_document_that_was_edited_is_found_at_the_line() -> Result<(), String> {
        let sources = |edit: &str| {
            let file = |d: &Document| (d.path.to_owned(), (d.text)().replacen("\n\n", edit, 1));
            Tree::of(DOCUMENTS.iter().map(file).collect())
        };
        assert!(generated(&sources("\n\n")?).is_empty());
        let found = generated(&sources("\n\nmine\n")?);
        assert_eq!(found.len(), DOCUMENTS.len());
        assert!(found.iter().all(|finding| finding.line > 1));
        assert_eq!(generated(&Tree::of(Vec::new())?).len(), DOCUMENTS.len());
        Ok(())
    }
}
