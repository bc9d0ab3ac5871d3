//! `cargo xtask rows`: what the rows of the commands require of the rest of the tree.
//!
//! The rules have the form of the rules of style: generated documents are current, some transcript
//! sends every command, the bench measures every class of cost, and every parameter of the
//! configuration is read where its row says. They are not in `xtask` because they compile the
//! product to read its tables.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use command::{Flags, Spec};
use node::command_table::entry::{Call, Entry};
use node::config::PARAMETERS;
use tools::load::workload::table::TABLE;
use xtask::Failure;
use xtask::tidy::{Check, Finding, Tree, report};

use crate::docs::{DOCUMENTS, Document};

/// The folder of the transcripts.
const TRANSCRIPTS: &str = "crates/node/tests/transcripts/";

/// The table of the configuration's parameters.
const CONFIG_TABLE: &str = "crates/node/src/config/table.rs";

/// The table of workloads.
const WORKLOADS: &str = "crates/tools/src/load/workload/table.rs";

/// Every rule.
const CHECKS: &[Check] = &[
    Check::new("generated", generated),
    Check::new("command-test", tested),
    Check::new("command-bench", measured),
    Check::new("parameter-reader", read),
];

/// Checks the tree, and prints a line for each finding.
///
/// # Errors
/// Fails when anything was found, or the tree cannot be read.
pub fn run(root: &Path) -> Result<(), Failure> {
    report("rows", &Tree::read(root)?, CHECKS)
}

/// Every generated file equals the text that its tables give.
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

/// Every parameter that has an effect is read where its row says.
fn read(tree: &Tree) -> Vec<Finding> {
    let readers = PARAMETERS.iter().filter_map(|row| Some((row.name, row.reader?)));
    readers
        .filter(|(name, reader)| {
            let text = tree.file(&format!("crates/{reader}")).map_or("", |file| &file.text);
            !reads(text, name)
        })
        .map(|(name, reader)| {
            let message = format!("{reader} does not read {name}");
            Finding::new(CONFIG_TABLE, 1, message)
        })
        .collect()
}

/// Whether the code names the field of a parameter, outside the tests at its end.
fn reads(text: &str, parameter: &str) -> bool {
    let field = parameter.replace('-', "_");
    // The parameters of ACL, scripts, latency, lazy freeing, metrics, the system's log, crashes,
    // cluster mode and TLS (except its port) are fields of structs, without the prefix.
    let of_acl = field.strip_prefix("acl").map(|name| name.trim_start_matches('_'));
    let structs = [
        "tls_",
        "script_",
        "latency_",
        "lazyfree_",
        "syslog_",
        "metrics_",
        "crash_log_",
        "cluster_",
    ];
    let of_structs = structs.iter().filter_map(|prefix| field.strip_prefix(prefix));
    let names: Vec<&str> = std::iter::once(&*field).chain(of_acl).chain(of_structs).collect();
    let code = text.split("\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let words = lines.flat_map(|line| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        line.split(move |c: char| !is_part(c)).flat_map(|path| path.split('.').skip(1))
    });
    // Times have their unit in the name of the field.
    let mut bare = words.map(|word| {
        ["_ms", "_minutes"].iter().find_map(|unit| word.strip_suffix(unit)).unwrap_or(word)
    });
    bare.any(|word| names.contains(&word))
}

/// Some transcript sends every command, subcommands included.
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

/// Every class of cost has a workload in the bench.
fn measured(_: &Tree) -> Vec<Finding> {
    let templates = TABLE.iter().flat_map(|row| [row.read, row.write]).flatten();
    unmeasured(&templates.collect::<Vec<_>>())
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

/// The requests on one line of Rust. Each follows `> ` or `client> ` at the start of a line of a
/// transcript, which starts with the line of the file, after a quote, or after an escaped line end.
fn requests(line: &str) -> impl Iterator<Item = &str> {
    let lines = line.split("\\n").flat_map(|part| part.split('"'));
    lines.filter_map(|part| {
        let (client, request) = part.trim_start().split_once("> ")?;
        client.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(request)
    })
}

/// The properties in a row that decide the cost of a command.
///
/// Commands of one class share most of their code, so one workload represents them all.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CostClass {
    group: &'static str,
    writes: bool,
    blocks: bool,
    growth: &'static str,
}

impl CostClass {
    /// The class of a command on keys. Commands without keys concern the whole keyspace, and system
    /// commands are for developers of the server: neither has a class.
    fn of(spec: &'static Spec) -> Option<Self> {
        let is_measured = !spec.keys.is_empty() && !spec.flags.has(Flags::SYSTEM);
        is_measured.then(|| Self {
            group: spec.group.name(),
            writes: spec.flags.has(Flags::WRITE),
            blocks: spec.flags.has(Flags::BLOCKING),
            growth: growth(spec.complexity),
        })
    }
}

/// The first `O(..)` of a complexity, or all of it.
fn growth(complexity: &str) -> &str {
    let Some(start) = complexity.find("O(") else { return complexity };
    let mut depth = 0;
    let end = complexity[start..].find(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0
    });
    end.map_or(complexity, |end| &complexity[start..=start + end])
}

fn is_on_data(entry: &Entry) -> bool {
    matches!(entry.call, Call::Data(_) | Call::FlushAll(_) | Call::Blocking(_))
}

/// The classes of cost that no template measures.
fn unmeasured(templates: &[&str]) -> Vec<Finding> {
    let named = resolve(templates.iter().copied());
    let mut classes: BTreeMap<CostClass, (bool, Vec<String>)> = BTreeMap::new();
    for entry in node::table().entries().iter().filter(|entry| is_on_data(entry)) {
        let Some(class) = CostClass::of(entry.spec) else { continue };
        let (is_measured, members) = classes.entry(class).or_default();
        *is_measured |= named.contains(&entry.index);
        members.push(sent(entry));
    }
    let missing = classes.iter().filter(|(_, (is_measured, _))| !is_measured);
    missing
        .map(|(class, (_, members))| {
            let members = members.join(", ");
            let message = format!("no workload for {} of {}: {members}", class.growth, class.group);
            Finding::new(WORKLOADS, 1, message)
        })
        .collect()
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

    /// The step `rows` of CI is this test: it needs no build that the other tests do not need.
    #[test]
    fn the_rules_hold() -> Result<(), String> {
        run(&xtask::workspace_root()?)
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
        assert_eq!(found("b> get k"), ["get k"]);
        assert!(found("b< get k").is_empty() && found("Vec<u8> get").is_empty());
        assert_eq!(found(r#"check("> GET k\n\"v\"\n> TTL k\n");"#), ["GET k", "TTL k"]);
        assert!(found("if a > b { c }").is_empty() && found("fn f() -> u8 {}").is_empty());
    }

    #[test]
    fn a_class_of_cost_without_a_workload_is_found() {
        let data = node::table().entries().iter().filter(|entry| is_on_data(entry));
        let all: Vec<String> = data.map(sent).collect();
        let mut templates: Vec<&str> = all.iter().map(String::as_str).collect();
        assert!(messages(unmeasured(&templates)).is_empty());
        // RPUSH represents LPUSH.
        templates.retain(|name| *name != "LPUSH");
        assert!(messages(unmeasured(&templates)).is_empty());
        templates.retain(|name| *name != "BLMOVE" && *name != "BRPOPLPUSH");
        let found = messages(unmeasured(&templates));
        assert_eq!(found, ["no workload for O(1) of list: BLMOVE, BRPOPLPUSH"]);
    }

    #[test]
    fn a_parameter_that_its_reader_does_not_read_is_found() -> Result<(), String> {
        assert!(reads("let hz = config.dynamic_hz;", "dynamic-hz"));
        assert!(reads("rules.auth_clients == No", "tls-auth-clients"));
        for other in ["// config.hz", "config.dynamic_hz", "hz", "mod a;\nmod tests {\nconfig.hz"] {
            assert!(!reads(other, "hz"), "{other}");
        }
        let empty = tree("crates/server/src/threads/accept.rs", String::new())?;
        let with_reader = PARAMETERS.iter().filter(|row| row.reader.is_some());
        assert_eq!(read(&empty).len(), with_reader.count());
        Ok(())
    }

    #[test]
    fn growth_is_the_first_term_in_a_complexity() {
        assert_eq!(growth("O(1)"), "O(1)");
        assert_eq!(growth("O(log(N)+M) for N members and O(1) else."), "O(log(N)+M)");
        assert_eq!(growth(""), "");
        assert_eq!(growth("O(N"), "O(N");
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
