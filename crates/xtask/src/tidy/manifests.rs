//! The rules for manifests: layers, and a reason for each dependency.
//!
//! Cargo refuses circles, and the layers refuse more: a crate depends only on layers below its own,
//! in its tests too. The workspace's manifest has all versions and reasons.

use toml_edit::{Document, Item, TableLike};

use super::Finding;
use super::tree::{File, Tree};

/// The layer of each crate.
const LAYERS: &[(&str, u8)] = &[
    ("base", 0),
    ("sys", 0),
    ("sync", 0),
    ("resp", 1),
    ("ds", 1),
    ("store", 2),
    ("command", 3),
    ("persist", 3),
    ("engine", 4),
    ("script", 4),
    ("acl", 4),
    ("pubsub", 4),
    ("tracking", 4),
    ("replication", 4),
    ("node", 5),
    ("server", 6),
    ("tools", 7),
    ("weft", 7),
];

/// Crates outside the layers: they may depend on any layer, and no layer depends on them.
const OUTSIDE: &[&str] =
    &["xtask", "xtask-product", "clients-test", "deploy-test", "chaos", "crash", "diff", "lin"];

/// Crates outside the layers that every layer may depend on in its tests, and the crates outside
/// the layers anywhere. They depend on no layer.
const TEST_ONLY: &[&str] = &["model-harness", "test-support"];

/// The one exception: the binary holds the tools as its subcommands.
const SAME_LAYER: (&str, &str) = ("weft", "tools");

/// Tables that name dependencies.
const TABLES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// A dependency as a manifest names it.
struct Dependency {
    name: String,
    line: usize,
    inherited: bool,
    /// Whether only tests, examples and benches are built with it.
    tests_only: bool,
    /// Whether it is a folder of this workspace.
    local: bool,
}

/// Every crate has a layer and depends only on layers below it.
pub fn layers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_crate_manifest(&file.path)) {
        let mut found =
            |line, message: String| findings.push(Finding::new(&file.path, line, message));
        let (name, dependencies) = match read(file, &[]) {
            Ok(read) => read,
            Err(reason) => {
                found(1, reason);
                continue;
            }
        };
        let own = layer(&name);
        let known = [OUTSIDE, TEST_ONLY].concat().contains(&name.as_str());
        if own.is_none() && !known {
            found(1, format!("`{name}` has no layer: give it one in ARCHITECTURE.md and in tidy"));
        }
        for dependency in dependencies {
            if let Some(message) = forbidden(&name, own, &dependency) {
                found(dependency.line, message);
            }
        }
    }
    findings
}

/// Every dependency is named in the workspace's manifest, with its reason in a comment above it.
pub fn reasons(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_crate_manifest(&file.path)) {
        // `layers` reports a manifest that cannot be read.
        for dependency in read(file, &[]).map(|(_, list)| list).unwrap_or_default() {
            if !dependency.inherited {
                let message =
                    format!("`{}` does not inherit the workspace's version", dependency.name);
                findings.push(Finding::new(&file.path, dependency.line, message));
            }
        }
    }
    let Some(file) = tree.file("Cargo.toml") else { return findings };
    let dependencies = match read(file, &["workspace"]) {
        Ok((_, dependencies)) => dependencies,
        Err(reason) => return vec![Finding::new(&file.path, 1, reason)],
    };
    let lines: Vec<&str> = file.text.lines().collect();
    for dependency in dependencies.iter().filter(|dependency| !dependency.local) {
        let above = dependency.line.checked_sub(2).and_then(|at| lines.get(at));
        if !above.is_some_and(|line| line.starts_with("# ")) {
            let message = format!("`{}` has no comment above it with its reason", dependency.name);
            findings.push(Finding::new(&file.path, dependency.line, message));
        }
    }
    findings
}

/// Whether the file belongs to a crate of the layers.
pub fn is_product(file: &File) -> bool {
    file.crate_name().is_some_and(|name| layer(name).is_some())
}

fn is_crate_manifest(path: &str) -> bool {
    let inside = path.strip_prefix("crates/").and_then(|path| path.split_once('/'));
    inside.is_some_and(|(_, file)| file == "Cargo.toml")
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Why the crate may not have the dependency, if it may not.
fn forbidden(name: &str, own: Option<u8>, dependency: &Dependency) -> Option<String> {
    let other = dependency.name.as_str();
    if OUTSIDE.contains(&other) {
        let is_outside = OUTSIDE.contains(&name);
        return (!is_outside)
            .then(|| format!("`{other}` is outside the layers, nothing depends on it"));
    }
    if TEST_ONLY.contains(&other) {
        let is_test = dependency.tests_only || OUTSIDE.contains(&name);
        return (!is_test).then(|| format!("`{other}` is for tests only"));
    }
    let below = layer(other)?;
    if TEST_ONLY.contains(&name) {
        return Some(format!(
            "`{name}` is outside the layers and depends on none, not on `{other}`"
        ));
    }
    let own = own?;
    let allowed = below < own || (name, other) == SAME_LAYER;
    (!allowed).then(|| format!("`{name}` on layer {own} depends on `{other}` on layer {below}"))
}

/// The package's name, and the dependencies in every table below `within`, target tables included.
fn read(file: &File, within: &[&str]) -> Result<(String, Vec<Dependency>), String> {
    let document = Document::parse(file.text.as_str()).map_err(|e| format!("not TOML: {e}"))?;
    let package = document.get("package").and_then(|package| package.get("name"));
    let name = package.and_then(Item::as_str).unwrap_or_default().to_owned();
    let mut tables = vec![document.as_item()];
    for key in within {
        tables = tables.into_iter().filter_map(|table| table.get(key)).collect();
    }
    let targets = document.get("target").and_then(Item::as_table_like);
    tables.extend(targets.iter().flat_map(|targets| targets.iter().map(|(_, target)| target)));
    let mut dependencies = Vec::new();
    for table in tables {
        for kind in TABLES {
            if let Some(list) = table.get(kind).and_then(Item::as_table_like) {
                dependencies.extend(listed(list, kind, &file.text));
            }
        }
    }
    Ok((name, dependencies))
}

fn listed(list: &dyn TableLike, kind: &str, text: &str) -> Vec<Dependency> {
    let dependency = |(name, item): (&str, &Item)| {
        let span = list.key(name).and_then(|key| key.span());
        let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
        Dependency {
            name: name.to_owned(),
            line: before.matches('\n').count() + 1,
            tests_only: kind == "dev-dependencies",
            inherited: item.get("workspace").and_then(Item::as_bool) == Some(true),
            local: item.get("path").is_some(),
        }
    };
    list.iter().map(dependency).collect()
}
