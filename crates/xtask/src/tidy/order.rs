//! The order inside a crate: its folders are layers too, and cycles of files are small.
//!
//! `tidy-order.toml` lists the folders and files at the top of each crate's `src/` from bottom to
//! top; a file uses only files of its own folder or of a lower one. `lib.rs` and `main.rs`
//! represent the whole crate and are not listed. `graph.rs` defines a use.

use std::collections::BTreeMap;

use toml_edit::{DocumentMut, Item};

use super::Finding;
use super::graph::{self, Graph};
use super::tree::Tree;

/// The file with the order of each crate.
const ORDER_PATH: &str = "crates/xtask/tidy-order.toml";

/// How many files may use each other in a circle.
const CYCLE_FILES_MAX: usize = 3;

/// The names at the top of each crate, from bottom to top, by crate.
type Orders = BTreeMap<String, Vec<String>>;

/// The lists name each folder and file at the top of a crate once, and nothing else.
pub fn listed(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(ORDER_PATH).map_or("", |file| &file.text);
    let orders = match parse(text) {
        Ok(orders) => orders,
        Err(reason) => return vec![Finding::new(ORDER_PATH, 1, reason)],
    };
    let graphs = graph::graphs(tree);
    let mut messages = Vec::new();
    for graph in &graphs {
        let name = graph.crate_name;
        let listed: &[String] = orders.get(name).map_or(&[], |order| order);
        let tops: Vec<&str> = (0..graph.files.len()).map(|at| top(graph.path(at))).collect();
        let mut missing: Vec<&str> = tops.iter().copied().filter(|top| !is_root(top)).collect();
        missing.retain(|top| !listed.iter().any(|entry| entry == top));
        missing.dedup();
        messages
            .extend(missing.iter().map(|top| (name, format!("`{top}` of `{name}` is not listed"))));
        for (at, entry) in listed.iter().enumerate() {
            if !tops.contains(&entry.as_str()) {
                messages.push((name, format!("`{entry}` of `{name}` does not exist")));
            }
            if listed[..at].contains(entry) {
                messages.push((name, format!("`{entry}` of `{name}` is listed twice")));
            }
        }
    }
    let is_known = |name: &str| graphs.iter().any(|graph| graph.crate_name == name);
    let gone = orders.keys().filter(|name| !is_known(name));
    messages.extend(gone.map(|name| (name.as_str(), format!("there is no crate `{name}`"))));
    let line = |name: &str| text.lines().position(|line| line.starts_with(name)).unwrap_or(0) + 1;
    messages.into_iter().map(|(name, text)| Finding::new(ORDER_PATH, line(name), text)).collect()
}

/// No file uses one of a folder that is higher in its crate.
pub fn upward(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(ORDER_PATH).map_or("", |file| &file.text);
    // `listed` reports a list that cannot be read.
    let orders = parse(text).unwrap_or_default();
    let mut findings = Vec::new();
    for graph in graph::graphs(tree) {
        let Some(order) = orders.get(graph.crate_name) else { continue };
        let rank = |file: usize| order.iter().position(|entry| entry == top(graph.path(file)));
        for edge in &graph.uses {
            let ranks = rank(edge.from).zip(rank(edge.to));
            if ranks.is_some_and(|(from, to)| from < to) {
                let (from, to) = (top(graph.path(edge.from)), graph.path(edge.to));
                let message = format!("`{from}` uses `{}` ({to}), which is higher", top(to));
                findings.push(Finding::new(&graph.files[edge.from].path, edge.line, message));
            }
        }
    }
    findings
}

/// No more than three files use each other in a circle. Every file of a larger one is a finding.
pub fn cycles(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for graph in graph::graphs(tree) {
        for cycle in graph.cycles().iter().filter(|cycle| cycle.len() > CYCLE_FILES_MAX) {
            findings.extend(cycle.iter().map(|file| member(&graph, cycle, *file)));
        }
    }
    findings
}

/// A file of a circle, with what it uses there.
fn member(graph: &Graph, cycle: &[usize], file: usize) -> Finding {
    let inner = graph.uses.iter().filter(|edge| edge.from == file && cycle.contains(&edge.to));
    let used: Vec<String> =
        inner.map(|edge| format!("{} (line {})", graph.path(edge.to), edge.line)).collect();
    let message = format!(
        "in a cycle of {} files, {CYCLE_FILES_MAX} at most; uses of it {}",
        cycle.len(),
        used.join(", ")
    );
    Finding::new(&graph.files[file].path, 1, message)
}

/// The folder or file at the top of `src/`, without an extension.
fn top(inside: &str) -> &str {
    inside.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

fn is_root(top: &str) -> bool {
    matches!(top, "lib" | "main")
}

fn parse(text: &str) -> Result<Orders, String> {
    let document: DocumentMut = text.parse().map_err(|e| format!("not TOML: {e}"))?;
    let list = |(name, item): (&str, &Item)| {
        let wrong = || format!("{name}: not a list of names");
        let names = item.as_array().ok_or_else(wrong)?.iter();
        let names: Option<Vec<String>> = names.map(|n| n.as_str().map(str::to_owned)).collect();
        Ok((name.to_owned(), names.ok_or_else(wrong)?))
    };
    document.iter().map(list).collect()
}
